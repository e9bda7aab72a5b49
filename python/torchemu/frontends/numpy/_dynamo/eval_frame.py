"""What torch.compile returns for a module."""

from __future__ import annotations

from typing import Any

from torchemu.frontends.numpy.nn.modules.module import Module

__all__ = ["OptimizedModule"]


class OptimizedModule(Module):
    """A module that is called in the place of another, whose attributes it has. Its state has the other's names behind
    ``_orig_mod.``, as in PyTorch.

    Args:
        mod: the other one.
    """

    _orig_mod: Module

    def __init__(self, mod: Module) -> None:
        super().__init__()
        self._modules["_orig_mod"] = mod

    @property
    def training(self) -> bool:
        """Whether the other one is being trained."""
        return self._orig_mod.training

    @training.setter
    def training(self, mode: bool) -> None:
        self._orig_mod.training = mode

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the other one returns."""
        return self._orig_mod(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        modules = vars(self).get("_modules", {})
        if name == "_orig_mod" or "_orig_mod" not in modules:
            return super().__getattr__(name)
        return getattr(modules["_orig_mod"], name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "training":
            super().__setattr__(name, value)
        else:
            setattr(self._modules["_orig_mod"], name, value)

    def __len__(self) -> int:
        return len(self._modules["_orig_mod"])  # type: ignore[arg-type]

    def __bool__(self) -> bool:
        return True
