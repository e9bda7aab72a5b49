"""The report's page in Chromium. Without Chromium or Playwright these tests are skipped; `make test-browser` has both.

Pictures of the pages go to the folder that the environment variable SCREENSHOTS names.
"""

from __future__ import annotations

import csv
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from launch import launch, written

from torchemu.launch import cli

playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed: make test-browser")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium (Debian: apt-get install chromium)")

PROGRAM = """
import torch, torch.distributed as dist
dist.init_process_group("nccl")
rank, n = dist.get_rank(), dist.get_world_size()
a = torch.ones(256, 256, dtype=torch.float16, device="cuda")
x = torch.ones(1024, device="cuda")
group, _ = dist.new_subgroups(min(8, n))
for step in range(3):
    with torch.profiler.record_function(f"step {step}"):
        for _ in range(1 + rank % 3): a @ a
        dist.all_reduce(x, group=group)
    if n <= 64: dist.all_reduce(x)
dist.broadcast(x, 0, group=group) if rank < 8 else None
x.cpu()
"""

HANGS = """
import torch, torch.distributed as dist
dist.init_process_group("nccl")
x = torch.ones(1024, device="cuda")
dist.all_reduce(x)
if dist.get_rank() != 3: dist.all_reduce(x)
x.cpu()
"""


def traced(folder: Path, program: str, ranks: int, *options: object) -> Path:
    """Runs a program, and reports on it."""
    if ranks > 16:
        side = int(ranks**0.5)
        topology = written(
            folder,
            f"name: torus\nsystem: {{sips: {{count: {ranks}, connect: torus2d, w: {side}, h: {side}}}}}\n",
            "t.yaml",
        )
    else:
        topology = "sips8"
    launch(
        "--nproc-per-node", ranks, "--topology", topology, "--trace", folder / "run", *options, written(folder, program)
    )
    assert cli.main(["report", str(folder / "run")]) == 0
    return folder / "run" / "report.html"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as p:
        chromium = p.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield chromium
        chromium.close()


class Opened:
    """A page that is open, and what it complained of."""

    def __init__(self, browser: Any, file: Path, **options: Any) -> None:
        self.page = browser.new_page(**{"viewport": {"width": 1280, "height": 900}, **options})
        self.errors: list[str] = []
        self.page.on("console", lambda m: self.errors.append(m.text) if m.type == "error" else None)
        self.page.on("pageerror", lambda e: self.errors.append(str(e)))
        self.page.goto(file.as_uri())
        self.page.wait_for_selector("html[data-ready]", timeout=30_000)

    @property
    def view(self) -> tuple[float, float]:
        data = self.page.eval_on_selector("#rows", "rows => ({...rows.dataset})")
        return float(data["from"]), float(data["to"])

    def over(self) -> tuple[float, float, float, float]:
        box = self.page.locator("#timeline .u-over").bounding_box()
        return box["x"], box["y"], box["width"], box["height"]

    def drag(self, first: float, last: float, y: float | None = None) -> None:
        """Drags over a part of the timeline, given as shares of its width; beyond 1 the mouse is let go outside."""
        x, top, width, height = self.over()
        self.page.mouse.move(x + first * width, top + height / 2)
        self.page.mouse.down()
        self.page.mouse.move(x + (first + last) / 2 * width, top + height / 2, steps=4)
        self.page.mouse.move(x + last * width, y if y is not None else top + height / 2, steps=4)
        self.page.mouse.up()

    def ink(self) -> int:
        """Returns how many pixels of the timeline have the colours of bars: those of a row's background are grey."""
        return self.page.evaluate("""() => {
            const canvas = document.querySelector("#timeline canvas"), context = canvas.getContext("2d");
            const data = context.getImageData(0, 0, canvas.width, canvas.height).data;
            let found = 0;
            for (let i = 0; i < data.length; i += 4)
            {
                const colour = data.subarray(i, i + 3);
                if (data[i + 3] && Math.max(...colour) - Math.min(...colour) > 60) found++;
            }
            return found;
        }""")

    def shoot(self, name: str) -> None:
        folder = os.environ.get("SCREENSHOTS")
        if folder:
            Path(folder).mkdir(parents=True, exist_ok=True)
            self.page.screenshot(path=Path(folder) / f"{name}.png", full_page=True)


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return traced(tmp_path_factory.mktemp("eight"), PROGRAM, 8, "--trace-level", "link")


@pytest.fixture
def opened(browser: Any, report: Path) -> Iterator[Opened]:
    page = Opened(browser, report)
    yield page
    assert page.errors == []
    page.page.close()


@pytest.mark.parametrize("ranks", [8, 64, 1024])
def test_pages_of_many_ranks(browser: Any, tmp_path: Path, ranks: int) -> None:
    if ranks == 1024 and not os.environ.get("SCREENSHOTS"):
        pytest.skip("takes a minute: make test-browser runs it")
    page = Opened(browser, traced(tmp_path, PROGRAM, ranks))
    assert page.ink() > 2000
    page.shoot(f"ranks{ranks}")
    whole = page.view
    page.drag(0.4, 0.5)
    span = (page.view[1] - page.view[0]) / (whole[1] - whole[0])
    assert span == pytest.approx(0.1, rel=0.05)
    page.page.fill("#search", "broadcast #")
    page.page.click("#next")
    assert page.page.inner_text("#found").startswith("1 of ")
    assert page.page.inner_text("#pinned-text").startswith("broadcast #")
    page.page.click("#all-rows")
    page.page.locator("#rows").evaluate("rows => { rows.scrollTop = rows.scrollHeight }")
    page.page.click("#path")
    page.shoot(f"ranks{ranks}-below")
    assert page.errors == []


def test_zoom(opened: Opened) -> None:
    first, last = opened.view
    opened.drag(0.25, 0.5)
    middle = opened.view
    assert middle[0] == pytest.approx(first + 0.25 * (last - first), abs=0.01 * (last - first))
    assert middle[1] == pytest.approx(first + 0.5 * (last - first), abs=0.01 * (last - first))
    opened.page.click("#zoom-out")
    assert opened.view[1] - opened.view[0] == pytest.approx(2 * (middle[1] - middle[0]))
    x, y, width, height = opened.over()
    opened.page.mouse.dblclick(x + width / 2, y + height / 2)
    assert opened.view == (first, last)
    opened.page.keyboard.down("Control")
    opened.page.mouse.wheel(0, -300)
    opened.page.keyboard.up("Control")
    opened.page.wait_for_function(f"Number(document.getElementById('rows').dataset.to) < {last}")
    opened.page.click("#whole")
    assert opened.view == (first, last)


def test_mouse_let_go_outside_ends_a_drag(opened: Opened) -> None:
    first, last = opened.view
    opened.drag(0.5, 1.3, y=5)
    assert opened.view == (pytest.approx(first + (last - first) / 2, rel=0.02), pytest.approx(last))
    before = opened.view
    x, y, width, height = opened.over()
    opened.page.mouse.move(x + 0.1 * width, y + height / 2)
    opened.page.mouse.move(x + 0.9 * width, y + height / 2, steps=5)
    assert opened.view == before


def test_keys(opened: Opened) -> None:
    first, last = opened.view
    opened.page.keyboard.press("+")
    span = opened.view[1] - opened.view[0]
    assert span == pytest.approx((last - first) / 2)
    before = opened.view
    opened.page.keyboard.press("ArrowRight")
    assert opened.view == (pytest.approx(before[0] + span / 5), pytest.approx(before[1] + span / 5))
    opened.page.keyboard.press("0")
    assert opened.view == (first, last)
    opened.page.keyboard.press("/")
    opened.page.keyboard.type("all_reduce")
    opened.page.keyboard.press("Enter")
    assert opened.page.inner_text("#found").startswith("1 of ")
    opened.page.keyboard.press("Escape")
    opened.page.keyboard.press("n")
    assert opened.page.inner_text("#found").startswith("2 of ")
    opened.page.keyboard.press("Escape")
    assert not opened.page.is_visible("#pinned")


def test_search(opened: Opened) -> None:
    opened.page.fill("#search", "no such thing")
    assert opened.page.inner_text("#found") == "not found"
    opened.page.fill("#search", "matmul")
    count = opened.page.inner_text("#found")
    data = json.loads(opened.page.text_content("#data"))
    assert int(count.split()[0]) > 0 and any(name == "matmul" for name, _ in data["names"])
    opened.page.click("#previous")
    shown, _, all_ = opened.page.inner_text("#found").split()
    assert shown == all_
    opened.page.fill("#search", "")
    assert opened.page.inner_text("#found") == ""


def test_pinned_bar_and_slowest_collectives(opened: Opened) -> None:
    row = opened.page.locator("tr[data-c]").first
    name = row.locator("td").first.inner_text()
    row.click()
    assert opened.page.inner_text("#pinned-text").startswith(f"{name} #")
    opened.page.click("#unpin")
    assert not opened.page.is_visible("#pinned")


def test_narrow_times_do_not_fill_the_picture(opened: Opened) -> None:
    """A device that is idle looks idle, however many kernels are in a pixel."""
    data = json.loads(opened.page.text_content("#summary"))
    _, _, width, height = opened.over()
    busy = sum(s["compute"] + s["copy"] + s["overlapped"] + s["waiting"] + s["transfer"] for s in data["shares"])
    share = busy / (data["duration"] * data["ranks"])
    assert opened.ink() < 1.3 * share * width * height


def test_tables_are_sorted_by_clicks(opened: Opened) -> None:
    head = opened.page.locator("section:has(h2:text-is('Kernels and copies')) th:has-text('calls')")
    values = (
        "heads => heads[0].closest('table').tBodies[0].rows.length && [...heads[0].closest('table').tBodies[0].rows]"
    )
    values += ".map(row => Number(row.cells[1].dataset.v))"
    head.click()
    falling = head.evaluate_all(values)
    head.click()
    rising = head.evaluate_all(values)
    assert falling == sorted(falling, reverse=True) and rising == sorted(falling) and len(falling) > 1


def test_rows_unfold(opened: Opened) -> None:
    before = opened.ink()
    x, y, _, _ = opened.over()
    opened.page.mouse.click(x - 60, y + 10)
    assert opened.ink() > before
    opened.shoot("unfolded")


def test_exports(opened: Opened, tmp_path: Path) -> None:
    for button, name in (("#png", "timeline.png"), ("#csv", "timeline.csv"), ("#json", "report.json")):
        with opened.page.expect_download() as download:
            opened.page.click(button)
        assert download.value.suggested_filename == name
        download.value.save_as(tmp_path / name)
    assert (tmp_path / "timeline.png").read_bytes().startswith(b"\x89PNG")
    rows = list(csv.DictReader((tmp_path / "timeline.csv").read_text().splitlines()))
    data = json.loads(opened.page.text_content("#data"))
    assert len(rows) == data["count"] and {r["rank"] for r in rows} == {str(n) for n in range(8)}
    assert json.loads((tmp_path / "report.json").read_text())["ranks"] == 8


def test_failed_run(browser: Any, tmp_path: Path) -> None:
    page = Opened(browser, traced(tmp_path, HANGS, 8))
    page.page.fill("#search", "rank 3 has not joined it")
    assert page.page.inner_text("#found") == "7 found"
    page.shoot("hangs")
    assert page.errors == []


def test_narrow_screen(browser: Any, report: Path) -> None:
    page = Opened(browser, report, viewport={"width": 390, "height": 800}, has_touch=True, is_mobile=True)
    assert page.page.evaluate("document.documentElement.scrollWidth") <= 390
    first, last = page.view
    x, y, width, _ = page.over()
    page.page.evaluate(
        """([x, y, width]) => {
            const over = document.querySelector("#timeline .u-over");
            const send = (kind, id, at) => over.dispatchEvent(new PointerEvent(kind,
                {pointerType: "touch", pointerId: id, clientX: x + at * width, clientY: y + 20, bubbles: true}));
            send("pointerdown", 1, .4); send("pointerdown", 2, .6);
            send("pointermove", 1, .3); send("pointermove", 2, .7);
            send("pointerup", 1, .3); send("pointerup", 2, .7);
        }""",
        [x, y, width],
    )
    assert page.view[1] - page.view[0] == pytest.approx((last - first) / 2, rel=0.05)
    page.shoot("narrow")
    assert page.errors == []


def test_dark_page(browser: Any, report: Path) -> None:
    page = Opened(browser, report, color_scheme="dark")
    page.shoot("dark")
    assert page.errors == []
