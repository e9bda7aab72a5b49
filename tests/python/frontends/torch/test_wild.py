"""Tests of what published scripts use of devices and of several of them, beside plain PyTorch on the host."""

import os
import pickle
import subprocess
import sys
import types

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.data import DataLoader

import torchemu
from torchemu.frontends.torch import packages

one = torchemu.distributed(world_size=1, torch="real")

NUMBERS = """
import torch
made = torch.zeros(2, device=0), torch.ones(1).to(1), torch.ones(1, device=torch.device(1))
print([str(t.device) for t in made], [str(p.device) for p in torch.nn.Linear(1, 1).to(0).parameters()])
import torch.ahbm
torch.ahbm.current_device()
print(torch.ones(1, device="ahbm").device.type)
"""


def test_a_bare_number_is_a_cuda_device(tmp_path):
    """In a process of its own: the name ahbm, which PyTorch takes bare numbers for, stays once it is used."""
    script = tmp_path / "numbers.py"
    script.write_text(NUMBERS)
    command = [sys.executable, "-m", "torchemu", "run", "--torch", "real", "--nproc-per-node", "1", str(script)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "['cuda:0', 'cuda:1', 'cuda:1'] ['cuda:0', 'cuda:0']",
        "ahbm",
    ]


@torchemu.distributed(world_size=2, torch="real")
def test_batch_norms_over_ranks_are_one_of_the_whole_batch():
    """Its forward pass takes a mask as an index while the numbers of other ranks are on their way."""
    dist.init_process_group("nccl")
    rank = dist.get_rank()
    torch.cuda.set_device(rank)
    whole = torch.rand(6, 3, 4, generator=torch.Generator().manual_seed(5))
    plain, synced = nn.BatchNorm1d(3), nn.SyncBatchNorm.convert_sync_batchnorm(nn.BatchNorm1d(3)).cuda()
    on_host, on_device = whole.clone().requires_grad_(), whole[3 * rank :][:3].cuda().requires_grad_()
    (plain(on_host) ** 3).sum().backward()
    (synced(on_device) ** 3).sum().backward()
    torch.testing.assert_close(on_device.grad.cpu(), on_host.grad[3 * rank :][:3])
    torch.testing.assert_close(synced.running_var.cpu(), plain.running_var)


@one
@pytest.mark.parametrize("kind", [nn.RNN, nn.GRU, nn.LSTM])
def test_packed_sequences_come_back_padded_on_the_device(kind):
    torch.manual_seed(0)
    model, found = kind(3, 4, 2, batch_first=True, bidirectional=True), []
    for device in ("cpu", "cuda"):
        model.zero_grad()
        x = torch.linspace(-1, 1, 30).reshape(2, 5, 3).to(device).requires_grad_()
        packed = nn.utils.rnn.pack_padded_sequence(x, torch.tensor([5, 3]), batch_first=True)
        out, lengths = nn.utils.rnn.pad_packed_sequence(model.to(device)(packed)[0], batch_first=True)
        (out**2).sum().backward()
        assert out.device.type == x.grad.device.type == device and lengths.tolist() == [5, 3]
        found.append(x.grad.cpu())
    torch.testing.assert_close(*found)


@torchemu.distributed(world_size=2, torch="real")
def test_a_tensor_made_like_another_is_where_that_is():
    """By methods from before dtypes: a type says where a tensor is, as its name does."""
    here = torch.device("cuda", int(os.environ["RANK"]))
    torch.cuda.set_device(here)
    like, on_host = torch.rand(2, device=here), torch.rand(3, requires_grad=True)
    for made in (like.new(4), like.new([1, 2]), like.new(torch.Size([1])), like.new(), torch.arange(4).type_as(like)):
        assert (made.device, made.type()) == (here, like.type())
    assert like.new([1, 2]).tolist() == [1, 2] and torch.arange(3).type_as(like).tolist() == [0, 1, 2]
    assert like.new(2, device="cuda:0").device == torch.device("cuda:0")
    assert on_host.new(2).device == like.type_as(on_host).device == torch.device("cpu")
    assert like.type_as(like) is like
    (on_host.type_as(like) * 2).sum().backward()
    assert on_host.grad.tolist() == [2, 2, 2]


@one
def test_dtypes_for_which_only_cuda_has_kernels():
    whole = torch.tensor([1, 3, 3, 7])
    for kind in (torch.int32, torch.int64, torch.uint8):
        counts = torch.histc(whole.to("cuda", kind), bins=4, min=0, max=7)
        assert counts.dtype == kind and counts.tolist() == torch.histc(whole.float(), bins=4, min=0, max=7).tolist()
    halves = torch.full((3, 3), 0.5, device="cuda", dtype=torch.float16).trace()
    assert halves.dtype == torch.float16 and halves.item() == 1.5
    with pytest.raises(NotImplementedError, match="not implemented for 'Int'"):
        torch.histc(whole.int(), bins=4)  # on the host there is none


@one
def test_elements_of_the_host_are_written_by_indices_of_a_device():
    """Masks of the pairs of one rank are made so: zeros are the host's, and the rows and columns the device's."""
    rows = torch.arange(3, device="cuda")
    mask = torch.zeros((3, 6), dtype=torch.bool)
    mask[(rows, rows + 3)] = True
    assert mask.device.type == "cpu" and torch.equal(mask, torch.cat([torch.zeros(3, 3), torch.eye(3)], 1).bool())
    found, want = torch.zeros(4), torch.zeros(4)
    for i in (torch.tensor([3, 1]), torch.tensor([False, True, True, False])):
        found[i.cuda()] = want[i] = torch.tensor([2.0, 5.0])
        found.index_put_((i.cuda(),), torch.tensor([0.5, 0.25]), accumulate=True)
        want.index_put_((i,), torch.tensor([0.5, 0.25]), accumulate=True)
        found[i] = torch.tensor(7.0, device="cuda") if i.dtype == torch.bool else want[i]
        want[i] = 7.0 if i.dtype == torch.bool else want[i]
        assert found.device.type == "cpu" and torch.equal(found, want)


@torchemu.distributed(world_size=2, torch="real")
def test_indices_of_a_device_may_still_be_on_their_way():
    dist.init_process_group("nccl")
    rank = dist.get_rank()
    i = torch.tensor([rank], device=f"cuda:{rank}")
    dist.all_reduce(i)
    seen = torch.zeros(3)
    seen[i] = 4.0
    assert seen.tolist() == [0.0, 4.0, 0.0]


@one
def test_numbers_are_assigned_by_indices_that_are_elsewhere():
    """PyTorch 2.15 fills where both are on a device, and puts elsewhere; both on the host are what is expected."""
    i = torch.tensor([2, 0])
    for of_values, of_indices in (("cpu", "cuda"), ("cuda", "cpu"), ("cuda", "cuda")):
        for place in (lambda t, i: t.__setitem__(i, 4.0), lambda t, i: t.__setitem__((slice(None), i), 4)):
            expected, given = (torch.ones(3, 3, requires_grad=True) for _ in range(2))
            place(known := expected.clone(), i)
            place(found := given.to(of_values, copy=True), i.to(of_indices))
            assert found.device.type == of_values and found.tolist() == known.tolist()
            (known * 2).sum().backward()
            (found * 2).sum().backward()
            assert given.grad.tolist() == expected.grad.tolist()
        if of_values != of_indices:
            values, indices = torch.ones(3, device=of_values), i.to(of_indices)
            for fill in (torch.Tensor.index_fill_, torch.Tensor.index_fill, torch.index_fill):
                with pytest.raises(RuntimeError, match=f"index is on {indices.device}, different from other tensors"):
                    fill(values, 0, indices, 4.0)
            assert values.tolist() == [1, 1, 1]


@one
def test_data_parallel_is_the_model():
    torch.manual_seed(0)
    model = nn.Linear(4, 2)
    parallel = nn.DataParallel(nn.Linear(4, 2), device_ids=[0, 1, 2]).cuda()
    parallel.module.load_state_dict(model.state_dict())
    for size in (7, 3, 1):
        x = torch.rand(size, 4)
        out, want = parallel(x.cuda()), model(x)
        assert out.device == torch.device("cuda", 0)
        torch.testing.assert_close(out.cpu(), want)
        out.sum().backward()
        want.sum().backward()
    torch.testing.assert_close(parallel.module.weight.grad.cpu(), model.weight.grad)
    with pytest.raises(RuntimeError, match="Expected all input tensors to be CUDA tensors, but tensor at index 0"):
        nn.parallel.comm.gather([torch.ones(2), torch.ones(2)])


class Apart(torch.autograd.Function):
    """Copies of a tensor on the host and on two devices; its backward says where the gradients are."""

    @staticmethod
    def forward(ctx, x, seen):
        ctx.seen = seen
        return x.cuda(0), x * 1, x.cuda(1)

    @staticmethod
    def backward(ctx, *grads):
        ctx.seen.append([str(grad.device) for grad in grads])
        return sum(grad.cpu() for grad in grads), None


@one
@pytest.mark.parametrize("used", [0, 1, 2])
def test_gradients_that_nobody_computes_are_where_the_results_are(used):
    """They are so whichever result is used."""
    x, seen = torch.ones(2, requires_grad=True), []
    (3 * Apart.apply(x, seen)[used]).sum().backward()
    assert seen == [["cuda:0", "cpu", "cuda:1"]]
    assert x.grad.tolist() == [3.0, 3.0]


@one
def test_data_parallel_has_gradients_of_gradients():
    """They are the model's: half of the parameters, the bias, has none that anybody computes."""

    def penalty(model, x):
        out = model(x)
        (grad,) = torch.autograd.grad(out, x, torch.ones_like(out), create_graph=True)
        grad.square().mean().backward()

    model = nn.Linear(4, 1)
    parallel = nn.DataParallel(nn.Linear(4, 1).cuda(), [0, 1])
    parallel.module.load_state_dict(model.state_dict())
    penalty(model, torch.ones(2, 4, requires_grad=True))
    penalty(parallel, torch.ones(2, 4, requires_grad=True).cuda())
    weight, bias = parallel.module.parameters()
    torch.testing.assert_close(weight.grad.cpu(), model.weight.grad)
    assert bias.grad.tolist() == [0.0]


@one
def test_data_parallel_has_sparse_gradients():
    """They are added on the first device."""
    model = nn.Embedding(10, 5, sparse=True)
    at = torch.arange(20).reshape(4, 5) % 10
    parallel = nn.DataParallel(nn.Embedding.from_pretrained(model.weight, freeze=False, sparse=True).cuda(), [0, 1])
    model(at).square().sum().backward()
    parallel(at.cuda()).square().sum().backward()
    grad = parallel.module.weight.grad
    assert grad.device == torch.device("cuda", 0)
    torch.testing.assert_close(grad.to_dense().cpu(), model.weight.grad.to_dense())


class Halves(nn.Module):
    """A model of which each half is on a device."""

    def __init__(self, first, second):
        super().__init__()
        self.devices = first, second
        self.a, self.b = nn.Linear(6, 6).to(first), nn.Linear(6, 3).to(second)

    def forward(self, x):
        return self.b(functional.relu(self.a(x.to(self.devices[0]))).to(self.devices[1]))


@torchemu.distributed(world_size=2, torch="real")
@pytest.mark.parametrize("view", [False, True])
def test_ddp_of_a_model_on_two_devices(view):
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(rank)  # rank 0's is everybody's
    model = nn.parallel.DistributedDataParallel(Halves(2 * rank, 2 * rank + 1), gradient_as_bucket_view=view)
    torch.manual_seed(0)
    plain = Halves("cpu", "cpu")
    x = torch.rand(4, 6, generator=torch.Generator().manual_seed(1))
    for _ in range(3):
        for whole, part in ((plain, x), (model, x[2 * rank :][:2])):
            whole.zero_grad()
            whole(part).square().mean().backward()
            with torch.no_grad():
                for p in whole.parameters():
                    p -= 0.1 * p.grad
    for got, want in zip(model.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(got.cpu(), want)
    assert model.module.b.weight.grad.device == torch.device("cuda", 2 * rank + 1)


@one
@pytest.mark.filterwarnings("ignore:Sparse")
def test_sparse_tensors_are_on_devices():
    indices, values = torch.tensor([[0, 1, 1], [1, 0, 0]]), torch.tensor([2.0, 3.0, 4.0])
    on_host = torch.sparse_coo_tensor(indices, values, (2, 2))
    on_device = torch.sparse_coo_tensor(indices.cuda(), values.cuda(), (2, 2))
    dense = torch.arange(4.0).reshape(2, 2)
    for name, function in {
        "coalesce": lambda s, d: s.coalesce().values(),
        "product": lambda s, d: s @ d,
        "sum": lambda s, d: (s + s).to_dense(),
        "scaled": lambda s, d: (2 * s).to_dense(),
        "csr": lambda s, d: d.to_sparse_csr() @ d,
        "dense of csr": lambda s, d: d.to_sparse_csr().to_dense(),
    }.items():
        got = function(on_device, dense.cuda())
        assert got.device.type == "cuda", name
        torch.testing.assert_close(got.cpu(), function(on_host, dense), msg=name)


@one
@pytest.mark.filterwarnings("ignore:Sparse")
def test_sparse_gradients_of_embeddings():
    found = []
    for device in ("cpu", "cuda"):
        torch.manual_seed(0)
        table = nn.Embedding(6, 2, sparse=True).to(device)
        optimizer = torch.optim.SparseAdam(table.parameters(), lr=0.1)
        for _ in range(2):
            table(torch.tensor([1, 4, 1], device=device)).square().sum().backward()
            assert table.weight.grad.layout is torch.sparse_coo and table.weight.grad.device.type == device
            optimizer.step()
            optimizer.zero_grad()
        found.append(table.weight.detach().cpu())
    torch.testing.assert_close(*found)


@one
def test_memory_is_shown(tmp_path):
    torch.cuda.memory._record_memory_history(max_entries=10)
    kept = torch.ones(1000, device="cuda")
    torch.cuda.memory._dump_snapshot(str(tmp_path / "memory.pickle"))
    torch.cuda.memory._record_memory_history(enabled=None)
    shown = pickle.loads((tmp_path / "memory.pickle").read_bytes())
    assert [(s["total_size"], s["requested_size"], s["address"]) for s in shown["segments"]] == [
        (4096, 4000, kept.data_ptr())
    ]
    assert sum(s["total_size"] for s in torch.cuda.memory_snapshot()) == torch.cuda.memory_allocated()
    pool = torch.cuda.MemPool()
    with torch.cuda.use_mem_pool(pool):
        more = torch.ones(8, device="cuda")
    assert more.sum().item() == 8 and pool.id != torch.cuda.MemPool().id


@one
def test_a_stream_sleeps():
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    times = []
    for cycles in (0, 3_000_000):
        start.record()
        torch.cuda._sleep(cycles)
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end))
    assert times[1] - times[0] == pytest.approx(3, rel=1e-3)


@one
def test_streams_sleep_side_by_side():
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    streams = [torch.cuda.Stream() for _ in range(3)]
    start.record()
    for i, stream in enumerate(streams):
        stream.wait_event(start)
        with torch.cuda.stream(stream):
            torch.cuda._sleep((i + 1) * 1_000_000)
    for stream in streams:
        torch.cuda.current_stream().wait_stream(stream)
    end.record()
    end.synchronize()
    assert start.elapsed_time(end) == pytest.approx(3, rel=1e-1)  # and not 6


@one
def test_devices_have_numbers_of_their_own():
    first, second = (torch.cuda.get_device_properties(number) for number in (0, 1))
    assert first.uuid != second.uuid and (first.pci_bus_id, second.pci_bus_id) == (0, 1)
    assert first.shared_memory_per_block_optin == first.shared_memory_per_block > 0


@torchemu.distributed(world_size=2, torch="real")
def test_gloo_coalesces_nothing_on_its_own():
    dist.init_process_group("gloo")
    coalesced = dist.distributed_c10d._coalescing_manager(device=torch.device("cpu"))
    with pytest.raises(RuntimeError, match="Backend gloo does not implement startCoalescing"), coalesced:
        dist.all_reduce(torch.ones(1))


def test_variables_that_functions_set_are_noted_and_containers_filled_by_imports_are_not():
    source = "model = None\nknown = {}\ndef use(m):\n    global model\n    model = m\n"
    for name, expected in (("ignite.x", {"model"}), ("megatron.x", {"model", "known"})):
        module, code = types.ModuleType(name), compile(source, name, "exec")
        exec(code, vars(module))
        variables = packages.Variables()
        variables.note(module, code)
        assert {v.name for v in variables._all} == expected


COUNTING = """
class Counter:
    def of_method(self, count=[0]):
        count[0] += 1
        return count[0]
    @staticmethod
    def of_static(step=1, seen={}):
        seen[len(seen)] = step
        return len(seen)
def of_function(seen=set(), text=""):
    seen.add(len(seen))
    return len(seen)
class Numbered:
    last = 0
    def __init__(self):
        Numbered.last += 1
        self.number = Numbered.last
class Named:
    last = 0
    @classmethod
    def next(cls):
        cls.last += 1
        return cls.last
"""


def test_what_functions_count_in_default_values_and_classes_is_a_ranks_own():
    module, code = types.ModuleType("deepspeed.x"), compile(COUNTING, "x", "exec")
    exec(code, vars(module))
    variables = packages.Variables()
    variables.note(module, code)
    for before, after, expected in ((None, "a", 1), ("a", "b", 1), ("b", "a", 2), ("a", "c", 1), ("c", "a", 3)):
        variables.exchange(before, after)
        counts = [module.Counter().of_method(), module.Counter.of_static(), module.of_function()]
        assert [*counts, module.Numbered().number, module.Named.next()] == [expected] * 5


PATCHING = """
class Layer:
    def __init__(self):
        self.made_under = []
top = None
def begin(owner):
    global top
    top = owner
    restore_init_context()
def end():
    global top
    shutdown_init_context()
    top = None
def restore_init_context():
    if top is None:
        return
    Layer._old_init, owner = Layer.__init__, top
    def init(self):
        Layer._old_init(self)
        self.made_under.append(owner)
    Layer.__init__ = init
def shutdown_init_context():
    if top is not None:
        Layer.__init__ = Layer._old_init
"""


def test_patches_of_classes_are_a_ranks_own(monkeypatch):
    """DeepSpeed's zero.Init has them so while a model is made."""
    name = "deepspeed.runtime.zero.partition_parameters"
    module, code = types.ModuleType(name), compile(PATCHING, "x", "exec")
    monkeypatch.setitem(sys.modules, name, module)
    exec(code, vars(module))
    variables = packages.Variables()
    variables.note(module, code)
    variables.exchange(None, "a")
    module.begin("a")
    assert module.Layer().made_under == ["a"]
    variables.exchange("a", "b")
    assert module.Layer().made_under == []
    module.begin("b")
    assert module.Layer().made_under == ["b"]
    variables.exchange("b", "a")
    assert module.Layer().made_under == ["a"]
    module.end()
    variables.exchange("a", "b")
    assert module.Layer().made_under == ["b"]
    variables.exchange("b", None)
    assert module.Layer().made_under == []


def square(queue, counts, number):
    queue.put((number, counts.get() ** 2))
    counts.task_done()


def fail():
    raise ValueError("no")


def tell(queue):
    queue.put((torch.multiprocessing.current_process().name, torch.multiprocessing.parent_process().name))


def serve(queue, ended):
    try:
        queue.get()
    finally:
        ended.append(True)


def join_a_group():
    dist.init_process_group("gloo")


@torchemu.distributed(world_size=2, torch="real")
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_rank_starts_helpers(method):
    """Megatron-core writes a checkpoint so: they run beside the rank's program, which goes on."""
    dist.init_process_group("gloo")
    context = torch.multiprocessing.get_context(method)
    found, counts = context.Queue(), context.JoinableQueue()
    helpers = [context.Process(target=square, args=(found, counts, number)) for number in range(3)]
    for number, helper in enumerate(helpers):
        assert helper.exitcode is None and not helper.is_alive()
        counts.put(number + dist.get_rank())
        helper.start()
    counts.join()
    total = torch.ones(1)
    dist.all_reduce(total)
    assert sorted(value for _, value in (found.get() for _ in helpers)) == [
        (n + dist.get_rank()) ** 2 for n in range(3)
    ]
    for helper in helpers:
        helper.join()
        helper.close()
    failing = context.Process(target=fail, name="failing")
    failing.start()
    failing.join()
    assert failing.exitcode == 1 and total.item() == 2
    named = context.Process(target=tell, args=(found,), name="named")
    named.start()
    assert found.get() == ("named", "MainProcess") and torch.multiprocessing.current_process().name == "MainProcess"


@torchemu.distributed(world_size=2, torch="real")
def test_helpers_are_terminated():
    """Where they wait, and before they have begun."""
    context, ended = torch.multiprocessing.get_context("spawn"), []
    serving, waiting = (context.Process(target=serve, args=(context.Queue(), ended)) for _ in range(2))
    serving.start()
    serving.join(timeout=1)
    assert serving.is_alive()
    waiting.start()
    for process, end in ((waiting, waiting.kill), (serving, serving.terminate), (serving, serving.kill)):
        end()
        process.join()
    assert (serving.exitcode, waiting.exitcode) == (-15, -9) and ended == [True]
    with pytest.raises(AssertionError, match="can only terminate a started process"):
        context.Process(target=fail).terminate()


def answer(end, queue):
    while (asked := end.recv()) is not None:
        end.send(2 * asked)
    end.close()
    queue.put("closed")
    queue.close()


@torchemu.distributed(world_size=2, torch="real")
def test_helpers_and_their_rank_close_ends_of_pipes_apart():
    context = torch.multiprocessing.get_context("spawn")
    (mine, given), queue = context.Pipe(), context.SimpleQueue()
    helper = context.Process(target=answer, args=(given, queue))
    helper.start()
    given.close()
    mine.send(21)
    assert mine.recv() == 42 and given.closed and not mine.closed
    mine.send(None)
    helper.join()
    assert helper.exitcode == 0 and queue.get() == "closed"


@torchemu.distributed(world_size=2, torch="real")
def test_helpers_are_in_no_group(capfd):
    joining = torch.multiprocessing.get_context("spawn").Process(target=join_a_group)
    joining.start()
    joining.join()
    assert joining.exitcode == 1
    if not int(os.environ["RANK"]):
        assert "is started once: torchemu run --nproc-per-node 1" in capfd.readouterr().err


@one
def test_tensors_inside_of_vmap_and_grad_are_on_their_device():
    x, seen = torch.arange(6.0, device="cuda").reshape(3, 2), []

    def function(row):
        seen.append(row.device.type)
        return (row * torch.arange(2.0, device=row.device)).sum() ** 2

    slopes = torch.vmap(torch.func.grad(function))(x)
    assert set(seen) == {"cuda"} and slopes.device.type == "cuda"
    assert slopes.tolist() == [[0, 2.0 * (2 * n + 1)] for n in range(3)]


@one
@pytest.mark.parametrize("where", ["cpu", "cuda"])
def test_lengths_of_sequences_may_be_the_hosts(where):
    torch.manual_seed(0)
    scores = torch.randn(6, 2, 4).log_softmax(2).requires_grad_()
    targets, taken, given = torch.tensor([[1, 2, 1], [3, 1, 0]]), torch.tensor([6, 5]), torch.tensor([3, 2])
    expected = functional.ctc_loss(scores, targets, taken, given)
    (wanted,) = torch.autograd.grad(expected, scores)
    on_device = scores.detach().cuda().requires_grad_()
    got = functional.ctc_loss(on_device, targets.cuda(), taken.to(where), given.to(where))
    got.backward()
    assert got.device.type == "cuda"
    torch.testing.assert_close(got.cpu(), expected)
    torch.testing.assert_close(on_device.grad.cpu(), wanted)


@one
@pytest.mark.filterwarnings("ignore:flex_attention called without")
def test_flexible_attention_is_attention():
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    torch.manual_seed(0)
    q, k, v = (torch.rand(1, 2, 16, 8) for _ in range(3))
    mask = create_block_mask(lambda b, h, i, j: i >= j, 1, 1, 16, 16, device="cuda")
    got = flex_attention(q.cuda(), k.cuda(), v.cuda(), block_mask=mask)
    assert got.device.type == "cuda"
    torch.testing.assert_close(got.cpu(), functional.scaled_dot_product_attention(q, k, v, is_causal=True))


@one
@pytest.mark.filterwarnings("ignore:flex_attention called without")
def test_flexible_attention_has_gradients_of_a_learned_bias_too():
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    torch.manual_seed(0)
    host = [torch.rand(1, 2, 16, 8, requires_grad=True) for _ in range(3)]
    slopes = torch.rand(2, requires_grad=True)
    device = [t.detach().cuda().requires_grad_() for t in (*host, slopes)]
    mask = create_block_mask(lambda b, h, i, j: i >= j, 1, 1, 16, 16, device="cuda")
    got = flex_attention(*device[:3], score_mod=lambda s, b, h, i, j: s + device[3][h] * (i - j), block_mask=mask)
    place = torch.arange(16.0)
    bias = slopes[:, None, None] * (place[:, None] - place)
    expected = functional.scaled_dot_product_attention(
        *host, attn_mask=bias.masked_fill(place[:, None] < place, -torch.inf)[None]
    )
    torch.testing.assert_close(got.cpu(), expected)
    weights = torch.rand(1, 2, 16, 8)
    (got * weights.cuda()).sum().backward()
    (expected * weights).sum().backward()
    for made, wanted in zip(device, (*host, slopes), strict=True):
        assert made.grad.device.type == "cuda"
        torch.testing.assert_close(made.grad.cpu(), wanted.grad)


@pytest.mark.filterwarnings("ignore:Please use DTensor")
@torchemu.distributed(world_size=2, torch="real")
def test_sharded_tensors_say_where_they_are():
    """They are those before DTensor, with which Megatron-core writes checkpoints."""
    from torch.distributed._shard import sharded_tensor

    dist.init_process_group("nccl")
    rank = dist.get_rank()
    torch.cuda.set_device(rank)
    shard = sharded_tensor.Shard.from_tensor_and_offsets(torch.ones(2, 3, device="cuda"), [2 * rank, 0], rank)
    whole = sharded_tensor.init_from_local_shards([shard], 4, 3)
    assert whole.device == torch.device("cuda", rank) and whole.shape == (4, 3)


FUSED = [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.CUDNN_ATTENTION]


@one
@pytest.mark.parametrize("kernel", FUSED)
def test_attention_by_a_fused_kernel_alone_is_attention(kernel):
    """The host, which computes it, has fewer kernels, and they can do less."""
    q = torch.randn(2, 3, 8, 4, generator=torch.Generator().manual_seed(0))
    want = functional.scaled_dot_product_attention(q, q, q, is_causal=True)
    with sdpa_kernel(kernel):
        got = functional.scaled_dot_product_attention(q.cuda(), q.cuda(), q.cuda(), is_causal=True)
        torch.manual_seed(1)
        dropped = functional.scaled_dot_product_attention(q.cuda(), q.cuda(), torch.ones_like(q).cuda(), dropout_p=0.5)
    torch.testing.assert_close(got.cpu(), want)
    assert dropped.device.type == "cuda" and 0 < (dropped != 1).sum() <= q.numel()


@one
def test_attention_by_no_kernel_is_refused():
    q = torch.ones(1, 1, 4, 4).cuda()
    functional.scaled_dot_product_attention(q, q, q)
    with sdpa_kernel([]), pytest.raises(RuntimeError, match="No viable backend"):
        functional.scaled_dot_product_attention(q, q, q)


@one
@pytest.mark.parametrize("context", ["fork", "spawn", torch.multiprocessing.get_context("spawn")])
def test_loaders_are_told_how_to_start_their_workers(context):
    loader = DataLoader(range(6), batch_size=2, num_workers=2, multiprocessing_context=context)
    assert [batch.tolist() for batch in loader] == [[0, 1], [2, 3], [4, 5]]
    ours = DataLoader(range(2), num_workers=1, multiprocessing_context=torch.multiprocessing.get_context("fork"))
    assert len(list(ours)) == 2


@one
def test_kernels_that_a_program_gives_to_cuda_are_cudas():
    library = torch.library.Library("torchemu_wild", "DEF")
    library.define("halved(Tensor x) -> Tensor")
    library.define("both(Tensor x) -> Tensor")
    library.impl("halved", lambda x: x / 2, "CUDA")
    library.impl("both", lambda x: x + 1, "CPU")
    library.impl("both", lambda x: x + torch.full((), 2.0, device=x.device), "CUDA")
    x = torch.ones(2, device="cuda")
    halved, both = torch.ops.torchemu_wild.halved(x), torch.ops.torchemu_wild.both(x)
    assert halved.device == both.device == x.device
    assert halved.tolist() == [0.5, 0.5] and both.tolist() == [3, 3]
    assert torch.ops.torchemu_wild.both(torch.ones(1)).tolist() == [2]
    with pytest.raises(NotImplementedError, match="'CPU' backend"):
        torch.ops.torchemu_wild.halved(torch.ones(1))


PINNED = {
    "tensor": lambda: torch.tensor([[1, 2], [3, 4]], pin_memory=True),
    "tensor of a number": lambda: torch.tensor(3, dtype=torch.int32, pin_memory=True),
    "tensor of another": lambda: torch.tensor(torch.arange(3), pin_memory=True),
    "new_tensor": lambda: torch.ones(2).new_tensor([3], pin_memory=True),
    "named": lambda: torch.tensor(data=[1.5], device="cpu", pin_memory=True),
    "zeros": lambda: torch.zeros(2, pin_memory=True),
}


@one
@pytest.mark.parametrize("name", list(PINNED))
def test_tensors_of_data_are_pinned_where_a_program_asks(name):
    made = PINNED[name]()
    assert made.is_pinned()
    assert made.cuda(non_blocking=True).tolist() == made.tolist()


@one
def test_what_is_made_on_a_device_is_not_pinned():
    assert not torch.tensor([1, 2], pin_memory=False).is_pinned()
    made = torch.tensor([1, 2], device="cuda", pin_memory=True)
    assert made.device.type == "cuda" and not made.is_pinned() and made.tolist() == [1, 2]


REMEMBERING = """
def cached(name):
    if not hasattr(cached, "_made"):
        cached._made = {}
    return cached._made.setdefault(name, len(cached._made))
def numbered():
    cached.last = getattr(cached, "last", 0) + 1
    return cached.last
def other(made):
    made.last = 7
class Groups:
    made = 0
groups = Groups()
def grouped():
    groups.made += 1
    return groups.made
"""


@pytest.mark.parametrize("package", ["fairscale", "megatron"])
def test_what_functions_remember_in_functions_and_objects_is_a_ranks_own(package):
    """fairscale and yunchang keep their groups so."""
    module, code = types.ModuleType(f"{package}.x"), compile(REMEMBERING, "x", "exec")
    exec(code, vars(module))
    variables = packages.Variables()
    variables.note(module, code)
    for before, after, expected in ((None, "a", 1), ("a", "b", 1), ("b", "a", 2), ("a", "c", 1), ("c", "a", 3)):
        variables.exchange(before, after)
        assert module.cached(f"{after} {expected}") == expected - 1
        assert [module.numbered(), module.grouped()] == [expected] * 2
    variables.exchange("a", None)
    assert not vars(module.cached) and not vars(module.groups)


@one
@pytest.mark.parametrize("dtype", [torch.bool, torch.float32])
def test_attention_is_causal_and_has_a_mask(dtype):
    """CUDA's fused kernels take both, as on an H200; those by single operations refuse it, as the host's do."""
    torch.manual_seed(0)
    q, k = torch.rand(1, 2, 6, 8), torch.rand(1, 2, 9, 8)
    sees = torch.rand(6, 9) < 0.7
    sees[:, 0] = True
    mask = sees if dtype is torch.bool else torch.zeros(6, 9).masked_fill(~sees, float("-inf"))
    expected = functional.scaled_dot_product_attention(q, k, k, sees & torch.ones(6, 9, dtype=torch.bool).tril())
    leaf = q.cuda().requires_grad_()
    found = functional.scaled_dot_product_attention(leaf, k.cuda(), k.cuda(), mask.cuda(), is_causal=True)
    found.sum().backward()
    torch.testing.assert_close(found.detach().cpu(), expected)
    with sdpa_kernel(SDPBackend.MATH), pytest.raises(RuntimeError, match="should not be set when is_causal=True"):
        functional.scaled_dot_product_attention(leaf, k.cuda(), k.cuda(), mask.cuda(), is_causal=True)


@one
@pytest.mark.parametrize("convolve", [functional.conv2d, functional.conv_transpose2d])
def test_convolutions_of_float16_add_up_in_float32(convolve):
    """CUDA adds up so. The host's own kernels round otherwise, and take long for gradients."""
    torch.manual_seed(0)
    drawn = [torch.randn(shape).half() for shape in ((4, 32, 20, 20), (32, 32, 3, 3), (32,), (4, 32, 20, 20))]
    found = []
    for operands in ([t.float() for t in drawn], [t.cuda() for t in drawn]):
        x, weight, bias = (t.clone().requires_grad_() for t in operands[:3])
        out = convolve(x, weight, bias, padding=1)
        out.backward(operands[3])
        found.append([t.detach().cpu().half() for t in (out, x.grad, weight.grad, bias.grad)])
    assert all(map(torch.equal, *found)) and x.grad.dtype == torch.float16


@torchemu.distributed(world_size=2, torch="real")
@pytest.mark.parametrize("batch_first", [False, True])
def test_sequences_are_padded_where_they_are(batch_first):
    """Gradients go back to each of them, as on the host."""
    dist.init_process_group("nccl")
    rows = [torch.arange(1.0, 1 + 2 * n).view(n, 2) for n in (3, 0, 5)]
    here, there = [[row.clone().to(device).requires_grad_() for row in rows] for device in ("cpu", "cuda")]
    padded, wanted = (nn.utils.rnn.pad_sequence(each, batch_first, padding_value=-1.0) for each in (there, here))
    assert padded.device.type == "cuda"
    assert torch.equal(padded.cpu(), wanted)
    padded.square().sum().backward()
    for row, given in zip(rows, there, strict=True):
        assert given.grad.device.type == "cuda"
        assert torch.equal(given.grad.cpu(), 2 * row)
    assert torch.equal(torch.vander(padded[0, 0]).cpu(), torch.vander(wanted[0, 0]))
    assert torch.vander(padded[0, 0]).device == padded.device


@torchemu.distributed(world_size=2, torch="real")
def test_lazy_modules_are_moved_before_they_know_their_sizes():
    dist.init_process_group("nccl")
    moves = [
        lambda m: m.cuda(), lambda m: m.to("cuda"), lambda m: m.to("cuda", torch.float64), lambda m: m.cuda().double(),
        lambda m: m.cuda().cpu().cuda(),
    ]  # fmt: skip
    for move in moves:
        model = move(nn.Sequential(nn.LazyConv2d(4, 3), nn.LazyBatchNorm2d(), nn.Flatten(), nn.LazyLinear(3)))
        x = torch.ones(2, 3, 8, 8, device="cuda", dtype=next(model.parameters()).dtype)
        assert model(x).shape == (2, 3)
        assert {p.device.type for p in model.parameters()} == {"cuda"}
        assert model[3].weight.shape == (3, 144)
        with pytest.raises(ValueError, match="uninitialized parameter"):
            torch.exp(nn.LazyLinear(3).cuda().weight)
