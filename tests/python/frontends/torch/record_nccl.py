"""Records on a machine with two GPUs what torch.distributed answers there with NCCL: values, and what is refused.

    torchrun --nproc-per-node 2 record_nccl.py recorded_nccl.json

The file next to this one has been made so, without NVLS; tests compare simulated ranks with it. NCCL itself checks
little: calls with which it reads or writes beside tensors are not here. After a refusal between the two ends of NCCL's
own groups nothing is communicated any more, so these come last.
"""

import json
import os
import re
import sys
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn

DTYPES = (
    torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16, torch.bfloat16,
    torch.float32, torch.float64, torch.complex64, torch.float8_e4m3fn, torch.float8_e5m2, torch.uint16, torch.uint32,
    torch.uint64,
)  # fmt: skip
OPS = ("SUM", "PRODUCT", "MIN", "MAX", "AVG", "BAND", "PREMUL")


def shown(value):
    """Returns a value as text that compares: tensors by their dtypes, types of devices and elements."""
    if isinstance(value, torch.Tensor):
        elements = value.detach().cpu()
        if elements.is_floating_point():
            elements = elements.double()
        return f"{str(value.dtype)[6:]} {value.device.type} {elements.tolist()}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(shown, value)) + "]"
    return repr(value)


def answer(call):
    """Returns what a call returns, or the error that it raises: its type, and the first line that says something."""
    try:
        return shown(call())
    except Exception as error:
        text = re.sub(r"^NCCL error.*?Last error:\n", "", str(error), flags=re.DOTALL)
        return f"{type(error).__name__}: {text.splitlines()[0]}"


def of(dtype):
    """Returns a rank's tensor of a dtype."""
    return (torch.tensor([1, 2, 3, 5]) + dist.get_rank()).to(dtype).cuda()


def reduction(name):
    return dist._make_nccl_premul_sum(2.0) if name == "PREMUL" else getattr(dist.ReduceOp, name)


def into(tensor, call, *args, **kwargs):
    """Calls a function that writes into a tensor, and returns that."""
    call(tensor, *args, **kwargs)
    return tensor


def like(tensor, times=1):
    return torch.zeros(len(tensor) * times, dtype=tensor.dtype, device="cuda")


def by_dtype(dtype):
    """Yields calls with a dtype that end whether NCCL has it or not."""
    t, name = of(dtype), str(dtype)[6:]
    for op in OPS:
        yield f"all_reduce {op} {name}", lambda op=op: into(t.clone(), dist.all_reduce, reduction(op))
    for op in ("SUM", "MAX", "AVG"):
        yield (
            f"reduce_scatter_tensor {op} {name}",
            lambda op=op: into(like(t)[:2], dist.reduce_scatter_tensor, t, reduction(op)),
        )
    yield f"all_gather {name}", lambda: into([like(t), like(t)], dist.all_gather, t)
    yield f"all_gather_into_tensor {name}", lambda: into(like(t, 2), dist.all_gather_into_tensor, t)
    yield f"broadcast {name}", lambda: into(t.clone(), dist.broadcast, 1)


def in_groups(dtype):
    """Yields calls with a dtype which NCCL begins before it looks at that."""
    t, name, rank = of(dtype), str(dtype)[6:], dist.get_rank()
    yield f"all_to_all_single {name}", lambda: into(like(t), dist.all_to_all_single, t)
    yield f"all_to_all {name}", lambda: into([like(t)[:2]] * 2, dist.all_to_all, [t[:2], t[2:]])
    yield f"scatter {name}", lambda: into(like(t), dist.scatter, [t, t] if rank == 0 else None)
    yield f"gather {name}", lambda: dist.gather(t, [like(t), like(t)] if rank == 0 else None)


def calls():
    """Yields the names of calls and the calls."""
    rank = dist.get_rank()
    peer, x, host = 1 - rank, torch.ones(4, device="cuda"), torch.ones(4)
    gaps, two = torch.ones(4, 4, device="cuda")[:, 0], [torch.zeros(4, device="cuda") for _ in range(2)]
    for dtype in DTYPES:
        yield from by_dtype(dtype)
    whole = torch.zeros(8, device="cuda")
    yield "host: all_reduce", lambda: dist.all_reduce(host)
    yield "host: broadcast", lambda: dist.broadcast(host, 0)
    yield "host: reduce", lambda: dist.reduce(host, 0)
    yield "host: all_gather", lambda: dist.all_gather([host, host], host)
    yield "host: all_gather_into_tensor", lambda: dist.all_gather_into_tensor(whole, host)
    yield "host: reduce_scatter_tensor", lambda: dist.reduce_scatter_tensor(x, torch.ones(8))
    yield "host: all_to_all_single", lambda: dist.all_to_all_single(x, host)
    yield "host: send", lambda: dist.send(host, peer)
    yield "host: object", lambda: dist.broadcast_object_list([1], device=torch.device("cpu"))
    yield "host: DistributedDataParallel", lambda: nn.parallel.DistributedDataParallel(nn.Linear(1, 1))
    yield "gaps: send", lambda: dist.send(gaps, peer)
    yield "gaps: all_reduce", lambda: dist.all_reduce(gaps)
    yield "gaps: all_gather_into_tensor", lambda: dist.all_gather_into_tensor(whole, gaps)
    for root in (-1, 2, 5):
        yield f"broadcast from {root}", lambda root=root: dist.broadcast(x, root)
        yield f"reduce to {root}", lambda root=root: dist.reduce(x, root)
    yield "all_gather_into_tensor of 7", lambda: dist.all_gather_into_tensor(whole[:7], x)
    yield "reduce_scatter_tensor of 7", lambda: dist.reduce_scatter_tensor(x, whole[:7])
    yield "all_gather into nothing", lambda: dist.all_gather([], x)
    yield "reduce_scatter other dtype", lambda: dist.reduce_scatter(x, [x.double(), x.double()])
    yield "all_gather other dtype", lambda: dist.all_gather([x.double(), x.double()], x)
    yield "scatter without a list", lambda: dist.scatter(x, None, rank)
    yield "scatter of one", lambda: dist.scatter(x, [x], rank)
    yield "scatter from another", lambda: dist.scatter(x, [x, x], peer)
    yield "gather without a list", lambda: dist.gather(x, None, rank)
    yield "gather into one", lambda: dist.gather(x, [x], rank)
    yield "gather at another", lambda: dist.gather(x, two, peer)
    yield "splits: sum", lambda: dist.all_to_all_single(x, x, [1, 2], [2, 2])
    yield "splits: one", lambda: dist.all_to_all_single(x, x, [4], [2, 2])
    yield "splits: none, 3", lambda: dist.all_to_all_single(x[:3], x[:3])
    yield "coalesced dtypes", lambda: dist.all_reduce_coalesced([x, x.double()])
    yield "coalesced gather", lambda: dist.all_gather_coalesced([[x], [x]], [x])
    yield "monitored_barrier", dist.monitored_barrier
    yield "batch of nothing", lambda: dist.batch_isend_irecv([])
    yield "batch of one", lambda: dist.batch_isend_irecv([1])
    yield "P2POp", lambda: dist.P2POp(dist.all_reduce, x, peer)
    yield "new_group of 3", lambda: dist.new_group([0, 1, 2])
    yield "init again", lambda: dist.init_process_group("nccl")
    yield "split_group", lambda: dist.split_group(split_ranks=[[0, 1]])
    yield "rank in group", lambda: dist.get_group_rank(dist.group.WORLD, 9)
    yield "works of a batch", lambda: batch(x, peer)
    yield "recv", lambda: dist.recv(x, peer) if rank else dist.send(x, peer)
    yield "future", lambda: dist.all_reduce(x.clone(), async_op=True).get_future().wait()
    yield "then", lambda: dist.all_reduce(x.clone(), async_op=True).get_future().then(lambda f: f.value()[0] * 3).wait()
    yield "uneven all_gather", lambda: into([x[:1].clone(), whole[:2].clone()], dist.all_gather, whole[: rank + 1] + 7)
    yield "coalesced", lambda: into([x.clone(), x[:3].clone()], dist.all_reduce_coalesced)
    yield "complex all_reduce MAX", lambda: dist.all_reduce(of(torch.complex64), dist.ReduceOp.MAX)
    yield "requires grad", lambda: into(torch.ones(2, device="cuda", requires_grad=True), dist.all_reduce)
    yield "backend", lambda: [dist.get_backend(), dist.get_backend_config(), dist.group.WORLD.name()]
    yield "config", lambda: fields(dist.ProcessGroupNCCL.NCCLConfig())
    yield "options", lambda: fields(dist.ProcessGroupNCCL.Options())
    yield "backend of the host", lambda: dist.group.WORLD._get_backend(torch.device("cpu"))
    yield "set_device cpu", lambda: torch.cuda.set_device("cpu")
    yield "set_device None", lambda: torch.cuda.set_device(None)
    yield "set_device -5", lambda: torch.cuda.set_device(-5)
    yield "properties of 99", lambda: torch.cuda.get_device_properties(99)
    yield "properties of the host", lambda: torch.cuda.get_device_properties("cpu")
    yield "priorities", lambda: [torch.cuda.Stream(priority=p).priority for p in (0, -1, -2, 5)]
    yield "from_dlpack", lambda: torch.from_dlpack(x)
    yield "is_shared", x.is_shared
    yield "product of dtypes", lambda: x[None] @ x[:, None].half()
    for name in ("send", "isend", "irecv", "recv"):
        yield f"{name} to itself", lambda name=name: getattr(dist, name)(x, rank)
    for dtype in (torch.int16, torch.uint64):
        yield from in_groups(dtype)


def fields(options):
    """Returns the values of attributes by their names."""
    names = [n for n in dir(options) if not n.startswith("_") and not callable(getattr(options, n))]
    return [[n, getattr(options, n)] for n in names if n != "config"]


def batch(x, peer):
    ops = [dist.P2POp(dist.isend, x, peer), dist.P2POp(dist.irecv, torch.zeros_like(x), peer)]
    return [work.wait() for work in dist.batch_isend_irecv(ops)]


def answers():
    """Returns what all calls answer, by their names, on this rank."""
    return {name: answer(call) for name, call in calls()}


if __name__ == "__main__":
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl", timeout=timedelta(seconds=60))
    found = answers()
    about = {"torch": torch.__version__, "nccl": torch.cuda.nccl.version(), "device": torch.cuda.get_device_name()}
    if dist.get_rank() == 0:
        with open(sys.argv[1], "w") as file:
            json.dump({"about": about, "answers": found}, file, indent=1)
    os._exit(0)  # what has been begun last does not end
