"""Processes of gloo, which live on from program to program: starting them takes seconds."""

from __future__ import annotations

import json
import select
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import torch.distributed as dist

TIMEOUT = 120.0

Results = list[list[list[Any]]]
"""For each rank what it kept."""


class Gloo:
    """So many processes that run the scripts of as many ranks, or fewer.

    Raises:
        RuntimeError: a script failed, or did not end; the text has the tracebacks.
    """

    def __init__(self, size: int) -> None:
        self.size, self._runs = size, 0
        self._processes: list[subprocess.Popen[str]] = []
        self._store: Any = None

    def results(self, script: Path, size: int) -> Results:
        """Returns what the ranks of a script kept."""
        if not self._processes:
            self._start()
        self._runs += 1
        to = script.with_name(f"{script.name}.gloo{self._runs}")
        for process in self._processes[:size]:
            assert process.stdin is not None
            process.stdin.write(f"{script}\t{size}\t{to}\n")
            process.stdin.flush()
        answers = self._answers(size)
        if set(answers) != {"done"}:
            self.close()
            raise RuntimeError("\n".join(f"rank {r}: {text}" for r, text in enumerate(answers) if text != "done"))
        files = [to.with_name(f"{to.name}.{r}") for r in range(size)]
        results = [json.loads(file.read_text()) for file in files]
        for file in files:
            file.unlink()
        return results

    def _start(self) -> None:
        self._store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
        worker = str(Path(__file__).with_name("worker.py"))
        for rank in range(self.size):
            command = [sys.executable, worker, str(rank), str(self._store.port)]
            self._processes.append(
                subprocess.Popen(
                    command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
                )
            )

    def _answers(self, size: int) -> list[str]:
        """Returns a line of each of so many processes; those that do not answer in time have one, too."""
        until, texts = time.monotonic() + TIMEOUT, ["does not end"] * size
        waiting = dict(enumerate(self._processes[:size]))
        while waiting and time.monotonic() < until:
            ready, _, _ = select.select([p.stdout for p in waiting.values()], [], [], 1)
            for rank, process in list(waiting.items()):
                if process.stdout in ready:
                    texts[rank] = _line(process)
                    del waiting[rank]
            if any(texts[rank] not in ("done", "does not end") for rank in range(size)):
                until = min(until, time.monotonic() + 5)  # the others may wait for the one that failed
        return texts

    def close(self) -> None:
        """Ends the processes; others are started when there is something to do again."""
        for process in self._processes:
            process.kill()
            process.communicate()
        self._processes, self._store = [], None


def _line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    text = process.stdout.readline().rstrip("\n")
    if text.startswith("failed "):
        return str(json.loads(text.removeprefix("failed ")))
    return text or f"the process has ended with status {process.wait()}"
