"""Ranks as processes with numbers, which send each other signals and have handlers of their own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from launch import Outcome, launch, lines, written

BEGIN = """
    import os, signal, sys, time
    rank = int(os.environ["RANK"])
"""


def ranks(folder: Path, text: str, nproc: int = 3) -> Outcome:
    """Runs a program that knows its rank."""
    return launch("--nproc-per-node", str(nproc), "--virtual-clock", written(folder, BEGIN + text))


def test_every_rank_has_a_number(tmp_path: Path) -> None:
    """Which no process has, so that nobody else is hit; that of the parent is torchemu's process."""
    text = """
    print(rank, os.getpid(), os.getppid())
    """
    first = 1 << 22
    assert lines(ranks(tmp_path, text)) == [f"{r} {first + r} {os.getpid()}" for r in range(3)]
    assert lines(ranks(tmp_path, text)) == [f"{r} {first + r} {os.getpid()}" for r in range(3)]  # as before
    with pytest.raises(ProcessLookupError):
        os.kill(first, 0)


def test_libraries_see_the_process(tmp_path: Path) -> None:
    text = """
    import tempfile, multiprocessing
    assert multiprocessing.current_process().pid == os.getppid()
    with tempfile.TemporaryDirectory() as folder:
        assert os.path.isdir(folder)
    """
    assert ranks(tmp_path, text).status == 0


ENDS = {
    "os.kill(os.getpid(), signal.SIGTERM)": -15,
    "os.kill(os.getpid(), signal.SIGKILL)": -9,
    "os.kill(os.getpid(), signal.SIGUSR1)": -10,
    "os.kill(os.getpid(), 35)": -35,
    "signal.raise_signal(signal.SIGHUP)": -1,
    "os.abort()": -6,
    "signal.signal(signal.SIGTERM, signal.SIG_DFL); os.kill(os.getpid(), signal.SIGTERM)": -15,
    "signal.signal(signal.SIGTERM, lambda n, f: sys.exit(5)); os.kill(os.getpid(), signal.SIGTERM)": 5,
    "os.kill(os.getpid(), 0)": 0,
    "os.kill(os.getpid(), signal.SIGCHLD)": 0,
    "signal.signal(signal.SIGTERM, signal.SIG_IGN); os.kill(os.getpid(), signal.SIGTERM)": 0,
    "signal.signal(signal.SIGTERM, lambda n, f: None); os.kill(os.getpid(), signal.SIGTERM)": 0,
}
"""Acts of a process on itself, and the exit code with which Python says that it ended."""


@pytest.mark.parametrize("statement", ENDS)
def test_a_rank_signals_itself(tmp_path: Path, statement: str) -> None:
    code = ENDS[statement]
    text = f"import os, signal, sys\n{statement}\nprint('goes on')"
    really = subprocess.run([sys.executable, "-c", text], capture_output=True, check=False)
    assert really.returncode == code
    outcome = ranks(tmp_path, f"\n    if rank == 1:\n        {statement}\n    print('goes on')")
    assert outcome.out.count("goes on\n") == (3 if code == 0 else 2)
    assert outcome.status == (1 if code else 0)
    assert (f"  exitcode  : {code}\n" in outcome.err) == (code != 0)


@pytest.mark.parametrize("number", ["SIGTERM", "SIGKILL", "SIGINT"])
def test_a_rank_ends_another(tmp_path: Path, number: str) -> None:
    text = f"""
    import torch.distributed as dist
    dist.init_process_group()
    numbers = [None] * 3
    dist.all_gather_object(numbers, os.getpid())
    if rank == 0:
        os.kill(numbers[2], signal.{number})
    try:
        dist.barrier()
    finally:
        print("end of", rank)
    """
    outcome = ranks(tmp_path, text)
    assert "  rank      : 2 (local_rank: 2)\n" in outcome.err
    assert f" ({number}) received by PID {(1 << 22) + 2}\n" in outcome.err
    assert sorted(outcome.out.splitlines()) == ["end of 0", "end of 1"]  # the others are unwound in the barrier


def test_handlers_are_a_ranks_own(tmp_path: Path) -> None:
    """One that waits handles what has come when it goes on."""
    text = """
    import torch.distributed as dist
    got = []
    assert signal.getsignal(signal.SIGUSR1) == signal.SIG_DFL
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert signal.signal(signal.SIGUSR1, lambda number, frame: got.append((rank, number))) == signal.SIG_DFL
    dist.init_process_group()
    numbers = [None] * 3
    dist.all_gather_object(numbers, os.getpid())
    if rank == 0:
        for number in numbers:
            os.kill(number, signal.SIGUSR1)
    dist.barrier()
    print(got)
    """
    assert lines(ranks(tmp_path, text)) == ["[(0, 10)]", "[(1, 10)]", "[(2, 10)]"]
    assert signal.getsignal(signal.SIGUSR1) == signal.SIG_DFL


def test_a_signal_to_the_process_comes_to_the_ranks_with_handlers(tmp_path: Path) -> None:
    text = """
    import torch.distributed as dist
    stop = []
    if rank != 1:
        signal.signal(signal.SIGTERM, lambda *_: stop.append(rank))
    dist.init_process_group()
    dist.barrier()
    if rank == 1:
        os.kill(os.getppid(), signal.SIGTERM)
    dist.barrier()
    print(rank, stop)
    """
    assert lines(ranks(tmp_path, text)) == ["0 [0]", "1 []", "2 [2]"]
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


def killed(folder: Path, handler: str) -> tuple[int, list[str]]:
    """Sends a run SIGTERM from outside when its ranks are about to ask in a loop whether they are to stop."""
    text = f"""
    import torch, torch.distributed as dist
    stop = []
    if rank != 1:
        signal.signal(signal.SIGTERM, lambda *_: stop.append(rank))
        {handler}
    dist.init_process_group("gloo")
    dist.barrier()
    print("ready", flush=True)
    stops = torch.zeros(1)
    while stops.item() < 2:
        stops.fill_(len(stop))
        dist.all_reduce(stops)
    print(rank, stop, int(stops.item()))
    """
    program = written(folder, BEGIN + text)
    command = [sys.executable, "-m", "torchemu", "run", "--nproc-per-node", "3", program]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None
        assert run.stdout.readline() == "ready\n"
        run.terminate()
        out, _ = run.communicate(timeout=120)
        return run.returncode, sorted(out.replace("ready\n", "").splitlines())


def test_a_signal_from_outside_comes_to_ranks_that_are_at_work(tmp_path: Path) -> None:
    assert killed(tmp_path, "") == (0, ["0 [0] 2", "1 [] 2", "2 [2] 2"])


def test_a_signal_ends_the_run_where_handlers_are_gone(tmp_path: Path) -> None:
    assert killed(tmp_path, "signal.signal(signal.SIGTERM, signal.SIG_DFL)") == (-15, [])


@pytest.mark.parametrize(
    ("statement", "error"),
    [
        ("signal.signal(signal.SIGKILL, print)", "OSError: [Errno 22] Invalid argument"),
        ("signal.signal(99, print)", "ValueError: signal number out of range"),
        (
            "signal.signal(signal.SIGTERM, 3.5)",
            "TypeError: signal handler must be signal.SIG_IGN, signal.SIG_DFL, or ",
        ),
        ("os.kill(1 << 23, 0)", "ProcessLookupError: [Errno 3] No such process"),
        ("os.kill(os.getpid(), signal.SIGSTOP)", "NotImplementedError: SIGSTOP: a rank cannot be stopped, only ended"),
    ],
)
def test_misuse(tmp_path: Path, statement: str, error: str) -> None:
    outcome = ranks(tmp_path, f"\n    {statement}")
    assert f"[rank0]: {error}" in outcome.err


def test_a_program_ends_what_it_has_spawned(tmp_path: Path) -> None:
    text = """
    import torch.multiprocessing as mp

    def wait(r):
        assert os.getppid() == mp.parent_process().pid and os.getpid() == mp.current_process().pid
        mp.Event().wait()

    if __name__ == "__main__":
        context = mp.spawn(wait, nprocs=2, join=False)
        os.kill(context.pids()[1], signal.SIGTERM)
        try:
            context.join()
        except mp.ProcessExitedException as error:
            print(str(error).splitlines()[0], error.exit_code)
        child = mp.Process(target=wait, args=(0,))
        child.start()
        os.kill(child.pid, signal.SIGKILL)
        child.join()
        print(child.exitcode)
    """
    assert lines(ranks(tmp_path, text, nproc=1)) == ["-9", "process 1 terminated with signal SIGTERM -15"]


@pytest.mark.parametrize("call", ["os.kill(0, signal.SIGTERM)", "os.killpg(0, 15)", "os.killpg(os.getpgrp(), 15)"])
def test_a_process_group_is_the_ranks(tmp_path: Path, call: str) -> None:
    text = f"""
    import torch.distributed as dist
    dist.init_process_group()
    if rank == 1:
        {call}
    dist.barrier()
    print("goes on")
    """
    outcome = ranks(tmp_path, text)
    assert (outcome.status, outcome.out) == (1, "")
    assert "  rank      : 1 (local_rank: 1)\n  exitcode  : -15\n" in outcome.err
    for r in (0, 2):
        assert f"rank {r}: Signal 15 (SIGTERM) received by PID {(1 << 22) + r}\n" in outcome.err
    assert ranks(tmp_path, "\n    os.kill(0, 0)\n    print('all are there')").out.count("all are there") == 3


PSUTIL = """
    import os

    class Process:
        def __init__(self, pid=None):
            self.pid = os.getpid() if pid is None else pid
            assert os.path.exists(f"/proc/{self.pid}"), "no such process"
"""


def test_psutil_takes_a_ranks_number_for_the_process(tmp_path: Path) -> None:
    written(tmp_path, PSUTIL, "site-packages/psutil.py")
    text = f"""
    sys.path.insert(0, {str(tmp_path / "site-packages")!r})
    import psutil
    assert psutil.Process(os.getpid()).pid == psutil.Process().pid == os.getppid()
    assert psutil.Process(1).pid == 1
    """
    try:
        assert ranks(tmp_path, text) == Outcome(0, "", "")
        with pytest.raises(AssertionError, match="no such process"):
            sys.modules["psutil"].Process(1 << 22)
    finally:
        sys.modules.pop("psutil", None)


LISTENING = """
    import os, signal, threading, traceback
    import torch

    class Errors:
        def __init__(self, queue):
            self.queue, self.pids = queue, []
            threading.Thread(target=self.listen, daemon=True).start()
            signal.signal(signal.SIGUSR1, self.hear)

        def listen(self):
            self.queue.put(self.queue.get())
            os.kill(os.getpid(), signal.SIGUSR1)

        def hear(self, number, frame):
            for pid in self.pids:
                os.kill(pid, signal.SIGINT)
            raise RuntimeError(self.queue.get())

    def work(rank, queue, waits):
        try:
            torch.distributed.init_process_group("gloo", init_method="tcp://localhost:1", rank=rank, world_size=2)
            if rank == 0:
                raise ValueError("of rank 0")
            if waits:
                torch.distributed.barrier()
        except Exception:
            queue.put(traceback.format_exc().splitlines()[-1])

    if __name__ == "__main__":
        context = torch.multiprocessing.get_context("spawn")
        queue = context.SimpleQueue()
        errors = Errors(queue)
        processes = [context.Process(target=work, args=(rank, queue, {waits})) for rank in range(2)]
        for process in processes:
            process.start()
            errors.pids.append(process.pid)
        for process in processes:
            process.join()
        print("all is well")
"""
"""A program that learns of errors of its processes by a thread, as those of fairseq's and OpenNMT's do."""


@pytest.mark.parametrize("waits", [False, True])
def test_a_program_hears_of_a_processs_error_before_it_has_joined_it(tmp_path: Path, waits: bool) -> None:
    outcome = launch("--nproc-per-node", "1", written(tmp_path, LISTENING.replace("{waits}", str(waits))))
    assert outcome.status == 1 and "RuntimeError: ValueError: of rank 0\n" in outcome.err
    assert "all is well" not in outcome.out and "deadlock" not in outcome.err


def test_a_process_that_has_ended_has_its_number_until_it_is_joined(tmp_path: Path) -> None:
    text = """
    import os, time
    import torch

    if __name__ == "__main__":
        process = torch.multiprocessing.get_context("spawn").Process(target=int)
        process.start()
        while process.is_alive():
            time.sleep(0.001)
        os.kill(process.pid, 0)
        os.kill(process.pid, 15)
        process.join()
        try:
            os.kill(process.pid, 0)
        except ProcessLookupError:
            print(process.exitcode, "is nobody")
    """
    outcome = launch("--nproc-per-node", "1", "--virtual-clock", written(tmp_path, text))
    assert (outcome.status, lines(outcome)) == (0, ["0 is nobody"]), outcome.err
