"""The effect of tensor parallelism on a transformer's MLP: time, exposed communication and model-FLOPs utilisation.

    python benches/tp_mlp.py --tp 1 2 4 8 --hidden 4096 --tokens 2048 --topology sips8 --sequence-parallel

The layers are Megatron's, h → 4h → h: a column-parallel one, gelu, and a row-parallel one, each rank on a SIP of its
own. Times are simulated, forward and backward. ``compute`` is how long rank 0's device computes, ``exposed`` how long
it communicates and does not compute meanwhile; the rest is the host's launches. MFU is the share of the matrix units'
peak that the model's own multiplications take.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from parallel_models import flags

DTYPES = {"bfloat16": "f16_tflops", "float16": "f16_tflops", "float32": "f32_tflops"}
"""And where the topology says what a PE does with them."""

COLUMNS = ("tp", "pass", "time (us)", "compute (us)", "exposed (us)", "MFU (%)")


@dataclass(frozen=True)
class Options:
    """The problem that is timed; see the command's help."""

    tp: Sequence[int] = (1, 2, 4, 8)
    hidden: int = 2048
    tokens: int = 1024
    dtype: str = "bfloat16"
    sequence_parallel: bool = False


def peak(spec: dict[str, Any], dtype: str) -> float:
    """Operations a second of all matrix units of a SIP."""
    mesh, layout = spec["sip"]["cube_mesh"], spec["cube"]["pe_layout"]
    pes = mesh["w"] * mesh["h"] * layout["pe_per_corner"] * len(layout["corners"])
    return pes * spec["pe"]["matrix"][DTYPES[dtype]] * 1e12


def rows(torch: Any, options: Options, degree: int) -> list[tuple[Any, ...]]:
    """The table's rows for one degree, measured on the World that is open."""
    from parallel_models.mlp import Shape, time_passes

    shape = Shape(options.hidden, options.tokens, options.dtype, degree, options.sequence_parallel)
    passes: list[Any] = []
    torch.multiprocessing.spawn(time_passes, args=(shape, lambda *both: passes.extend(both)), nprocs=degree)
    forward, backward = passes
    flops = 16 * options.tokens * options.hidden**2  # two products with 4h² weights, two operations an element
    rate = degree * peak(torch.spec, options.dtype) / 1e6  # operations a microsecond
    times = [
        ("forward", forward.time, forward.compute, forward.exposed, flops),
        ("backward", backward.time, backward.compute, backward.exposed, 2 * flops),
    ]
    times.append(("both", *(a + b for a, b in zip(times[0][1:], times[1][1:], strict=True))))
    return [(degree, name, *us, 100 * ops / (us[0] * rate)) for name, *us, ops in times]


def run(torch: Any, options: Options | None = None) -> None:
    """Runs the bench, for ``torchemu bench``, at all degrees that the topology has SIPs for."""
    options = options or Options()
    header(torch.spec, options)
    for degree in flags.fitting(options.tp, torch.ahbm.device_count()):
        show(rows(torch, options, degree))


def header(spec: dict[str, Any], options: Options) -> None:
    """Prints what is timed, and the columns."""
    h, how = options.hidden, ", sequence parallel" if options.sequence_parallel else ""
    print(f"{h} → {4 * h} → {h}, {options.tokens} tokens, {options.dtype}{how}", end="; ")
    print(f"{peak(spec, options.dtype) / 1e12:.0f} TFLOPS a SIP")
    print("{:>3}  {:<8} {:>11} {:>13} {:>13} {:>8}".format(*COLUMNS))


def show(table: Sequence[tuple[Any, ...]]) -> None:
    """Prints rows."""
    for row in table:
        print("{:>3}  {:<8} {:>11.3f} {:>13.3f} {:>13.3f} {:>8.2f}".format(*row), flush=True)


def _parser() -> argparse.ArgumentParser:
    usual = Options()
    parser = argparse.ArgumentParser(description="Time and utilisation of a tensor-parallel MLP, h → 4h → h.")
    add = parser.add_argument
    flags.add_degrees(parser, usual.tp, "try")
    add("--hidden", type=flags.positive, default=usual.hidden, metavar="H", help="the hidden size (default: 2048)")
    add("--tokens", type=flags.positive, default=usual.tokens, metavar="N", help="of the input (default: 1024)")
    add("--dtype", choices=tuple(DTYPES), default=usual.dtype, help="(default: bfloat16)")
    add("--sequence-parallel", action="store_true", help="divide the tokens outside of the layers, too")
    flags.add_fabric(parser)
    return parser


def _check(options: Options, fail: Callable[[str], Any]) -> None:
    for degree in options.tp:
        if 4 * options.hidden % degree:
            fail(f"4 × {options.hidden} hidden elements cannot be divided among {degree} ranks")
        if options.sequence_parallel and options.tokens % degree:
            fail(f"{options.tokens} tokens cannot be divided among {degree} ranks")


def main(argv: Sequence[str] | None = None) -> int:
    """The command; returns its exit status."""
    import torchemu
    from torchemu.frontends import stand_ins
    from torchemu.runtime import fabric

    parser = _parser()
    arguments = vars(parser.parse_args(argv))
    topology, ccl = arguments.pop("topology"), arguments.pop("ccl")
    options = Options(**arguments)
    _check(options, parser.error)
    try:
        for i, degree in enumerate(options.tp):
            with (
                fabric.fitting(topology, 1, degree) as fitting,
                torchemu.open_world(fitting, ccl),
                stand_ins.installed(),
            ):
                if i == 0:
                    header(torchemu.spec, options)
                show(rows(torchemu, options, degree))
    except (OSError, ValueError) as error:
        parser.exit(1, f"{parser.prog}: {error}\n")
    return 0


if __name__ == "__main__":
    from torchemu.launch.cli import command

    sys.exit(command(main))
