"""Normalizations of channels, over a batch; also over those of all ranks together."""

from __future__ import annotations

from typing import Any

from torchemu import dtypes
from torchemu.frontends.numpy._tensor.core import Tensor
from torchemu.frontends.numpy._tensor.creation import empty, ones, zeros
from torchemu.frontends.numpy._tensor.from_data import tensor
from torchemu.frontends.numpy.nn import functional as F  # noqa: N812 (its usual name)
from torchemu.frontends.numpy.nn import init
from torchemu.frontends.numpy.nn.modules._sync_batchnorm import synchronized
from torchemu.frontends.numpy.nn.modules.module import Module
from torchemu.frontends.numpy.nn.parameter import Parameter

__all__ = [
    "BatchNorm1d",
    "BatchNorm2d",
    "BatchNorm3d",
    "InstanceNorm1d",
    "InstanceNorm2d",
    "InstanceNorm3d",
    "SyncBatchNorm",
]


class _NormBase(Module):
    """What these have in common.

    Args:
        num_features: C, the channels.
        eps: keeps the divisor from zero.
        momentum: how much of the running means is the last batch's; None: they are the means of all batches.
        affine: whether there are a weight and a bias.
        track_running_stats: whether running means are kept.
        device, dtype: of the parameters and buffers.

    Attributes:
        weight, bias: of C, at first ones and zeros; or None.
        running_mean, running_var, num_batches_tracked: buffers; or None.
    """

    _dims: tuple[int, ...] = ()
    """How many dimensions an input may have; none: two or more."""

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.num_features, self.eps, self.momentum = num_features, eps, momentum
        self.affine, self.track_running_stats = affine, track_running_stats
        where = {"device": device, "dtype": dtype}
        for name in ("weight", "bias"):
            self.register_parameter(name, Parameter(empty(num_features, **where)) if affine else None)
        tracks = track_running_stats
        self.register_buffer("running_mean", zeros(num_features, **where) if tracks else None)
        self.register_buffer("running_var", ones(num_features, **where) if tracks else None)
        count = tensor(0, dtype=dtypes.int64, device=device) if tracks else None
        self.register_buffer("num_batches_tracked", count)
        self.reset_parameters()

    def reset_running_stats(self) -> None:
        """Makes the running means zeros, and the variances ones."""
        if self.track_running_stats:
            self.running_mean.zero_()
            self.running_var.fill_(1)
            self.num_batches_tracked.zero_()

    def reset_parameters(self) -> None:
        """Makes the weight ones and the bias zeros, and resets the running means."""
        self.reset_running_stats()
        if self.affine:
            init.ones_(self.weight)
            init.zeros_(self.bias)

    def _check_input_dim(self, x: Tensor) -> None:
        """Raises:
        ValueError: it has not as many dimensions as it may.
        """
        if (self._dims and x.dim() not in self._dims) or x.dim() < 2:
            wanted = " or ".join(f"{n}D" for n in self._dims) or "at least 2D"
            raise ValueError(f"expected {wanted} input (got {x.dim()}D input)")

    def extra_repr(self) -> str:
        """The options."""
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"track_running_stats={self.track_running_stats}"
        )


class _BatchNorm(_NormBase):
    """(input - mean)/√(variance + eps)·weight + bias, channel by channel, with the means of the batch in training, and
    else those of the batches so far.
    """

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002
        """The same shape."""
        self._check_input_dim(input)
        momentum = self._counted()
        of_batch = self.training or self.running_mean is None
        keeps = not self.training or self.track_running_stats
        mean, var = (self.running_mean, self.running_var) if keeps else (None, None)
        return self._normalized(input, mean, var, of_batch, momentum)

    def _counted(self) -> float:
        """How much of the running means is to be this batch's."""
        if not (self.training and self.track_running_stats):
            return 0.0 if self.momentum is None else self.momentum
        if self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
            if self.momentum is None:
                return 1.0 / float(self.num_batches_tracked)
        return self.momentum or 0.0

    def _normalized(self, x: Tensor, mean: Any, var: Any, of_batch: bool, momentum: float) -> Tensor:
        return F.batch_norm(x, mean, var, self.weight, self.bias, of_batch, momentum, self.eps)


class BatchNorm1d(_BatchNorm):
    """Of (N, C) or (N, C, L)."""

    _dims = (2, 3)


class BatchNorm2d(_BatchNorm):
    """Of (N, C, H, W)."""

    _dims = (4,)


class BatchNorm3d(_BatchNorm):
    """Of (N, C, D, H, W)."""

    _dims = (5,)


class SyncBatchNorm(_BatchNorm):
    """BatchNorm with the means over the batches of all ranks.

    Args:
        num_features, eps, momentum, affine, track_running_stats, device, dtype: those of BatchNorm.
        process_group: the ranks; None: the default group.
    """

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        process_group: Any = None,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype)
        self.process_group = process_group

    def _normalized(self, x: Tensor, mean: Any, var: Any, of_batch: bool, momentum: float) -> Tensor:
        if not (of_batch and self.training):
            return super()._normalized(x, mean, var, of_batch, momentum)
        result = synchronized(x, self.weight, self.bias, (mean, var), momentum, self.eps, self.process_group)
        return super()._normalized(x, mean, var, of_batch, momentum) if result is None else result

    @classmethod
    def convert_sync_batchnorm(cls, module: Module, process_group: Any = None) -> Module:
        """A module with every BatchNorm in it replaced by one of these, with its parameters and buffers."""
        result = module
        if isinstance(module, _BatchNorm) and not isinstance(module, SyncBatchNorm):
            options = (module.num_features, module.eps, module.momentum, module.affine, module.track_running_stats)
            result = cls(*options, process_group)
            if module.affine:
                result.weight, result.bias = module.weight, module.bias
            result.running_mean, result.running_var = module.running_mean, module.running_var
            result.num_batches_tracked, result.training = module.num_batches_tracked, module.training
        for name, child in module.named_children():
            result.add_module(name, cls.convert_sync_batchnorm(child, process_group))
        return result


class _InstanceNorm(_NormBase):
    """(input - mean)/√(variance + eps)·weight + bias, for each channel of each element of the batch.

    Args:
        num_features, eps, momentum, device, dtype: those of BatchNorm.
        affine: whether there are a weight and a bias.
        track_running_stats: must be False.

    Raises:
        NotImplementedError: running means.
    """

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype)

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002
        """The same shape."""
        self._check_input_dim(input)
        alone = input.dim() == self._dims[0]
        of_input = self.training or not self.track_running_stats
        options: tuple[Any, ...] = (self.weight, self.bias, of_input, self.momentum or 0.0, self.eps)
        x = input.unsqueeze(0) if alone else input
        result = F.instance_norm(x, self.running_mean, self.running_var, *options)
        return result.squeeze(0) if alone else result


class InstanceNorm1d(_InstanceNorm):
    """Of (N, C, L) or (C, L)."""

    _dims = (2, 3)


class InstanceNorm2d(_InstanceNorm):
    """Of (N, C, H, W) or (C, H, W)."""

    _dims = (3, 4)


class InstanceNorm3d(_InstanceNorm):
    """Of (N, C, D, H, W) or (C, D, H, W)."""

    _dims = (4, 5)
