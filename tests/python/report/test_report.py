"""torchemu report: what it adds up, says and draws."""

from __future__ import annotations

import base64
import gzip
import html.parser
import itertools
import json
import os
import random
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import OpenWorld
from launch import launch, written
from ranks import on_ranks

import torchemu as torch
import torchemu.distributed as dist
from torchemu.launch import cli
from torchemu.profile.run import traced
from torchemu.report import _units as units
from torchemu.report._analysis import (
    collectives,
    common,
    length,
    links,
    operations,
    shares,
    union,
)
from torchemu.report._critical import critical_path
from torchemu.report._fabric import Fabric, folded
from torchemu.report._load import Bar, Rank, Run, load
from torchemu.report._sums import sums
from torchemu.report._svg import heat
from torchemu.report._text import Terminal
from torchemu.report._timeline import Timeline


def program(rank: int) -> None:
    """Kernels, of which some hide a collective, collectives of two groups, a message and a copy."""
    dist.init_process_group("nccl")
    x = torch.ones(1 << 16, device="cuda")
    a = torch.ones(512, 512, dtype=torch.float16, device="cuda")
    half = dist.new_group([0, 1])
    with torch.profiler.record_function("first & <second>"):
        work = dist.all_reduce(x, async_op=True)
        for _ in range(3):
            a @ a
        work.wait()
    if rank < 2:
        dist.broadcast(x, 0, group=half)
    if rank == 3:
        dist.send(x, 2)
    elif rank == 2:
        dist.recv(x, 3)
    x.cpu()


@pytest.fixture
def folder(open_world: OpenWorld, tmp_path: Path) -> Path:
    """A trace of the program on four ranks."""
    world = open_world("default")
    with traced(world, str(tmp_path / "run")):
        on_ranks(4, program)
    return tmp_path / "run"


# -- sums


def test_sums_of_intervals() -> None:
    rng = random.Random(5)
    for _ in range(200):
        lists = [[(s := rng.randrange(30), s + rng.randrange(8)) for _ in range(rng.randrange(6))] for _ in range(2)]
        covered = [{t for start, end in one for t in range(start, end)} for one in lists]
        merged = [union(one) for one in lists]
        assert [length(one) for one in merged] == [len(c) for c in covered]
        assert common(*merged) == len(covered[0] & covered[1])
        for one in merged:
            assert all(a[1] < b[0] for a, b in itertools.pairwise(one))


def test_shares_of_time_add_up(folder: Path) -> None:
    run = load(folder)
    for rank, s in zip(run.ranks, shares(run), strict=True):
        assert s.compute + s.copy + s.exposed + s.idle == pytest.approx(run.duration)
        busy = sum(b.end - b.start for b in rank.bars if b.kind == "compute")
        assert s.compute == pytest.approx(busy)  # one stream: kernels do not overlap
        assert 0 < s.overlapped < s.communication
        assert s.communication == pytest.approx(sum(b.end - b.start for b in rank.bars if b.communicates))


def test_collectives_are_those_of_the_log(folder: Path) -> None:
    run = load(folder)
    assert run.fabric is not None
    log = [c for c in run.fabric["collectives"] if c["algorithm"] != "p2p"]
    found = collectives(run)
    assert [(c.name, c.algorithm, c.ranks, c.size) for c in found] == [
        (c["collective"], c["algorithm"], c["ranks"], c["bytes"]) for c in sorted(log, key=lambda c: c["end"])
    ]
    for c, logged in zip(found, sorted(log, key=lambda c: c["end"]), strict=True):
        assert (c.start, c.end) == (logged["start"] // 1000 / 1e3, logged["end"] // 1000 / 1e3)
        nanosecond = 1e-3 / (c.end - c.start)  # by which a traced time may be off
        assert c.busbw == pytest.approx(logged["busbw"] / 1e9, rel=1.01 * nanosecond)
        assert c.first <= c.start
        assert c.site.endswith(" in program")
    assert {o.name: o.calls for o in operations(found)} == {"all_reduce": 1, "broadcast": 1}


def test_links_share_their_bandwidth(folder: Path) -> None:
    run = load(folder)
    found = links(run)
    order = [link["name"] for link in (run.fabric or {})["links"]]
    assert found == sorted(found, key=lambda link: (-link.share, order.index(link.name)))
    (link,) = [link for link in found if link.name == "n0.s3.io>n0.s2.io"]
    assert link.share == pytest.approx(link.size / (link.bandwidth * run.duration / 1e6))
    assert link.size >= 4 << 16  # the message at least


def test_folder_without_the_fabric(folder: Path) -> None:
    (folder / "run.torchemu").unlink()
    run = load(folder)
    assert (run.fabric, run.topology, links(run)) == (None, "", [])
    assert len(collectives(run)) == 2


# -- words


def test_text(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["report", str(folder)]) == 0
    text = capsys.readouterr().out
    assert text.startswith("4 ranks on default, ")
    blocks = text.split("\n\n")
    assert [b.splitlines()[0] for b in blocks[1:5]] == [
        "time of the devices; waiting and transfer are exposed", "collectives", "slowest collectives",
        "kernels and copies",
    ]  # fmt: skip
    assert [b.splitlines()[0] for b in blocks[5:7]] == ["critical path", "busiest links"]
    assert [line.split()[:2] for line in blocks[1].splitlines()[2:]] == [["rank", str(r)] for r in range(4)]
    assert {line.split()[0] for line in blocks[2].splitlines()[2:]} == {"all_reduce", "broadcast"}
    assert "test_report.py:" in blocks[3]
    assert text.endswith(f"page written to {folder}/report.html\n")


@pytest.mark.parametrize("width", [20, 40, 64, 80, 100, 120, 200, None])
def test_lines_fit_the_terminal(folder: Path, width: int | None) -> None:
    """Numbers that tell less are left out before anything is cut; the place in the program is the last to be."""
    run = load(folder)
    found, used = collectives(run), links(run)
    site = found[0].site.rpartition("/")[0] + "/"
    text = Terminal(width, site).text(run, shares(run), operations(found), found, used)
    blocks = [block.splitlines() for block in text.split("\n\n")]
    if width is not None:
        assert all(len(line) <= width for block in blocks[1:] for line in block)
    full = width is None or width >= 120
    assert ("…" in text) == (width in (20, 40))
    assert ("algorithm" in text) == full or width == 100
    assert ("µs " in blocks[1][2]) == full
    if width is None or width >= 64:
        assert all(line.endswith("in program") for line in blocks[3][2:])


def test_many_ranks_are_summed_up(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = written(tmp_path, "import torch\ntorch.distributed.init_process_group()\nx = torch.ones(99)\n"
                               "torch.distributed.all_reduce(x)\n")  # fmt: skip
    launch("--nproc-per-node=20", "--trace", tmp_path / "run", script)
    assert cli.main(["report", str(tmp_path / "run")]) == 0
    text = capsys.readouterr().out
    assert [line.split(":")[0].strip() for line in text.splitlines() if ": rank" in line] == [
        "least exposed", "median", "most exposed",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("number", "said"),
    [
        (0, "0"),
        (0.000123, "0.123 ns"),
        (0.5, "500 ns"),
        (1, "1.00 µs"),
        (999, "999 µs"),
        (1500, "1.50 ms"),
        (2_500_000, "2.50 s"),
        (123_456_789, "123 s"),
    ],
)
def test_times(number: float, said: str) -> None:
    assert units.time(number) == said


def test_other_units() -> None:
    assert [units.size(n) for n in (0, 1, 1023, 1024, 1536, 5 << 30)] == [
        "0 B", "1 B", "1023 B", "1.00 KiB", "1.50 KiB", "5.00 GiB",
    ]  # fmt: skip
    assert [units.share(x) for x in (0, 0.00001, 0.5, 1)] == ["0.0 %", "<0.1 %", "50.0 %", "100.0 %"]
    assert [units.rate(x) for x in (0, 0.001, 12.34, 1234)] == ["–", "0.001 GB/s", "12.3 GB/s", "1234 GB/s"]


# -- pictures


class Page(html.parser.HTMLParser):
    """Reads a page, and checks that its elements are closed in order."""

    _VOID = ("meta", "input")

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.classes: Counter[str] = Counter()
        self.attributes: list[tuple[str, str | None]] = []
        self.words: list[str] = []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in self._VOID:
            self.open.append(tag)
        self._seen(attrs)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._seen(attrs)

    def _seen(self, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes += attrs
        self.classes.update(value for key, value in attrs if key == "class" and value)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def page_of(folder: Path) -> Page:
    assert cli.main(["report", str(folder)]) == 0
    return Page((folder / "report.html").read_text())


def test_page(folder: Path) -> None:
    page = page_of(folder)
    for word in ("Timeline", "Exposed communication", "Links", "Collectives", "Slowest collectives"):
        assert word in page.words
    key = {"kernels", "copies from and to the host", "messages", "calls of the host", "all_reduce", "broadcast"}
    assert key <= {word.replace("-", "_") for word in page.words}
    assert page.classes["link"] == 2 * 4  # a ring of four
    assert page.classes["sip"] == 4
    assert page.classes["part-transfer"] == 4 + 1  # and the key


def test_page_needs_nothing_else(folder: Path) -> None:
    page = page_of(folder)
    assert not [value for key, value in page.attributes if key in ("src", "href") or "://" in (value or "")]
    assert "@import" not in (text := (folder / "report.html").read_text())
    assert not re.search(r"url\((?!#)", text)


def test_names_of_the_program_stay_words(folder: Path) -> None:
    page = page_of(folder)
    assert any("first & \\u003csecond>" in word for word in page.words)
    assert "<second>" not in (folder / "report.html").read_text()


def test_what_is_under_the_mouse(folder: Path) -> None:
    page = page_of(folder)
    run = load(folder)
    about = json.loads(next(w for w in page.words if w.startswith('["')))
    assert len(about) == len(collectives(run))
    for i, c in enumerate(collectives(run)):
        assert about[i].startswith(f"{c.name} #{c.number} of {c.group}, {c.ranks} ranks\n")
    assert sorted(v for key, v in page.attributes if key == "data-c") == ["0", "1"]  # lines of the slowest ones


def test_page_elsewhere(folder: Path, tmp_path: Path) -> None:
    assert cli.main(["report", str(folder), "--html", str(tmp_path / "p.html"), "--top", "1"]) == 0
    assert not (folder / "report.html").exists()
    page = Page((tmp_path / "p.html").read_text())
    assert page.words.count("broadcast") + page.words.count("all_reduce") == 2 + 2 + 1 + 1  # key, sums, slowest, path


@pytest.mark.parametrize(
    ("sips", "lines", "cells"),
    [
        ("count: 1", 0, 0),
        ("count: 2", 2, 0),
        ("count: 7", 14, 0),
        ("count: 12, connect: torus2d, w: 4, h: 3", 4 * 12, 0),
        ("count: 5, connect: fully_connected", 20, 0),
        ("count: 17, connect: fully_connected", 0, 17 * 16),
        ("count: 40, connect: switch", 80, 0),
    ],
)
def test_every_link_is_drawn(open_world: OpenWorld, tmp_path: Path, sips: str, lines: int, cells: int) -> None:
    world = open_world(f"name: some\nsystem: {{sips: {{{sips}}}}}\n")
    with traced(world, str(tmp_path / "run")):
        on_ranks(1, lambda rank: torch.ones(8))
    run = load(tmp_path / "run")
    assert run.fabric is not None
    drawing, _ = Fabric(run.fabric["spec"], links(run)).svg()
    page = Page(drawing)
    assert page.classes["link"] == lines
    assert page.classes["over"] == lines + cells + (0 if cells else world.sips)


@pytest.mark.parametrize("n", [25, 26, 27, 31, 37, 48, 64, 97, 100, 127, 128, 513, 1000, 1024, 4096])
def test_long_rings_are_folded(n: int) -> None:
    """Neighbours of the ring are neighbours of the drawing, and no line goes through another SIP."""
    way = folded(n)
    assert len(set(way)) == len(way) == n
    steps = [(abs(a - c), abs(b - d)) for (a, b), (c, d) in zip(way, way[1:] + way[:1], strict=True)]
    assert set(steps[:-1]) <= {(0, 1), (1, 0)}
    assert steps[-1] == ((0, 2) if n % 2 else (0, 1))
    if n % 2:
        assert (0, 1) not in way


def test_network_cards_are_drawn(open_world: OpenWorld, tmp_path: Path) -> None:
    world = open_world("nodes2x8")
    with traced(world, str(tmp_path / "run")):
        on_ranks(16, lambda rank: (dist.init_process_group(), dist.all_reduce(torch.ones(9))))
    page = page_of(tmp_path / "run")
    assert page.classes["frame"] == 2
    assert page.classes["over"] == 16 + 2 * 16 + 2 * 16  # SIPs, links to a switch, links of cards


def test_inside_of_a_sip(tmp_path: Path) -> None:
    bench = written(
        tmp_path,
        """
        def run(torch):
            torch.distributed.init_process_group()
            dp = torch.DPPolicy("column_wise", "replicate", 5, 1)
            torch.distributed.all_reduce(torch.ones((1, 65), dp=dp))
        """,
        "bench.py",
    )
    ccl = written(tmp_path, "defaults: {world_size: 5}\n", "ccl.yaml")
    assert cli.main(["bench", str(bench), "--ccl", str(ccl), "--trace", str(tmp_path / "run")]) == 0
    page = page_of(tmp_path / "run")
    assert "inside of SIP 0" in page.words
    assert page.classes["sip"] == 4 + 16


def test_a_run_without_anything(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    launch("--trace", tmp_path / "run", "--nproc-per-node=2", written(tmp_path, "pass"))
    page = page_of(tmp_path / "run")
    assert "No device did anything on default while this was recorded." in page.words
    assert "Timeline" not in page.words and page.classes["row"] == 0
    assert cli.main(["report", str(tmp_path / "run")]) == 0
    assert capsys.readouterr().out.startswith(
        "no device did anything on default while this was recorded\n\npage written"
    )


def test_a_run_without_communication(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    launch("--trace", tmp_path / "run", "--nproc-per-node=2", written(tmp_path, "import torch\ntorch.ones(9) + 1"))
    page = page_of(tmp_path / "run")
    assert "There were none." in page.words and "No link carried anything." in page.words
    assert "Slowest collectives" not in page.words and page.classes["tile"] == 5  # and none of the busiest link
    assert cli.main(["report", str(tmp_path / "run")]) == 0
    text = capsys.readouterr().out
    assert "\n\nno collectives\n\n" in text and "busiest links" not in text


def test_a_run_that_failed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = "import os, torch\nx = torch.ones(9)\nif os.environ['RANK'] == '1': raise ValueError('a < b')\n"
    launch("--trace", tmp_path / "run", "--nproc-per-node=2", written(tmp_path, script))
    time = re.search(r"rank 1 at (.*): ValueError: a < b", load(tmp_path / "run").failure)
    assert time is not None and time[1].endswith(" us")
    assert cli.main(["report", str(tmp_path / "run")]) == 0
    assert "\n\nthe run failed, rank 1 at " in capsys.readouterr().out
    page = page_of(tmp_path / "run")
    assert page.classes["failed"] == 1 and any("ValueError: a < b" in words for words in page.words)
    launch("--trace", tmp_path / "run", "--nproc-per-node=2", written(tmp_path, "import torch\ntorch.ones(9)\n"))
    assert load(tmp_path / "run").failure == ""


def columns(data: dict[str, Any]) -> dict[str, Any]:
    """The columns as the page's script unpacks them."""
    text, n = gzip.decompress(base64.b64decode(data["columns"])), data["count"]
    floats = np.frombuffer(text, "<f8", 2 * n)
    integers = np.frombuffer(text, "<i4", 4 * n, 16 * n).reshape(4, n)
    return {
        "start": floats[:n],
        "length": floats[n:],
        **dict(zip(("name", "call", "site", "note"), integers, strict=True)),
    }


def test_timeline_has_all_that_happened(folder: Path) -> None:
    run = load(folder)
    found = sums(run)
    data = Timeline(run, {c.key: i for i, c in enumerate(found.collectives)}, found.path).data()
    packed = columns(data)
    for rank, shown in zip(run.ranks, data["ranks"], strict=True):
        assert shown["n"] == rank.number
        bars = {}
        for row in shown["rows"]:
            for k in range(row["at"], row["at"] + row["count"]):
                name, _ = data["names"][packed["name"][k]]
                bars.setdefault(row["kind"], []).append(
                    (name, packed["start"][k], packed["length"][k], data["sites"][packed["site"][k]], packed["call"][k])
                )
            starts = packed["start"][row["at"] : row["at"] + row["count"]]
            assert (np.diff(starts) >= 0).all()
        of_device = [(b.name, b.start, b.end - b.start, b.site) for b in rank.bars]
        assert sorted(b[:4] for b in bars["work"] + bars["communication"]) == sorted(of_device)
        assert [b[:4] for b in bars["host"]] == [(b.name, b.start, b.end - b.start, b.site) for b in rank.host]
        assert Counter(b[4] for b in bars["communication"] if b[4] >= 0) == Counter(
            i for i, c in enumerate(found.collectives) for b in rank.bars if b.key == c.key
        )
    assert sum(row["count"] for rank in data["ranks"] for row in rank["rows"]) == data["count"]
    assert {m["n"]: list(zip(m["t"], m["bytes"], strict=True)) for m in data["memory"]} == {
        r.number: r.memory for r in run.ranks
    }


def test_hardware_has_rows_where_the_trace_has_it(open_world: OpenWorld, tmp_path: Path) -> None:
    world = open_world("nodes2x8")
    with traced(world, str(tmp_path / "run"), "link"):
        on_ranks(16, lambda rank: (dist.init_process_group(), dist.all_reduce(torch.ones(9999))))
    run = load(tmp_path / "run")
    assert run.fabric is not None
    data = Timeline(run, {}, []).data()
    packed = columns(data)
    for rank in data["ranks"]:
        names = [row["name"] for row in rank["rows"]]
        assert {"NIC out", "NIC in"} <= set(names) and any("DMA" in name for name in names)
        for row in rank["rows"]:
            part = slice(row["at"], row["at"] + row["count"])
            if row["kind"] == "lane":  # a lane is busy once at a time
                assert (packed["start"][part][1:] > (packed["start"] + packed["length"])[part][:-1]).all()
    for link, parts in data["links"]:
        (known,) = [x for x in run.fabric["links"] if x["name"] == link]
        share = known["bytes"] / (known["bandwidth"] * (run.fabric["end"] - run.fabric["start"]) / 1e12)
        assert np.mean(parts) == pytest.approx(share, rel=1e-3)
        assert max(parts) <= 1 + 1e-9


def device(kind: str, start: float, end: float, number: int, **args: Any) -> Bar:
    key = ("0", args["Seq"]) if kind == "collective" else None
    return Bar(kind, kind, 0, start, end, key, {"External id": number, **args})


def call(start: float, end: float, number: int) -> Bar:
    return Bar("host", f"call {number}", 0, start, end, args={"External id": number})


def test_critical_path_goes_through_the_last_to_arrive() -> None:
    """Rank 1 computes for longer before a collective, and rank 0 for longer after it."""
    ranks = [
        Rank(0, [device("compute", 1, 3, 1), device("collective", 3, 9, 2, Seq=0), device("compute", 9, 20, 3)], [],
             [call(0, 1, 1), call(1, 2, 2), call(2, 4, 3)]),
        Rank(1, [device("compute", 1, 7, 4), device("collective", 7, 9, 5, Seq=0), device("compute", 9, 11, 6)], [],
             [call(0, 1, 4), call(1, 2, 5), call(2, 4, 6)]),
    ]  # fmt: skip
    path = critical_path(Run("run", ranks, None))
    assert [(p.rank, p.kind, p.start, p.end) for p in path] == [
        (1, "host", 0, 1), (1, "compute", 1, 7), (0, "collective", 7, 9), (0, "compute", 9, 20),
    ]  # fmt: skip


def test_critical_path_follows_hosts_and_messages() -> None:
    """Rank 1 receives what rank 0 sends after its host has waited for a kernel; nothing explains 14 to 15."""

    def side(name: str, start: float, number: int) -> Bar:
        pair = {"Src Rank": 0, "Dst Rank": 1, "tag": 0, "Process Group Name": "0"}
        return Bar("message", name, 1, start, 12, None, {"External id": number, "Collective name": name, **pair})

    ranks = [
        Rank(0, [device("compute", 1, 5, 1), side("send", 7, 2)], [],
             [call(0, 1, 1), Bar("wait", "kernel", 0, 1, 5), call(5, 7, 2)]),
        Rank(1, [side("recv", 2, 3), device("compute", 12, 14, 4), device("compute", 16, 17, 5)], [],
             [call(1, 2, 3), call(2, 3, 4), Bar("wait", "kernel", 0, 3, 14), call(15, 16, 5)]),
    ]  # fmt: skip
    path = critical_path(Run("run", ranks, None))
    assert [(p.rank, p.kind, p.start, p.end) for p in path] == [
        (0, "host", 0, 1), (0, "compute", 1, 5), (0, "host", 5, 7), (1, "message", 7, 12), (1, "compute", 12, 14),
        (1, "idle", 14, 15), (1, "host", 15, 16), (1, "compute", 16, 17),
    ]  # fmt: skip


def test_critical_path_is_as_long_as_the_run(folder: Path) -> None:
    run = load(folder)
    path = critical_path(run)
    assert path[-1].end == run.end
    for a, b in itertools.pairwise(path):
        assert abs(a.end - b.start) < 3e-3, (a, b)
    assert path[0].start == min(b.start for rank in run.ranks for b in rank.host)


def test_waiting_and_transfer_are_told_apart() -> None:
    """Rank 0 is ready at 2 and rank 1 at 6; a kernel hides the time from 5 to 7 on rank 0."""
    ranks = [
        Rank(0, [device("collective", 2, 10, 1, Seq=0), device("compute", 5, 7, 2)], []),
        Rank(1, [device("compute", 0, 6, 3), device("collective", 6, 10, 4, Seq=0)], []),
    ]
    first, second = shares(Run("run", ranks, None))
    assert (first.waiting, first.transfer, first.overlapped, first.compute, first.idle) == (3, 3, 2, 2, 2)
    assert (second.waiting, second.transfer, second.overlapped, second.compute, second.idle) == (0, 4, 0, 6, 0)


def test_what_hangs_is_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = """
        import torch, torch.distributed as dist
        dist.init_process_group()
        x = torch.ones(99)
        dist.all_reduce(x)
        if dist.get_rank() != 2: dist.all_reduce(x)
        print(x.sum())
        """
    launch("--trace", tmp_path / "run", "--nproc-per-node=4", written(tmp_path, script))
    run = load(tmp_path / "run")
    (wait,) = run.waits
    assert (wait["ranks"], wait["needs"]) == ([0, 1, 3], [2])
    assert cli.main(["report", str(tmp_path / "run")]) == 0
    assert "what hangs\n  ranks 0-1, 3: all_reduce of 99" in capsys.readouterr().out
    data = Timeline(run, {}, []).data()
    packed = columns(data)
    hanging = {r["n"]: row for r in data["ranks"] for row in r["rows"] if row["kind"] == "hang"}
    assert sorted(hanging) == [0, 1, 3]
    for n, row in hanging.items():
        end = packed["start"][row["at"]] + packed["length"][row["at"]]
        assert end == pytest.approx(data["last"]) and packed["start"][row["at"]] >= run.ranks[n].host[-1].end


def test_two_runs_are_compared(
    folder: Path, open_world: OpenWorld, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    world = open_world("sips8")
    with traced(world, str(tmp_path / "second")):
        on_ranks(4, program)
    assert cli.main(["report", str(folder), str(tmp_path / "second")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "run (4 ranks on default) against second (4 ranks on sips8)"
    one, two = (load(f).duration for f in (folder, tmp_path / "second"))
    row = next(line for line in lines if line.startswith("  simulated"))
    assert units.time(one) in row and units.time(two) in row and f"× {two / one:.3g}" in row
    page = Page((tmp_path / "second" / "comparison.html").read_text())
    assert "Critical path" in page.words and "all_reduce" in page.words
    assert cli.main(["report", str(folder), str(folder)]) == 0
    assert "× 1" in capsys.readouterr().out


def test_page_is_written_before_anybody_stops_reading(folder: Path) -> None:
    command = [sys.executable, "-m", "torchemu", "report", str(folder)]
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as gone:
        subprocess.run(command, stdout=gone, stderr=subprocess.DEVNULL, timeout=60)
    assert (folder / "report.html").read_text().rstrip().endswith("</html>")


def test_heat_grows_darker() -> None:
    def light(colour: str) -> float:
        r, g, b = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
        return 0.3 * r + 0.6 * g + 0.1 * b

    shades = [light(heat(i / 50)) for i in range(51)]
    assert shades[0] > shades[20] > shades[35] > shades[50]
    assert heat(-1) == heat(0) != heat(1) == heat(7)


# -- what is wrong


def test_wrong_folders(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    empty, broken, twice = tmp_path / "empty", tmp_path / "broken", tmp_path / "twice"
    for made in (empty, broken, twice):
        made.mkdir()
    (empty / "notes.json").write_text('{"other": 1}')
    (broken / "rank0.json.gz").write_bytes(gzip.compress(b'{"traceEvents": [')[:-9])
    for name in ("a", "b"):
        (twice / f"{name}.json").write_text('{"distributedInfo": {"rank": 3}, "traceEvents": []}')
    for folder, said in [
        (tmp_path / "none", "is no folder"),
        (empty, "has no traces of ranks: torchemu run --trace"),
        (broken, "rank0.json.gz cannot be read: "),
        (twice, "has two traces of rank 3: one of them is b.json"),
    ]:
        assert cli.main(["report", str(folder)]) == 1
        err = capsys.readouterr().err
        assert err.startswith("torchemu: ") and said in err and "Traceback" not in err


def test_a_run_that_did_not_end(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "run.torchemu").write_text("")
    assert cli.main(["report", str(folder)]) == 1
    assert "did the run that writes it end?" in capsys.readouterr().err


def test_profiles_of_ranks(tmp_path: Path) -> None:
    """Files of torch.profiler can be reported on, too."""
    script = written(
        tmp_path,
        f"""
        import torch
        torch.distributed.init_process_group()
        ready = torch.profiler.tensorboard_trace_handler({str(tmp_path / "tb")!r})
        with torch.profiler.profile(on_trace_ready=ready):
            torch.distributed.all_reduce(torch.ones(8))
        """,
    )
    launch(script)
    run = load(tmp_path / "tb")
    found: Any = collectives(run)
    assert (len(run.ranks), len(found), found[0].ranks) == (4, 1, 4)
    assert "Links" not in page_of(tmp_path / "tb").words
