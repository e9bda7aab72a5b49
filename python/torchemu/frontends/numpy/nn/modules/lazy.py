"""Modules that learn the sizes of their parameters from the first input."""

from __future__ import annotations

from typing import Any

from torchemu.frontends.numpy._tensor.core import Tensor
from torchemu.frontends.numpy._tensor.from_data import tensor
from torchemu.frontends.numpy.nn.modules.batchnorm import (
    BatchNorm1d,
    BatchNorm2d,
    BatchNorm3d,
    InstanceNorm1d,
    InstanceNorm2d,
    InstanceNorm3d,
)
from torchemu.frontends.numpy.nn.modules.convolution import (
    Conv1d,
    Conv2d,
    Conv3d,
    ConvTranspose1d,
    ConvTranspose2d,
    ConvTranspose3d,
)
from torchemu.frontends.numpy.nn.modules.linear import Linear
from torchemu.frontends.numpy.nn.modules.module import Module
from torchemu.frontends.numpy.nn.parameter import UninitializedBuffer, UninitializedParameter, is_lazy

_OF_DIMENSIONS = ("BatchNorm", "Conv", "ConvTranspose", "InstanceNorm")

__all__ = ["LazyLinear", *(f"Lazy{kind}{ndim}d" for kind in _OF_DIMENSIONS for ndim in (1, 2, 3))]


class LazyModuleMixin(Module):
    """What these have in common: before the first call a hook asks ``initialize_parameters``, and the module becomes
    one of an ordinary class.

    Attributes:
        cls_to_become: that class.
    """

    cls_to_become: type[Module]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._initialize_hook = self.register_forward_pre_hook(_learn, with_kwargs=True)
        self._load_hook = self._register_load_state_dict_pre_hook(_take_sizes, with_module=True)

    def has_uninitialized_params(self) -> bool:
        """Whether there are parameters or buffers whose shape is yet unknown."""
        return any(map(is_lazy, [*self._parameters.values(), *self._buffers.values()]))

    def initialize_parameters(self, *args: Any, **kwargs: Any) -> None:
        """Gives them their shapes, from the arguments of the call."""
        raise NotImplementedError(f"initialize_parameters is not implemented for {type(self).__name__}")

    def reset_parameters(self) -> None:
        """Draws new parameters, if their shapes are known."""
        if not self.has_uninitialized_params() and self._known():
            super().reset_parameters()  # type: ignore[misc]

    def _known(self) -> bool:
        """Whether the sizes are."""
        raise NotImplementedError


def _learn(module: Any, args: Any, kwargs: Any) -> None:
    """The hook before the first call."""
    module.initialize_parameters(*args, **kwargs)
    if module.has_uninitialized_params():
        raise RuntimeError(f"module {type(module).__name__} has not been fully initialized")
    for hook in ("_initialize_hook", "_load_hook"):
        getattr(module, hook).remove()
        delattr(module, hook)
    module.__class__ = module.cls_to_become


def _take_sizes(module: Any, state_dict: dict[str, Any], prefix: str, *_: Any) -> None:
    """The hook before loading: shapes are those of what is loaded."""
    for name, member in [*module._parameters.items(), *module._buffers.items()]:
        given = state_dict.get(prefix + name)
        if is_lazy(member) and given is not None and not is_lazy(given):
            member.materialize(given.shape)


def _first_size(x: Tensor, name: str, axis: int, dims: tuple[int, ...]) -> int:
    """Raises:
    RuntimeError: the input has another number of dimensions.
    """
    if dims and x.dim() not in dims:
        wanted = f"{dims[0]}D (unbatched) or {dims[1]}D (batched)"
        raise RuntimeError(f"Expected {wanted} input to {name}, but got input of size: {x.size()}")
    return x._shape[axis]


class LazyLinear(LazyModuleMixin, Linear):
    """Linear whose in_features is the last size of the first input.

    Args:
        out_features, bias, device, dtype: those of Linear.
    """

    cls_to_become = Linear

    def __init__(self, out_features: int, bias: bool = True, device: Any = None, dtype: Any = None) -> None:
        super().__init__(0, 0, False)
        self.out_features = out_features
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)

    def _known(self) -> bool:
        return self.in_features != 0

    def initialize_parameters(self, input: Tensor) -> None:  # noqa: A002
        """From (…, in_features)."""
        self.in_features = input._shape[-1]
        if self.has_uninitialized_params():
            self.weight.materialize((self.out_features, self.in_features))  # type: ignore[attr-defined]
            if self.bias is not None:
                self.bias.materialize((self.out_features,))
            self.reset_parameters()


class _LazyConvolution(LazyModuleMixin):
    """A convolution whose in_channels is the number of channels of the first input.

    Args:
        out_channels and others: those of the convolution.
    """

    def __init__(self, out_channels: int, bias: bool, window: dict[str, Any], **where: Any) -> None:
        super().__init__(0, 0, bias=False, **window, **where)
        self.out_channels = out_channels
        self.weight = UninitializedParameter(**where)
        if bias:
            self.bias = UninitializedParameter(**where)

    def _known(self) -> bool:
        return bool(self.in_channels)

    def initialize_parameters(self, input: Tensor) -> None:  # noqa: A002
        """From (N, in_channels, …) or (in_channels, …)."""
        ndim = self._ndim
        self.in_channels = _first_size(input, type(self).__name__, -ndim - 1, (ndim + 1, ndim + 2))
        if self.in_channels % self.groups:
            raise ValueError("in_channels must be divisible by groups")
        if self.has_uninitialized_params():
            first, second = self.out_channels, self.in_channels
            first, second = (second, first) if self._transposed else (first, second)
            self.weight.materialize((first, second // self.groups, *self.kernel_size))
            if self.bias is not None:
                self.bias.materialize((self.out_channels,))
            self.reset_parameters()


class _LazyConv(_LazyConvolution):
    """A convolution whose in_channels is the number of channels of the first input.

    Args:
        out_channels and others: those of the convolution.
    """

    def __init__(
        self,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        window = {"kernel_size": kernel_size, "stride": stride, "padding": padding, "dilation": dilation}
        window |= {"groups": groups, "padding_mode": padding_mode}
        super().__init__(out_channels, bias, window, device=device, dtype=dtype)


class _LazyConvTransposed(_LazyConvolution):
    """A transposed convolution whose in_channels is the number of channels of the first input.

    Args:
        out_channels and others: those of the transposed convolution.
    """

    def __init__(
        self,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Any = 1,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        window = {"kernel_size": kernel_size, "stride": stride, "padding": padding, "dilation": dilation}
        window |= {"groups": groups, "padding_mode": padding_mode, "output_padding": output_padding}
        super().__init__(out_channels, bias, window, device=device, dtype=dtype)


class _LazyNorm(LazyModuleMixin):
    """A normalization whose num_features is the number of channels of the first input.

    Args:
        eps, momentum, affine, track_running_stats, device, dtype: those of the normalization.
    """

    def __init__(
        self,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(0, eps, momentum, False, False)
        self.affine, self.track_running_stats = affine, track_running_stats
        where = {"device": device, "dtype": dtype}
        if affine:
            self.weight, self.bias = UninitializedParameter(**where), UninitializedParameter(**where)
        if track_running_stats:
            self.running_mean, self.running_var = UninitializedBuffer(**where), UninitializedBuffer(**where)
            self.num_batches_tracked = tensor(0, dtype="int64", device=device)

    def _known(self) -> bool:
        return bool(self.num_features)

    def initialize_parameters(self, input: Tensor) -> None:  # noqa: A002
        """From (N, num_features, …); of instances also without N."""
        unbatched = (
            "Instance" in self.cls_to_become.__name__ and input.dim() == int(self.cls_to_become.__name__[-2]) + 1
        )
        self.num_features = input._shape[0 if unbatched else 1]
        if self.has_uninitialized_params():
            for member in [*self._parameters.values(), *self._buffers.values()]:
                if isinstance(member, UninitializedParameter | UninitializedBuffer):
                    member.materialize((self.num_features,))
            self.reset_parameters()


def _of(mixin: type, cls: Any) -> Any:
    body = {"cls_to_become": cls, "__doc__": mixin.__doc__, "__module__": __name__}
    return type(f"Lazy{cls.__name__}", (mixin, cls), body)


LazyConv1d, LazyConv2d, LazyConv3d = (_of(_LazyConv, cls) for cls in (Conv1d, Conv2d, Conv3d))
LazyConvTranspose1d, LazyConvTranspose2d, LazyConvTranspose3d = (
    _of(_LazyConvTransposed, cls) for cls in (ConvTranspose1d, ConvTranspose2d, ConvTranspose3d)
)
LazyBatchNorm1d, LazyBatchNorm2d, LazyBatchNorm3d = (
    _of(_LazyNorm, cls) for cls in (BatchNorm1d, BatchNorm2d, BatchNorm3d)
)
LazyInstanceNorm1d, LazyInstanceNorm2d, LazyInstanceNorm3d = (
    _of(_LazyNorm, cls) for cls in (InstanceNorm1d, InstanceNorm2d, InstanceNorm3d)
)
