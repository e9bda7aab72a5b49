"""A session of the fuzzer: batches of programs, until its time is over."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from fuzz.comparing import difference
from fuzz.emulated import Emulation, Outcome
from fuzz.faults import faulty, shortcoming
from fuzz.minimising import minimised
from fuzz.programs import Program, random_program
from fuzz.scripts import script_of

SIZES = (2, 3, 4)
ORDERS = ("", "--check", "--schedule random", "--schedule pct")


class Reference(Protocol):
    """A source of right results: processes of gloo, or something that stands for them in a test."""

    def results(self, script: Path, size: int) -> Outcome:
        """Returns what each rank kept."""
        ...


@dataclass
class Session:
    """Programs that are run and compared.

    Attributes:
        reference: what torchemu is compared with.
        torches: the front ends.
        folder: where failing programs are written to.
        emulate: makes an Emulation.
        many: how many programs a batch has.
        faults: how many of them are run once more, each with a fault.
        counts: of programs, of runs with faults, and of findings.
    """

    reference: Reference
    torches: Sequence[str]
    folder: Path
    emulate: Callable[[str, tuple[str, ...]], Emulation] = Emulation
    many: int = 25
    faults: int = 4
    counts: Counter[str] = field(default_factory=Counter)

    def run(self, seed: int, seconds: float) -> None:
        """Runs batches, of this seed and those after it, until so many seconds are over."""
        self.folder.mkdir(parents=True, exist_ok=True)
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self.batch(seed, until)
            seed += 1
            print(f"{self.counts['programs']} programs, {self.counts['faults']} faults, ", end="")
            print(f"{self.counts['findings']} findings; the next seed is {seed}", flush=True)

    def batch(self, seed: int, until: float = float("inf")) -> None:
        """Runs the programs of a seed on all front ends, and some of them with faults."""
        rng = random.Random(seed)
        size, device, flags = rng.choice(SIZES), rng.random() < 0.4, rng.choice(ORDERS).split()
        if "--schedule" in flags:
            flags += ["--schedule-seed", str(seed)]
        programs = [random_program(seed * 1000 + i, size, device) for i in range(self.many)]
        expected = [self._expected(program) for program in programs]
        self.counts["programs"] += len(programs)
        for torch in self.torches:
            emulation = self.emulate(torch, tuple(flags))
            outcomes = emulation.outcomes([script_of(program).text for program in programs], size)
            for program, right, outcome in zip(programs, expected, outcomes, strict=True):
                wrong = difference(right, outcome)
                if wrong is not None:
                    self.different(program, emulation, wrong)
        for _ in range(self.faults):
            if time.monotonic() < until:
                self._fault(rng.choice(programs), rng)

    def _expected(self, program: Program) -> Outcome:
        file = self.folder / "program.py"
        file.write_text(script_of(program).text)
        try:
            return self.reference.results(file, program.size)
        except RuntimeError as error:
            return f"the reference fails: {error}"

    def different(self, program: Program, emulation: Emulation, wrong: str) -> None:
        """Makes a program small that gives other results on torchemu, and writes it down."""

        def fails(smaller: Program) -> bool:
            right = self._expected(smaller)
            got = emulation.outcomes([script_of(smaller).text], smaller.size)[0]
            return not (isinstance(right, str) and not wrong.startswith("the reference")) and bool(
                difference(right, got)
            )

        self._found(minimised(program, fails) if fails(program) else program, emulation, wrong)

    def _fault(self, program: Program, rng: random.Random) -> None:
        chosen = faulty(program, rng)
        if chosen is None or chosen.fault is None:
            return
        self.counts["faults"] += 1
        flags = ("--check",) if chosen.fault.name == "unwaited" else ()
        emulation = self.emulate(rng.choice([*self.torches]), flags)
        wrong = self._unnamed(chosen, emulation)
        if wrong is not None:
            small = minimised(chosen, lambda smaller: self._unnamed(smaller, emulation) is not None)
            self._found(small, emulation, f"{chosen.fault.name} in rank {chosen.fault.rank}: {wrong}")

    def _unnamed(self, program: Program, emulation: Emulation) -> str | None:
        """Returns what the report of a faulty program lacks."""
        script, file = script_of(program), self.folder / "program.py"
        file.write_text(script.text)
        status, said = emulation.run([str(file)], program.size)
        wrong = shortcoming(program, script, status, said)
        return wrong and f"{wrong}\n{said}"

    def _found(self, program: Program, emulation: Emulation, wrong: str) -> None:
        self.counts["findings"] += 1
        file = self.folder / f"finding-{program.seed}-{emulation.torch}.py"
        about = "".join(f"# {line}\n" for line in [f"{emulation} --nproc-per-node {program.size}", *wrong.splitlines()])
        file.write_text(script_of(program).text + about)
        print(f"FOUND by seed {program.seed} of {program.size} ranks, {emulation}: {file}\n{wrong}", flush=True)
