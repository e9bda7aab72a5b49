"""Every public name of PyTorch's packages is there: it works, or says that it does not."""

from __future__ import annotations

import importlib
import logging
import re
import types
from pathlib import Path

import pytest
from conftest import OpenWorld
from ranks import on_ranks

import torchemu as torch
import torchemu.distributed as dist
import torchemu.multiprocessing as mp
from torchemu.frontends import stand_ins

NAMES = Path(__file__).parent / "data" / "torch_names_2_11.txt"
"""Names that dir() finds in PyTorch itself. A package's title is followed by the number of its names."""

SAY_SO_AT_ONCE = {"torch.multiprocessing": ["reducer", "reductions"]}
"""Names that already say so themselves."""


def sections() -> dict[str, list[str]]:
    """The names by package."""
    found: dict[str, list[str]] = {}
    for line in NAMES.read_text().splitlines():
        title, colon, count = line.partition(": ")
        if colon:
            names = found[title] = []
            names.append(count)
        elif line and not line.startswith("#"):
            names.append(line)
    return found


def names() -> list[tuple[str, str]]:
    """All of them, each with its package."""
    return [(package, name) for package, (_, *listed) in sections().items() for name in listed]


def module(package: str) -> types.ModuleType:
    """Returns what a program has under the name of the package."""
    return importlib.import_module(package.replace("torch", "torchemu", 1))


def test_the_list_is_whole() -> None:
    for count, *listed in sections().values():
        assert len(set(listed)) == int(count)
    assert sorted(sections()) == ["torch.distributed", "torch.multiprocessing"]


@pytest.mark.parametrize(("package", "name"), names())
def test_a_name_works_or_says_that_it_does_not(package: str, name: str) -> None:
    if name in SAY_SO_AT_ONCE.get(package, []):
        with pytest.raises(NotImplementedError, match=rf"^{package}\.{name} is not supported: \w"):
            getattr(module(package), name)
        return
    found = getattr(module(package), name)
    if type(found) in (type, types.FunctionType):
        assert "Not supported" not in (found.__doc__ or "")


def test_other_names_are_attribute_errors() -> None:
    for package in (dist, mp):
        assert not hasattr(package, "no_such_name")
        with pytest.raises(AttributeError):
            package.no_such_name  # noqa: B018


def test_nothing_is_an_instance_of_what_is_not_supported() -> None:
    for kind in (dist.ProcessGroupNCCL, dist.ProcessGroupGloo):
        assert not isinstance(3, kind)
    options = dist.ProcessGroupNCCL.Options(is_high_priority_stream=True)
    options.config.min_ctas = 4
    assert (options.is_high_priority_stream, options.config.min_ctas) == (True, 4)


def test_the_names_of_modules_are_modules() -> None:
    for name in ("constants", "distributed_c10d"):
        assert isinstance(getattr(dist, name), types.ModuleType)
        assert importlib.import_module(f"torchemu.distributed.{name}") is getattr(dist, name)


SENTENCE = r"^torchemu's NumPy front end has no {}: run with --torch real \(pip install torchemu\[torch\]\)$"


@pytest.mark.parametrize(
    "name",
    [
        "torch.vmap",
        "torch.complex32",
        "torch.Tensor.cfloat",
        "torch.Tensor.conj",
        "torch.Tensor.digamma",
        "torch.Tensor.median",
        "torch.Tensor.movedim",
        "torch.Tensor.positive",
        "torch.Tensor.tensor_split",
        "torch.block_diag",
        "torch.linalg",
        "torch.logdet",
        "torch.view_as_real",
        "torch.nn.BatchNorm1d",
        "torch.nn.SyncBatchNorm",
        "torch.nn.functional.cosine_similarity",
        "torch.nn.functional.dropout2d",
        "torch.nn.functional.interpolate",
        "torch.nn.parallel",
        "torch.nn.Conv2d",
        "torch.nn.functional.conv2d",
        "torch.nn.init.dirac_",
        "torch.optim.LBFGS",
        "torch.autograd.gradcheck",
        "torch.cuda.CUDAGraph",
        "torch.cuda.MemPool",
        "torch.distributed.DeviceMesh",
        "torch.distributed._functional_collectives",
        "torch.distributed._symmetric_memory",
        "torch.distributed.distributed_c10d._find_pg_by_ranks_and_tag",
        "torch.distributed.rpc",
        "torch.profiler.supported_activities",
        "torch.utils.data",
    ],
)
def test_a_name_that_is_not_there_says_where_it_is(open_world: OpenWorld, name: str) -> None:
    open_world()
    owner, _, last = name.rpartition(".")
    owners = [torch.ones(1), torch.Tensor, torch.nn.Parameter] if owner == "torch.Tensor" else [module(owner)]
    for one in owners:
        with pytest.raises(AttributeError, match=SENTENCE.format(re.escape(name))):
            getattr(one, last)
    if owner != "torch.Tensor":
        with pytest.raises(ImportError, match=SENTENCE.format(re.escape(name))):
            exec(f"from {owner.replace('torch', 'torchemu', 1)} import {last}")


@pytest.mark.parametrize(
    "name", ["fft", "distributed.fsdp", "testing._internal", "distributed.tensor.parallel", "nn.parallel.distributed"]
)
def test_a_module_that_is_not_there_says_where_it_is(name: str) -> None:
    missing = name.removesuffix(".parallel").removesuffix(".distributed")
    for package in ("torch", "torchemu"):
        with stand_ins.installed(), pytest.raises(ModuleNotFoundError, match=SENTENCE.format(f"torch.{missing}")):
            importlib.import_module(f"{package}.{name}")


class TestDebugLevel:
    @pytest.fixture(autouse=True)
    def _world(self, open_world: OpenWorld, monkeypatch: pytest.MonkeyPatch) -> None:
        open_world()
        monkeypatch.delenv("TORCH_DISTRIBUTED_DEBUG", raising=False)

    @pytest.mark.parametrize("text", ["", "OFF", "INFO", "DETAIL", "detail"])
    def test_the_environment_says_it(self, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
        monkeypatch.setenv("TORCH_DISTRIBUTED_DEBUG", text)
        assert dist.get_debug_level() is dist.DebugLevel[text.upper() or "OFF"]

    def test_every_rank_has_its_own(self) -> None:
        def program(rank: int) -> list[str]:
            levels = [dist.get_debug_level().name]
            dist.set_debug_level(list(dist.DebugLevel)[rank])
            dist.HashStore().set("let", "others run")
            return [*levels, dist.get_debug_level().name]

        assert on_ranks(3, program) == [["OFF", "OFF"], ["OFF", "INFO"], ["OFF", "DETAIL"]]

    def test_again_from_the_environment(self, monkeypatch: pytest.MonkeyPatch) -> None:
        assert dist.get_debug_level() is dist.DebugLevel.OFF
        monkeypatch.setenv("TORCH_DISTRIBUTED_DEBUG", "INFO")
        assert dist.get_debug_level() is dist.DebugLevel.OFF
        dist.set_debug_level_from_env()
        assert dist.get_debug_level() is dist.DebugLevel.INFO

    def test_misuse(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("TORCH_DISTRIBUTED_DEBUG", "LOUD")
        with pytest.raises(ValueError, match="The value of TORCH_DISTRIBUTED_DEBUG must be OFF, INFO, or DETAIL"):
            dist.set_debug_level_from_env()
        with pytest.raises(TypeError, match=r"'INFO' is not a DebugLevel"):
            dist.set_debug_level("INFO")  # type: ignore[arg-type]


class TestBreakpoint:
    def test_one_rank_stops(self, open_world: OpenWorld, monkeypatch: pytest.MonkeyPatch) -> None:
        open_world()
        stopped = []

        class Debugger:
            def set_trace(self, frame: types.FrameType) -> None:
                stopped.append((dist.get_rank(), frame.f_code.co_name, frame.f_locals["turn"]))

        monkeypatch.setattr("pdb.Pdb", Debugger)

        def program(rank: int) -> None:
            dist.init_process_group("gloo")
            for turn in range(3):
                dist.breakpoint(rank=1, skip=1)
                assert len(stopped) <= turn

        on_ranks(3, program)
        assert stopped == [(1, "program", 1), (1, "program", 2)]


def test_loggers() -> None:
    from torchemu.distributed import c10d_logger

    def function(x: int) -> int:
        return x + 1

    assert c10d_logger._exception_logger(c10d_logger._time_logger(function)) is function
    assert dist.log is logging.getLogger("torch.distributed") is c10d_logger._c10d_logger
    assert list(dist.logging_handlers._log_handlers) == ["default"]
