"""torch.nn.Module."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Self

from torchemu.frontends.numpy._tensor.core import Tensor
from torchemu.frontends.numpy.nn.modules._conversion import Conversion
from torchemu.frontends.numpy.nn.modules._state import States, _IncompatibleKeys

__all__ = ["Module", "_IncompatibleKeys"]


def _fields() -> dict[str, Any]:
    """The attributes that a module begins with."""
    return {
        "training": True,
        "_parameters": {},
        "_buffers": {},
        "_modules": {},
        "_non_persistent_buffers_set": set(),
        "_load_state_dict_pre_hooks": OrderedDict(),
    }


class Module(Conversion, States):
    """A part of a neural network: parameters, buffers, other modules, and a forward that computes with them.

    A subclass calls ``super().__init__()`` first, then sets its members as attributes, and defines ``forward``.

    Attributes:
        training: whether it is being trained, which Dropout looks at.
    """

    training: bool

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if kwargs:
            raise TypeError(
                f"{type(self).__name__}.__init__() got an unexpected keyword argument '{next(iter(kwargs))}'"
            )
        if args:
            raise TypeError(
                f"{type(self).__name__}.__init__() takes 1 positional argument but {len(args) + 1} were given"
            )
        self.__dict__.update(_fields())

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update({**_fields(), **state})

    def forward(self, *input: Any) -> Any:  # noqa: A002 (PyTorch's name)
        """Calculates what a call returns; subclasses define it."""
        raise NotImplementedError(f'Module [{type(self).__name__}] is missing the required "forward" function')

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.forward(*args, **kwargs)

    def apply(self, fn: Callable[[Module], Any]) -> Self:
        """Calls fn(module) with all modules below, children first, and then with the module itself."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def train(self, mode: bool = True) -> Self:
        """Says of the module and all below it whether they are being trained.

        Raises:
            ValueError: mode is no bool.
        """
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self) -> Self:
        """train(False)."""
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Says of all parameters whether gradients are wanted."""
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Removes the gradients of all parameters, or makes them zero."""
        for parameter in self.parameters():
            if parameter.grad is None:
                continue
            if set_to_none:
                parameter.grad = None
            else:
                zero_(parameter.grad)

    def extra_repr(self) -> str:
        """Returns what stands in the brackets of a module's text, before its children."""
        return ""

    def __repr__(self) -> str:
        extra = self.extra_repr()
        lines = extra.split("\n") if extra else []
        children = [f"({name}): {_indented(repr(module))}" for name, module in self._modules.items()]
        if len(lines) == 1 and not children:
            return f"{self._get_name()}({extra})"
        body = "".join(f"\n  {line}" for line in [*lines, *children])
        return f"{self._get_name()}({body}\n)" if body else f"{self._get_name()}()"


def zero_(grad: Tensor) -> None:
    """Makes a gradient zero, and forgets how it was calculated."""
    if grad.grad_fn is None:
        grad.requires_grad_(False)
    else:
        grad.detach_()
    grad.zero_()


def _indented(text: str) -> str:
    return text.replace("\n", "\n  ")
