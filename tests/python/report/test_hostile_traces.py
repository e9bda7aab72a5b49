"""Traces that are broken, or made to do harm, are told of in a line."""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path
from typing import Any

import pytest
from launch import launch, written

from torchemu.launch import cli
from torchemu.report import _load

PROGRAM = """
import torch, torch.distributed as dist
dist.init_process_group("nccl")
dist.all_reduce(torch.ones(4, device="cuda"))
"""


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """A rank's trace, as a run writes it."""
    folder = tmp_path_factory.mktemp("run")
    assert launch("--nproc-per-node", "1", "--trace", folder / "trace", written(folder, PROGRAM)).status == 0
    return json.loads(gzip.decompress((folder / "trace" / "rank0.json.gz").read_bytes()))


def _told(folder: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    capsys.readouterr()
    status = cli.main(["report", str(folder)])
    return status, *capsys.readouterr()


@pytest.mark.parametrize(
    "text",
    [
        b"", b"null", b"[[[[", b"[" * 300_000, bytes(range(256)), b'{"traceEvents": [1], "distributedInfo": {}}',
        b'{"traceEvents": 5, "distributedInfo": {"rank": 0}}', b'{"traceEvents": [{}], "distributedInfo": {"rank": 0}}',
        b'{"traceEvents": [{"ph": "X", "ts": NaN, "dur": 1}], "distributedInfo": {"rank": 0}}',
        b'{"traceEvents": [], "distributedInfo": {"rank": "one"}}', b'{"traceEvents": [], "distributedInfo": 7}',
    ],
)  # fmt: skip
def test_what_is_no_trace(tmp_path: Path, capsys: pytest.CaptureFixture[str], text: bytes) -> None:
    (tmp_path / "rank0.json").write_bytes(text)
    status, _, err = _told(tmp_path, capsys)
    assert status == 1 and err.startswith("torchemu: ") and err.count("\n") == 1


def test_what_a_small_file_becomes_is_bounded(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_load, "_LEAST", 1 << 20)
    (tmp_path / "rank0.json.gz").write_bytes(gzip.compress(b" " * (1 << 24)))
    status, _, err = _told(tmp_path, capsys)
    assert status == 1 and "which no trace does" in err
    (tmp_path / "rank0.json.gz").write_bytes(gzip.compress(b"{}")[:-9])
    status, _, err = _told(tmp_path, capsys)
    assert status == 1 and "cannot be read" in err


def test_names_do_nothing_to_a_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], trace: dict[str, Any]
) -> None:
    text = json.dumps(trace).replace("all_reduce", "\\u001b[2Jall\\u0007_reduce")
    (tmp_path / "rank0.json").write_text(text)
    status, out, err = _told(tmp_path, capsys)
    assert status == 0 and "\x1b" not in out + err and "\x07" not in out + err and "\\x1b[2J" in out


def test_mutated_traces(tmp_path: Path, capsys: pytest.CaptureFixture[str], trace: dict[str, Any]) -> None:
    seed = 20263
    draw = random.Random(seed)
    values: list[Any] = [None, -1, 1e400, "", "x", [], {}, True, 10**30, "\x1b[31m"]
    for case in range(150):
        document = json.loads(json.dumps(trace))
        for _ in range(draw.randrange(1, 4)):
            target: Any = draw.choice([document, document["distributedInfo"], *document["traceEvents"]])
            target = draw.choice([target, target.get("args", target)]) if isinstance(target, dict) else document
            target = target if isinstance(target, dict) and target else document
            target[draw.choice(sorted(target))] = draw.choice(values)
            if not isinstance(document.get("traceEvents"), list) or not isinstance(document["distributedInfo"], dict):
                break
        (tmp_path / "rank0.json").write_text(json.dumps(document))
        status, out, err = _told(tmp_path, capsys)
        assert status in (0, 1) and "Traceback" not in err and "\x1b" not in out + err, (seed, case)
