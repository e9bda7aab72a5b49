"""Join with hooks of its own, means over ranks that still have batches, and optimizers divided among ranks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from conftest import OpenWorld
from ranks import on_ranks

import torchemu as torch
import torchemu.distributed as dist
from torchemu import nn
from torchemu.distributed.algorithms import Join, Joinable, JoinHook
from torchemu.distributed.optim import ZeroRedundancyOptimizer
from torchemu.nn.parallel import DistributedDataParallel

RNG = np.random.default_rng


@pytest.fixture(autouse=True)
def _world(open_world: OpenWorld) -> None:
    open_world()


class Counter(Joinable):
    """Counts the batches of all ranks: each one is an all_reduce."""

    def __init__(self) -> None:
        self.seen: list[float] = []
        self.said: list[bool] = []

    def count(self, has_batch: bool = True) -> None:
        if has_batch:
            Join.notify_join_context(self)
        number = torch.tensor(float(has_batch))
        dist.all_reduce(number)
        self.seen.append(number.item())

    def join_hook(self, **kwargs: Any) -> JoinHook:
        counter = self

        class Hook(JoinHook):
            def main_hook(self) -> None:
                counter.count(has_batch=False)

            def post_hook(self, is_last_joiner: bool) -> None:
                counter.said.append(is_last_joiner)

        return Hook()

    @property
    def join_device(self) -> Any:
        return torch.tensor(0.0).device

    @property
    def join_process_group(self) -> Any:
        return dist.group.WORLD


@pytest.mark.parametrize("batches", [(2, 5, 3), (0, 0, 0), (4, 4, 4), (0, 1, 0), (1, 0, 7)])
def test_every_rank_takes_part_until_the_last_batch(batches: tuple[int, ...]) -> None:
    def program(rank: int) -> Any:
        dist.init_process_group()
        counter = Counter()
        with Join([counter]):
            for _ in range(batches[rank]):
                counter.count()
        return counter.seen, counter.said

    longest = max(batches)
    seen = [float(sum(n > i for n in batches)) for i in range(longest)]
    assert on_ranks(3, program) == [(seen, [n == longest]) for n in batches]


def test_all_ranks_fail_when_one_has_no_batch_left() -> None:
    def program(rank: int) -> str:
        dist.init_process_group()
        counter = Counter()
        try:
            with Join([counter], throw_on_early_termination=True):
                for _ in range(3 if rank else 1):
                    counter.count()
        except RuntimeError as error:
            return str(error)
        return ""

    others = "Detected at least one rank that exhausted inputs. Throwing across all ranks."
    assert on_ranks(3, program) == ["Rank 0 exhausted all inputs.", others, others]


def test_what_join_does_not_take() -> None:
    with pytest.raises(ValueError, match="at least one joinable"):
        Join([])


@pytest.mark.parametrize("by_all", [True, False])
@pytest.mark.parametrize("as_views", [True, False])
def test_gradients_of_ranks_that_still_have_batches(by_all: bool, as_views: bool) -> None:
    """The loss is linear, so gradients are the data: their mean is that of all ranks, or of those with a batch."""
    batches, data = (1, 3, 2), RNG(1).standard_normal((3, 3, 4)).astype(np.float32)

    def program(rank: int) -> Any:
        dist.init_process_group()
        model = DistributedDataParallel(nn.Linear(4, 1, bias=False), gradient_as_bucket_view=as_views)
        grads = []
        with model.join(divide_by_initial_world_size=by_all):
            for i in range(batches[rank]):
                model.zero_grad()
                model(torch.from_numpy(data[rank, i]).to("ahbm")).sum().backward()
                grads.append(model.module.weight.grad.numpy().copy())
        own = None if rank else model.module.weight.grad.numpy()  # as the rank's last pass has left it
        return grads, own

    results = on_ranks(3, program)
    for i in range(3):
        having = [rank for rank in range(3) if batches[rank] > i]
        wanted = sum(data[rank, i] for rank in having) / (3 if by_all else len(having))
        for rank in having:
            np.testing.assert_allclose(results[rank][0][i][0], wanted, rtol=1e-6)
    np.testing.assert_array_equal(results[0][1], results[0][0][0])


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_a_divided_optimizer_does_what_the_whole_one_does(ranks: int) -> None:
    """Bit for bit, with more ranks than parameters, too; and what it saves is what the whole one saves."""
    sizes = [(3, 4), (7,), (2, 2)]
    grads = [[RNG([i, j]).standard_normal(size).astype(np.float32) for j, size in enumerate(sizes)] for i in range(4)]

    def program(rank: int) -> Any:
        dist.init_process_group()
        answers = []
        for divided in (False, True):
            params = [nn.Parameter(torch.full(size, 0.5)) for size in sizes]
            groups = [{"params": params[:2], "weight_decay": 0.1}, {"params": params[2:], "lr": 0.3}]
            optimizer: Any = (
                ZeroRedundancyOptimizer(groups, torch.optim.Adam, lr=0.2)
                if divided
                else torch.optim.Adam(groups, lr=0.2)
            )
            for each in grads:
                for p, grad in zip(params, each, strict=True):
                    p.grad = torch.from_numpy(grad).to(p.device)
                optimizer.step()
            if divided:
                optimizer.consolidate_state_dict(to=ranks - 1)
            state = None
            if rank == ranks - 1 or not divided:
                state = {
                    number: {name: value.tolist() for name, value in kept.items()}
                    for number, kept in optimizer.state_dict()["state"].items()
                }
            answers.append(([p.tolist() for p in params], state))
        return answers

    for rank, (whole, divided) in enumerate(on_ranks(ranks, program)):
        assert divided[0] == whole[0]
        if rank == ranks - 1:
            assert divided[1] == whole[1]


def test_the_largest_parameters_are_given_out_first() -> None:
    def program(rank: int) -> list[int]:
        dist.init_process_group()
        params = [nn.Parameter(torch.zeros(n)) for n in (2, 9, 4, 4, 1)]
        optimizer = ZeroRedundancyOptimizer(params, torch.optim.SGD, lr=0.1)
        return [p.numel() for group in optimizer.optim.param_groups for p in group["params"]]

    assert on_ranks(2, program) == [[9, 1], [4, 4, 2]]


def test_what_a_divided_optimizer_refuses() -> None:
    def program(rank: int) -> list[str]:
        dist.init_process_group()
        params = [nn.Parameter(torch.zeros(2))]
        said = []
        calls: list[Any] = [
            lambda: ZeroRedundancyOptimizer(params, torch.optim.SGD, lr=0.1, overlap_with_ddp=True),
            lambda: ZeroRedundancyOptimizer([], torch.optim.SGD, lr=0.1),
            lambda: ZeroRedundancyOptimizer(params, torch.optim.SGD, lr=-1.0),
            lambda: ZeroRedundancyOptimizer(params, torch.optim.SGD, lr=0.1).state_dict(),
        ]
        for call in calls:
            try:
                call()
            except (NotImplementedError, ValueError, RuntimeError) as error:
                said.append(f"{type(error).__name__} {str(error)[:50].strip()}")
        return said

    assert on_ranks(2, program)[1] == [
        "NotImplementedError ZeroRedundancyOptimizer(overlap_with_ddp=True) is",
        "ValueError optimizer got an empty parameter list",
        "ValueError Invalid learning rate: -1.0",
        "RuntimeError Optimizer state has not been consolidated on this",
    ]
