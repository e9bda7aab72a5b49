"""Sets of strings have one order in all runs; under --explore each rank has its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from launch import launch, written

PRINTS = """
import os, torch.distributed as dist
dist.init_process_group("gloo")
if dist.get_rank() == 0:
    print(list({f"name{i}" for i in range(40)}), os.environ.get("PYTHONHASHSEED"))
"""


def _printed(file: Path, *flags: str, **variables: str) -> str:
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONHASHSEED"} | variables
    command = [sys.executable, "-m", "torchemu", "run", "--nproc-per-node", "2", *flags, str(file)]
    return subprocess.run(command, env=environ, capture_output=True, text=True, check=True, timeout=120).stdout


@pytest.mark.slow
def test_the_seed_decides_the_order(tmp_path: Path) -> None:
    file = written(tmp_path, PRINTS)
    first, again, other = _printed(file), _printed(file), _printed(file, "--seed", "1")
    assert first == again != other
    assert first.endswith("None\n")  # programs see what the user has set
    assert _printed(file, PYTHONHASHSEED="7").endswith("7\n")


WAYS = {
    "for": "for n in names: reduce(n)",
    "comprehension": "[reduce(n) for n in names]",
    "generator": "any(reduce(n) for n in names)",
    "list": "for n in list(names): reduce(n)",
    "enumerate": "for i, n in enumerate(names): reduce(n)",
    "map": "list(map(reduce, names))",
    "star": "[reduce(n) for n in [*names]]",
    "pop": "while names: reduce(names.pop())",
    "unpacking": "a, b, c, d, e, f = names\\nfor n in (a, b, c, d, e, f): reduce(n)",
    "next": "reduce(next(iter(names)))",
    "join": "reduce(','.join(names).partition(',')[0])",
    "dict": "for n in dict.fromkeys(names): reduce(n)",
    "frozenset": "for n in frozenset(names): reduce(n)",
    "difference": "for n in names - {'q'}: reduce(n)",
}
"""Ways to go through a set, by their names."""

PROGRAM = """
import torch, torch.distributed as dist
dist.init_process_group("gloo")

def reduce(name):
    dist.all_reduce(torch.ones(len(name)))

names = {{"a", "bc", "def", "ghij", "klmno", "pqrstu"}}
{}
"""


@pytest.mark.parametrize("way", WAYS)
def test_exploring_finds_what_depends_on_the_order(tmp_path: Path, way: str) -> None:
    file = written(tmp_path, PROGRAM.format(WAYS[way].replace("\\n", "\n")))
    assert launch("--nproc-per-node", "2", file).status == 0
    outcome = launch("--nproc-per-node", "2", "--explore", "10", file)
    assert outcome.status == 1 and "MismatchError" in outcome.err and f"{file}:6 in reduce" in outcome.err
    flags = outcome.err.partition("fails with ")[2].partition(",")[0].replace("''", "").split()
    assert "--set-orders" in flags
    again = launch("--nproc-per-node", "2", *(flags if "--replay" not in flags else _quoted(flags)), file)
    assert again.status == 1 and "MismatchError" in again.err


def _quoted(flags: list[str]) -> list[str]:
    """The flags, where --replay may have an empty value."""
    at = flags.index("--replay")
    return flags if flags[at + 1][:2] != "--" else [*flags[: at + 1], "", *flags[at + 1 :]]


@pytest.mark.parametrize(
    "body",
    [
        "for n in sorted(names): reduce(n)",
        "assert names == {'a', 'bc', 'def', 'ghij', 'klmno', 'pqrstu'} and len(names) == 6 and 'a' in names",
        "for n in {1, 2, 3}: reduce('x' * n)",
        "x = set(names); x.discard('a'); assert len(x) == 5; [n for n in x if n in names]",
        "d = {'b': 1, 'a': 2}; assert list(d) == ['b', 'a'] and [*'xyz'] == ['x', 'y', 'z'] and d.pop('a') == 2",
        "l = [1, 2]; assert l.pop() == 2 and ''.join(['a', 'b']) == 'ab'",
        "(a, b), c = (1, 2), 3; assert (a, b, c) == (1, 2, 3)",
    ],
)
def test_what_depends_on_no_order_is_as_ever(tmp_path: Path, body: str) -> None:
    file = written(tmp_path, PROGRAM.format(body))
    assert launch("--nproc-per-node", "3", "--explore", "6", file).status == 0
