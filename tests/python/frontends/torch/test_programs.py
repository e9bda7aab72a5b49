"""Published programs leave the main road, on ranks of the installed PyTorch, with the results of plain PyTorch."""

import concurrent.futures
import functools
import importlib
import os
import sys
from datetime import timedelta

import newer
import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel

import torchemu

real = torchemu.distributed(world_size=4, torch="real")
pytestmark = newer.names_of_before


def begin(backend="nccl"):
    dist.init_process_group(backend)
    torch.cuda.set_device(dist.get_rank())
    return dist.get_rank()


PARTIAL = {
    "split": lambda x: x.split([1, 5], 1)[1],
    "unbind": lambda x: x.unbind(0)[2],
    "max": lambda x: x.max(1)[0],
    "sort": lambda x: x.sort(1)[0] * 2,
    "topk": lambda x: x.topk(2, -1)[0],
    "prod": lambda x: x.prod(1),
    "cumprod": lambda x: x.cumprod(0),
    "trace": lambda x: x[:, :4].trace(),
    "recomputed": lambda x: torch.utils.checkpoint.checkpoint(lambda z: (z * z).max(1)[0], x, use_reentrant=False),
    "twice": lambda x: torch.autograd.grad((x**3).max(1)[0].sum(), x, create_graph=True)[0],
    "quantile": lambda x: x.quantile(0.3, dim=1),
    "ctc": lambda x: functional.ctc_loss(x.log_softmax(-1)[:, None], torch.tensor([[1, 2]]).to(x.device), (4,), (2,)),
    "causal": lambda x: functional.scaled_dot_product_attention(x, x, x, is_causal=True),
    "packed": lambda x: nn.utils.rnn.pack_padded_sequence(x[None], [3], batch_first=True).data,
}


@torchemu.distributed(world_size=1, torch="real")
def test_formulas_in_cpp_make_tensors_on_the_device():
    """Gradients of what is used in part are made of zeros, which C++ makes where it takes the others to be."""
    generator = torch.Generator().manual_seed(3)
    given = torch.rand(4, 6, generator=generator)
    for name, function in PARTIAL.items():
        on_host, on_device = given.clone().requires_grad_(), given.cuda().requires_grad_()
        for x in (on_host, on_device):
            function(x).sum().backward()
        assert on_device.grad.device.type == "cuda" and on_host.grad.device.type == "cpu", name
        torch.testing.assert_close(on_device.grad.cpu(), on_host.grad, msg=name)


@torchemu.distributed(world_size=1, torch="real")
def test_a_host_model_makes_its_gradients_on_the_host():
    x = torch.rand(3, 4, requires_grad=True)
    (torch.ones(2, device="cuda") * 2).sum().item()
    x.max(1)[0].sum().backward()
    assert x.grad.device.type == "cpu"


@torchemu.distributed(world_size=1, torch="real")
def test_attention_with_dropout_and_a_causal_mask():
    x = torch.rand(2, 2, 5, 4, device="cuda", requires_grad=True)
    out = functional.scaled_dot_product_attention(x, x, x, is_causal=True, dropout_p=0.5)
    out.sum().backward()
    assert out.device.type == x.grad.device.type == "cuda"
    assert functional.one_hot(torch.tensor([2, 0], device="cuda")).tolist() == [[0, 0, 1], [1, 0, 0]]


@torchemu.distributed(world_size=1, torch="real")
@pytest.mark.parametrize("randomness", ["same", "different"])
@pytest.mark.parametrize("dropout", [functional.dropout, functional.feature_alpha_dropout, functional.alpha_dropout])
def test_dropout_within_vmap(dropout, randomness):
    x = torch.ones(64, 256, 1, device="cuda")
    out = torch.func.vmap(lambda row: dropout(row, 0.5, training=True), randomness=randomness)(x)
    assert out.device == x.device and len(out.unique()) == 2
    assert all(torch.equal(row, out[0]) for row in out) is (randomness == "same")


@torchemu.distributed(world_size=1, torch="real")
@pytest.mark.filterwarnings("ignore:.torch.jit.script:DeprecationWarning")  # PyTorch's own, for derivatives forwards
@pytest.mark.parametrize("derivatives", [torch.func.jacfwd, torch.func.jacrev, torch.func.hessian])
def test_derivatives_of_functions(derivatives):
    """Of tanh(x @ w), and of what is added up of that, as on the host."""
    x, w = torch.linspace(-1, 1, 4), torch.linspace(-1, 1, 12).reshape(4, 3)

    def of(x, w):
        out = torch.tanh(x @ w)
        return out.sum() if derivatives is torch.func.hessian else out

    found = derivatives(of)(x.cuda(), w.cuda())
    assert found.device.type == "cuda"
    torch.testing.assert_close(found.cpu(), derivatives(of)(x, w))


@torchemu.distributed(world_size=1, torch="real")
@pytest.mark.parametrize("reentrant", [True, False])
def test_dropout_is_drawn_again_where_a_checkpoint_is(reentrant):
    model, x = nn.Dropout(0.5), torch.ones(64, device="cuda", requires_grad=True)
    out = torch.utils.checkpoint.checkpoint(model, x, use_reentrant=reentrant)
    out.sum().backward()
    assert torch.equal(x.grad, out.detach()) and 0 < out.count_nonzero() < 64


@torchemu.distributed(world_size=1, torch="real")
def test_what_may_be_a_view_may_be_a_copy():
    part = torch.ones(2, 4, 8, device="cuda").chunk(2, dim=2)[1]
    with torch._C._AutoDispatchBelowAutograd():
        assert {t.device.type for t in (part.contiguous(), part.reshape(-1), part.to(torch.float64))} == {"cuda"}


@pytest.mark.parametrize("kernels", [[SDPBackend.FLASH_ATTENTION, SDPBackend.MATH], [SDPBackend.CUDNN_ATTENTION]])
@real
def test_attention_of_dtensors_is_that_of_tensors(kernels):
    from torch.distributed.tensor import Shard, distribute_tensor, init_device_mesh

    begin()
    mesh = init_device_mesh("cuda", (4,))
    torch.manual_seed(0)
    q, k, v = (torch.rand(2, 4, 6, 8) for _ in range(3))
    mask = torch.ones(6, 6, dtype=torch.bool).tril()
    for options in ({"is_causal": True}, {}):
        shards = [distribute_tensor(t.cuda(), mesh, [Shard(1)]).requires_grad_() for t in (q, k, v)]
        plain = [t.clone().requires_grad_() for t in (q, k, v)]
        want = functional.scaled_dot_product_attention(*plain, **options)
        with sdpa_kernel(kernels):
            out = functional.scaled_dot_product_attention(*shards, **options)
        torch.testing.assert_close(out.full_tensor().cpu(), want)
        (out * out).sum().backward()
        (want * want).sum().backward()
        for shard, whole in zip(shards, plain, strict=True):
            torch.testing.assert_close(shard.grad.full_tensor().cpu(), whole.grad)
    whole = functional.scaled_dot_product_attention(q.cuda(), k.cuda(), v.cuda(), attn_mask=mask.cuda())
    torch.testing.assert_close(whole.cpu(), functional.scaled_dot_product_attention(q, k, v, is_causal=True))


@pytest.mark.shows("PyTorch: context parallelism")
@real
def test_context_parallel_is_attention():
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.experimental import context_parallel
    from torch.distributed.tensor.experimental._attention import context_parallel_unshard

    begin()
    mesh = init_device_mesh("cuda", (4,))
    torch.manual_seed(0)
    whole = [torch.rand(1, 2, 16, 8) for _ in range(3)]
    parts = [t.cuda() for t in whole]
    want = functional.scaled_dot_product_attention(*[t.requires_grad_() for t in whole], is_causal=True)
    want.sum().backward()
    sharded = context_parallel(mesh, buffers=parts, buffer_seq_dims=[2] * 3, no_restore_buffers=set(parts))
    with sdpa_kernel(SDPBackend.FLASH_ATTENTION), sharded:
        out = functional.scaled_dot_product_attention(*[t.requires_grad_() for t in parts], is_causal=True)
        out.sum().backward()
        found = context_parallel_unshard(mesh, [out.detach(), *[t.grad for t in parts]], [2] * 4)
    for got, expected in zip(found, [want, *[t.grad for t in whole]], strict=True):
        torch.testing.assert_close(got.cpu(), expected)


@real
def test_devices_may_have_a_backend_and_an_order_of_their_own():
    """A thread saves a checkpoint while the training goes on: the host's collectives are others."""
    rank = begin("cpu:gloo,cuda:nccl")
    on_host, on_device = torch.full((2,), float(rank)), torch.full((2,), 10.0 * rank, device="cuda")
    tensors = (on_host, on_device) if rank % 2 else (on_device, on_host)
    for work in [dist.all_reduce(tensor, async_op=True) for tensor in tensors]:
        work.wait()
    assert on_host.tolist() == [6.0, 6.0] and on_device.tolist() == [60.0, 60.0]
    from torch.distributed.fsdp import fully_shard

    layer = fully_shard(nn.Linear(4, 4).cuda())
    assert layer.weight.device.type == "cuda"


@torchemu.distributed(world_size=2, torch="real")
def test_queues_under_a_prefix():
    begin("gloo")
    store = dist.PrefixStore("a", dist.PrefixStore("b", dist.distributed_c10d._get_default_store()))
    if dist.get_rank() == 0:
        for value in ("1", "2"):
            store.queue_push("q", value)
    else:
        assert [store.queue_pop("q") for _ in range(2)] == [b"1", b"2"]
        assert store.queue_len("q") == 0
        store.set_timeout(timedelta(milliseconds=50))
        with pytest.raises(dist.DistStoreError, match="wait timeout after 50ms"):
            store.get("never")


@torchemu.distributed(world_size=2, torch="real")
def test_hooks_in_cpp_are_those_in_python():
    begin("gloo")
    found = []
    for register in (
        lambda m: m._register_builtin_comm_hook(dist.BuiltinCommHookType.FP16_COMPRESS),
        lambda m: m.register_comm_hook(
            None, dist.algorithms.ddp_comm_hooks.default_hooks.fp16_compress_hook
        ),
    ):  # fmt: skip
        torch.manual_seed(0)
        model = nn.parallel.DistributedDataParallel(nn.Linear(3, 2))
        register(model)
        model(torch.full((1, 3), dist.get_rank() + 1.0)).sum().backward()
        found.append(model.module.weight.grad)
    assert torch.equal(*found) and found[0].tolist() == [[1.5] * 3] * 2


class Shared:
    @functools.cached_property
    def total(self):
        total = torch.ones(1)
        dist.all_reduce(total)
        return total.item()


@real
def test_a_property_may_wait_for_other_ranks():
    begin("gloo")
    assert Shared().total == 4


@pytest.mark.shows("PyTorch: threads")
@real
def test_threads_of_pools_are_the_ranks():
    rank = begin("gloo")
    pool = concurrent.futures.ThreadPoolExecutor(2)  # of the module that all ranks have, as a package's

    def group_of_thread():
        return dist.get_rank(torch._C._distributed_c10d._resolve_process_group("0")), torch.ones(
            1, device="cuda"
        ).device

    futures = [pool.submit(group_of_thread) for _ in range(3)]
    assert all(isinstance(future, concurrent.futures.Future) for future in futures)
    concurrent.futures.wait(futures)
    assert [future.result()[0] for future in futures] == [rank] * 3
    assert {future.result()[1].type for future in futures} == {"cuda"}
    pool.shutdown()


@pytest.mark.filterwarnings("ignore")  # PyTorch's exporter warns of PyTorch
@real
def test_models_are_cut_into_stages():
    from torch.distributed.pipelining import ScheduleGPipe, SplitPoint, pipeline

    class Layers(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList(nn.Linear(8, 8) for _ in range(4))

        def forward(self, x):
            for layer in self.layers:
                x = torch.relu(layer(x))
            return x

    rank = begin()
    torch.manual_seed(0)
    model, x = Layers().cuda(), torch.randn(8, 8).cuda()
    split = {f"layers.{i}": SplitPoint.BEGINNING for i in range(1, 4)}
    schedule = ScheduleGPipe(
        pipeline(model, (x[:2],), split_spec=split).build_stage(rank, torch.device("cuda", rank)), 4
    )
    out = schedule.step(x) if rank == 0 else schedule.step()
    if rank == 3:
        torch.testing.assert_close(out, model(x))


@torchemu.distributed(world_size=2, torch="real")
def test_rank_0_serves_at_an_address_that_is_not_torchruns():
    os.environ["TORCHELASTIC_USE_AGENT_STORE"] = "True"  # torchrun is above a script that spawns its processes itself
    rank = int(os.environ["RANK"])
    dist.init_process_group("gloo", init_method="tcp://127.0.0.1:23456", rank=rank, world_size=2)
    total = torch.tensor([rank + 1])
    dist.all_reduce(total)
    assert total.item() == 3


@torchemu.distributed(world_size=2, torch="real")
def test_the_launcher_is_refused_where_there_are_several_ranks():
    from torch.distributed import run
    from torch.distributed.launcher.api import LaunchConfig, elastic_launch

    with pytest.raises(RuntimeError, match=r"torchemu run --nproc-per-node 1"):
        elastic_launch(LaunchConfig(1, 1, 1), len)([])
    with pytest.raises(RuntimeError, match=r"torchemu run --nproc-per-node 1"):
        run.main(["--standalone", "--nproc-per-node", "1", "none.py"])


@real
def test_a_package_that_is_loaded_late_keeps_no_ranks_group():
    """Its parameters' default is the default group of whoever calls."""
    sys.modules.pop("torch.distributed.nn.functional", None)
    rank = begin("gloo")
    functions = importlib.import_module("torch.distributed.nn.functional")
    x = torch.full((2,), float(rank), requires_grad=True)
    functions.all_reduce(x).sum().backward()
    assert x.grad.tolist() == [4.0, 4.0]
    joined = torch.stack(functions.all_gather(x))
    assert joined[:, 0].tolist() == [0.0, 1.0, 2.0, 3.0]


@pytest.mark.shows("PyTorch: torch.profiler")
@real
def test_averages_of_a_profile():
    begin("gloo")
    with torch.profiler.profile(record_shapes=True, acc_events=True) as profile:
        dist.all_reduce(torch.ones(3))
    counts = {average.key: average.count for average in profile.key_averages(group_by_input_shape=True)}
    assert counts["gloo:all_reduce"] == 1


@torchemu.distributed(world_size=2, torch="real")
def test_a_mismatch_in_a_backward_pass_can_be_caught():
    """DDP's reducer, in C++, would take the error in a future for its result."""
    dist.init_process_group("gloo")
    both = nn.ModuleList([nn.Linear(2, 2), nn.Linear(2, 2)])
    both.forward = lambda x: (both[0](x), both[1](x))
    model = nn.parallel.DistributedDataParallel(both, find_unused_parameters=True)
    with pytest.raises(torchemu.errors.MismatchError, match="rank 1 calls barrier"):
        if dist.get_rank() == 1:
            dist.barrier()
        else:
            model(torch.ones(1, 2))[0].sum().backward()


@torchemu.distributed(world_size=1, torch="real")
@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("total", [None, 5, 7])
def test_sequences_are_padded_where_they_are_and_their_lengths_are_the_hosts(batch_first, total):
    lengths, given = [5, 3, 3, 1], torch.arange(160.0).view(5, 4, 8)
    found = []
    for device in ("cpu", "cuda"):
        x = given.to(device, copy=True).requires_grad_()
        packed = torch.nn.utils.rnn.pack_padded_sequence(x, lengths)
        out, sizes = torch.nn.utils.rnn.pad_packed_sequence(packed, batch_first, padding_value=-1.0, total_length=total)
        (out * torch.arange(float(out.numel()), device=device).view(out.shape)).sum().backward()
        assert out.device.type == device and sizes.device.type == "cpu"
        found.append((out.detach().cpu(), out.stride(), sizes, x.grad.cpu()))
    host, cuda = found
    assert torch.equal(host[0], cuda[0]) and host[1] == cuda[1] and torch.equal(host[2], cuda[2])
    assert torch.equal(host[3], cuda[3])
