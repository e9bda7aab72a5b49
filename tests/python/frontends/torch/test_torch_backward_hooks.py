"""Where formulas of autograd make tensors, between hooks that calculate somewhere else."""

import itertools

import pytest
import torch

import torchemu

real = torchemu.distributed(world_size=1, torch="real")

PLACES = [("cuda", "cpu"), ("cpu", "cuda")]


class Elsewhere(torch.autograd.Function):
    """Goes on where it is told; its gradient comes back."""

    @staticmethod
    def forward(ctx, x, device):
        ctx.device = x.device
        return x.to(device)

    @staticmethod
    def backward(ctx, grad):
        return grad.to(ctx.device) + 0, None


def splits(hook):
    """The gradient of a tensor's parts, of which one is unused: autograd makes zeros for it."""

    def grad_of(device, other):
        x = torch.arange(6.0, device=device, requires_grad=True)
        first, _, last = x.split([1, 2, 3])
        hook(first, other), hook(last, other)
        ((first * 2).sum() + (last * last).sum()).backward()
        return x.grad

    return grad_of


def tensor_hook(x, other):
    x.register_hook(lambda grad: grad.to(other).add(1).sub(1).to(grad.device))


def later_hook(x, other):
    x.register_hook(lambda grad: (grad.to(other) + 1, None)[1])


def node_hook(x, other):

    x.grad_fn.register_prehook(lambda grads: (torch.zeros(3, device=other).add_(1), None)[1])


HOOKS = {"of tensors": tensor_hook, "that copy": later_hook, "of nodes": node_hook}


@pytest.mark.parametrize(("hook", "places"), list(itertools.product(HOOKS, PLACES)))
@real
def test_parts_that_are_unused(hook, places):
    grad = splits(HOOKS[hook])(*places)
    assert grad.device.type == places[0]
    assert grad.tolist() == [2, 0, 0, 6, 8, 10]


@pytest.mark.parametrize("places", PLACES)
@real
def test_parts_before_a_function_that_goes_elsewhere(places):
    device, other = places
    x = torch.arange(6.0, device=device, requires_grad=True)
    first, _, last = x.split([1, 2, 3])
    moved = Elsewhere.apply(last * last, other)
    moved.split([1, 2])[1].sum().backward()
    assert x.grad.device.type == device
    assert x.grad.tolist() == [0, 0, 0, 0, 8, 10]
    assert first.device.type == device
