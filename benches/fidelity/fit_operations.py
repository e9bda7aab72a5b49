"""Fits how many operations kernels of PyTorch take for each element to what h200_operations.csv has:

    torchemu run --torch real --no-data --topology h200_8 --nproc-per-node 1 benches/fidelity/fit_operations.py

It prints what a topology's `kernels: operations:` may have: of each operation that is one kernel in some recorded call,
the number by which the roofline is least far from its times, and how far off these are then; and in the end how far off
a size is by what fits the others. A call of several kernels fits nothing.
"""

import csv
import math
import statistics
from collections import defaultdict

import operations
from torch.utils._python_dispatch import _get_current_dispatch_mode

WAYS = ("short", "eval", "channels", "channels_last")
"""Ways that are an operation's own."""
LAUNCH_US, BYTES_A_US = 1.977, 4250e3
"""The launch of every kernel, and the rate of the memory, of topology h200_8."""
OPERATIONS_A_US = {"vector": 132 * 0.507e6, "bfloat16": 132 * 6.31e6, "float32": 132 * 0.457e6}
OPERATIONS_A_US |= dict.fromkeys(("strided", "transposed", *WAYS), OPERATIONS_A_US["vector"])


def kernels():
    """Yields size, dtype and call of each recorded call, with the kernels that it is made of."""
    mode, issued = _get_current_dispatch_mode(), []
    launch = mode.launch

    def note(*kernel):
        issued.append(kernel)
        launch(*kernel)

    mode.launch = note
    try:
        for of, calls, names in operations.groups():
            for call in calls:
                issued.clear()
                eval(call, names)
                yield (*of, call), issued[:]
    finally:
        mode.launch = launch


def roofline(kernel, each):
    """Returns the microseconds of a kernel that takes so many operations for each element."""
    _, nbytes, elements, unit = kernel
    return LAUNCH_US + max(nbytes / BYTES_A_US, each * elements / OPERATIONS_A_US[unit])


def distance(each, points):
    """Returns the mean of how far predictions are off, as logarithms."""
    return statistics.fmean(abs(math.log(roofline(kernel, each) / us)) for kernel, us in points)


def fitted(points):
    """Returns the operations for each element that fit best: those of one of the points, or one."""
    found = [1.0]
    for (_, _, elements, unit), us in points:
        if elements:
            found.append((us - LAUNCH_US) * OPERATIONS_A_US[unit] / elements)
    return min(found, key=lambda each: distance(each, points))


def left_out(points, sizes, size):
    """Returns how far off the points of a size are by what fits those of all others; None where there are no such."""
    known = [point for point, of in zip(points, sizes, strict=True) if of != size]
    unknown = [point for point, of in zip(points, sizes, strict=True) if of == size]
    return distance(fitted(known), unknown) if known and unknown else None


def main():
    with operations.RECORDED.open(newline="") as file:
        recorded = {tuple(row[:3]): float(row[3]) for row in list(csv.reader(file))[1:]}
    points, sizes = defaultdict(list), defaultdict(list)
    for what, issued in kernels():
        if len(issued) == 1:
            name, _, _, unit = issued[0]
            key = unit if unit in ("strided", "transposed") else name.removesuffix("_")
            if unit in WAYS or (name, unit) == ("sum", "strided"):
                key = f"{name}.{unit}"
            points[key].append((issued[0], recorded[what]))
            sizes[key].append(what[0])
    for name, known in sorted(points.items()):
        each = fitted(known)
        before, after = (math.expm1(distance(n, known)) for n in (1, each))
        print(f"{name}: {each:.3g}  # {len(known)} points, off by {before:.0%}, then {after:.0%}")
    far = [left_out(points[name], sizes[name], size) for name in points for size in operations.SIZES]
    print(f"# sizes that are left out: off by {math.expm1(statistics.fmean(f for f in far if f is not None)):.0%}")


if __name__ == "__main__":
    main()
