"""torch.utils.checkpoint: activations that are calculated again in the backward pass instead of being kept."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torchemu.frontends.numpy as torch
from torchemu.frontends.numpy.amp.autocast_mode import Remembered
from torchemu.frontends.numpy.autograd import Function
from torchemu.unsupported import unsupported_class, unsupported_function

__all__ = [
    "CheckpointFunction",
    "CheckpointPolicy",
    "SelectiveCheckpointContext",
    "check_backward_validity",
    "checkpoint",
    "checkpoint_sequential",
    "create_selective_checkpoint_contexts",
    "detach_variable",
    "get_device_states",
    "noop_context_fn",
    "set_checkpoint_debug_enabled",
    "set_checkpoint_early_stop",
    "set_device_states",
]

Contexts = tuple[contextlib.AbstractContextManager[Any], contextlib.AbstractContextManager[Any]]

_SAY_WHICH = (
    "torch.utils.checkpoint: the use_reentrant parameter should be passed explicitly. In a future release, calling "
    "checkpoint without use_reentrant will raise an exception. use_reentrant=False is recommended, but if you need to "
    "preserve the current default behavior, you can pass use_reentrant=True. Refer to docs for more details on the "
    "differences between the two variants."
)


_NOT_SELECTIVE = "a checkpoint keeps nothing: checkpoint smaller functions instead"
CheckpointPolicy = unsupported_class("torch.utils.checkpoint.CheckpointPolicy", _NOT_SELECTIVE)
SelectiveCheckpointContext = unsupported_class("torch.utils.checkpoint.SelectiveCheckpointContext", _NOT_SELECTIVE)
create_selective_checkpoint_contexts = unsupported_function(
    "torch.utils.checkpoint.create_selective_checkpoint_contexts", _NOT_SELECTIVE
)


@contextlib.contextmanager
def set_checkpoint_early_stop(enable: bool) -> Iterator[None]:
    """Changes nothing: repetitions are whole."""
    yield


@contextlib.contextmanager
def set_checkpoint_debug_enabled(enabled: bool | None) -> Iterator[None]:
    """Changes nothing: a repetition does what the call did."""
    yield


def get_device_states(*args: Any) -> tuple[list[int], list[torch.Tensor]]:
    """The devices of the tensors among args, and where their random numbers have come to."""
    devices = sorted({t.device.index for t in args if isinstance(t, torch.Tensor) and t.device.type != "cpu"})
    return devices, [torch.cuda.get_rng_state(device) for device in devices]


def set_device_states(
    devices: Sequence[int], states: Sequence[torch.Tensor], *, device_type: str | None = None
) -> None:
    """Lets random numbers go on from what get_device_states returned."""
    for device, state in zip(devices, states, strict=True):
        torch.cuda.set_rng_state(state, device)


def noop_context_fn() -> Contexts:
    """Contexts that do nothing."""
    return contextlib.nullcontext(), contextlib.nullcontext()


def check_backward_validity(inputs: Sequence[Any]) -> None:
    """Warns where no input requires a gradient."""
    if not any(isinstance(t, torch.Tensor) and t.requires_grad for t in inputs):
        warnings.warn("None of the inputs have requires_grad=True. Gradients will be None", stacklevel=2)


def detach_variable(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """The same without their history; tensors require a gradient as before.

    Raises:
        RuntimeError: not a tuple.
    """
    if not isinstance(inputs, tuple):
        raise RuntimeError(f"Only tuple of tensors is supported. Got Unsupported input type:  {type(inputs).__name__}")
    return leaves_of(inputs, [isinstance(t, torch.Tensor) and t.requires_grad for t in inputs])


def leaves_of(inputs: Sequence[Any], needs: Sequence[bool]) -> tuple[Any, ...]:
    """The same without their history; those tensors require a gradient of which that is said."""
    return tuple(
        t.detach().requires_grad_(need) if isinstance(t, torch.Tensor) else t
        for t, need in zip(inputs, needs, strict=True)
    )


def gradients(outputs: Any, grads: Sequence[torch.Tensor | None], leaves: Sequence[Any]) -> list[torch.Tensor | None]:
    """Those of the leaves, for those of the outputs. Gradients of other tensors are added to their grad.

    Raises:
        RuntimeError: no output requires a gradient.
    """
    several = (outputs,) if isinstance(outputs, torch.Tensor) else tuple(outputs)
    pairs = [(t, g) for t, g in zip(several, grads, strict=True) if isinstance(t, torch.Tensor) and t.requires_grad]
    if not pairs:
        raise RuntimeError("none of output has requires_grad=True, this checkpoint() is not necessary")
    torch.autograd.backward([t for t, _ in pairs], [g for _, g in pairs])
    return [t.grad if isinstance(t, torch.Tensor) else None for t in leaves]


class Arguments:
    """What a function was called with. Tensors are the autograd context's to keep."""

    def __init__(self, ctx: Any, args: Sequence[Any]) -> None:
        self._ctx = ctx
        self._others = [None if isinstance(t, torch.Tensor) else t for t in args]
        self._places = [i for i, t in enumerate(args) if isinstance(t, torch.Tensor)]
        ctx.save_for_backward(*[args[i] for i in self._places])

    def all(self) -> list[Any]:
        """The arguments."""
        args = list(self._others)
        for place, t in zip(self._places, self._ctx.saved_tensors, strict=True):
            args[place] = t
        return args


@contextlib.contextmanager
def _replayed(state: torch.Tensor | None) -> Iterator[None]:
    """Random numbers are those from a state on; afterwards they go on as if none had been drawn."""
    now = torch.get_rng_state() if state is not None else None
    if state is not None:
        torch.set_rng_state(state)
    try:
        yield
    finally:
        if now is not None:
            torch.set_rng_state(now)


class CheckpointFunction(Function):
    """A call of a function that the backward pass repeats; gradients of its arguments are all that it finds, besides
    those of leaves."""

    @staticmethod
    def forward(ctx: Any, run_function: Callable[..., Any], preserve_rng_state: bool, *args: Any) -> Any:
        check_backward_validity(args)
        ctx.run_function, ctx.args = run_function, Arguments(ctx, args)
        ctx.state, ctx.autocast = torch.get_rng_state() if preserve_rng_state else None, Remembered()
        with torch.no_grad():
            return run_function(*args)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        leaves = leaves_of(ctx.args.all(), ctx.needs_input_grad[2:])
        with _replayed(ctx.state), ctx.autocast(), torch.enable_grad():
            outputs = ctx.run_function(*leaves)
        return (None, None, *gradients(outputs, grads, leaves))


class _Repeated(Function):
    """A call that the backward pass repeats, of a function whose results may require gradients though its arguments do
    not. The first argument is there to be one that does."""

    @staticmethod
    def forward(ctx: Any, _: torch.Tensor, call: _Call, *args: Any) -> Any:
        ctx.call, ctx.args = call, Arguments(ctx, args)
        leaves = leaves_of(args, ctx.needs_input_grad[2:])
        with call.contexts[0], torch.enable_grad():
            outputs = call.run(leaves)
        several = (outputs,) if isinstance(outputs, torch.Tensor) else tuple(outputs)
        constant = [t for t in several if isinstance(t, torch.Tensor) and not t.requires_grad]
        ctx.mark_non_differentiable(*constant)
        results = tuple(t.detach() if isinstance(t, torch.Tensor) and t.requires_grad else t for t in several)
        return results[0] if isinstance(outputs, torch.Tensor) else results

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        leaves = leaves_of(ctx.args.all(), ctx.needs_input_grad[2:])
        with _replayed(ctx.call.state), ctx.call.autocast(), ctx.call.contexts[1], torch.enable_grad():
            outputs = ctx.call.run(leaves)
        return (None, None, *gradients(outputs, grads, leaves))


class _Call:
    """A function and what it is called with, of which the tensors are taken out, wherever they are in lists, tuples and
    dicts.

    Attributes:
        tensors: those.
        state: where random numbers had come to, or None.
        autocast: how that was.
        contexts: those for the call and for its repetition.
    """

    def __init__(self, function: Callable[..., Any], args: Any, kwargs: Any, preserve: bool, make: Any) -> None:
        self._function, self._given = function, (args, kwargs)
        self.tensors: list[torch.Tensor] = []
        _replaced(self._given, self.tensors.append)
        self.state = torch.get_rng_state() if preserve else None
        self.autocast = Remembered()
        self.contexts: Contexts = make()

    def run(self, tensors: Sequence[torch.Tensor]) -> Any:
        """Calls it with other tensors."""
        left = iter(tensors)
        args, kwargs = _replaced(self._given, lambda _: next(left))
        return self._function(*args, **kwargs)


def _replaced(given: Any, by: Callable[[torch.Tensor], Any]) -> Any:
    """The same structure, with tensors replaced."""
    if isinstance(given, torch.Tensor):
        return by(given)
    if type(given) in (list, tuple):
        return type(given)(_replaced(item, by) for item in given)
    if type(given) is dict:
        return {key: _replaced(item, by) for key, item in given.items()}
    return given


def checkpoint(
    function: Callable[..., Any],
    *args: Any,
    use_reentrant: bool | None = None,
    context_fn: Callable[[], Contexts] = noop_context_fn,
    determinism_check: str = "default",
    debug: bool = False,
    early_stop: bool = True,
    **kwargs: Any,
) -> Any:
    """Calls a function, and again in the backward pass, so that its activations need not be kept.

    Args:
        function: called with args and kwargs; returns a tensor or several.
        use_reentrant: True: gradients go to args that are tensors, at least one of which must require them; kwargs are
            not allowed. False: they go to whatever requires them. None is True, with a warning.
        context_fn: makes two contexts, for the call and its repetition; not for use_reentrant.
        determinism_check, debug, early_stop: mean nothing here: the repetition is whole, and does what the call did.
        kwargs: preserve_rng_state=False: the repetition draws other random numbers. All others are the function's.

    Raises:
        ValueError: kwargs or context_fn with use_reentrant.
    """
    if use_reentrant is None:
        warnings.warn(_SAY_WHICH, stacklevel=2)
        use_reentrant = True
    preserve = kwargs.pop("preserve_rng_state", True)
    if use_reentrant:
        if kwargs:
            raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
        if context_fn is not noop_context_fn or debug is not False:
            raise ValueError("Passing `context_fn` or `debug` is only supported when use_reentrant=False.")
        return CheckpointFunction.apply(function, preserve, *args)
    call = _Call(function, args, kwargs, preserve, context_fn)
    if not torch.is_grad_enabled():
        with call.contexts[0]:
            return function(*args, **kwargs)
    one = torch.ones((), device="cpu", requires_grad=True)
    return _Repeated.apply(one, call, *call.tensors)


def checkpoint_sequential(
    functions: Any,
    segments: int,
    input: Any,  # noqa: A002 (PyTorch's name)
    use_reentrant: bool | None = None,
    **kwargs: Any,
) -> Any:
    """Calls functions one after the other, in segments of which all but the last are checkpoints.

    Args:
        functions: a list, or a Sequential.
        segments: how many.
        input: of the first function.
        use_reentrant: as for checkpoint.
        kwargs: preserve_rng_state.

    Raises:
        ValueError: another keyword argument.
    """
    if use_reentrant is None:
        warnings.warn(_SAY_WHICH, stacklevel=2)
        use_reentrant = True
    preserve = kwargs.pop("preserve_rng_state", True)
    if kwargs:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    functions = list(functions.children()) if isinstance(functions, torch.nn.Sequential) else list(functions)
    size = len(functions) // segments
    for start in range(0, size * (segments - 1), size) if size else ():
        segment = _in_turn(functions[start : start + size])
        input = checkpoint(segment, input, use_reentrant=use_reentrant, preserve_rng_state=preserve)  # noqa: A001
    return _in_turn(functions[size * (segments - 1) :])(input)


def _in_turn(functions: Sequence[Callable[[Any], Any]]) -> Callable[[Any], Any]:
    def call(x: Any) -> Any:
        for function in functions:
            x = function(x)
        return x

    return call
