"""The flight recorder: what a rank has kept, checked against the published schema."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import pytest
from conftest import OpenWorld
from flight import FILE, MILLISECOND, SIZE, check_schema, dumped, entries
from ranks import SIXTY_FOUR, on_ranks

import torchemu as torch
import torchemu.distributed as dist
from torchemu._C import _distributed_c10d as c10d
from torchemu.runtime.waiting import host_time, reach

pytestmark = pytest.mark.shows("PyTorch: flight recorder")


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (SIZE, FILE, "TORCH_NCCL_TRACE_BUFFER_SIZE", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE"):
        monkeypatch.delenv(name, raising=False)


def test_off_records_nothing_and_looks_at_nothing(open_world: OpenWorld) -> None:
    open_world("sips2")

    def program(rank: int) -> None:
        dist.init_process_group()
        dist.all_reduce(torch.ones(2))
        assert dist.group.WORLD is not None and dist.group.WORLD.hooks is None
        assert dumped() == {
            "version": "2.10", "pg_config": {}, "comm_lib_version": "", "pg_status": {}, "entries": [],
        }  # fmt: skip

    on_ranks(2, program)


def all_collectives(rank: int, n: int) -> None:
    """Calls each of them once, with blocks of 3 × 2 elements."""
    t, many = torch.ones(3, 2), torch.ones(3 * n, 2)
    root = rank == n - 1

    def blocks() -> list[torch.Tensor]:
        return [torch.ones(3, 2) for _ in range(n)]

    dist.all_reduce(t)
    dist.reduce(t, n - 1)
    dist.broadcast(t, n - 1)
    dist.all_gather(blocks(), t)
    dist.all_gather_into_tensor(many, t)
    dist.reduce_scatter(t, blocks())
    dist.reduce_scatter_tensor(t, many)
    dist.all_to_all(blocks(), blocks())
    dist.all_to_all_single(torch.ones(3 * n, 2), many)
    dist.gather(t, blocks() if root else None, n - 1)
    dist.scatter(t, blocks() if root else None, n - 1)
    dist.barrier()


def expected(rank: int, n: int) -> list[tuple[str, list[list[int]], list[list[int]]]]:
    """Returns what PyTorch 2.11 with NCCL records for that: names, input and output sizes."""
    one, whole = [[3, 2]], [[3 * n, 2]]
    stacked = [[n, 3, 2]] if n > 1 else one
    root = rank == n - 1
    return [
        ("all_reduce", one, one),
        ("reduce", one, one),
        ("broadcast", one, one),
        ("all_gather", one, stacked),
        ("_all_gather_base", one, whole),
        ("reduce_scatter", stacked, one),
        ("_reduce_scatter_base", whole, one),
        ("all_to_all", stacked, stacked),
        ("all_to_all", whole, whole),
        ("gather", one, stacked if root else []),
        ("scatter", stacked if root else [], one),
        ("all_reduce_barrier", [[1]], [[1]]),
    ]


@pytest.mark.parametrize("n", [1, 2, 3, 8, 64])
def test_every_collective(open_world: OpenWorld, monkeypatch: pytest.MonkeyPatch, n: int) -> None:
    open_world(SIXTY_FOUR)
    monkeypatch.setenv(SIZE, "100")

    def program(rank: int) -> None:
        dist.init_process_group("nccl")
        all_collectives(rank, n)
        dist.barrier()
        whole = dumped()
        check_schema(whole)
        *found, last = whole["entries"]
        shown = [(e["profiling_name"], e["input_sizes"], e["output_sizes"]) for e in found]
        assert shown == [(f"nccl:{name}", ins, outs) for name, ins, outs in expected(rank, n)]
        for i, entry in enumerate([*found, last]):
            assert (entry["record_id"], entry["collective_seq_id"], entry["op_id"]) == (i, i + 1, i + 1)
            assert entry["process_group"] == ("0", "default_pg") and entry["timeout_ms"] == 600_000
            assert not entry["is_p2p"] and entry["p2p_seq_id"] == 0
            assert entry["state"] == "completed"
            assert set(entry["input_dtypes"]) <= {"Float"}
            assert len(entry["input_dtypes"]) == len(entry["input_sizes"])
            assert entry["frames"][0]["name"] in ("all_collectives", "program")
        assert whole["pg_config"] == {"0": {"name": "0", "desc": "default_pg", "ranks": str(list(range(n)))}}
        assert whole["pg_status"] == {"0": dict.fromkeys(whole["pg_status"]["0"], 13)}

    on_ranks(n, program)


def test_messages_and_groups(open_world: OpenWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    open_world("default")
    monkeypatch.setenv("TORCH_NCCL_TRACE_BUFFER_SIZE", "100")

    def program(rank: int) -> list[Any]:
        dist.init_process_group("gloo")
        pair = dist.new_group([1, 2], group_desc="pair")
        if rank in (1, 2):
            dist.all_reduce(torch.ones(2, dtype=torch.int64), group=pair)
        if rank == 1:
            dist.send(torch.ones(4, dtype=torch.float16), 2, group=pair)
            dist.recv(torch.ones(1), 2, group=pair)
        if rank == 2:
            dist.recv(torch.ones(4, dtype=torch.float16), group=pair)
            work = dist.isend(torch.ones(1), 1, group=pair)
            assert work is not None
            work.wait()
        dist.barrier()
        whole = dumped()
        check_schema(whole)
        return [
            (e["profiling_name"], e["process_group"], e["p2p_seq_id"], e["op_id"], e["is_p2p"], e["input_sizes"])
            for e in whole["entries"]
        ]

    zero, one, two, _ = on_ranks(4, program)
    group = ("1", "pair")
    end = ("gloo:barrier", ("0", "default_pg"), 0, 1, False, [])
    assert zero == [end]
    assert one == [
        ("gloo:all_reduce", group, 0, 1, False, [[2]]),
        ("gloo:send 0->1", group, 1, 2, True, [[4]]),
        ("gloo:recv 0<-1", group, 2, 3, True, []),
        end,
    ]
    assert two[1:3] == [
        ("gloo:recv 1<-?", group, 1, 2, True, []),
        ("gloo:send 1->0", group, 2, 3, True, [[1]]),
    ]


@pytest.mark.parametrize("backend", ["nccl", "gloo"])
def test_blocks_of_several_sizes(open_world: OpenWorld, monkeypatch: pytest.MonkeyPatch, backend: str) -> None:
    """NCCL has a collective for each block, and one for all of them together, with one number."""
    open_world("default")
    monkeypatch.setenv(SIZE, "100")

    def program(rank: int) -> None:
        dist.init_process_group(backend)
        blocks = [torch.ones(r + 1, 2) for r in range(3)]
        dist.all_gather(blocks, blocks[rank].clone())
        dist.reduce_scatter(torch.empty(rank + 1, 2), blocks)
        dist.barrier()
        whole = dumped()
        check_schema(whole)
        *found, last = whole["entries"]
        assert (last["collective_seq_id"], last["state"]) == (3, "completed")
        shown = [(e["profiling_name"], e["input_sizes"], e["output_sizes"], e["collective_seq_id"]) for e in found]
        each = [[[r + 1, 2]] for r in range(3)]
        several = [[r + 1, 2] for r in range(3)]
        if backend == "gloo":
            own = each[rank]
            assert shown == [("gloo:all_gather", own, several, 1), ("gloo:reduce_scatter", several, own, 2)]
            return
        assert shown == [
            *[("nccl:_broadcast_oop", size, size, 1) for size in each], ("nccl:ALLGATHER_coalesced", [], [], 1),
            *[("nccl:_reduce_oop", size, size, 2) for size in each], ("nccl:REDUCE_SCATTER_coalesced", [], [], 2),
        ]  # fmt: skip
        assert [e["op_id"] for e in whole["entries"]] == [1, 2, 3, 3, 4, 5, 6, 6, 7]
        assert [e["state"] for e in found] == [*["scheduled"] * 3, "completed"] * 2

    on_ranks(3, program)


def test_collectives_of_objects(open_world: OpenWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are those that their bytes go through."""
    open_world("sips2")
    monkeypatch.setenv(SIZE, "100")

    def program(rank: int) -> None:
        dist.init_process_group("nccl")
        dist.all_gather_object([None, None], {"rank": rank})
        dist.broadcast_object_list([rank], 1)
        whole = dumped()
        check_schema(whole)
        names = [e["profiling_name"] for e in whole["entries"]]
        assert set(names) == {"nccl:all_gather", "nccl:broadcast"}
        assert names.index("nccl:broadcast") > 0 and names[0] == "nccl:all_gather"
        assert [e["collective_seq_id"] for e in whole["entries"]] == list(range(1, len(names) + 1))

    on_ranks(2, program)


@pytest.mark.parametrize("backend", ["nccl", "gloo"])
def test_messages_in_one_go(open_world: OpenWorld, monkeypatch: pytest.MonkeyPatch, backend: str) -> None:
    """With NCCL they share a number, and an entry follows that ends with them; with gloo each is by itself."""
    open_world("sips2")
    monkeypatch.setenv(SIZE, "100")

    def program(rank: int) -> None:
        dist.init_process_group(backend)
        t, peer = torch.ones(2), 1 - rank
        for _ in range(2):
            sides = [dist.P2POp(dist.isend, t, peer), dist.P2POp(dist.irecv, t.clone(), peer)]
            for work in dist.batch_isend_irecv(sides):
                work.wait()
        torch.ahbm.synchronize()
        whole = dumped()
        check_schema(whole)
        out, back = f"{backend}:send {rank}->{peer}", f"{backend}:recv {rank}<-{peer}"
        together = f"{backend}:coalesced"
        each = [(out, 1, 1), (back, 2, 2), (out, 3, 3), (back, 4, 4)]
        shared = [(out, 1, 1), (back, 1, 2), (together, 1, 2), (out, 2, 3), (back, 2, 4), (together, 2, 4)]
        found = [(e["profiling_name"], e["p2p_seq_id"], e["op_id"]) for e in whole["entries"]]
        assert found == (each if backend == "gloo" else shared)
        parts = ["scheduled", "scheduled", "completed"] * 2
        assert [e["state"] for e in whole["entries"]] == (["completed"] * 4 if backend == "gloo" else parts)
        sizes = {str((e["input_sizes"], e["output_sizes"])) for e in whole["entries"]}
        one = "([[2]], [[2]])"
        assert sizes == ({"([[2]], [])", "([], [[2]])"} if backend == "gloo" else {one, "([], [])"})
        assert all(e["is_p2p"] and e["collective_seq_id"] == 0 for e in whole["entries"])

    on_ranks(2, program)


def test_the_last_are_kept(open_world: OpenWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    open_world("sips2")
    monkeypatch.setenv(SIZE, "3")

    def program(rank: int) -> None:
        dist.init_process_group()
        for i in range(8):
            dist.all_reduce(torch.ones(i))
        found = entries()
        assert [e["record_id"] for e in found] == [5, 6, 7]
        assert [e["input_sizes"] for e in found] == [[[5]], [[6]], [[7]]]
        c10d._reset_fr_recording_nccl()
        assert entries() == []
        dist.barrier()
        assert [e["record_id"] for e in entries()] == [0]

    on_ranks(2, program)


def test_states(open_world: OpenWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """Started is what the device has reached, as a kernel that waits for other ranks has; what follows is scheduled."""
    open_world("sips2")
    monkeypatch.setenv(SIZE, "10")

    def program(rank: int) -> None:
        dist.init_process_group()
        dist.barrier()
        if rank == 0:
            dist.all_reduce(torch.ones(2))
            dist.all_reduce(torch.ones(2))
            reach(MILLISECOND)
            whole = dumped()
            check_schema(whole)
            assert [e["state"] for e in whole["entries"]] == ["completed", "started", "scheduled"]
            active = pickle.loads(c10d._dump_nccl_trace(onlyActive=True))["entries"]
            assert [e["record_id"] for e in active] == [1, 2]
            assert whole["pg_status"]["0"] == {
                "last_enqueued_collective": 3, "last_started_collective": 2, "last_completed_collective": 1,
            }  # fmt: skip
        else:
            reach(2 * MILLISECOND)
            dist.all_reduce(torch.ones(2))
            dist.all_reduce(torch.ones(2))
        dist.barrier()
        assert [e["state"] for e in entries()] == ["completed"] * 4

    on_ranks(2, program)


def test_states_without_timing(open_world: OpenWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """PyTorch knows when a device begins only where it is asked to find out."""
    open_world("sips2")
    monkeypatch.setenv(SIZE, "10")
    monkeypatch.setenv("TORCH_NCCL_ENABLE_TIMING", "0")

    def program(rank: int) -> None:
        dist.init_process_group()
        dist.barrier()
        if rank == 0:
            dist.all_reduce(torch.ones(2))
            reach(MILLISECOND)
            whole = dumped()
            assert [e["state"] for e in whole["entries"]] == ["completed", "scheduled"]
            assert [e["time_discovered_started_ns"] for e in whole["entries"]] == [None, None]
            assert all("duration_ms" not in e for e in whole["entries"])
            assert whole["pg_status"]["0"] == {
                "last_enqueued_collective": 2, "last_started_collective": -1, "last_completed_collective": 1,
            }  # fmt: skip
        else:
            reach(2 * MILLISECOND)
            dist.all_reduce(torch.ones(2))

    on_ranks(2, program)


def test_parts_and_json(open_world: OpenWorld, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    open_world("sips2")
    monkeypatch.setenv(SIZE, "10")
    monkeypatch.setenv(FILE, str(tmp_path / "rank_"))

    def program(rank: int) -> None:
        dist.init_process_group()
        dist.barrier()
        dist.all_reduce(torch.ones(2, 3, dtype=torch.bfloat16))
        assert "entries" not in dumped(includeCollectives=False)
        assert all("frames" not in e for e in dumped(includeStackTraces=False)["entries"])
        whole = dumped(includeStackTraces=False)
        text = json.loads(c10d._dump_nccl_trace_json())
        for entry in whole["entries"]:
            entry["process_group"] = list(entry["process_group"])
            for name in ("time_discovered_started_ns", "time_discovered_completed_ns"):
                entry[name] = entry[name] or 0
        assert text == whole
        assert text["entries"][1]["input_dtypes"] == ["BFloat16"]
        assert json.loads(c10d._dump_fr_trace_json(onlyActive=True))["entries"] == text["entries"][1:]
        c10d._dump_fr_trace_file(rank, includeStackTraces=False, backend="nccl")
        (written,) = pickle.loads((tmp_path / f"rank_{rank}").read_bytes())["entries"][1:]
        assert written["input_dtypes"] == ["BFloat16"] and "frames" not in written

    on_ranks(2, program)


def test_recording_takes_no_simulated_time(open_world: OpenWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    def program(rank: int) -> int:
        dist.init_process_group()
        all_collectives(rank, 4)
        return host_time()

    open_world("default")
    without = on_ranks(4, program)
    monkeypatch.setenv(SIZE, "10")
    open_world("default")
    assert on_ranks(4, program) == without


def test_a_size_that_is_no_number(open_world: OpenWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    open_world("sips2")
    monkeypatch.setenv(SIZE, "many")

    def program(rank: int) -> None:
        with pytest.raises(RuntimeError, match=f"Invalid value for environment variable: {SIZE}: 'many' is no number"):
            dist.init_process_group()

    on_ranks(1, program)


def test_attached_by_hand(open_world: OpenWorld) -> None:
    open_world("sips2")

    def program(rank: int) -> None:
        dist.init_process_group()
        dist.barrier()
        assert dist.group.WORLD is not None
        hook = c10d.FlightRecorderHook.attach(dist.group.WORLD)
        dist.all_reduce(torch.ones(2))
        hook.remove()
        assert dist.group.WORLD.hooks is None
        dist.barrier()
        assert [(e["profiling_name"], e["collective_seq_id"]) for e in entries()] == [("nccl:all_reduce", 2)]

    on_ranks(2, program)
