"""Runs tests of a file of PyTorch's own suites of distributed tests, as its harnesses do, but on ranks that are there.

The harnesses of `torch.testing._internal` start a process, or a thread, for each rank. Here a rank is one of
torchemu's, or a process of conformance.py's; it does what the started one would have done.
"""

from __future__ import annotations

import importlib
import os
import sys
import unittest
from collections.abc import Iterator
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
"""What functions of PyTorch's harnesses replace, in modules that ranks share."""


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
    if getattr(kind, "__unittest_skip__", False):
        return f"skipped: {kind.__unittest_skip_why__}"
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
        skipped = {skip.exit_code: skip.message for skip in harness.TEST_SKIPS.values()}
        if leave.code not in (None, 0):
            return f"skipped: {skipped[leave.code]}"
    return "passed"


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


def _as_process(kind: Any, test: str, store: str) -> None:
    """A test of MultiProcessTestCase. Its listener, on a thread, is for a parent that asks for tracebacks."""
    from torch.testing._internal import common_distributed as harness

    harness.MultiProcessTestCase._event_listener = staticmethod(lambda *_: None)
    pipe = _Pipe()
    try:
        kind._run(int(os.environ["RANK"]), test, store, pipe)
    finally:
        if pipe.said:
            raise TestFailedError(f"{_error(pipe.said)}\n{pipe.said}") from None


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
