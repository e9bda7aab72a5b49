"""Ranks wait for each other by the system: by sockets, pipes, locks of files, programs that they start."""

from __future__ import annotations

import gc
import textwrap
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
from launch import launch, lines, written

from torchemu.launch import blocking

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")


@pytest.fixture(autouse=True)
def _close() -> Iterator[None]:
    """Closes what the programs leave open, as the end of a process does."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        gc.collect()


BEGIN = """
import fcntl, os, select, selectors, socket, subprocess, sys, threading, time
import torch, torch.distributed as dist
dist.init_process_group("gloo")
rank = dist.get_rank()
store = dist.distributed_c10d._get_default_store()

def listening(backlog=1):
    server = socket.socket()
    server.bind(("127.0.0.1", 0))
    server.listen(backlog)
    store.set("port", str(server.getsockname()[1]))
    return server

def connected():
    return socket.create_connection(("127.0.0.1", int(store.get("port"))))

"""

SERVER = """
if rank == 0:
    {server}
else:
    {client}
"""

EACH = {
    "accept": (
        "server = listening()\nfor _ in range(2): server.accept()[0].sendall(b'x' * 3_000_000)",
        "c, n = connected(), 0\nwhile n < 3_000_000: n += len(c.recv(100_000))\nprint(n)",
        ["3000000"] * 2,
    ),
    "a limit": (
        "s = listening()\ns.settimeout(0.05)\ntry:\n    while True: s.accept()\nexcept TimeoutError as e: print(e)",
        "connected()",
        ["timed out"],
    ),
    "all of it": (
        "c = listening().accept()[0]\nprint(c.recv(5, socket.MSG_WAITALL), c.makefile().readline().strip())",
        "if rank == 1:\n    c = connected()\n    for part in b'abc', b'de', b'line\\n': c.send(part), time.sleep(0.01)",
        ["b'abcde' line"],
    ),
    "select": (
        "s = listening(2)\nprint(len(select.select([s], [], [])[0]), select.select([], [], [], 0.01))",
        "connected()",
        ["1 ([], [], [])"],
    ),
    "a selector": (
        "s, look = listening(2), selectors.DefaultSelector()\nlook.register(s, selectors.EVENT_READ)\n"
        "print(len(look.select()), len(look.select(5)))",
        "connected()",
        ["1 1"],
    ),
    "a program's output": (
        "s = listening(2)\nfor _ in range(2): s.accept()[0].sendall(b'hello')",
        'code = f\'import socket; print(socket.create_connection(({"127.0.0.1"!r}, {int(store.get("port"))}))\'\n'
        "print(subprocess.check_output([sys.executable, '-c', code + '.recv(9))'], text=True).strip())",
        ["b'hello'"] * 2,
    ),
    "a program's end": (
        "s = listening(2)\nfor _ in range(2): s.accept()[0].sendall(b'hello')",
        'code = f\'import socket; socket.create_connection(({"127.0.0.1"!r}, {int(store.get("port"))})).recv(9)\'\n'
        "print(subprocess.run([sys.executable, '-c', code]).returncode)",
        ["0"] * 2,
    ),
}
"""By what rank 0 waits for: what it does, what ranks 1 and 2 do, and what is printed."""


def indented(text: str) -> str:
    return textwrap.indent(text, "    ").strip()


@pytest.mark.parametrize("clock", [(), ("--virtual-clock",)], ids=["wall", "virtual"])
@pytest.mark.parametrize("name", EACH)
def test_sockets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, clock: tuple[str, ...]) -> None:
    monkeypatch.setattr("torchemu.launch.pipes._FOR_PROGRAMS", 0.05)
    server, client, printed = EACH[name]
    text = BEGIN + SERVER.format(server=indented(server), client=indented(client))
    assert lines(launch("--nproc-per-node", "3", *clock, written(tmp_path, text))) == printed


ALIKE = {
    "datagrams": (
        "s = socket.socket(type=socket.SOCK_DGRAM)\ns.bind(('127.0.0.1', 0))\n"
        "store.set(f'at {rank}', str(s.getsockname()[1]))\n"
        "s.sendto(b'from %d' % rank, ('127.0.0.1', int(store.get(f'at {1 - rank}'))))\nprint(s.recvfrom(20)[0])",
        ["b'from 0'", "b'from 1'"],
    ),
    "flock": (
        "f = open('lock', 'w')\nfor _ in range(3):\n    fcntl.flock(f, fcntl.LOCK_EX)\n"
        "    n = os.path.exists('n') and int(open('n').read())\n    time.sleep(0.01)\n"
        "    with open('n', 'w') as file: file.write(str(n + 1))\n    fcntl.flock(f, fcntl.LOCK_UN)\n"
        "dist.barrier()\nprint(open('n').read())",
        ["6", "6"],
    ),
    "lockf": (
        "f = open('lock', 'w')\nfor _ in range(3):\n    fcntl.lockf(f, fcntl.LOCK_EX)\n"
        "    n = os.path.exists('n') and int(open('n').read())\n    time.sleep(0.01)\n"
        "    with open('n', 'w') as file: file.write(str(n + 1))\n    fcntl.lockf(f, fcntl.LOCK_UN)\n"
        "dist.barrier()\nprint(open('n').read())",
        ["6", "6"],
    ),
    "an exclusive file": (
        "while True:\n    try: fd = os.open('lock', os.O_CREAT | os.O_EXCL)\n"
        "    except FileExistsError: time.sleep(0.001)\n"
        "    else: break\ntime.sleep(0.01)\nos.close(fd)\nos.remove('lock')\nprint('had it')",
        ["had it", "had it"],
    ),
    "a pipe between threads": (
        "r, w = os.pipe()\nt = threading.Thread(target=lambda: print(os.read(r, 9)))\nt.start()\ntime.sleep(0.01)\n"
        "os.write(w, b'hey')\nt.join()",
        ["b'hey'", "b'hey'"],
    ),
    "more than a pipe holds": (
        "r, w = os.pipe()\nt = threading.Thread(target=lambda: os.write(w, b'x' * 200_000))\nt.start()\nn = 0\n"
        "while n < 200_000: n += len(os.read(r, 100_000))\nt.join()\nprint(n)",
        ["200000", "200000"],
    ),
    "lines of a program": (
        "p = subprocess.Popen(['sh', '-c', 'sleep 0.1; echo hi; exit 3'], stdout=-1, text=True)\n"
        "print(p.stdout.readline().strip(), p.wait())",
        ["hi 3", "hi 3"],
    ),
    "what a program is given": (
        "p = subprocess.Popen(['cat'], stdin=-1, stdout=-1)\nprint(len(p.communicate(b'y' * 1_000_000)[0]))",
        ["1000000", "1000000"],
    ),
    "a child": (
        "pid = os.spawnlp(os.P_NOWAIT, 'sh', 'sh', '-c', 'sleep 0.1; exit 3')\nprint(os.waitpid(pid, 0)[1] >> 8)",
        ["3", "3"],
    ),
}
"""By what both ranks wait for: what they do, and what is printed."""


@pytest.mark.parametrize("name", ALIKE)
def test_what_ranks_wait_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr("torchemu.launch.pipes._FOR_PROGRAMS", 0.05)
    monkeypatch.chdir(tmp_path)
    does, printed = ALIKE[name]
    assert lines(launch("--nproc-per-node", "2", written(tmp_path, BEGIN + does + "\n"))) == printed


NEVER = {
    "socket.accept()": "listening().accept()",
    "socket.recv()": "a, b = socket.socketpair()\n    a.recv(1)",
    "os.read()": "os.read(os.pipe()[0], 1)",
    "select.select()": "a, b = socket.socketpair()\n    select.select([a], [], [])",
    "fcntl.flock()": "a, b = open('lock', 'w'), open('lock', 'w')\n    fcntl.flock(a, 2)\n    fcntl.flock(b, 2)",
}
"""By what waits, and nobody ends it: the lines."""


@pytest.mark.slow
@pytest.mark.parametrize("name", NEVER)
def test_what_nobody_brings_about_is_a_deadlock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(blocking, "_PATIENCE", 0.1)
    monkeypatch.chdir(tmp_path)
    file = written(tmp_path, BEGIN + f"if rank == 0:\n    {NEVER[name]}\ndist.barrier()\n")
    outcome = launch("--nproc-per-node", "2", file)
    assert outcome.status == 1 and "DeadlockError" in outcome.err
    at = len(file.read_text().splitlines()) - 1
    assert f"rank 0 waits for {name} at {file}:{at} in <module>" in outcome.err
    assert "rank 1 waits for barrier" in outcome.err


def test_a_program_that_a_rank_waits_for_takes_no_simulated_time(tmp_path: Path) -> None:
    text = (
        BEGIN
        + """
from torchemu import runtime
from torchemu.runtime.waiting import host_time
before = host_time()
subprocess.run(["sleep", "0.1"], capture_output=True)
print(host_time() - before)
"""
    )
    assert lines(launch("--nproc-per-node", "2", written(tmp_path, text))) == ["0", "0"]
