"""torchemu.tp.parallel_state: which groups a rank is in, its numbers in them, and that the state is the rank's own."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import ranks
from conftest import OpenWorld
from ranks import SIXTY_FOUR
from tp_ranks import failures, on_ranks

import torchemu as torch
import torchemu.distributed as dist
from torchemu.tp import parallel_state as ps

SIZES = {"tp": 2, "cp": 2, "dp": 3, "pp": 2}
GETTERS = {
    "tp": ps.get_tensor_model_parallel_group,
    "pp": ps.get_pipeline_model_parallel_group,
    "dp": ps.get_data_parallel_group,
    "cp": ps.get_context_parallel_group,
    "tp pp": ps.get_model_parallel_group,
    "dp cp": lambda: ps.get_data_parallel_group(with_context_parallel=True),
    "tp dp": ps.get_tensor_and_data_parallel_group,
    "tp dp cp": lambda: ps.get_tensor_and_data_parallel_group(with_context_parallel=True),
    "tp cp": ps.get_tensor_and_context_parallel_group,
}
CHECKED = [n for n in ps.__all__ if n.startswith("get") and n.endswith(("_group", "_src_rank"))]
"""Getters that need groups."""


@pytest.fixture(autouse=True)
def _world(open_world: OpenWorld) -> None:
    open_world(SIXTY_FOUR)


def coordinates(rank: int, order: str, sizes: dict[str, int]) -> dict[str, int]:
    """Where a rank is, when the leftmost kind of the order varies fastest."""
    place = {}
    for kind in order.split("-"):
        rank, place[kind] = divmod(rank, sizes.get(kind, 1))
    return place


def together(rank: int, kinds: str, order: str, sizes: dict[str, int], world: int) -> tuple[int, ...]:
    """The ranks that differ from one in these kinds alone."""
    mine = coordinates(rank, order, sizes)
    fixed = [k for k in mine if k not in kinds.split()]
    others = [(r, coordinates(r, order, sizes)) for r in range(world)]
    return tuple(r for r, place in others if all(place[k] == mine[k] for k in fixed))


@pytest.mark.parametrize("order", ["tp-cp-ep-dp-pp", "tp-cp-ep-pp-dp", "pp-dp-ep-cp-tp", "dp-tp-pp-ep-cp"])
def test_groups_are_the_ranks_that_differ_in_their_kinds_alone(order: str) -> None:
    def rank(r: int) -> dict[str, tuple[int, ...]]:
        ps.initialize_model_parallel(2, 2, context_parallel_size=2, expert_model_parallel_size=2, order=order)
        return {kinds: get().ranks for kinds, get in GETTERS.items()}

    for r, groups in enumerate(on_ranks(24, rank)):
        for kinds, members in groups.items():
            assert members == together(r, kinds, order, SIZES, 24), (r, kinds)


def test_experts_are_arranged_anew() -> None:
    def rank(r: int) -> tuple[Any, ...]:
        ps.initialize_model_parallel(4, expert_model_parallel_size=2, expert_tensor_parallel_size=2)
        groups = (
            ps.get_expert_model_parallel_group(),
            ps.get_expert_tensor_parallel_group(),
            ps.get_expert_tensor_and_model_parallel_group(),
            ps.get_expert_data_parallel_group(),
            ps.get_expert_tensor_model_pipeline_parallel_group(),
        )
        numbers = (
            ps.get_expert_model_parallel_rank(), ps.get_expert_model_parallel_world_size(),
            ps.get_expert_tensor_parallel_rank(), ps.get_expert_tensor_parallel_world_size(),
            ps.get_expert_data_parallel_rank(), ps.get_expert_data_parallel_world_size(),
            ps.get_expert_tensor_and_model_parallel_rank(), ps.get_expert_tensor_and_model_parallel_world_size(),
        )  # fmt: skip
        return *(g.ranks for g in groups), *numbers, ps.get_expert_model_parallel_src_rank()

    sizes = {"tp": 2, "ep": 2, "dp": 2}
    for r, found in enumerate(on_ranks(8, rank)):
        kinds = ("ep", "tp", "tp ep", "dp", "tp ep pp")
        groups = [together(r, k, "tp-cp-ep-dp-pp", sizes, 8) for k in kinds]
        numbers = [n for i in (0, 1, 3, 2) for n in (groups[i].index(r), len(groups[i]))]
        assert found == (*groups, *numbers, groups[0][0])


def test_numbers_sizes_and_sources() -> None:
    def rank(r: int) -> list[Any]:
        ps.initialize_model_parallel(2, 2, context_parallel_size=2)
        return [
            ps.get_tensor_model_parallel_rank(), ps.get_tensor_model_parallel_world_size(),
            ps.get_context_parallel_rank(), ps.get_context_parallel_world_size(),
            ps.get_data_parallel_rank(), ps.get_data_parallel_world_size(),
            ps.get_pipeline_model_parallel_rank(), ps.get_pipeline_model_parallel_world_size(),
            ps.get_data_parallel_rank(with_context_parallel=True), ps.get_data_parallel_world_size(True),
            ps.get_tensor_and_context_parallel_rank(), ps.get_tensor_and_context_parallel_world_size(),
            ps.get_tensor_model_parallel_src_rank(), ps.get_model_parallel_src_rank(), ps.get_data_parallel_src_rank(),
            ps.get_context_parallel_global_ranks(), ps.get_all_ranks(),
        ]  # fmt: skip

    for r, found in enumerate(on_ranks(16, rank)):
        t, c, d, p = r % 2, r // 2 % 2, r // 4 % 2, r // 8
        sources = [r - t, 2 * c + 4 * d, r - 4 * d]
        ranks = [r - 2 * c, r - 2 * c + 2]
        assert found == [t, 2, c, 2, d, 2, p, 2, 2 * d + c, 4, 2 * c + t, 4, *sources, ranks, f"{t}_{d}_{c}_{p}_0"]


def test_pipelines() -> None:
    def rank(r: int) -> list[Any]:
        ps.initialize_model_parallel(1, 4, virtual_pipeline_model_parallel_size=3)
        return [
            ps.get_pipeline_model_parallel_first_rank(), ps.get_pipeline_model_parallel_last_rank(),
            ps.get_pipeline_model_parallel_next_rank(), ps.get_pipeline_model_parallel_prev_rank(),
            ps.is_pipeline_first_stage(), ps.is_pipeline_last_stage(),
            [ps.is_pipeline_first_stage(False, v) for v in range(3)],
            [ps.is_pipeline_last_stage(ignore_virtual=False, vp_stage=v) for v in range(3)],
            ps.is_rank_in_embedding_group(), [ps.is_rank_in_embedding_group(False, v) for v in range(3)],
            ps.is_rank_in_position_embedding_group(),
            ps.get_virtual_pipeline_model_parallel_rank(), ps.get_virtual_pipeline_model_parallel_world_size(),
        ]  # fmt: skip

    for r, found in enumerate(on_ranks(8, rank)):
        stage, pipeline = r // 2, [r % 2 + 2 * s for s in range(4)]
        first, last = stage == 0, stage == 3
        starts, ends = [first, False, False], [False, False, last]
        assert found == [
            pipeline[0], pipeline[3], pipeline[(stage + 1) % 4], pipeline[stage - 1], first, last, starts, ends,
            first or last, [a or b for a, b in zip(starts, ends, strict=True)], first, 0, 3,
        ]  # fmt: skip


def test_setters_change_answers_and_no_groups() -> None:
    def rank(r: int) -> None:
        ps.set_tensor_model_parallel_world_size(7)  # before there are groups, too
        assert ps.get_tensor_model_parallel_world_size() == 7
        ps.destroy_model_parallel()
        ps.initialize_model_parallel(2, 2, virtual_pipeline_model_parallel_size=2)
        for kind in ("tensor_model", "pipeline_model", "expert_model", "expert_tensor"):
            get_size, get_rank = (getattr(ps, f"get_{kind}_parallel_{what}") for what in ("world_size", "rank"))
            set_size, set_rank = (getattr(ps, f"set_{kind}_parallel_{what}") for what in ("world_size", "rank"))
            before = get_size(), get_rank()
            set_size(9)
            set_rank(5)
            assert (get_size(), get_rank()) == (9, 5)
            set_size(None)
            set_rank(None)
            assert (get_size(), get_rank()) == before
        ps.set_data_parallel_rank(3)
        assert (ps.get_data_parallel_rank(), ps.get_data_parallel_rank(with_context_parallel=True)) == (3, 3)
        ps.set_virtual_pipeline_model_parallel_rank(1)
        ps.set_virtual_pipeline_model_parallel_world_size(4)
        assert ps.get_virtual_pipeline_model_parallel_rank() == 1
        assert ps.get_virtual_pipeline_model_parallel_world_size() == 4
        assert ps.get_tensor_model_parallel_group().size() == 2

    on_ranks(8, rank)


def test_embedding_ranks_are_the_programs_choice() -> None:
    def rank(r: int) -> tuple[Any, ...]:
        ps.initialize_model_parallel(
            1, 4, get_embedding_ranks=lambda ranks: ranks[:2], get_position_embedding_ranks=lambda ranks: ranks[1:3]
        )
        return tuple(
            None if g is None else g.ranks
            for g in (ps.get_embedding_group(False), ps.get_position_embedding_group(False))
        )

    assert on_ranks(4, rank) == [((0, 1), None), ((0, 1), (1, 2)), (None, (1, 2)), (None, None)]


def test_hierarchies_hybrids_and_instances() -> None:
    def rank(r: int) -> tuple[Any, ...]:
        ps.initialize_model_parallel(
            context_parallel_size=4,
            hierarchical_context_parallel_sizes=[2, 2],
            hybrid_context_parallel=True,
            num_distributed_optimizer_instances=2,
        )
        return (
            [g.ranks for g in ps.get_hierarchical_context_parallel_groups()],
            [ps.get_hybrid_data_context_parallel_groups(group_size=n).ranks for n in (2, 4, 8)],
            ps.get_data_parallel_group(with_context_parallel=True, partial_data_parallel=True).ranks,
            ps.get_expert_data_parallel_group(partial_expert_data_parallel=True).ranks,
            ps.get_inter_distributed_optimizer_instance_group().ranks,
            ps.get_intra_distributed_optimizer_instance_group().ranks,
        )

    for r, found in enumerate(on_ranks(8, rank)):
        pair, half = r // 2 * 2, r // 4 * 4
        quarter = tuple(range(half, half + 4))
        assert found == (
            [(pair, pair + 1), (half + r % 2, half + r % 2 + 2)],
            [(pair, pair + 1), quarter, tuple(range(8))],
            quarter,
            quarter,
            (r % 4, r % 4 + 4),
            quarter,
        )


def test_a_part_of_the_world() -> None:
    def rank(r: int) -> tuple[int, ...] | None:
        ps.initialize_model_parallel(2, rank_offset=2, local_world_size=4)
        group = ps.get_tensor_model_parallel_group(check_initialized=False)
        return None if group is None else group.ranks

    assert on_ranks(8, rank) == [None, None, (2, 3), (2, 3), (4, 5), (4, 5), None, None]


def test_groups_are_process_groups() -> None:
    def rank(r: int) -> tuple[list[float], list[float]]:
        ps.initialize_model_parallel(2, distributed_timeout_minutes=7)
        group = ps.get_tensor_model_parallel_group()
        assert group.timeout.total_seconds() == 7 * 60
        assert group.group_desc == "TENSOR_MODEL_PARALLEL_GROUP"
        device, host = torch.full((2,), r), torch.full((2,), r, device="cpu")
        dist.all_reduce(device, group=group)
        dist.all_reduce(host, group=ps.get_data_parallel_group_gloo())
        return device.tolist(), host.tolist()

    assert on_ranks(4, rank) == [([1, 1], [2, 2]), ([1, 1], [4, 4]), ([5, 5], [2, 2]), ([5, 5], [4, 4])]


def test_the_state_is_the_ranks_own() -> None:
    def rank(r: int) -> int:
        assert ps.is_unitialized()
        ps.initialize_model_parallel(2)
        if r >= 2:
            ps.destroy_model_parallel()
        dist.barrier()
        answer = ps.get_tensor_model_parallel_rank() if ps.model_parallel_is_initialized() else -1
        ps.destroy_model_parallel()
        assert not ps.is_initialized()
        return answer

    assert on_ranks(4, rank) == [0, 1, -1, -1]


def test_spawned_ranks_have_the_groups_of_the_program_that_spawned_them() -> None:
    def rank(r: int) -> tuple[int, tuple[int, ...]]:
        return ps.get_tensor_model_parallel_rank(), ps.get_tensor_model_parallel_group().ranks

    with torch.open_world("default"):
        dist.init_process_group()
        ps.initialize_model_parallel(tensor_model_parallel_size=4)
        assert ranks.on_ranks(4, rank) == [(r, (0, 1, 2, 3)) for r in range(4)]


def test_rank_generator_in_every_order() -> None:
    sizes = {"tp": 2, "cp": 3, "dp": 2, "pp": 2}
    for order in map("-".join, itertools.permutations(sizes)):
        generator = ps.RankGenerator(2, 1, 2, 2, 3, order, rank_offset=10)
        assert generator.world_size == 24
        for kinds in ("tp", "cp", "dp", "pp", "tp-dp", "tp-cp", "dp-cp", "tp-pp", "tp-dp-cp"):
            groups = generator.get_ranks(kinds)
            assert sorted(itertools.chain(*groups)) == list(range(10, 34))
            for group in groups:
                want = together(group[0] - 10, kinds.replace("-", " "), order, sizes, 24)
                assert group == [10 + r for r in want], (order, kinds)


# -- bad input


@pytest.mark.parametrize(
    ("arguments", "kind", "text"),
    [
        ({"tensor_model_parallel_size": 3}, RuntimeError, "world_size (8) is not divisible by 3"),
        ({"tensor_model_parallel_size": 4, "context_parallel_size": 4}, RuntimeError, "not divisible by 16"),
        ({"expert_model_parallel_size": 5}, RuntimeError,
         "world_size (8) is not divisible by expert_tensor_model_pipeline_parallel size (5)"),
        ({"virtual_pipeline_model_parallel_size": 2}, RuntimeError,
         "pipeline-model-parallel size should be greater than 1 with interleaved schedule"),
        ({"gtp_remat_size": -1}, RuntimeError, "gtp_remat_size is -1: it must be at least 1"),
        ({"tensor_model_parallel_size": 0}, RuntimeError, "tensor_model_parallel_size is 0: it must be at least 1"),
        ({"pipeline_model_parallel_size": 1.5}, TypeError, "pipeline_model_parallel_size must be an integer, not 1.5"),
        ({"context_parallel_size": "2"}, TypeError, "context_parallel_size must be an integer, not '2'"),
        ({"order": "tp-cp"}, RuntimeError, "size of dp is 8"),
        ({"order": "tp-xp-dp"}, RuntimeError, '"xp" is not a kind of parallelism'),
        ({"num_distributed_optimizer_instances": 3}, AssertionError, "(8) is not divisible by"),
        ({"context_parallel_size": 4, "hierarchical_context_parallel_sizes": [2, 3]}, AssertionError, "[2 3] is 6"),
        ({"tensor_model_parallel_size": 8, "hybrid_context_parallel": True}, AssertionError, "even number"),
        ({"pipeline_model_parallel_size": 2, "expert_model_parallel_size": 2, "order": "tp-ep-pp-dp"}, AssertionError,
         "data parallel sizes of dense layers (4) and of experts (2)"),
        ({"pipeline_model_parallel_comm_backend": "mpi"}, AssertionError,
         '"mpi" backend for PP communication is currently not supported'),
        ({"rank_offset": 4, "local_world_size": 5}, RuntimeError, "ranks 4 to 8 are not all in the world of size 8"),
    ],
)  # fmt: skip
def test_sizes_that_do_not_fit(arguments: dict[str, Any], kind: type[Exception], text: str) -> None:
    failed = failures(8, lambda _: ps.initialize_model_parallel(**arguments))
    assert {type(e) for e in failed.values()} == {kind}
    assert all(text in str(e) for e in failed.values()), failed


def test_rank_generator_rejects_experts_with_context() -> None:
    with pytest.raises(AssertionError, match=r"ep \(2\) and cp \(4\)"):
        ps.RankGenerator(1, 2, 1, 1, 4, "tp-cp-ep-dp-pp")


def test_twice() -> None:
    def rank(r: int) -> None:
        ps.initialize_model_parallel(2)
        with pytest.raises(AssertionError, match="already initialized"):
            ps.initialize_model_parallel(2)
        assert ps.get_tensor_model_parallel_world_size() == 2

    on_ranks(2, rank)


@pytest.mark.parametrize("name", [n for n in ps.__all__ if n.startswith("get") and n.endswith(("_group", "_src_rank"))])
def test_use_before_initialization(name: str) -> None:
    def rank(r: int) -> None:
        with pytest.raises(AssertionError, match=r"(?i)(group is not|has not been) initialized"):
            getattr(ps, name)()

    on_ranks(2, rank)


def test_without_a_default_process_group() -> None:
    with pytest.raises(AssertionError, match="init_process_group"):
        ps.initialize_model_parallel()
    assert ps.get_data_parallel_rank() == ps.get_context_parallel_world_size() == 0
