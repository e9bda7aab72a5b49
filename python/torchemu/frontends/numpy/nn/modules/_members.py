"""Members of a module: its parameters, buffers and submodules, by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from torchemu.frontends.numpy._tensor.core import Tensor
from torchemu.frontends.numpy.nn.parameter import Parameter

if TYPE_CHECKING:
    from torchemu.frontends.numpy.nn.modules.module import Module


def _typename(value: Any) -> str:
    """Returns what PyTorch calls the type of a value in its messages."""
    if isinstance(value, Tensor):
        return str(value.type())
    kind = type(value)
    module = kind.__module__
    if module == "torchemu" or module.startswith("torchemu."):
        module = "torch" + module.removeprefix("torchemu")
    return kind.__qualname__ if module == "builtins" else f"{module}.{kind.__qualname__}"


def _joined(prefix: str, name: str) -> str:
    return f"{prefix}.{name}" if prefix else name


class Members:
    """The part of Module that knows its members.

    An attribute that is a Parameter or a Module becomes a member of that kind; a name that is a buffer's
    stays one when a tensor is assigned to it.
    """

    _parameters: dict[str, Parameter | None]
    _buffers: dict[str, Tensor | None]
    _modules: dict[str, Module | None]
    _non_persistent_buffers_set: set[str]

    # -- attributes

    def __getattr__(self, name: str) -> Any:
        for kind in ("_parameters", "_buffers", "_modules"):
            members = self.__dict__.get(kind)
            if members is not None and name in members:
                return members[name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(value, Parameter) or self._has("_parameters", name):
            self._set_parameter(name, value)
        elif isinstance(value, Members) or self._has("_modules", name):
            self._set_module(name, value)
        elif self._has("_buffers", name):
            self._set_buffer(name, value)
        else:
            object.__setattr__(self, name, value)

    def __delattr__(self, name: str) -> None:
        for kind in ("_parameters", "_buffers", "_modules"):
            if self._has(kind, name):
                del self.__dict__[kind][name]
                self._non_persistent_buffers_set.discard(name)
                return
        object.__delattr__(self, name)

    def __dir__(self) -> list[str]:
        names = [*super().__dir__(), *self._parameters, *self._buffers, *self._modules]
        return sorted(name for name in names if not name[:1].isdigit())

    def _has(self, kind: str, name: str) -> bool:
        return name in self.__dict__.get(kind, ())

    def _set_parameter(self, name: str, value: Any) -> None:
        if "_parameters" not in self.__dict__:
            raise AttributeError("cannot assign parameters before Module.__init__() call")
        if not isinstance(value, Parameter | None):
            raise TypeError(
                f"cannot assign '{_typename(value)}' as parameter '{name}' (torch.nn.Parameter or None expected)"
            )
        self._forget(name, but="_parameters")
        self.register_parameter(name, value)

    def _set_module(self, name: str, value: Any) -> None:
        if "_modules" not in self.__dict__:
            raise AttributeError("cannot assign module before Module.__init__() call")
        if not isinstance(value, Members | None):
            raise TypeError(
                f"cannot assign '{_typename(value)}' as child module '{name}' (torch.nn.Module or None expected)"
            )
        self._forget(name, but="_modules")
        self._modules[name] = value  # type: ignore[assignment]

    def _set_buffer(self, name: str, value: Any) -> None:
        if not isinstance(value, Tensor | None):
            raise TypeError(f"cannot assign '{_typename(value)}' as buffer '{name}' (torch.Tensor or None expected)")
        if "_buffers" not in self.__dict__:
            raise AttributeError("cannot assign buffer before Module.__init__() call")
        self._forget(name, but="_buffers")
        self.register_buffer(name, value, name not in self._non_persistent_buffers_set)

    def _forget(self, name: str, but: str) -> None:
        """Takes a name that becomes a member's out of everything else."""
        self.__dict__.pop(name, None)
        for kind in {"_parameters", "_buffers", "_modules"} - {but}:
            self.__dict__[kind].pop(name, None)
        if but != "_buffers":
            self._non_persistent_buffers_set.discard(name)

    # -- registering

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Makes a parameter, or None in the place of one, a member.

        Raises:
            AttributeError: before Module.__init__. KeyError: the name cannot be, or is something else's.
            TypeError: not a parameter. ValueError: it was calculated.
        """
        self._check_name("parameter", name)
        if param is not None and not isinstance(param, Parameter):
            raise TypeError(
                f"cannot assign '{_typename(param)}' object to parameter '{name}' (torch.nn.Parameter or None required)"
            )
        if param is not None and param.grad_fn is not None:
            raise ValueError(
                f"Cannot assign non-leaf Tensor to parameter '{name}'. Model parameters must be created explicitly. "
                f"To express '{name}' as a function of another Tensor, compute the value in the forward() method."
            )
        self._parameters[name] = param

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Makes a tensor, or None in the place of one, a member that is no parameter; a persistent one is in the
        state_dict.

        Raises:
            AttributeError: before Module.__init__. KeyError: the name cannot be, or is something else's.
            TypeError: not a tensor.
        """
        self._check_name("buffer", name)
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(
                f"cannot assign '{_typename(tensor)}' object to buffer '{name}' (torch Tensor or None required)"
            )
        self._buffers[name] = tensor
        (self._non_persistent_buffers_set.discard if persistent else self._non_persistent_buffers_set.add)(name)

    def _check_name(self, what: str, name: Any) -> None:
        """Reports whether a parameter or buffer can have this name; a name of its own kind it may take over."""
        if f"_{what}s" not in self.__dict__:
            raise AttributeError(f"cannot assign {what} before Module.__init__() call")
        if not isinstance(name, str):
            raise TypeError(f"{what} name should be a string. Got {_typename(name)}")
        if "." in name:
            raise KeyError(f'{what} name can\'t contain "."')
        if name == "":
            raise KeyError(f'{what} name can\'t be empty string ""')
        if hasattr(self, name) and not self._has(f"_{what}s", name):
            raise KeyError(f"attribute '{name}' already exists")

    def add_module(self, name: str, module: Module | None) -> None:
        """Makes a module, or None in the place of one, a child.

        Raises:
            TypeError: not a module, or the name no text. KeyError: the name cannot be, or is something else's.
        """
        if module is not None and not isinstance(module, Members):
            raise TypeError(f"{_typename(module)} is not a Module subclass")
        if not isinstance(name, str):
            raise TypeError(f"module name should be a string. Got {_typename(name)}")
        if hasattr(self, name) and name not in self._modules:
            raise KeyError(f"attribute '{name}' already exists")
        if "." in name:
            raise KeyError(f'module name can\'t contain ".", got: {name}')
        if name == "":
            raise KeyError('module name can\'t be empty string ""')
        self._modules[name] = module

    def _get_name(self) -> str:
        return type(self).__name__

    # -- all of them

    def named_modules(
        self, memo: set[Any] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Module]]:
        """The module itself and all below it, with their paths, parents first; each once unless remove_duplicate is
        False."""
        memo = set() if memo is None else memo
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self  # type: ignore[misc]
        for name, module in self._modules.items():
            if module is not None:
                yield from module.named_modules(memo, _joined(prefix, name), remove_duplicate)

    def modules(self, remove_duplicate: bool = True) -> Iterator[Module]:
        """The module itself and all below it, each once unless remove_duplicate is False."""
        return (module for _, module in self.named_modules(remove_duplicate=remove_duplicate))

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """The modules directly below, each once, with their names."""
        memo = set()
        for name, module in self._modules.items():
            if module is not None and module not in memo:
                memo.add(module)
                yield name, module

    def children(self) -> Iterator[Module]:
        """The modules directly below, each once."""
        return (module for _, module in self.named_children())

    def _named_members(
        self,
        get_members_fn: Callable[[Any], Iterable[tuple[str, Any]]],
        prefix: str = "",
        recurse: bool = True,
        remove_duplicate: bool = True,
    ) -> Iterator[tuple[str, Any]]:
        """The members of a kind with their paths."""
        memo = set()
        modules = self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate) if recurse else [(prefix, self)]
        for path, module in modules:
            for name, member in get_members_fn(module):
                if member is None or member in memo:
                    continue
                if remove_duplicate:
                    memo.add(member)
                yield _joined(path, name), member

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """The parameters with their paths, each once; without recurse only the module's own."""
        return self._named_members(lambda m: m._parameters.items(), prefix, recurse, remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """The parameters, each once; without recurse only the module's own."""
        return (parameter for _, parameter in self.named_parameters(recurse=recurse))

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """The buffers with their paths, each once; without recurse only the module's own."""
        return self._named_members(lambda m: m._buffers.items(), prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """The buffers, each once; without recurse only the module's own."""
        return (buffer for _, buffer in self.named_buffers(recurse=recurse))
