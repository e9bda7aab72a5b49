"""A front end that has nothing of our Tensor uses c10d and kernels, and is a folder: nothing else knows of it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import toy_front_end as toy
from conftest import ROOT
from ranks import failures, on_ranks
from toy_front_end import TOYS, Toy

import torchemu.language as tl
from torchemu import dtypes, runtime
from torchemu.c10d import hooks
from torchemu.c10d.groups import default_group, get_rank
from torchemu.c10d.stores import FileStore
from torchemu.c10d.work import Work
from torchemu.runtime import buffer

RANKS = 4


buffer.forget(TOYS)  # other tests' programs have no toys


@pytest.fixture(autouse=True)
def world() -> Iterator[None]:
    """A World in which toys are known."""
    buffer.register(TOYS)
    with runtime.opened():
        yield
    buffer.forget(TOYS)


def on_toys(program: Any, *args: Any) -> list[Any]:
    def begun(rank: int) -> Any:
        toy.begin()
        return program(rank, *args)

    return on_ranks(RANKS, begun)


def numbers(rank: int, shape: tuple[int, ...], kind: str) -> np.ndarray:
    """Small whole numbers, whose sums all types have."""
    count = int(np.prod(shape, dtype=int))
    return ((np.arange(count) * (rank + 1) + rank) % 7).astype(kind).reshape(shape)


@pytest.mark.parametrize("kind", ["float32", "float64", "float16", "int32", "int64", "uint8", "complex64"])
@pytest.mark.parametrize("shape", [(), (0,), (1,), (5,), (3, 7), (2, 0, 3), (4097,)])
def test_all_reduce(shape: tuple[int, ...], kind: str) -> None:
    def program(rank: int) -> Any:
        given = Toy(numbers(rank, shape, kind))
        assert toy.all_reduce(given) is None
        return given.look()

    expected = sum(numbers(rank, shape, kind) for rank in range(RANKS)).tolist()  # type: ignore[union-attr]
    assert on_toys(program) == [expected] * RANKS


@pytest.mark.parametrize("view", ["transposed", "every other", "behind", "broadcast column"])
def test_strides(view: str) -> None:
    def seen(array: np.ndarray) -> np.ndarray:
        return {
            "transposed": array.T,
            "every other": array[::2, 1::3],
            "behind": array[2:, 3:],
            "broadcast column": array[:, :1],
        }[view]

    def program(rank: int) -> Any:
        whole = numbers(rank, (6, 8), "float32")
        given = Toy(seen(whole))
        toy.all_reduce(given)
        given.look()
        return whole.tolist()

    for rank, found in enumerate(on_toys(program)):
        expected = numbers(rank, (6, 8), "float32")
        seen(expected)[...] = sum(seen(numbers(r, (6, 8), "float32")) for r in range(RANKS))
        assert found == expected.tolist()  # and nothing beside the view has changed


def test_works_give_back_the_toys() -> None:
    def program(rank: int) -> Any:
        given = Toy(numbers(rank, (9,), "int64"))
        work = toy.all_reduce(given, "max", async_op=True)
        assert isinstance(work, Work)
        work.wait()
        assert work.result()[0] is given
        assert work.get_future().wait()[0] is given
        after = work.get_future().then(lambda future: future.value()[0].look())
        return after.wait()

    expected = np.max([numbers(rank, (9,), "int64") for rank in range(RANKS)], axis=0).tolist()
    assert on_toys(program) == [expected] * RANKS


def test_exchanges() -> None:
    def program(rank: int) -> Any:
        own, parts = Toy(numbers(rank, (3,), "int32")), [Toy(np.zeros(3, "int32")) for _ in range(RANKS)]
        toy.all_gather(parts, own)
        out = Toy(np.zeros(RANKS, "int32"))
        toy.all_to_all_single(out, Toy(np.arange(RANKS, dtype="int32") + 10 * rank))
        root = Toy(numbers(rank, (2, 2), "float64"))
        toy.broadcast(root, 2)
        share = Toy(np.zeros(3, "int32"))
        toy.reduce_scatter(share, [Toy(numbers(rank + r, (3,), "int32")) for r in range(RANKS)])
        return [p.look() for p in parts], out.look(), root.look(), share.look()

    for rank, (parts, out, root, share) in enumerate(on_toys(program)):
        assert parts == [numbers(r, (3,), "int32").tolist() for r in range(RANKS)]
        assert out == [rank + 10 * r for r in range(RANKS)]
        assert root == numbers(2, (2, 2), "float64").tolist()
        assert share == sum(numbers(r + rank, (3,), "int32") for r in range(RANKS)).tolist()  # type: ignore[union-attr]


def test_messages_barriers_objects_and_coalescing() -> None:
    def program(rank: int) -> Any:
        got = Toy(np.zeros((2, 3), "float32"))
        if rank % 2:
            toy.send(Toy(numbers(rank, (2, 3), "float32")), rank - 1)
        else:
            assert toy.recv(got) == rank + 1
        toy.barrier()
        told: list[Any] = [None] * RANKS
        toy.all_gather_object(told, {"rank": rank, "toys": "x" * rank})
        one, two = Toy(np.full(3, rank)), Toy(np.full(2, rank))
        with toy.together():
            toy.all_reduce(one)
            toy.all_reduce(two)
        return got.look(), told, one.look(), two.look()

    for rank, (got, told, one, two) in enumerate(on_toys(program)):
        assert got == (np.zeros((2, 3)) if rank % 2 else numbers(rank + 1, (2, 3), "float32")).tolist()
        assert told == [{"rank": r, "toys": "x" * r} for r in range(RANKS)]
        assert (one, two) == ([6] * 3, [6] * 2)


def test_watchers_see_the_toys() -> None:
    def program(rank: int) -> Any:
        seen: list[Any] = []
        hooks.attach(default_group(), "toy", hooks.calls_before(seen.append))
        given = Toy(numbers(rank, (4,), "float32"))
        toy.all_reduce(given)
        hooks.NanCheckHook.attach(default_group())
        with pytest.raises(RuntimeError, match="NaN found in input tensor"):
            toy.all_reduce(Toy(np.array([1, np.nan], "float32")))
        return [told.input_tensors[0] is given for told in seen[:1]]

    assert on_toys(program) == [[True]] * RANKS


def test_stores() -> None:
    def program(rank: int) -> Any:
        store = FileStore("a store of toys", RANKS)
        store.set(str(rank), str(get_rank()))
        return [store.get(str(r)) for r in range(RANKS)]

    assert on_toys(program) == [[b"0", b"1", b"2", b"3"]] * RANKS


@tl.kernel
def shift(out: Any, given: Any, mail: Any, n: int) -> None:
    """Doubles what a rank gives, and puts it into the next rank's memory."""
    right = (tl.rank() + 1) % tl.world_size()
    tl.store(mail.on(right), tl.load(given, n) * 2 + 0.5)
    tl.barrier()
    tl.store(out, tl.load(mail, n))
    tl.drain()


def test_kernels_and_symmetric_memory() -> None:
    def program(rank: int) -> Any:
        mail = tl.symmetric_empty(6, dtype="float32")
        assert type(mail) is Toy
        assert mail.look() == [0.0] * 6
        whole = Toy(np.zeros(8, "float32"))
        out = Toy(whole.elements[1:7])
        shift[1](out, Toy(numbers(rank, (6,), "float32")), mail, 6)
        return out.look(), mail.look()

    for rank, (out, mail) in enumerate(on_toys(program)):
        expected = (numbers((rank - 1) % RANKS, (6,), "float32") * 2 + 0.5).tolist()
        assert out == mail == expected


def test_what_is_no_tensor() -> None:
    def program(rank: int) -> None:
        toy.begin()
        toy.all_reduce(np.zeros(3))

    for error in failures(2, program).values():
        assert str(error).startswith("Invalid function argument. Expected parameter `tensor` of type torch.Tensor\n")


def test_regions_lie_in_their_memory() -> None:
    memory = buffer.Bytes(None, 4096, 40)
    buffer.Region(memory, dtypes.float32, (2, 3), (5, 2))
    for shape, strides, offset in (((2, 3), (6, 2), 0), ((11,), None, 0), ((10,), None, 1)):
        with pytest.raises(ValueError, match="do not lie in 40 bytes"):
            buffer.Region(memory, dtypes.float32, shape, strides, offset)
    with pytest.raises(ValueError, match="negative"):
        buffer.Region(memory, dtypes.float32, (2,), (-1,), 4)
    with pytest.raises(ValueError, match="2 strides for the 1 dimensions"):
        buffer.Region(memory, dtypes.float32, (2,), (1, 1))
    with pytest.raises(ValueError, match="there are no 4 bytes at address 0x0"):
        buffer.Bytes(None, 0, 4)


# -- a folder, and nothing else

_FRONT_END = """
from torchemu.frontends.base import FrontEnd

FRONT_END = FrontEnd(packages={"toytorch": "torchemu.frontends.toy"})
"""

_PROGRAM = """
import sys

import numpy as np
import torchemu.language as tl
import {toys} as toytorch


@tl.kernel
def double(out, given, n):
    tl.store(out, tl.load(given, n) * 2)


def main(rank):
    toytorch.begin()
    given = toytorch.Toy(np.arange(5.0))
    toytorch.all_reduce(given)
    out = toytorch.Toy(np.zeros(5))
    double[1](out, given, 5)
    print(out.look())


if {spawns}:
    from torchemu import multiprocessing
    multiprocessing.spawn(main, nprocs=3)
    print("ours:", [name for name in sys.modules if name.startswith("torchemu.frontends.numpy")])
else:
    main(0)
"""


_TORCH = """
import contextlib
from torchemu.frontends import stand_ins
from torchemu.frontends.base import FrontEnd, Torch


@contextlib.contextmanager
def opened(world, seed, data):
    with stand_ins.installed("toy"):
        print("opened with the seed", seed)
        yield


FRONT_END = FrontEnd(
    packages={"torch": "torchemu.frontends.toy"},
    torch=Torch("toy", "arrays that have no name in common with a Tensor", opened),
)
"""


_NEIGHBOUR = """
try:
    import megatron.core
except ImportError as error:
    print(error)
"""


def package_with(folder: Path, name: str, files: dict[str, str]) -> Path:
    """A package like ours, with one more front end."""
    ours, made = ROOT / "python" / "torchemu", folder / "torchemu"
    (made / "frontends" / name).mkdir(parents=True)
    for entry in ours.iterdir():
        if entry.name != "frontends":
            (made / entry.name).symlink_to(entry)
    for entry in (ours / "frontends").iterdir():
        (made / "frontends" / entry.name).symlink_to(entry)
    for file, text in files.items():
        (made / "frontends" / name / file).write_text(text)
    return folder


@pytest.mark.parametrize("spawns", [False, True])
def test_a_front_end_is_a_folder(tmp_path: Path, spawns: bool) -> None:
    """A run finds it by its name; a program that spawns ranks itself loads nothing of ours."""
    toys = (ROOT / "tests" / "python" / "toy_front_end.py").read_text()
    path = package_with(tmp_path / "here", "toy", {"__init__.py": toys, "front_end.py": _FRONT_END})
    script = tmp_path / "program.py"
    script.write_text(_PROGRAM.format(toys="torchemu.frontends.toy" if spawns else "toytorch", spawns=spawns))
    command = [] if spawns else ["-m", "torchemu", "run", "--nproc-per-node", "3"]
    ran = python_with(path, *command, str(script))
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert ran.stdout.count("[0.0, 6.0, 12.0, 18.0, 24.0]") == 3
    assert ("ours: []" in ran.stdout) == spawns, ran.stdout


@pytest.mark.slow
def test_a_torch_is_a_folder(tmp_path: Path) -> None:
    """The launcher has another value of --torch by it, and programs get it as torch and nothing of another torch."""
    toys = (ROOT / "tests" / "python" / "toy_front_end.py").read_text()
    path = package_with(tmp_path / "here", "toy", {"__init__.py": toys, "front_end.py": _TORCH})
    script = tmp_path / "program.py"
    script.write_text(_PROGRAM.format(toys="torch", spawns=False) + _NEIGHBOUR)
    run = ["-m", "torchemu", "run", "--nproc-per-node", "3"]

    ran = python_with(path, *run, "--torch", "toy", "--seed", "5", str(script))
    assert ran.stdout.count("opened with the seed 5") == 1, ran.stderr
    assert ran.stdout.count("[0.0, 6.0, 12.0, 18.0, 24.0]") == 3, ran.stderr
    assert ran.stdout.count("No module named 'megatron'") == 3  # which is there beside the default torch

    assert "toy, arrays that have no name in common with a Tensor" in " ".join(
        python_with(path, *run, "-h").stdout.split()
    )
    for arguments, message in (
        (["--torch", "toys"], "argument --torch: invalid choice: 'toys' (choose from"),
        (["--torch", "toy", "--no-data"], "--no-data does nothing with --torch toy, but with --torch real"),
    ):
        refused = python_with(path, *run, *arguments, str(script))
        assert refused.returncode != 0
        assert message in refused.stderr


def python_with(path: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """Runs Python with a folder that has the package."""
    return subprocess.run(
        [sys.executable, *command],
        env={**os.environ, "PYTHONPATH": str(path)},
        capture_output=True,
        text=True,
        check=False,
    )
