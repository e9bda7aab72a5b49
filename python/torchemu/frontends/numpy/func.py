"""torch.func: functions of functions: gradients and Jacobians, and modules as functions of their parameters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from torchemu.frontends.numpy._autograd import api
from torchemu.frontends.numpy._grad_mode import enable_grad
from torchemu.frontends.numpy._tensor.core import Tensor
from torchemu.frontends.numpy._tensor.joining import stack
from torchemu.frontends.numpy.nn.modules.module import Module
from torchemu.frontends.numpy.nn.utils import stateless
from torchemu.frontends.numpy.utils import _pytree as pytree
from torchemu.unsupported import unsupported_function

__all__ = [
    "functional_call",
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "linearize",
    "stack_module_state",
    "vjp",
    "vmap",
]


def functional_call(
    module: Module,
    parameter_and_buffer_dicts: Any,
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """What a module returns with other parameters and buffers; see torch.nn.utils.stateless."""
    options = {"tie_weights": tie_weights, "strict": strict}
    return stateless.functional_call(module, parameter_and_buffer_dicts, args, kwargs, **options)


_INSTEAD = "only reverse mode is there, and no batching: use grad, vjp, jacrev or hessian, and loops"
jvp, jacfwd, linearize, vmap = (
    unsupported_function(f"torch.func.{name}", _INSTEAD) for name in ("jvp", "jacfwd", "linearize", "vmap")
)


def stack_module_state(models: Sequence[Module]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The parameters and the buffers of modules of one kind, each stacked.

    Raises:
        RuntimeError: no modules, or of several kinds or modes.
    """
    given = list(models)
    if not given:
        raise RuntimeError("stack_module_state: Expected at least one model, got 0.")
    if any(m.training != given[0].training for m in given):
        raise RuntimeError("stack_module_state: Expected all models to have the same training/eval mode.")
    if any(type(m) is not type(given[0]) for m in given):
        raise RuntimeError("stack_module_state: Expected all models to be of the same class.")
    params, buffers = ([dict(getattr(m, f"named_{kind}")()) for m in given] for kind in ("parameters", "buffers"))
    return (
        {name: stack([p[name].detach() for p in params]).requires_grad_() for name in params[0]},
        {name: stack([b[name] for b in buffers]) for name in buffers[0]},
    )


def _chosen(args: tuple[Any, ...], argnums: int | tuple[int, ...]) -> tuple[list[Any], list[Tensor], Any]:
    """The arguments, in those that are chosen fresh leaves; these leaves; and their tree.

    Raises:
        RuntimeError: there is no argument of such a number. ValueError: one has something else than tensors.
    """
    numbers = (argnums,) if isinstance(argnums, int) else tuple(argnums)
    given = list(args)
    for n in numbers:
        if not -len(args) <= n < len(args):
            raise RuntimeError(f"Got argnum={n}, but only {len(args)} positional inputs")
        for leaf in pytree.tree_leaves(args[n]):
            if not isinstance(leaf, Tensor):
                raise ValueError(f"Thing passed to transform API must be Tensor, got {type(leaf)}")
    trees = tuple(
        pytree.tree_map_only(
            Tensor, lambda t: t.view_as(t) if t.requires_grad else t.detach().requires_grad_(), args[n]
        )
        for n in numbers
    )
    for number, tree in zip(numbers, trees, strict=True):
        given[number] = tree
    tree = trees[0] if isinstance(argnums, int) else trees
    return given, pytree.tree_leaves(tree), tree


def _grads(
    outputs: Sequence[Tensor], leaves: Sequence[Tensor], grads: Sequence[Any] | None, again: bool, retain: bool = True
) -> Any:
    """The gradients of outputs by leaves, of which None is of what the outputs do not depend on."""
    wanted = [None] * len(outputs) if grads is None else grads
    pairs = [(t, grad) for t, grad in zip(outputs, wanted, strict=True) if t.requires_grad]
    if not pairs:
        return [None] * len(leaves)
    some, of_them = zip(*pairs, strict=True)
    return api.grad(some, leaves, of_them, retain_graph=retain or again, create_graph=again, allow_unused=True)


def _like(tree: Any, grads: Sequence[Any]) -> Any:
    """The gradients in a tree's places; zeros where there are none."""
    leaves, spec = pytree.tree_flatten(tree)
    found = iter(grads)
    filled = [(lambda g, t: t.new_zeros(t._shape) if g is None else g)(next(found), t) for t in leaves]
    return spec.unflatten(filled)


def grad_and_value(
    func: Callable[..., Any], argnums: int | tuple[int, ...] = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """A function that returns the gradients of func by arguments, and what func returns.

    Args:
        func: returns a tensor of one element; with has_aux a pair of that and anything.
        argnums: by which arguments; each a tree of tensors.
        has_aux: as above; the rest is then returned with the value, as a pair.
    """

    def call(*args: Any, **kwargs: Any) -> Any:
        with enable_grad():
            given, leaves, tree = _chosen(args, argnums)
            result = func(*given, **kwargs)
            value, aux = result if has_aux else (result, None)
            if not isinstance(value, Tensor) or value.numel() != 1 or value.dim():
                raise RuntimeError(
                    "grad_and_value(f)(*args): Expected f(*args) to return a scalar Tensor, got "
                    f"{f'tensor with {value.dim()} dims' if isinstance(value, Tensor) else type(value)}. Maybe you "
                    "wanted to use the vjp or jacrev APIs instead?"
                )
            grads = _grads([value], leaves, None, _outer(args))
        value = value if _outer(args) else value.detach()
        return _like(tree, grads), ((value, aux) if has_aux else value)

    return call


def _outer(args: Any) -> bool:
    """Whether somebody wants gradients of the result: it is a function of leaves of theirs."""
    return any(isinstance(t, Tensor) and t.requires_grad for t in pytree.tree_leaves(args))


def grad(func: Callable[..., Any], argnums: int | tuple[int, ...] = 0, has_aux: bool = False) -> Callable[..., Any]:
    """A function that returns the gradients of func by arguments; with has_aux a pair of them and the rest."""

    def call(*args: Any, **kwargs: Any) -> Any:
        grads, value = grad_and_value(func, argnums, has_aux)(*args, **kwargs)
        return (grads, value[1]) if has_aux else grads

    return call


def vjp(func: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """What func returns, and a function that multiplies vectors by its Jacobian; with has_aux also the rest."""
    with enable_grad():
        given, leaves, tree = _chosen(primals, tuple(range(len(primals))))
        result = func(*given)
        value, aux = result if has_aux else (result, None)
    outputs = pytree.tree_leaves(value)

    def product(cotangents: Any, retain_graph: bool = True, create_graph: bool | None = None) -> Any:
        wanted = pytree.tree_leaves(cotangents)
        again = _outer(primals) if create_graph is None else create_graph
        with enable_grad():
            grads = _grads(outputs, leaves, wanted, again, retain_graph)
        return _like(tree, grads)

    shown = value if _outer(primals) else pytree.tree_map_only(Tensor, lambda t: t.detach(), value)
    return (shown, product, aux) if has_aux else (shown, product)


def _jacobians(value: Tensor, leaves: Sequence[Tensor], again: bool) -> list[Tensor]:
    """The gradients of the elements of a value by each of the leaves, put together."""
    flat = value.reshape(-1)
    rows = [_grads([flat[i]], leaves, None, again) for i in range(flat.numel())]
    return [_stacked(value, leaf, [row[k] for row in rows]) for k, leaf in enumerate(leaves)]


def _stacked(value: Tensor, leaf: Tensor, rows: Sequence[Any]) -> Tensor:
    if not rows:
        return leaf.new_zeros((*value._shape, *leaf._shape))
    filled = [leaf.new_zeros(leaf._shape) if row is None else row for row in rows]
    return stack(filled).reshape(*value._shape, *leaf._shape)


def jacrev(
    func: Callable[..., Any],
    argnums: int | tuple[int, ...] = 0,
    *,
    has_aux: bool = False,
    chunk_size: int | None = None,
) -> Callable[..., Any]:
    """A function that returns the Jacobian of func by arguments, row by row: (result's shape, argument's shape).

    Args:
        func: returns a tensor, or a tree of them; with has_aux a pair of that and anything.
        argnums: by which arguments; of several a tuple of Jacobians, in the place of each tensor.
        has_aux: as above.
        chunk_size: means nothing.
    """

    def call(*args: Any, **kwargs: Any) -> Any:
        with enable_grad():
            given, leaves, tree = _chosen(args, argnums)
            result = func(*given, **kwargs)
            value, aux = result if has_aux else (result, None)
            shape, again = pytree.tree_structure(tree), _outer(args)
            jacobians = pytree.tree_map(lambda t: shape.unflatten(_jacobians(t, leaves, again)), value)
        return (jacobians, aux) if has_aux else jacobians

    return call


def hessian(func: Callable[..., Any], argnums: int | tuple[int, ...] = 0) -> Callable[..., Any]:
    """A function that returns the second derivatives of func by arguments: the Jacobian of its Jacobian."""
    return jacrev(jacrev(func, argnums), argnums)
