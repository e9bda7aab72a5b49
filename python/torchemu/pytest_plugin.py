"""Tests that ranks run, in an ordinary pytest process::

    import torchemu.pytest_plugin
    import torchemu.distributed as dist

    @torchemu.distributed(world_size=8, topology="sips8")
    def test_sum():
        tensor = torchemu.full((4,), dist.get_rank())
        dist.all_reduce(tensor)
        assert tensor.tolist() == [28] * 4

pytest loads this module in every run, as a plugin; it is light, and loads the rest when a test runs. With

    torchemu_as_torch = true

in pytest's configuration, ``import torch`` gives torchemu in all of the run, for code that is to be tested as it is.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pytest

_AS_TORCH = "torchemu_as_torch"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the setting to pytest's."""
    parser.addini(_AS_TORCH, "let `import torch` give torchemu", type="bool", default=False)


def pytest_load_initial_conftests(early_config: pytest.Config) -> Iterator[None]:
    """Follows the setting before anything of the user's is imported. After the user's conftests it loads the fixtures
    and options of front ends, where programs get their stand-ins."""
    if early_config.getini(_AS_TORCH):
        from torchemu.frontends import stand_ins

        stack = contextlib.ExitStack()
        stack.enter_context(stand_ins.installed())
        early_config.add_cleanup(stack.close)
    yield
    _load_fixtures(early_config)


# pytest's mark for hooks that run around others, without importing pytest
pytest_load_initial_conftests.pytest_impl = {"hookwrapper": True}  # type: ignore[attr-defined]


def _load_fixtures(config: pytest.Config) -> None:
    stand_ins = sys.modules.get("torchemu.frontends.stand_ins")
    if stand_ins is None or not stand_ins.are_installed():
        return
    from torchemu import runtime

    context = runtime.running()
    if context is not None and context.tasks is not None and context.tasks.nprocs > 1:
        return  # ranks run pytest, and each is on a device of its own already
    from torchemu.frontends.base import enabled

    for front_end in enabled():
        if front_end.fixtures:
            config.pluginmanager.import_plugin(front_end.fixtures)


def distributed(
    function: Callable[..., Any] | None = None,
    /,
    *,
    world_size: int | None = None,
    topology: str = "default",
    ccl: str = "",
    seed: int = 0,
    isolate: Collection[str] | None = None,
    virtual_clock: bool = False,
    check: bool = True,
    reorder: int | None = None,
    faults: str | Sequence[Mapping[str, Any]] = (),
    torch: str | None = None,
) -> Callable[..., Any]:
    """A decorator: the test runs once a rank, each time as in a process of its own that torchrun has started.

    Each rank has modules of its own, of the program's: the test's module is loaded again in each, and the test's
    arguments, from fixtures and parameters, arrive there as they are, but for objects of the module's own classes,
    which arrive by pickle. A function inside of another function is called as it is. A default process group is there
    already; a test may also make it. The test fails as the first rank that fails, in simulated time; ranks that wait
    for it are unwound.

    Args:
        world_size: ranks; without it one for each SIP of the topology.
        topology: a preset, which gets more SIPs where there are more ranks, or a topology.yaml.
        ccl: a ccl.yaml; without it the Tuner chooses algorithms.
        seed: of the ranks' random numbers.
        isolate: installed packages of which each rank has its own modules, too; () for none. By default,
            those that keep state of their own in module globals, such as megatron.
        virtual_clock: let the module time tell simulated time.
        check: let the test fail when device programs access memory in no order.
        reorder: the seed by which what device programs do is moved where no rule orders it; None moves nothing.
        faults: what goes wrong, and when: a YAML file, or its entries, such as ``{"kill": 2, "at": 3e6}``.
        torch: what ``import torch`` gives, as for ``torchemu run --torch``; None for its default. With "real", the
            installed PyTorch, the test makes the default process group itself, and its module imports torch inside of
            the test, or is loaded with it.

    Raises:
        TypeError: the test is a coroutine, a generator or a class; world_size is no integer.
        ValueError: world_size is not positive. When the test runs: there is no such torch.
    """
    if world_size is not None and not isinstance(world_size, int):
        raise TypeError(f"world_size must be an integer, not {world_size!r}")
    if world_size is not None and world_size < 1:
        raise ValueError(f"world_size must be at least 1, not {world_size}")
    setting = (world_size, topology, ccl, seed, isolate, virtual_clock, check, reorder, faults, torch)
    return _decorated(setting) if function is None else _decorated(setting)(function)


def _decorated(setting: tuple[Any, ...]) -> Callable[..., Any]:
    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        unusual = (inspect.isclass, inspect.iscoroutinefunction, inspect.isgeneratorfunction)
        if not callable(function) or any(is_so(function) for is_so in unusual):
            raise TypeError(f"@torchemu.distributed is for test functions, and {function!r} is not a plain one")

        @functools.wraps(function)
        def test(*args: Any, **kwargs: Any) -> None:
            __tracebackhide__ = True
            from torchemu.launch import testing

            testing.run(function, testing.Setting(*setting), args, kwargs)

        test.torchemu_original = function  # type: ignore[attr-defined] # see torchemu.launch.testing
        return test

    return decorate
