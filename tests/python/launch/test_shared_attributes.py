"""An installed package sets attributes of others for all ranks; two ranks that set different ones get an error."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest
from launch import Outcome, launch, lines, written

from torchemu.launch import shared_attributes

PACKAGE = """
import contextlib
import sys
import types
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn

F.of_import = []

def same():
    F.mine = len

def own(rank):
    F.mine = lambda x: rank

def of_a_class(rank):
    nn.Linear.mine = rank

def by_setattr(rank):
    setattr(torch.Tensor, "mine", rank)

def a_list(*values):
    torch.mine = list(values)

def made_twice(rank, times):
    def f(x):
        return x * times
    torch.mine = f

def knows_itself(rank, times, a=(torch.ones(2), 1), *, b=None):
    def f(x, a=a, *, b=b):
        f.calls = x
        return later if False else x * times
    torch.mine = f
    if rank > 1:
        later = 1

def for_a_while(rank, call):
    before = F.relu
    F.relu = lambda x: rank
    found = F.relu(1)
    F.relu = before
    return found

def absent_for_a_while():
    before = getattr(nn.Linear, "absent", None)
    nn.Linear.absent = len
    found = nn.Linear.absent
    nn.Linear.absent = before
    return found

nn.Linear.listed = ["first"]

def extends():
    nn.Linear.listed = ["more"] + nn.Linear.listed

def inherited_for_a_while(rank):
    before = nn.Linear.__delattr__
    setattr(nn.Linear, "__delattr__", lambda self, name: rank)
    found = nn.Linear.__delattr__(None, "x")
    setattr(nn.Linear, "__delattr__", before)
    return found

@contextlib.contextmanager
def holding(rank, kind):
    for cls in {kind}:
        cls.__old__init__ = cls.__init__
        cls.__init__ = lambda self: cls.__old__init__(self, rank)
        setattr(F, "before", F.relu)
        F.relu = lambda x: (rank, F.before)
    yield
    for cls in {kind}:
        cls.__init__ = cls.__old__init__
        del cls.__old__init__
        F.relu = F.before
        delattr(F, "before")

def heard_from_the_first(rank):
    import builtins as __builtin__

    original = __builtin__.print

    def print(*args, **kwargs):
        if rank == 0 or kwargs.pop("force", False):
            original(*args, **kwargs)

    __builtin__.print = print

def says(what, **kwargs):
    print(what, **kwargs)

class Own:
    def __init__(self, made):
        self.made = made

def its_own(rank):
    Own.mine = rank

class Legacy:
    def __init__(self, rank):
        self.rank = rank

    def __enter__(self):
        module = types.ModuleType("patching_legacy")
        module.rank = self.rank
        sys.modules["patching_legacy"] = module
        F.legacy = self.rank

    def __exit__(self, *error):
        del sys.modules["patching_legacy"]
        del F.legacy

def within(rank):
    with Legacy(rank):
        dist.barrier()
        found = sys.modules["patching_legacy"].rank == F.legacy == rank
    dist.barrier()
    return found and "patching_legacy" not in sys.modules and not hasattr(F, "legacy")

def wraps(more):
    inner = F.relu
    def relu(x):
        return inner(x) + more
    F.relu = relu

def wraps_another(more):
    inner = F.silu
    F.silu = lambda x: inner(x) + more

def wraps_inherited():
    inner = torch.nn.Linear.__repr__
    torch.nn.Linear.__repr__ = lambda self: "<" + inner(self) + ">"
"""


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    """Lets each run load the package anew."""
    yield
    sys.modules.pop("patching", None)


def ran(folder: Path, calls: str, *flags: str) -> Outcome:
    """Runs a program whose ranks call functions of a package that is installed."""
    written(folder, PACKAGE, "site-packages/patching.py")
    text = f"""
    import sys
    sys.path.append({str(folder / "site-packages")!r})
    import torch, torch.distributed as dist, torch.nn.functional as F
    import patching
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    {calls}
    dist.barrier()
    """
    return launch("--nproc-per-node", "2", *flags, written(folder, text))


@pytest.mark.parametrize(
    "call",
    [
        "own(rank)",
        "of_a_class(rank)",
        "by_setattr(rank)",
        "a_list('a', rank)",
        "made_twice(rank, rank + 1)",
        "knows_itself(rank, rank)",
        "knows_itself(rank, 3, (torch.ones(2), rank))",
        "knows_itself(rank, 3, (torch.ones(2), 1))",
        "knows_itself(rank, 3, b=rank)",
        "wraps_another(rank)",
    ],
)
def test_another_value_is_an_error(tmp_path: Path, call: str) -> None:
    outcome = ran(tmp_path, f"patching.{call}")
    assert outcome.status == 1
    assert (
        ".silu" if "wraps" in call else ".mine"
    ) + ", which it has set to something else for rank 0: installed packages set" in outcome.err
    assert "--isolate patching gives each rank its own" in outcome.err


@pytest.mark.parametrize(
    "call",
    [
        "patching.same(); print(F.mine is len)",
        "patching.a_list('a', 1); print(torch.mine == ['a', 1])",
        "patching.made_twice(rank, 3); print(torch.mine(1) == 3)",
        "patching.knows_itself(rank, 3); print(torch.mine(1) == 3)",
        "print(patching.for_a_while(rank, F) == rank)",
        "rank and dist.barrier(); print(patching.absent_for_a_while() is len); rank or dist.barrier()",
        "patching.extends(); print(torch.nn.Linear.listed == ['more', 'first'])",
        "print(patching.inherited_for_a_while(rank) == rank)",
        "patching.its_own(rank); print(True)",
        "patching.wraps(3); dist.barrier(); print(F.relu(torch.ones(1)).item() == 4)",
        "patching.wraps_inherited(); dist.barrier(); print(repr(torch.nn.Linear(1, 1)).count('<') == 1)",
        "patching.own(0 if rank else 0) if rank == 0 else None; dist.barrier(); print(F.mine(5) == 0)",
    ],
)
def test_what_does_not_differ_counts_for_all(tmp_path: Path, call: str) -> None:
    assert lines(ran(tmp_path, call)) == ["True", "True"]


def test_what_context_managers_set_is_the_ranks_own(tmp_path: Path) -> None:
    text = """
    relu = F.relu
    with patching.holding(rank, patching.Own):
        dist.barrier()
        assert patching.Own().made == rank and F.relu(1) == (rank, relu)
        rank and dist.barrier()
    rank or dist.barrier()
    print(patching.Own(5).made == 5 and F.relu is relu, hasattr(F, "before"))
    """
    assert lines(ran(tmp_path, textwrap.indent(textwrap.dedent(text), "    ").strip())) == ["True False"] * 2


def test_modules_that_context_managers_name_are_the_ranks_own(tmp_path: Path) -> None:
    """Each rank puts one of the same name into sys.modules, and takes it out while another one has its own."""
    assert lines(ran(tmp_path, "print(patching.within(rank))")) == ["True", "True"]


def test_what_is_set_on_builtins_is_the_ranks_own(tmp_path: Path) -> None:
    calls = [
        "patching.heard_from_the_first(rank)",
        "dist.barrier()",
        "print('program', rank)",
        "patching.says(f'package {rank}')",
        "patching.says(f'all {rank}', force=True) if rank else None",
    ]
    assert sorted(lines(ran(tmp_path, "; ".join(calls)))) == ["all 1", "package 0", "program 0"]


def test_isolated_packages_set_the_ranks_own(tmp_path: Path) -> None:
    call = "patching.own(rank); dist.barrier(); print(F.mine(5))"
    assert lines(ran(tmp_path, call, "--isolate", "patching")) == ["0", "1"]


def test_files_that_set_nothing_of_others_are_pythons_own() -> None:
    for text in (
        "import a\na.b = 1\n",
        "def f(x):\n    x.y = 1\n",
        "class A:\n    def f(self):\n        self.x = 1\n",
        "import a\ndef f():\n    return a.b == 1\n",
    ):
        assert shared_attributes.compiled(text.encode(), "f.py") is None
    text = b"from x import (\n    a,\n    b,\n)\ndef f():\n    b.c = 1\n"
    assert shared_attributes.compiled(text, "f.py") is not None


LAZY = """
import sys
from types import ModuleType

class Api(ModuleType):
    names = {"one": 1, "two": 2}
    made = []

    def __init__(self, name):
        super().__init__(name)
        setattr(self, "ready", True)

    def __getattr__(self, name):
        if name not in self.names:
            raise AttributeError(name)
        self.made.append(name)
        setattr(self, name, self.names[name])
        return self.names[name]

    @property
    def __dict__(self):
        for name in self.names:
            getattr(self, name)
        return ModuleType.__dict__["__dict__"].__get__(self)

sys.modules[__name__] = Api(__name__)
"""


def test_modules_that_make_their_attributes_at_the_first_use_are_not_asked_for_all(tmp_path: Path) -> None:
    (tmp_path / "site-packages").mkdir()
    (tmp_path / "site-packages/lazily.py").write_text(LAZY)
    (tmp_path / "program.py").write_text(
        f"import sys\nsys.path.append({str(tmp_path / 'site-packages')!r})\n"
        "import lazily\nimport json\nprint(lazily.two, lazily.ready, lazily.made)\n"
    )
    done = launch("--torch", "numpy", "--nproc-per-node", "1", tmp_path / "program.py")
    assert (done.status, done.out) == (0, "2 True ['two']\n"), done.err


def test_what_says_that_it_is_a_module_and_is_none(tmp_path: Path) -> None:
    """The libraries that cffi compiles do so, in sys.modules."""
    (tmp_path / "program.py").write_text(
        "import json, sys, types\n"
        "class Library:\n"
        "    __class__ = types.ModuleType\n"
        "    value = 3\n"
        "sys.modules['compiled.lib'] = Library()\n"
        "import time; time.sleep(0.001)\n"
        "print(isinstance(sys.modules['compiled.lib'], types.ModuleType), sys.modules['compiled.lib'].value)\n"
    )
    done = launch("--torch", "numpy", "--nproc-per-node", "2", tmp_path / "program.py")
    assert (done.status, done.out) == (0, "True 3\nTrue 3\n"), done.err
