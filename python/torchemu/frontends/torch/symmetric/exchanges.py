"""Collectives of NVSHMEM's that hosts put on their streams: broadcast, all-to-all, also by splits of the device.

Each is a program of the device, so splits are read when the stream has come there, and the host goes on. As NVSHMEM's
they have no barrier at the end, and some none at the beginning: an input that peers fetch from stays until they have,
and an output that peers write to is ready before. Without a barrier of the program's the checker says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from torchemu.frontends.torch.groups import AhbmGroup
from torchemu.frontends.torch.symmetric.memory import group_of
from torchemu.frontends.torch.symmetric.one_sided import on, place, start
from torchemu.language._host_program import Warp

_WORD = 8
_TILE, _TILES, _BLOCK = 32, 16, 512
"""Threads of a warp, warps of a block, and threads of a block, of which PyTorch's kernels have one a split."""


def broadcast(given: torch.Tensor, root: int, group_name: str) -> torch.Tensor:
    """Replaces the tensor on every rank by the root's."""
    function, group = "nvshmem_broadcast", group_of(group_name)
    members = group.membership.members
    if not 0 <= root < len(members):
        raise RuntimeError(f"symm_mem::{function}: root must be smaller than group size: {root}, of {len(members)}")
    at, nbytes = place(function, "input", given), given.nbytes
    far = [on(function, at, rank) for rank in members] if group.rank() == root else []

    def body(program: Warp) -> None:
        for to in far:
            program.put(to, at, nbytes)
        program.meet()

    start(function, [given], body, members)
    return given


def all_to_all(given: torch.Tensor, out: torch.Tensor, group_name: str) -> torch.Tensor:
    """Sends each rank a part of the input, all of one size."""
    function, group = "nvshmem_all_to_all", group_of(group_name)
    members = group.membership.members
    _check_alike(function, given, out, len(members))
    source, to = place(function, "input", given), place(function, "out", out)
    nbytes = given.nbytes // len(members)
    far = [on(function, to, rank) + group.rank() * nbytes for rank in members]

    def body(program: Warp) -> None:
        for peer in _from(group):
            program.put(far[peer], source + peer * nbytes, nbytes)
        program.meet()

    start(function, [given, out], body, members)
    return out


def _check_alike(function: str, given: torch.Tensor, out: torch.Tensor, world: int) -> None:
    if given.numel() != out.numel() or given.dtype != out.dtype:
        raise RuntimeError(
            f"symm_mem::{function}: input and out must have as many elements of one dtype: {given.numel()} of "
            f"{given.dtype} and {out.numel()} of {out.dtype}"
        )
    if given.numel() % world:
        raise RuntimeError(
            f"symm_mem::{function}: input has {given.numel()} elements, which {world} ranks do not divide evenly"
        )


def _from(group: AhbmGroup) -> list[int]:
    """Returns the group's ranks, this one first: not all begin with the same."""
    return [(group.rank() + i) % group.size() for i in range(group.size())]


def by_splits(
    given: torch.Tensor, out: torch.Tensor, in_splits: torch.Tensor, out_splits_offsets: torch.Tensor, group_name: str
) -> None:
    """Sends each rank as many rows as the splits say: all_to_all_vdev.

    Args:
        in_splits: rows for each rank.
        out_splits_offsets: rows from each rank, and where they begin: two rows, written.
    """
    function, group = "all_to_all_vdev", group_of(group_name)
    world = group.size()
    if in_splits.numel() < world or out_splits_offsets.numel() < 2 * world:
        raise RuntimeError(
            f"symm_mem::{function}: in_splits and each of two rows of out_splits_offsets must have {world} elements, "
            f"one for each rank: {list(in_splits.shape)} and {list(out_splits_offsets.shape)}"
        )
    _Exchange(function, group, (given, out, in_splits, out_splits_offsets), _Form(1, True, False, 0)).start()


def by_experts(
    given: torch.Tensor,
    out: torch.Tensor,
    in_splits: torch.Tensor,
    out_splits_offsets: torch.Tensor,
    group_name: str,
    major_align: int | None = None,
) -> None:
    """Sends rows to experts: what comes by ranks leaves by experts, each from a multiple of major_align on."""
    function, group = "all_to_all_vdev_2d", group_of(group_name)
    world, align = group.size(), 1 if major_align is None else major_align
    if align < 1:
        raise RuntimeError(f"symm_mem::{function}: major_align must be positive, not {align}")
    _check_shapes(function, in_splits.shape, out_splits_offsets.shape, world, has_offsets=False)
    experts = in_splits.shape[-1] // world
    _check_least(function, "world_size", world, _TILE)
    _check_least(function, "the number of experts", experts, _TILES)
    tensors = given, out, in_splits, out_splits_offsets
    _Exchange(function, group, tensors, _Form(experts, True, False, align)).start()


def by_offsets(
    given: torch.Tensor,
    out: torch.Tensor,
    in_splits_offsets: torch.Tensor,
    out_splits_offsets: torch.Tensor,
    group_name: str,
) -> None:
    """Sends rows back from experts: what comes by experts, from the offsets on, leaves by ranks."""
    function, group = "all_to_all_vdev_2d_offset", group_of(group_name)
    world = group.size()
    _check_shapes(function, in_splits_offsets.shape, out_splits_offsets.shape, world, has_offsets=True)
    experts = in_splits_offsets.shape[-1] // world
    _check_least(function, "world_size", world, _TILES)
    _check_least(function, "the number of experts", experts, _TILE)
    tensors = given, out, in_splits_offsets, out_splits_offsets
    _Exchange(function, group, tensors, _Form(experts, False, True, 0)).start()


def _check_least(function: str, what: str, n: int, most: int) -> None:
    if n > most:
        raise RuntimeError(f"symm_mem::{function}: {what} must not be larger than {most}: {n}")


def _check_shapes(function: str, given: Sequence[int], out: Sequence[int], world: int, has_offsets: bool) -> None:
    rows = [2] if has_offsets else []
    n = given[-1] if len(given) else 0
    if [*given] != [*rows, n] or [*out] != [2, n] or n % world:
        name, form = ("in_splits_offsets", f"[2, {world} * experts]") if has_offsets else ("in_splits", "[n]")
        raise RuntimeError(
            f"symm_mem::{function}: {name} must be {form} and out_splits_offsets 2D with 2 rows, each row a multiple "
            f"of world_size ({world}): they are {list(given)} and {list(out)}"
        )


@dataclass(frozen=True)
class _Form:
    """The form of an exchange.

    Attributes:
        experts: of a rank.
        by_ranks: splits come by ranks, and leave by experts; otherwise the other way round.
        has_offsets: it is given where parts begin; otherwise one begins where the one before ends.
        align: of what a rank, or an expert, gets begins at a multiple of this; 0: where the one before ends.
    """

    experts: int
    by_ranks: bool
    has_offsets: bool
    align: int


class _Exchange:
    """An exchange of rows by splits that are in the device's memory.

    Args:
        function: is called.
        tensors: the input, the output, the input's splits and the output's splits and offsets.
    """

    def __init__(self, function: str, group: AhbmGroup, tensors: tuple[torch.Tensor, ...], form: _Form) -> None:
        self._function, self._group, self._form, self._tensors = function, group, form, tensors
        given, out, *splits = tensors
        self._check(given, out, splits)
        names = ("input", "out", "in_splits_offsets" if form.has_offsets else "in_splits", "out_splits_offsets")
        places = [place(function, name, t) for name, t in zip(names, tensors, strict=True)]
        self._input, self._out, self._in_splits, self._table = places
        members = group.membership.members
        self._inputs = [on(function, self._input, rank) for rank in members]
        self._tables = [on(function, self._table, rank) for rank in members]
        self._row = (given.stride(0) if given.dim() else 1) * given.itemsize
        self._rows = tuple(t.shape[0] if t.dim() else 1 for t in (given, out))

    def start(self) -> None:
        """Puts it on the stream."""
        start(self._function, list(self._tensors), self._run, self._group.membership.members)

    def _check(self, given: torch.Tensor, out: torch.Tensor, splits: Sequence[torch.Tensor]) -> None:
        if given.dtype != out.dtype or given.dim() != out.dim() or given.stride()[:1] != out.stride()[:1]:
            raise RuntimeError(
                f"symm_mem::{self._function}: input and out must have the same dtype and same stride at dim 0: "
                f"{given.dtype} {list(given.stride())} and {out.dtype} {list(out.stride())}"
            )
        if any(t.dtype is not torch.int64 for t in splits):
            raise RuntimeError(
                f"symm_mem::{self._function}: splits and offsets must be int64, not {[t.dtype for t in splits]}"
            )

    def _run(self, program: Warp) -> None:
        """Tells the peers how much there is for them and where, and fetches what they have for this rank."""
        self._tell(program)
        program.meet()
        splits, sources = self._table_of(program)
        targets = self._offsets(splits)
        self._check_room(splits, targets)
        for i, peer in enumerate(self._peers()):
            row = self._inputs[peer] + int(sources[i]) * self._row
            program.get(self._out + int(targets[i]) * self._row, row, int(splits[i]) * self._row)
        program.write("the offsets", self._table + self._count * _WORD, targets)
        program.quiet()

    @property
    def _count(self) -> int:
        """Returns how many splits there are."""
        return self._group.size() * self._form.experts

    def _table_of(self, program: Warp) -> tuple[np.ndarray, np.ndarray]:
        table = program.read("the splits of peers", self._table, 2 * self._count)
        return table[: self._count], table[self._count :]

    def _tell(self, program: Warp) -> None:
        splits, offsets = self._given(program)
        peers, slots = self._destinations()
        for peer in _from(self._group):
            chosen = np.flatnonzero(peers == peer)
            table = self._tables[peer] + slots[chosen] * _WORD
            places = [*table.tolist(), *(table + self._count * _WORD).tolist()]
            program.scatter("the splits for a peer", places, np.concatenate([splits[chosen], offsets[chosen]]))

    def _given(self, program: Warp) -> tuple[np.ndarray, np.ndarray]:
        """Returns the input's splits, and where its parts begin.

        Raises:
            RuntimeError: a split is negative, or the parts are not in the input.
        """
        n = self._count
        words = program.read("the splits", self._in_splits, n * (2 if self._form.has_offsets else 1))
        splits = words[:n]
        offsets = words[n:] if self._form.has_offsets else np.cumsum(splits) - splits
        if (splits < 0).any():
            i = int(np.flatnonzero(splits < 0)[0])
            raise RuntimeError(f"symm_mem::{self._function}: split value is negative: in_splits[{i}] is {splits[i]}")
        beyond = np.flatnonzero((splits > 0) & ((offsets < 0) | (offsets + splits > self._rows[0])))
        if beyond.size:
            i = int(beyond[0])
            raise RuntimeError(
                f"symm_mem::{self._function}: sum of splits is larger than input dim: part {i} has rows {offsets[i]} "
                f"to {offsets[i] + splits[i]} of an input of {self._rows[0]}"
            )
        return splits, offsets

    def _destinations(self) -> tuple[np.ndarray, np.ndarray]:
        """Returns for which peer each of the input's splits is, and where it is among the splits there."""
        world, rank, experts = self._group.size(), self._group.rank(), self._form.experts
        i = np.arange(self._count)
        if self._form.by_ranks:
            return i // experts, i % experts * world + rank
        return i % world, rank * experts + i // world

    def _peers(self) -> list[int]:
        """Returns from which peer each of the output's parts comes."""
        i = np.arange(self._count)
        peers = i % self._group.size() if self._form.by_ranks else i // self._form.experts
        return [int(peer) for peer in peers]

    def _offsets(self, splits: np.ndarray) -> np.ndarray:
        """Returns where the output's parts begin."""
        world, align = self._group.size(), self._form.align
        minor = world if self._form.by_ranks else self._form.experts
        table = splits.reshape(-1, minor)
        lengths = table.sum(1)
        if align:  # where there is nothing for an expert it gets as much room: products in groups want some
            lengths = np.maximum(-(-lengths // align) * align, align)
        starts = np.cumsum(lengths) - lengths
        result: np.ndarray = (starts[:, None] + np.cumsum(table, 1) - table).reshape(-1)
        return result

    def _check_room(self, splits: np.ndarray, targets: np.ndarray) -> None:
        """Makes sure that the output has room.

        Raises:
            RuntimeError: it has not.
        """
        need = int((targets + splits)[splits > 0].max(initial=0))
        if need > self._rows[1]:
            raise RuntimeError(
                f"symm_mem::{self._function}: out has {self._rows[1]} rows on group rank {self._group.rank()}, and "
                f"what the peers send takes {need}"
            )
