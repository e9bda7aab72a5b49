"""torchemu report: what it adds up, says and draws."""

from __future__ import annotations

import gzip
import html.parser
import itertools
import json
import random
import re
from collections import Counter
from pathlib import Path
from typing import Any

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
from torchemu.report._fabric import Fabric, folded
from torchemu.report._load import Annotation, Bar, Rank, Run, load
from torchemu.report._svg import heat
from torchemu.report._text import Terminal
from torchemu.report._timeline import Timeline, ticks


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
        "time of the devices", "collectives", "slowest collectives", "busiest links",
    ]  # fmt: skip
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
    assert ("µs " in blocks[1][2]) == (width is None or width >= 100)
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

    _VOID = ("meta",)

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
    assert [w for w in page.words if re.fullmatch(r"rank \d", w)] == [f"rank {r}" for r in range(4)]
    assert page.classes["all-reduce"] >= 4
    assert page.classes["broadcast"] >= 2
    assert page.classes["message"] >= 2
    assert page.classes["link"] == 2 * 4  # a ring of four
    assert page.classes["sip"] == 4
    assert page.classes["part-exposed"] == 4 + 1  # and the key


def test_page_needs_nothing_else(folder: Path) -> None:
    page = page_of(folder)
    assert not [value for key, value in page.attributes if key in ("src", "href") or "://" in (value or "")]
    assert "@import" not in (text := (folder / "report.html").read_text())
    assert not re.search(r"url\((?!#)", text)


def test_names_of_the_program_stay_words(folder: Path) -> None:
    page = page_of(folder)
    assert any("first & <second>" in word for word in page.words)
    assert "<second>" not in (folder / "report.html").read_text()


def test_what_is_under_the_mouse(folder: Path) -> None:
    page = page_of(folder)
    run = load(folder)
    about = json.loads(next(w for w in page.words if w.startswith("[")))
    assert len(about) == len(collectives(run))
    numbers = Counter(value for key, value in page.attributes if key == "data-c")
    for i, c in enumerate(collectives(run)):
        assert about[i].startswith(f"{c.name} #{c.number} of {c.group}, {c.ranks} ranks\n")
        assert numbers[str(i)] == c.ranks


def test_page_elsewhere(folder: Path, tmp_path: Path) -> None:
    assert cli.main(["report", str(folder), "--html", str(tmp_path / "p.html"), "--top", "1"]) == 0
    assert not (folder / "report.html").exists()
    page = Page((tmp_path / "p.html").read_text())
    assert page.words.count("broadcast") + page.words.count("all_reduce") == 2 + 2 + 1  # key, sums, slowest


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
    assert "Slowest collectives" not in page.words and page.classes["tile"] == 4  # and none of the busiest link
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


@pytest.mark.parametrize("duration", [0.0, 1e-6, 0.37, 1.0, 12345.6, 1e9])
def test_ticks(duration: float) -> None:
    found = ticks(duration, 9)
    assert found[0] == 0
    assert found[-1] <= duration
    assert duration == 0 or 4 <= len(found) <= 11


def timeline(bars: int, ranks: int = 2) -> str:
    """The drawing of ranks that each did so many kernels of 1 µs, every 2 µs."""
    done = [Bar("compute", "kernel", 0, 2.0 * i, 2.0 * i + 1) for i in range(bars)]
    names = [Annotation("whole", 0.0, 2.0 * bars), Annotation("late", 2.0 * bars, 2.0 * bars + 1)]
    return Timeline(Run("run", [Rank(r, done, names) for r in range(ranks)], None), {}).svg()


@pytest.mark.parametrize("bars", [1, 100, 10_000])
def test_timeline_has_all_bars_to_zoom_in_on(bars: int) -> None:
    drawing = timeline(bars)
    drawn = re.findall(r'<rect x="([\d.]+)" y="([\d.]+)" width="([\d.]+)" [^>]*class="compute"', drawing)
    assert len(drawn) == 2 * bars
    duration = 2.0 * bars - 1
    scale = (1180 - 76 - 12) / duration
    for i, (x, _, width) in enumerate(drawn[:bars]):
        assert float(x) == pytest.approx(76 + 2 * i * scale, abs=1e-3)
        assert float(width) == pytest.approx(scale, abs=1e-3)


def test_timeline_of_too_many_bars_joins_some() -> None:
    """So that browsers show it at once; what is joined says so."""
    rng = random.Random(3)
    starts = itertools.accumulate(rng.expovariate(1) for _ in range(40_000))
    done = [Bar("compute", "kernel", 0, start, start) for start in starts]
    drawing = Timeline(Run("run", [Rank(0, done, []), Rank(1, done, [])], None), {}).svg()
    drawn = re.findall(r'class="compute"><title>(?:(\d+) × )?kernel', drawing)
    assert 10_000 < len(drawn) <= 30_000
    assert sum(int(count or 1) for count in drawn) == 80_000


def test_what_is_scaled_is_no_text() -> None:
    drawing = timeline(5)
    scaled = re.search(r'<svg class="scaled".*?</svg>', drawing)
    assert scaled is not None and "<text" not in scaled[0] and scaled[0].count('class="compute"') == 10
    assert 'data-duration="9.0"' in scaled[0] and 'preserveAspectRatio="none"' in scaled[0]
    assert 'data-left="76" ' in drawing and ">whole</text>" in drawing
    assert drawing.count('class="annotation"') == 1  # the other begins when all has ended


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
    """What torch.profiler writes can be reported on, too."""
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
