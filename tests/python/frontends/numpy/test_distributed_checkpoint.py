"""torch.distributed.checkpoint: what is saved by some ranks is loaded by any number of others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import OpenWorld
from ranks import on_ranks

import torchemu as torch
import torchemu.distributed as dist
import torchemu.distributed.checkpoint as dcp
from torchemu import nn
from torchemu.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_model_state_dict,
    get_optimizer_state_dict,
    get_state_dict,
    set_model_state_dict,
    set_state_dict,
)
from torchemu.distributed.fsdp import FullyShardedDataParallel
from torchemu.nn.parallel import DistributedDataParallel


@pytest.fixture(autouse=True)
def world(open_world: OpenWorld) -> torch.World:
    return open_world("sips8")


def values(rank: int | None = None) -> dict[str, Any]:
    """What is saved; without a rank what the ranks have in common."""
    shared = {
        "a": {"b": torch.arange(6.0).view(2, 3), "c": torch.tensor(3)},
        "list": [torch.ones(2, dtype=torch.bfloat16), {"x": 1}],
        "plain": [1, 2, "three"],
        "empty": torch.zeros(0, 4),
        "none": None,
    }
    return shared if rank is None else {**shared, f"own{rank}": torch.full((3,), float(rank))}


def blank(names: list[str]) -> dict[str, Any]:
    state = values()
    for t in (state["a"]["b"], state["a"]["c"], state["list"][0]):
        t.fill_(9)
    state["list"][1]["x"] = state["plain"] = state["none"] = 0
    return {**state, **{name: torch.zeros(3) for name in names}}


def plain(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return str(value.dtype), tuple(value.shape), value.tolist()
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    return [plain(each) for each in value] if isinstance(value, list) else value


@pytest.mark.parametrize(("savers", "loaders"), [(1, 1), (1, 3), (4, 2), (3, 8)])
def test_any_ranks_load_what_others_saved(tmp_path: Path, savers: int, loaders: int) -> None:
    def save(rank: int) -> None:
        dist.init_process_group("nccl")
        dcp.save(values(rank), checkpoint_id=tmp_path / "state")

    def load(rank: int) -> Any:
        dist.init_process_group("nccl")
        state = blank([f"own{r}" for r in range(savers)])
        tensor = state["a"]["b"]
        dcp.load(state, checkpoint_id=str(tmp_path / "state"))
        assert state["a"]["b"] is tensor
        return plain(state)

    on_ranks(savers, save)
    wanted = {**values(), **{f"own{r}": torch.full((3,), float(r)) for r in range(savers)}}
    assert on_ranks(loaders, load) == [plain(wanted)] * loaders


def test_each_rank_writes_a_part(tmp_path: Path) -> None:
    """Four equal tensors, of two ranks: two each, and none twice."""

    def program(rank: int) -> Any:
        dist.init_process_group("nccl")
        metadata = dcp.save({name: torch.full((4,), float(rank)) for name in "abcd"}, checkpoint_id=tmp_path)
        return {name: place[0] for name, place in metadata.storage_data.items()}

    first, second = on_ranks(2, program)
    assert first == second == {"a": "__0_0.distcp", "b": "__1_0.distcp", "c": "__0_0.distcp", "d": "__1_0.distcp"}
    assert sorted(file.name for file in tmp_path.iterdir()) == [".metadata", "__0_0.distcp", "__1_0.distcp"]


def test_what_is_in_a_checkpoint(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="assuming the intent is to save in a single process"):
        dcp.save(values(), checkpoint_id=tmp_path, no_dist=True)
    found = dcp.FileSystemReader(tmp_path).read_metadata().state_dict_metadata
    assert sorted(found) == ["a.b", "a.c", "empty", "list.0", "list.1.x", "none", "plain"]
    matrix = found["a.b"]
    assert isinstance(matrix, dcp.TensorStorageMetadata)
    assert (tuple(matrix.size), matrix.properties.dtype) == ((2, 3), torch.float32)
    assert [(tuple(c.offsets), tuple(c.sizes)) for c in matrix.chunks] == [((0, 0), (2, 3))]
    assert isinstance(found["plain"], dcp.BytesStorageMetadata)


def test_a_state_that_is_changed_after_async_save(tmp_path: Path) -> None:
    def program(rank: int) -> Any:
        dist.init_process_group("nccl")
        t = torch.ones(2)
        future = dcp.async_save({"t": t}, checkpoint_id=tmp_path)
        t.fill_(2)
        future.result()
        dcp.load(state := {"t": torch.zeros(2)}, checkpoint_id=tmp_path)
        return state["t"].tolist()

    assert on_ranks(2, program) == [[1.0, 1.0]] * 2


@pytest.mark.parametrize(
    ("wanted", "kind", "text"),
    [
        (
            {"t": torch.zeros, "n": (3,)},
            ValueError,
            "Size mismatch between saved torch.Size([2]) and current: torch.Size([3]) for t",
        ),
        ({"u": torch.zeros, "n": (2,)}, RuntimeError, "Missing key in checkpoint state_dict: u."),
    ],
)
def test_what_does_not_fit(tmp_path: Path, wanted: dict[str, Any], kind: type[Exception], text: str) -> None:
    """All ranks hear of it, also those for which it fits."""
    name, shape = next(iter(wanted)), wanted["n"]

    def program(rank: int) -> Any:
        dist.init_process_group("nccl")
        dcp.save({"t": torch.ones(2)}, checkpoint_id=tmp_path)
        state = {name: torch.zeros(*shape)} if rank == 1 else {"t": torch.zeros(2)}
        with pytest.raises(dcp.CheckpointException) as caught:
            dcp.load(state, checkpoint_id=tmp_path)
        error, trace = caught.value.failures[1]
        assert text in str(caught.value) and "(RANK 1)" in str(caught.value) and trace is not None
        return list(caught.value.failures), type(error), str(error)

    assert on_ranks(3, program) == [([1], kind, text)] * 3


def test_partial_loading_and_misuse(tmp_path: Path) -> None:
    def program(rank: int) -> None:
        dist.init_process_group("nccl")
        dcp.save({"t": torch.ones(2)}, storage_writer=dcp.FileSystemWriter(tmp_path))
        state = {"t": torch.zeros(2), "u": torch.full((1,), 7.0)}
        planner = dcp.DefaultLoadPlanner(allow_partial_load=True)
        dcp.load(state, storage_reader=dcp.FileSystemReader(tmp_path), planner=planner)
        assert [t.tolist() for t in state.values()] == [[1.0, 1.0], [7.0]]
        for call in (dcp.save, dcp.load):
            with pytest.raises(RuntimeError, match="`checkpoint_id` must be specified"):
                call({})  # type: ignore[operator]
        with pytest.raises(dcp.CheckpointException, match="No such file"):
            dcp.load({"t": torch.zeros(2)}, checkpoint_id=tmp_path / "nowhere")

    on_ranks(2, program)


def model_of(kind: str, seed: int) -> Any:
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 1))
    return {"plain": lambda m: m, "ddp": DistributedDataParallel, "fsdp": FullyShardedDataParallel}[kind](model)


def step(model: Any, optimizer: Any, number: int) -> None:
    optimizer.zero_grad()
    inputs = np.random.default_rng(number).standard_normal((2, 3)).astype(np.float32)
    model(torch.from_numpy(inputs)).square().mean().backward()
    optimizer.step()


@pytest.mark.parametrize("saved", ["plain", "ddp", "fsdp"])
@pytest.mark.parametrize("loaded", ["plain", "ddp", "fsdp"])
def test_states_go_from_any_wrapper_to_any(tmp_path: Path, saved: str, loaded: str) -> None:
    """Training goes on from a checkpoint as if nothing had been."""

    def program(rank: int) -> Any:
        dist.init_process_group("nccl")
        first = model_of(saved, 1)
        optimizer = torch.optim.AdamW(first.parameters(), lr=0.03)
        for number in range(3):
            step(first, optimizer, number)
        model_state, optim_state = get_state_dict(first, optimizer)
        dcp.save({"model": model_state, "optimizer": optim_state}, checkpoint_id=tmp_path)
        second = model_of(loaded, 2)
        other = torch.optim.AdamW(second.parameters(), lr=0.5)
        state = dict(zip(("model", "optimizer"), get_state_dict(second, other), strict=True))
        dcp.load(state, checkpoint_id=tmp_path)
        set_state_dict(second, other, model_state_dict=state["model"], optim_state_dict=state["optimizer"])
        for model, each in ((first, optimizer), (second, other)):
            step(model, each, 5)
        found = [get_model_state_dict(model) for model in (first, second)]
        return [{name: t.tolist() for name, t in each.items()} for each in found]

    for first, second in on_ranks(2, program):
        assert list(first) == list(second) == ["0.weight", "0.bias", "1.weight", "1.bias"]
        for name, value in first.items():
            np.testing.assert_allclose(second[name], value, rtol=1e-6, err_msg=name)


def test_what_states_leave_out() -> None:
    model = model_of("plain", 0)
    model[0].weight.requires_grad = False
    options = StateDictOptions(ignore_frozen_params=True, cpu_offload=True)
    assert list(get_model_state_dict(model, options=options)) == ["0.bias", "1.weight", "1.bias"]
    assert list(get_model_state_dict(model, submodules={model[1]})) == ["1.weight", "1.bias"]
    with pytest.raises(RuntimeError, match="Missing key"):
        set_model_state_dict(model, {"0.bias": torch.zeros(4)})
    result = set_model_state_dict(model, {"0.bias": torch.zeros(4)}, options=StateDictOptions(strict=False))
    assert (sorted(result.missing_keys), model[0].bias.tolist()) == (["0.weight", "1.bias", "1.weight"], [0.0] * 4)


def test_options_about_the_first_rank() -> None:
    def program(rank: int) -> Any:
        dist.init_process_group("gloo")
        model = nn.Linear(2, 1)
        optimizer = torch.optim.Adam(model.parameters())
        whole = StateDictOptions(full_state_dict=True, cpu_offload=True)
        kept = [sorted(state) for state in get_state_dict(model, optimizer, options=whole)]
        state, optim_state = get_state_dict(model, optimizer)
        state = {name: torch.full_like(t, rank + 4.0) for name, t in state.items()}
        optim_state["param_groups"][0]["lr"] = rank + 0.5
        optim_state["state"]["weight"]["exp_avg"].fill_(rank + 9.0)
        given = (state, optim_state) if rank == 0 else ({}, {})
        options = StateDictOptions(full_state_dict=True, broadcast_from_rank0=True)
        set_state_dict(model, optimizer, model_state_dict=given[0], optim_state_dict=given[1], options=options)
        loaded = [t.tolist() for t in (*model.parameters(), optimizer.state[model.weight]["exp_avg"])]
        return kept, loaded, optimizer.param_groups[0]["lr"]

    loaded = [[[4.0, 4.0]], [4.0], [[9.0, 9.0]]]
    first, *others = on_ranks(3, program)
    assert first == ([["bias", "weight"], ["param_groups", "state"]], loaded, 0.5)
    assert others == [([[], []], loaded, 0.5)] * 2


def test_options_that_cannot_be() -> None:
    with pytest.raises(ValueError, match="full_state_dict must be True when broadcast_from_rank0 is True"):
        StateDictOptions(broadcast_from_rank0=True)
    with pytest.raises(NotImplementedError, match="flatten_optimizer_state_dict"):
        StateDictOptions(flatten_optimizer_state_dict=True)


def test_two_entries_of_one_name(tmp_path: Path) -> None:
    """The one would silently be lost."""

    def program(rank: int) -> str:
        dist.init_process_group("gloo")
        both: dict[str, Any] = {"a.b": torch.zeros(2), "a": {"b": torch.ones(2)}}
        with pytest.raises(dcp.CheckpointException, match=r"ValueError: duplicated flatten key a\.b"):
            dcp.save(both if rank else {"a.b": torch.zeros(2)}, checkpoint_id=tmp_path)
        dcp.save({"a.b": torch.zeros(2)}, checkpoint_id=tmp_path)
        with pytest.raises(dcp.CheckpointException, match=r"ValueError: duplicated flatten key a\.b"):
            dcp.load(both, checkpoint_id=tmp_path)
        return "goes on"

    assert on_ranks(2, program) == ["goes on"] * 2


def test_the_first_state_of_an_optimizer_changes_nothing() -> None:
    model = model_of("plain", 0)
    before = [p.tolist() for p in model.parameters()]
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1, weight_decay=0.5)
    state = get_optimizer_state_dict(model, optimizer)
    assert [p.tolist() for p in model.parameters()] == before
    assert (optimizer.param_groups[0]["lr"], [p.grad for p in model.parameters()]) == (0.1, [None] * 4)
    assert state["param_groups"][0]["params"] == ["0.weight", "0.bias", "1.weight", "1.bias"]
    assert set(state["state"]["0.bias"]) == {"step", "exp_avg", "exp_avg_sq"}
