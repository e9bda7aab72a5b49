"""Runs tests of a file of PyTorch's own suites of distributed tests, as its harnesses do, but on ranks that are there.

The harnesses of `torch.testing._internal` start a process, or a thread, for each rank. Here a rank is one of
torchemu's, or a process of conformance.py's; it does what the started one would have done.
"""

from __future__ import annotations

import importlib
import inspect
import os
import pickle
import sys
import threading
import unittest
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

RANKS = 4


_REPLACED = {
    "torch.distributed": ("all_gather_into_tensor", "all_reduce", "reduce_scatter_tensor"),
    "torch.distributed.fsdp._fully_shard._fsdp_param_group": (
        "foreach_all_gather", "foreach_reduce", "FSDPParamGroup.post_backward", "FSDPParamGroup.reshard",
        "FSDPParamGroup.unshard", "RegisterPostBackwardFunction.backward",
    ),
}  # fmt: skip
"""Attributes that functions of PyTorch's harnesses replace, in modules that ranks share."""


class TestFailedError(Exception):
    """A test has failed in the rank; the message's first line is its error, the others where it was raised."""


def names(file: str) -> dict[str, int]:
    """The tests of a file, as CLASS.TEST, and the number of ranks that each wants.

    Args:
        file: the path of a Python file.
    """
    os.environ["PYTORCH_DISABLE_RUNNING_SCRIPT_CHK"] = "1"  # the file is not the script
    suite = unittest.defaultTestLoader.loadTestsFromModule(_module(file))
    return {f"{type(case).__name__}.{case._testMethodName}": _ranks(case) for case in _cases(suite)}


def _cases(suite: Any) -> Iterator[Any]:
    for part in suite:
        if isinstance(part, unittest.TestSuite):
            yield from _cases(part)
        else:
            yield part


def _module(file: str) -> Any:
    """The file's module, with whatever lies beside it to be imported."""
    path = Path(file).resolve()
    if str(path.parent) not in sys.path:
        sys.path.insert(0, str(path.parent))
    return importlib.import_module(path.stem)


def _ranks(case: Any) -> int:
    from torch.testing._internal import common_distributed as harness

    if isinstance(case, harness.MultiProcContinuousTest):
        return int(type(case)._get_world_size(_device_type(case)))
    if isinstance(case, (harness.MultiProcessTestCase, harness.MultiThreadedTestCase)):
        return int(case.world_size)
    return 1


def _device_type(case: Any) -> str:
    return case.device_type() if callable(case.device_type) else case.device_type


def body(file: str, name: str, store: str) -> str:
    """Runs one test in one of its ranks, and returns how it ended: "passed", or why it was skipped.

    Args:
        file: the path of the file with the test.
        name: CLASS.TEST.
        store: a file that does not exist, by which the test's ranks find each other.

    Raises:
        TestFailedError: it failed.
    """
    from torch.testing._internal import common_distributed as harness

    _keep_replacements_apart()
    _know_precision()
    class_name, _, test = name.partition(".")
    kind = getattr(_module(file), class_name)
    for owner in (kind, getattr(kind, test)):
        if (why := skipped(owner)) is not None:
            return f"skipped: {why}"
    try:
        if issubclass(kind, harness.MultiProcessTestCase):
            _as_process(kind, test, store)
        elif issubclass(kind, harness.MultiThreadedTestCase):
            _as_thread(kind, test, store)
        elif issubclass(kind, harness.MultiProcContinuousTest):
            _as_one_of_many(kind, test, store)
        else:
            unittest.TestSuite([kind(test)]).debug()
    except unittest.SkipTest as skip:
        return f"skipped: {skip}"
    except SystemExit as leave:
        _leave_groups()
        known = {skip.exit_code: skip.message for skip in harness.TEST_SKIPS.values()}
        if leave.code not in (None, 0):
            return f"skipped: {known[leave.code]}"
    return "passed"


def skipped(test: Any) -> str | None:
    """Why unittest would skip a test, or a class of tests; None where it would not."""
    return str(test.__unittest_skip_why__) if getattr(test, "__unittest_skip__", False) else None


def _leave_groups() -> None:
    """Leaves the groups of a test that has not: its process would have ended."""
    import torch.distributed as dist

    if dist.is_initialized():
        dist.destroy_process_group()


def _keep_replacements_apart() -> None:
    """Says for the running rank what the harnesses will replace: what programs set, the harnesses being none, is a
    rank's own."""
    for name, paths in _REPLACED.items():
        for path in paths:
            *kind, attribute = path.split(".")
            owner = importlib.import_module(name)
            for part in kind:
                owner = getattr(owner, part)
            setattr(owner, attribute, vars(owner)[attribute])


def _know_precision() -> None:
    """Lets assertEqual find how precise results are to be: PyTorch keeps that by thread."""
    from torch.testing._internal.common_device_type import DeviceTypeTestBase
    from torch.testing._internal.common_utils import TestCase

    kept = DeviceTypeTestBase._tls
    kept.precision, kept.rel_tol = TestCase._precision, TestCase._rel_tol


class _Pipe:
    """The end of a pipe on which a rank's process says why its test fails."""

    def __init__(self) -> None:
        self.said = ""

    def send(self, text: str) -> None:
        self.said = text

    def close(self) -> None:
        """There is nothing to be closed."""


class _Line:
    """One end of a connection between a rank's process and the one that starts all; what it sends is in a store.

    Args:
        store: one that both share.
        sends, receives: what its own messages, and those of the other end, are called in the store.
    """

    def __init__(self, store: Any, sends: str, receives: str) -> None:
        self._store, self._sends, self._receives = store, sends, receives
        self._sent = self._received = 0

    def send(self, value: Any) -> None:
        self._sent += 1
        self._store.set(f"{self._sends} {self._sent}", pickle.dumps(value))

    def recv(self) -> Any:
        self._received += 1
        return pickle.loads(self._store.get(f"{self._receives} {self._received}"))


def _as_process(kind: Any, test: str, store: str) -> None:
    """A test of MultiProcessTestCase. Its listener, on a thread, is for a parent that asks for tracebacks."""
    from torch.testing._internal import common_distributed as harness

    harness.MultiProcessTestCase._event_listener = staticmethod(lambda *_: None)
    pipe, rank, parent = _Pipe(), int(os.environ["RANK"]), _parent(kind, test)
    lines, answering = _to_parent(parent, test, store, rank)
    try:
        kind._run(*lines, rank, test, store, pipe)
        answering()
    finally:
        parent.tearDown()
        if pipe.said:
            raise TestFailedError(f"{_error(pipe.said)}\n{pipe.said}") from None


def _parent(kind: Any, test: str) -> Any:
    """The test as in the process that would start the ranks' processes, after setUp: they have its environment."""
    parent = kind(test)
    parent._start_processes = lambda process: None
    parent.setUp()
    return parent


def _to_parent(parent: Any, test: str, store: str, rank: int) -> tuple[list[_Line], Callable[[], None]]:
    """Returns the first argument of a rank's process whose harness lets it talk to the parent, and what waits for that.

    The parent's part runs on a thread of rank 0.
    """
    import torch.distributed as dist

    if next(iter(inspect.signature(parent._run).parameters)) == "rank":
        return [], lambda: None
    said, errors = dist.FileStore(f"{store}-lines", -1), list[BaseException]()
    lines = [_Line(said, f"child {rank}", f"parent to {rank}")]
    if rank != 0:
        return lines, lambda: None
    heard = dist.FileStore(f"{store}-lines", -1)
    parent.children_pipes = [_Line(heard, f"parent to {r}", f"child {r}") for r in range(parent.world_size)]

    def answer() -> None:
        try:
            getattr(type(parent), test)(parent)
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=answer)
    thread.start()

    def wait() -> None:
        thread.join()
        if errors:
            raise errors[0]

    return lines, wait


def _error(traceback: str) -> str:
    """The line of a traceback's text that has the error."""
    lines = ["", *traceback.strip().splitlines()]
    after_code = [i for i, before in enumerate(lines[:-1]) if before[:1] == " " and lines[i + 1][:1] not in ("", " ")]
    return lines[after_code[-1] + 1] if after_code else lines[-1]


def _as_thread(kind: Any, test: str, store: str) -> None:
    """A test of MultiThreadedTestCase, whose own process group is one of threads."""
    import torch.distributed as dist

    case = kind(test)
    case.rank = int(os.environ["RANK"])
    dist.init_process_group(store=dist.FileStore(store, case.world_size), rank=case.rank, world_size=case.world_size)
    case.perThreadSetUp()
    try:
        getattr(case, test)()
    finally:
        dist.destroy_process_group()
        case.perThreadTearDown()


def _as_one_of_many(kind: Any, test: str, store: str) -> None:
    """A test of MultiProcContinuousTest, whose processes run one after another."""
    import torch.distributed as dist

    kind.rank, kind.world_size = int(os.environ["RANK"]), _ranks(kind(test))
    kind._init_pg(kind.rank, kind.world_size, store)
    kind._run_test_given_id(kind(test).id())
    dist.destroy_process_group()
