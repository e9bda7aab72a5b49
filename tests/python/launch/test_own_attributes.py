"""Attributes that a rank's program sets on modules and classes that all ranks share are the rank's own."""

from __future__ import annotations

import json
import random
import textwrap
from pathlib import Path

import pytest
from launch import launch, lines, written

from torchemu.launch import compiling, own_attributes

START = """
import builtins, json, random as shared
import torch, torch.distributed as dist, torch.nn.functional as F
dist.init_process_group("gloo")
rank = dist.get_rank()
"""

SETS = {
    "a function of a package": ("F.relu = lambda x: rank", "F.relu(1)"),
    "a function that others call": ("dist.get_rank = lambda group=None: 10 + rank", "dist.get_rank() - 10"),
    "a method": ("torch.Tensor.whose = lambda self: rank", "torch.ones(1).whose()"),
    "an attribute of a class": ("torch.nn.Linear.mine = rank", "torch.nn.Linear.mine"),
    "mock.patch": ("from unittest import mock\nmock.patch('json.dumps', lambda x: rank).start()", "json.dumps(0)"),
    "mock.patch.object": (
        "import unittest.mock\nunittest.mock.patch.object(torch.nn.Linear, 'mine', rank, create=True).start()",
        "torch.nn.Linear.mine",
    ),
    "a patch in a patch": (
        "from unittest.mock import patch\nwith patch('json.dumps', rank):\n    dist.barrier()\n"
        "    with patch('json.dumps', -1): dist.barrier()\n    seen = json.dumps",
        "seen",
    ),
    "by setattr": ("setattr(torch.nn.Linear, 'mine', rank)", "torch.nn.Linear.mine"),
    "Python's library": ("json.dumps = lambda x: rank", "json.dumps(0)"),
    "builtins": ("builtins.mine = rank", "mine"),
    "twice": ("json.mine = -1; json.mine = rank", "json.mine"),
    "in a function": ("def f():\n    json.mine = rank\nf()", "json.mine"),
    "in place": ("json.mine = rank - 1\njson.mine += 1", "json.mine"),
    "one of several": ("json.mine, x = rank, 2", "json.mine"),
    "on one rank": ("if rank == 1: json.mine = 1", "getattr(json, 'mine', rank)"),
    "an alias": ("import json as j; j.mine = rank", "json.mine"),
    "taken away": ("json.mine = 5\nif rank: del json.mine", "rank if hasattr(json, 'mine') == (rank == 0) else 99"),
}
"""By what is set: how, and what is the rank's number afterwards."""


@pytest.mark.parametrize("name", SETS)
def test_each_rank_has_its_own(tmp_path: Path, name: str) -> None:
    sets, reads = SETS[name]
    text = f"{START}{sets}\nfor _ in range(3): dist.barrier()\nprint({reads})\n"
    assert lines(launch("--nproc-per-node", "3", written(tmp_path, text))) == ["0", "1", "2"]
    assert not hasattr(json, "mine") and json.dumps({}) == "{}"  # afterwards all is as before


def test_a_patch_of_print_as_examples_have_it(tmp_path: Path) -> None:
    text = """
    import builtins as __builtin__
    import torch.distributed as dist
    def setup(is_master):
        builtin_print = __builtin__.print
        def print(*args, **kwargs):
            if is_master or kwargs.pop("force", False): builtin_print(*args, **kwargs)
        __builtin__.print = print
    dist.init_process_group("gloo")
    setup(dist.get_rank() == 0)
    dist.barrier()
    print("once")
    """
    assert lines(launch("--nproc-per-node", "4", written(tmp_path, text))) == ["once"]


def test_objects_are_set_as_ever(tmp_path: Path) -> None:
    text = """
    import types
    calls = []
    class A:
        def __init__(self): self.x = 1
    def a():
        calls.append(1)
        return A()
    a().x = 2
    b = A(); b.x, b.y = b, 3; b.x.y += 1; b.x.z = w = [5]
    A.n = 7
    m = types.ModuleType("m"); m.v = 8
    del b.z
    d = {}; d["k"] = A(); d["k"].x = 9
    print(len(calls), b.y, A.n, m.v, w, hasattr(b, "z"), d["k"].x)
    """
    assert lines(launch("--nproc-per-node", "1", written(tmp_path, text))) == ["1 4 7 8 [5] False 9"]


def test_lines_of_errors_stay_what_they_are(tmp_path: Path) -> None:
    file = written(tmp_path, "import json\njson.mine = (\n    1 /\n    0)\n")
    assert f'"{file}", line 3, in <module>' in launch("--nproc-per-node", "1", file).err


def test_code_that_sets_nothing_is_pythons_own() -> None:
    for text in ("x = 1\n", "class A:\n    def f(self):\n        self.x = 1\n", "a[0].b = 1\n", "f().x = 2\n"):
        assert compiling.compiled(text.encode(), "f.py") is None


def test_compiled_programs_mean_the_same() -> None:
    seed = 20262
    draw = random.Random(seed)
    statements = ["o.a = o.b", "o.a, o.b = o.b, o.a", "o.a += 1", "p.o.a = 3", "o.b = p.o.b = 4", "setattr(o, 'a', 6)"]
    import types

    for case in range(50):
        text = textwrap.dedent("\n".join(draw.choices(statements, k=6))) + "\n"
        results = []
        for own in (False, True):
            o = types.SimpleNamespace(a=1, b=2)
            names = {"o": o, "p": types.SimpleNamespace(o=o), "__torchemu_sets__": lambda owner, name: None}
            names["__torchemu_setattr__"] = setattr
            code = compiling.compiled(text.encode(), "f.py") if own else compile(text, "f.py", "exec")
            exec(code, names)
            results.append((o.a, o.b))
        assert results[0] == results[1], (seed, case, text)


def test_classes_of_mocks_are_not_exchanged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each mock has a class of its own, with a hundred attributes: thousands of mocks took minutes."""
    exchanged: list[object] = []
    real = own_attributes.is_shared
    monkeypatch.setattr(own_attributes, "is_shared", lambda owner, name: exchanged.append(owner) or real(owner, name))
    script = START + "from unittest import mock\nmocks = [mock.MagicMock(return_value=i) for i in range(20)]\n"
    script += "mock.patch('json.dumps', rank).start()\nprint([m() for m in mocks] == list(range(20)), json.dumps)"
    file = written(tmp_path, script)
    assert lines(launch("--nproc-per-node", "2", file)) == ["True 0", "True 1"]
    assert set(exchanged) == {json}
