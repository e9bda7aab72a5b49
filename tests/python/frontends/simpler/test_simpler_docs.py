"""The page about simpler quotes kernels as they are, and what drivers print.

``pytest -k simpler_docs --rewrite`` puts both there.
"""

from __future__ import annotations

import re
import shlex

import pytest
from compiled_cases import needs_compiler
from conftest import ROOT
from launch import TIME, launch

PAGE = ROOT / "docs" / "simpler.md"
KERNEL = re.compile(r"<!-- (benches/[\w./]+\.py) -->\n```python\n(.*?)```\n", re.DOTALL)
OUTPUT = re.compile(r"```console\n\$ cd (benches/\w+)\n\$ (torchemu run [^\n]*)\n(.*?)```\n", re.DOTALL)


def kernel(found: re.Match[str]) -> str:
    return f"<!-- {found[1]} -->\n```python\n{(ROOT / found[1]).read_text()}```\n"


def output(found: re.Match[str], monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(ROOT / found[1])
    outcome = launch(*shlex.split(found[2])[2:])
    assert outcome.status == 0
    assert all(" was not compiled" in line for line in outcome.err.splitlines())
    return f"```console\n$ cd {found[1]}\n$ {found[2]}\n{outcome.out}```\n"


@needs_compiler
def test_simpler_docs(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    text = KERNEL.sub(kernel, PAGE.read_text())
    text = OUTPUT.sub(lambda found: output(found, monkeypatch), text)
    if request.config.getoption("--rewrite"):
        PAGE.write_text(text)
    assert len(KERNEL.findall(text)) == 1
    assert len(OUTPUT.findall(text)) == 3
    assert TIME.sub("TIME", PAGE.read_text()) == TIME.sub("TIME", text)
