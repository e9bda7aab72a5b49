"""A small session of the fuzzer: processes of gloo and both front ends agree, and a wrong reference is noticed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("torch")

from fuzz.gloo import Gloo
from fuzz.programs import Program, Step
from fuzz.session import Session


@pytest.fixture(scope="module")
def gloo() -> Iterator[Gloo]:
    processes = Gloo(4)
    yield processes
    processes.close()


@pytest.mark.slow
def test_a_batch_has_no_findings(gloo: Gloo, tmp_path: Path) -> None:
    session = Session(gloo, ["numpy", "real"], tmp_path, many=8, faults=1)
    session.batch(11)
    assert session.counts == {"programs": 8, "faults": 1}, [file.read_text() for file in tmp_path.glob("finding*")]


@pytest.mark.slow
def test_the_reference_says_what_it_cannot_do(gloo: Gloo, tmp_path: Path) -> None:
    """gloo has no gather of complex numbers; after it the processes are others, and work."""
    session = Session(gloo, [], tmp_path)
    refused = session._expected(Program(0, 2, (Step("gather", dtype="complex64"),)))
    assert isinstance(refused, str) and "Invalid scalar type" in refused
    summed = session._expected(Program(0, 2, (Step("all_reduce", dtype="int32", shape=(1,)),), joins=False))
    assert summed == [[[0, "torch.int32", [1], "[3]"]]] * 2
