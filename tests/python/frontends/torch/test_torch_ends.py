"""Runs on the installed PyTorch end as processes do: what is left on ranks' threads ends no process."""

import shlex
import subprocess
import sys

import pytest
from conftest import ROOT

SCRIPTS = ("coalesced", "distributed_data_parallel", "election", "functional", "overlap")


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_prints_what_it_does_on_pytorch_and_ends(name):
    script = ROOT / "tests" / "scripts" / f"{name}.py"
    _, _, *arguments = shlex.split(script.read_text().splitlines()[0])
    command = [sys.executable, "-m", "torchemu", "run", "--torch", "real", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=script.parent)
    assert done.returncode == 0, done.stderr
    assert done.stdout == script.with_suffix(".out").read_text()
