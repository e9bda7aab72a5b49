"""Tests of what takes processes of its own: forks, Ctrl-C, determinism, many ranks."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from conftest import ROOT, YamlFile

COMMAND = [sys.executable, "-m", "torchemu"]
TORUS = "name: torus64\nsystem:\n  sips: {count: 4096, connect: torus2d, w: 64, h: 64}\n"


def output(command: Sequence[str | Path], **environment: str) -> str:
    """Returns what a command that must succeed printed."""
    env = {**os.environ, **environment}
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=100, env=env)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    assert done.stderr == ""
    return done.stdout


def python(text: str, **environment: str) -> str:
    return output([sys.executable, "-W", "error", "-c", text], **environment)


# -- fork

FORK = """
import multiprocessing, os, sys
import numpy as np
import torchemu as torch
from torchemu import runtime
torch.distributed.init_process_group(world_size=4)
t = torch.ones(3)
external = torch.from_numpy(np.ones(3))
array = t.numpy()

def child():
    assert array.tolist() == [1, 1, 1]
    for call in (t.clone, lambda: torch.zeros(100_000), lambda: external.fill_(2), torch.World,
                 lambda: torch.distributed.all_reduce(t),
                 lambda: torch.multiprocessing.spawn(print, nprocs=2)):
        try:
            call()
        except RuntimeError as error:
            assert "does not work in a forked child" in str(error) and "'spawn' or 'forkserver'" in str(error), error
        else:
            os._exit(3)
    print("child is done", flush=True)

if METHOD == "os.fork":
    pid = os.fork()
    if pid == 0:
        child()
        sys.exit(0)  # by the long way, with all destructors
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
else:
    process = multiprocessing.get_context("fork").Process(target=child)
    process.start()
    process.join()
    assert process.exitcode == 0

def rank(r):
    x = torch.full((1000,), r)
    torch.distributed.all_reduce(x)
    assert (x == 6).numpy().all()

torch.multiprocessing.spawn(rank, nprocs=4)
t.fill_(2)
assert array.tolist() == [2, 2, 2]
print("parent is done")
"""


@pytest.mark.parametrize("method", ["os.fork", "multiprocessing"])
def test_forked_child_gets_an_error_and_the_parent_goes_on(method: str) -> None:
    assert python(f"METHOD = {method!r}\n" + FORK).split("\n") == ["child is done", "parent is done", ""]


def test_fork_inside_a_rank() -> None:
    text = """
import os
import torchemu as torch
torch.distributed.init_process_group(world_size=4)
def rank(r):
    t = torch.full((1,), r)
    torch.distributed.all_reduce(t)
    pid = os.fork()
    if pid == 0:
        try:
            t.item()
        except RuntimeError as error:
            os._exit("forked child" in str(error))
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 1
    assert t.item() == 6
torch.multiprocessing.spawn(rank, nprocs=4)
"""
    assert python(text) == ""


def test_spawned_process_works() -> None:
    text = """
import multiprocessing
import torchemu as torch
from test_processes import child_of_spawn
if __name__ == "__main__":
    torch.ones(1)
    process = multiprocessing.get_context("spawn").Process(target=child_of_spawn)
    process.start()
    process.join()
    assert process.exitcode == 0
"""
    assert python(text, PYTHONPATH=os.pathsep.join(map(str, Path(__file__).parents[:2]))) == ""


def child_of_spawn() -> None:
    import torchemu as torch

    assert torch.ones(2).tolist() == [1, 1]


# -- Ctrl-C


def interrupted(bench: Path, *options: str, after: str, pause: float = 0) -> tuple[str, str]:
    """Sends SIGINT once the bench has printed a line, after a pause in seconds, and returns the rest of what it prints.
    The exit status must be 130."""
    command = [*COMMAND, "bench", str(bench), *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        while process.stdout.readline() != after + "\n":
            assert process.poll() is None
        time.sleep(pause)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        assert process.returncode == 130, err
        return out, err


@pytest.mark.slow
def test_ctrl_c_during_one_long_call_of_the_core(yaml_file: YamlFile, tmp_path: Path) -> None:
    """A ring over 4096 ranks has 33 million steps: the last rank to join makes and evaluates them all in one call."""
    bench = tmp_path / "b.py"
    bench.write_text(
        "def rank(r, torch):\n"
        "    t = torch.zeros(1_000_000, dtype='u8')\n"
        "    if r == 4095: print('last', flush=True)\n"
        "    torch.distributed.all_reduce(t)\n"
        "def run(torch):\n"
        "    torch.distributed.init_process_group()\n"
        "    torch.multiprocessing.spawn(rank, (torch,), 4096)\n"
    )
    ring = yaml_file("defaults: {algorithm: ring}")
    out, err = interrupted(bench, "--topology", yaml_file(TORUS), "--ccl", ring, after="last", pause=0.5)
    assert (out, err) == ("", "interrupted\n")


def test_ctrl_c_unwinds_the_ranks(tmp_path: Path) -> None:
    bench = tmp_path / "b.py"
    bench.write_text(
        "def rank(r, torch):\n"
        "    try:\n"
        "        while True:\n"
        "            t = torch.zeros(1000)\n"
        "            torch.distributed.all_reduce(t)\n"
        "            t.wait()\n"
        "            if r == 0: print('go\\n', end='', flush=True)\n"
        "    finally:\n"
        "        print('end', r)\n"
        "def run(torch):\n"
        "    torch.distributed.init_process_group()\n"
        "    torch.multiprocessing.spawn(rank, (torch,), 4)\n"
    )
    out, err = interrupted(bench, after="go")
    # It comes to a rank, to the call that runs them, between two switches, or to neither.
    assert re.fullmatch(rf"interrupted( while rank [0-3] was at {bench}:[4-8] in rank| at {bench}:12 in run)?\n", err)
    assert sorted(line for line in out.splitlines() if line != "go") == [f"end {r}" for r in range(4)]


def test_ctrl_c_in_ordinary_python(tmp_path: Path) -> None:
    bench = tmp_path / "b.py"
    bench.write_text("import time\ndef run(torch):\n    print('go', flush=True)\n    time.sleep(60)\n")
    out, err = interrupted(bench, after="go")
    assert out == "" and re.fullmatch(rf"interrupted at {bench}:[34] in run\n", err)


def test_ctrl_c_while_the_command_is_imported(tmp_path: Path) -> None:
    """A package that the command needs takes its time."""
    (tmp_path / "numpy.py").write_text("import time\nprint('importing', flush=True)\ntime.sleep(60)\n")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    command = [*COMMAND, "run", "--help"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stdout is not None and process.stdout.readline() == "importing\n"
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=60) == ("", "interrupted\n")
    assert process.returncode == 130


@pytest.mark.slow
def test_cleanup_after_ctrl_c_may_take_its_time(tmp_path: Path) -> None:
    bench = tmp_path / "b.py"
    bench.write_text(
        "import time\n"
        "def run(torch):\n"
        "    try:\n"
        "        print('go', flush=True)\n"
        "        time.sleep(60)\n"
        "    finally:\n"
        "        time.sleep(1.5)\n"
        "        print('saved')\n"
    )
    out, err = interrupted(bench, after="go")
    assert out == "saved\n" and re.fullmatch(rf"interrupted at {bench}:[45] in run\n", err)


# -- determinism

DETERMINISM = """
import zlib
import torchemu as torch
from torchemu.launch import bench

def rank(r, torch, names):
    tensors = {name: torch.full((int(name),), r / 3, dtype="f16") for name in sorted(names)}
    for name in sorted(names):
        torch.distributed.all_reduce(tensors[name])
        out = torch.zeros(16 * int(name), dtype="f16")
        torch.distributed.all_gather_into_tensor(out, tensors[name])
    print(r, [zlib.crc32(t.numpy().tobytes()) for t in tensors.values()])

def run(torch):
    torch.distributed.init_process_group()
    torch.multiprocessing.spawn(rank, (torch, {"1", "7", "100", "4099", "65536"}), 16)
"""


@pytest.mark.slow
@pytest.mark.parametrize("preset", ["sips16", "nodes2x8"])
def test_two_processes_say_and_trace_the_same(tmp_path: Path, preset: str) -> None:
    bench = tmp_path / "b.py"
    bench.write_text(DETERMINISM)
    said, traces = set(), set()
    for seed in ("0", "1", "random"):
        trace = tmp_path / "trace.json"
        command = [*COMMAND, "bench", str(bench), "--topology", preset, "--trace", str(trace)]
        said.add(output(command, PYTHONHASHSEED=seed))
        traces.add(trace.read_bytes())
    assert len(said) == len(traces) == 1
    (text,), (events,) = said, traces
    assert text.count("all_reduce ") == 5 and len(events) > 100_000


def test_our_bench_runs_as_a_script(tmp_path: Path) -> None:
    out = output([sys.executable, ROOT / "benches" / "ccl_allreduce.py", "--topology", "sips2"])
    assert out == output([*COMMAND, "bench", str(ROOT / "benches" / "ccl_allreduce.py"), "--topology", "sips2"])
    assert out.count("OK\n") == 3


# -- many ranks

MANY_RANKS = """
import resource, sys, time
import torchemu as torch
from torchemu import runtime

def rank(r):
    t = torch.full((256,), r)
    for _ in range(10):
        torch.distributed.all_reduce(t, "max")
        assert t[255].item() == 4095

start = time.perf_counter()
with runtime.opened(sys.argv[1]) as world:
    torch.distributed.init_process_group()
    torch.multiprocessing.spawn(rank, nprocs=4096)
    assert [c["ranks"] for c in world.collectives()] == [4096] * 10
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(f"4096 ranks, ten all_reduces: {time.perf_counter() - start:.2f} s, {peak:.0f} MiB at most")
"""


@pytest.mark.slow
def test_4096_ranks(yaml_file: YamlFile, capfd: pytest.CaptureFixture[str]) -> None:
    said = output([sys.executable, "-c", MANY_RANKS, yaml_file(TORUS)])
    with capfd.disabled():
        print(f"\n{said}", end="")  # for whoever reads along: how long it takes depends on the machine
    assert said.startswith("4096 ranks")
