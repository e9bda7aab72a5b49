"""torch.nn.utils.parametrizations: weights by length and direction, and of norm 1."""

from __future__ import annotations

from torchemu.frontends.numpy._grad_mode import no_grad
from torchemu.frontends.numpy._tensor.core import Tensor
from torchemu.frontends.numpy._tensor.reductions import norm
from torchemu.frontends.numpy.nn import functional as F  # noqa: N812 (its usual name)
from torchemu.frontends.numpy.nn.modules.convolution import ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from torchemu.frontends.numpy.nn.modules.module import Module
from torchemu.frontends.numpy.nn.utils.parametrize import register_parametrization
from torchemu.unsupported import unsupported_function

__all__ = ["orthogonal", "spectral_norm", "weight_norm"]


def norm_except(v: Tensor, dim: int | None) -> Tensor:
    """The norms over all dimensions but one; None or -1: of all elements."""
    if dim is None or dim == -1:
        return norm(v)
    axis = dim % v.dim()
    return norm(v, 2, [d for d in range(v.dim()) if d != axis], keepdim=True)


class _WeightNorm(Module):
    """A weight as its lengths and its directions."""

    def __init__(self, dim: int | None = 0) -> None:
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g: Tensor, weight_v: Tensor) -> Tensor:
        """The lengths times the directions."""
        return weight_v * (weight_g / norm_except(weight_v, self.dim))

    def right_inverse(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        """The lengths, and the weight itself."""
        return norm_except(weight, self.dim), weight.clone()


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """Makes of a weight its lengths, original0, and its directions, original1.

    Args:
        module: whose.
        name: which.
        dim: of each index of this dimension there is a length; None: one for all.
    """
    return register_parametrization(module, name, _WeightNorm(dim), unsafe=True)


def as_matrix(weight: Tensor, dim: int) -> Tensor:
    """One dimension first, and all others as columns."""
    return (weight.movedim(dim, 0) if dim else weight).flatten(1)


def usual_dim(module: Module) -> int:
    """The dimension of a weight that stands for what comes out."""
    return 1 if isinstance(module, ConvTranspose1d | ConvTranspose2d | ConvTranspose3d) else 0


class _SpectralNorm(Module):
    """A weight divided by its largest singular value, which power iterations find."""

    _u: Tensor
    _v: Tensor

    def __init__(self, weight: Tensor, n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12) -> None:
        super().__init__()
        if not -weight.dim() <= dim < weight.dim():
            raise IndexError(
                f"Dimension out of range (expected to be in range of [-{weight.dim()}, {weight.dim() - 1}] but got "
                f"{dim})"
            )
        if n_power_iterations <= 0:
            raise ValueError(
                f"Expected n_power_iterations to be positive, but got n_power_iterations={n_power_iterations}"
            )
        self.dim, self.eps, self.n_power_iterations = dim % weight.dim(), eps, n_power_iterations
        if weight.dim() > 1:
            with no_grad():
                matrix = as_matrix(weight, self.dim)
                rows, columns = matrix._shape
                u, v = (matrix.new_empty(n).normal_(0, 1) for n in (rows, columns))
                self.register_buffer("_u", F.normalize(u, dim=0, eps=eps))
                self.register_buffer("_v", F.normalize(v, dim=0, eps=eps))
                self._iterate(matrix, 15)

    @no_grad()
    def _iterate(self, matrix: Tensor, times: int) -> None:
        for _ in range(times):
            self._u.copy_(F.normalize(matrix.mv(self._v), dim=0, eps=self.eps))
            self._v.copy_(F.normalize(matrix.T.mv(self._u), dim=0, eps=self.eps))

    def forward(self, weight: Tensor) -> Tensor:
        """The weight divided by its largest singular value; in training it is found a little better each time."""
        if weight.dim() == 1:
            return F.normalize(weight, dim=0, eps=self.eps)
        matrix = as_matrix(weight, self.dim)
        if self.training:
            self._iterate(matrix.detach(), self.n_power_iterations)
        return weight / self._u.clone().dot(matrix.mv(self._v.clone()))

    def right_inverse(self, value: Tensor) -> Tensor:
        """The weight itself."""
        return value


def spectral_norm(
    module: Module, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> Module:
    """Divides a weight by its largest singular value.

    Args:
        module: whose.
        name: which.
        n_power_iterations: how many iterations there are each time, in training.
        eps: the least norm.
        dim: which dimension stands for what comes out; None: 1 of transposed convolutions, else 0.

    Raises:
        ValueError: the module has no such weight.
    """
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    dim = usual_dim(module) if dim is None else dim
    return register_parametrization(module, name, _SpectralNorm(weight, n_power_iterations, dim, eps))


orthogonal = unsupported_function(
    "torch.nn.utils.parametrizations.orthogonal", "register a module of your own with register_parametrization"
)
