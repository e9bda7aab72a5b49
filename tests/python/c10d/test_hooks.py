"""Tests of what is called before and after operations of a process group."""

from __future__ import annotations

from typing import Any

import pytest
from conftest import OpenWorld
from ranks import on_ranks

import torchemu as torch
import torchemu.distributed as dist
from torchemu._C._distributed_c10d import HookOpName, NanCheckHook, PostHookArgs, PreHookArgs
from torchemu.errors import MismatchError

NAN = float("nan")


def whole() -> dist.ProcessGroup:
    """The default group."""
    group = dist.group.WORLD
    assert group is not None
    return group


def everything(rank: int, n: int) -> None:
    """One of each, on n ranks; the root is the last one."""
    t, many = torch.ones(2), torch.ones(2 * n)
    blocks = [torch.ones(2) for _ in range(n)]
    at_root = blocks if rank == n - 1 else None
    dist.all_reduce(t)
    dist.reduce(t, n - 1)
    dist.broadcast(t, n - 1)
    dist.all_gather(blocks, t)
    dist.all_gather_into_tensor(many, t, async_op=True).wait()  # type: ignore[union-attr]
    dist.reduce_scatter(t, blocks)
    dist.reduce_scatter_tensor(t, many)
    dist.all_to_all(blocks, [b.clone() for b in blocks])
    dist.all_to_all_single(many, many.clone())
    dist.gather(t, at_root, n - 1)
    dist.gather_single(t, many, n - 1)
    dist.scatter(t, at_root, n - 1)
    dist.barrier()
    if n > 1 and rank == 0:
        dist.send(t, 1)
    if n > 1 and rank == 1:
        dist.recv(t, 0)


def expected(rank: int, n: int) -> list[tuple[str, int, list[int], list[int], bool]]:
    """For each: the kind, the root, the sizes of inputs and outputs, whether asynchronous."""
    one, many, root = [2], [2 * n], rank == n - 1
    all_ = [2] * n
    calls = [
        ("ALLREDUCE", -1, one, [], False),
        ("REDUCE", n - 1, one, [], False),
        ("BROADCAST", n - 1, one, [], False),
        ("ALLGATHER", -1, one, all_, False),
        ("ALLGATHER_BASE", -1, one, many, True),
        ("REDUCE_SCATTER", -1, all_, one, False),
        ("REDUCE_SCATTER_BASE", -1, many, one, False),
        ("ALLTOALL", -1, all_, all_, False),
        ("ALLTOALL_BASE", -1, many, many, False),
        ("GATHER", n - 1, one, all_ if root else [], False),
        ("GATHER", n - 1, one, many if root else [], False),
        ("SCATTER", n - 1, all_ if root else [], one, False),
        ("BARRIER", -1, [], [], True),
    ]
    if n > 1 and rank == 0:
        calls.append(("SEND", -1, one, [], True))
    if n > 1 and rank == 1:
        calls.append(("RECV", -1, [], one, True))
    return calls


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_hooks_see_every_operation(open_world: OpenWorld, n: int) -> None:
    open_world("default")

    def program(rank: int) -> None:
        dist.init_process_group()
        seen: list[Any] = []
        done: list[Any] = []

        def before(args: PreHookArgs) -> None:
            assert len(done) == len(seen) == args.op_id
            ins, outs = ([t.numel() for t in tensors] for tensors in (args.input_tensors, args.output_tensors))
            seen.append((args.name.name, args.root, ins, outs, args.async_op))

        def after(args: PostHookArgs) -> None:
            assert args.work is not None and args.op_id == len(done)
            done.append((args.name, args.work, args.async_op))

        whole().register_pre_hook(1, before)
        whole().register_post_hook(1, after)
        everything(rank, n)
        assert seen == expected(rank, n)
        assert [(name.name, async_op) for name, _, async_op in done] == [(s[0], s[4]) for s in seen]
        for _, work, _ in done:
            work.wait()
            assert work.is_completed()
        whole().unregister_pre_hook(1)
        whole().unregister_pre_hook(1)
        whole().unregister_post_hook(1)
        assert whole().hooks is None
        everything(rank, n)
        assert len(seen) == len(done) == len(expected(rank, n))

    on_ranks(n, program)


@pytest.mark.filterwarnings("ignore::torchemu.runtime.outstanding.UnwaitedWarning")  # on purpose
def test_hooks_change_neither_results_nor_times(open_world: OpenWorld) -> None:
    def program(rank: int, hooked: bool) -> tuple[list[float], int]:
        dist.init_process_group()
        if hooked:
            whole().register_pre_hook(0, lambda _: None)
        t = torch.full((3,), rank + 1.0)
        dist.all_reduce(t)
        work = dist.all_reduce(t, async_op=True)
        other = t * 2
        assert work is not None
        work.wait()
        total = (t + other).tolist()
        from torchemu.runtime.waiting import host_time

        return total, host_time()

    answers = []
    for hooked in (False, True):
        open_world("default")
        answers.append(on_ranks(4, program, hooked))
    assert answers[0] == answers[1]


def test_several_hooks_are_called_in_order(open_world: OpenWorld) -> None:
    open_world("sips2")

    def program(rank: int) -> list[str]:
        dist.init_process_group()
        called: list[str] = []
        for name in "abc":
            whole().register_pre_hook(ord(name), lambda _, name=name: called.append(name))
        whole().unregister_pre_hook(ord("b"))
        dist.barrier()
        return called

    assert on_ranks(2, program) == [["a", "c"]] * 2


def test_what_a_hook_raises_is_the_callers(open_world: OpenWorld) -> None:
    open_world("sips2")

    def program(rank: int) -> None:
        dist.init_process_group()

        def refuse(args: PreHookArgs) -> None:
            raise KeyError(args.name)

        whole().register_pre_hook(0, refuse)
        with pytest.raises(KeyError, match="ALLREDUCE"):
            dist.all_reduce(torch.ones(1))
        whole().unregister_pre_hook(0)
        dist.all_reduce(torch.ones(1))  # nothing was issued before: the ranks are still in step

    on_ranks(2, program)


def test_after_is_not_called_for_what_fails(open_world: OpenWorld) -> None:
    open_world("sips2")

    def program(rank: int) -> None:
        dist.init_process_group()
        done: list[HookOpName] = []
        whole().register_post_hook(0, lambda args: done.append(args.name))
        with pytest.raises(MismatchError):
            t = torch.ones(1 + rank)
            dist.all_reduce(t)
            t.tolist()
        assert done == ([HookOpName.ALLREDUCE] if rank == 0 else [])

    on_ranks(2, program)


class TestNan:
    @pytest.fixture(autouse=True)
    def _world(self, open_world: OpenWorld, monkeypatch: pytest.MonkeyPatch) -> None:
        open_world("sips2")
        for name in ("TORCH_NCCL_NAN_CHECK", "TORCH_DIST_NAN_CHECK"):
            monkeypatch.delenv(name, raising=False)

    def test_what_is_given_is_checked(self) -> None:
        def program(rank: int) -> None:
            dist.init_process_group()
            bad, good = torch.tensor([1.0, NAN]), torch.ones(2)
            dist.all_reduce(bad.clone())
            hook = NanCheckHook.attach(whole())
            for call in (
                lambda: dist.all_reduce(bad),
                lambda: dist.all_gather([good, good], bad),
                lambda: dist.reduce_scatter_tensor(torch.ones(1), bad),
                lambda: dist.isend(bad, 1 - rank),
            ):
                with pytest.raises(RuntimeError, match=r"^NaN found in input tensor\.$"):
                    call()
            for fine in (good, torch.ones(2, dtype=torch.int64), torch.ones(0), torch.tensor([float("inf")])):
                dist.all_reduce(fine)
            dist.all_gather_into_tensor(torch.full((4,), NAN), good)
            dist.broadcast(good if rank == 0 else torch.full((2,), NAN), 0)
            dist.barrier()
            hook.remove()
            dist.all_reduce(bad)

        on_ranks(2, program)

    @pytest.mark.parametrize("name", ["TORCH_NCCL_NAN_CHECK", "TORCH_DIST_NAN_CHECK"])
    @pytest.mark.parametrize(("text", "checked"), [("1", True), ("true", True), ("0", False), ("", False)])
    def test_the_environment_asks_for_it(
        self, monkeypatch: pytest.MonkeyPatch, name: str, text: str, checked: bool
    ) -> None:
        monkeypatch.setenv(name, text)

        def program(rank: int) -> bool:
            dist.init_process_group()
            try:
                dist.all_reduce(torch.tensor([NAN]))
            except RuntimeError:
                return True
            return False

        assert on_ranks(2, program) == [checked] * 2
