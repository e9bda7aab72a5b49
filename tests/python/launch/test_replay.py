"""The command replay: recorded jobs on any fabric."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from torchemu.launch import cli

PING = """num_ranks 2
rank 0 {
l1: calc 1000
l2: send 65536b to 1 tag 5
l2 requires l1
}
rank 1 {
l1: recv 65536b from 0 tag 5
l2: calc 500
l2 requires l1
}
"""


@pytest.fixture
def ping(tmp_path: Path) -> Path:
    """A message between two calculations."""
    file = tmp_path / "ping.goal"
    file.write_text(PING)
    return file


def test_a_message_takes_what_a_broadcast_to_one_takes(ping: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sizes = ["-b", "64K", "-e", "64K"]
    assert cli.main(["bandwidth", "broadcast", "-g", "2", *sizes, "--algorithm", "direct", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["rows"]
    assert cli.main(["replay", str(ping), "--json"]) == 0
    got = json.loads(capsys.readouterr().out)
    assert got["time_us"] == pytest.approx(1 + row["time_us"] + 0.5)
    assert got["ends_us"] == pytest.approx([1 + row["time_us"], 1.5 + row["time_us"]])
    assert (got["ranks"], got["operations"]) == (2, 4)


def test_one_rank_is_no_ranks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "alone.goal"
    file.write_text("num_ranks 1\n\nrank 0 {\nl1: calc 100\n}\n")
    assert cli.main(["replay", str(file)]) == 0
    assert f"{file} on default: 1 rank, 1 operation\n" in capsys.readouterr().out


def test_text(ping: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["replay", str(ping), "--topology", "nodes2x8"]) == 0
    assert f"{ping} on nodes2x8: 2 ranks, 4 operations\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (PING.replace("tag 5\nl2: calc", "tag 6\nl2: calc"), "ping.goal:8: rank 1: recv 65536b from 0 tag 6"),
        (PING.replace("l2 requires l1", "l2 requires l9"), "ping.goal:5: rank 0: there is no operation l9"),
        ("\0\xff", "ping.goal:1: a GOAL file begins with num_ranks"),
    ],
)  # fmt: skip
def test_mistakes(ping: Path, text: str, why: str, capsys: pytest.CaptureFixture[str]) -> None:
    ping.write_text(text)
    assert cli.main(["replay", str(ping)]) == 1
    assert why in capsys.readouterr().err


def test_no_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["replay", str(tmp_path / "none.goal")]) == 1
    assert "none.goal" in capsys.readouterr().err
