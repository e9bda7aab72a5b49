"""Every example in README.md and on the pages of docs runs, and prints what is shown there.

Programs with a name above them, and what ``$ torchemu run`` prints about them, are test_diagnosis' concern.
"""

from __future__ import annotations

import contextlib
import io
import json
import operator
import re
import shlex
import subprocess
import sys
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from conftest import ROOT
from launch import launch, unmarked, written

import torchemu
from torchemu import runtime
from torchemu.bridge.binding import go
from torchemu.launch import cli

pytest_plugins = ["pytester"]

WITH_TESTS_OF_THEIR_OWN = ("kernels.md", "mori.md", "simpler.md", "start.md", "triton.md")
PAGES = [
    ROOT / "README.md",
    *sorted(page for page in (ROOT / "docs").glob("*.md") if page.name not in WITH_TESTS_OF_THEIR_OWN),
]
FENCED = re.compile(r"^(<!-- [\w.]+ -->\n)?```(\w*)\n(.*?)^```\n", re.DOTALL | re.MULTILINE)
INDENTED = re.compile(r"(?<=\n\n)((?: {4}.*\n|\n(?= {4}))+)")
TIME = re.compile(r"\b\d+(\.\d+)? ?(ps|ns|us|ms|s)\b")

TRAIN = """
    import sys
    import torch
    import torch.distributed as dist

    dist.init_process_group("nccl" if len(sys.argv) > 1 else "gloo")
    for _ in range(3):
        t = torch.ones(1000, device="cuda" if len(sys.argv) > 1 else "cpu")
        dist.all_reduce(t)
        assert t.tolist() == [dist.get_world_size()] * 1000
    print("rank", dist.get_rank(), "of", dist.get_world_size(), *sys.argv[1:])
"""


@dataclass(frozen=True)
class Block:
    """A block of text that is set as code."""

    page: str
    language: str
    text: str
    named: bool

    @property
    def first(self) -> str:
        """Its first line."""
        return self.text.strip().splitlines()[0].strip()


def blocks(page: Path) -> list[Block]:
    """Returns the fenced blocks of a page."""
    text = page.read_text()
    fenced = [Block(page.name, found[2], found[3], bool(found[1])) for found in FENCED.finditer(text)]
    rest = FENCED.sub("", text)
    return [*fenced, *(Block(page.name, "", textwrap.dedent(found[1]), False) for found in INDENTED.finditer(rest))]


BLOCKS = [block for page in PAGES for block in blocks(page) if not block.named and block.language != "console"]


def block_of(page: str, beginning: str) -> Block:
    """The one that begins so."""
    (found,) = (b for b in BLOCKS if b.page == page and b.first.startswith(beginning))
    return found


def commands(block: Block, program: str) -> list[list[str]]:
    """The arguments of its lines that run a program, without comments."""
    lines = (shlex.split(line, comments=True) for line in block.text.splitlines())
    return [words[1:] for words in lines if words and Path(words[0]).name == program]


def printed(arguments: list[str]) -> str:
    """Returns what torchemu prints with these arguments, when it succeeds."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        assert cli.main(arguments) == 0
    return out.getvalue()


def fabrics(block: Block, folder: Path) -> None:
    """Lines that time collectives and jobs without a program; the last size of each is a small one here."""
    written(folder, "num_ranks 2\nrank 0 {\nl1: send 64b to 1\n}\nrank 1 {\nl1: recv 64b from 0\n}\n", "job.goal")
    first_words = {"bandwidth": "#", "sweep": "all_reduce", "replay": "2 ranks", "topology": "h800_2x8"}
    for arguments in commands(block, "torchemu"):
        out = printed([{"512M": "64K", "64M": "4K"}.get(word, word) for word in arguments])
        assert first_words.pop(arguments[0]) in out, out
    assert not first_words


def run_script(block: Block, folder: Path) -> None:
    """Lines that run or report on train.py."""
    written(folder, TRAIN, "train.py")
    for arguments in commands(block, "torchemu"):
        out = printed(arguments)
        if arguments[0] == "report":
            assert "collectives" in out and (folder / "out" / "report.html").exists()
        elif "--explore" not in arguments:
            n = int(arguments[arguments.index("--nproc-per-node") + 1])
            epochs = " --epochs 3" if "--epochs" in arguments else ""
            assert sorted(out.splitlines()) == sorted(f"rank {r} of {n}{epochs}" for r in range(n))


def make(block: Block, folder: Path) -> None:
    """Targets of the Makefile."""
    for arguments in commands(block, "make"):
        subprocess.run(["make", "--dry-run", *arguments], cwd=ROOT, check=True, capture_output=True)


def table_of_bench(block: Block, folder: Path) -> None:
    """Checks the end of make bench; times may change with the model of the fabric, and those shown have to follow."""
    assert printed(["bench", str(ROOT / "benches" / "ccl_allreduce.py")]).endswith(block.text)


def stuck(block: Block, folder: Path) -> None:
    """A program of which only the error is shown."""
    text = "import torch\nimport torch.distributed as dist\ndist.init_process_group('gloo'); x = torch.zeros(4)\n"
    written(folder, text + "dist.recv(x, 1 - dist.get_rank())\n", "stuck.py")
    outcome = launch("--nproc-per-node", "2", "stuck.py")
    assert outcome.status == 1
    said = unmarked(outcome.err.replace(f"{folder}/", ""))
    assert TIME.sub("", said).startswith(TIME.sub("", unmarked(block.text)))


def user_bench(block: Block, folder: Path) -> None:
    """The bench is what the commands below it run."""
    written(folder, block.text, "my_bench.py")
    written(folder, block_of("README.md", "defaults: {algorithm").text, "my_ccl.yaml")
    runs = commands(block_of("README.md", ".venv/bin/torchemu bench"), "torchemu")
    for arguments, total, n in zip(runs, (10, 136, 10, 10), (4, 16, 4, 4), strict=True):
        out = printed(arguments)
        assert sorted(out.splitlines()[1 : n + 1]) == sorted(f"{r} {total}.0" for r in range(n))
    assert json.loads((folder / "trace.json").read_text())


def presets(block: Block, folder: Path) -> None:
    """The comment names all topologies that there are; user_bench runs the commands."""
    named = re.search(r"# (.*), or a YAML file", block.text)
    assert named is not None and sorted(named[1].split(", ")) == sorted(json.loads(go.Presets()))


def topology(block: Block, folder: Path) -> None:
    """A topology.yaml."""
    world = torchemu.World(written(folder, block.text, "topology.yaml"))
    sips = world.spec["system"]["sips"]
    world.close()
    assert {name: sips[name] for name in ("count", "connect", "w", "h")} == {
        "count": 16, "connect": "torus2d", "w": 4, "h": 4
    }  # fmt: skip
    assert sips["link"] == {"bandwidth": 100, "latency": 250}


def switch(block: Block, folder: Path) -> None:
    """A topology.yaml whose switch reduces."""
    written(folder, block.text, "topology.yaml")
    assert "the switch multicasts, reduces by sum" in printed(["topology", "show", str(folder / "topology.yaml")])


def ccl(block: Block, folder: Path) -> None:
    """A ccl.yaml."""
    world = torchemu.World("default", written(folder, block.text, "ccl.yaml"))
    world.close()
    assert world.algorithm == "ring"


def faults(block: Block, folder: Path) -> None:
    """A file of faults."""
    with runtime.opened() as world:
        go.LoadFaults(world.handle, str(written(folder, block.text, "faults.yaml")), 0)


def test_file(block: Block, folder: Path) -> None:
    """A file of tests."""
    written(folder, block.text, "test_sum.py")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_sum.py"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "1 passed" in done.stdout, done.stdout


test_file.__test__ = False  # type: ignore[attr-defined] # it is one of the checks


def message(block: Block, folder: Path) -> None:
    """The beginning of a page: an error, of which the page shows several."""
    pattern = ".*".join(re.escape(part) for part in block.text.strip().split("…"))
    assert len(re.findall(pattern, (ROOT / "docs" / block.page).read_text())) > 1


def profiling(block: Block, folder: Path) -> None:
    """Lines that stand in a program."""
    text = block.text.replace("        ...\n", "        torch.ones(10) + 1\n")
    written(folder, f"import torch\nbatches = range(5)\n{text}", "program.py")
    outcome = launch("--nproc-per-node", "1", "program.py")
    assert (outcome.status, outcome.err) == (0, "")
    events = json.loads((folder / "rank0.json").read_text())["traceEvents"]
    assert [e["cat"] for e in events if e.get("name") == "forward"] == ["user_annotation"] * 3


def bandwidth(block: Block, folder: Path) -> None:
    """Options of ccl_bandwidth.py, which has tests of its own."""
    command = [sys.executable, "-c", "import sys, ccl_bandwidth as b; b._parser().parse_args(sys.argv[2:])"]
    for arguments in commands(block, "python"):
        assert arguments[0] == "benches/ccl_bandwidth.py"
        subprocess.run([*command, *arguments], cwd=ROOT / "benches", check=True)


def on_pytorch(block: Block, folder: Path) -> None:
    """A program for the installed PyTorch: frontends/torch/test_torch_docs.py runs it."""
    run, *_ = commands(block_of(block.page, "torchemu run"), "torchemu")
    assert run[run.index("--torch") + 1] == "real"


def missing(block: Block, folder: Path) -> None:
    """Returns what is said of a name that is not there."""
    name = re.search(r"has no torch\.([\w.]+):", block.text)
    assert name is not None
    with pytest.raises(AttributeError) as caught:
        operator.attrgetter(name[1])(torchemu)
    assert f"AttributeError: {caught.value}" == block.text.strip()


def shown_above(block: Block, folder: Path) -> None:
    """The commands that another check runs."""
    assert block_of(block.page, "import ")


def flight_recorder(block: Block, folder: Path) -> None:
    """A run that fails leaves a file for each rank; PyTorch's reader of them is no part of this."""
    dump, read = block.text.splitlines()
    variable, _, rest = dump.partition(" ")
    name, _, value = variable.partition("=")
    (folder / "dumps").mkdir()
    written(folder, TRAIN + "    if dist.get_rank() < 3: dist.barrier()\n", "train.py")
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv(name, value)
        assert launch(*shlex.split(rest)[2:]).status == 1
    assert sorted(file.name for file in (folder / "dumps").iterdir()) == [f"rank_{r}" for r in range(4)]
    assert read == "python -m torch.distributed.flight_recorder.fr_trace dumps"


def recorded(block: Block, folder: Path) -> None:
    """Lines that stand in a program."""
    written(folder, textwrap.dedent(TRAIN) + block.text, "train.py")
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("TORCH_FR_BUFFER_SIZE", "10")
        outcome = launch("--nproc-per-node", "1", "train.py", "cuda")
    assert (outcome.status, outcome.err) == (0, "")
    assert outcome.out.count("nccl:all_reduce [[1000]] completed") == 3


def runs_alone(block: Block, folder: Path) -> None:
    """A program that says nothing."""
    outcome = launch("--nproc-per-node", "8", written(folder, block.text))
    assert (outcome.status, outcome.out, outcome.err) == (0, "", "")


def bench_of_layers(block: Block, folder: Path) -> None:
    """The table is a part of what the command above prints; so are its options."""
    (arguments,) = commands(block_of("tensor-parallel.md", "python benches/tp_mlp.py"), "python")
    command = [sys.executable, str(ROOT / arguments[0])]
    shown = subprocess.run([*command, "--tp", "4"], check=True, capture_output=True, text=True).stdout
    for line in block.text.splitlines():
        assert line in shown.splitlines()


def options_of_bench(block: Block, folder: Path) -> None:
    """Returns what a comment says of options, and the options themselves."""
    (arguments,) = commands(block, "python")
    command = [sys.executable, str(ROOT / arguments[0]), "--help"]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    for option in re.findall(r"--[\w-]+", block.text):
        assert option in said


def benches_of_layers(block: Block, folder: Path) -> None:
    """Both run, here with less to do."""
    less = {"tp_mlp.py": ["--hidden", "16", "--tokens", "16"], "tp_transformer.py": ["--steps", "2"]}
    for arguments in commands(block, "python"):
        command = [sys.executable, str(ROOT / arguments[0]), *arguments[1:], *less.pop(Path(arguments[0]).name)]
        shown = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        assert {line.split()[0] for line in shown.splitlines()} >= {"1", "2", "4", "8"}
    assert not less


def kernel(block: Block, folder: Path) -> None:
    """It does what its name says."""
    calls = "x = torch.arange(8.0)\nout = torch.empty_like(x)\ndouble[1](out, x, 8)\nprint(out.tolist())\n"
    outcome = launch("--nproc-per-node", "1", written(folder, f"import torch\n{block.text}{calls}"))
    assert (outcome.out, outcome.err) == (f"{[2.0 * i for i in range(8)]}\n", "")


def host_memory(block: Block, folder: Path) -> None:
    """The message of a tensor that no machine holds."""
    begin, end = re.split(" … ", block.text.strip().removesuffix(" …"))
    with pytest.raises(torchemu.errors.HostMemoryError) as caught, torchemu.open_world("default"):
        torchemu.zeros(1 << 60, device="cpu")
    assert f"HostMemoryError: {caught.value}".startswith(begin) and end in str(caught.value)


def ends_well(block: Block, folder: Path) -> None:
    """The lines are commands that end well, with a small job to replay."""
    Path("job.goal").write_text("num_ranks 1\nrank 0 {\ncalc 5\n}\n")
    for line in block.text.splitlines():
        name, *arguments = line.split()
        assert name == "torchemu"
        assert cli.main(arguments) == 0, line


CHECKS: dict[tuple[str, str], Callable[[Block, Path], None]] = {
    ("README.md", "make bench"): make,
    ("README.md", "ccl_allreduce.py on default"): table_of_bench,
    ("README.md", ".venv/bin/torchemu run"): run_script,
    ("README.md", "[rank0]: Traceback"): stuck,
    ("README.md", "import numpy as np"): user_bench,
    ("README.md", ".venv/bin/torchemu bench"): presets,
    ("README.md", ".venv/bin/python benches/tp_mlp.py"): benches_of_layers,
    ("README.md", "system: {sips"): topology,
    ("README.md", "defaults: {algorithm"): ccl,
    ("README.md", "import torchemu.language"): kernel,
    ("README.md", ".venv/bin/torchemu bandwidth"): fabrics,
    ("running.md", "torchrun "): run_script,
    ("running.md", "import torchemu"): test_file,
    ("faults.md", "faults:"): faults,
    ("deadlock.md", "DeadlockError: "): message,
    ("mismatch.md", "MismatchError: "): message,
    ("out-of-memory.md", "OutOfMemoryError: "): message,
    ("out-of-memory.md", "HostMemoryError: "): host_memory,
    ("traces.md", "torchemu run"): run_script,
    ("machines.md", "system:"): switch,
    ("algorithms.md", "torchemu topology show"): ends_well,
    ("algorithms.md", "torchemu bandwidth"): ends_well,
    ("algorithms.md", "torchemu sweep"): ends_well,
    ("algorithms.md", "torchemu replay"): ends_well,
    ("training.md", "AttributeError: torchemu"): missing,
    ("training.md", "import os"): on_pytorch,
    ("training.md", "torchemu run"): shown_above,
    ("flight-recorder.md", "TORCH_FR_DUMP_TEMP_FILE"): flight_recorder,
    ("flight-recorder.md", "import pickle"): recorded,
    ("symmetric-memory.md", "import torch"): on_pytorch,
    ("symmetric-memory.md", "torchemu run"): shown_above,
    ("symmetric-memory.md", "# dispatch.py"): on_pytorch,
    ("tensor-parallel.md", "import os"): runs_alone,
    ("tensor-parallel.md", "torchemu run"): run_script,
    ("tensor-parallel.md", "python benches/tp_mlp.py"): options_of_bench,
    ("tensor-parallel.md", "2048 → 8192"): bench_of_layers,
    ("tensor-parallel.md", "python benches/tp_transformer.py"): options_of_bench,
    ("traces.md", "with torch.profiler"): profiling,
    ("traces.md", "python benches/"): bandwidth,
}
"""The check of each block, by page and beginning."""


def test_every_example_is_checked() -> None:
    assert len(BLOCKS) == len(CHECKS)
    for page, beginning in CHECKS:
        block_of(page, beginning)


@pytest.mark.parametrize(("page", "beginning"), CHECKS)
def test_example(page: str, beginning: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    CHECKS[page, beginning](block_of(page, beginning), tmp_path)


def test_bandwidths_by_a_switch() -> None:
    """The table of algorithms.md has what torchemu bandwidth says, and published figures that are near it."""
    rows = re.findall(
        r"^\| (\d) \| (\d+) \| 365 to 370 \| (\d+) \| (\d+) \|$", (ROOT / "docs/algorithms.md").read_text(), re.M
    )
    assert [int(row[0]) for row in rows] == [4, 5, 6, 7, 8]
    for gpus, *shown, published in rows:
        for algorithm, busbw in zip(("ring", "nvls"), shown, strict=True):
            size = ["-b", "4G", "-e", "4G", "-g", gpus, "--algorithm", algorithm, "--json"]
            said = json.loads(printed(["bandwidth", "all_reduce", "--topology", "h200_8_nvls", *size]))
            assert round(said["rows"][0]["busbw"]) == int(busbw)
        assert abs(int(busbw) / int(published) - 1) < 0.03


def test_programs_in_docs_are_whole() -> None:
    """A fenced Python block of docs without a program's name above it is one that is checked here."""
    pages = {page for page, beginning in CHECKS if beginning.startswith("import")}
    assert {b.page for b in BLOCKS if b.language == "python"} == pages
