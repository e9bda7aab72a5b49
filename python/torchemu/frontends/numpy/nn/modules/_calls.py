"""Calling a module: its forward, and the hooks before and behind it."""

from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from torchemu.frontends.numpy.nn.modules._backward_hooks import BackwardHooks
from torchemu.frontends.numpy.utils.hooks import Hooks, RemovableHandle, registered
from torchemu.unsupported import unsupported


class Calls:
    """The part of Module that is called."""

    _backward_hooks: Hooks
    _backward_pre_hooks: Hooks
    _forward_hooks: Hooks
    _forward_hooks_with_kwargs: OrderedDict[int, bool]
    _forward_hooks_always_called: OrderedDict[int, bool]
    _forward_pre_hooks: Hooks
    _forward_pre_hooks_with_kwargs: OrderedDict[int, bool]

    def forward(self, *input: Any) -> Any:  # noqa: A002 (PyTorch's name)
        """What a subclass calculates when it is called."""
        raise NotImplementedError(f'Module [{type(self).__name__}] is missing the required "forward" function')

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        backward = self._backward_hooks or self._backward_pre_hooks
        if not (self._forward_pre_hooks or self._forward_hooks or backward):
            return self.forward(*args, **kwargs)
        called: set[int] = set()
        try:
            args, kwargs = self._before_forward(args, kwargs)
            if not backward:
                return self._after_forward(args, kwargs, self.forward(*args, **kwargs), called)
            own, before = (list(hooks.values()) for hooks in (self._backward_hooks, self._backward_pre_hooks))
            watched = BackwardHooks(self, own, before)
            args = watched.entered(args)
            return watched.returned(self._after_forward(args, kwargs, self.forward(*args, **kwargs), called))
        except Exception:
            self._after_failure(args, kwargs, called)
            raise

    def _before_forward(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any]:
        """The arguments, as the hooks want them."""
        for number, hook in tuple(self._forward_pre_hooks.items()):
            if number in self._forward_pre_hooks_with_kwargs:
                result = hook(self, args, kwargs)
                if result is None:
                    continue
                if not (isinstance(result, tuple) and len(result) == 2):
                    raise RuntimeError(
                        f"forward pre-hook must return None or a tuple of (new_args, new_kwargs), but got {result}."
                    )
                args, kwargs = result
            else:
                result = hook(self, args)
                if result is not None:
                    args = result if isinstance(result, tuple) else (result,)
        return args, kwargs

    def _after_forward(self, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any, called: set[int]) -> Any:
        """The result, as the hooks want it."""
        for number in tuple(self._forward_hooks):
            called.add(number)
            other = self._call_forward_hook(number, args, kwargs, result)
            result = result if other is None else other
        return result

    def _call_forward_hook(self, number: int, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> Any:
        about = (args, kwargs) if number in self._forward_hooks_with_kwargs else (args,)
        return self._forward_hooks[number](self, *about, result)

    def _after_failure(self, args: tuple[Any, ...], kwargs: dict[str, Any], called: set[int]) -> None:
        """Calls the hooks that are to be called always, and have not been."""
        for number in tuple(self._forward_hooks_always_called):
            if number in called or number not in self._forward_hooks:
                continue
            try:
                self._call_forward_hook(number, args, kwargs, None)
            except Exception as error:
                warnings.warn(
                    "module forward hook with ``always_call=True`` raised an exception that was silenced as another "
                    f"error was raised in forward: {error}",
                    stacklevel=3,
                )

    def register_forward_pre_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """hook(module, args) is called before forward; what it returns, unless None, are the arguments instead.

        Args:
            hook: the function; with_kwargs it is called as hook(module, args, kwargs) and returns both or None.
            prepend: before the hooks that are there.
            with_kwargs: see hook.
        """
        tables = (self._forward_pre_hooks, self._forward_pre_hooks_with_kwargs)
        return _registered(hook, tables, (with_kwargs,), prepend)

    def register_forward_hook(
        self,
        hook: Callable[..., Any],
        *,
        prepend: bool = False,
        with_kwargs: bool = False,
        always_call: bool = False,
    ) -> RemovableHandle:
        """hook(module, args, result) is called after forward; what it returns, unless None, is the result instead.

        Args:
            hook: the function; with_kwargs it is called as hook(module, args, kwargs, result).
            prepend: before the hooks that are there.
            with_kwargs: see hook.
            always_call: also after an exception, with None as result.
        """
        tables = (self._forward_hooks, self._forward_hooks_with_kwargs, self._forward_hooks_always_called)
        return _registered(hook, tables, (with_kwargs, always_call), prepend)

    def register_full_backward_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """hook(module, grad_input, grad_output) is called in each backward pass, when the gradients of the positional
        arguments are there; what it returns, unless None, are those gradients instead.

        Args:
            hook: the function. Both its tuples have None for what is no tensor.
            prepend: before the hooks that are there.
        """
        return registered(self._backward_hooks, hook, prepend=prepend)

    def register_full_backward_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """hook(module, grad_output) is called in each backward pass, when the gradients of the results are there; what
        it returns, unless None, are those gradients instead.

        Args:
            hook: the function.
            prepend: before the hooks that are there.
        """
        return registered(self._backward_pre_hooks, hook, prepend=prepend)

    def register_backward_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Not supported."""
        raise unsupported("torch.nn.Module.register_backward_hook", "use register_full_backward_hook")


def _registered(
    hook: Callable[..., Any], tables: tuple[Hooks, ...], flags: tuple[bool, ...], prepend: bool
) -> RemovableHandle:
    """Puts the hook into the first table, and its number into those of the others whose flag is set."""
    hooks, *others = tables
    handle = RemovableHandle(hooks, extra_dict=others)
    registered(hooks, hook, prepend=prepend)
    for table, flag in zip(others, flags, strict=True):
        if flag:
            table[handle.id] = True
    return handle
