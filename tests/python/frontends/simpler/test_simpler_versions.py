"""Drivers and tests of other versions of simpler use more: windows from init on, scene tests, pytest's options."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from multiprocessing.shared_memory import SharedMemory
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import OpenWorld
from launch import launch
from simpler_cases import ADD, called, run, tensor, working, written

from torchemu.frontends.simpler.task_interface import (
    ChipBootstrapConfig,
    ChipBufferSpec,
    ChipCommBootstrapConfig,
    ChipStorageTaskArgs,
    CommBufferSpec,
    ContinuousTensor,
    DataType,
    HostBufferStaging,
    TaskArgs,
    TensorArgType,
)
from torchemu.frontends.simpler.worker import Worker
from torchemu.frontends.simpler_setup import parallel_scheduler
from torchemu.frontends.simpler_setup.log_config import configure_logging
from torchemu.frontends.simpler_setup.runtime_builder import RuntimeBuilder
from torchemu.frontends.simpler_setup.torch_interop import make_tensor_arg

# Adds all members' inputs: tensors input and output, both in the window, and the domain's context.
SUM = """
    from torchemu.pto import *

    def kernel_entry(args):
        source, result = (tensor.ptr() for tensor in args[:2])
        ctx = CommContext(args[2])
        total, other = Tile(1, 16), Tile(1, 16)
        TASSIGN(total, 0)
        TASSIGN(other, 0x1000)
        TLOAD(total, GlobalTensor(CommRemotePtr(ctx, source, 0), (16,)))
        for rank in range(1, ctx.rankNum):
            TLOAD(other, GlobalTensor(CommRemotePtr(ctx, source, rank), (16,)))
            pipe_barrier(PIPE_ALL)
            TADD(total, total, other)
            pipe_barrier(PIPE_ALL)
        pipe_barrier(PIPE_ALL)
        TSTORE(GlobalTensor(result, (16,)), total)
"""
COUNT, NBYTES = 16, 64


def config(rank: int, given: str, taken: str, **changed: Any) -> ChipBootstrapConfig:
    """A chip's window: an input that shared memory fills, and an output that goes to shared memory."""
    settings: dict[str, Any] = {
        "comm": ChipCommBootstrapConfig(rank, 3, "rootinfo", 4096),
        "buffers": [
            ChipBufferSpec("in", "float32", COUNT, placement="window", nbytes=NBYTES, load_from_host=True),
            ChipBufferSpec("out", "float32", COUNT, NBYTES, store_to_host=True),
        ],
        "host_inputs": [HostBufferStaging("in", given, NBYTES)],
        "host_outputs": [HostBufferStaging("out", taken, NBYTES)],
    }
    return ChipBootstrapConfig(**{**settings, **changed})


@pytest.mark.parametrize("ranks", [[0, 1, 2], [2, 0, 1]])
def test_windows_from_init_on(ranks: list[int], tmp_path: Path, open_world: OpenWorld) -> None:
    """Chips whose ranks are in any order read each other's windows, which shared memory has filled and gets back."""
    values = np.random.default_rng(3).standard_normal((3, COUNT)).astype(np.float32)
    shared = [SharedMemory(create=True, size=NBYTES) for _ in range(6)]
    try:
        for chip in range(3):
            shared[chip].buf[:NBYTES] = values[chip].tobytes()
        configs = [config(ranks[chip], shared[chip].name, shared[3 + chip].name) for chip in range(3)]
        open_world("default")
        chip_callable = written(tmp_path, SUM, "sum_kernel")
        worker = Worker(3, device_ids=[3, 1, 2], num_sub_workers=0, chip_bootstrap_configs=configs)
        with pytest.raises(RuntimeError, match="from init"):
            worker.chip_contexts  # noqa: B018
        worker.init()
        contexts = worker.chip_contexts
        assert [(c.device_id, c.rank, c.nranks, c.actual_window_size) for c in contexts] == [
            (device, rank, 3, 4096) for device, rank in zip([3, 1, 2], ranks, strict=True)
        ]

        def build(orch: Any, _args: Any, _config: Any) -> None:
            for chip, seen in enumerate(contexts):
                args = TaskArgs()
                for name in ("in", "out"):
                    args.add_tensor(
                        ContinuousTensor.make(seen.buffer_ptrs[name], (COUNT,), DataType.FLOAT32, True),
                        TensorArgType.NO_DEP,
                    )
                args.add_scalar(seen.device_ctx)
                orch.submit_next_level(chip_callable, args, worker=chip)  # as it is, not a number of register's

        worker.run(build)
        worker.close()
        place = [ranks.index(rank) for rank in range(3)]
        want = (values[place[0]] + values[place[1]]) + values[place[2]]
        for chip in range(3):
            assert np.frombuffer(bytes(shared[3 + chip].buf[:NBYTES]), np.float32).tolist() == want.tolist()
    finally:
        for memory in shared:
            memory.close()
            memory.unlink()


@pytest.mark.parametrize(
    ("changed", "kind", "said"),
    [
        ({"comm": ChipCommBootstrapConfig(0, 3, "", 4096)}, ValueError, r"ranks \[0, 1, 0\]; want 0 to 2, each once"),
        ({"comm": ChipCommBootstrapConfig(2, 2, "", 4096)}, ValueError, r"nranks \[3, 3, 2\] of 3"),
        ({"comm": ChipCommBootstrapConfig(2, 3, "", 64)}, ValueError, "want them equal"),
        ({"comm": None}, ValueError, r"\[2\]: buffers without comm|ranks"),
        ({"buffers": [ChipBufferSpec("a", "int8", 1, 1)] * 2}, ValueError, "names one twice"),
        ({"buffers": [ChipBufferSpec("a", "int8", 1, 1, placement="host")]}, ValueError, "want 'window'"),
        ({"buffers": [ChipBufferSpec("a", "int8", 1, 5000)]}, ValueError, r"\[5000\] bytes in a window of 4096"),
        ({"host_inputs": []}, KeyError, "host_inputs: nothing for buffer 'in'"),
        ({"host_outputs": [HostBufferStaging("out", "x", 4)]}, ValueError, "4 bytes of shared memory for buffer 'out'"),
    ],
)
def test_impossible_windows(changed: dict[str, Any], kind: type[Exception], said: str) -> None:
    configs = [config(0, "a", "b"), config(1, "a", "b"), config(2, "a", "b", **changed)]
    with pytest.raises(kind, match=said):
        Worker(device_ids=[0, 1, 2], chip_bootstrap_configs=configs)
    with pytest.raises(ValueError, match="3 for 2 device_ids"):
        Worker(device_ids=[0, 1], chip_bootstrap_configs=configs)


def test_worker_of_one_chip(tmp_path: Path, open_world: OpenWorld) -> None:
    open_world("default")
    worker = Worker(level=2, device_id=2, platform="a2a3", runtime="host_build_graph")
    number = worker.register(written(tmp_path, ADD))
    worker.init()
    a, b, c = tensor([1.0, 2.0]), tensor([10.0, 20.0]), tensor([0.0, 0.0])
    args = ChipStorageTaskArgs()
    for t in (a, b, c):
        args.add_tensor(make_tensor_arg(t))
    assert worker.run(number, args).host_wall_us > 0
    assert c.tolist() == [11.0, 22.0]
    worker.close()
    with pytest.raises(ValueError, match="has one chip"):
        Worker(level=2, device_ids=[0, 1])
    with working(1) as host, pytest.raises(TypeError, match="run wants a function"):
        host.run(number, args)  # type: ignore[arg-type]


def test_buffers_of_a_domain(tmp_path: Path, open_world: OpenWorld) -> None:
    """A domain's buffers give tensors of any shape that fits, and are copied to and from."""
    open_world("default")
    with working(2) as worker:
        number = worker.register(written(tmp_path, ADD))
        a, c, back = tensor([1.0, 2.0, 3.0]), tensor([0.0] * 3), tensor([0.0] * 2)

        def build(orch: Any) -> None:
            buffers = [CommBufferSpec("x", "float32", 8, 32), CommBufferSpec("y", "float32", 4, 16)]
            handle = orch.allocate_domain(name="d", workers=[1, 0], window_size=64, buffers=buffers)
            y = handle[0].buffers["y"]
            assert (y.base, y.tensor().shapes, y.nbytes) == (handle[0].buffer_ptrs["y"], (4,), 16)
            orch.copy_to(y, make_tensor_arg(a))
            orch.copy_from(make_tensor_arg(back), y)
            with pytest.raises(ValueError, match="20 bytes of a buffer of 16"):
                y.tensor((5,), DataType.FLOAT32)
            with pytest.raises(ValueError, match="32 bytes of a buffer of 16"):
                orch.copy_to(y, make_tensor_arg(tensor([0.0] * 8)))
            args = called((a, TensorArgType.INPUT), (y.tensor((1, 3)), TensorArgType.INPUT), (c, TensorArgType.OUTPUT))
            orch.submit_next_level(number, args, worker=0)
            orch.release_domain(handle)
            assert handle.released and not handle.freed

        run(worker, build)
        assert (c.tolist(), back.tolist()) == ([2.0, 4.0, 6.0], [1.0, 2.0])


@pytest.mark.parametrize(
    ("text", "numbers", "again"),
    [("", [], ""), ("4", [4], "4"), ("0-3", [0, 1, 2, 3], "0-3"), (" 7, 2-3 ,3", [2, 3, 7], "2,3,7")],
)
def test_numbers_of_devices(text: str, numbers: list[int], again: str) -> None:
    assert parallel_scheduler.device_range_to_list(text) == numbers
    assert parallel_scheduler.format_device_range(numbers) == again
    with pytest.raises(ValueError):
        parallel_scheduler.device_range_to_list("0-x")


def test_jobs() -> None:
    """Jobs get the devices that they need; those of this Python run under torchemu."""
    seen: list[str] = []

    def job(label: str, count: int, text: str) -> parallel_scheduler.Job:
        return parallel_scheduler.Job(label, count, lambda ids: ["sh", "-c", f"echo {ids[-1]}; {text}"])

    jobs = [job("one", 2, "exit 0"), job("two", 1, "exit 3"), job("three", 1, "exit 0")]
    results = parallel_scheduler.run_jobs(jobs, [4, 5], fail_fast=True, on_job_done=lambda r: seen.append(r.label))
    assert [(r.label, r.returncode, r.device_ids, r.output) for r in results] == [
        ("one", 0, [4, 5], "5\n"),
        ("two", 3, [4], "4\n"),
    ]
    assert seen == ["one", "two"]
    with pytest.raises(ValueError, match="'one' needs 2 devices, and there are 1"):
        parallel_scheduler.run_jobs(jobs, [4])
    assert parallel_scheduler.default_max_parallel("a2a3", [0, 1, 2]) == 3
    command = [sys.executable, "-m", "calendar", "2024", "1"]
    (done,) = parallel_scheduler.run_jobs([parallel_scheduler.Job("month", 1, lambda ids: command)], [0])
    assert (done.returncode, "January 2024" in done.output) == (0, True), done.output


def test_runtimes_and_logs() -> None:
    builder = RuntimeBuilder("a2a3sim")
    assert "host_build_graph" in builder.list_runtimes()
    binaries = builder.get_binaries("tensormap_and_ringbuffer", build=True)
    assert binaries.host_path.is_file() and binaries.path_for_role("aicpu") == binaries.aicpu_path
    with pytest.raises(ValueError, match="runtime 'x': want one of"):
        builder.get_binaries("x")
    with pytest.raises(KeyError, match="no role 'x'"):
        binaries.path_for_role("x")
    with pytest.raises(ValueError, match="platform 'x'"):
        RuntimeBuilder("x")
    with pytest.raises(ValueError, match="log level 'loud'"):
        configure_logging("loud")


SCENE = """
    import ctypes
    import torch
    from simpler.task_interface import ArgDirection as D, CommBufferSpec, DataType, TaskArgs, TensorArgType
    from simpler_setup import Scalar, SceneTestCase, TaskArgsBuilder, TensorArg, make_tensor_arg, scene_test
    from simpler_setup.scene_test import _build_l3_task_args, _rehosted_ref_for

    SIMULATORS = ["a2a3sim", "a5sim"]
    ADD = {
        "orchestration": {"source": "kernels/add_orch.cpp", "function_name": "add", "signature": [D.IN, D.IN, D.OUT]},
        "incores": [{"func_id": 0, "source": "kernels/add_kernel.cpp", "core_type": "aiv", "signature": []}],
    }
    seen = []

    def both(orch, callables, args, config):
        for chip in range(2):
            task = TaskArgs()
            task.add_tensor(_rehosted_ref_for(args, args.a), TensorArgType.INPUT)
            task.add_tensor(make_tensor_arg(args.b), TensorArgType.INPUT)
            task.add_tensor(make_tensor_arg(getattr(args, f"out{chip}")), TensorArgType.OUTPUT_EXISTING)
            assert callables.add_sig[2] == D.OUT
            orch.submit_next_level(callables.add, callables.keep(task), config, worker=chip)
        sub = TaskArgs()
        sub.add_tensor(make_tensor_arg(args.out0), TensorArgType.INPUT)
        orch.submit_sub(callables.look, sub)

    @scene_test(level=3, runtime="tensormap_and_ringbuffer")
    class TestBoth(SceneTestCase):
        CALLABLE = {
            "orchestration": both,
            "callables": [{"name": "add", **ADD}, {"name": "look", "callable": lambda args: seen.append(len(args))}],
        }
        CASES = [
            {
                "name": "two",
                "platforms": SIMULATORS,
                "config": {"device_count": 2, "num_sub_workers": 1},
                "params": {"n": 5},
            },
            {"name": "many", "platforms": SIMULATORS, "manual": ["a5sim"], "params": {"n": 700}},
            {"name": "hardware", "platforms": ["a2a3"], "params": {"n": None}},
        ]

        def generate_args(self, params):
            n = params["n"]
            return TaskArgsBuilder(
                TensorArg("a", torch.arange(n, dtype=torch.float32).share_memory_()),
                TensorArg("b", torch.full((n,), 2.0)),
                *(TensorArg(f"out{chip}", torch.zeros(n)) for chip in range(2)),
                Scalar("n", ctypes.c_int64(n)),
            )

        def compute_golden(self, args, params):
            for out in (args.out0, args.out1):
                out[:] = args.a + args.b

    @scene_test(level=2, runtime="tensormap_and_ringbuffer")
    class TestOne(SceneTestCase):
        CALLABLE = ADD
        CASES = [{"name": "one", "platforms": SIMULATORS, "params": {"off": 0}},
                 {"name": "wrong", "platforms": SIMULATORS, "manual": True, "params": {"off": 1}}]

        def generate_args(self, params):
            return TaskArgsBuilder(*(TensorArg(name, torch.ones(8)) for name in "abc"))

        def compute_golden(self, args, params):
            args.c[:] = args.a + args.b + params["off"]

    if __name__ == "__main__":
        SceneTestCase.run_module(__name__)
"""


@pytest.fixture
def scenes(tmp_path: Path) -> Path:
    """A folder with scene tests, whose kernel is in Python."""
    folder = tmp_path / "scenes"
    (folder / "kernels").mkdir(parents=True)
    (folder / "__init__.py").touch()
    (folder / "test_scenes.py").write_text(textwrap.dedent(SCENE))
    (folder / "kernels" / "add_kernel.py").write_text(textwrap.dedent(ADD))
    return folder


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--platform", "a2a3sim"], "2 passed"),
        (
            ["--platform", "a5sim", "--rounds", "2", "--manual", "include", "--case", "TestBoth::many"],
            "1 passed, 1 skip",
        ),
        (["--case", "TestOne::wrong", "--manual", "only"], "c is not the golden one: it differs by 1.0"),
        (["--case", "TestOne::wrong", "--manual", "only", "--skip-golden"], "1 passed, 1 skipped"),
        (["--device", "3"], "TestBoth needs 2 devices, and --device has \\[3\\]"),
        (["--level", "2"], "1 passed, 1 deselected"),
    ],
)
def test_scene_tests(options: list[str], said: str, scenes: Path) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-o", "torchemu_as_torch=true"]
    done = subprocess.run(
        [*command, "scenes", *options], cwd=scenes.parent, capture_output=True, text=True, check=False
    )
    assert said.replace("\\", "") in done.stdout, done.stdout + done.stderr
    assert done.returncode == (0 if "passed" in said else 1), done.stdout


def test_scene_tests_in_a_run(scenes: Path) -> None:
    """pytest in a run is one host with all its chips; so is a file of scene tests that is a program."""
    done = launch(
        "-m", "pytest", "-q", "-p", "no:cacheprovider", str(scenes), "--platform", "a2a3sim", "--device", "0-1"
    )
    assert (done.status, done.out.count("2 passed")) == (0, 1), done.out + done.err
    done = launch(scenes / "test_scenes.py", "-p", "a2a3sim", "-d", "0-1")
    assert (done.status, done.out) == (0, "PASSED TestBoth::two\nPASSED TestBoth::many\nPASSED TestOne::one\n"), (
        done.err
    )
    done = launch(scenes / "test_scenes.py", "-p", "a5sim", "--manual", "only", "--case", "wrong")
    assert done.status == 1
    assert done.out.startswith("FAILED TestOne::wrong: AssertionError: c is not the golden one: it differs by 1.0;")


@pytest.mark.slow
def test_options_that_a_conftest_has(scenes: Path) -> None:
    """A conftest beside the tests, as simpler's own, may have the same options and fixtures; they count."""
    text = """
        import pytest
        from simpler_setup import parallel_scheduler

        def pytest_addoption(parser):
            parser.addoption("--platform", default="a5sim")
            parser.addoption("--device", default="0")

        @pytest.fixture
        def st_platform(request):
            return request.config.getoption("--platform")

        @pytest.fixture
        def st_device_ids(request):
            return parallel_scheduler.device_range_to_list(request.config.getoption("--device"))
    """
    (scenes / "conftest.py").write_text(textwrap.dedent(text))
    (scenes / "test_own.py").write_text(
        "def test_own(st_platform, st_device_ids): assert (st_platform, st_device_ids) == ('a5sim', [1, 2])\n"
    )
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-o", "torchemu_as_torch=true"]
    command += ["scenes/test_own.py", "--device", "1-2"]
    done = subprocess.run(command, cwd=scenes.parent, capture_output=True, text=True, check=False)
    assert (done.returncode, "1 passed" in done.stdout) == (0, True), done.stdout + done.stderr
