"""Fixtures for the pytest files of simpler's examples: a test's chips, and their platform."""

from __future__ import annotations

import pytest

_MARKS = (
    "platforms(names): those that a test is for",
    "runtime(name): the one that a test is for",
    "device_count(n): how many chips a test gets",
    "requires_hardware: for tests that do not run on a simulator elsewhere",
)


def pytest_configure(config: pytest.Config) -> None:
    """Makes the marks known."""
    for mark in _MARKS:
        config.addinivalue_line("markers", mark)


@pytest.fixture
def st_platform(request: pytest.FixtureRequest) -> str:
    """The first platform of the test's mark that is a simulator's, or the first; a2a3sim without the mark."""
    mark = request.node.get_closest_marker("platforms")
    names = list(mark.args[0]) if mark is not None else ["a2a3sim"]
    return str(next((name for name in names if name.endswith("sim")), names[0]))


@pytest.fixture
def st_device_ids(request: pytest.FixtureRequest) -> list[int]:
    """As many chips as the test's mark says, or one."""
    mark = request.node.get_closest_marker("device_count")
    return list(range(mark.args[0] if mark is not None else 1))
