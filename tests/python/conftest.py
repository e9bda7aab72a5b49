"""Fixtures and helpers of the Python tests."""

from __future__ import annotations

import contextlib
import importlib.util
import itertools
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from torchemu import World, runtime
from torchemu.runtime import world

ROOT = Path(__file__).resolve().parents[2]
OF_PYTORCH = ROOT / "tests" / "python" / "frontends" / "torch"
HAS_PYTORCH = importlib.util.find_spec("torch") is not None

OpenWorld = Callable[..., World]
YamlFile = Callable[[str], str]


def pytest_configure() -> None:
    """Sets signals as in a terminal: programs under test would inherit that a shell ignores Ctrl-C for what it runs in
    the background, and nohup the end of the terminal."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Leaves out the tests of the installed PyTorch where there is none; see the line in the report's header."""
    return True if collection_path == OF_PYTORCH and not HAS_PYTORCH else None


def pytest_report_header() -> str:
    """Names what is left out."""
    return (
        "" if HAS_PYTORCH else f"PyTorch is not installed: {OF_PYTORCH.relative_to(ROOT)} is left out (make test-torch)"
    )


NUMPY = {
    "bool": np.bool_,
    "uint8": np.uint8,
    "uint16": np.uint16,
    "uint32": np.uint32,
    "uint64": np.uint64,
    "int8": np.int8,
    "int16": np.int16,
    "int32": np.int32,
    "int64": np.int64,
    "float8_e4m3fn": ml_dtypes.float8_e4m3fn,
    "float8_e5m2": ml_dtypes.float8_e5m2,
    "float16": np.float16,
    "bfloat16": ml_dtypes.bfloat16,
    "float32": np.float32,
    "float64": np.float64,
    "complex64": np.complex64,
    "complex128": np.complex128,
}
"""NumPy's types of torch's dtypes, in the core's order."""

REAL = [name for name in NUMPY if "complex" not in name]
"""The dtypes of real numbers."""


def same(array: Any, want: Any) -> bool:
    """Reports whether two arrays have the same type, shape and bits."""
    a, b = np.ascontiguousarray(array), np.ascontiguousarray(want)
    return np.shape(array) == np.shape(want) and a.dtype == b.dtype and a.tobytes() == b.tobytes()


@pytest.fixture
def yaml_file(tmp_path: Path) -> YamlFile:
    """Writes a text to a new .yaml file and returns the path."""
    numbers = itertools.count(1)

    def write(text: str) -> str:
        path = tmp_path / f"{next(numbers)}.yaml"
        path.write_text(text)
        return str(path)

    return write


@pytest.fixture
def open_world(yaml_file: YamlFile) -> Iterator[OpenWorld]:
    """Opens a World that is current until the test ends. A topology or ccl of several lines is YAML text."""
    with contextlib.ExitStack() as stack:

        def opened(topology: str = "default", ccl: str = "") -> World:
            files = [yaml_file(text) if "\n" in text else text for text in (topology, ccl)]
            return stack.enter_context(runtime.opened(*files))

        yield opened


@pytest.fixture(autouse=True)
def _no_world_is_left_open() -> Iterator[None]:
    yield
    left, world._world = world._world, None
    context = runtime.switch_to(None)
    assert left is None, "a test used the default World instead of opening one"
    assert context is None, "a test left a rank's context behind"


@pytest.fixture
def mode() -> Iterator[Any]:
    """A World of its own, with the installed PyTorch's devices, which the test's operations are charged to."""
    from torchemu.frontends.torch import device

    with runtime.opened(), device.running() as running:
        yield running


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rewrite", action="store_true", help="write golden files instead of comparing with them")
