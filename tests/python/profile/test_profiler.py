"""torch.profiler: what is recorded when, and what can be made of it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import OpenWorld
from ranks import on_ranks
from traces import bars, kineto, perfetto

import torchemu as torch
import torchemu.distributed as dist
from torchemu import runtime
from torchemu.profiler import (
    ProfilerAction,
    ProfilerActivity,
    _ExperimentalConfig,
    profile,
    record_function,
    schedule,
    tensorboard_trace_handler,
)

pytestmark = pytest.mark.shows("PyTorch: torch.profiler")

LAUNCH = 4.0  # microseconds that the default topology's host takes for a call


@pytest.fixture(autouse=True)
def _world(open_world: OpenWorld) -> Iterator[None]:
    open_world("default")
    yield


def kernels(prof: profile) -> list[str]:
    """Returns what the device did."""
    return [e.name for e in prof.events() if e.device_type == "CUDA"]


def named(prof: profile) -> list[str]:
    """Returns what the program gave names to."""
    return [b["name"] for b in bars(prof._recorded().events(rank=0, ranks=1), "user_annotation")]


# -- when


def test_a_profile_has_what_is_called_for_in_it() -> None:
    x = torch.ones(8)
    x.add(1)
    with profile() as prof:
        y = x.mul(2)
        with record_function("inside"):
            y.sum()
    y.neg()
    assert kernels(prof) == ["mul", "sum"]
    assert named(prof) == ["inside"]
    assert next(e.end for e in prof.events() if e.name == "sum") > 3 * LAUNCH


def test_start_and_stop_can_be_repeated() -> None:
    prof = profile()
    for operation in ("neg", "abs"):
        prof = profile()
        prof.start()
        getattr(torch.ones(8), operation)()
        prof.stop()
    assert kernels(prof)[-1] == "abs" and "neg" not in kernels(prof)
    assert runtime.current().world.recordings == 0


def test_stop_waits_for_the_device() -> None:
    x = torch.ones(1 << 20)
    with profile() as prof:
        for _ in range(50):
            x = x + 1
    assert len(kernels(prof)) == 50
    last = max(e.end for e in prof.events() if e.device_type == "CUDA")
    assert max(e.end for e in prof.events() if e.name == "cudaEventSynchronize") == last


def test_each_rank_has_its_own() -> None:
    def program(rank: int) -> list[str]:
        dist.init_process_group("nccl")
        x = torch.ones(8, device="cuda")
        with profile() as prof:
            if rank == 1:
                x = x.neg()
            dist.all_reduce(x)
        return [e.name for e in prof.events() if e.device_type == "CUDA"]

    one, two = on_ranks(2, program)
    assert len(one) == 1 and one[0].startswith("ncclKernel_AllReduce_Sum_f32")
    assert two == ["neg", one[0]]


def test_an_exception_leaves_no_profile_behind() -> None:
    def program(rank: int) -> int:
        dist.init_process_group("nccl")
        with pytest.raises(KeyError), profile():
            if rank == 0:
                dist.all_reduce(torch.ones(8))  # which rank 1 joins later: nobody may wait for it here
            raise KeyError
        if rank == 1:
            dist.all_reduce(torch.ones(8))
        return runtime.current().world.recordings

    assert on_ranks(2, program)[1] == 0


def test_the_level_of_a_profile(tmp_path: Path) -> None:
    def program(rank: int) -> None:
        dist.init_process_group("nccl")
        config = _ExperimentalConfig(trace_level="link", verbose=True)
        with profile(experimental_config=config) as prof:
            dist.all_reduce(torch.ones(1000))
        if rank == 0:
            prof.export_chrome_trace(tmp_path / "t.pftrace")

    on_ranks(4, program)
    assert any("DMA engine" in s.track for s in perfetto(tmp_path / "t.pftrace").slices)
    with pytest.raises(ValueError, match="collective, step, link"):
        _ExperimentalConfig(trace_level="links")


# -- schedules


@pytest.mark.parametrize(
    ("arguments", "want"),
    [
        ({"wait": 0, "warmup": 0, "active": 1}, "SSSSSSSS"),
        ({"wait": 1, "warmup": 1, "active": 2}, "-wRS-wRS"),
        ({"wait": 1, "warmup": 1, "active": 2, "repeat": 1}, "-wRS----"),
        ({"wait": 1, "warmup": 0, "active": 1, "repeat": 2, "skip_first": 3}, "----S-S-"),
        ({"wait": 2, "warmup": 1, "active": 1, "skip_first": 1, "skip_first_wait": 1}, "-wS--wS-"),
    ],
)
@pytest.mark.filterwarnings("ignore:Profiler won't be using warmup")
def test_schedule(arguments: dict[str, int], want: str) -> None:
    letters = dict(zip(ProfilerAction, "-wRS", strict=True))
    action = schedule(**arguments)
    assert "".join(letters[action(step)] for step in range(8)) == want


@pytest.mark.parametrize("wrong", [{"wait": -1}, {"warmup": -1}, {"active": 0}, {"repeat": -1}, {"skip_first": -2}])
def test_schedules_that_cannot_be(wrong: dict[str, int]) -> None:
    with pytest.raises(AssertionError, match=r"^Invalid profiler schedule arguments"):
        schedule(**{"wait": 1, "warmup": 1, "active": 1, **wrong})


def test_no_warmup_is_warned_of() -> None:
    with pytest.warns(UserWarning, match=r"^Profiler won't be using warmup"):
        schedule(wait=0, warmup=0, active=1)


def test_steps_that_are_recorded() -> None:
    ready: list[tuple[int, list[str], list[str]]] = []

    def on_ready(prof: profile) -> None:
        ready.append((prof.step_num, named(prof), kernels(prof)))

    operations = ["neg", "abs", "exp", "log", "sqrt", "sin", "cos", "tanh"]
    x = torch.ones(8)
    with profile(schedule=schedule(wait=1, warmup=1, active=2, repeat=2), on_trace_ready=on_ready) as prof:
        for name in operations:
            getattr(x, name)()
            prof.step()
    assert ready == [
        (4, ["ProfilerStep#2", "ProfilerStep#3"], ["exp", "log"]),
        (8, ["ProfilerStep#6", "ProfilerStep#7"], ["cos", "tanh"]),
    ]


def test_a_cycle_that_is_cut_short_is_ready_at_the_end() -> None:
    ready: list[list[str]] = []
    x = torch.ones(8)
    cycle = schedule(wait=0, warmup=1, active=3)
    with profile(schedule=cycle, on_trace_ready=lambda p: ready.append(kernels(p))) as prof:
        for name in ("neg", "abs", "exp"):
            getattr(x, name)()
            prof.step()
    assert ready == [["abs", "exp"]]


def test_a_schedule_that_drops_what_it_recorded_is_warned_of() -> None:
    actions = [ProfilerAction.RECORD, ProfilerAction.NONE, ProfilerAction.NONE]
    with profile(schedule=actions.__getitem__) as prof, pytest.warns(UserWarning, match=r"^Incorrect schedule"):
        prof.step()


# -- what can be made of it


def test_host_or_device_alone(tmp_path: Path) -> None:
    kinds = {}
    for activity in (ProfilerActivity.CPU, ProfilerActivity.CUDA):
        with profile(activities=[activity]) as prof:
            torch.ones(8).neg()
        prof.export_chrome_trace(tmp_path / "t.json")
        kinds[activity] = {b["cat"] for b in bars(kineto(tmp_path / "t.json"))}
    assert kinds == {
        ProfilerActivity.CPU: {"cpu_op", "cuda_runtime"},
        ProfilerActivity.CUDA: {"kernel"},
    }
    with pytest.raises(AssertionError):
        profile(activities=[])


def test_files_of_a_folder(tmp_path: Path) -> None:
    def program(rank: int) -> None:
        with profile(on_trace_ready=tensorboard_trace_handler(str(tmp_path / "new"), use_gzip=True)):
            torch.ones(8)

    on_ranks(2, program)
    names = sorted(f.name for f in (tmp_path / "new").iterdir())
    assert [n.split(".")[0] for n in names] == ["rank0", "rank1"]
    assert all(n.endswith(".pt.trace.json.gz") for n in names)


def test_results_before_the_end() -> None:
    prof = profile()
    for ask in (prof.events, lambda: prof.export_chrome_trace("t.json")):
        with pytest.raises(AssertionError):
            ask()
    prof.start()
    with pytest.raises(AssertionError):
        prof.events()
    prof.stop()
    assert prof.events() == []


def test_what_is_not_recorded_says_so() -> None:
    for name in ("key_averages", "add_metadata"):
        with pytest.raises(AttributeError, match=rf"NumPy front end has no torch.profiler.profile.{name}: run with"):
            getattr(profile(), name)


# -- record_function


def test_record_function_as_a_decorator() -> None:
    @record_function("plain")
    def plain(x: int) -> int:
        return x + 1

    @record_function("coroutine", args="2")
    async def coroutine(x: int) -> int:
        return x + 2

    with profile() as prof:
        assert plain(1) == 2
        assert plain(2) == 3
        assert asyncio.run(coroutine(1)) == 3
    assert named(prof) == ["plain", "plain", "coroutine(2)"]


def test_record_function_of_nobody_costs_nothing() -> None:
    before = runtime.current()
    with record_function("nobody"):
        pass
    with profile() as prof:
        pass
    assert named(prof) == []
    assert before is runtime.current()


@pytest.mark.parametrize("name", ["../../out", "/tmp/out", "a/b", ".."])
def test_traces_stay_in_their_folder(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match="is no path"):
        tensorboard_trace_handler(str(tmp_path), name)
