"""Trains a small GPT on 1, 2, 4 and 8 tensor-parallel ranks, and compares the losses.

    python benches/tp_transformer.py --dtype bfloat16 --steps 100

The model is made of Megatron's layers: a vocabulary-parallel embedding, attention and MLPs of column- and row-parallel
ones, a vocabulary-parallel loss; with Adam. However it is divided, with sequence parallelism or without, it begins with
the same weights and sees the same texts. So all loss curves are the same but for rounding, which training makes grow:
in float64 up to 1e-10. The exit status is 1 when they are not, or when ranks have different losses.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any

from parallel_models import flags

AGREEMENT = {"float64": 1e-10, "float32": 1e-4, "bfloat16": 5e-2}
"""By how much losses may differ. Roundings of 2⁻⁵³ and 2⁻²⁴ grow a thousandfold or so in some hundred steps; those of
bfloat16 are of activations only, since its parameters have copies in float32."""

SIZES = {
    "heads": "of attention",
    "layers": "of the model",
    "vocabulary": "tokens that there are",
    "sequence": "tokens of a text",
    "batch": "texts of a step",
}
"""Options that are numbers, and what of."""


@dataclass(frozen=True)
class Options:
    """The training; see the command's help."""

    tp: Sequence[int] = (1, 2, 4, 8)
    steps: int = 50
    dtype: str = "float64"
    hidden: int = 64
    heads: int = 8
    layers: int = 2
    vocabulary: int = 64
    sequence: int = 16
    batch: int = 4


class Comparison:
    """Trains in several divisions and compares each with the first."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.all_agree = True
        self._reference: list[float] | None = None

    def header(self) -> None:
        """Prints what is trained, and the columns."""
        o = self.options
        print(f"{o.layers} layers of {o.hidden}, {o.heads} heads, {o.vocabulary} tokens, {o.steps} steps, {o.dtype}")
        columns = ("tp", "sp", "first loss", "last loss", "step (us)", "differs by")
        print("{:>3}  {:<3} {:>12} {:>12} {:>11} {:>11}".format(*columns))

    def divisions(self, degree: int) -> Iterator[bool]:
        """Without sequence parallelism and with it, which one rank does not have."""
        yield from ((False, True) if degree > 1 else (False,))

    def train(self, torch: Any, degree: int, sequence_parallel: bool) -> None:
        """Trains on the World that is open, and prints a line."""
        from parallel_models import gpt

        sizes = {f.name: getattr(self.options, f.name) for f in fields(Options) if f.name != "tp"}
        task = gpt.Task(degree=degree, sequence_parallel=sequence_parallel, **sizes)
        notes: list[Any] = [None] * degree
        torch.multiprocessing.spawn(gpt.train, args=(task, notes), nprocs=degree)
        losses = notes[0].losses
        self._reference = self._reference or losses
        difference = max(abs(a - b) for a, b in zip(losses, self._reference, strict=True))
        verdict = self._verdict(difference, [note.losses for note in notes])
        how = "on" if sequence_parallel else "off"
        line = (
            f"{degree:>3}  {how:<3} {losses[0]:>12.8f} {losses[-1]:>12.8f} {notes[0].time:>11.3f} {difference:>11.1e}"
        )
        print(line, verdict, flush=True)

    def _verdict(self, difference: float, by_rank: list[list[float]]) -> str:
        alike = all(losses == by_rank[0] for losses in by_rank)
        agrees = difference <= AGREEMENT[self.options.dtype]  # False for NaN
        self.all_agree &= alike and agrees
        return "OK" if alike and agrees else "FAILED" if alike else "FAILED: the ranks have different losses"

    def conclude(self) -> None:
        """Says whether all agree."""
        limit, dtype = AGREEMENT[self.options.dtype], self.options.dtype
        answer = "agree" if self.all_agree else "do NOT agree"
        print(f"The loss curves {answer} to the rounding of {dtype}: the limit is {limit:.0e}.")


def run(torch: Any, options: Options | None = None) -> None:
    """Runs the bench, for ``torchemu bench``, at all degrees that the topology has SIPs for.

    Raises:
        AssertionError: losses differ.
    """
    comparison = Comparison(options or Options())
    comparison.header()
    for degree in flags.fitting(comparison.options.tp, torch.ahbm.device_count()):
        for sequence_parallel in comparison.divisions(degree):
            comparison.train(torch, degree, sequence_parallel)
    comparison.conclude()
    assert comparison.all_agree, "losses differ"


def _parser() -> argparse.ArgumentParser:
    usual = Options()
    parser = argparse.ArgumentParser(description="Trains a small GPT in several divisions and compares the losses.")
    add = parser.add_argument
    flags.add_degrees(parser, usual.tp, "compare")
    add("--steps", type=flags.positive, default=usual.steps, metavar="N", help="of Adam (default: 50)")
    add("--dtype", choices=tuple(AGREEMENT), default=usual.dtype, help="(default: float64)")
    add("--hidden", type=flags.positive, default=usual.hidden, metavar="H", help="the hidden size (default: 64)")
    for name, what in SIZES.items():
        default = getattr(usual, name)
        add(f"--{name}", type=flags.positive, default=default, metavar="N", help=f"{what} (default: {default})")
    flags.add_fabric(parser)
    return parser


def _check(options: Options, fail: Callable[[str], Any]) -> None:
    if options.hidden % options.heads:
        fail(f"{options.hidden} hidden elements cannot be divided among {options.heads} heads")
    for degree in options.tp:
        for name in ("heads", "vocabulary", "sequence"):
            if getattr(options, name) % degree:
                fail(f"--{name} {getattr(options, name)} cannot be divided among {degree} ranks")


def main(argv: Sequence[str] | None = None) -> int:
    """The command; returns its exit status: 1 when losses differ."""
    import torchemu
    from torchemu.frontends import stand_ins
    from torchemu.runtime import fabric

    parser = _parser()
    arguments = vars(parser.parse_args(argv))
    topology, ccl = arguments.pop("topology"), arguments.pop("ccl")
    comparison = Comparison(Options(**arguments))
    _check(comparison.options, parser.error)
    comparison.header()
    try:
        for degree in comparison.options.tp:
            with (
                fabric.fitting(topology, 1, degree) as fitting,
                torchemu.open_world(fitting, ccl),
                stand_ins.installed(),
            ):
                for sequence_parallel in comparison.divisions(degree):
                    comparison.train(torchemu, degree, sequence_parallel)
    except (OSError, ValueError) as error:
        parser.exit(1, f"{parser.prog}: {error}\n")
    comparison.conclude()
    return 0 if comparison.all_agree else 1


if __name__ == "__main__":
    # Before NumPy is loaded: threads that share such small products mostly wait for each other.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from torchemu.launch.cli import command

    sys.exit(command(main))
