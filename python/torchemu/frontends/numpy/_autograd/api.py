"""torch.autograd.backward and grad: what programs start backward passes with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torchemu.frontends.numpy._absent import missing
from torchemu.frontends.numpy._autograd.engine import Wanted, backward_pass, expected, fitting
from torchemu.frontends.numpy._autograd.variable import Edge, edge_of, meta_of
from torchemu.frontends.numpy._tensor.core import Tensor

_UNUSED = (
    "One of the differentiated Tensors appears to not have been used in the graph. Set allow_unused=True if this is "
    "the desired behavior."
)


def as_tuple(given: Any) -> tuple[Any, ...]:
    """One tensor, or None, or a sequence of them, as a tuple."""
    return tuple(given) if isinstance(given, Sequence) else (given,)


def _initial(t: Tensor, grad: Any) -> Tensor:
    """The gradient that a pass starts with.

    Raises:
        RuntimeError: none is given though the tensor has several elements, or one of another shape.
    """
    if grad is None:
        if t.numel() != 1:
            raise RuntimeError("grad can be implicitly created only for scalar outputs")
        if not t.dtype.is_floating_point:
            raise RuntimeError(f"grad can be implicitly created only for real scalar outputs but got {t.dtype!r}")
        return t.new_ones(t._shape)
    if not isinstance(grad, Tensor):
        raise TypeError(f"gradients can be either Tensors or None, but got {type(grad).__name__}")
    return grad


def _check_shape(t: Tensor, grad: Tensor, at: int) -> None:
    if grad._shape != t._shape:
        raise RuntimeError(
            f"Mismatch in shape: grad_output[{at}] has a shape of {grad.shape} and output[{at}] has a shape of "
            f"{t.shape}."
        )


def _roots(tensors: Sequence[Tensor], grads: Sequence[Any]) -> list[tuple[Edge, Tensor]]:
    roots = []
    for i, (t, given) in enumerate(zip(tensors, grads, strict=True)):
        edge = edge_of(t)
        if edge is None:
            raise RuntimeError(f"element {i} of tensors does not require grad and does not have a grad_fn")
        grad = _initial(t, given)
        if given is not None:
            _check_shape(t, grad, i)
        roots.append((edge, fitting(grad, expected(edge), edge.node, i)))
    return roots


def _run(
    roots: list[tuple[Edge, Tensor]], keep: bool, inputs: Sequence[Tensor], unused: bool, accumulate: bool
) -> tuple[Tensor | None, ...]:
    if not inputs:
        backward_pass(roots, keep)
        return ()
    edges = []
    for t in inputs:
        edge = edge_of(t)
        if edge is None:
            raise RuntimeError("One of the differentiated Tensors does not require grad")
        edges.append(edge)
    wanted = Wanted(edges, accumulate)
    backward_pass(roots, keep, wanted)
    found = tuple([wanted.found.get(edge) for edge in edges])
    if not unused and any(grad is None for grad in found):
        raise RuntimeError(_UNUSED)
    return found


def _check_once(function: str, create_graph: bool) -> None:
    """Raises:
    NotImplementedError: gradients of gradients are wanted.
    """
    if create_graph:
        raise NotImplementedError(missing(f"torch.autograd.{function}(create_graph=True)"))


def backward(
    tensors: Any,
    grad_tensors: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    grad_variables: Any = None,
    inputs: Any = None,
) -> None:
    """Adds the gradients of the tensors, with respect to the leaves that they were made from, to the leaves' grad.

    Args:
        tensors: a tensor, or several.
        grad_tensors: the gradient of each; None where the tensor has a single element: 1.
        retain_graph: whether another pass may follow.
        create_graph: must be False: gradients of gradients are not recorded.
        grad_variables: an old name of grad_tensors.
        inputs: the tensors to whose grad gradients are added; None: all leaves.

    Raises:
        RuntimeError: a tensor requires no gradient, has several elements and no gradient, or has been gone through
            before.
    """
    given = as_tuple(tensors)
    if inputs is not None and not isinstance(inputs, Tensor) and not len(inputs):
        raise RuntimeError("`inputs` argument to `backward()` cannot be empty.")
    wanted = () if inputs is None else as_tuple(inputs)
    for t in wanted:
        retain_grad(t)
    grads = grad_variables if grad_tensors is None else grad_tensors
    grads = (None,) * len(given) if grads is None else as_tuple(grads)
    if len(grads) != len(given):
        raise RuntimeError(f"got {len(given)} tensors and {len(grads)} gradients")
    _check_once("backward", create_graph)
    _run(_roots(given, grads), bool(retain_graph), wanted, True, True)


def grad(
    outputs: Any,
    inputs: Any,
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Tensor | None, ...]:
    """The gradients of the outputs with respect to the inputs; nothing is added to any grad.

    Args:
        outputs: a tensor, or several, whose gradients are added up.
        inputs: a tensor, or several.
        grad_outputs: the gradient of each output; None where it has a single element: 1.
        retain_graph: whether another pass may follow.
        create_graph: must be False: gradients of gradients are not recorded.
        only_inputs: must be True.
        allow_unused: an input may have nothing to do with the outputs, and then None as gradient; None: if
            materialize_grads.
        is_grads_batched: must be False.
        materialize_grads: gives zeros instead of None.

    Raises:
        RuntimeError: as backward; or an input has nothing to do with the outputs.
    """
    if materialize_grads and allow_unused is False:
        raise ValueError("Expected allow_unused to be True or not passed when materialize_grads=True, but got: False.")
    if is_grads_batched:
        raise NotImplementedError("grad(is_grads_batched=True) is not supported: call grad once for each of the batch")
    results, sources = as_tuple(outputs), as_tuple(inputs)
    given = (None,) * len(results) if grad_outputs is None else as_tuple(grad_outputs)
    _check_once("grad", create_graph)
    unused = materialize_grads if allow_unused is None else allow_unused
    found = _run(_roots(results, given), bool(retain_graph), sources, unused, False)
    if not materialize_grads:
        return found
    return tuple([t.new_zeros(t._shape) if g is None else g for t, g in zip(sources, found, strict=True)])


def retain_grad(t: Tensor) -> None:
    """Tensor.retain_grad: from now on backward passes leave the gradient in grad though the tensor is no leaf.

    Raises:
        RuntimeError: the tensor requires no gradient.
    """
    edge = edge_of(t)
    if edge is None:
        raise RuntimeError("can't retain_grad on Tensor that has requires_grad=False")
    meta = meta_of(t)
    if meta.node is not None and not meta.retains:
        meta.retains = True
        edge.node.retain(edge.output, t)
