"""Ctrl-C while ranks are threads of the system: it comes to the process's main thread, which is none of theirs."""

import re
import signal
import subprocess
import sys

import pytest
from launch import written


def interrupted(folder, text, nproc=1, times=1):
    """Runs a program and sends Ctrl-C when a rank prints "go", and again for each further "go"; returns what else it
    printed, sorted by line, its errors, and its exit status."""
    program = written(folder, text)
    command = [sys.executable, "-m", "torchemu", "run", "--torch", "real", "--nproc-per-node", str(nproc), program]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as run:
        try:
            for _ in range(times):
                assert run.stdout.readline() == "go\n"
                run.send_signal(signal.SIGINT)
            out, err = run.communicate(timeout=60)
        finally:
            run.kill()
    return sorted(out.splitlines()), err, run.returncode


@pytest.mark.slow
def test_a_thread_that_computes_is_not_interrupted_and_the_process_ends(tmp_path):
    out, err, status = interrupted(
        tmp_path,
        """
        import itertools, threading, time
        def work():
            print("go", flush=True)
            try:
                for _ in itertools.repeat(0):
                    pass
            finally:
                print("never")
        threading.Thread(target=work).start()
        while True:
            time.sleep(1e-3)
        """,
    )
    assert (out, err, status) == ([], "interrupted\n", 130)


@pytest.mark.slow
def test_a_main_program_that_waits_for_a_thread_is_interrupted(tmp_path):
    out, err, status = interrupted(
        tmp_path,
        """
        import threading, time
        def work():
            print("go", flush=True)
            while True:
                time.sleep(1e-3)
        thread = threading.Thread(target=work)
        try:
            thread.start()  # returns when the new thread has run for a while: it may come here already
            thread.join()
        finally:
            print("stop")
        """,
    )
    assert (out, status) == (["stop"], 130)
    assert re.fullmatch(r"interrupted( while rank 0 was at .*program.py:[0-9]+ in <module>)?\n", err), err


def test_a_rank_that_computes_is_interrupted_there_and_the_others_end(tmp_path):
    out, err, status = interrupted(
        tmp_path,
        """
        import itertools, os, threading
        rank = int(os.environ["RANK"])
        try:
            if rank == 2:
                print("go", flush=True)
                for _ in itertools.repeat(0):
                    pass
            threading.Event().wait()
        finally:
            print("stop", rank)
        """,
        nproc=3,
    )
    assert (out, status) == (["stop 0", "stop 1", "stop 2"], 130)
    assert re.fullmatch(r"interrupted while rank 2 was at .*program.py:(6|7|8) in <module>\n", err), err


@pytest.mark.slow
def test_a_program_that_catches_it_may_go_on_until_the_next(tmp_path):
    """It is raised where a rank waits, and so finds all in order: collectives work afterwards."""
    out, _, status = interrupted(
        tmp_path,
        """
        import time
        import torch, torch.distributed as dist
        dist.init_process_group("gloo")
        rank, t = dist.get_rank(), torch.ones(1)
        while rank == 1 and t < 2:
            try:
                print("go", flush=True)
                while True:
                    time.sleep(1e-3)
            except KeyboardInterrupt:
                t += 1
        dist.all_reduce(t)
        print(t.item())
        """,
        nproc=2,
    )
    assert (out, status) == (["3.0", "3.0"], 0)


@pytest.mark.slow
@pytest.mark.parametrize("more", ["for _ in itertools.repeat(0): pass", "time.sleep(60)"])
def test_a_second_one_ends_what_the_first_has_begun(tmp_path, more):
    out, _, status = interrupted(
        tmp_path,
        f"""
        import itertools, time
        try:
            print("go", flush=True)
            time.sleep(60)
        finally:
            print("go", flush=True)
            {more}
        """,
        times=2,
    )
    assert (out, status) == ([], 130)


def test_a_rank_inside_of_a_call_of_the_system_ends_with_the_process(tmp_path):
    out, err, status = interrupted(
        tmp_path,
        """
        import os
        reader, writer = os.pipe()
        print("go", flush=True)
        os.read(reader, 1)
        """,
    )
    assert (out, status) == ([], 130) and err.startswith("interrupted"), err
