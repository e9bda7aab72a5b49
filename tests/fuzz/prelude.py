import contextlib
import math
import os

import torch
import torch.distributed as dist
from torch.distributed import distributed_c10d

ON_DEVICES = False  # the line that a script of devices has otherwise

rank, carry, kept = int(os.environ["RANK"]), 0, []
device = "cuda" if ON_DEVICES and torch.cuda.is_available() else "cpu"
if device == "cuda":
    torch.cuda.set_device(rank)
    streams = [torch.cuda.Stream() for _ in range(2)]


def data(dtype, shape, layout, salt):
    """Returns small integers, which every order of reducing them reduces to the same bits."""
    numbers = (torch.arange(math.prod(shape)) * (1 + salt % 5) + rank * 3 + salt + carry) % 4
    if dtype == "complex64":
        numbers = torch.tensor([number * (1 + 2j) for number in numbers.tolist()], dtype=torch.complex64)
    return laid(numbers.to(getattr(torch, dtype)).reshape(shape).to(device), layout)


def blank(dtype, shape, layout):
    return laid(torch.zeros(shape, dtype=getattr(torch, dtype), device=device), layout)


def laid(tensor, layout):
    """Returns a tensor with the same elements, which is a part of another one: that is kept, too."""
    if layout == "transposed" and tensor.dim() == 2:
        return tensor.t().contiguous().t()
    if layout not in ("offset", "stepped") or not tensor.dim():
        return tensor
    shape = list(tensor.shape)
    if layout == "offset":
        around = torch.zeros([shape[0] + 1, *shape[1:]], dtype=tensor.dtype, device=device)
        part = around[1:]
    else:
        around = torch.zeros([*shape[:-1], 2 * shape[-1]], dtype=tensor.dtype, device=device)
        part = around[..., ::2]
    part.copy_(tensor)
    kept.append(("around", around))
    return part


def thing(salt):
    """Returns an object of another size on each rank."""
    return {"rank": rank, "salt": salt, "list": [None, 1.5, "é" * (rank + salt % 3)], "carry": carry}


def keep(step, got):
    """Notes what a step has got: a tensor, an object, or a list of such."""
    kept.append((step, got))


def feed(got):
    """Makes what follows depend on what a step has got."""
    global carry
    if isinstance(got, torch.Tensor) and got.dtype is not torch.complex64:
        carry = (carry + int(got.double().sum().item())) % 5


def premul(tensor, factor):
    """Returns the operation that multiplies numbers before it sums them; gloo has none, and gets them multiplied."""
    if device == "cuda":
        return dist._make_nccl_premul_sum(factor)
    tensor.mul_(factor)
    return dist.ReduceOp.SUM


class Works:
    """Several works, as one."""

    def __init__(self, works):
        self.works = works

    def wait(self):
        for work in self.works:
            work.wait()


@contextlib.contextmanager
def on(number):
    """Issues what is inside on a side stream, after what the current stream has been given, and before what it will
    be."""
    if device == "cpu":
        yield
        return
    streams[number].wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(streams[number]):
        yield
    torch.cuda.current_stream().wait_stream(streams[number])


def results():
    """Returns what was kept, as text: of tensors the dtype, the shape and the elements."""
    texts = []
    for step, got in kept:
        for each in got if isinstance(got, list) else [got]:
            if isinstance(each, torch.Tensor):
                texts.append([step, str(each.dtype), list(each.shape), repr(each.cpu().reshape(-1).tolist())])
            else:
                texts.append([step, repr(each)])
    return texts


dist.init_process_group("nccl" if device == "cuda" else "gloo")
store = distributed_c10d._get_default_store()
