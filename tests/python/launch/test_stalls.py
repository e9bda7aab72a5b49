"""A run that stands still says where, once: a rank has its turn and waits for the system."""

from __future__ import annotations

import os
import re
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from launch import launch, written

from torchemu.launch import stalls

READER = """
    import sys
    def read():
        with open("fifo") as file:
            return file.read()
    if __name__ == "__main__":
        import torch.distributed as dist
        dist.init_process_group("gloo")
        dist.barrier()
        if dist.get_rank() == 1:
            print(read())
        dist.barrier()
    """


@pytest.fixture
def fifo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A FIFO in the working directory, to which somebody writes once the first notice is given."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(stalls, "_AFTER", 0.3)
    path, noticed, notice = tmp_path / "fifo", threading.Event(), stalls._notice
    os.mkfifo(path)

    def noting(*about: object) -> str:
        noticed.set()
        return notice(*about)  # type: ignore[arg-type]

    def write() -> None:
        noticed.wait(60)
        path.write_text("hello")

    monkeypatch.setattr(stalls, "_notice", noting)
    writer = threading.Thread(target=write)
    writer.start()
    yield path
    noticed.set()
    writer.join()


def test_a_rank_that_waits_for_the_system_is_named(fifo: Path) -> None:
    program = written(fifo.parent, READER)
    done = launch("--nproc-per-node", "3", program)
    assert (done.status, done.out) == (0, "hello\n"), done.err
    place = f"{program}:4 in read"
    assert re.fullmatch(
        rf"torchemu: rank 1 has waited for \d+ s at {re.escape(place)}, and no rank runs meanwhile\n", done.err
    )


def test_in_a_package_the_way_out_is_told(fifo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = fifo.parent / "site-packages"
    module = written(folder, READER, "keeper.py")
    monkeypatch.syspath_prepend(folder)
    text = READER.replace("def read():", "from keeper import read\n    def unused():")
    done = launch("--nproc-per-node", "2", written(fifo.parent, text))
    assert (done.status, done.out) == (0, "hello\n"), done.err
    sys.modules.pop("keeper")
    assert f"it waits in keeper, at {module}:4 in read: if ranks share a lock there, --isolate keeper gives" in done.err


@pytest.mark.parametrize(
    ("ranks", "work"), [(1, "time.sleep(1)"), (2, "time.sleep(1)"), (2, "while time.monotonic() < end: pass")]
)
def test_nothing_is_said_where_none_waits_for_it_or_it_computes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ranks: int, work: str
) -> None:
    monkeypatch.setattr(stalls, "_AFTER", 0.2)
    text = f"import time; end = time.monotonic() + 1\n{work}\n"
    assert launch("--nproc-per-node", str(ranks), written(tmp_path, text)).err == ""


def test_a_look_keeps_nothing_of_the_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Frames that were kept until the next look kept what their variables name, so that a rank's memory in use depended
    on when one looked."""
    frames = stalls._frames
    monkeypatch.setattr(stalls, "_AFTER", 0.06)

    def looked(tasks: object) -> object:
        found = frames(tasks)  # type: ignore[arg-type]
        if found and found[0].f_code.co_name == "held":
            monkeypatch.setattr(stalls, "_AFTER", 600.0)  # there is no second look
        return found

    monkeypatch.setattr(stalls, "_frames", looked)
    text = """
        import time
        import weakref
        from torchemu.launch import stalls
        class Kept:
            pass
        def held():
            kept = Kept()
            while stalls._AFTER < 600:
                pass
            return weakref.ref(kept)
        if __name__ == "__main__":
            seen, end = held(), time.monotonic() + 5
            while seen() is not None and time.monotonic() < end:
                pass
            print(seen())
        """
    done = launch("--nproc-per-node", "2", written(tmp_path, text))
    assert (done.status, done.out, done.err) == (0, "None\nNone\n", "")
