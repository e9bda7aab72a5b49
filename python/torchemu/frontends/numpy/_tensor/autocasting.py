"""What torch.autocast does to operations: in which dtype each of them is calculated while it is on.

Which operation belongs where is in the tables here, one for each kind of device. Functions that are in one are marked
with ``castable``; operations on single elements are known by name (``_tensor.pointwise``). The operands of a
call are converted before anything else is done, by operations that are recorded for gradients, and what a call itself
calls is left alone.
"""

from __future__ import annotations

import contextlib
import enum
import functools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, ParamSpec, TypeVar

from torchemu import dtypes, runtime
from torchemu.frontends.numpy import _settings
from torchemu.frontends.numpy._tensor.core import Tensor
from torchemu.runtime.rank_local import ThreadLocal

P = ParamSpec("P")
R = TypeVar("R")


class Policy(enum.Enum):
    """How the operands of an operation are converted."""

    LOWER = "to the dtype of autocast"
    FLOAT32 = "to float32"
    WIDEST = "to the widest dtype among them"


def _table(lower: str, float32: str, widest: str) -> dict[str, Policy]:
    lists = ((Policy.LOWER, lower), (Policy.FLOAT32, float32), (Policy.WIDEST, widest))
    return {name: policy for policy, names in lists for name in names.split()}


_PRODUCTS = (
    "addbmm addmm baddbmm bmm conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d einsum inner "
    "linear matmul mm scaled_dot_product_attention prelu"
)
_LOSSES = (
    "binary_cross_entropy_with_logits cosine_embedding_loss cross_entropy hinge_embedding_loss huber_loss kl_div "
    "l1_loss margin_ranking_loss mse_loss multi_margin_loss multilabel_margin_loss nll_loss poisson_nll_loss "
    "smooth_l1_loss soft_margin_loss triplet_margin_loss"
)
_ACCELERATOR = _table(
    f"{_PRODUCTS} addmv addr mv",
    f"{_LOSSES} acos asin cosh erfinv exp expm1 log log10 log1p log2 pow reciprocal rsqrt sinh softplus tan cumprod "
    "cdist cumsum dist group_norm layer_norm log_softmax norm pdist prod renorm softmax sum cosine_similarity "
    "normalize",
    "addcdiv addcmul atan2 bilinear cross dot grid_sample index_put scatter_add tensordot vdot",
)
_HOST = _table(
    f"{_PRODUCTS} tensordot",
    f"{_LOSSES} binary_cross_entropy cdist ctc_loss grid_sample prod trace quantile",
    "cat index_copy stack",
)
_TABLES = {"cpu": _HOST, "cuda": _ACCELERATOR, "ahbm": _ACCELERATOR}

NAMES = frozenset(_ACCELERATOR) | frozenset(_HOST)
"""All operations that autocast does something to, on some device."""


@dataclass
class Autocast:
    """What autocast does on one rank.

    Attributes:
        enabled: on which kinds of devices it is on.
        lower: the dtype that it lowers to, for each kind.
        caches: whether conversions of parameters are kept.
        depth: how many blocks of it the rank is in.
        kept: those conversions, by parameter and dtype. The parameters are kept too, so that nobody else gets their id.
    """

    enabled: set[str] = field(default_factory=set)
    lower: dict[str, dtypes.dtype] = field(
        default_factory=lambda: {"cpu": dtypes.bfloat16, "cuda": dtypes.float16, "ahbm": dtypes.float16}
    )
    caches: bool = True
    depth: int = 0
    kept: dict[tuple[int, dtypes.dtype], tuple[Tensor, Tensor]] = field(default_factory=dict)

    def enable(self, kind: str, on: bool) -> None:
        """Turns it on or off for a kind of device."""
        (self.enabled.add if on else self.enabled.discard)(kind)
        runtime.current().casts = bool(self.enabled)

    def converted(self, t: Tensor, to: dtypes.dtype) -> Tensor:
        """A tensor as another dtype. Of a parameter in float32 it is kept: it is one conversion for all its uses."""
        from torchemu.frontends.numpy._tensor.copying import cast

        if t.dtype is to:
            return t
        if not (self.caches and t.dtype is dtypes.float32 and t.requires_grad and t.is_leaf and t._base is None):
            return cast(t, to)
        if not _settings.current().gradients:
            return cast(t, to)
        key = (id(t), to)
        if key not in self.kept:
            self.kept[key] = t, cast(t, to)
        return self.kept[key][1]


_AUTOCAST: ThreadLocal[Autocast] = ThreadLocal(Autocast)


def current() -> Autocast:
    """The running thread's."""
    return _AUTOCAST.get()


@contextlib.contextmanager
def suspended() -> Iterator[None]:
    """Leaves operations alone: those of which another one is made, and formulas of derivatives."""
    context = runtime.current()
    before, context.casts = context.casts, False
    try:
        yield
    finally:
        context.casts = before


def castable(function: Callable[P, R]) -> Callable[P, R]:
    """Marks a function that is in a table, under its name."""
    name = function.__name__
    assert name in NAMES, name

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        if not runtime.current().casts:
            return function(*args, **kwargs)
        given, named = operands(name, args, kwargs)
        with suspended():
            return function(*given, **named)

    return call


def operands(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """What a function is called with while autocast is on.

    Args:
        name: that of the function.
        args, kwargs: what the program calls it with.
    """
    own = current()
    for kind in sorted(own.enabled):
        policy = _TABLES[kind].get(name)
        if policy is None or (policy is Policy.FLOAT32 and kwargs.get("dtype") is not None):
            continue
        eligible = [t for t in _tensors((*args, *kwargs.values())) if _is_eligible(t, kind)]
        if eligible:
            to = _target(policy, own.lower[kind], eligible)
            args = tuple([_replaced(each, kind, to) for each in args])
            kwargs = {key: _replaced(each, kind, to) for key, each in kwargs.items()}
    return args, kwargs


def _tensors(values: Iterable[Any]) -> Iterator[Tensor]:
    for value in values:
        if isinstance(value, Tensor):
            yield value
        elif isinstance(value, list | tuple):
            yield from _tensors(value)


def _is_eligible(t: Tensor, kind: str) -> bool:
    return t.dtype.is_floating_point and t.dtype is not dtypes.float64 and t.device.type == kind


def _target(policy: Policy, lower: dtypes.dtype, eligible: list[Tensor]) -> dtypes.dtype:
    """The dtype that the operands of a call get.

    Raises:
        RuntimeError: the widest of them is asked for, and one is neither of the lower dtype nor of float32.
    """
    if policy is not Policy.WIDEST:
        return lower if policy is Policy.LOWER else dtypes.float32
    found = {t.dtype for t in eligible}
    if not found <= {lower, dtypes.float32}:
        raise RuntimeError("Unexpected floating ScalarType in at::autocast::prioritize")
    return dtypes.float32 if dtypes.float32 in found else lower


def _replaced(value: Any, kind: str, to: dtypes.dtype) -> Any:
    if isinstance(value, Tensor):
        return current().converted(value, to) if _is_eligible(value, kind) else value
    if type(value) in (list, tuple):
        return type(value)([_replaced(each, kind, to) for each in value])
    return value
