"""Calls the Go core's functions with random arguments: handles of the wrong kind, hostile numbers and texts.

Run as a script: fuzz_core.py SEED CALLS. It fails when the process crashes, when a call raises something else than an
ordinary exception, or when a World no longer works afterwards. Each call is written to stderr first, for a crash.
"""

from __future__ import annotations

import os
import random
import sys
import tempfile
from collections import Counter
from typing import Any

import numpy as np

from torchemu import errors
from torchemu.bridge.binding import EXPORTED, arguments, go

NUMBERS = [0, 1, -1, 2, 3, 7, 8, 100, 1 << 31, (1 << 62) + 1, (1 << 63) - 1, -(1 << 63)]
LISTS: list[list[int]] = [
    [],
    [0],
    [4],
    [1, 2],
    [0, 1],
    [3, 2, 1, 0],
    [-1],
    [2, -3],
    [(1 << 63) - 1],
    [1 << 62, 4],
    [8, 8],
]
TEXTS = ["f32", "float16", "bool", "i64", "f8e4m3", "sum", "avg", "band", "MAX", "column_wise", "row_wise", "replicate"]
KINDS = ["all_reduce", "broadcast", "all_to_all", "gather", "reduce", "", "x"]
OPS = ["sum", "avg", "", "x"]
NAMES = ["default", "sips2", "no.yaml", ".", "/", "", "é\x1f%s", "x" * 5000]
LIKELY = {
    "kind": KINDS,
    "op": OPS,
    **dict.fromkeys(("topologyName", "path"), NAMES),
}
TAKES = {
    "worldHandle": "world",
    "group": "group",
    "scheduler": "scheduler",
    "work": "work",
    "waitable": "work",
    "stream": "stream",
    "signal": "event",
    "event": "event",
    "call": "call",
    **dict.fromkeys(("t", "out", "in", "dst", "src", "base"), "tensor"),
}
MAKES = {
    "OpenWorld": "world",
    **dict.fromkeys(("NewTensor", "WrapMemory", "ViewTensor"), "tensor"),
    **dict.fromkeys(("NewGroup", "NewShardGroup"), "group"),
    "NewScheduler": "scheduler",
    "DefineCall": "call",
    **dict.fromkeys(("DefaultStream", "HostStream", "NewStream"), "stream"),
    **dict.fromkeys(("AllReduceShards", "AllGatherShards", "Issue", "IssuePieces", "Post"), "work"),
    **dict.fromkeys(("NewSignal", "StreamRecord", "WithTimeout", "Settled", "Timer"), "event"),
}
RARE = ("CloseWorld", "OpenWorld", "Release", "Abandon")
MEMORY = np.zeros(1 << 12, np.uint8)
ADDRESS = MEMORY.__array_interface__["data"][0]


def parameters(name: str) -> list[list[str]]:
    """Type and name of each."""
    own = "t" if name in ("PlaceTensor", "ReadAddress", "ExportAddress") else "worldHandle"
    return [[kind, own if called == "handle" else called] for kind, called in arguments(name)]


class Caller:
    """Makes random calls and keeps the handles that they give, by kind."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.handles: dict[str, list[int]] = {}
        self.answers: Counter[str] = Counter()
        self.begin()

    def begin(self) -> None:
        """Opens a World and forgets the handles of the ones before."""
        self.handles = {kind: [0] for kind in MAKES.values()}
        self.handles["world"] = [go.OpenWorld("default", "")] * 3

    def one(self) -> None:
        name = self.random.choice(EXPORTED)
        if name in RARE and self.random.random() < 0.95:
            return
        given = [self.argument(*parameter) for parameter in parameters(name)]
        if name == "WrapMemory":  # an address is believed
            given[3:] = self.random.choice([[ADDRESS, len(MEMORY)], [ADDRESS, 7], [0, 0], [0, 5], [ADDRESS, -1]])
        os.write(2, f"{name}{tuple(given)!r:.200}\n".encode())
        try:
            result = getattr(go, name)(*given)
        except (RuntimeError, ValueError, OSError, MemoryError, AssertionError) as error:
            self.answers[type(error).__name__] += 1
            assert not isinstance(error, errors.InternalError), str(error)
            return
        self.answers["result"] += 1
        if name == "CloseWorld":
            self.begin()
        if name in MAKES:
            pool = self.handles[MAKES[name]]
            pool[:] = [*pool[-20:], result]

    def argument(self, kind: str, name: str) -> Any:
        if kind == "bool":
            return self.random.random() < 0.5
        if kind == "str":
            return self.random.choice(LIKELY.get(name, TEXTS) if self.random.random() < 0.9 else TEXTS + NAMES)
        if kind == "list":
            return self.list(name)
        if kind == "float":
            return self.random.choice([0.0, 1.5, -1e300, float("nan"), float("inf")])
        if kind == "long" and self.random.random() < 0.95:
            return self.handle(TAKES.get(name) or self.random.choice(list(self.handles)))
        return self.random.randrange(5) if self.random.random() < 0.7 else self.random.choice(NUMBERS)

    def list(self, name: str) -> list[int]:
        """Integers: handles of tensors, or pieces of them, or any."""
        handles = [self.handle("tensor") for _ in range(self.random.randrange(4))]
        if name in ("out", "in") and self.random.random() < 0.9:
            rows = [self.random.randrange(4) for _ in range(self.random.choice([0, 0, 2]))]
            return [self.random.choice([1, 1, 2, 3, 0]), len(handles), *handles, *rows]
        if name in ("reads", "writes", "tensors"):
            return handles
        return self.random.choice(LISTS)

    def handle(self, kind: str) -> int:
        """One of the kind, mostly."""
        if self.random.random() < 0.05:
            kind = self.random.choice(list(self.handles))
        return self.random.choice(self.handles[kind][-12:])


def check_that_a_world_works() -> None:
    world = go.OpenWorld("sips2", "")
    group = go.NewGroup(world, 0, "both", (0, 1))
    tensors = [go.NewTensor(world, "f32", (4,)) for _ in range(2)]
    streams = [go.DefaultStream(world, rank) for rank in range(2)]
    call = go.DefineCall("all_reduce", "all_reduce", "sum", False, 0.0, 0, "")
    works = [go.Issue(group, s, 0, True, call, t, t) for s, t in zip(streams, tensors, strict=True)]
    for rank, work in enumerate(works):
        while not go.Await(world, rank, work):
            pass
    go.CloseWorld(world)


def main(seed: int, calls: int) -> None:
    """Makes the calls and prints how often each answer came."""
    print("seed", seed, flush=True)
    caller = Caller(seed)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)  # a trace may be written
        for _ in range(calls):
            caller.one()
        os.chdir("/")
    check_that_a_world_works()
    print(dict(caller.answers))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
