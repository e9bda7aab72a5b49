"""Hooks of all modules and optimizers of a process are each rank's own, as in processes."""

import pytest
import torch
import torch.distributed as dist
from torch.nn.modules import module
from torch.optim import optimizer
from torch.utils.flop_counter import FlopCounterMode

import torchemu

real = torchemu.distributed(world_size=4, torch="real")


def test_hooks_are_called_for_the_modules_of_the_rank_that_has_set_them():
    called = {}

    @real
    def program():
        dist.init_process_group("gloo")
        rank = dist.get_rank()
        mine = called[rank] = []
        net = torch.nn.Linear(2, 2)
        if rank % 2:
            module.register_module_forward_pre_hook(lambda m, args: mine.append((m, "before")))
            handle = module.register_module_forward_hook(lambda m, args, out: mine.append((m, "after")))
        dist.barrier()  # the others go on, too
        net(torch.ones(2))
        dist.barrier()
        if rank % 2:
            handle.remove()
        dist.barrier()
        net(torch.ones(2))
        assert all(m is net for m, _ in mine)

    program()
    kinds = {rank: [kind for _, kind in mine] for rank, mine in called.items()}
    assert kinds == {0: [], 1: ["before", "after", "before"], 2: [], 3: ["before", "after", "before"]}
    assert not module._has_any_global_hook()


@pytest.mark.filterwarnings("ignore:Using a non-full backward hook:FutureWarning")
def test_ranks_may_have_backward_hooks_of_either_kind():
    kinds = {}

    @real
    def program():
        dist.init_process_group("gloo")
        rank = dist.get_rank()
        full = module.register_module_full_backward_hook
        old = module.register_module_backward_hook
        (full if rank % 2 else old)(lambda m, inputs, outputs: kinds.update({rank: type(m).__name__}))
        dist.barrier()
        net = torch.nn.Tanh()
        net(torch.ones(2, requires_grad=True)).sum().backward()

    program()
    assert kinds == dict.fromkeys(range(4), "Tanh")


def test_hooks_from_outside_are_every_ranks():
    seen = []
    handle = module.register_module_forward_hook(lambda m, args, out: seen.append(type(m).__name__))
    try:

        @real
        def program():
            dist.init_process_group("gloo")
            torch.nn.Tanh()(torch.ones(2))

        program()
    finally:
        handle.remove()
    assert seen == ["Tanh"] * 4


def test_hooks_of_optimizers_are_a_ranks_own():
    steps = []

    @real
    def program():
        dist.init_process_group("gloo")
        rank = dist.get_rank()
        if rank == 2:
            optimizer.register_optimizer_step_post_hook(lambda *args: steps.append(rank))
        dist.barrier()
        weight = torch.nn.Parameter(torch.ones(2))
        weight.grad = torch.ones(2)
        torch.optim.SGD([weight], lr=0.1).step()

    program()
    assert steps == [2]


def test_ranks_count_operations_of_modules_at_the_same_time():
    """FlopCounterMode follows modules by hooks of all modules."""
    counts = {}

    @real
    def program():
        dist.init_process_group("gloo")
        rank = dist.get_rank()
        net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Linear(8, 2))
        with FlopCounterMode(display=False) as counter:
            out = net[0](torch.ones(rank + 1, 4))
            dist.barrier()
            net[1](out)
        counts[rank] = {name: sum(flops.values()) for name, flops in counter.get_flop_counts().items()}

    program()
    for rank in range(4):
        rows = rank + 1
        assert counts[rank]["Global"] == 2 * rows * (4 * 8 + 8 * 2)
