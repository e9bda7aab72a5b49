"""Ranks that a program starts itself: what they know of it, and what is their own."""

from __future__ import annotations

import multiprocessing
from pathlib import Path

import pytest
from launch import launch, lines, written


def test_spawned_ranks_load_the_program_anew(tmp_path: Path) -> None:
    text = """
        import os, random, sys
        import torch
        import torch.distributed as dist
        import torch.multiprocessing as mp
        import library

        state = []
        if __name__ == "__main__":
            state.append("guarded")

        class Job:
            def __init__(self, number):
                self.number = number

            def run(self, rank, shared):
                assert (type(self) is Job) == (Job.__module__ == "__mp_main__")

        def work(rank, job, jobs, shared, kept):
            state.append(rank)
            library.state.append(rank)
            assert isinstance(job, Job) and job.number == 5 and isinstance(jobs["a"][0], Job)
            assert __name__ == "__mp_main__" and sys.modules["__main__"] is sys.modules["__mp_main__"]
            dist.init_process_group("gloo", world_size=4, rank=rank)
            tensor = torch.ones(1)
            dist.all_reduce(tensor)
            assert tensor.item() == 4 and state == library.state == [rank] and os.environ["SET"] == "before"
            os.environ["SET"] = "after"
            shared[rank] = rank
            kept.append(random.random())

        if __name__ == "__main__":
            os.environ["SET"] = "before"
            library.state.append("parent")
            shared, kept = torch.zeros(4), [lambda: "cannot be pickled"]
            mp.spawn(work, (Job(5), {"a": [Job(6)]}, shared, kept), nprocs=4)
            assert state == ["guarded"] and library.state == ["parent"] and os.environ["SET"] == "before"
            assert shared.tolist() == [0, 1, 2, 3] and len(set(kept[1:])) == 4
            print("done")
    """
    written(tmp_path, "state = []", "library.py")
    outcome = launch("--nproc-per-node", "1", written(tmp_path, text))
    assert lines(outcome) == ["done"]


def test_spawned_ranks_have_the_arguments_and_path(tmp_path: Path) -> None:
    """They are those of the rank that spawns them, as it has them then; what each changes is its own."""
    text = """
        import os, sys
        import torch.multiprocessing as mp

        def work(number, path):
            assert sys.argv[1:] == ["--steps", "3", "more"] and sys.path == path, (sys.argv, sys.path)
            assert path[:2] == ["elsewhere", os.path.dirname(__file__)]
            sys.argv.append(number)

        if __name__ == "__main__":
            assert sys.argv[1:] == ["--steps", "3"]
            sys.argv.append("more")
            sys.path.insert(0, "elsewhere")
            mp.spawn(work, (list(sys.path),), nprocs=3)
            mp.Process(target=work, args=(0, list(sys.path))).start()
    """
    outcome = launch("--nproc-per-node", "1", written(tmp_path, text), "--steps", "3")
    assert (outcome.status, outcome.err) == (0, "")


def test_spawned_ranks_have_copies_of_their_arguments(tmp_path: Path) -> None:
    """Of all but tensors, which are shared, and what tells ranks of each other."""
    text = """
        import numpy as np
        import torch
        import torch.distributed as dist
        import torch.multiprocessing as mp

        def work(rank, settings, rows, array, tensors, queue):
            dist.init_process_group("gloo", world_size=3, rank=rank)
            settings["rank"] = rank
            settings["inner"].add(rank)
            rows.append(rank)
            array += rank
            tensors["both"][rank] += 1
            dist.barrier()
            assert settings == {"rank": rank, "inner": {rank}} and rows == [rank] and (array == rank).all()
            queue.put(rank)

        if __name__ == "__main__":
            shared, queue = torch.zeros(3), mp.Queue()
            given = {"inner": set()}, [], np.zeros(2), {"both": shared}, queue
            mp.spawn(work, given, nprocs=3)
            processes = [mp.Process(target=work, args=(rank, *given)) for rank in range(3)]
            for process in processes:
                process.start()
            for process in processes:
                process.join()
            assert [process.exitcode for process in processes] == [0] * 3
            assert given[:2] == ({"inner": set()}, []) and not given[2].any()
            assert shared.tolist() == [2.0] * 3 and sorted(queue.get() for _ in range(6)) == [0, 0, 1, 1, 2, 2]
    """
    outcome = launch("--nproc-per-node", "1", written(tmp_path, text))
    assert (outcome.status, outcome.err) == (0, "")


def test_spawned_ranks_of_functions_that_cannot_be_pickled(tmp_path: Path) -> None:
    text = """
        import torch.multiprocessing as mp
        if __name__ == "__main__":
            seen = []
            mp.spawn(lambda rank, word: seen.append((rank, word)), ("a",), nprocs=3)
            assert seen == [(0, "a"), (1, "a"), (2, "a")]
    """
    assert lines(launch("--nproc-per-node", "1", written(tmp_path, text))) == []


def test_processes_that_a_rank_starts(tmp_path: Path) -> None:
    text = """
        import torch.multiprocessing as mp
        state = []

        def work(number):
            state.append(number)
            assert state == [number] and __name__ == "__mp_main__"
            print("worked", number)

        if __name__ == "__main__":
            mp.set_start_method("spawn")
            state.append("parent")
            for number in range(3):
                mp.Process(target=work, args=(number,)).start()
            print("ends", state)
    """
    outcome = launch("--nproc-per-node", "1", written(tmp_path, text))
    assert (outcome.status, outcome.err) == (0, "")
    assert outcome.out.splitlines() == ["ends ['parent']", "worked 0", "worked 1", "worked 2"]


FORKED = """
    import threading
    import numpy as np
    import torch
    import torch.distributed as dist
    import torch.multiprocessing as mp
    from torch import nn

    print("loaded")
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(2, 1, bias=False)
        def forward(self, x):
            return self.layer(x) * scale
    state, array, scale = [], np.zeros(2), 1
    model = Net()

    def work(rank, size):
        dist.init_process_group("gloo", rank=rank, world_size=size)
        state.append(rank)
        array[0] = rank
        with torch.no_grad():
            model.layer.weight += rank
        optimizer.param_groups[0]["lr"] += rank
        tables["rows"].append(rank)
        dist.barrier()
        assert state == ["parent", rank] and array.tolist() == [rank, 1] and tables == {"rows": [7, rank]}
        assert type(model) is Net and optimizer.param_groups[0]["params"][0] is model.layer.weight
        assert model(torch.ones(2)).item() == 2 * (0.5 + rank) * 3 and optimizer.param_groups[0]["lr"] == 1 + rank
        assert helped(rank) == rank + 1
        queue.put(rank)

    if __name__ == "__main__":
        scale = 3
        state.append("parent")
        array[1] = 1
        queue, tables = mp.Queue(), {"rows": [7]}
        optimizer = torch.optim.SGD(model.parameters(), lr=1)
        nn.init.constant_(model.layer.weight, 0.5)
        lock = threading.Lock()  # nothing pickles it
        def helped(number, *, more=1):
            assert state[-1] == number  # not the parent's
            return number + more
        START
        assert sorted([queue.get(), queue.get()]) == [0, 1]
        assert state == ["parent"] and array.tolist() == [0, 1] and tables == {"rows": [7]}
        assert model.layer.weight.tolist() == [[0.5, 0.5]] and optimizer.param_groups[0]["lr"] == 1
"""
PROCESSES = """processes = [{}.Process(target=work, args=(rank, 2)) for rank in range(2)]
        for process in processes:
            process.start()
        for process in processes:
            process.join()"""


@pytest.mark.parametrize(
    "start",
    [
        PROCESSES.format("mp"),
        PROCESSES.format('mp.get_context("fork")'),
        'mp.start_processes(work, (2,), 2, start_method="fork")',
        'mp.set_start_method("fork")\n        mp.start_processes(work, (2,), 2, start_method=mp.get_start_method())',
    ],
)
def test_forked_ranks_know_the_values_of_variables(tmp_path: Path, start: str) -> None:
    """They know what the program has set by then, be it behind the guard; what each changes is its own."""
    outcome = launch("--nproc-per-node", "1", written(tmp_path, FORKED.replace("START", start)))
    assert (outcome.status, outcome.err, outcome.out) == (0, "", "loaded\n")


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_processes_begin_with_what_there_is_when_they_are_started(tmp_path: Path, method: str) -> None:
    text = """
        import os, sys
        import torch
        import torch.distributed as dist
        import torch.multiprocessing as mp
        turn = -1

        def work(number):
            dist.init_process_group("gloo")  # of the environment
            assert dist.get_rank() == number and sys.argv[1:] == [f"number {number}"]
            assert turn == (number if METHOD == "fork" else -1)
            dist.barrier()

        if __name__ == "__main__":
            mp.set_start_method(METHOD)
            os.environ.update(WORLD_SIZE="3", MASTER_ADDR="localhost", MASTER_PORT="29500")
            processes = []
            for turn in range(3):
                os.environ["RANK"] = str(turn)
                sys.argv[1:] = [f"number {turn}"]
                processes.append(mp.Process(target=work, args=(turn,)))
                processes[-1].start()
            for process in processes:
                process.join()
            assert [process.exitcode for process in processes] == [0] * 3
    """
    outcome = launch("--nproc-per-node", "1", written(tmp_path, text.replace("METHOD", repr(method))))
    assert (outcome.status, outcome.err) == (0, "")


@pytest.mark.parametrize("start", [PROCESSES.format('mp.get_context("spawn")'), "mp.spawn(work, (2,), 2)"])
def test_spawned_ranks_do_not(tmp_path: Path, start: str) -> None:
    outcome = launch("--nproc-per-node", "1", written(tmp_path, FORKED.replace("START", start)))
    assert "NameError: name 'optimizer' is not defined" in outcome.err


def test_processes_of_pythons_own(tmp_path: Path) -> None:
    """A program that starts its ranks itself may import multiprocessing from Python."""
    text = """
        import multiprocessing
        from multiprocessing import Process, Queue
        import torch
        import torch.distributed as dist

        def work(rank, queue):
            dist.init_process_group("gloo", rank=rank, world_size=2)
            t = torch.full((1,), 1.0 + rank)
            dist.all_reduce(t)
            queue.put((rank, t.item(), multiprocessing.current_process().name))

        if __name__ == "__main__":
            queue = Queue()
            processes = [Process(target=work, args=(rank, queue)) for rank in range(2)]
            for process in processes:
                process.start()
            assert sorted(queue.get() for _ in range(2)) == [(0, 3.0, "Process-1"), (1, 3.0, "Process-2")]
            for process in processes:
                process.join()
            assert multiprocessing.get_context("spawn").get_start_method() == "spawn"
    """
    before = dict(vars(multiprocessing))
    outcome = launch("--nproc-per-node", "1", written(tmp_path, text))
    assert (outcome.status, outcome.err) == (0, "")
    assert vars(multiprocessing) == before


def test_failure_of_a_spawned_rank(tmp_path: Path) -> None:
    text = """
        import torch.multiprocessing as mp

        def work(rank):
            if rank == 2:
                raise ValueError("no")

        if __name__ == "__main__":
            try:
                mp.spawn(work, nprocs=3)
            except mp.ProcessRaisedException as error:
                assert error.error_index == 2
                print(str(error))
            mp.spawn(work, nprocs=2)
    """
    file = written(tmp_path, text)
    outcome = launch("--nproc-per-node", "1", file)
    assert outcome.status == 0
    assert outcome.out == (
        "\n\n-- Process 2 terminated with the following error:\nTraceback (most recent call last):\n"
        f'  File "{file}", line 6, in work\n    raise ValueError("no")\nValueError: no\n\n'
    )


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_started_ranks_start_processes_as_their_parent_does(tmp_path: Path, method: str) -> None:
    text = f"""
        import torch.multiprocessing as mp

        def work(queue):
            queue.put(mp.get_start_method())

        if __name__ == "__main__":
            mp.set_start_method("{method}")
            queue = mp.Queue()
            process = mp.Process(target=work, args=(queue,))
            process.start()
            print(queue.get())
            process.join()
    """
    assert lines(launch("--nproc-per-node", "1", written(tmp_path, text))) == [method]


def test_ranks_of_several_cannot_spawn(tmp_path: Path) -> None:
    program = written(tmp_path, "import torch.multiprocessing as mp\nmp.spawn(print, nprocs=2)")
    outcome = launch("--nproc-per-node", "3", program)
    assert outcome.status == 1 and "spawn inside a spawned rank is not supported" in outcome.err
