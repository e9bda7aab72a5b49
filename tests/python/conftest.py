"""What the Python tests share."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from torchemu import World, _runtime

ROOT = Path(__file__).resolve().parents[2]

OpenWorld = Callable[..., World]
YamlFile = Callable[[str], str]


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
            return stack.enter_context(_runtime.opened(*files))

        yield opened


@pytest.fixture(autouse=True)
def _no_world_is_left_open() -> Iterator[None]:
    yield
    left, _runtime._world = _runtime._world, None
    context = _runtime.switch_to(None)
    assert left is None, "a test used the default World instead of opening one"
    assert context is None, "a test left a rank's context behind"
