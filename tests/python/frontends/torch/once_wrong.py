"""A program whose functions show what torchemu once had wrong, on plain PyTorch and on either front end.

Prints a line of JSON for each: its name, and its values or its error.
"""

import copy
import importlib.metadata
import json
import os
import pickle

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional

NAN = float("nan")


def uint8_interpolation():
    image = torch.arange(16, dtype=torch.uint8).reshape(1, 1, 4, 4) * 10
    return [functional.interpolate(image, size=(3, 6), mode=mode) for mode in ("nearest", "bilinear", "bicubic")]


def cosine_similarity_broadcasts_what_it_reduces():
    a, b = torch.tensor([[1.0], [2.0], [-3.0]]), torch.arange(15.0).reshape(3, 5)
    return (
        functional.cosine_similarity(a, b, dim=1),
        functional.cosine_similarity(b, a, dim=1),
        functional.cosine_similarity(a, b[:1], dim=0),
    )


def medians_of_nan():
    x = torch.tensor([[1.0, NAN, 3.0], [5.0, 4.0, 6.0]])
    values, places = x.median(dim=1)
    return x.median(), torch.median(x[1]), values, places, x.nanmedian()


def batch_norm_of_nothing():
    layer = nn.BatchNorm1d(3)
    layer(torch.arange(6.0).reshape(2, 3))
    try:
        out = layer(torch.zeros(0, 3)).shape
    except ValueError as error:
        out = str(error)
    return out, layer.running_mean, layer.running_var, layer.num_batches_tracked


def block_diag_of_dtypes():
    whole, odd = torch.tensor([[1, 2], [3, 4]]), torch.tensor([0.5, 1.5])
    return torch.block_diag(whole, odd), torch.block_diag(torch.tensor(7), odd, whole), torch.block_diag(whole, whole)


def complex_gradients():
    found = []
    for function in (lambda x: torch.linalg.slogdet(x)[1], lambda x: torch.logdet(x).real, lambda x: qr_norm(x)):
        x = torch.tensor([[2 + 1j, 0.5], [1 - 1j, 3 + 0.25j]], requires_grad=True)
        function(x).backward()
        found.append(torch.view_as_real(x.grad))
    return found


def qr_norm(x):
    q, r = torch.linalg.qr(x)
    return (r.abs() ** 3).sum() + (q * r).abs().sum()


def views_share_memory():
    views = [
        lambda x: +x,
        lambda x: torch.einsum("ij->ji", x),
        lambda x: torch.einsum("...j->j...", x),
        lambda x: torch.einsum("i...", x),
        lambda x: torch.einsum("b a", x),
    ]
    return [aliases(view) for view in views]


def positives_share_memory():
    return aliases(lambda x: x.positive())


def aliases(function):
    x = torch.arange(6.0).reshape(2, 3)
    view = function(x)
    view[(0,) * view.dim()] = 9.0
    return x[0, 0].item() == 9.0, list(view.stride())


def moves_keep_strides():
    x = torch.arange(6.0).reshape(2, 3).t()
    there = x.to("cuda") if torch.cuda.is_available() else x.clone()
    return there.stride(), there.tolist(), there.cpu().stride(), x.to(torch.float64).stride()


def dropped_and_filled_with_gaps():
    torch.manual_seed(3)
    wide = torch.zeros(4, 6)
    wide[:, ::2].uniform_()
    turned = torch.ones(3, 4).t()
    return wide, functional.dropout(turned), functional.dropout(torch.ones(4, 6)[:, ::3], 0.3)


def random_halves():
    torch.manual_seed(4)
    halves = [f(5, dtype=d) for f in (torch.rand, torch.randn) for d in (torch.float16, torch.bfloat16)]
    halves += [torch.empty(3, 3, dtype=torch.bfloat16).uniform_(-2, 3), torch.empty(20, dtype=torch.float16).normal_()]
    return [t.float() for t in (*halves, *nn.Linear(2, 3, dtype=torch.bfloat16).parameters())]


def initial_weights():
    torch.manual_seed(5)
    layers = nn.Linear(3, 5), nn.Embedding(4, 3), nn.Linear(30, 40)
    return [p.detach() for layer in layers for p in layer.parameters()]


def initial_weights_of_others():
    torch.manual_seed(6)
    layers = nn.Conv2d(2, 3, 3), nn.GRU(3, 4), nn.MultiheadAttention(4, 2), nn.Bilinear(2, 3, 2)
    return [p.detach() for layer in layers for p in layer.parameters()]


def host_draws_beside_a_device():
    torch.manual_seed(7)
    first = torch.rand(2)
    if torch.cuda.is_available():
        torch.rand(5, device="cuda")
    return first, torch.rand(2)


def dropout2d_of_two_dimensions():
    torch.manual_seed(8)
    return functional.dropout2d(torch.ones(3, 4)), functional.dropout2d(torch.ones(2, 3, 2, 2))


def flips():
    x = torch.arange(6.0).reshape(2, 3)
    return x.flip(dims=(0, 1)), torch.flip(x, dims=[1]), x.flip(0), x.flip((-1,))


def aliases_of_parameters():
    x = torch.arange(6.0).reshape(2, 3)
    return [
        x.sum(axis=1, keepdims=True),
        x.mean(axis=0),
        torch.amax(x, axis=1, keepdims=True),
        x.argmax(axis=1, keepdims=True),
        torch.cat((x, x), axis=1),
        torch.stack((x, x), axis=0),
        x.permute(dims=(1, 0)),
        x.unsqueeze(dim=0),
        x.any(axis=0, keepdims=True),
        x.var(axis=1, keepdims=True),
        torch.max(x, axis=1, keepdims=True)[0],
        x.prod(axis=1),
        x.cumsum(axis=1),
        x.norm(dim=1, keepdim=True),
        torch.logsumexp(x, axis=1, keepdims=True),
    ]


class Halving(torch.optim.Optimizer):
    """Has no state of the base class's."""

    def __init__(self, params):
        self.param_groups, self.state, self.defaults = [{"params": list(params)}], {}, {}

    def step(self):
        with torch.no_grad():
            for p in self.param_groups[0]["params"]:
                p.mul_(0.5)


def optimizers_without_a_beginning():
    weight = nn.Parameter(torch.tensor([4.0, 2.0]))
    optimizer = Halving([weight])
    (weight * 3).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
    return weight.detach(), weight.grad is None


def version_of_torch():
    return str(torch.__version__).startswith(importlib.metadata.version("torch"))


def modules_of_pickled_classes():
    names = "Linear Embedding LayerNorm Dropout ReLU GELU Sequential ModuleList ModuleDict CrossEntropyLoss MSELoss"
    names += " Conv2d GRU BatchNorm1d SyncBatchNorm MultiheadAttention Transformer Tanh Sigmoid Identity RMSNorm"
    found = {name: attempted(lambda name=name: getattr(nn, name).__module__) for name in names.split()}
    layer = pickle.loads(pickle.dumps(nn.Linear(2, 2)))
    return *found.values(), type(layer) is nn.Linear, type(copy.deepcopy(nn.ReLU())).__module__


def gloo_gathers_equal_shapes():
    out = [torch.zeros(2, 2) for _ in range(dist.get_world_size())]
    return [gathered([*out[:-1], torch.zeros(4)]), gathered([torch.zeros(1, 4), *out[1:]]), gathered(out)]


def gathered(out):
    return attempted(lambda: dist.all_gather(out, torch.full((2, 2), dist.get_rank() + 1.0))), out


def a_replica_with_an_output_that_no_loss_uses():
    torch.manual_seed(9)
    shared, left = nn.Linear(2, 2), nn.Linear(2, 2)

    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.shared, self.left = shared, left

        def forward(self, x):
            y = self.shared(x)
            return y.sum(), (y * 2).sum(), self.left(x).sum()

    model = nn.parallel.DistributedDataParallel(Two(), find_unused_parameters=True)
    found = []
    for _ in range(2):
        model.zero_grad()
        model(torch.full((1, 2), dist.get_rank() + 1.0))[0].backward()
        found += [shared.weight.grad.clone(), left.weight.grad is None or left.weight.grad.abs().sum().item()]
    return found


def groups_of_groups():
    world = dist.get_world_size()
    half = dist.new_group(list(range(world // 2)))
    outside = dist.get_rank() >= world // 2
    found = []
    group, groups = dist.new_subgroups(1, group=dist.group.WORLD)
    x = torch.ones(1)
    dist.all_reduce(x, group=group)
    found += [len(groups), dist.get_process_group_ranks(group), x.item()]
    if not outside:
        found.append(dist.get_process_group_ranks(half))
    return found


def attempted(function):
    try:
        return function()
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def written(value):
    """Returns what JSON has of a value."""
    if isinstance(value, torch.Tensor):
        return [str(value.dtype), list(value.shape), value.tolist()]
    if isinstance(value, (list, tuple)):
        return [written(v) for v in value]
    return value if isinstance(value, (bool, int, float, str, type(None))) else str(value)


ALONE = [
    uint8_interpolation,
    cosine_similarity_broadcasts_what_it_reduces,
    medians_of_nan,
    batch_norm_of_nothing,
    block_diag_of_dtypes,
    complex_gradients,
    views_share_memory,
    positives_share_memory,
    moves_keep_strides,
    dropped_and_filled_with_gaps,
    random_halves,
    initial_weights,
    initial_weights_of_others,
    host_draws_beside_a_device,
    dropout2d_of_two_dimensions,
    flips,
    aliases_of_parameters,
    optimizers_without_a_beginning,
    version_of_torch,
    modules_of_pickled_classes,
]
TOGETHER = [gloo_gathers_equal_shapes, a_replica_with_an_output_that_no_loss_uses, groups_of_groups]

if __name__ == "__main__":
    together = "RANK" in os.environ and int(os.environ["WORLD_SIZE"]) > 1
    if together:
        dist.init_process_group("gloo")
    for function in TOGETHER if together else ALONE:
        print(
            json.dumps([function.__name__, dist.get_rank() if together else 0, written(attempted(function))]),
            flush=True,
        )
    if together:
        dist.destroy_process_group()
