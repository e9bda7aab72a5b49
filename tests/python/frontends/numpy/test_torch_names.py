"""Classes and functions have PyTorch 2.11's names inside a run, by which the classes are printed, and pickle finds them
by these; outside of a run by the names of their files."""

from __future__ import annotations

import importlib
import pickle
import sys
from pathlib import Path
from typing import Any

import pytest
from launch import launch, written

import torchemu
import torchemu.pytest_plugin
from torchemu.frontends import stand_ins

# read off PyTorch 2.11: repr(type) of each
TYPES = {
    "torch.Tensor": "torch.Tensor",
    "torch.Size": "torch.Size",
    "torch.device": "torch.device",
    "torch.dtype": "torch.dtype",
    "torch.finfo": "torch.finfo",
    "torch.Generator": "torch._C.Generator",
    "torch.no_grad": "torch.autograd.grad_mode.no_grad",
    "torch.autograd.Function": "torch.autograd.function.Function",
    "torch.nn.Linear": "torch.nn.modules.linear.Linear",
    "torch.nn.Parameter": "torch.nn.parameter.Parameter",
    "torch.optim.SGD": "torch.optim.sgd.SGD",
    "torch.optim.AdamW": "torch.optim.adamw.AdamW",
    "torch.distributed.ProcessGroup": "torch.distributed.distributed_c10d.ProcessGroup",
    "torch.distributed.ReduceOp": "torch.distributed.distributed_c10d.ReduceOp",
    "torch.distributed.Work": "torch.distributed.distributed_c10d.Work",
    "torch.distributed.P2POp": "torch.distributed.distributed_c10d.P2POp",
    "torch.distributed.HashStore": "torch._C._distributed_c10d.HashStore",
    "torch.distributed.PrefixStore": "torch.distributed.distributed_c10d.PrefixStore",
    "torch.distributed.DistBackendError": "torch.distributed.DistBackendError",
    "torch.multiprocessing.ProcessRaisedException": "torch.multiprocessing.spawn.ProcessRaisedException",
    "torch.cuda.OutOfMemoryError": "torch.OutOfMemoryError",
}


def value_of(path: str) -> Any:
    module, _, name = path.rpartition(".")
    return getattr(importlib.import_module(module), name)


@pytest.mark.parametrize(("path", "called"), TYPES.items())
@torchemu.distributed(world_size=1)
def test_a_type_is_called_as_in_pytorch(path: str, called: str) -> None:
    kind = value_of(path)
    assert repr(kind) == f"<class '{called}'>"
    assert pickle.loads(pickle.dumps(kind)) is kind
    assert value_of(called) is kind


@torchemu.distributed(world_size=1)
def test_functions_are_in_distributed_c10d() -> None:
    dist = importlib.import_module("torch.distributed")
    for name in ("all_reduce", "barrier", "send", "irecv", "new_group", "init_process_group", "broadcast_object_list"):
        function = getattr(dist, name)
        assert (function.__module__, function.__name__) == ("torch.distributed.distributed_c10d", name)
        assert pickle.loads(pickle.dumps(function)) is function


@torchemu.distributed(world_size=1)
def test_what_pytorch_has_not_keeps_its_name() -> None:
    assert repr(torchemu.errors.DeadlockError) == "<class 'torchemu.errors.DeadlockError'>"
    assert repr(torchemu.World) == "<class 'torchemu.runtime.world.World'>"


@torchemu.distributed(world_size=1)
def test_every_name_that_is_given_leads_back() -> None:
    """Of all that is loaded: whatever says that it is in a public module of torch is there."""
    importlib.import_module("torch.optim.adamw")
    wrong = []
    for name, module in list(sys.modules.items()):
        if not name.startswith("torchemu."):
            continue
        for kind in list(vars(module).values()):
            if not issubclass(type(kind), type) or kind.__module__.partition(".")[0] != "torch":
                continue
            if kind.__qualname__.startswith("_") or kind.__module__ == "torch.return_types":
                continue
            home = importlib.import_module(kind.__module__)
            if getattr(home, kind.__qualname__, None) is not kind:
                wrong.append(kind)
    assert wrong == []


@torchemu.distributed(world_size=1)
def test_modules_do_not_hide_functions_of_their_names() -> None:
    importlib.import_module("torch.multiprocessing.spawn")
    mp = importlib.import_module("torch.multiprocessing")
    assert mp.spawn is sys.modules["torch.multiprocessing.spawn"].spawn
    assert sys.modules["torch.multiprocessing.spawn"].__name__ == "torchemu.multiprocessing.spawn"


def test_outside_of_runs_names_are_those_of_files() -> None:
    with stand_ins.installed():
        assert repr(torchemu.Tensor) == "<class 'torch.Tensor'>"
        with stand_ins.names_given():
            assert repr(torchemu.Tensor) == "<class 'torch.Tensor'>"
        assert repr(torchemu.Tensor) == "<class 'torch.Tensor'>"
    assert repr(torchemu.Tensor) == "<class 'torchemu.frontends.numpy._tensor.core.Tensor'>"
    assert pickle.loads(pickle.dumps(torchemu.Tensor)) is torchemu.Tensor


def test_a_module_that_is_loaded_later_gets_the_names_too(monkeypatch: pytest.MonkeyPatch) -> None:
    before = importlib.import_module("torchemu.distributed.elastic.multiprocessing.errors")
    monkeypatch.setattr("torchemu.distributed.elastic.multiprocessing.errors", before)  # what it is again afterwards
    monkeypatch.delitem(sys.modules, before.__name__)
    with stand_ins.installed():
        errors = importlib.import_module("torchemu.distributed.elastic.multiprocessing.errors")
        assert errors.record.__module__ == "torch.distributed.elastic.multiprocessing.errors"
    assert errors.record.__module__ == "torchemu.frontends.numpy.distributed.elastic.multiprocessing.errors"


def test_a_module_hides_no_function_of_its_name(tmp_path: Path) -> None:
    """It is both, as torch.multiprocessing.spawn is: the module where it is imported, the function as an attribute."""
    script = written(
        tmp_path,
        """\
        import torch.multiprocessing as mp
        from torch.multiprocessing.spawn import ProcessRaisedException
        import torch.multiprocessing.spawn
        print(ProcessRaisedException.__name__, mp.spawn.__name__, callable(mp.spawn))
        """,
    )
    assert launch("--nproc-per-node", 1, script).out == "ProcessRaisedException spawn True\n"


def test_a_traceback_says_torchs_name(tmp_path: Path) -> None:
    script = written(tmp_path, "import torch.distributed as dist\nraise dist.DistBackendError('no link')\n")
    assert "[rank0]: torch.distributed.DistBackendError: no link\n" in launch("--nproc-per-node", 1, script).err


@pytest.mark.parametrize("first", ["inside", "outside"])
def test_a_saved_module_is_loaded_on_either_side(tmp_path: Path, first: str) -> None:
    def save() -> None:
        module = torchemu.nn.Sequential(torchemu.nn.LayerNorm(2), torchemu.nn.Linear(2, 1))
        torchemu.save(module, tmp_path / "module.pt")

    def load() -> None:
        kinds = [torchemu.nn.Sequential, torchemu.nn.LayerNorm, torchemu.nn.Linear]
        module = torchemu.load(tmp_path / "module.pt", weights_only=False)
        assert [type(each) for each in (module, *module)] == kinds

    inside = torchemu.distributed(world_size=1)
    if first == "inside":
        inside(save)()
    with torchemu.open_world():
        (load if first == "inside" else save)()
    if first == "outside":
        inside(load)()
