"""Runs PyTorch's own tests of torch.distributed, and counts how they end.

They are the bodies of DistributedTest, which its package holds, or the tests of files in a checkout of PyTorch.

The ranks are four, of one simulated cluster; with --processes they are four processes on gloo, for comparison. Each
test is its body only, as DistributedTest has it, after init_process_group and before destroy_process_group.
"""

from __future__ import annotations

import argparse
import contextlib
import faulthandler
import functools
import importlib
import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import unittest
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import suites

WORLD_SIZE = 4
_PATIENCE = 300  # seconds of processor time that a test may take in a process, however busy the machine is
_STANDSTILL = 300  # seconds after which a process that takes none hangs
_IDLE = 1.0  # seconds of processor time that a process that hangs may take meanwhile, for its threads look around
_LOOK = 5  # seconds between looks at it
_DONE = "conformance-result "


def _prepare() -> None:
    """Sets what the module with the tests wants to find in the environment."""
    if "CUDA" not in os.environ:
        os.environ["CUDA_VISIBLE_DEVICES"] = ""
    os.environ.setdefault("BACKEND", "gloo")
    os.environ.update(WORLD_SIZE=str(WORLD_SIZE), TEMP_DIR=tempfile.mkdtemp())
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    for folder in ("barrier", "test_dir", "init_dir"):
        Path(os.environ["TEMP_DIR"], folder).mkdir()


def _case() -> Any:
    from torch.testing._internal.distributed import distributed_test as tests

    class Case(tests.TestDistBackend, tests.DistributedTest._DistTestBase):
        """The bodies of the tests. They wait for each other by a store, and not by files that a class counts."""

        def _barrier(self, *args: Any, **kwargs: Any) -> None:
            import torch.distributed as dist

            self.barriers = getattr(self, "barriers", 0) + 1
            store = dist.FileStore(f"{self.file_name}-barriers", WORLD_SIZE)
            key = f"barrier {self.barriers}"
            if store.add(f"{key} arrived", 1) == (kwargs.get("wait_for") or WORLD_SIZE):
                store.set(f"{key} over", "")
            store.wait([f"{key} over"])

    return Case


def names() -> dict[str, int]:
    """The tests that there are, and the number of ranks that each wants."""
    return dict.fromkeys(unittest.TestLoader().getTestCaseNames(_case()), WORLD_SIZE)


def body(name: str, file: str) -> str:
    """Runs one test in one rank, and returns how it ended: "passed", or why it was skipped."""
    import torch.distributed as dist
    from torch.testing._internal import common_distributed, common_utils
    from torch.testing._internal.distributed import distributed_test as tests

    rank = int(os.environ["RANK"])
    case = _case()(name)
    why = suites.skipped(getattr(type(case), name))
    if why is not None:
        return f"skipped: {why}"
    case.rank, case.file_name = rank, file
    limit = tests.timedelta(seconds=tests.CUSTOM_PG_TIMEOUT.get(name, tests.default_pg_timeout))
    dist.init_process_group(
        init_method=case.init_method, backend=os.environ["BACKEND"], world_size=WORLD_SIZE, rank=rank, timeout=limit
    )
    common_utils.set_rng_seed()
    try:
        case._barrier()
        getattr(case, name)()
        ended = "passed"
    except unittest.SkipTest as skip:
        ended = f"skipped: {skip}"
    except SystemExit as leave:
        known = {skip.exit_code: skip.message for skip in common_distributed.TEST_SKIPS.values()}
        if leave.code not in known:
            raise
        ended = f"skipped: {known[leave.code]}"
    case._barrier()
    if dist.is_initialized():
        dist.destroy_process_group()
    return ended


def _in_cluster(world_size: int, call: Callable[[], Any]) -> list[Any]:
    """Returns what the ranks of one simulated cluster return, in the order in which they end."""
    import torchemu

    returned = []

    @torchemu.distributed(world_size=world_size, torch="real", virtual_clock=True, check=False)
    def test() -> None:
        returned.append(call())

    test()
    return returned


def _in_process(_: int, call: Callable[[], Any]) -> list[Any]:
    return [call()]


def _worker(mode: str, suite: str, folder: str) -> None:
    """Answers lines of standard input: the name of a test and its number of ranks, or none, which asks for the tests.

    Args:
        mode: "cluster", where the ranks of a test are those of a cluster, or "process", where this is one of them.
        suite: a file with tests, or nothing for those of PyTorch's package.
        folder: of the files by which ranks meet.
    """
    _prepare() if mode == "cluster" else None
    faulthandler.register(signal.SIGUSR1)
    ranks = _in_cluster if mode == "cluster" else _in_process
    for line in sys.stdin:
        name, world_size = json.loads(line)
        store = str(Path(folder, f"init-{name}"))
        answer: Any
        try:
            if name:
                answer = max(ranks(world_size, functools.partial(_body, suite, name, store)))
            else:
                answer = ranks(world_size, functools.partial(suites.names, suite) if suite else names)[0]
        except BaseException as error:
            answer = f"failed: {type(error).__name__}: {str(error).strip().splitlines()[:1]}"
            traceback.print_exc(file=sys.stderr)
        print(f"{_DONE}{json.dumps(answer)}", flush=True)


def _body(suite: str, name: str, store: str) -> str:
    """Runs one test in one rank. The module that does so is the rank's: what it sets is the rank's own, then."""
    return str(importlib.import_module("suites").body(suite, name, store)) if suite else body(name, store)


class _Limit:
    """The end of the patience with a process: of processor time, and of time in which it takes none.

    Args:
        pid: of the process.
    """

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._end = _processor_time(pid) + _PATIENCE
        self._seen, self._since = 0.0, time.monotonic()

    def is_over(self) -> bool:
        """Says whether the process has taken too long, or hangs."""
        taken = _processor_time(self._pid)
        if taken - self._seen > _IDLE:
            self._seen, self._since = taken, time.monotonic()
        return taken > self._end or time.monotonic() - self._since > _STANDSTILL


def _processor_time(pid: int) -> float:
    """The seconds of processor time that a process has taken, with its children that have ended; 0 where it is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


class _Worker:
    """A process, or one for each rank, that runs tests one after another.

    Args:
        suite: a file with tests, or nothing for those of PyTorch's package.
        processes: whether each rank is one.
        log: a file for what tests print.
    """

    def __init__(self, suite: str, processes: bool, log: Path) -> None:
        mode = "process" if processes else "cluster"
        if processes:
            _prepare()
        command = [sys.executable, __file__, "--worker", mode, "--folder", tempfile.mkdtemp(), suite]
        with log.open("ab") as errors:
            self._processes = [
                subprocess.Popen(
                    command,
                    bufsize=0,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=errors,
                    env={**os.environ, "RANK": str(rank)},
                    start_new_session=True,
                )
                for rank in range(WORLD_SIZE if processes else 1)
            ]

    def names(self) -> dict[str, int] | str:
        """The tests that there are, with the number of ranks of each, or why they cannot be had."""
        found = self._asked("", WORLD_SIZE, self._processes[:1])[0]
        return "failed: its module cannot be loaded" if found is None else found

    def run(self, name: str, ranks: int) -> str | None:
        """How a test ended; None where it does not end, or ends the process."""
        if self._processes[1:] and ranks > len(self._processes):
            return f"skipped: wants {ranks} ranks"
        ends = self._asked(name, ranks, self._processes[:ranks])
        failed = [end for end in ends if end is None or end.startswith("failed")]
        return failed[0] if failed else max(end for end in ends if end is not None)

    def _asked(self, name: str, ranks: int, processes: list[Any]) -> list[Any]:
        for process in processes:
            with contextlib.suppress(BrokenPipeError):
                process.stdin.write(json.dumps([name, ranks]).encode() + b"\n")
        limits = [_Limit(process.pid) for process in processes]
        return [self._answer(process, limit) for process, limit in zip(processes, limits, strict=True)]

    def _answer(self, process: Any, limit: _Limit) -> Any:
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            while not limit.is_over():
                if not selector.select(_LOOK):
                    continue
                line = process.stdout.readline().decode(errors="replace")
                if not line:
                    return None
                if line.startswith(_DONE):
                    return json.loads(line[len(_DONE) :])
        process.send_signal(signal.SIGUSR1)  # where it hangs goes to the log
        time.sleep(1)
        return None

    def end(self) -> None:
        """Ends it."""
        for process in self._processes:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def main() -> int:
    """Runs the tests and prints the counts; 1 when one fails."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "suites", nargs="*", default=[""], help="files of a checkout of PyTorch; without any, its package's"
    )
    parser.add_argument("--processes", action="store_true", help="on four processes with gloo")
    parser.add_argument("--cuda", action="store_true", help="with simulated devices, which more of the tests want")
    parser.add_argument("--backend", default="gloo", help="of the package's tests; nccl wants --cuda")
    parser.add_argument("--only", default="", help="tests whose names contain this; several are separated by commas")
    parser.add_argument("--results", default="", help="a JSON file to write, of how each test ended")
    parser.add_argument("--log", default="build/torch-conformance.log", help="a file for what tests print")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        _worker(options.worker, options.suites[0], options.folder)
        return 0
    os.environ["BACKEND"] = options.backend
    if options.cuda:
        os.environ["CUDA"] = "1"
    Path(options.log).parent.mkdir(parents=True, exist_ok=True)
    results = {suite: _results(suite, options) for suite in options.suites}
    if options.results:
        Path(options.results).write_text(json.dumps(results, indent=1, sort_keys=True) + "\n")
    return max(_report(suite, ends) for suite, ends in results.items())


def _results(suite: str, options: argparse.Namespace) -> dict[str, str]:
    """How each test of a file ended."""
    parts = options.only.split(",")
    worker = _Worker(suite, options.processes, Path(options.log))
    results: dict[str, str] = {}
    found = worker.names()
    if isinstance(found, str):
        results[suite], found = found, {}
    for name, ranks in found.items():
        if not any(part in name for part in parts):
            continue
        ended = worker.run(name, ranks)
        results[name] = ended or "failed: it does not end, or ends the process"
        print(f"{name}: {results[name]}", flush=True)
        if ended is None or (options.processes and ended.startswith("failed")):
            worker.end()
            worker = _Worker(suite, options.processes, Path(options.log))
    worker.end()
    return results


def _report(suite: str, results: dict[str, str]) -> int:
    counts = Counter(ended.partition(":")[0] for ended in results.values())
    reasons = Counter(ended.partition(": ")[2] for ended in results.values() if ended.startswith("skipped"))
    print(suite, end="\n" if suite else "")
    for reason, count in reasons.most_common():
        print(f"  {count} skipped: {reason}")
    print(", ".join(f"{counts[kind]} {kind}" for kind in ("passed", "skipped", "failed")))
    return 1 if counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
