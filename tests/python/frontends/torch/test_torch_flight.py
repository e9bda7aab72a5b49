"""The flight recorder of the installed PyTorch: what a rank has issued, and what fr_trace finds in the files."""

import json
import pickle
import threading

import pytest
import torch
import torch.distributed as dist
from torch._C import _distributed_c10d as c10d

import torchemu
from torchemu.errors import DeadlockError

real = torchemu.distributed(world_size=2, torch="real")


def recorded(monkeypatch, backend):
    """Joins a group whose operations are recorded."""
    monkeypatch.setenv("TORCH_FR_BUFFER_SIZE", "100")
    dist.init_process_group(backend)
    return dist.get_rank()


def entries():
    return pickle.loads(c10d._dump_nccl_trace())["entries"]


@real
def test_collectives_of_devices(monkeypatch):
    recorded(monkeypatch, "nccl")
    t, whole = torch.ones(3, device="cuda"), torch.ones(6, device="cuda", dtype=torch.bfloat16)
    dist.all_reduce(t)
    dist.all_gather_into_tensor(whole, whole[:3].clone())
    dist.barrier()
    torch.cuda.synchronize()
    found = [(e["profiling_name"], e["input_sizes"], e["output_sizes"], e["output_dtypes"]) for e in entries()]
    assert found == [
        ("nccl:all_reduce", [[3]], [[3]], ["Float"]),
        ("nccl:_all_gather_base", [[3]], [[6]], ["BFloat16"]),
        ("nccl:all_reduce_barrier", [[1]], [[1]], ["Float"]),
    ]
    assert [e["collective_seq_id"] for e in entries()] == [1, 2, 3]
    assert {e["state"] for e in entries()} == {"completed"}
    assert entries()[0]["process_group"] == ("0", "default_pg")
    assert any(frame["name"] == "test_collectives_of_devices" for frame in entries()[0]["frames"])
    assert len(json.loads(c10d._dump_nccl_trace_json())["entries"]) == 3
    assert {e["thread_id"] for e in entries()} == {str(threading.current_thread().ident)}
    version = pickle.loads(c10d._dump_nccl_trace())["comm_lib_version"]
    assert version == ".".join(map(str, torch.cuda.nccl.version()))


@real
def test_collectives_in_one_go_are_one_entry(monkeypatch):
    recorded(monkeypatch, "nccl")
    shares, wholes = torch.zeros(2, 2, device="cuda"), torch.ones(2, 2, 2, device="cuda")
    with dist.distributed_c10d._coalescing_manager():
        for share, whole in zip(shares, wholes, strict=True):
            dist.reduce_scatter_tensor(share, whole)
    torch.cuda.synchronize()
    found = [(e["profiling_name"], e["collective_seq_id"], e["input_sizes"], e["output_sizes"]) for e in entries()]
    assert found == [("nccl:reduce_scatter_tensor_coalesced", 1, [[2, 2], [2, 2]], [[2], [2]])]
    assert (shares == 2).all()


@real
def test_messages_in_one_go(monkeypatch):
    rank = recorded(monkeypatch, "nccl")
    mine, other = torch.ones(2, device="cuda"), torch.empty(2, device="cuda")
    ops = [dist.P2POp(dist.isend, mine, 1 - rank), dist.P2POp(dist.irecv, other, 1 - rank)]
    for work in dist.batch_isend_irecv(ops):
        work.wait()
    assert [(e["profiling_name"], e["is_p2p"], e["p2p_seq_id"]) for e in entries()] == [
        (f"nccl:send {rank}->{1 - rank}", True, 1),
        (f"nccl:recv {rank}<-{1 - rank}", True, 1),
        ("nccl:coalesced", True, 1),
    ]


@real
def test_only_the_entry_of_all_messages_in_one_go_has_times(monkeypatch):
    monkeypatch.setenv("TORCH_NCCL_ENABLE_TIMING", "0")
    rank = recorded(monkeypatch, "nccl")
    dist.group.WORLD._enable_collectives_timing()
    tensor = torch.ones(2, device="cuda")
    ops = [dist.P2POp(dist.isend if rank else dist.irecv, tensor, 1 - rank)]
    dist.batch_isend_irecv(ops).pop().wait()
    torch.cuda.synchronize()
    message, whole = entries()
    assert (message["state"], whole["state"]) == ("scheduled", "completed")
    assert message["input_sizes"] == message["output_sizes"] == [[2]]
    assert "duration_ms" not in message and whole["duration_ms"] > 0


@real
def test_numbers_begin_anew_after_a_reset(monkeypatch):
    recorded(monkeypatch, "nccl")
    tensor = torch.ones(2, device="cuda")
    for _ in range(2):
        dist.all_reduce(tensor)
    c10d._reset_fr_recording_nccl()
    dist.all_reduce(tensor)
    assert [e["record_id"] for e in entries()] == [0]


@real
def test_groups_have_names_and_counts_of_their_own(monkeypatch):
    rank = recorded(monkeypatch, "gloo")
    pair = dist.new_group([0, 1], group_desc="pair")
    dist.all_reduce(torch.ones(1))
    dist.broadcast(torch.ones(2, dtype=torch.int64), 0, group=pair)
    last = pickle.loads(c10d._dump_fr_trace(includeStackTraces=False))
    shown = [(e["profiling_name"], e["process_group"][1], e["collective_seq_id"]) for e in last["entries"]]
    assert shown == [("gloo:all_reduce", "default_pg", 1), ("gloo:broadcast", "pair", 1)]
    assert "frames" not in last["entries"][0] and rank in (0, 1)
    assert [config["ranks"] for config in last["pg_config"].values()] == ["[0, 1]", "[0, 1]"]


@real
def test_nothing_is_recorded_unasked():
    dist.init_process_group("gloo")
    dist.all_reduce(torch.ones(1))
    assert entries() == []


def hang(rank):
    """Rank 1 calls nothing more."""
    dist.init_process_group("nccl")
    if rank == 0:
        dist.all_reduce(torch.ones(4, device="cuda"))
        torch.cuda.synchronize()


def test_what_pytorch_finds_in_the_files_of_a_hang(monkeypatch, tmp_path, caplog):
    fr_trace = pytest.importorskip("torch.distributed.flight_recorder.fr_trace")
    monkeypatch.setenv("TORCH_FR_DUMP_TEMP_FILE", str(tmp_path / "rank_"))
    with pytest.raises(Exception) as raised:
        torchemu.pytorch.spawn(hang, (), 2)
    assert isinstance(raised.value, DeadlockError) or "DeadlockError" in str(raised.value)
    fr_trace.main([str(tmp_path), "--prefix", "rank_"])
    assert "Not all ranks joining collective" in caplog.text
