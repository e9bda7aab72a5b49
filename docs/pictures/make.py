"""Makes the pictures of the documentation: `make pictures`.

They come of the programs that docs/start.md shows, so that a reader can make them too. The report's needs Chromium and
Playwright, the sweep's matplotlib, that of mori's engines the installed PyTorch.
"""

from __future__ import annotations

import math
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

DOCS = Path(__file__).resolve().parents[1]
FILE = re.compile(r"<!-- file: ([\w.]+) -->\n```\w+\n(.*?)```\n", re.DOTALL)
FLOORS = (
    ("programs", "training scripts, tests, kernels, sizes of fabrics"),
    ("report < launch", "timeline, tables, comparison · torchemu run, pytest, exploration"),
    ("frontends, tp", "the installed PyTorch · NumPy's small one · Triton · mori · simpler · Megatron's names"),
    ("c10d, language, multiprocessing", "process groups, works, stores · tiles, signals · ranks"),
    ("runtime, bridge", "World, tasks, threads, Buffer · the one importer of the core"),
    ("pybind", "doors: check, convert, call"),
    ("distributed < tp", "agreement of ranks, mismatches, ranks that stand for others · Megatron's layers"),
    ("ccl/prim < ccl, multiprocessing", "device programs, checker · schedules, executor, tuner · the scheduler"),
    ("tensor, network, trace", "bits, on real data | time, on links and engines"),
    ("sim, topology", "one clock, one heap of events · nodes, SIPs, cubes, PEs, links"),
)  # fmt: skip
"""The architecture, from above."""


def architecture(file: Path) -> None:
    """Draws the floors: Python's above the doors, Go's below them."""
    width, height = 900, 44
    parts = []
    for i, (name, about) in enumerate(FLOORS):
        y = 10 + i * (height + 6)
        fill = "#f2b705" if name == "pybind" else "#2f7ed8" if i < 5 else "#1b998b"
        parts.append(
            f'<rect x="10" y="{y}" width="{width - 20}" height="{height}" rx="7" fill="{fill}" opacity=".16"/>'
        )
        parts.append(f'<rect x="10" y="{y}" width="6" height="{height}" rx="3" fill="{fill}"/>')
        parts.append(f'<text x="30" y="{y + 27}" font-weight="600">{name.replace("<", "&lt;")}</text>')
        parts.append(f'<text x="300" y="{y + 27}" fill="#5d6877">{about}</text>')
    whole = 10 + len(FLOORS) * (height + 6) + 4
    file.write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {whole}" font-family="system-ui, sans-serif" '
        f'font-size="15" fill="#1c2430"><rect width="{width}" height="{whole}" rx="10" fill="#fff"/>\n'
        + "\n".join(parts)
        + "\n</svg>\n"
    )


def torchemu(folder: Path, *arguments: str) -> None:
    """Runs a command of torchemu's."""
    subprocess.run([sys.executable, "-m", "torchemu", *arguments], cwd=folder, check=True, stdout=subprocess.DEVNULL)


def report(folder: Path, file: Path) -> None:
    """Takes a picture of the upper part of the report on train.py, with the last rank's rows."""
    torchemu(folder, "run", "--nproc-per-node", "8", "--topology", "sips8", "--torch", "numpy",
             "--trace", "run", "--trace-level", "link", "train.py")  # fmt: skip
    torchemu(folder, "report", "run")
    photograph(folder / "run" / "report.html", file, 1180)


def engines(folder: Path, file: Path) -> None:
    """Takes a picture of a rank's engines beside its products, in the second step of benches/mori_fsdp2.py."""
    root = DOCS.parent
    command = [root / ".venv-torch" / "bin" / "python", "-m", "torchemu", "run", "--torch", "real", "--no-data",
               "--nnodes", "2", "--nproc-per-node", "4", "--topology", "mi355x_2x4", "--trace", "engines",
               root / "benches" / "mori_fsdp2.py"]  # fmt: skip
    subprocess.run(
        command, cwd=folder, check=True, stdout=subprocess.DEVNULL, env=os.environ | {"MORI_ENABLE_SDMA": "1"}
    )
    torchemu(folder, "report", "engines")
    photograph(folder / "engines" / "report.html", file, 860, (0.52, 0.75))


def photograph(page: Path, file: Path, height: int, part: tuple[float, float] | None = None) -> None:
    """Takes a picture of the upper part of a report, with the rows of one rank, and of a part of the time."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as p:
        browser = p.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        shown = browser.new_page(viewport={"width": 1280, "height": height})
        shown.goto(page.as_uri())
        shown.wait_for_selector("html[data-ready]")
        box = shown.locator("#timeline .u-over").bounding_box()
        assert box is not None
        shown.mouse.click(box["x"] - 60, box["y"] + 12)
        shown.locator("#rows").evaluate("rows => { rows.scrollTop = 0 }")
        if part is not None:
            y = box["y"] + 12
            shown.mouse.move(box["x"] + part[0] * box["width"], y)
            shown.mouse.down()
            shown.mouse.move(box["x"] + part[1] * box["width"], y, steps=5)
            shown.mouse.up()
            shown.mouse.move(1, 1)  # or else a bar says what it is
        shown.screenshot(path=file)
        browser.close()


def overlap(file: Path, table: Path) -> None:
    """Draws the microseconds of benches/triton_overlap.py: a panel for each product, over the number of rows."""
    names, *rows = [line.split(",") for line in table.read_text().split()]
    sizes = [int(row[0]) for row in rows]
    times = [[float(v) for v in row[1:]] for row in rows]
    low = 10 ** math.floor(math.log10(min(map(min, times))))
    high = 10 ** math.ceil(math.log10(max(map(max, times))))
    parts = []
    for panel, first in ((0, 0), (1, 2)):
        left = 70 + panel * 430
        xs = [left + 330 * i / (len(sizes) - 1) for i in range(len(sizes))]

        def y(us: float) -> float:
            return 250 - 200 * math.log(us / low) / math.log(high / low)

        for us in (low * 10**i for i in range(round(math.log10(high / low)) + 1)):
            parts.append(f'<path d="M{left} {y(us):.1f}h330" stroke="#d8dde3"/>')
            parts.append(f'<text x="{left - 8}" y="{y(us) + 5:.1f}" text-anchor="end">{us:g}</text>')
        parts += [
            f'<text x="{x}" y="275" text-anchor="middle">{size}</text>' for x, size in zip(xs, sizes, strict=True)
        ]
        for k, (name, color) in enumerate(((names[1 + first], "#2f7ed8"), ("unfused", "#f2b705"))):
            points = " ".join(f"{x:.1f},{y(row[first + k]):.1f}" for x, row in zip(xs, times, strict=True))
            parts.append(f'<polyline points="{points}" fill="none" stroke="{color}" stroke-width="3"/>')
            parts.append(f'<text x="{left + 10}" y="{30 + 20 * k}" fill="{color}" font-weight="600">{name}</text>')
    file.write_text(
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 860 310" font-family="system-ui, sans-serif" '
        'font-size="14" fill="#1c2430"><rect width="860" height="310" rx="10" fill="#fff"/>\n'
        + "\n".join(parts)
        + '\n<text x="430" y="300" text-anchor="middle" fill="#5d6877">microseconds over rows M</text>\n</svg>\n'
    )


def main() -> None:
    """Makes all of them."""
    pictures = DOCS / "pictures"
    architecture(pictures / "architecture.svg")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for file, text in FILE.findall((DOCS / "start.md").read_text()):
            (folder / file).write_text(text)
        (folder / "matplotlibrc").write_text("svg.fonttype: none\nsvg.hashsalt: torchemu\n")  # letters, and no outlines
        torchemu(folder, "topology", "show", "sips8", "--svg", str(pictures / "sips8.svg"))
        torchemu(folder, "sweep", "all_reduce", "--topology", "sips8", "--set", "link.bandwidth=50,100,200,400",
                 "-b", "1K", "-e", "16M", "--plot", str(pictures / "sweep.svg"))  # fmt: skip
        report(folder, pictures / "report.png")
        engines(folder, pictures / "engines.png")
        bench = DOCS.parent / "benches" / "triton_overlap.py"
        torchemu(folder, "run", "--torch", "numpy", "--nnodes", "2", "--nproc-per-node", "8", "--topology", "h800_2x8",
                 str(bench), "256", "1024", "4096", "--csv", "overlap.csv")  # fmt: skip
        overlap(pictures / "overlap.svg", folder / "overlap.csv")


if __name__ == "__main__":
    main()
