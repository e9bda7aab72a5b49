"""Tests of what a run keeps does not grow with what its program has ended."""

from __future__ import annotations

from pathlib import Path

from launch import launch, lines, written


def test_groups_that_all_have_left_are_forgotten(tmp_path: Path) -> None:
    text = """
    import torch, torch.distributed as dist
    from torchemu import runtime
    dist.init_process_group("gloo")
    t = torch.ones(2)
    for i in range(200):
        group = dist.new_group([0, 1])
        dist.all_reduce(t, dist.ReduceOp.MAX, group=group)
        assert t.tolist() == [1, 1]
        dist.destroy_process_group(group)
    other = dist.new_group()
    dist.all_reduce(t, group=other)
    dist.barrier()
    kept = [value for key, value in runtime.current().tasks.shared.items() if hasattr(value, "members")]
    print(t.tolist(), len(kept))
    """
    assert lines(launch("--nproc-per-node", "2", written(tmp_path, text))) == ["[2.0, 2.0] 2"] * 2


def test_a_host_is_not_ahead_of_its_device_for_ever(tmp_path: Path) -> None:
    text = """
    import torch, torch.distributed as dist
    from torchemu.bridge.binding import go
    dist.init_process_group("nccl")
    t = torch.ones(1, device="cuda")
    first = dist.all_reduce(t, dist.ReduceOp.MAX, async_op=True)
    first.wait()
    for i in range(9000): dist.all_reduce(t, dist.ReduceOp.MAX)
    print(go.IsDone(first._event.number), t.tolist())
    """
    assert lines(launch("--nproc-per-node", "2", written(tmp_path, text))) == ["True [1.0]"] * 2


def test_callbacks_of_futures_share_streams(tmp_path: Path) -> None:
    text = """
    import torch, torch.distributed as dist
    dist.init_process_group("gloo")
    t, numbers = torch.ones(1), set()
    def called(future):
        numbers.add(torch.cuda.current_stream().stream_id)
        return future.value()[0] + 1
    for i in range(100):
        later = dist.all_reduce(t, dist.ReduceOp.MAX, async_op=True).get_future().then(called)
        assert later.wait().tolist() == [2]
    print(len(numbers))
    """
    assert lines(launch("--nproc-per-node", "2", written(tmp_path, text))) == ["32"] * 2


def test_a_short_program_runs_ahead(tmp_path: Path) -> None:
    text = """
    import torch, torch.distributed as dist
    from torchemu.bridge.binding import go
    dist.init_process_group("nccl")
    t = torch.ones(1, device="cuda")
    first = dist.all_reduce(t, dist.ReduceOp.MAX, async_op=True)
    for i in range(1500): dist.all_reduce(t, dist.ReduceOp.MAX)
    print(go.IsDone(first._event.number))
    """
    assert lines(launch("--nproc-per-node", "2", written(tmp_path, text))) == ["False"] * 2
