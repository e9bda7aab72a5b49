"""Runs the bodies of PyTorch's own tests of torch.distributed, which its package holds, and counts how they end.

The ranks are four, of one simulated cluster; with --processes they are four processes on gloo, for comparison. Each
test is its body only, as DistributedTest has it, after init_process_group and before destroy_process_group.
"""

from __future__ import annotations

import argparse
import contextlib
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
from pathlib import Path
from typing import Any

WORLD_SIZE = 4
_PATIENCE = 120  # seconds that a test may take before it is said to hang
_DONE = "conformance-result "


def _prepare() -> None:
    """Sets what the module with the tests wants to find in the environment."""
    if "CUDA" not in os.environ:
        os.environ["CUDA_VISIBLE_DEVICES"] = ""
    os.environ.update(BACKEND="gloo", WORLD_SIZE=str(WORLD_SIZE), TEMP_DIR=tempfile.mkdtemp())
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


def names() -> list[str]:
    """The tests that there are."""
    return unittest.TestLoader().getTestCaseNames(_case())


def body(name: str, file: str) -> str:
    """Runs one test in one rank, and returns how it ended: "passed", or why it was skipped."""
    import torch.distributed as dist
    from torch.testing._internal import common_distributed, common_utils
    from torch.testing._internal.distributed import distributed_test as tests

    rank = int(os.environ["RANK"])
    case = _case()(name)
    case.rank, case.file_name = rank, file
    limit = tests.timedelta(seconds=tests.CUSTOM_PG_TIMEOUT.get(name, tests.default_pg_timeout))
    dist.init_process_group(
        init_method=case.init_method, backend="gloo", world_size=WORLD_SIZE, rank=rank, timeout=limit
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


def _in_cluster(name: str) -> str:
    """Runs one test on the ranks of one simulated cluster."""
    import torchemu

    file = str(Path(os.environ["TEMP_DIR"], f"init-{name}"))
    ends: dict[str, str] = {}

    @torchemu.distributed(world_size=WORLD_SIZE, torch="real", virtual_clock=True)
    def test() -> None:
        ends[os.environ["RANK"]] = body(name, file)

    test()
    return max(ends.values())


def _worker(mode: str, file: str) -> None:
    """Runs the tests whose names come on standard input, one a line, and prints how each ended."""
    _prepare() if mode == "cluster" else None
    for line in sys.stdin:
        name = line.strip()
        output = sys.stderr
        try:
            ended = _in_cluster(name) if mode == "cluster" else body(name, f"{file}-{name}")
            detail = ""
        except BaseException as error:
            ended, detail = f"failed: {type(error).__name__}: {str(error).strip().splitlines()[:1]}", ""
            traceback.print_exc(file=output)
        print(f"{_DONE}{json.dumps([name, ended, detail])}", flush=True)


class _Worker:
    """A process, or one for each rank, that runs tests one after another.

    Args:
        processes: whether each rank is one.
    """

    def __init__(self, processes: bool, log: Path) -> None:
        self._log = log
        mode = "process" if processes else "cluster"
        if processes:
            _prepare()
        file = tempfile.mktemp()
        command = [sys.executable, __file__, "--worker", mode, "--file", file]
        ranks = range(WORLD_SIZE if processes else 1)
        with log.open("ab") as errors:
            self._ranks = [
                subprocess.Popen(
                    command,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=errors,
                    env={**os.environ, "RANK": str(rank)},
                    start_new_session=True,
                )
                for rank in ranks
            ]

    def run(self, name: str) -> str | None:
        """How a test ended; None where it does not end, or ends the process."""
        for rank in self._ranks:
            assert rank.stdin is not None
            with contextlib.suppress(BrokenPipeError):
                rank.stdin.write(f"{name}\n".encode())
                rank.stdin.flush()
        deadline = time.monotonic() + _PATIENCE
        ends = [self._answer(rank, deadline) for rank in self._ranks]
        failed = [end for end in ends if end is None or end.startswith("failed")]
        return failed[0] if failed else max(end for end in ends if end is not None)

    def _answer(self, rank: Any, deadline: float) -> str | None:
        with selectors.DefaultSelector() as selector:
            selector.register(rank.stdout, selectors.EVENT_READ)
            while selector.select(max(0, deadline - time.monotonic())):
                line = rank.stdout.readline().decode(errors="replace")
                if not line:
                    return None
                if line.startswith(_DONE):
                    return str(json.loads(line[len(_DONE) :])[1])
        return None

    def end(self) -> None:
        """Ends it."""
        for rank in self._ranks:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(rank.pid, signal.SIGKILL)
            rank.wait()


def _listed() -> list[str]:
    _prepare()
    return names()


def main() -> int:
    """Runs the tests and prints the counts; 1 when one fails."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--processes", action="store_true", help="on four processes with gloo")
    parser.add_argument("--cuda", action="store_true", help="with simulated devices, which more of the tests want")
    parser.add_argument("--only", default="", help="tests whose names contain this; several are separated by commas")
    parser.add_argument("--results", default="", help="a JSON file to write, of how each test ended")
    parser.add_argument("--log", default="build/torch-conformance.log", help="a file for what tests print")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    parser.add_argument("--file", default="", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        _worker(options.worker, options.file)
        return 0
    if options.cuda:
        os.environ["CUDA"] = "1"
    return _report(_results(options), options.results)


def _results(options: argparse.Namespace) -> dict[str, str]:
    log = Path(options.log)
    log.parent.mkdir(parents=True, exist_ok=True)
    parts = options.only.split(",")
    results: dict[str, str] = {}
    worker = None
    for name in _listed():
        if not any(part in name for part in parts):
            continue
        worker = worker or _Worker(options.processes, log)
        ended = worker.run(name)
        results[name] = ended or "failed: it does not end, or ends the process"
        print(f"{name}: {results[name]}", flush=True)
        if ended is None or (options.processes and ended.startswith("failed")):
            worker.end()
            worker = None
    if worker is not None:
        worker.end()
    return results


def _report(results: dict[str, str], file: str) -> int:
    if file:
        Path(file).write_text(json.dumps(results, indent=1, sort_keys=True) + "\n")
    counts = Counter(ended.partition(":")[0] for ended in results.values())
    reasons = Counter(ended.partition(": ")[2] for ended in results.values() if ended.startswith("skipped"))
    for reason, count in reasons.most_common():
        print(f"  {count} skipped: {reason}")
    print(", ".join(f"{counts[kind]} {kind}" for kind in ("passed", "skipped", "failed")))
    return 1 if counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
