"""Values that torchemu once had wrong: both front ends have plain PyTorch's, or the NumPy one says that it has no such
name."""

import functools
import json
import os
import pathlib
import subprocess
import sys

import once_wrong
import pytest

SCRIPT = pathlib.Path(once_wrong.__file__)
REFUSAL = "torchemu's NumPy front end has no "
OTHERS = {"random_halves": "2.15's; see docs/training.md"}
"""Functions of which the NumPy front end has not the installed PyTorch's values, and why."""


@functools.cache
def found(how, ranks):
    """Returns what the program says on a front end, or on plain PyTorch, by function and rank."""
    run = ["-m", "torchemu", "run", "--torch", how]
    plain = ["-m", "torch.distributed.run", "--standalone"] if ranks > 1 else []
    at = ["--nproc-per-node", str(ranks)] if ranks > 1 or how != "plain" else []
    command = [sys.executable, "-W", "ignore", *(plain if how == "plain" else run), *at, str(SCRIPT)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment)
    assert done.returncode == 0, done.stderr
    decoder, said, text = json.JSONDecoder(), {}, done.stdout
    while text := text.strip():  # processes may write their lines into one
        (name, rank, value), end = decoder.raw_decode(text)
        said[name, rank] = value
        text = text[end:]
    return said


def assert_same(got, want, how):
    if how == "numpy" and REFUSAL in str(got)[:80]:
        return
    if isinstance(want, list):
        assert isinstance(got, list) and len(got) == len(want)
        for one, other in zip(got, want, strict=True):
            assert_same(one, other, how)
    elif how == "numpy" and isinstance(want, float):
        assert got == pytest.approx(want, rel=1e-6, abs=1e-7, nan_ok=True)
    else:
        assert repr(got) == repr(want)


@pytest.mark.parametrize("how", ["real", "numpy"])
@pytest.mark.parametrize("function", once_wrong.ALONE)
def test_values_are_those_of_pytorch(function, how):
    name = function.__name__
    if how == "numpy" and name in OTHERS:
        pytest.skip(OTHERS[name])
    assert_same(found(how, 1)[name, 0], found("plain", 1)[name, 0], how)


@pytest.mark.parametrize("how", ["real", "numpy"])
@pytest.mark.parametrize("function", once_wrong.TOGETHER)
def test_ranks_values_are_those_of_gloos_processes(function, how):
    for rank in range(4):
        assert_same(found(how, 4)[function.__name__, rank], found("plain", 4)[function.__name__, rank], how)


def test_initial_weights_are_the_same_to_the_last_digit():
    name = once_wrong.initial_weights.__name__
    got, want = found("numpy", 1)[name, 0], found("plain", 1)[name, 0]
    assert [t for t in got if t[1] != [4, 3]] == [t for t in want if t[1] != [4, 3]]  # an embedding's are normal
