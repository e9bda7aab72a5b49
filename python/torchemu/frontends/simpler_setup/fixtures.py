"""Fixtures and options for the pytest files of simpler: a test's chips, their platform, and its Worker."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from torchemu.frontends.simpler.worker import Worker
from torchemu.frontends.simpler_setup._standalone import MANUAL, MOST
from torchemu.frontends.simpler_setup.parallel_scheduler import device_range_to_list
from torchemu.frontends.simpler_setup.scene_test import SceneTestCase, worker_of

_MARKS = (
    "platforms(names): those that a test is for",
    "runtime(name): the one that a test is for",
    "device_count(n): how many chips a test gets",
    "requires_hardware: for tests that do not run on a simulator elsewhere",
)
_SIMULATED = "a2a3sim"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the options of simpler's own conftest, as far as a file beside the tests has not added them."""
    _add(parser, "--platform", default=None, help="the platform of tests; else the simulator that they are for")
    _add(parser, "--device", default=None, help="numbers of devices: 0, 0-3, 0,2,5; else as many as tests need")
    _add(parser, "--case", action="append", default=None, help="of scene tests: case, Class::case or Class::")
    _add(parser, "--manual", choices=MANUAL, default="exclude", help="cases of scene tests that say manual")
    _add(parser, "--rounds", type=int, default=1, help="how often each case of a scene test runs")
    _add(parser, "--skip-golden", action="store_true", default=False, help="do not look at scene tests' results")
    _add(parser, "--runtime", default=None, help="only scene tests for this runtime")
    _add(parser, "--level", type=int, default=None, help="only scene tests of this level")
    for ignored in ("--pto-isa-commit", "--clone-protocol", "--max-parallel"):
        _add(parser, ignored, default=None, help="without effect")
    _add(parser, "--build", action="store_true", default=False, help="without effect")


def _add(parser: pytest.Parser, name: str, **settings: object) -> None:
    try:
        parser.addoption(name, **settings)
    except ValueError:
        return  # a conftest has it


def pytest_configure(config: pytest.Config) -> None:
    """Makes the marks known."""
    for mark in _MARKS:
        config.addinivalue_line("markers", mark)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out tests for other platforms, runtimes and levels than the command says."""
    option = config.getoption
    wanted = (option("--platform"), option("--runtime"), option("--level"))
    left_out = [item for item in items if not _is_for(item, *wanted)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


def _is_for(item: pytest.Item, platform: str | None, runtime: str | None, level: int | None) -> bool:
    platforms, cls = item.get_closest_marker("platforms"), getattr(item, "cls", None)
    if platform is not None and platforms is not None and platform not in platforms.args[0]:
        return False
    its_level = getattr(cls, "_st_level", None)
    return runtime in (None, getattr(cls, "_st_runtime", runtime)) and (level is None or its_level in (None, level))


@pytest.fixture
def st_platform(request: pytest.FixtureRequest) -> str:
    """The platform that --platform names; else the first simulator that the test is for, or the first platform."""
    given = request.config.getoption("--platform")
    if given:
        return str(given)
    mark, cls = request.node.get_closest_marker("platforms"), request.cls
    cases = [name for case in getattr(cls, "CASES", ()) for name in case["platforms"]]
    names = list(mark.args[0]) if mark is not None else cases or [_SIMULATED]
    return str(next((name for name in names if name.endswith("sim")), names[0]))


@pytest.fixture
def st_device_ids(request: pytest.FixtureRequest) -> list[int]:
    """Returns as many chips as the test's mark says, or one: the first of --device."""
    mark = request.node.get_closest_marker("device_count")
    count = mark.args[0] if mark is not None else 1
    devices = _devices(request)
    if count > len(devices):
        pytest.fail(f"the test needs {count} devices, and --device has {devices}")
    return devices[:count]


@pytest.fixture
def st_worker(request: pytest.FixtureRequest, st_platform: str) -> Iterator[Worker]:
    """The Worker of a scene test, with what the test's CALLABLE has registered."""
    if request.cls is None or not issubclass(request.cls, SceneTestCase):
        pytest.fail("st_worker is for classes with @scene_test")
    with worker_of(request.cls, st_platform, _devices(request)) as worker:
        yield worker


def _devices(request: pytest.FixtureRequest) -> list[int]:
    given = request.config.getoption("--device")
    return list(range(MOST)) if given is None else device_range_to_list(given)
