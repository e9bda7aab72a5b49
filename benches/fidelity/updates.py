"""Times of what optimizers do to lists of tensors.

    python benches/fidelity/updates.py --record h200_updates.csv

has recorded on an H200 what h200_updates.csv has: each call alone on the device, without the host. Beside it, what the
preset predicts:

    torchemu run --torch real --no-data --topology h200_8 --nproc-per-node 1 benches/fidelity/updates.py
"""

from __future__ import annotations

import functools
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import torch
from layers import DTYPES, Call, record_or_compare

RECORDED = Path(__file__).with_name("h200_updates.csv")

_LISTS = (
    (1, 1 << 10), (1, 1 << 16), (1, 1 << 20), (1, 1 << 24), (1, 1 << 27), (16, 1 << 22), (64, 1 << 18), (148, 768),
    (148, 1 << 16), (400, 1 << 10), (400, 1 << 14), (1000, 64), (24, 2048 * 8192), (3, 12345), (77, 1 << 20),
)  # fmt: skip
"""Tensors, and the elements of each."""

_FOREACH = {
    "add": lambda x, y: torch._foreach_add_(x, y),
    "add 1": lambda x, _: torch._foreach_add_(x, 1.0),
    "mul": lambda x, y: torch._foreach_mul_(x, y),
    "mul 2": lambda x, _: torch._foreach_mul_(x, 2.0),
    "div": lambda x, y: torch._foreach_div_(x, y),
    "lerp": lambda x, y: torch._foreach_lerp_(x, y, 0.5),
    "addcmul": lambda x, y: torch._foreach_addcmul_(x, y, y, 0.5),
    "addcdiv": lambda x, y: torch._foreach_addcdiv_(x, y, y, 0.5),
    "sqrt": lambda x, _: torch._foreach_sqrt(x),
    "norm": lambda x, _: torch._foreach_norm(x),
    "zero": lambda x, _: torch._foreach_zero_(x),
    "copy": lambda x, y: torch._foreach_copy_(x, y),
}


def _drawn() -> list[tuple[int, int]]:
    """Returns lists of up to 2^28 elements, to which nothing is fitted."""
    draw, found = random.Random(225), []
    while len(found) < 25:
        tensors, elements = round(2 ** draw.uniform(0, 9)), round(2 ** draw.uniform(4, 26))
        if tensors * elements <= 1 << 28:
            found.append((tensors, elements))
    return found


def _calls(name: str, tensors: int, elements: int) -> Iterator[tuple[str, Call]]:
    """Yields updates of a list of tensors."""
    about, dtype = f"{name} {tensors} {elements}", DTYPES[name]

    def made(kind: torch.dtype = dtype) -> list[torch.Tensor]:
        return [torch.ones(elements, device="cuda", dtype=kind) for _ in range(tensors)]

    x, y, first, second = made(), made(), made(), made()
    steps = [torch.ones((), device="cuda") for _ in range(tensors)]
    rates = {"lr": 1e-3, "weight_decay": 0.01, "maximize": False}
    adam = {"beta1": 0.9, "beta2": 0.99, "eps": 1e-8, "amsgrad": False}
    yield (
        f"fused_adamw {about}",
        functools.partial(torch._fused_adamw_, x, y, first, second, [], steps, **rates, **adam),
    )
    momentum = {"momentum": 0.9, "dampening": 0.0, "nesterov": False, "is_first_step": False}
    yield f"fused_sgd {about}", functools.partial(torch._fused_sgd_, x, y, first, **rates, **momentum)
    for what, call in _FOREACH.items():
        yield f"{what} {about}", functools.partial(call, x, y)
    if dtype is not torch.float32:
        wide = made(torch.float32)
        yield f"copy from f32 {about}", functools.partial(torch._foreach_copy_, x, wide)
        yield f"copy to f32 {about}", functools.partial(torch._foreach_copy_, wide, x)


def times(timed: Callable[[Call], float]) -> Iterator[tuple[str, float]]:
    """Yields the name of each call, and its microseconds."""
    for name in DTYPES:
        for before, lists in (("", _LISTS), ("drawn ", _drawn())):
            for tensors, elements in lists:
                for what, call in _calls(name, tensors, elements):
                    yield before + what, timed(call)


if __name__ == "__main__":
    record_or_compare(__doc__, RECORDED, times)
