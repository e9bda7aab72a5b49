"""Ranks as processes: Process, spawn without join, start methods, and what is raised when ranks fail."""

from __future__ import annotations

import importlib
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

import pytest
from conftest import OpenWorld
from ranks import SIXTY_FOUR, on_ranks

import torchemu as torch
import torchemu.distributed as dist
import torchemu.multiprocessing as mp
from torchemu.runtime.waiting import host_time

pytestmark = pytest.mark.shows("PyTorch: torch.multiprocessing")

SECOND = 10**12


@pytest.fixture(autouse=True)
def _world(open_world: OpenWorld) -> None:
    open_world(SIXTY_FOUR)


def started(*targets: Any, **options: Any) -> list[mp.Process]:
    """Processes of these functions."""
    processes = [mp.Process(target=target, **options) for target in targets]
    for process in processes:
        process.start()
    return processes


class TestProcess:
    @pytest.mark.parametrize("world_size", [1, 2, 7, 64])
    def test_the_way_of_pytorchs_tutorial(self, world_size: int) -> None:
        results = mp.Queue()

        def run(rank: int, size: int) -> None:
            dist.init_process_group("gloo", rank=rank, world_size=size)
            t = torch.full((2,), float(rank))
            dist.all_reduce(t)
            results.put((rank, t.tolist()))

        processes = [mp.Process(target=run, args=(rank, world_size)) for rank in range(world_size)]
        for process in processes:
            process.start()
        for process in processes:
            process.join()
        total = float(sum(range(world_size)))
        assert sorted(results.get() for _ in processes) == [(r, [total, total]) for r in range(world_size)]
        assert [process.exitcode for process in processes] == [0] * world_size

    def test_the_parent_talks_to_its_processes(self) -> None:
        there, back = mp.Queue(), mp.Queue()

        def double() -> None:
            while (n := there.get()) is not None:
                back.put(2 * n)

        processes = started(double, double)
        for n in range(6):
            there.put(n)
        assert sorted(back.get() for _ in range(6)) == [0, 2, 4, 6, 8, 10]
        assert [p.is_alive() for p in processes] == [True, True]
        assert mp.active_children() == processes
        for _ in processes:
            there.put(None)
        for process in processes:
            process.join()
        assert [p.is_alive() for p in processes] == [False, False]
        assert mp.active_children() == []

    def test_one_after_the_other(self) -> None:
        seen = []
        for i in range(3):
            (process,) = started(lambda i=i: seen.append((i, mp.current_process()._identity)))
            process.join()
        assert seen == [(0, (1,)), (1, (1,)), (2, (1,))]

    def test_one_that_fails_does_not_concern_the_others(self, capfd: pytest.CaptureFixture[str]) -> None:
        barrier = mp.Barrier(2)

        def fail() -> None:
            raise LookupError("gone")

        def leave(status: Any = 7) -> None:
            sys.exit(status)

        def go_on() -> None:
            mp.Event().wait(timeout=1)
            barrier.wait()

        processes = started(fail, leave, lambda: leave("message"), lambda: leave(0), go_on, go_on)
        for process in processes:
            process.join()
        assert [process.exitcode for process in processes] == [1, 7, 1, 0, 0, 0]
        shown = capfd.readouterr().err
        assert shown.startswith("Process Process-1:\nTraceback (most recent call last):\n")
        assert shown.endswith("LookupError: gone\n")
        assert shown.count("Traceback") == 1

    def test_a_deadlock_ends_those_that_are_in_it(self, capfd: pytest.CaptureFixture[str]) -> None:
        event = mp.Event()
        processes = started(event.wait, lambda: None)
        processes[0].join()
        assert [process.exitcode for process in processes] == [1, 0]
        assert "DeadlockError: deadlock at simulated time" in capfd.readouterr().err

    def test_join_with_a_timeout(self) -> None:
        event = mp.Event()
        (process,) = started(event.wait)
        before = host_time()
        process.join(timeout=2)
        assert (process.exitcode, host_time() - before) == (None, 2 * SECOND)
        event.set()
        process.join(timeout=2)
        assert process.exitcode == 0

    def test_terminate(self) -> None:
        log = []

        def wait() -> None:
            try:
                mp.Event().wait()
            finally:
                log.append("finally")

        processes = started(wait, wait, lambda: log.append("ran"))
        processes[0].join(timeout=1)
        processes[0].terminate()
        processes[1].kill()
        processes[2].join()
        assert [process.exitcode for process in processes] == [-15, -9, 0]
        assert log == ["ran", "finally", "finally"]

    def test_start_another_after_all_were_terminated(self) -> None:
        (process,) = started(mp.Event().wait)
        process.join(timeout=1)
        process.terminate()
        process.join()
        (other,) = started(lambda: None)
        other.join()
        assert (process.exitcode, other.exitcode) == (-15, 0)

    def test_terminate_before_it_ran(self) -> None:
        log: list[str] = []
        processes = started(lambda: log.append("a"), lambda: log.append("b"))
        processes[0].terminate()
        processes[1].join()
        assert (log, [process.exitcode for process in processes]) == (["b"], [-15, 0])

    def test_only_the_parent_can_end_or_join_it(self) -> None:
        def program() -> None:
            for do in (mp.current_process().terminate, mp.current_process().join):
                with pytest.raises(AssertionError, match="a child process"):
                    do()
            assert mp.current_process().is_alive()
            assert mp.parent_process().name == "MainProcess"  # type: ignore[union-attr]

        (process,) = started(program)
        process.join()
        assert process.exitcode == 0

    def test_a_subclass_may_run_what_it_likes(self) -> None:
        q = mp.Queue()

        class Worker(mp.Process):
            def __init__(self, n: int) -> None:
                super().__init__(name=f"worker {n}", daemon=True)
                self.n = n

            def run(self) -> None:
                q.put((self.n, mp.current_process().name))

        workers = [Worker(n) for n in range(2)]
        for worker in workers:
            worker.start()
        assert [q.get() for _ in workers] == [(0, "worker 0"), (1, "worker 1")]

    def test_a_process_has_the_name_of_its_class(self) -> None:
        class Worker(mp.Process):
            pass

        class Own(multiprocessing.Process):
            pass

        for kind, wanted in ((mp.Process, multiprocessing.Process), (Worker, Own)):
            assert kind().name.partition("-")[0] == kind.__name__
            assert wanted().name.partition("-")[0] == wanted.__name__  # as with Python's
        for method in ("spawn", "fork"):
            names = [context.get_context(method).Process().name.partition("-")[0] for context in (mp, multiprocessing)]
            assert names[0] == names[1] == f"{method.title()}Process"
        assert Worker(name="a").name == "a"

    def test_what_it_says_of_itself(self) -> None:
        process = mp.Process(target=print, kwargs={"end": ""})
        assert (process.pid, process.exitcode, process.is_alive()) == (None, None, False)
        assert repr(process) == "<Process name='Process-1' rank=-1 initial>"
        process.start()
        assert repr(process) == "<Process name='Process-1' rank=0 started>"
        process.join()
        assert process.pid == process.ident == process.sentinel
        assert process.pid is not None and process.exitcode == 0
        with pytest.raises(ProcessLookupError):
            os.kill(process.pid, 0)  # to the system it is nobody
        assert repr(process) == "<Process name='Process-1' rank=0 stopped>"
        process.close()
        process.close()
        assert repr(process) == "<Process name='Process-1' rank=0 closed>"
        for do in (process.is_alive, process.join, lambda: process.exitcode):
            with pytest.raises(ValueError, match="process object is closed"):
                do()
        assert mp.current_process().name == "MainProcess"
        assert mp.current_process().pid == os.getpid()
        assert mp.parent_process() is None

    def test_it_goes_to_its_rank_without_what_it_is_there(self) -> None:
        (process,) = started(None)
        copy = pickle.loads(pickle.dumps(process))
        assert (copy.name, copy.pid) == (process.name, None)
        process.join()

    def test_misuse(self) -> None:
        process = mp.Process()
        with pytest.raises(AssertionError, match="can only join a started process"):
            process.join()
        with pytest.raises(AssertionError, match="group argument must be None for now"):
            mp.Process(group=3)  # type: ignore[arg-type]
        process.start()
        with pytest.raises(AssertionError, match="cannot start a process twice"):
            process.start()
        with pytest.raises(ValueError, match="Cannot close a process while it is still running"):
            process.close()
        event = mp.Event()
        (other,) = started(event.wait)
        other.join(timeout=1)
        with pytest.raises(NotImplementedError, match="start all first, or wait until all have ended"):
            started(print)
        other.terminate()


class TestSpawnWithoutJoin:
    @pytest.fixture
    def files(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        """Where files go that are nobody's in particular."""
        folder = tmp_path / "temporary"
        folder.mkdir()
        monkeypatch.setattr(tempfile, "tempdir", str(folder))
        return folder

    @pytest.mark.parametrize("world_size", [1, 2, 7])
    def test_join_later(self, world_size: int) -> None:
        number, event = mp.Value("i", 0), mp.Event()

        def program(rank: int, amount: int) -> None:
            event.wait()
            with number.get_lock():
                number.value += amount

        context = mp.spawn(program, (5,), world_size, join=False)
        assert isinstance(context, mp.ProcessContext)
        assert len(context.sentinels) == len(context.error_files) == world_size
        assert context.join(timeout=1) is False
        assert number.value == 0
        event.set()
        while not context.join():
            pass
        assert context.join() is True
        assert number.value == 5 * world_size
        assert context.pids() == [p.pid for p in context.processes] and len(set(context.pids())) == world_size
        assert [p.exitcode for p in context.processes] == [0] * world_size
        assert context.sentinels == {}

    @pytest.mark.parametrize("nprocs", [0, -1])
    def test_nobody(self, nprocs: int) -> None:
        """Nothing is called, so nothing need be callable."""
        assert mp.spawn(None, nprocs=nprocs) is None  # type: ignore[arg-type]
        context = mp.spawn(print, nprocs=nprocs, join=False)
        assert context is not None
        assert context.join() is True
        assert context.processes == context.error_files == context.pids() == []

    def test_error_files(self, files: Path) -> None:
        """A traceback for each rank that raised; not for those that exited, or were unwound."""

        def program(rank: int) -> None:
            if rank == 1:
                raise LookupError("gone")
            if rank == 2:
                sys.exit(3)
            mp.Event().wait()

        context = mp.spawn(program, nprocs=4, join=False)
        assert context is not None
        assert len(set(context.error_files)) == 4 and not any(files.iterdir())
        with pytest.raises(mp.ProcessRaisedException) as caught:
            context.join()
        assert [str(file) for file in files.iterdir()] == [context.error_files[1]]
        with open(context.error_files[1], "rb") as file:
            text = pickle.load(file)
        assert text.startswith("Traceback") and text.endswith("LookupError: gone\n") and text in str(caught.value)

    def test_no_files_without_a_context(self, files: Path) -> None:
        with pytest.raises(mp.ProcessRaisedException):
            mp.spawn(lambda rank: 1 // rank, nprocs=2)
        assert not any(files.iterdir())

    def test_join_returns_when_one_has_ended(self) -> None:
        context = mp.spawn(lambda rank: mp.Event().wait(timeout=3 - rank), nprocs=3, join=False)
        assert context is not None
        for left in ([0, 1], [0], []):
            assert context.join() is (not left)
            assert list(context.sentinels.values()) == left
            assert [r for r, p in enumerate(context.processes) if p.exitcode is None] == left

    @pytest.mark.parametrize(("grace", "ends"), [(None, []), (0.5, []), (1.5, [0]), (5, [0, 2])])
    def test_grace(self, grace: float | None, ends: list[int]) -> None:
        """Rank 1 fails at once, ranks 0 and 2 would end after one and after two seconds."""
        ended = []

        def program(rank: int) -> None:
            if rank == 1:
                raise LookupError("gone")
            mp.Event().wait(timeout=1 if rank == 0 else 2)
            ended.append(rank)

        context = mp.spawn(program, nprocs=3, join=False)
        assert context is not None
        before = host_time()
        with pytest.raises(mp.ProcessRaisedException, match=r"-- Process 1 terminated with the following error:"):
            context.join(grace_period=grace)
        assert ended == ends
        assert [p.exitcode for p in context.processes] == [0 if 0 in ends else -15, 1, 0 if 2 in ends else -15]
        assert host_time() - before == pytest.approx(min(grace or 0, 2) * SECOND, abs=SECOND // 1000)
        assert context.join()

    def test_failures_come_with_join(self) -> None:
        def program(rank: int) -> None:
            if rank == 1:
                raise LookupError("gone")
            mp.Event().wait()

        context = mp.start_processes(program, nprocs=3, join=False)
        assert context is not None
        with pytest.raises(mp.ProcessRaisedException, match=r"-- Process 1 terminated with the following error:"):
            context.join()
        assert context.join() and context.join()  # it has said so
        assert [p.exitcode for p in context.processes] == [-15, 1, -15]

    def test_the_program_may_wait_for_something_else(self) -> None:
        store = dist.HashStore()
        context = mp.spawn(lambda rank: store.add("n", rank), nprocs=4, join=False)
        while store.add("n", 0) < 6:
            pass
        assert context is not None
        while not context.join():
            pass

    @pytest.mark.parametrize(("end", "name"), [("terminate", "SIGTERM"), ("kill", "SIGKILL")])
    def test_one_that_is_ended_fails(self, end: str, name: str) -> None:
        context = mp.spawn(lambda rank: mp.Event().wait(), nprocs=2, join=False)
        assert context is not None
        assert context.join(timeout=1) is False
        getattr(context.processes[1], end)()
        with pytest.raises(mp.ProcessExitedException, match=f"^process 1 terminated with signal {name}") as caught:
            context.join()
        error = caught.value
        number = int(getattr(signal, name))
        assert (error.exit_code, error.signal_name, error.pid) == (-number, name, context.pids()[1])
        assert [p.exitcode for p in context.processes] == [-15, -number]


class TestFailures:
    def test_an_exit_status(self) -> None:
        def program(rank: int) -> None:
            if rank == 2:
                sys.exit(9)
            mp.Event().wait()

        with pytest.raises(mp.ProcessExitedException, match=r"^process 2 terminated with exit code 9") as caught:
            mp.spawn(program, nprocs=4)
        error = caught.value
        assert (error.exit_code, error.signal_name, error.error_index) == (9, None, 2)
        assert isinstance(error, mp.SpawnException)
        assert [(f.rank, f.pid) for f in error.errors] == [(2, error.pid)]

    @pytest.mark.parametrize(
        "left", [SystemExit(True), SystemExit("a word"), BaseException("no Exception"), GeneratorExit()]
    )
    def test_what_is_no_exception_is_an_exit_with_1(self, left: BaseException) -> None:
        def program(rank: int) -> None:
            raise left

        with pytest.raises(mp.ProcessExitedException, match=r"^process 0 terminated with exit code 1\n") as caught:
            mp.spawn(program, nprocs=2)
        assert caught.value.exit_code == 1 and caught.value.exit_code is not True

    def test_an_interrupt_of_its_own_is_a_good_end(self) -> None:
        def program(rank: int) -> None:
            if rank != 1:
                raise KeyboardInterrupt
            mp.Event().wait(timeout=1)

        context = mp.spawn(program, nprocs=3, join=False)
        assert context is not None
        while not context.join():
            pass
        assert [p.exitcode for p in context.processes] == [0, 0, 0]

    def test_exceptions_go_to_other_processes(self) -> None:
        """By pickle, as PyTorch's do: without the ranks' own exceptions."""

        def raised(how: Any) -> Any:
            with pytest.raises(mp.ProcessException) as caught:
                mp.spawn(lambda rank: how(), nprocs=1)
            return caught.value

        for error, kind in (
            (raised(lambda: [][0]), mp.ProcessRaisedException),
            (raised(lambda: sys.exit(5)), mp.ProcessExitedException),
        ):
            copy = pickle.loads(pickle.dumps(error))
            assert type(copy) is kind and str(copy) == copy.msg == error.msg
            assert (copy.error_index, copy.error_pid, copy.pid) == (0, error.error_pid, error.pid)
            if kind is mp.ProcessExitedException:
                assert (copy.exit_code, copy.signal_name) == (5, None)

    def test_exceptions_of_programs(self) -> None:
        raised = mp.ProcessRaisedException("text", 1, 2)
        assert (str(raised), raised.msg, raised.error_index, raised.error_pid) == ("text", "text", 1, 2)
        exited = mp.ProcessExitedException("text", error_index=1, error_pid=2, exit_code=3, signal_name="SIGHUP")
        assert (exited.exit_code, exited.signal_name, exited.args) == (3, "SIGHUP", ("text",))
        assert mp.ProcessExitedException("text", 1, 2, 3).signal_name is None

    def test_the_earliest_in_simulated_time_comes_first(self) -> None:
        def program(rank: int) -> None:
            mp.Event().wait(timeout=1 if rank == 3 else 2)
            raise LookupError(f"rank {rank}")

        with pytest.raises(mp.ProcessRaisedException) as caught:
            mp.spawn(program, nprocs=4)
        assert (caught.value.error_index, [f.rank for f in caught.value.errors]) == (3, [3])  # type: ignore[attr-defined]

    def test_spawn_inside_a_rank(self) -> None:
        def program(rank: int) -> str:
            with pytest.raises(RuntimeError, match="each process has a device of its own") as caught:
                mp.spawn(print, nprocs=1)
            return str(caught.value)

        assert len(set(on_ranks(2, program))) == 1


def test_the_module_and_the_function_of_one_name() -> None:
    module = importlib.import_module("torchemu.multiprocessing.spawn")
    assert module.spawn is mp.spawn
    assert module.ProcessRaisedException is mp.ProcessRaisedException


class TestStartMethods:
    def test_contexts(self) -> None:
        for method in mp.get_all_start_methods():
            context = mp.get_context(method)
            assert context.get_start_method() == method
            assert context.Queue is mp.Queue
            assert issubclass(context.Process, mp.Process) and context.Process._start_method == method
            assert context.get_context().get_start_method() == method
        assert mp.get_context().get_start_method() == "fork"
        with pytest.raises(ValueError, match="cannot find context for 'teleport'"):
            mp.get_context("teleport")

    def test_every_rank_chooses_for_itself(self) -> None:
        def program(rank: int) -> list[Any]:
            answers: list[Any] = [mp.get_start_method(allow_none=True), mp.get_start_method()]
            mp.set_start_method("fork" if rank else "forkserver")
            with pytest.raises(RuntimeError, match="context has already been set"):
                mp.set_start_method("spawn")
            return [*answers, mp.get_start_method()]

        assert on_ranks(2, program) == [[None, "fork", "forkserver"], [None, "fork", "fork"]]
        mp.set_start_method("fork", force=True)
        mp.set_start_method(None, force=True)
        with pytest.raises(ValueError, match="cannot find context for 'no'"):
            mp.set_start_method("no")

    def test_spawn_warns_of_others(self) -> None:
        with pytest.warns(FutureWarning, match=r"This method only supports start_method=spawn \(got: fork\)"):
            mp.spawn(lambda rank: None, nprocs=1, start_method="fork")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            mp.start_processes(lambda rank: None, nprocs=1, start_method="fork")

    def test_sharing_strategies(self) -> None:
        assert mp.get_sharing_strategy() in mp.get_all_sharing_strategies()
        mp.set_sharing_strategy("file_system")
        assert mp.get_sharing_strategy() == "file_system"
        with pytest.raises(AssertionError, match="invalid sharing strategy 'pigeon'"):
            mp.set_sharing_strategy("pigeon")

    def test_what_needs_nothing(self) -> None:
        mp.freeze_support()
        mp.allow_connection_pickling()
        mp.set_forkserver_preload(["os"])
        assert mp.cpu_count() == multiprocessing.cpu_count()
        assert mp.TimeoutError is multiprocessing.TimeoutError


def test_processes_that_nobody_waits_for_run_when_the_program_ends(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import torchemu.multiprocessing as mp\n"
        "for n in range(2):\n"
        "    mp.Process(target=print, args=('process', n)).start()\n"
        "mp.Process(target=print, args=('daemon',), daemon=True).start()\n"
        "mp.spawn(print, nprocs=2, join=False)\n"
        "print('end')\n"
    )
    run = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=60)
    assert (run.stderr, run.returncode) == ("", 0)
    first, *rest = run.stdout.splitlines()
    assert first == "end"
    assert sorted(rest) == ["0", "1", "daemon", "process 0", "process 1"]
