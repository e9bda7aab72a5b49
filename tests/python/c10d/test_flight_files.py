"""The flight recorder's files, in which PyTorch's fr_trace is to find what went wrong."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from conftest import OpenWorld
from flight import FILE, MILLISECOND, SIZE, check_schema
from ranks import failures

import torchemu as torch
import torchemu.distributed as dist
from torchemu.errors import DeadlockError, DistBackendError, MismatchError
from torchemu.runtime.waiting import reach


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (SIZE, FILE, "TORCH_NCCL_TRACE_BUFFER_SIZE", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE"):
        monkeypatch.delenv(name, raising=False)


def files(folder: Path) -> list[dict[str, Any]]:
    """The dumps that were written, by rank."""
    found = sorted(folder.iterdir(), key=lambda path: int(path.name.removeprefix("rank_")))
    whole = [pickle.loads(path.read_bytes()) for path in found]
    for one in whole:
        check_schema(one)
    return whole


def mismatch(rank: int) -> None:
    """Rank 2 calls something else."""
    dist.init_process_group("nccl")
    dist.barrier()
    if rank == 2:
        dist.broadcast(torch.ones(4), 0)
    else:
        dist.all_reduce(torch.ones(4))
    dist.barrier()


def hang(rank: int) -> None:
    """Rank 2 calls nothing more."""
    dist.init_process_group("nccl")
    dist.barrier()
    if rank != 2:
        dist.all_reduce(torch.ones(4))
        dist.barrier()


@pytest.mark.parametrize("settings", [(SIZE, FILE), (FILE,), ("TORCH_NCCL_DEBUG_INFO_TEMP_FILE",)])
def test_files_of_a_mismatch(
    open_world: OpenWorld, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, settings: tuple[str, ...]
) -> None:
    open_world("default")
    for name in settings:
        monkeypatch.setenv(name, "50" if name == SIZE else str(tmp_path / "rank_"))
    assert {type(e) for e in failures(4, mismatch).values()} == {MismatchError}
    whole = files(tmp_path)
    assert len(whole) == 4
    names = [[e["profiling_name"] for e in one["entries"]][:2] for one in whole]
    wrong = ["nccl:all_reduce_barrier", "nccl:broadcast"]
    right = ["nccl:all_reduce_barrier", "nccl:all_reduce"]
    assert names == [right, right, wrong, right]
    assert all(one["entries"][0]["state"] == "completed" for one in whole)
    assert all(one["entries"][1]["state"] != "completed" for one in whole)


def test_files_of_a_hang(open_world: OpenWorld, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The rank that others wait for has a file too, though it has ended long before."""
    open_world("default")
    monkeypatch.setenv(FILE, str(tmp_path / "rank_"))
    assert {type(e) for e in failures(4, hang).values()} == {DeadlockError}
    whole = files(tmp_path)
    states = [[e["state"] for e in one["entries"]] for one in whole]
    waiting = ["completed", "started", "scheduled"]
    assert states == [waiting, waiting, ["completed"], waiting]


def test_files_of_a_timeout(open_world: OpenWorld, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    open_world("default")
    monkeypatch.setenv(FILE, str(tmp_path / "rank_"))

    def program(rank: int) -> None:
        dist.init_process_group("nccl", timeout=timedelta(milliseconds=5))
        if rank == 1:
            reach(50 * MILLISECOND)
        t = torch.ones(4)
        dist.all_reduce(t)
        t.tolist()

    found = failures(2, program)
    assert DistBackendError in {type(e) for e in found.values()}
    first, second = files(tmp_path)
    assert [(e["state"], e["timeout_ms"]) for e in first["entries"]] == [("started", 5)]
    assert [e["state"] for e in second["entries"]] in ([], ["scheduled"], ["started"])


def test_files_that_cannot_be_written(open_world: OpenWorld, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The failure stays what it is."""
    open_world("default")
    monkeypatch.setenv(FILE, str(tmp_path / "nowhere" / "rank_"))
    with pytest.warns(UserWarning, match="the flight recorder's files cannot be written: .*nowhere"):
        found = failures(4, mismatch)
    assert {type(e) for e in found.values()} == {MismatchError}


def test_no_files_without_a_name(open_world: OpenWorld, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    open_world("default")
    monkeypatch.setenv(SIZE, "50")
    monkeypatch.setattr("torchemu.c10d.flight_files._DEFAULT_FILE", str(tmp_path / "rank_"))
    failures(4, mismatch)
    assert list(tmp_path.iterdir()) == []


def test_no_files_of_other_failures(open_world: OpenWorld, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    open_world("default")
    monkeypatch.setenv(FILE, str(tmp_path / "rank_"))

    def program(rank: int) -> None:
        dist.init_process_group()
        dist.barrier()
        raise ValueError("the program's own")

    assert {type(e) for e in failures(2, program).values()} == {ValueError}
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("program", "text"), [(mismatch, "COLLECTIVE_TYPE_MISMATCH"), (hang, "Not all ranks joining collective")]
)
def test_what_pytorch_finds_in_them(
    open_world: OpenWorld,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    program: Callable[[int], None],
    text: str,
) -> None:
    fr_trace = pytest.importorskip("torch.distributed.flight_recorder.fr_trace")
    open_world("default")
    monkeypatch.setenv(FILE, str(tmp_path / "rank_"))
    failures(4, program)
    fr_trace.main([str(tmp_path), "--prefix", "rank_"])
    assert text in caplog.text
