"""Ends of pipes that nobody holds any more, as programs see them that real processes run, too."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from conftest import OpenWorld
from ranks import SIXTY_FOUR

import torchemu.multiprocessing as mp
from torchemu.errors import DeadlockError

PROGRAM = """
import sys
import {module} as multiprocessing

mp = multiprocessing.get_context("fork")

def says(out, words, back=None):
    if back is not None:
        back.close()
    for word in words:
        out.send(word)

def answers(mine, theirs):
    theirs.close()
    while True:
        try:
            mine.send(mine.recv() * 2)
        except EOFError:
            break
    mine.close()

def waits(mine, event):
    event.wait()

def heard(end):
    words = []
    while True:
        try:
            words.append(end.recv())
        except EOFError:
            return words

def from_children():
    ends = []
    children = []
    for i in range(3):
        here, there = mp.Pipe(duplex=False)
        child = mp.Process(target=says, args=(there, list(range(i)), here))
        child.start()
        there.close()
        ends.append(here)
        children.append(child)
    print([heard(end) for end in ends], [end.poll() for end in ends], flush=True)
    for child in children:
        child.join()

def to_children():
    here, there = mp.Pipe()
    child = mp.Process(target=answers, args=(there, here))
    child.start()
    there.close()
    here.send(4)
    print(here.recv(), flush=True)
    here.close()
    child.join()
    print(child.exitcode, flush=True)

def nobody():
    here, there = mp.Pipe()
    there.send("last")
    there.close()
    print(here.recv(), here.poll(), here.poll(None), flush=True)
    for call in (here.recv, here.recv_bytes, lambda: here.send(1)):
        try:
            call()
        except (EOFError, BrokenPipeError) as error:
            print(type(error).__name__, error, flush=True)

def while_others_wait():
    here, there = mp.Pipe()
    event = mp.Event()
    talker = mp.Process(target=says, args=(there, "ab"))
    talker.start()
    there.close()
    waiter = mp.Process(target=waits, args=(None, event))
    waiter.start()
    print(heard(here), flush=True)
    event.set()
    talker.join()
    waiter.join()
    print(talker.exitcode, waiter.exitcode, flush=True)

if __name__ == "__main__":
    from_children()
    to_children()
    nobody()
    while_others_wait()
"""

EXPECTED = """[[], [0], [0, 1]] [True, True, True]
8
0
last True True
EOFError
EOFError
BrokenPipeError [Errno 32] Broken pipe
['a', 'b']
0 0
"""


def printed(tmp_path: Path, module: str, *launcher: str) -> str:
    script = tmp_path / "ends.py"
    script.write_text(PROGRAM.replace("{module}", module))
    done = subprocess.run(
        [sys.executable, *launcher, str(script)], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.replace("EOFError \n", "EOFError\n")


@pytest.mark.parametrize("module", ["multiprocessing", "torch.multiprocessing"])
def test_ends_that_nobody_holds(tmp_path: Path, module: str) -> None:
    assert printed(tmp_path, module, "-m", "torchemu", "run") == EXPECTED


def test_real_processes_say_the_same(tmp_path: Path) -> None:
    assert printed(tmp_path, "multiprocessing") == EXPECTED


HELD = """
import torch.multiprocessing as mp

def keeps(mine, theirs):
    mine.recv()

if __name__ == "__main__":
    here, there = mp.Pipe()
    child = mp.Process(target=keeps, args=(there, here))
    child.start()
    there.close()
    here.recv()
"""


def test_an_end_that_somebody_holds_is_a_deadlock(tmp_path: Path) -> None:
    script = tmp_path / "held.py"
    script.write_text(HELD)
    done = subprocess.run(
        [sys.executable, "-m", "torchemu", "run", str(script)], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 1 and "EOFError" not in done.stderr
    assert "DeadlockError: deadlock at simulated time" in done.stderr
    assert "something to get from the Pipe made at" in done.stderr


def test_ends_that_went_through_a_queue_may_be_anywhere(open_world: OpenWorld) -> None:
    open_world(SIXTY_FOUR)
    queue, (here, there) = mp.SimpleQueue(), mp.Pipe()
    queue.put(there)
    there.close()
    with pytest.raises(DeadlockError):
        here.recv()
