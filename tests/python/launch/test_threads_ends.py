"""Threads of ranks: how they end, and their ranks."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from launch import lines, written
from threaded import ran


def test_a_failing_thread_is_its_own_affair(tmp_path: Path) -> None:
    text = """
        threading.excepthook = lambda args: print(rank, args.exc_type.__name__, args.thread.name)
        def fails():
            dist.all_reduce("no tensor")
        together(fails)
        dist.barrier()
        print(rank, "goes on")
    """
    outcome = ran(tmp_path, text, nproc=2)
    name = "Thread-1 (fails)"
    assert lines(outcome) == [f"0 TypeError {name}", "0 goes on", f"1 TypeError {name}", "1 goes on"]


def test_a_rank_that_fails_waits_for_no_thread(tmp_path: Path) -> None:
    text = """
        def lasts():
            try:
                while True:
                    time.sleep(1)
            finally:
                print("nobody sees this")
        threading.Thread(target=lasts).start()
        if rank == 1:
            raise ValueError("on purpose")
        dist.barrier()
    """
    outcome = ran(tmp_path, text)
    assert outcome.status == 1 and outcome.out == ""
    assert "ValueError: on purpose" in outcome.err and "Exception in" not in outcome.err


def test_idle_workers_end_in_silence_when_a_rank_fails(tmp_path: Path) -> None:
    text = """
        pool = ThreadPoolExecutor(2)
        list(pool.map(abs, range(4)))
        from multiprocessing.pool import ThreadPool
        other = ThreadPool(2)
        raise ValueError("on purpose")
    """
    outcome = ran(tmp_path, text, nproc=1)
    assert outcome.status == 1 and outcome.err.count("Traceback") == 1


@pytest.mark.parametrize(("how", "code"), [("os._exit(7)", 7), ("os.kill(os.getpid(), 9)", -9)])
def test_a_thread_may_end_its_rank(tmp_path: Path, how: str, code: int) -> None:
    text = f"""
        def ends():
            if rank == 1:
                {how}
                print("never")
        together(ends)
        dist.barrier()
    """
    outcome = ran(tmp_path, text)
    assert outcome.status == 1 and f"exitcode  : {code}" in outcome.err and outcome.out == ""
    assert "  rank      : 1 " in outcome.err


def test_sigint_of_a_thread_is_for_the_main_program(tmp_path: Path) -> None:
    text = """
        import _thread
        def interrupt():
            time.sleep(0.001)
            _thread.interrupt_main()
            print("the thread goes on")
        threading.Thread(target=interrupt).start()
        try:
            threading.Event().wait()
        except KeyboardInterrupt:
            print("interrupted")
    """
    assert lines(ran(tmp_path, text, nproc=1)) == ["interrupted", "the thread goes on"]


@pytest.mark.slow
@pytest.mark.parametrize(("busy", "printed"), [("time.sleep(1e-3)", "stop\n"), ("for _ in forever: pass", "")])
def test_ctrl_c_is_for_the_main_program(tmp_path: Path, busy: str, printed: str) -> None:
    """It gets it where it waits. While a thread never waits the process ends, as ever."""
    program = written(
        tmp_path,
        f"""
        import itertools, threading, time
        forever = itertools.repeat(0)
        def work():
            print("go", flush=True)
            while True:
                {busy}
        try:
            threading.Thread(target=work).start()
            while True:
                time.sleep(1e-3)
        finally:
            print("stop")
        """,
    )
    command = [sys.executable, "-m", "torchemu", "run", "--nproc-per-node", "1", program]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None and run.stdout.readline() == "go\n"
        run.send_signal(signal.SIGINT)
        out, err = run.communicate(timeout=60)
    assert (out, run.returncode) == (printed, 130)
    place = f" while rank 0 was at {re.escape(str(program))}:[0-9]+ in <module>"  # unless all slept just then
    assert re.fullmatch(f"interrupted({place})?\n", err), err


INTERRUPTED_EXCHANGE = """
import os, signal, sys
from torchemu.launch import cli
from torchemu.runtime import thread_state

class Interrupted:
    calls = 0

    def first(self):
        return None

    save = first

    def restore(self, value):
        self.calls += 1
        if self.calls == 20:
            os.kill(os.getpid(), signal.SIGINT)
            for _ in range(100):  # Python handles the signal here
                pass

thread_state.KEPT.append(Interrupted())
sys.exit(cli.main(["run", "--nproc-per-node", "1", sys.argv[1]]))
"""


def test_ctrl_c_waits_for_the_exchange_of_two_threads(tmp_path: Path) -> None:
    """All that a thread has of its own is exchanged, or nothing: its end could not find it."""
    program = written(
        tmp_path,
        """
        import threading, time
        def work():
            while True:
                time.sleep(1e-3)
        try:
            threading.Thread(target=work).start()
            while True:
                time.sleep(1e-3)
        finally:
            print("stop")
        """,
    )
    command = [sys.executable, "-c", INTERRUPTED_EXCHANGE, program]
    run = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (run.stdout, run.returncode) == ("stop\n", 130), run.stderr
    assert run.stderr.startswith("interrupted"), run.stderr


def test_a_killed_ranks_threads_are_killed(tmp_path: Path) -> None:
    (tmp_path / "faults.yaml").write_text("faults: [{kill: 1, at: 3e6}]\n")
    text = """
        def waits():
            try:
                threading.Event().wait()
            except Exception:
                print("an error that programs see")
        threading.Thread(target=waits, daemon=True).start()
        try:
            dist.all_reduce(torch.ones(1))
            time.sleep(0.01)
            t = torch.ones(1)
            dist.all_reduce(t)
            t.item()
        except dist.DistBackendError as error:
            print(rank, "rank 1 was killed" in str(error))
    """
    outcome = ran(tmp_path, text, "--virtual-clock", "--faults", str(tmp_path / "faults.yaml"))
    assert sorted(outcome.out.splitlines()) == ["0 True", "2 True"], outcome


def test_a_heartbeat_of_the_parent_hides_no_deadlock(tmp_path: Path) -> None:
    text = """
        import torch.multiprocessing as mp

        def child(rank):
            dist.init_process_group("gloo", rank=rank, world_size=2)
            if rank == 0:
                dist.recv(torch.ones(1), 1)

        def beat():
            while True:
                time.sleep(1)

        if __name__ == "__main__":
            threading.Thread(target=beat, daemon=True).start()
            mp.spawn(child, nprocs=2)
    """
    outcome = ran(tmp_path, text, nproc=1, backend="")
    assert outcome.status == 1 and "DeadlockError: deadlock at simulated time 60s" in outcome.err
    assert "likely cause: rank 1 ended without sending to rank 0" in outcome.err
