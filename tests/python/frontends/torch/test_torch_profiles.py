"""The files that torch.profiler writes: of simulated time, in the shape of PyTorch's."""

import gzip
import json
import subprocess
import sys
import time

import pytest
import torch
import torch.distributed as dist
from launch import written
from torch.distributed.device_mesh import init_device_mesh

import torchemu

pytestmark = pytest.mark.filterwarnings("ignore:Warning. Profiler clears events")

real = torchemu.distributed(world_size=2, torch="real", virtual_clock=True)


def joined():
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank())
    return dist.get_rank()


def bars(path):
    opened = gzip.open if str(path).endswith(".gz") else open
    with opened(path, "rt") as file:
        written = json.load(file)
    assert written["distributedInfo"]["rank"] == dist.get_rank()
    return [event for event in written["traceEvents"] if event["ph"] == "X"]


def named(events, category):
    return [event["name"] for event in events if event["cat"] == category]


@real
def test_a_file_has_what_host_and_device_did(tmp_path):
    rank = joined()
    x = torch.ones(8, 8, device="cuda")
    dist.all_reduce(x)
    torch.cuda.synchronize()
    start = time.monotonic()
    with torch.profiler.profile() as profile, torch.profiler.record_function("mine"):
        x @ x
        dist.broadcast(x, 0)
        time.sleep(1)
    took = (time.monotonic() - start) * 1e6
    assert {"nccl:broadcast", "record_param_comms"} <= {event.name for event in profile.events()}
    x @ x
    for name in ("rank.json", "rank.json.gz"):
        path = tmp_path / f"{rank}.{name}"
        profile.export_chrome_trace(str(path))
        events = bars(path)
        assert named(events, "user_annotation") == ["mine"]
        assert named(events, "cpu_op") == ["aten::mm", "c10d::broadcast_", "record_param_comms"]
        [said] = [event["args"] for event in events if event["name"] == "record_param_comms"]
        keys = "Collective name", "Group size", "dtype", "Rank"
        assert [said[key] for key in keys] == ["broadcast", 2, "Float", rank]
        assert len(named(events, "kernel")) == 2
        mine = next(event for event in events if event["name"] == "mine")
        assert 1e6 <= mine["dur"] <= took < 1.001e6
        for event in events:
            assert mine["ts"] <= event["ts"] and event["ts"] + event["dur"] <= mine["ts"] + took


@torchemu.distributed(world_size=4, torch="real")
def test_groups_of_a_mesh_have_their_descriptions(tmp_path):
    rank = joined()
    mesh = init_device_mesh("cuda", (2, 2), mesh_dim_names=("dp", "tp"))
    with torch.profiler.profile() as profile:
        for group in (None, mesh.get_group("dp"), mesh.get_group("tp")):
            dist.all_reduce(torch.ones(1, device="cuda"), group=group)
        torch.cuda.synchronize()
    profile.export_chrome_trace(str(path := tmp_path / f"{rank}.json"))
    asked = [event["args"] for event in bars(path) if event["name"] == "record_param_comms"]
    keys = "Process Group Description", "Process Group Ranks", "Global rank start", "Global rank stride"
    assert [tuple(args[key] for key in keys) for args in asked] == [
        ("default_pg", "[0, 1, 2, 3]", 0, 1),
        ("mesh_dp", str([rank % 2, rank % 2 + 2]), rank % 2, 2),
        ("mesh_tp", str([rank // 2 * 2, rank // 2 * 2 + 1]), rank // 2 * 2, 1),
    ]
    names = [dist.group.WORLD.group_name, mesh.get_group("dp").group_name, mesh.get_group("tp").group_name]
    assert [args["Process Group Name"] for args in asked] == names


@real
def test_events_have_the_kernels_of_the_device(tmp_path):
    """The file is the oracle, which the core writes."""
    rank = joined()
    x = torch.ones(64, 64, device="cuda", requires_grad=True)
    with torch.profiler.profile() as profile:
        for _ in range(3):
            y = x @ x
        y.relu().sum().backward()
        dist.all_reduce(x.detach())
        x.detach().cpu()
    profile.export_chrome_trace(str(path := tmp_path / f"{rank}.json"))
    bar = [each for each in bars(path) if each["cat"] in ("kernel", "gpu_memcpy")]
    events = [each for each in profile.events() if each.device_type is torch.autograd.DeviceType.CUDA]
    assert [each.name for each in events] == [each["name"] for each in bar]
    assert {each.device_index for each in events} == {rank}
    assert [each.device_time_total for each in events] == pytest.approx([each["dur"] for each in bar], abs=2e-3)
    assert [each.time_range.start for each in events] == pytest.approx([each["ts"] for each in bar], abs=2e-3)
    averages = {each.key: each for each in profile.key_averages()}
    took = sum(each["dur"] for each in bar if each["name"] == "mm")
    assert averages["aten::mm"].count == averages["mm"].count == 5
    assert averages["aten::mm"].self_device_time_total == pytest.approx(took, abs=1e-2)
    assert averages["aten::matmul"].count == 3
    assert averages["aten::matmul"].self_device_time_total == 0
    assert averages["aten::matmul"].device_time_total == pytest.approx(took * 3 / 5, abs=1e-2)
    assert averages["aten::relu"].device_time_total == pytest.approx(averages["relu"].device_time_total)
    assert "PythonDispatchMode" not in averages
    last = profile.key_averages().table(sort_by="cuda_time_total").splitlines()[-1]
    told = last.removeprefix("Self CUDA time total: ").removesuffix("us")
    assert float(told) == pytest.approx(sum(each["dur"] for each in bar), abs=1e-2)


@real
def test_profiles_of_the_host_have_no_kernels():
    joined()
    x = torch.ones(8, 8, device="cuda")
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        x @ x
    assert {each.device_type for each in profile.events()} == {torch.autograd.DeviceType.CPU}
    assert all(each.device_time_total == 0 for each in profile.events())


@real
def test_activities_that_are_not_wanted(tmp_path):
    rank = joined()
    x = torch.ones(8, 8, device="cuda")
    for activity, categories in (("CPU", {"cpu_op", "cuda_runtime"}), ("CUDA", {"kernel"})):
        with torch.profiler.profile(activities=[getattr(torch.profiler.ProfilerActivity, activity)]) as profile:
            x @ x
            torch.cuda.synchronize()
        path = tmp_path / f"{rank}.{activity}.json"
        profile.export_chrome_trace(str(path))
        assert {event["cat"] for event in bars(path)} - {"cuda_runtime"} == categories - {"cuda_runtime"}


@real
def test_a_schedule_writes_its_active_steps(tmp_path):
    rank = joined()
    x = torch.ones(8, 8, device="cuda")
    made = []

    def ready(profile):
        made.append(tmp_path / f"{rank}.{profile.step_num}.json")
        profile.export_chrome_trace(str(made[-1]))

    schedule = torch.profiler.schedule(wait=1, warmup=1, active=2, repeat=2)
    with torch.profiler.profile(schedule=schedule, on_trace_ready=ready) as profile:
        for _ in range(8):
            dist.all_reduce(x)
            profile.step()
    steps = [named(bars(path), "user_annotation") for path in made]
    assert steps == [["ProfilerStep#2", "ProfilerStep#3"], ["ProfilerStep#6", "ProfilerStep#7"]]
    assert all(named(bars(path), "cpu_op") == ["c10d::allreduce_", "record_param_comms"] * 2 for path in made)


_PROGRAM = """
import torch, torch.distributed as dist
dist.init_process_group("nccl")
x = torch.ones(4, device="cuda")
dist.all_reduce(x)
with torch.profiler.profile():
    with torch.profiler.record_function("profiled"):
        dist.broadcast(x, 0)
dist.all_reduce(x)
"""


def test_a_trace_of_what_the_program_profiles_only(tmp_path):
    command = ["-m", "torchemu", "run", "--torch", "real", "--nproc-per-node", "2", "--trace-range", "profiler"]
    script = str(written(tmp_path, _PROGRAM))
    subprocess.run([sys.executable, *command, "--trace", str(tmp_path / "traces"), script], check=True, timeout=300)
    with gzip.open(tmp_path / "traces" / "rank0.json.gz", "rt") as file:
        events = [event for event in json.load(file)["traceEvents"] if event["ph"] == "X"]
    assert named(events, "cpu_op") == ["c10d::broadcast_", "record_param_comms"]
    assert named(events, "user_annotation") == ["profiled"]


@real
def test_execution_traces_of_several_ranks_are_refused(tmp_path):
    observer = torch.profiler.ExecutionTraceObserver()
    with pytest.raises(NotImplementedError, match=r"--trace NAME\.et"):
        observer.register_callback(str(tmp_path / "trace.json"))
    assert not observer.is_registered


@torchemu.distributed(world_size=1, torch="real")
def test_an_execution_trace_of_one_rank(tmp_path):
    joined()
    observer = torch.profiler.ExecutionTraceObserver().register_callback(str(path := tmp_path / "trace.json"))
    observer.start()
    torch.ones(2, device="cuda").relu()
    observer.stop()
    observer.unregister_callback()
    assert "aten::relu" in [node["name"] for node in json.loads(path.read_text())["nodes"]]
