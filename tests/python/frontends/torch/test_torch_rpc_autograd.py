"""Gradients across ranks by torch.distributed.autograd, against those of one process."""

import functools
import os
import time
import warnings

import pytest
import torch
import torch.distributed as dist
import torch.distributed.autograd as dist_autograd
import torch.distributed.rpc as rpc
from torch import nn
from torch.distributed.rpc import RRef
from torch.nn.parallel import DistributedDataParallel

import torchemu

with warnings.catch_warnings():  # these have scripts, which PyTorch advises against
    warnings.simplefilter("ignore")
    from torch.distributed.nn import RemoteModule
    from torch.distributed.optim import DistributedOptimizer

pytestmark = pytest.mark.filterwarnings("ignore:.TorchScript. support for functional optimizers")


def rank():
    return int(os.environ["RANK"])


def workers(count):
    """Runs a test on workers w0, w1, …, of which the first runs it, and the others are there to be called."""

    def around(test):
        @torchemu.distributed(world_size=count, torch="real")
        @functools.wraps(test)
        def run(*args, **kwargs):
            rpc.init_rpc(f"w{rank()}", rank=rank(), world_size=count)
            if rank() == 0:
                test(*args, **kwargs)
            rpc.shutdown()

        return run

    return around


def leaf(seed, *shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), requires_grad=True)


kept = {}
"""Leaves of this rank, by name."""


def weight(name, seed=0, *shape):
    if name not in kept:
        kept[name] = leaf(seed, *shape)
    return kept[name]


def weighted(x, name, seed, *shape):
    return torch.tanh(x @ weight(name, seed, *shape))


def product(a, b):
    return a * b


def gradient(name, context_id):
    return dist_autograd.get_gradients(context_id)[kept[name]]


def bounce(x, names, depth):
    """Multiplies by a weight of each worker, there and back again."""
    y = torch.tanh(x @ weight("bounced", 7, 3, 3))
    return rpc.rpc_sync(names[0], bounce, (y, names[::-1], depth - 1)) if depth else y


def parts(x):
    return {"first": [x * 2, torch.ones(1)], "second": (x**2, "text", x.detach())}


def of_ids(ids):
    return nn.functional.embedding(ids, weight("table", 3, 5, 2))


def local_context(context_id):
    return dist_autograd._current_context()._context_id() == context_id


def same_as(found, expected):
    assert found is not None and torch.equal(found, expected), (found, expected)


@pytest.mark.shows("PyTorch: distributed autograd")
@workers(2)
def test_gradients_of_arguments_and_of_weights_there():
    x = leaf(1, 4, 3)
    with dist_autograd.context() as context_id:
        y = rpc.rpc_sync("w1", weighted, (x, "w", 2, 3, 5))
        assert y.requires_grad and not y.is_leaf and y.grad_fn.name() == "torch::distributed::autograd::RecvRpcBackward"
        dist_autograd.backward(context_id, [(y * y).sum()])
        found = dist_autograd.get_gradients(context_id)
        there = rpc.rpc_sync("w1", gradient, ("w", context_id))
        assert rpc.rpc_sync("w1", local_context, (context_id,))
    assert list(found) == [x] or all(t is x for t in found)
    plain, w = leaf(1, 4, 3), leaf(2, 3, 5)
    (torch.tanh(plain @ w) ** 2).sum().backward()
    same_as(found[x], plain.grad)
    same_as(there, w.grad)
    assert x.grad is None
    with pytest.raises(RuntimeError, match=f"Could not find autograd context with id: {context_id}"):
        dist_autograd.get_gradients(context_id)


@pytest.mark.parametrize("depth", [1, 2, 5])
@workers(2)
def test_calls_there_and_back_again(depth):
    x = leaf(1, 2, 3)
    with dist_autograd.context() as context_id:
        y = rpc.rpc_sync("w1", bounce, (x, ["w0", "w1"], depth))
        dist_autograd.backward(context_id, [y.sum()])
        found = dist_autograd.get_gradients(context_id)[x]
        there = rpc.rpc_sync("w1", gradient, ("bounced", context_id))
        here = dist_autograd.get_gradients(context_id)[kept["bounced"]]
    plain, weights = leaf(1, 2, 3), [leaf(7, 3, 3), leaf(7, 3, 3)]
    y = plain
    for turn in range(depth + 1):
        y = torch.tanh(y @ weights[turn % 2])
    y.sum().backward()
    same_as(found, plain.grad)
    torch.testing.assert_close(there, weights[0].grad)
    torch.testing.assert_close(here, weights[1].grad)


@workers(3)
def test_what_was_sent_to_two_workers_is_passed_once():
    """Its graph runs when both gradients have come: with their sum, as in one pass."""
    x, passed = leaf(1, 3), []
    with dist_autograd.context() as context_id:
        shared = torch.exp(x)
        shared.register_hook(lambda g: passed.append(g.clone()))
        futures = [rpc.rpc_async(to, product, (shared, shared)) for to in ("w1", "w2")]
        total = sum(torch.sin(f.wait()).sum() for f in futures)
        dist_autograd.backward(context_id, [total])
        found = dist_autograd.get_gradients(context_id)[x]
    plain = leaf(1, 3)
    shared = torch.exp(plain)
    sum(torch.sin(shared * shared).sum() for _ in range(2)).backward()
    torch.testing.assert_close(found, plain.grad)
    assert len(passed) == 1


@workers(2)
def test_what_is_sent_and_used_here_as_well():
    """A call's result meets its argument again, and goes to the worker once more."""
    x, w = leaf(1, 3), leaf(2, 3)
    with dist_autograd.context() as context_id:
        h = torch.tanh(x * w)
        y = rpc.rpc_sync("w1", product, (h, w))
        z = rpc.rpc_sync("w1", product, (h + y, torch.full((3,), 2.0)))
        dist_autograd.backward(context_id, [(z * h).sum()])
        found = dist_autograd.get_gradients(context_id)
        got = found[x], found[w]
    x, w = leaf(1, 3), leaf(2, 3)
    h = torch.tanh(x * w)
    (((h + h * w) * 2) * h).sum().backward()
    torch.testing.assert_close(got[0], x.grad)
    torch.testing.assert_close(got[1], w.grad)


@workers(3)
def test_micro_batches_share_weights():
    xs = [leaf(s, 2, 3) for s in range(4)]
    with dist_autograd.context() as context_id:
        firsts = [rpc.remote("w1", weighted, (x, "p", 5, 3, 3)) for x in xs]
        futures = [rpc.rpc_async("w2", weighted_reference, (first,)) for first in firsts]
        dist_autograd.backward(context_id, [sum(y.sum() for y in torch.futures.wait_all(futures))])
        found = [dist_autograd.get_gradients(context_id)[x] for x in xs]
        got = [rpc.rpc_sync(f"w{r}", gradient, (name, context_id)) for r, name in ((1, "p"), (2, "q"))]
    weights = leaf(5, 3, 3), leaf(6, 3, 4)
    plain = [leaf(s, 2, 3) for s in range(4)]
    sum(torch.tanh(torch.tanh(x @ weights[0]) @ weights[1]).sum() for x in plain).backward()
    for one, x in zip(found, plain, strict=True):
        same_as(one, x.grad)
    for one, w in zip(got, weights, strict=True):
        torch.testing.assert_close(one, w.grad)


def weighted_reference(x):
    return weighted(x.to_here(), "q", 6, 3, 4)


@workers(2)
def test_outputs_that_nothing_depends_on_have_no_gradient():
    x = leaf(1, 3)
    with dist_autograd.context() as context_id:
        out = rpc.rpc_sync("w1", parts, (x,))
        assert not out["second"][2].requires_grad and not out["first"][1].requires_grad
        dist_autograd.backward(context_id, [out["first"][0].sum()])
        same_as(dist_autograd.get_gradients(context_id)[x], torch.full((3,), 2.0))


@workers(2)
def test_weights_there_alone():
    """No argument requires a gradient, and the call is in the context all the same."""
    with dist_autograd.context() as context_id:
        out = rpc.rpc_sync("w1", of_ids, (torch.tensor([0, 4, 4]),))
        dist_autograd.backward(context_id, [out.sum()])
        expected = torch.zeros(5, 2)
        expected[0], expected[4] = 1, 2
        same_as(rpc.rpc_sync("w1", gradient, ("table", context_id)), expected)


@workers(2)
def test_passes_in_one_context_add_up_and_contexts_do_not():
    x = leaf(1, 3)
    for _ in range(2):
        with dist_autograd.context() as context_id:
            loss = rpc.rpc_sync("w1", product, (x, x)).sum()
            dist_autograd.backward(context_id, [loss], retain_graph=True)
            dist_autograd.backward(context_id, [loss])
            same_as(dist_autograd.get_gradients(context_id)[x], 4 * x.detach())
            with pytest.raises(RuntimeError, match=r"Error on Node 0: Error on Node 1: .*backward through the graph a"):
                dist_autograd.backward(context_id, [loss])


@workers(2)
def test_what_backward_refuses():
    x = leaf(1, 3)
    with pytest.raises(RuntimeError, match="Could not find autograd context with id: 12"):
        dist_autograd.backward(12, [x.sum()])
    with dist_autograd.context() as context_id:
        y = rpc.rpc_sync("w1", product, (x, x))
        with pytest.raises(RuntimeError, match="is not a scalar, all roots need to be scalar"):
            dist_autograd.backward(context_id, [y])
        with pytest.raises(RuntimeError, match="requires_grad not set on root"):
            dist_autograd.backward(context_id, [torch.ones(())])
        with pytest.raises(RuntimeError, match="does not have a valid gradient function"):
            dist_autograd.backward(context_id, [leaf(1, 1)])
        with pytest.raises(TypeError, match="incompatible function arguments"):
            dist_autograd.backward(context_id, None)
        with pytest.raises(RuntimeError, match="No tensors provided for gradient computation"):
            dist_autograd.backward(context_id, [])
        with pytest.raises(RuntimeError, match="Already have an autograd context id for this thread"):
            dist_autograd.context().__enter__()
    with pytest.raises(RuntimeError, match="Current thread doesn't have a valid autograd context"):
        dist_autograd._current_context()


@torchemu.distributed(world_size=3, torch="real")
def test_a_pass_fails_where_a_worker_has_gone():
    """The last one of three leaves after the forward pass, and the first one hears of it through the second."""
    rpc.init_rpc(f"w{rank()}", rank=rank(), world_size=3)
    if rank() == 2:
        time.sleep(0.1)
    elif rank() == 0:
        x = leaf(1, 2, 3)
        with dist_autograd.context() as context_id:
            y = rpc.rpc_sync("w1", bounce, (x, ["w2", "w1"], 1))
            time.sleep(0.2)
            with pytest.raises(RuntimeError, match=r"Error on Node 0: Error on Node 1: .*name=w2\) has shut down RPC"):
                dist_autograd.backward(context_id, [y.sum()])
            with pytest.raises(RuntimeError, match="has shut down RPC"):
                rpc.rpc_async("w2", product, (1, 2)).wait()
    else:
        time.sleep(0.4)
    rpc.shutdown(graceful=False)


@workers(2)
def test_gradients_of_devices():
    options = rpc.api._get_current_rpc_agent()._get_backend_options()
    options.set_device_map("w1", {0: 0})
    x = leaf(1, 3)
    on_device = x.detach().cuda().requires_grad_()
    with dist_autograd.context() as context_id:
        rpc.rpc_sync("w1", same_place, (x,))
        dist_autograd.backward(context_id, [rpc.rpc_sync("w1", product, (x, x)).cuda().sum()])
        same_as(dist_autograd.get_gradients(context_id)[x], 2 * x.detach())
    assert on_device.grad is None


def same_place(x):
    return x.device


@workers(2)
def test_received_tensors_can_be_changed_in_place():
    x = leaf(1, 3)
    with dist_autograd.context() as context_id:
        y = rpc.rpc_sync("w1", doubled_in_place, (x,))
        y.mul_(3)
        dist_autograd.backward(context_id, [y.sum()])
        same_as(dist_autograd.get_gradients(context_id)[x], torch.full((3,), 6.0))


def doubled_in_place(x):
    x.mul_(2)
    return x


@workers(2)
def test_hooks_of_leaves_run_once():
    """Hooks for .grad, which stays as it is, do not run: so it was seen on processes."""
    x, y, heard = leaf(1, 3), leaf(2, 3), []
    for one in (x, y):
        one.register_hook(lambda g: heard.append("once") or g * 10)
    y.register_post_accumulate_grad_hook(lambda t: heard.append("y"))
    with dist_autograd.context() as context_id:
        dist_autograd.backward(context_id, [(rpc.rpc_sync("w1", product, (x, y)) + x).sum()])
        found = dist_autograd.get_gradients(context_id)
        same_as(found[x], (1 + y.detach()) * 10)
        same_as(found[y], x.detach() * 10)
    assert heard == ["once"] * 2 and x.grad is None and y.grad is None


@workers(2)
def test_a_reference_starts_a_pass():
    x = leaf(1, 3)
    with dist_autograd.context() as context_id:
        loss = rpc.remote("w1", product_sum, (x, x))
        loss.backward(context_id)
        same_as(dist_autograd.get_gradients(context_id)[x], 2 * x.detach())
    own = RRef((x * x).sum())
    own.backward()
    same_as(x.grad, 2 * x.detach())
    with pytest.raises(RuntimeError, match="User RRefs require 'dist_autograd_ctx_id' to be specified"):
        loss.backward()
    with pytest.raises(RuntimeError, match=r"RRef should contain a tensor for \.backward\(\)"):
        RRef(1).backward()


def product_sum(a, b):
    return (a * b).sum()


def parameter_of(module, number):
    return [*module.local_value().parameters()][number].detach()


@pytest.mark.parametrize("kind", [torch.optim.SGD, torch.optim.Adam, torch.optim.Adagrad, torch.optim.ASGD])
@workers(3)
def test_distributed_optimizers_step_as_local_ones(kind):
    """ASGD has no functional optimizer, and is run as it is."""
    modules = [rpc.remote(f"w{r}", seeded_linear, (r,)) for r in (1, 2)]
    references = [p for m in modules for p in rpc.rpc_sync(m.owner(), parameter_references, (m,))]
    optimizer = DistributedOptimizer(kind, references, lr=0.1)
    plain = [seeded_linear(r) for r in (1, 2)]
    local = kind([p for m in plain for p in m.parameters()], lr=0.1)
    x = leaf(1, 4, 3).detach()
    for _ in range(3):
        with dist_autograd.context() as context_id:
            y = x
            for module in modules:
                y = rpc.rpc_sync(module.owner(), forward, (module, y))
            dist_autograd.backward(context_id, [y.square().sum()])
            optimizer.step(context_id)
        local.zero_grad()
        y = x
        for module in plain:
            y = module(y)
        y.square().sum().backward()
        local.step()
    for module, other in zip(modules, plain, strict=True):
        for number, parameter in enumerate(other.parameters()):
            same_as(rpc.rpc_sync(module.owner(), parameter_of, (module, number)), parameter.detach())


def seeded_linear(seed):
    torch.manual_seed(seed)
    return nn.Linear(3, 3)


def parameter_references(module):
    return [RRef(p) for p in module.local_value().parameters()]


def forward(module, x):
    return module.local_value()(x)


class Seeded(nn.Linear):
    def __init__(self, seed):
        torch.manual_seed(seed)
        super().__init__(3, 2)


@workers(2)
def test_remote_modules():
    remote = RemoteModule("w1/cpu", Seeded, args=(4,))
    again = RemoteModule.init_from_module_rref("w1/cpu", remote.get_module_rref())
    x = leaf(1, 5, 3)
    plain, local = leaf(1, 5, 3), Seeded(4)
    with dist_autograd.context() as context_id:
        y = remote.forward(x) + again.forward_async(x).wait() + remote(x)
        dist_autograd.backward(context_id, [y.square().sum()])
        same_as_local = local(plain) + local(plain) + local(plain)
        same_as_local.square().sum().backward()
        same_as(y.detach(), same_as_local.detach())
        torch.testing.assert_close(dist_autograd.get_gradients(context_id)[x], plain.grad)
    assert len(remote.remote_parameters()) == 2
    same_as(remote.remote_parameters()[0].to_here().detach(), local.weight.detach())
    assert rpc.rpc_sync("w1", forwarded, (remote, x)).shape == (5, 2)
    with pytest.raises(ValueError, match="Method ``state_dict`` not supported for RemoteModule"):
        remote.state_dict()


def forwarded(remote, x):
    return remote.forward(x)


@torchemu.distributed(world_size=3, torch="real")
def test_models_in_ddp_reduce_the_gradients_of_a_pass():
    """Two trainers, with the sizes of torch.distributed's group apart from those of RPC's."""
    number = rank()
    if number < 2:
        dist.init_process_group("gloo", rank=number, world_size=2, init_method="tcp://localhost:29888")
    rpc.init_rpc(f"w{number}", rank=number, world_size=3)
    if number < 2:
        model = DistributedDataParallel(seeded_linear(8))
        x = leaf(number, 4, 3)
        with dist_autograd.context() as context_id:
            y = rpc.rpc_sync("w2", weighted, (model(x), "last", 9, 3, 2))
            dist_autograd.backward(context_id, [y.sum()])
            found = dist_autograd.get_gradients(context_id)
            got = [found[p] for p in model.parameters()]
            assert all(p.grad is None for p in model.parameters())
        plain, last = seeded_linear(8), leaf(9, 3, 2)
        (sum(torch.tanh(plain(leaf(n, 4, 3)) @ last).sum() for n in (0, 1)) / 2).backward()
        for one, p in zip(got, plain.parameters(), strict=True):
            torch.testing.assert_close(one, p.grad)
    rpc.shutdown()
