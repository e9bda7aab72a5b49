"""The files that --trace writes, read back by decoders of their own."""

from __future__ import annotations

import itertools
import json
import re
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest
from conftest import OpenWorld
from launch import launch, written
from ranks import on_ranks
from traces import Perfetto, Slice, assert_nested, bars, interval, kineto, message, perfetto

import torchemu as torch
import torchemu.distributed as dist
from torchemu import dtypes
from torchemu.launch import cli
from torchemu.profile.run import traced

RANKS = 8


def program(rank: int) -> None:
    """Collectives of two groups, messages that overlap, kernels beside them, and hosts that wait."""
    dist.init_process_group("nccl")
    x = torch.ones(1 << 12, device="cuda")
    halves = [dist.new_group(list(range(RANKS))[h::2]) for h in range(2)]
    for _ in range(3):
        work = dist.all_reduce(x, async_op=True)
        with torch.profiler.record_function("compute"):
            y = torch.ones(256, 256, dtype=torch.float16, device="cuda")
            (y @ y).sum()
        work.wait()
    dist.broadcast(x, 2 + rank % 2, group=halves[rank % 2])
    gathered = torch.zeros(RANKS << 12, device="cuda")
    dist.all_gather_into_tensor(gathered, x)
    if rank < 2:
        received = [torch.zeros(1 << 12, device="cuda") for _ in range(2)]
        works = [dist.isend(x, 1 - rank) for _ in range(2)] + [dist.irecv(r, 1 - rank) for r in received]
        for work in works:
            work.wait()
    x.cpu()


@pytest.fixture
def run(open_world: OpenWorld, tmp_path: Path) -> Any:
    """Runs the program on eight ranks with a trace; returns the path and the log of collectives."""

    def go(name: str, level: str = "") -> tuple[Path, list[dict[str, Any]]]:
        world = open_world("sips8")
        with traced(world, str(tmp_path / name), level):
            on_ranks(RANKS, program)
        return tmp_path / name, world.collectives()

    return go


def whole_nanoseconds(logged: dict[str, Any]) -> tuple[int, int]:
    """Returns what a viewer shows of a time, in picoseconds."""
    return logged["start"] // 1000 * 1000, logged["end"] // 1000 * 1000


# -- Kineto


def test_a_file_for_each_rank(run: Any) -> None:
    folder, _ = run("trace")
    files = sorted(f.name for f in folder.iterdir())
    assert files == [*(f"rank{r}.json.gz" for r in range(RANKS)), "run.torchemu"]
    for rank in range(RANKS):
        about = kineto(folder / f"rank{rank}.json.gz")["distributedInfo"]
        assert (about["rank"], about["world_size"], about["backend"]) == (rank, RANKS, "nccl")
        groups = {g["pg_desc"]: g["ranks"] for g in about["pg_config"]}
        assert groups["default"] == list(range(RANKS))
        assert list(range(RANKS))[rank % 2 :: 2] in groups.values()


def test_times_are_those_of_the_log(run: Any) -> None:
    folder, log = run("trace")
    found: dict[tuple[str, str, int], list[tuple[int, int]]] = defaultdict(list)
    for rank in range(RANKS):
        for bar in bars(kineto(folder / f"rank{rank}.json.gz"), "kernel"):
            args = bar["args"]
            if "Seq" in args:
                key = (args["Collective name"], args["Process Group Name"], args["Seq"])
                found[key].append((*interval(bar), args["bytes"]))
    assert {key[0]: len(parts) for key, parts in found.items()} == {
        "allreduce": RANKS, "_allgather_base": RANKS, "broadcast": RANKS // 2,
    }  # fmt: skip
    traced_times = sorted((max(p[0] for p in parts), max(p[1] for p in parts)) for parts in found.values())
    collectives = [c for c in log if c["algorithm"] != "p2p"]
    assert traced_times == sorted(whole_nanoseconds(c) for c in collectives)
    assert len(collectives) == 3 + 2 + 1


def test_messages_have_both_ends(run: Any) -> None:
    folder, log = run("trace")
    sent, received = (
        [
            b
            for r in range(RANKS)
            for b in bars(kineto(folder / f"rank{r}.json.gz"))
            if b["cat"] == "kernel" and b["args"].get("Collective name") == n
        ]
        for n in ("send", "recv")
    )
    times = sorted(whole_nanoseconds(c) for c in log if c["algorithm"] == "p2p")
    assert len(times) == 4
    for side in (sent, received):
        assert sorted(interval(b) for b in side) == times
        assert sorted((b["args"]["Src Rank"], b["args"]["Dst Rank"]) for b in side) == [(0, 1), (0, 1), (1, 0), (1, 0)]


def test_rows_of_kineto_are_nested(run: Any) -> None:
    folder, _ = run("trace", "step")
    for rank in range(RANKS):
        rows = defaultdict(list)
        for bar in bars(kineto(folder / f"rank{rank}.json.gz")):
            rows[bar["pid"], bar["tid"]].append(interval(bar))
        for row in rows.values():
            assert_nested(row)
        for (pid, _), row in rows.items():
            if pid == rank:  # on a device nothing is part of another
                assert all(a[1] <= b[0] for a, b in itertools.pairwise(sorted(row)))
        if rank < 2:
            assert sum(tid > 7 for pid, tid in rows if pid == rank) >= 3, "messages that overlap need rows of their own"


def test_calls_come_before_what_they_are_for(run: Any) -> None:
    folder, _ = run("trace")
    document = kineto(folder / "rank3.json.gz")
    calls = {
        b["args"]["correlation"]: interval(b) for b in bars(document, "cuda_runtime") if "correlation" in b["args"]
    }
    device = {b["args"]["correlation"]: interval(b) for b in bars(document, "kernel", "gpu_memcpy")}
    assert calls.keys() == device.keys()
    assert all(calls[n][1] <= device[n][0] for n in calls)
    operators = {b["args"]["External id"]: b["name"] for b in bars(document, "cpu_op") if "External id" in b["args"]}
    assert operators.keys() == calls.keys()
    assert {"c10d::allreduce_", "c10d::_allgather_base_", "c10d::broadcast_", "aten::matmul"} <= set(operators.values())


def test_what_the_program_calls_things_is_around_what_it_does(run: Any) -> None:
    folder, _ = run("trace")
    document = kineto(folder / "rank5.json.gz")
    named = [interval(b) for b in bars(document, "user_annotation")]
    assert [b["name"] for b in bars(document, "user_annotation")] == ["compute"] * 3
    products = [interval(b) for b in bars(document, "cpu_op") if b["name"] == "aten::matmul"]
    assert len(products) == 3
    assert all(start <= a and b <= end for (start, end), (a, b) in zip(named, products, strict=True))


def test_every_dtype_has_pytorchs_name(open_world: OpenWorld, tmp_path: Path) -> None:
    world = open_world("sips2")

    def moves(rank: int) -> None:
        dist.init_process_group()
        for kind in dtypes.ALL:
            dist.broadcast(torch.ones(2, 3, dtype=kind), 0)

    with traced(world, str(tmp_path / "trace"), ""):
        on_ranks(2, moves)
    calls = [b["args"] for b in bars(kineto(tmp_path / "trace" / "rank1.json.gz"), "kernel") if "dtype" in b["args"]]
    assert [(args["dtype"], args["Out msg nelems"]) for args in calls] == [(kind.title, 6) for kind in dtypes.ALL]


def test_collectives_have_their_arguments(run: Any) -> None:
    folder, _ = run("trace")
    document = kineto(folder / "rank6.json.gz")
    (gather,) = [b for b in bars(document, "kernel") if b["name"].startswith("ncclKernel_AllGather_")]
    args = gather["args"]
    assert (args["In msg nelems"], args["Out msg nelems"], args["Group size"]) == (1 << 12, RANKS << 12, RANKS)
    assert (args["dtype"], args["Process Group Ranks"], args["Rank"]) == ("Float", str(list(range(RANKS))), 6)
    reductions = [b["name"] for b in bars(document, "kernel") if "Reduce" in b["name"]]
    assert len(reductions) == 3
    assert all(re.fullmatch(r"ncclKernel_AllReduce_Sum_f32_\w+", name) for name in reductions)


def test_run_file_has_the_fabric(run: Any) -> None:
    folder, log = run("trace")
    about = json.loads((folder / "run.torchemu").read_text())
    assert about["collectives"] == log
    assert (about["topology"], about["ranks"], about["start"]) == ("sips8", list(range(RANKS)), 0)
    assert about["end"] >= max(c["end"] for c in log)
    joining = [link for link in about["links"] if re.fullmatch(r"n0\.s\d\.io>n0\.s\d\.io", link["name"])]
    assert len(joining) == RANKS * (RANKS - 1)  # sips8 joins each with each
    assert all(link["bandwidth"] > 0 and link["bytes"] > 0 for link in joining)


def test_steps_of_kineto(run: Any) -> None:
    folder, _ = run("trace", "step")
    document = kineto(folder / "rank0.json.gz")
    begun = {e["id"]: e for e in document["traceEvents"] if e["ph"] == "b"}
    ended = {e["id"]: e for e in document["traceEvents"] if e["ph"] == "e"}
    assert begun.keys() == ended.keys() != set()
    assert all(begun[i]["ts"] <= ended[i]["ts"] for i in begun)


# -- Perfetto


@pytest.fixture
def hardware(run: Any) -> tuple[Perfetto, list[dict[str, Any]]]:
    file, log = run("run.pftrace")
    return perfetto(file), log


def on(trace: Perfetto, pattern: str) -> list[Slice]:
    """The bars of the tracks whose names match."""
    return [s for s in trace.slices if re.fullmatch(pattern, s.track)]


def test_times_of_perfetto_are_those_of_the_log(hardware: tuple[Perfetto, list[dict[str, Any]]]) -> None:
    trace, log = hardware
    found = defaultdict(list)
    for s in on(trace, r"rank \d on n0\.s\d/collectives of .*"):
        found[s.name, s.track.rpartition("of ")[2], s.args["number"]].append(s)
    times = sorted((max(s.start for s in parts), max(s.end for s in parts)) for parts in found.values())
    assert times == sorted((c["start"] // 1000, c["end"] // 1000) for c in log if c["algorithm"] != "p2p")


def test_links_carry_what_engines_send(hardware: tuple[Perfetto, list[dict[str, Any]]]) -> None:
    trace, _ = hardware
    engines = on(trace, r".*/PE n0\.s\d\.c0\.p0/DMA engine \d")
    fabric = on(trace, r"node n0/n0\.s\d\.io>n0\.s\d\.io")
    assert {s.flows[0] for s in engines} == {s.flows[0] for s in fabric} != set()
    links = defaultdict(list)
    for s in trace.slices:
        if ">" in s.track:
            links[s.flows[0]].append(s)
    for engine in engines:
        over = links[engine.flows[0]]
        assert {(s.name, s.start, s.end) for s in over} == {(engine.name, engine.start, engine.end)}
        assert len(over) == 5  # memory, port, link, port, memory


def test_levels_of_links(hardware: tuple[Perfetto, list[dict[str, Any]]]) -> None:
    trace, _ = hardware
    shares = {track: values for track, values in trace.counters.items() if track.endswith(" in use")}
    assert shares
    sizes = {s.flows[0]: s.args["bytes"] for s in trace.slices if s.flows and "bytes" in s.args}
    for track, values in shares.items():
        assert values[-1][1] == 0
        assert all(0 <= value <= 100 * (1 + 1e-9) for _, value in values), track
        carried = sum(sizes[s.flows[0]] for s in trace.slices if s.track == track.removesuffix(" in use"))
        area = sum(v / 100 * (b - a) for (a, v), (b, _) in itertools.pairwise(values))  # ns at full rate
        bandwidth = 1000 if "hbm" in track or ".c0" in track else 100  # bytes per ns
        slack = bandwidth * len(values)  # times are whole nanoseconds
        assert abs(area * bandwidth - carried) <= slack


def test_busy_engines(hardware: tuple[Perfetto, list[dict[str, Any]]]) -> None:
    trace, _ = hardware
    busy = {t: v for t, v in trace.counters.items() if t.endswith("busy DMA engines")}
    assert len(busy) == RANKS
    assert all(float(value).is_integer() and 0 <= value <= 8 for values in busy.values() for _, value in values)
    assert max(value for values in busy.values() for _, value in values) > 1


def sip(track: str) -> str:
    """The number of the SIP that a track is of."""
    found = re.search(r"\.s(\d+)", track)
    assert found is not None
    return found[1]


def test_steps_lead_from_sender_to_receiver(hardware: tuple[Perfetto, list[dict[str, Any]]]) -> None:
    trace, _ = hardware
    sent = {s.flows[0]: s for s in on(trace, r".*/PE .*/sends")}
    received = {s.flows[0]: s for s in on(trace, r".*/PE .*/receives")}
    assert sent.keys() == received.keys() != set()
    for flow, s in sent.items():
        r = received[flow]
        assert s.end == r.start
        assert s.name == f"to {sip(r.track)}"
        assert r.name.endswith(f"from {sip(s.track)}")


# -- runs


def test_to_be_traced_takes_no_time(open_world: OpenWorld, tmp_path: Path) -> None:
    logs = []
    for name in ("", "run.pftrace"):
        world = open_world("sips8")
        with traced(world, str(tmp_path / name) if name else "", "link"):
            on_ranks(RANKS, program)
        logs.append(world.collectives())
    assert logs[0] == logs[1] != []


SCRIPT = """
    import torch, torch.distributed as dist
    dist.init_process_group("nccl")
    x = torch.ones(1000, device="cuda")
    for i in range(4):
        if i == 1:
            prof = torch.profiler.profile()
            prof.start()
        dist.all_reduce(x)
        if i == 2:
            prof.stop()
"""


# -- Chakra


def chakra(file: Path) -> list[dict[int, list[Any]]]:
    """The nodes of a trace: messages, each behind its length; the first is about the file."""
    text, found = file.read_bytes(), []
    while text:
        size = shift = used = 0
        while True:
            byte = text[used]
            size |= (byte & 127) << shift
            shift, used = shift + 7, used + 1
            if byte < 128:
                break
        found.append(message(text[used : used + size]))
        text = text[used + size :]
    assert found[0][1] == [b"0.0.4"]
    return found[1:]


def attributes(node: dict[int, list[Any]]) -> dict[str, Any]:
    """By name; the value's field says its type, which readers know."""
    parts = [message(text) for text in node.get(10, [])]
    return {part[1][0].decode(): next(value[0] for field, value in part.items() if field > 1) for part in parts}


def test_graphs_for_simulators(run: Any, tmp_path: Path) -> None:
    """Collectives and messages are nodes, in the order of time, each after others that had ended."""
    _, log = run("graph.et")
    assert sorted(p.name for p in tmp_path.glob("*.et")) == [f"graph.{r}.et" for r in range(RANKS)]
    for rank in range(RANKS):
        nodes = chakra(tmp_path / f"graph.{rank}.et")
        assert [node.get(1, [0])[0] for node in nodes] == list(range(len(nodes)))
        for node in nodes:
            number = node.get(1, [0])[0]
            before = node.get(5, [])
            assert all(after < number for after in before) and len(set(before)) == len(before)
        kinds = Counter(node[3][0] for node in nodes)
        assert (kinds[7], kinds[5], kinds[6]) == (5, *((2, 2) if rank < 2 else (0, 0)))
        seen = [(attributes(n)["comm_type"], attributes(n)["comm_size"]) for n in nodes if n[3] == [7]]
        assert sorted(seen) == [(0, 4 << 12)] * 3 + [(2, RANKS * 4 << 12), (5, 4 << 12)]
        assert all(5 in node for node in nodes if node[2] == [b"sum"])
    assert Counter(c["collective"] for c in log)["all_reduce"] == 3


def test_a_replay_takes_the_same_times(run: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """To the picosecond, on every rank."""
    run("graph.et")
    capsys.readouterr()
    assert cli.main(["replay", str(tmp_path / "graph.et"), "--topology", "sips8", "--json"]) == 0
    got = [round(us * 1e6) for us in json.loads(capsys.readouterr().out)["ends_us"]]
    for rank in range(RANKS):
        known = [attributes(node) for node in chakra(tmp_path / f"graph.{rank}.et")]
        assert got[rank] == max(a["start_ps"] + a["duration_ps"] for a in known)


def test_a_replay_on_a_slower_fabric_takes_longer(run: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run("graph.et")
    capsys.readouterr()
    slow = tmp_path / "slow.yaml"
    slow.write_text("system: {sips: {count: 8, connect: ring, link: {bandwidth: 1, latency: 900}}}\n")
    times = []
    for topology in ("sips8", str(slow)):
        assert cli.main(["replay", str(tmp_path / "graph.et"), "--topology", topology, "--json"]) == 0
        times.append(json.loads(capsys.readouterr().out)["time_us"])
    assert times[1] > 2 * times[0]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["trace", "t.pftrace", "t.json", "t.json.gz", "t.et"])
def test_two_processes_write_the_same_bytes(tmp_path: Path, name: str) -> None:
    script = written(tmp_path, SCRIPT)
    both = []
    for folder in (tmp_path / "a", tmp_path / "b"):
        folder.mkdir()
        command = [sys.executable, "-m", "torchemu", "run", "--trace-level=link", f"--trace={folder / name}", script]
        subprocess.run(command, check=True)
        both.append({f.relative_to(folder): f.read_bytes() for f in folder.rglob("*") if f.is_file()})
    assert both[0] == both[1] != {}


@pytest.mark.parametrize(("flags", "numbers"), [([], [0, 1, 2, 3]), (["--trace-range=profiler"], [1, 2])])
def test_range(tmp_path: Path, flags: list[str], numbers: list[int]) -> None:
    outcome = launch("--trace", tmp_path / "trace", *flags, written(tmp_path, SCRIPT))
    assert (outcome.status, outcome.err) == (0, "")
    for rank in range(4):
        kernels = bars(kineto(tmp_path / "trace" / f"rank{rank}.json.gz"), "kernel")
        assert [b["args"]["Seq"] for b in kernels if "Seq" in b["args"]] == numbers


def test_files_of_another_run_do_not_stay(tmp_path: Path) -> None:
    script, folder = written(tmp_path, SCRIPT), tmp_path / "trace"
    launch("--trace", folder, script)
    (folder / "notes.txt").write_text("mine")
    launch("--trace", folder, "--nproc-per-node=2", script)
    assert sorted(f.name for f in folder.iterdir()) == ["notes.txt", "rank0.json.gz", "rank1.json.gz", "run.torchemu"]


def test_a_run_that_fails_has_a_trace(tmp_path: Path) -> None:
    script = written(tmp_path, SCRIPT + "    assert dist.get_rank() != 2\n")
    outcome = launch("--trace", tmp_path / "trace", script)
    assert outcome.status == 1
    assert len(bars(kineto(tmp_path / "trace" / "rank2.json.gz"), "kernel")) >= 4


def test_bench_writes_a_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bench = written(tmp_path, "def run(torch):\n    torch.ones(8).sum()\n", "some_bench.py")
    assert cli.main(["bench", str(bench), "--trace", str(tmp_path / "trace")]) == 0
    assert [b["name"] for b in bars(kineto(tmp_path / "trace" / "rank0.json.gz"), "kernel")][-1] == "sum"
    assert str(tmp_path / "trace") in capsys.readouterr().out


@pytest.mark.parametrize(("name", "reader"), [("t.json", "Perfetto"), ("t.et", "ASTRA-sim")])
def test_bench_says_what_opens_a_trace(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, reader: str
) -> None:
    bench = written(tmp_path, "def run(torch):\n    torch.ones(8).sum()\n", "some_bench.py")
    assert cli.main(["bench", str(bench), "--trace", str(tmp_path / name)]) == 0
    assert f"trace written to {tmp_path / name}; open it in {reader}\n" in capsys.readouterr().out


def test_levels(run: Any) -> None:
    small, middle, large = (len(perfetto(run(f"{n}.pftrace", n)[0]).slices) for n in ("collective", "step", "link"))
    assert small < middle < large
