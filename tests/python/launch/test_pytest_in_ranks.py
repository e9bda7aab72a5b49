"""pytest as the program of ranks, as with torchrun: ``torchemu run -m pytest`` runs the tests on each of them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from launch import written

pytestmark = pytest.mark.slow

TESTS = """
    import json, os, sys, threading
    from unittest import mock
    import pytest
    import torch
    import torch.distributed as dist

    @pytest.fixture(scope="session", autouse=True)
    def rank():
        dist.init_process_group("gloo")
        yield dist.get_rank()
        dist.destroy_process_group()

    @pytest.mark.parametrize("n", [0, 1, 5])
    def test_sum(rank, n):
        t = torch.full((n,), rank + 1.0)
        dist.all_reduce(t)
        assert t.tolist() == [3.0] * n

    def test_what_monkeypatch_sets_is_the_ranks(rank, monkeypatch):
        monkeypatch.setattr(json, "dumps", lambda: rank)
        monkeypatch.setenv("MINE", str(rank))
        dist.barrier()
        assert (json.dumps(), os.environ["MINE"]) == (rank, str(rank))

    def test_what_mocks_patch_is_the_ranks(rank):
        with mock.patch("json.loads", lambda: rank):
            dist.barrier()
            assert json.loads() == rank
            dist.barrier()
        assert json.loads("[1]") == [1]

    def test_output_is_the_ranks(rank, capfd):
        print("printed by", rank)
        sys.stdout.flush()
        dist.barrier()
        os.write(1, b"written by %d" % rank)
        assert capfd.readouterr().out == f"printed by {rank}\\nwritten by {rank}"

    def test_hooks_are_the_ranks(rank):
        mine = threading.excepthook, sys.unraisablehook
        dist.barrier()
        assert (threading.excepthook, sys.unraisablehook) == mine
"""

LAST = """
    def test_last(rank):
        values = [rank, 7]
        assert values == [0, 7], "planted"
        dist.barrier()
        print("nobody reads this")
"""


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs pytest on two ranks, in a process of its own: pytest is loaded by the ranks."""
    command = [sys.executable, "-m", "torchemu", "run", "--nproc-per-node", "2", "--torch", "numpy"]
    return subprocess.run(
        [*command, *arguments], cwd=folder, capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL
    )


def test_each_rank_runs_the_tests(tmp_path: Path) -> None:
    written(tmp_path, TESTS, "test_ranks.py")
    for flags in ([], ["--set-orders", "3"]):
        done = run(tmp_path, *flags, "-m", "pytest", "-q", "-W", "error")
        assert (done.returncode, done.stderr) == (0, ""), done.stdout
        assert done.stdout.count("7 passed") == 2


def test_what_fails_on_a_rank_is_explained_by_that_rank(tmp_path: Path) -> None:
    written(tmp_path, TESTS + LAST, "test_ranks.py")
    done = run(tmp_path, "-m", "pytest", "-q")
    assert done.returncode == 1 and "SystemExit: 1" in done.stderr
    assert done.stdout.count("AssertionError: planted") == 2  # in the failure, and in the summary
    assert "assert [1, 7] == [0, 7]" in done.stdout and "Unwound" not in done.stdout + done.stderr


def test_a_script_may_call_pytest(tmp_path: Path) -> None:
    written(tmp_path, TESTS, "test_ranks.py")
    script = written(tmp_path, "import pytest, sys\nsys.exit(pytest.main(['-q', '-k', 'sum']))")
    done = run(tmp_path, str(script))
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    assert done.stdout.count("3 passed") == 2


def test_files_that_pytest_keeps_for_ranks_are_not_for_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
    written(tmp_path, "import json\ndef test_it():\n    json.mine = 1\n    assert json.mine", "test_plain.py")
    assert run(tmp_path, "-m", "pytest", "-q").returncode == 0
    kept = {file.name.partition("-")[0] for file in tmp_path.glob("__pycache__/*")}
    assert kept == {"test_plain"}
    plain = [sys.executable, "-m", "pytest", "-q", "-p", "no:torchemu"]
    assert subprocess.run(plain, cwd=tmp_path, capture_output=True, timeout=120).returncode == 0
