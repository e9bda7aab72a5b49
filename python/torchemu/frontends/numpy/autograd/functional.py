"""torch.autograd.functional: Jacobians and Hessians of functions, and their products with vectors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from torchemu.frontends.numpy._autograd import api
from torchemu.frontends.numpy._grad_mode import enable_grad
from torchemu.frontends.numpy._tensor.core import Tensor
from torchemu.frontends.numpy._tensor.creation import ones_like, zeros_like
from torchemu.frontends.numpy._tensor.joining import stack

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]

Tensors = tuple[Tensor, ...]


def _tuple(values: Any, argument: str, function: str) -> tuple[bool, Tensors]:
    """Whether it was a tuple, and a tuple of tensors.

    Raises:
        TypeError: there is something else.
    """
    several = isinstance(values, tuple)
    given = values if several else (values,)
    for number, value in enumerate(given):
        if not isinstance(value, Tensor):
            of_function = " of the user-provided function" if argument == "outputs" else ""
            which = f"the value at index {number}" if several else f"the given {argument}{of_function}"
            raise TypeError(
                f"The {argument}{of_function} given to {function} must be either a Tensor or a tuple of Tensors but "
                f"{which} has type {type(value)}."
            )
    return several, given


def _leaves(inputs: Tensors, create_graph: bool) -> Tensors:
    """The inputs, so that gradients are recorded for them; what they come from is known only with create_graph."""
    if create_graph:
        return tuple(t.view_as(t) if t.requires_grad else t.detach().requires_grad_() for t in inputs)
    return tuple(t.detach().requires_grad_() for t in inputs)


def _given(values: Any, several: bool) -> Any:
    return tuple(values) if several else values[0]


def _gradients(
    outputs: Sequence[Tensor], inputs: Tensors, vectors: Any, create_graph: bool, strict: bool
) -> list[Tensor]:
    """Of the outputs that depend on something; zeros for inputs that they do not depend on.

    Raises:
        RuntimeError: strict, and there are such.
    """
    weights = [None] * len(outputs) if vectors is None else list(vectors)
    pairs = [(o, w) for o, w in zip(outputs, weights, strict=True) if o.requires_grad]
    if strict and len(pairs) < len(outputs):
        at = next(i for i, o in enumerate(outputs) if not o.requires_grad)
        raise RuntimeError(
            f"Output {at} of the user-provided function does not require gradients. The outputs must be computed in a "
            "differentiable manner from the input when running in strict mode."
        )
    if not pairs:
        return [zeros_like(t) for t in inputs]
    found = api.grad(
        [o for o, _ in pairs],
        list(inputs),
        None if vectors is None else [w for _, w in pairs],
        retain_graph=True,
        create_graph=create_graph,
        allow_unused=True,
    )
    if strict and any(g is None for g in found):
        at = next(i for i, g in enumerate(found) if g is None)
        raise RuntimeError(
            f"Output 0 of the user-provided function is independent of input {at}. This is not allowed in strict mode."
        )
    return [zeros_like(t) if g is None else g for g, t in zip(found, inputs, strict=True)]


def _finished(values: Sequence[Tensor], create_graph: bool) -> list[Tensor]:
    return [t if create_graph else t.detach() for t in values]


def jacobian(
    func: Callable[..., Any],
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any:
    """The Jacobian of a function: of each output by each input, (output's shape, input's shape).

    Args:
        func: of tensors, which returns a tensor or a tuple of such.
        inputs: a tensor or a tuple of such.
        create_graph: gradients go through the result.
        strict: what does not depend on an input is an error; else its derivative is 0.
        vectorize: means nothing.
        strategy: "reverse-mode".

    Returns:
        A tensor, or tuples of them: of outputs, of inputs.

    Raises:
        TypeError: no tensors. RuntimeError: strict. NotImplementedError: another strategy.
    """
    if strategy != "reverse-mode":
        raise NotImplementedError(f"torch.autograd.functional.jacobian(strategy={strategy!r}) is not supported")
    several, given = _tuple(inputs, "inputs", "jacobian")
    with enable_grad():
        leaves = _leaves(given, create_graph)
        many, outputs = _tuple(func(*leaves), "outputs", "jacobian")
        found = [_given(_rows(out, leaves, create_graph, strict), several) for out in outputs]
    return _given(found, many)


def _rows(output: Tensor, leaves: Tensors, create_graph: bool, strict: bool) -> list[Tensor]:
    """The derivatives of one output by all inputs, element by element."""
    flat = output.reshape(-1)
    if not flat.numel():
        return [leaf.new_zeros((*output._shape, *leaf._shape)) for leaf in leaves]
    rows = [_gradients([flat[i]], leaves, None, create_graph, strict) for i in range(flat.numel())]
    stacked = [stack(list(column)) for column in zip(*rows, strict=True)]
    shaped = [t.reshape(*output._shape, *leaf._shape) for t, leaf in zip(stacked, leaves, strict=True)]
    return _finished(shaped, create_graph)


def _scalar(func: Callable[..., Any], function: str) -> Callable[..., Tensor]:
    """The function, which is to return one number.

    Raises:
        RuntimeError: it returns more.
    """

    def call(*args: Tensor) -> Tensor:
        several, (value, *_) = _tuple(func(*args), "outputs", function)
        if several or value.numel() != 1:
            raise RuntimeError(
                f"The {'tuple' if several else 'Tensor'} returned by the function given to {function} should contain a "
                "single element"
            )
        return value.reshape(()) if value.dim() else value

    return call


def hessian(
    func: Callable[..., Any],
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:
    """The second derivatives of a function that returns one number; the arguments are those of jacobian."""
    several, given = _tuple(inputs, "inputs", "hessian")
    number = _scalar(func, "hessian")

    def slopes(*args: Tensor) -> Any:
        return tuple(_gradients([number(*args)], args, None, True, strict))

    found = jacobian(slopes, given, create_graph, strict, vectorize, outer_jacobian_strategy)
    return found if several else found[0][0]


def _vectors(v: Any, like: Tensors, argument: str, function: str) -> list[Tensor]:
    """The vectors that are given, or 1 for a single element.

    Raises:
        RuntimeError: none are given for more, or of other shapes.
    """
    if v is None:
        if len(like) != 1 or like[0].numel() != 1:
            of = (
                "the user-provided function returns"
                if argument == "outputs"
                else "the input to the user-provided function is"
            )
            raise RuntimeError(f"The vector v can only be None if {of} a single Tensor with a single element.")
        return [ones_like(like[0])]
    _, given = _tuple(v, "v", function)
    if len(given) != len(like):
        raise RuntimeError(f"v is a tuple of invalid length: should be {len(like)} but got {len(given)}.")
    for number, (vector, t) in enumerate(zip(given, like, strict=True)):
        if vector._shape != t._shape:
            entry = f"Entry {number} in " if len(like) > 1 else ""
            raise RuntimeError(f"{entry}v has invalid size: should be {t.size()} but got {vector.size()}.")
    return list(given)


def vjp(
    func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """What a function returns, and a vector times its Jacobian.

    Args:
        func, inputs, create_graph, strict: those of jacobian.
        v: as what the function returns; None: 1.
    """
    several, given = _tuple(inputs, "inputs", "vjp")
    with enable_grad():
        leaves = _leaves(given, create_graph)
        many, outputs = _tuple(func(*leaves), "outputs", "vjp")
        found = _gradients(outputs, leaves, _vectors(v, outputs, "outputs", "vjp"), create_graph, strict)
    return _given(_finished(outputs, create_graph), many), _given(_finished(found, create_graph), several)


def jvp(
    func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """What a function returns, and its Jacobian times a vector: the derivative of vjp by its vector.

    Args:
        func, inputs, create_graph, strict: those of jacobian.
        v: as the inputs; None: 1.
    """
    _, given = _tuple(inputs, "inputs", "jvp")
    vectors = _vectors(v, given, "inputs", "jvp")
    with enable_grad():
        leaves = _leaves(given, create_graph)
        many, outputs = _tuple(func(*leaves), "outputs", "jvp")
        duals = tuple(zeros_like(out).requires_grad_() for out in outputs)
        slopes = _gradients(outputs, leaves, duals, True, strict)
        found = _gradients(slopes, duals, vectors, create_graph, False)
    return _given(_finished(outputs, create_graph), many), _given(_finished(found, create_graph), many)


def vhp(
    func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """What a function that returns one number returns, and a vector times its second derivatives.

    Args:
        func, inputs, create_graph, strict: those of hessian.
        v: as the inputs; None: 1.
    """
    return _hessian_product("vhp", func, inputs, v, create_graph, strict)


def hvp(
    func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """What a function that returns one number returns, and its second derivatives times a vector: as vhp, for they are
    symmetric."""
    return _hessian_product("hvp", func, inputs, v, create_graph, strict)


def _hessian_product(
    name: str, func: Callable[..., Any], inputs: Any, v: Any, create_graph: bool, strict: bool
) -> tuple[Any, Any]:
    several, given = _tuple(inputs, "inputs", name)
    vectors = _vectors(v, given, "inputs", name)
    with enable_grad():
        leaves = _leaves(given, create_graph)
        value = _scalar(func, name)(*leaves)
        slopes = _gradients([value], leaves, None, True, strict)
        found = _gradients(slopes, leaves, vectors, create_graph, strict)
    return _finished([value], create_graph)[0], _given(_finished(found, create_graph), several)
