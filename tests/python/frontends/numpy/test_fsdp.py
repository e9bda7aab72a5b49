"""FullyShardedDataParallel trains as the module alone does on all ranks' batches together."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest
from conftest import OpenWorld
from ranks import on_ranks

import torchemu as torch
import torchemu.distributed as dist
from torchemu import nn
from torchemu.distributed.fsdp import (
    BackwardPrefetch,
    CPUOffload,
    FullStateDictConfig,
    MixedPrecision,
    ShardingStrategy,
    StateDictType,
)
from torchemu.distributed.fsdp import FullyShardedDataParallel as FSDP  # noqa: N817 (its usual name)
from torchemu.distributed.fsdp.wrap import (
    CustomPolicy,
    ModuleWrapPolicy,
    always_wrap_policy,
    enable_wrap,
    lambda_auto_wrap_policy,
    size_based_auto_wrap_policy,
    transformer_auto_wrap_policy,
    wrap,
)

pytestmark = pytest.mark.filterwarnings("ignore:The `NO_SHARD` sharding strategy:FutureWarning")
STRATEGIES = ["FULL_SHARD", "SHARD_GRAD_OP", "NO_SHARD"]
POLICY = ModuleWrapPolicy({nn.Linear})


@pytest.fixture(autouse=True)
def world(open_world: OpenWorld) -> torch.World:
    return open_world("sips8")


def net() -> nn.Sequential:
    torch.manual_seed(5)
    return nn.Sequential(nn.Linear(3, 7), nn.Tanh(), nn.Linear(7, 2, bias=False), nn.Tanh(), nn.Linear(2, 1))


def batch(rank: int, step: int) -> torch.Tensor:
    numbers = np.random.default_rng([rank, step]).standard_normal((4, 3))
    return torch.from_numpy(numbers.astype(np.float32))


def alone(ranks: int, steps: int, clip: float | None = None) -> tuple[list[np.ndarray], list[float]]:
    """The parameters after training on all batches at once, and the norms of the gradients."""
    model, norms = net(), []
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.05)
    for step in range(steps):
        optimizer.zero_grad()
        (sum(model(batch(rank, step)).square().mean() for rank in range(ranks)) / ranks).backward()
        if clip is not None:
            norms.append(nn.utils.clip_grad_norm_(model.parameters(), clip).item())
        optimizer.step()
    return [p.detach().numpy().copy() for p in model.parameters()], norms


def train(model: Any, optimizer: Any, rank: int, steps: range, clip: float | None = None) -> list[float]:
    norms = []
    for step in steps:
        optimizer.zero_grad()
        model(batch(rank, step)).square().mean().backward()
        if clip is not None:
            norms.append(model.clip_grad_norm_(clip).item())
        optimizer.step()
    return norms


def whole(model: Any) -> list[Any]:
    return [t.tolist() for t in model.state_dict().values()]


def agrees(found: list[Any], wanted: list[np.ndarray], rtol: float = 2e-5) -> None:
    for mine, theirs in zip(found, wanted, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=rtol, atol=1e-6)


@pytest.mark.parametrize("ranks", [1, 2, 3, 5, 8])
@pytest.mark.parametrize("as_originals", [False, True])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_training(ranks: int, as_originals: bool, strategy: str) -> None:
    """At 8 ranks some have nothing of the smaller layers."""

    def program(rank: int) -> Any:
        dist.init_process_group("nccl")
        model = FSDP(
            net(),
            auto_wrap_policy=POLICY,
            use_orig_params=as_originals,
            sharding_strategy=ShardingStrategy[strategy],
        )
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.05)
        norms = train(model, optimizer, rank, range(3), clip=0.3)
        return whole(model), norms

    wanted, norms = alone(ranks, 3, clip=0.3)
    for found, mine in on_ranks(ranks, program):
        agrees(found, wanted)
        np.testing.assert_allclose(mine, norms, rtol=2e-5)


@pytest.mark.parametrize("given", ["groups", "mesh"])
def test_hybrid(given: str) -> None:
    """Two groups of three share; the same parts are in both."""

    def program(rank: int) -> Any:
        dist.init_process_group("nccl")
        if given == "mesh":
            where: Any = {"device_mesh": dist.init_device_mesh("cuda", (2, 3))}
        else:
            shared = [dist.new_group(list(range(at, at + 3))) for at in (0, 3)][rank // 3]
            same = [dist.new_group([at, at + 3]) for at in range(3)][rank % 3]
            where = {"process_group": (shared, same)}
        model = FSDP(net(), sharding_strategy=ShardingStrategy.HYBRID_SHARD, auto_wrap_policy=POLICY, **where)
        train(model, torch.optim.AdamW(model.parameters(), lr=0.05), rank, range(2))
        sizes = [p.numel() for p in model.parameters()]
        return whole(model), sizes

    wanted, _ = alone(6, 2)
    for found, sizes in on_ranks(6, program):
        agrees(found, wanted)
        assert sizes == [10, 5, 1]  # a third of 28, 14 and 3 elements


def test_accumulation_without_sync() -> None:
    """Two batches whose gradients are added up on each rank are one batch of both."""

    def program(rank: int, syncs: bool) -> Any:
        if not dist.is_initialized():
            dist.init_process_group("nccl")
        model = FSDP(net(), auto_wrap_policy=POLICY)
        if syncs:
            model(batch(rank, 0)).sum().backward()
        else:
            with model.no_sync():
                model(batch(rank, 0)).sum().backward()
                assert all(p.grad is None for p in model.parameters())
        model(batch(rank, 1)).sum().backward()
        return [p.grad.tolist() for p in model.parameters()]

    for synced, summed in zip(
        on_ranks(3, lambda rank: program(rank, True)), on_ranks(3, lambda rank: program(rank, False)), strict=True
    ):
        for one, other in zip(synced, summed, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


def calls(strategy: str, prefetch: Any = BackwardPrefetch.BACKWARD_PRE) -> list[str]:
    """What a rank issues in one step."""

    def program(rank: int) -> Any:
        dist.init_process_group("nccl")
        model = FSDP(
            net(),
            auto_wrap_policy=POLICY,
            sharding_strategy=ShardingStrategy[strategy],
            backward_prefetch=prefetch,
        )
        group, found = dist.group.WORLD, []
        assert group is not None
        group.register_pre_hook(1, lambda args: found.append(args.name.name))
        model(batch(rank, 0)).sum().backward()
        group.unregister_pre_hook(1)
        return found

    return on_ranks(2, program)[0]


def test_what_is_communicated() -> None:
    """Three units: their parameters before forward, again before backward, then their gradients."""
    gathered, reduced = ["ALLGATHER_BASE"] * 3, ["REDUCE_SCATTER_BASE"] * 3
    assert calls("SHARD_GRAD_OP") == gathered + reduced
    one, other = gathered[:1], reduced[:1]
    assert calls("FULL_SHARD") == gathered + one + one + other + one + other + other
    assert calls("FULL_SHARD", None) == gathered + (one + other) * 3
    assert calls("NO_SHARD") == ["ALLREDUCE"] * 3


def test_communication_runs_beside_the_computation() -> None:
    """A step takes less than computation and communication one after the other."""

    def step(model: Any, x: torch.Tensor) -> float:
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        dist.barrier()
        torch.cuda.synchronize()
        start.record()
        model(x).sum().backward()
        end.record()
        torch.cuda.synchronize()
        return start.elapsed_time(end)

    def program(rank: int) -> Any:
        dist.init_process_group("nccl")
        stack = [nn.Linear(256, 256) for _ in range(5)]
        some, none = torch.ones(8192, 256), torch.ones(1, 256)
        model = nn.Sequential(*stack)
        times = [step(model, some)]
        for prefetch in (None, BackwardPrefetch.BACKWARD_PRE):
            model = FSDP(nn.Sequential(*stack), auto_wrap_policy=POLICY, backward_prefetch=prefetch)
            times += [step(model, x) for x in (none, some)]
            stack = [nn.Linear(256, 256) for _ in range(5)]
        return times

    for computing, communicating, late, _, early in on_ranks(4, program):
        assert max(computing, communicating) <= early <= late < 0.8 * (computing + communicating)


@pytest.mark.parametrize("as_originals", [False, True])
def test_states_go_to_another_model(as_originals: bool) -> None:
    """Trained on from a state is trained on; with the same model on other shards too."""

    def program(rank: int) -> Any:
        dist.init_process_group("nccl")
        first = FSDP(net(), auto_wrap_policy=POLICY, use_orig_params=as_originals)
        optimizer = torch.optim.AdamW(first.parameters(), lr=0.05)
        train(first, optimizer, rank, range(2))
        state, optim_state = first.state_dict(), FSDP.optim_state_dict(first, optimizer)
        second = FSDP(net(), use_orig_params=not as_originals)
        assert str(second.load_state_dict(state)) == "<All keys matched successfully>"
        other = torch.optim.AdamW(second.parameters(), lr=0.05)
        other.load_state_dict(FSDP.optim_state_dict_to_load(second, other, optim_state))
        for model, each in ((first, optimizer), (second, other)):
            train(model, each, rank, range(2, 4))
        return whole(first), whole(second), list(state), sorted(optim_state["state"]), optim_state["param_groups"]

    wanted, _ = alone(3, 4)
    names = ["0.weight", "0.bias", "2.weight", "4.weight", "4.bias"]
    for first, second, keys, state, groups in on_ranks(3, program):
        agrees(first, wanted)
        agrees(second, wanted)
        assert (keys, state, sorted(groups[0]["params"])) == (names, sorted(names), sorted(names))


def test_state_on_the_first_rank_only() -> None:
    def program(rank: int) -> Any:
        dist.init_process_group("nccl")
        model = FSDP(net(), auto_wrap_policy=always_wrap_policy)
        config = FullStateDictConfig(rank0_only=True, offload_to_cpu=True)
        with FSDP.state_dict_type(model, StateDictType.FULL_STATE_DICT, config):
            assert FSDP.get_state_dict_type(model).state_dict_config is config
            state = model.state_dict()
        assert FSDP.get_state_dict_type(model).state_dict_config is not config
        return {name: (t.is_cpu, t.tolist()) for name, t in state.items()}

    first, *others = on_ranks(3, program)
    assert others == [{}, {}]
    with torch.no_grad():
        assert first == {name: (True, t.tolist()) for name, t in net().state_dict().items()}


def test_whole_parameters_can_be_changed() -> None:
    def program(rank: int) -> Any:
        dist.init_process_group("nccl")
        model = FSDP(net(), auto_wrap_policy=POLICY)
        with FSDP.summon_full_params(model):
            names = [(name, tuple(p.shape)) for name, p in model.named_parameters()]
            for p in model.parameters():
                with torch.no_grad():
                    p.fill_(2)
        with FSDP.summon_full_params(model, writeback=False), torch.no_grad():
            for p in model.parameters():
                p.fill_(3)
        model.apply(lambda module: module.weight.data.add_(1) if isinstance(module, nn.Linear) else None)
        return names, {name: set(t.reshape(-1).tolist()) for name, t in model.state_dict().items()}

    for names, values in on_ranks(3, program):
        assert names == [(name, tuple(p.shape)) for name, p in net().named_parameters()]
        assert values == {name: {3.0 if name.endswith("weight") else 2.0} for name, _ in names}


@pytest.mark.parametrize("frozen", [(0,), (4,), (0, 4)])
@pytest.mark.parametrize("wrap_parts", [False, True])
def test_some_parameters_are_frozen(frozen: tuple[int, ...], wrap_parts: bool) -> None:
    """Whichever of a unit: the others are trained, and these get no gradient."""

    def frozen_net() -> nn.Sequential:
        model = net()
        for number in frozen:
            model[number].requires_grad_(False)
        return model

    def program(rank: int) -> Any:
        dist.init_process_group("nccl")
        policy = POLICY if wrap_parts else None
        model = FSDP(frozen_net(), auto_wrap_policy=policy, use_orig_params=True)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.5, weight_decay=0.1)
        train(model, optimizer, rank, range(2))
        return whole(model), [p.grad is None for p in model.parameters() if not p.requires_grad]

    model = frozen_net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5, weight_decay=0.1)
    for step in range(2):
        optimizer.zero_grad()
        (sum(model(batch(rank, step)).square().mean() for rank in range(3)) / 3).backward()
        optimizer.step()
    for found, without in on_ranks(3, program):
        agrees(found, [p.detach().numpy() for p in model.parameters()])
        assert without == [True] * 2 * len(frozen)


def test_a_unit_whose_parameters_are_not_used_keeps_them() -> None:
    class Perhaps(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(3, 3)

        def forward(self, x: torch.Tensor, used: bool) -> torch.Tensor:
            return self.layer(x) if used else x

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = nn.Linear(3, 3), FSDP(Perhaps(), use_orig_params=True)

        def forward(self, x: torch.Tensor, used: bool) -> torch.Tensor:
            result: torch.Tensor = self.second(self.first(x), used)
            return result

    def program(rank: int) -> Any:
        dist.init_process_group("nccl")
        model = FSDP(Model(), use_orig_params=True)
        before = [(name, p.shape) for name, p in model.named_parameters()]
        for used in (False, True, False):
            model(torch.ones(1, 3), used).sum().backward()
            assert [(name, p.shape) for name, p in model.named_parameters()] == before
        return len(before)

    assert on_ranks(2, program) == [4, 4]


@pytest.mark.parametrize("as_originals", [False, True])
def test_a_module_around_units_is_loaded(as_originals: bool) -> None:
    def program(rank: int) -> Any:
        dist.init_process_group("nccl")
        model = nn.Sequential(FSDP(nn.Linear(3, 4), use_orig_params=as_originals), nn.Linear(4, 2))
        before = [name for name, _ in model.named_parameters()]
        values = range(len(model.state_dict()))
        state = {name: torch.full_like(t, n) for (name, t), n in zip(model.state_dict().items(), values, strict=True)}
        assert str(model.load_state_dict(state)) == "<All keys matched successfully>"
        with pytest.raises(RuntimeError, match="size mismatch for 0"):
            model.load_state_dict({**state, "0.weight": torch.ones(4, 4)})
        assert [name for name, _ in model.named_parameters()] == before
        return {name: (tuple(t.shape), set(t.reshape(-1).tolist())) for name, t in model.state_dict().items()}

    shapes = {"0.weight": (4, 3), "0.bias": (4,), "1.weight": (2, 4), "1.bias": (2,)}
    wanted = {name: (shape, {float(n)}) for n, (name, shape) in enumerate(shapes.items())}
    assert on_ranks(3, program) == [wanted] * 3


def test_modules_begin_alike() -> None:
    def program(rank: int) -> Any:
        dist.init_process_group("nccl")
        module = nn.BatchNorm1d(2)
        module.weight.data.fill_(rank + 4)
        module.running_mean.fill_(rank + 7)
        model = FSDP(module, sync_module_states=True)
        return [t.tolist() for t in model.state_dict().values()]

    assert on_ranks(3, program) == [[[4.0, 4.0], [0.0, 0.0], [7.0, 7.0], [1.0, 1.0], 0]] * 3


def test_shared_and_ignored_parameters() -> None:
    def program(rank: int) -> Any:
        dist.init_process_group("nccl")
        module = nn.ModuleDict(
            {"a": nn.Linear(3, 3, bias=False), "b": nn.Linear(3, 3, bias=False), "c": nn.Linear(1, 1)}
        )
        module["b"].weight = module["a"].weight
        model = FSDP(module, ignored_modules=[module["c"]])
        state = model.state_dict()
        same = state["a.weight"].tolist() == state["b.weight"].tolist()
        return [p.numel() for p in model.parameters()], same

    assert on_ranks(2, program) == [([5, 1, 1], True)] * 2


@pytest.mark.parametrize("reduce", [None, torch.float32])
def test_mixed_precision(reduce: Any) -> None:
    """Small integers and powers of two are exact in bfloat16."""
    seen: list[Any] = []

    class Looks(nn.Linear):
        def forward(self, input: torch.Tensor) -> torch.Tensor:  # noqa: A002
            seen.append((input.dtype, self.weight.dtype))
            return super().forward(input)

    def program(rank: int) -> Any:
        dist.init_process_group("nccl")
        layer = Looks(2, 1, bias=False)
        layer.weight.data.fill_(1)
        model = FSDP(layer, mixed_precision=MixedPrecision(param_dtype=torch.bfloat16, reduce_dtype=reduce))
        y = model(torch.tensor([[1.0, 2.0]]) * (rank + 1))
        y.sum().backward()
        grads = [p.grad for p in model.parameters()]
        return y.dtype, y.item(), grads[0].dtype, grads[0].tolist()

    for rank, (kind, value, grad_kind, grad) in enumerate(on_ranks(2, program)):
        assert (kind, value, grad_kind) == (torch.bfloat16, 3.0 * (rank + 1), torch.float32)
        assert grad == [[1.5], [3.0]][rank]
    assert set(seen) == {(torch.bfloat16, torch.bfloat16)}


def units(model: Any) -> list[str]:
    return [type(unit.module).__name__ for unit in FSDP.fsdp_modules(model)]


@pytest.mark.parametrize(
    ("policy", "wanted"),
    [
        (None, ["Sequential"]),
        (POLICY, ["Sequential", "Linear", "Linear", "Linear"]),
        (always_wrap_policy, ["Sequential", "Linear", "Tanh", "Linear", "Tanh", "Linear"]),
        (functools.partial(size_based_auto_wrap_policy, min_num_params=20), ["Sequential", "Linear"]),
        (
            functools.partial(transformer_auto_wrap_policy, transformer_layer_cls={nn.Tanh}),
            ["Sequential", "Tanh", "Tanh"],
        ),
        (
            functools.partial(lambda_auto_wrap_policy, lambda_fn=lambda m: getattr(m, "in_features", 0) == 7),
            ["Sequential", "Linear"],
        ),
        (
            CustomPolicy(lambda m: {"use_orig_params": True} if isinstance(m, nn.Tanh) else False),
            ["Sequential", "Tanh", "Tanh"],
        ),
    ],
)
def test_policies(policy: Any, wanted: list[str]) -> None:
    def program(rank: int) -> Any:
        dist.init_process_group("nccl")
        model = FSDP(net(), auto_wrap_policy=policy)
        return units(model), model(batch(0, 0)).tolist()

    plain = net()(batch(0, 0)).tolist()
    for found, output in on_ranks(2, program):
        assert found == wanted
        np.testing.assert_allclose(output, plain, rtol=1e-6)


def test_wrapping_by_hand() -> None:
    def program(rank: int) -> Any:
        dist.init_process_group("nccl")
        plain = wrap(nn.Linear(1, 1))
        with enable_wrap(wrapper_cls=FSDP, use_orig_params=True):
            inner = wrap(nn.Linear(1, 1))
            flat = wrap(nn.Linear(1, 1), use_orig_params=False)
        return [type(each).__name__ for each in (plain, inner, flat)], [
            [name for name, _ in each.named_parameters()] for each in (inner, flat)
        ]

    names = [["_fsdp_wrapped_module.weight", "_fsdp_wrapped_module.bias"], ["_fsdp_wrapped_module._flat_param"]]
    assert on_ranks(1, program) == [(["Linear", *["FullyShardedDataParallel"] * 2], names)]


def test_misuse() -> None:
    def program(rank: int) -> None:
        dist.init_process_group("nccl")
        frozen, mixed = net(), net()
        frozen[0].weight.requires_grad = False
        mixed[0].to(torch.float64)
        mesh = dist.init_device_mesh("cuda", (2,))
        for error, text, call in (
            (ValueError, "uniform `requires_grad` when `use_orig_params=False`", lambda: FSDP(frozen)),
            (ValueError, "Must flatten tensors with uniform dtype but got", lambda: FSDP(mixed)),
            (ValueError, "Cannot pass both", lambda: FSDP(net(), dist.group.WORLD, device_mesh=mesh)),
            (ValueError, "Expected process_group", lambda: FSDP(net(), 3, ShardingStrategy.HYBRID_SHARD)),
            (NotImplementedError, "offload_params=True", lambda: FSDP(net(), cpu_offload=CPUOffload(True))),
            (NotImplementedError, "param_init_fn", lambda: FSDP(net(), param_init_fn=lambda m: None)),
            (
                NotImplementedError,
                "SHARDED_STATE_DICT is not supported: use",
                lambda: FSDP.set_state_dict_type(net(), StateDictType.SHARDED_STATE_DICT),
            ),
            (
                ValueError,
                "kwarg dict, but it returned 3",
                lambda: FSDP(net(), auto_wrap_policy=CustomPolicy(lambda m: 3)),
            ),
        ):
            with pytest.raises(error, match=text):
                call()  # type: ignore[no-untyped-call]

    on_ranks(2, program)
