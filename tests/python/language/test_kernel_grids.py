"""Grids of several dimensions, programs and teams that meet, and tiles in strides under masks, compared with NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from kernel_worlds import run, world_of

import torchemu
import torchemu as torch
import torchemu.language as tl
from torchemu.errors import KernelError, RaceError

RANDOM = np.random.default_rng(8)


@torchemu.kernel
def places(out):
    x, y, z = (tl.program_id(axis) for axis in range(3))
    nx, ny, nz = (tl.num_programs(axis) for axis in range(3))
    tl.store(out + ((z * ny + y) * nx + x), tl.full(1, x + 10 * y + 100 * z + 1000 * nz, torchemu.int32))


@pytest.mark.parametrize("grid", [5, (5,), (3, 2), (2, 3, 4), (1, 1, 7)])
def test_places_in_a_grid(grid: Any) -> None:
    sizes = [*([grid] if isinstance(grid, int) else grid), 1, 1][:3]
    with world_of(1):
        out = torch.zeros(int(np.prod(sizes)), dtype=torch.int32)
        places[grid](out)
        z, y, x = np.indices(sizes[::-1])
        assert (out.numpy() == (x + 10 * y + 100 * z + 1000 * sizes[2]).ravel()).all()


@pytest.mark.parametrize(
    ("grid", "error", "text"),
    [
        ((2, 0), ValueError, "a grid has at least one program"),
        ((1, 2, 3, 4), TypeError, "one to three numbers"),
        ("4", TypeError, "one to three numbers"),
        (True, TypeError, "one to three numbers"),
    ],
)
def test_grids_that_are_none(grid: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        places[grid]


@torchemu.kernel
def passed_on(data, out, rounds, meets):
    pid, n = tl.program_id(), tl.num_programs()
    for step in range(rounds):
        tl.store(data + (step * n + pid), tl.full(1, 100 * step + pid, torchemu.int32))
        if meets:
            tl.sync_programs()
        tl.store(out + (step * n + pid), tl.load(data + (step * n + (pid + 1) % n), 1))


@pytest.mark.parametrize("grids", [(1,), (7,), (4, 6, 4)])
def test_programs_of_a_rank_meet(grids: tuple[int, ...]) -> None:
    with world_of(1):
        for n in grids:
            data, out = (torch.zeros(3 * n, dtype=torch.int32) for _ in range(2))
            passed_on[n](data, out, 3, True)
            assert out.tolist() == [100 * s + (p + 1) % n for s in range(3) for p in range(n)]


def test_programs_that_do_not_meet_race() -> None:
    with world_of(1):
        data, out = (torch.zeros(12, dtype=torch.int32) for _ in range(2))
        with pytest.raises(RaceError, match=r"test_kernel_grids\.py"):
            passed_on[4](data, out, 3, False)
            out.tolist()


@torchemu.kernel
def among(out, team):
    box = tl.workspace("box", 4, torchemu.int32)
    if tl.rank() in team:
        for peer in team:
            tl.store(box.on(peer) + tl.rank(), tl.full(1, tl.rank() + 1, torchemu.int32))
        tl.barrier(team)
        tl.store(out, tl.load(box, 4))
    assert tl.node_ranks() == (0, 1, 2, 3)


def test_teams_meet() -> None:
    def program(rank: int) -> None:
        out = torch.zeros(4, dtype=torch.int32)
        team = (0, 2, 3)
        among[1](out, team)
        assert out.tolist() == ([1, 0, 3, 4] if rank in team else [0] * 4)

    run(4, program)


@torchemu.kernel
def misused(how):
    if how == "axis":
        tl.program_id(3)
    else:
        tl.sync({"absent": (1,), "twice": (0, 0), "unknown": (0, 9)}[how])


@pytest.mark.parametrize("how", ["axis", "absent", "twice", "unknown"])
def test_what_is_no_axis_or_team(how: str) -> None:
    with world_of(1), pytest.raises(KernelError, match="dimensions 0, 1 and 2" if how == "axis" else "a team of"):
        misused[1](how)
        torch.cuda.synchronize()


@torchemu.kernel
def strided(out, x, shape, steps, mask, other, to):
    tile = tl.load(x, shape, steps, mask, other)
    tl.store(out, tile + 1, to, mask)


def _case(kind: str) -> tuple[tuple[int, ...], Any, Any]:
    rows = np.arange(5)[:, None] < 3
    return {
        "rows of a matrix": ((5, 7), (11, 1), None),
        "its transpose": ((7, 5), (1, 11), None),
        "a mask": ((5, 7), (11, 1), RANDOM.random((5, 7)) < 0.5),
        "some rows": ((5, 7), (11, 1), rows),
        "none": ((5, 7), (11, 1), False),
        "one after another": ((35,), None, RANDOM.random(35) < 0.5),
        "a vector again and again": ((3, 7), (0, 1), None),
        "three dimensions": ((2, 3, 4), (17, 5, 1), RANDOM.random(4) < 0.7),
        "nothing": ((0, 3), (3, 1), None),
    }[kind]


@pytest.mark.parametrize(
    "kind",
    ["rows of a matrix", "its transpose", "a mask", "some rows", "none", "one after another",
     "a vector again and again", "three dimensions", "nothing"],
)  # fmt: skip
def test_tiles_in_strides(kind: str) -> None:
    shape, steps, mask = _case(kind)
    x = RANDOM.standard_normal(90).astype(np.float32)
    dense = steps or (1,)
    seen = np.lib.stride_tricks.as_strided(x, shape, [4 * s for s in dense])
    keep = np.broadcast_to(True if mask is None else mask, shape)
    want = np.zeros(int(np.prod(shape)), np.float32).reshape(shape)
    want[keep] = seen[keep] + 1
    with world_of(1):
        out = torch.zeros(max(1, want.size))
        back = [int(np.prod(shape[d + 1 :])) for d in range(len(shape))]
        kernel = torchemu.kernel(lambda out, x: strided(out, x, shape, steps, mask, 5.0, back))
        kernel[1](out, torch.as_tensor(x))
        assert (out.numpy()[: want.size] == want.ravel()).all()


@torchemu.kernel
def filled(out, x):
    tl.store(out, tl.load(x, (2, 3), (3, 1), np.array([[True, False, True], [False, True, False]]), 9.0))


def test_what_is_not_loaded_is_something_else() -> None:
    with world_of(1):
        out = torch.zeros(6)
        filled[1](out, torch.arange(6, dtype=torch.float32))
        assert out.tolist() == [0, 9, 2, 9, 4, 9]


@torchemu.kernel
def misshaped(x, steps, mask):
    tl.load(x, (2, 3), steps, None if mask is None else np.ones(mask, bool))


@pytest.mark.parametrize(
    ("steps", "mask", "text"), [((1,), None, "strides .1. for a tile"), (None, (4,), "a mask of shape .4.")]
)
def test_strides_and_masks_of_other_shapes(steps: Any, mask: Any, text: str) -> None:
    with world_of(1), pytest.raises(KernelError, match=text):
        misshaped[1](torch.zeros(9), steps, mask)
        torch.cuda.synchronize()
