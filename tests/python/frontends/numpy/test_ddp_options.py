"""DistributedDataParallel's rarer arguments, what it tells of itself, and DataParallel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from conftest import OpenWorld
from ranks import on_ranks

import torchemu as torch
import torchemu.distributed as dist
from torchemu import nn
from torchemu.nn.parallel import (
    DataParallel,
    data_parallel,
    gather,
    parallel_apply,
    replicate,
    scatter,
)
from torchemu.nn.parallel import DistributedDataParallel as DDP  # noqa: N817 (its usual name)


@pytest.fixture(autouse=True)
def world(open_world: OpenWorld) -> torch.World:
    return open_world()


def two_layers() -> nn.Sequential:
    return nn.Sequential(nn.Linear(2, 3, bias=False), nn.Linear(3, 1, bias=False))


def expected(weights: tuple[np.ndarray, np.ndarray], scale: float) -> list[np.ndarray]:
    """Gradients of the sum of the output for the inputs (scale, 2·scale), by hand."""
    first, second = weights
    x = np.array([scale, 2 * scale])
    return [np.outer(second[0], x), (first @ x)[None]]


def trained(rank: int, make: Callable[[nn.Sequential], DDP], passes: int = 1) -> tuple[Any, Any]:
    """The gradients that a rank gets, and those of the mean over three ranks."""
    dist.init_process_group("gloo")
    torch.manual_seed(3)
    module = two_layers()
    weights = tuple(p.detach().numpy().astype(np.float64) for p in module.parameters())
    model = make(module)
    for _ in range(passes):
        model.zero_grad()
        model(torch.tensor([[rank + 1.0, 2 * rank + 2.0]])).sum().backward()
    parts = [expected(weights, r + 1.0) for r in range(3)]
    return [p.grad.tolist() for p in module.parameters()], [np.mean(each, axis=0) for each in zip(*parts, strict=True)]


def agree(make: Callable[[nn.Sequential], DDP], passes: int = 1, rtol: float = 1e-6) -> None:
    for found, wanted in on_ranks(3, lambda rank: trained(rank, make, passes)):
        for mine, theirs in zip(found, wanted, strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=rtol)


@pytest.mark.parametrize("passes", [1, 3])
def test_delayed_parameters_are_averaged(passes: int) -> None:
    """The second layer's gradient is there when that of the first comes."""
    agree(
        lambda module: DDP(
            module,
            delay_all_reduce_named_params=[("1.weight", module[1].weight)],
            param_to_hook_all_reduce=module[0].weight,
        ),
        passes,
    )


def test_delayed_parameters_begin_as_those_of_rank_0() -> None:
    def program(rank: int) -> Any:
        dist.init_process_group("gloo")
        module = two_layers()
        with torch.no_grad():
            module[1].weight.fill_(rank + 5)
        DDP(
            module,
            delay_all_reduce_named_params=[("1.weight", module[1].weight)],
            param_to_hook_all_reduce=module[0].weight,
        )
        return module[1].weight.tolist()

    assert on_ranks(2, program) == [[[5.0] * 3]] * 2


def test_delayed_without_the_other_argument() -> None:
    def program(rank: int) -> None:
        dist.init_process_group("gloo")
        module = two_layers()
        with pytest.raises(ValueError, match="need to be set at the same time"):
            DDP(module, param_to_hook_all_reduce=module[0].weight)

    on_ranks(1, program)


@pytest.mark.parametrize("caps", [[1], [0.00001, 0.00002], [1, 2, 3]])
def test_buckets_of_their_own_sizes(caps: list[float]) -> None:
    agree(lambda module: DDP(module, bucket_cap_mb_list=caps), 2)


def test_the_list_of_sizes_decides_on_buckets() -> None:
    """24 and 12 bytes: with 10 each layer has a bucket, with a MiB both have one."""

    def program(rank: int) -> Any:
        dist.init_process_group("gloo")
        small, big = DDP(two_layers(), bucket_cap_mb_list=[10 / 2**20]), DDP(two_layers(), bucket_cap_mb_list=[1])
        return [model._get_ddp_logging_data()["bucket_sizes"] for model in (small, big)]

    assert on_ranks(1, program) == [["12, 24", "36"]]


@pytest.mark.parametrize(("kind", "rtol"), [("ALLREDUCE", 1e-6), ("FP16_COMPRESS", 2e-3)])
def test_builtin_hooks(kind: str, rtol: float) -> None:
    def make(module: nn.Sequential) -> DDP:
        model = DDP(module)
        model._register_builtin_comm_hook(dist.BuiltinCommHookType[kind])
        with pytest.raises(RuntimeError, match="register_builtin_comm_hook or register_comm_hook can only be called"):
            model._register_builtin_comm_hook(dist.BuiltinCommHookType[kind])
        with pytest.raises(TypeError, match="must be a BuiltinCommHookType, not 3"):
            model._register_builtin_comm_hook(3)
        assert model._get_ddp_logging_data()["comm_hook"] == f"BuiltinCommHookType.{kind}"
        return model

    agree(make, 2, rtol)


def test_static_graph_can_be_set_until_the_first_pass() -> None:
    def make(module: nn.Sequential) -> DDP:
        model = DDP(module)
        model._set_static_graph()
        with pytest.warns(UserWarning, match="no need to set it again"):
            model._set_static_graph()
        return model

    agree(make, 2)

    def program(rank: int) -> None:
        dist.init_process_group("gloo")
        model = DDP(two_layers())
        model(torch.ones(1, 2)).sum().backward()
        with pytest.raises(RuntimeError, match="should be called before training loop starts"):
            model._set_static_graph()

    on_ranks(2, program)


def test_ignored_parameters_stay_a_rank_s_own() -> None:
    def program(rank: int) -> Any:
        dist.init_process_group("gloo")
        module = two_layers()
        DDP._set_params_and_buffers_to_ignore_for_model(module, ["0.weight"])
        with torch.no_grad():
            for p in module.parameters():
                p.fill_(rank + 1)
        DDP(module)(torch.ones(1, 2)).sum().backward()
        return [p.detach().numpy().max() for p in module.parameters()], module[0].weight.grad.tolist()

    for rank, (values, grad) in enumerate(on_ranks(2, program)):
        assert values == [rank + 1, 1]
        assert grad == [[1.0, 1.0]] * 3


def test_logging_data() -> None:
    """The entries are those of PyTorch 2.11, for the same module."""

    def program(rank: int) -> Any:
        dist.init_process_group("gloo")
        model = DDP(nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 2)))
        before = model._get_ddp_logging_data()
        for _ in range(2):
            model(torch.ones(2, 4)).sum().backward()
        model(torch.ones(2, 4))
        return before, model._get_ddp_logging_data()

    before, after = on_ranks(2, program)[0]
    constructed = {
        "backend_name": "gloo",
        "broadcast_buffers": 1,
        "bucket_cap_bytes": 26214400,
        "bucket_sizes": "232",
        "dtypes": "float",
        "find_unused_parameters": 0,
        "gradient_as_bucket_view": 0,
        "has_sync_bn": 0,
        "is_multi_device_module": 0,
        "module_name": "Sequential",
        "output_device": -1,
        "rank": 0,
        "total_parameter_size_bytes": 232,
        "world_size": 2,
    }
    assert before | constructed == before
    assert (before["iteration"], "has_rebuilt_buckets" in before) == (0, False)
    passed = {"has_rebuilt_buckets": 1, "rebuilt_bucket_sizes": "232", "rebuilt_per_bucket_param_indices": "3 2 1 0"}
    assert after | constructed | passed | {"num_buckets_reduced": 1, "unused_parameter_size": 0} == after


# -- several devices of one rank


@pytest.mark.parametrize("rows", [1, 2, 5, 8])
def test_data_parallel_is_the_module(rows: int) -> None:
    def program(rank: int) -> Any:
        torch.manual_seed(1)
        module = nn.Linear(3, 2).cuda(0)
        x = torch.arange(3.0 * rows).view(rows, 3).cuda(0)
        plain = module(x)
        plain.square().sum().backward()
        wanted = [plain.tolist(), *(p.grad.tolist() for p in module.parameters())]
        module.zero_grad()
        wide = DataParallel(module, [0, 1, 2])
        y = wide(x)
        y.square().sum().backward()
        functional = data_parallel(module, x, [1 - 1, 1]).tolist()
        found = [y.tolist(), *(p.grad.tolist() for p in module.parameters())]
        return wanted, found, functional, list(wide.state_dict()), y.get_device()

    wanted, found, functional, names, place = on_ranks(1, program)[0]
    for mine, theirs in zip(found, wanted, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-5)
    np.testing.assert_allclose(functional, wanted[0], rtol=1e-5)
    assert (names, place) == (["module.weight", "module.bias"], 0)


def test_data_parallel_of_one_device_and_of_the_host() -> None:
    def program(rank: int) -> Any:
        module = nn.Linear(3, 2, device="cpu")
        host = DataParallel(module)
        one = DataParallel(nn.Linear(3, 2), device_ids=["cuda:0"])
        return (
            host.device_ids,
            host(torch.ones(1, 3)).equal(module(torch.ones(1, 3))),
            one(torch.ones(1, 3)).get_device(),
        )

    assert on_ranks(1, program) == [([], True, 0)]


def test_data_parallel_says_what_is_elsewhere() -> None:
    def program(rank: int) -> None:
        model = DataParallel(nn.Linear(3, 2).cuda(1), device_ids=[0, 1])
        text = r"parameters and buffers on device \w+:0 \(device_ids\[0\]\) but found one of them on device: \w+:1"
        with pytest.raises(RuntimeError, match=text):
            model(torch.ones(1, 3))

    on_ranks(1, program)


def test_scatter_and_gather_of_structures() -> None:
    def program(rank: int) -> Any:
        x = torch.arange(5.0)
        parts = scatter((x, {"half": [x, "same"]}, 3), [0, 1])
        together = gather([each[0] for each in parts], 0)
        pair = gather([{"a": torch.full((), float(i)).cuda(i)} for i in range(2)], -1)
        return [[each[0].tolist(), each[1]["half"][0].tolist(), each[1]["half"][1], each[2]] for each in parts], (
            together.tolist(),
            pair["a"].tolist(),
            [t.tolist() for t in scatter(x, [0, 1, 2])],
        )

    found, (together, pair, threes) = on_ranks(1, program)[0]
    assert found == [[[0.0, 1, 2], [0.0, 1, 2], "same", 3], [[3.0, 4], [3.0, 4], "same", 3]]
    assert (together, pair, threes) == ([0.0, 1, 2, 3, 4], [0.0, 1], [[0.0, 1], [2.0, 3], [4.0]])


def test_what_devices_cannot_do() -> None:
    def program(rank: int) -> None:
        linear, x = nn.Linear(1, 1, device="cpu"), torch.ones(1, 1, device="cpu")
        for error, text, call in (
            (AssertionError, "Gather function not implemented for CPU tensors", lambda: gather([x], 0)),
            (AssertionError, "Broadcast function not implemented for CPU tensors", lambda: replicate(linear, [0])),
            (ValueError, "Expected a non cpu device, but got: cpu", lambda: scatter(x, ["cpu"])),
            (ValueError, "All dicts must have the same number of keys", lambda: gather([{"a": x}, {}], 0)),
            (AssertionError, "2 is not equal to the number of inputs 1", lambda: parallel_apply([linear] * 2, [x])),
            (RuntimeError, "in replica 0, no device was provided", lambda: parallel_apply([linear], [3])),
        ):
            with pytest.raises(error, match=text):
                call()

    on_ranks(1, program)


def test_replicas_are_copies_whose_gradients_add_up() -> None:
    def program(rank: int) -> Any:
        module = nn.Linear(2, 1, bias=False).cuda(0)
        first, second = replicate(module, [0, 1])
        outputs = parallel_apply([first, second], [torch.ones(1, 2).cuda(0), torch.full((1, 2), 3.0).cuda(1)])
        (outputs[0].cpu() + outputs[1].cpu()).sum().backward()
        frozen = replicate(module, [1], detach=True)[0]
        return module.weight.grad.tolist(), [o.get_device() for o in outputs], frozen.weight.requires_grad

    assert on_ranks(1, program) == [([[4.0, 4.0]], [0, 1], False)]
