"""LSTM, GRU and RNN: computed as products and pointwise operations, charged as cuDNN's kernels for whole sequences."""

from __future__ import annotations

import contextlib
import functools
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._python_dispatch import _get_current_dispatch_mode_stack

from torchemu.frontends.torch.device import places, recurrent_costs
from torchemu.frontends.torch.device.dispatch import RankMode
from torchemu.frontends.torch.device.kernel_costs import Kernels
from torchemu.frontends.torch.device.patches import Replacements
from torchemu.runtime import capture as captures

_VF: Any = torch._VF

_MOST = 4096
"""Calls whose gradients may still be asked for; those of an older one are charged as what they are made of."""

_SUMS = ("add", "add_")
"""How autograd adds up the gradients of one tensor, between the nodes that give them."""

_next_number: Callable[[], int] = torch._C._autograd._get_sequence_nr
_node: Callable[[], Any] = torch._C._current_autograd_node
_graph_task: Callable[[], int] = torch._C._current_graph_task_id


def put(replaced: Replacements) -> None:
    """Puts the functions in place that torch.nn calls."""
    for name, gates in recurrent_costs.GATES.items():
        replaced.put(type(_VF), name, staticmethod(_charged_whole(getattr(_VF, name), gates)))


def _charged_whole(original: Callable[..., Any], gates: int) -> Callable[..., Any]:
    @functools.wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        mode = _mode() if not kwargs and places.is_plain_on_device(args[0]) else None
        forward = () if mode is None else recurrent_costs.kernels(gates, args, backward=False)
        if mode is None or not forward:
            with _apart():
                return original(*args, **kwargs)
        calls = _Calls.of(mode)
        with calls.made_of_operations(lambda: recurrent_costs.kernels(gates, args, backward=True)), _apart():
            out = original(*args)
        launch = functools.partial(_launch, mode, forward)
        with captures.noted(launch, ()):
            launch()
        return out

    return call


def _launch(mode: RankMode, kernels: Kernels) -> None:
    for kernel in kernels:
        mode.launch(*kernel)


@contextlib.contextmanager
def _apart() -> Iterator[None]:
    """Lets no library of the CPU's run a network as a whole: the operations would not be seen."""
    before = torch._C._get_mkldnn_enabled()
    torch._C._set_mkldnn_enabled(False)
    try:
        yield
    finally:
        torch._C._set_mkldnn_enabled(before)


def _mode() -> RankMode | None:
    """Returns the mode of the running thread of a rank."""
    return next((mode for mode in reversed(_get_current_dispatch_mode_stack()) if isinstance(mode, RankMode)), None)


@dataclass(slots=True)
class _Gradients:
    """The gradients of one call.

    Attributes:
        begin, end: autograd's numbers of the nodes that compute them: end is of no node.
        kernels: what is charged for all of them.
        charged_in: the backward pass in which they have been charged last; -1: none.
    """

    begin: int
    end: int
    kernels: Kernels
    charged_in: int = -1


class _Calls:
    """Launches of one thread of a rank, but for the operations of which networks and their gradients are made.

    Args:
        launch: puts a kernel on the rank's current stream.
    """

    def __init__(self, launch: Callable[[str, int, int, str], None]) -> None:
        self._launch = launch
        self._gradients: list[_Gradients] = []  # in the order of the calls
        self._adding = -1  # the backward pass whose last kernel was part of gradients, which autograd may add up next
        self._is_inside = False

    @staticmethod
    def of(mode: RankMode) -> _Calls:
        """Returns those of a mode, which launches by them from the first call on."""
        if not isinstance(mode.launch, _Calls):
            mode.launch = _Calls(mode.launch)
        return mode.launch

    def __call__(self, name: str, nbytes: int, flops: int, unit: str) -> None:
        """Puts a kernel on the rank's current stream, unless it is part of a network."""
        if not (self._is_inside or self._is_of_gradients(name)):
            self._launch(name, nbytes, flops, unit)

    @contextlib.contextmanager
    def made_of_operations(self, gradients: Callable[[], Kernels]) -> Iterator[None]:
        """Charges nothing within the with block, and what its nodes compute in a backward pass as kernels of gradients.

        Args:
            gradients: returns these kernels; it is called if there are nodes.
        """
        begin, self._is_inside = _next_number(), True
        try:
            yield
        finally:
            self._is_inside = False
        if (end := _next_number()) > begin:
            if len(self._gradients) == _MOST:
                del self._gradients[: _MOST // 2]
            self._gradients.append(_Gradients(begin, end, gradients()))

    def _is_of_gradients(self, name: str) -> bool:
        """Reports whether a kernel is part of a call's gradients. With the first one in a pass all are charged."""
        node, running = _node(), _graph_task()
        if node is None:
            return running >= 0 and running == self._adding and name in _SUMS
        found = self._of(node._sequence_nr())
        self._adding = -1 if found is None else running
        if found is None:
            return False
        if found.charged_in != running:
            found.charged_in = running
            for kernel in found.kernels:
                self._launch(*kernel)
        return True

    def _of(self, number: int) -> _Gradients | None:
        """Returns the gradients of which a node, by its number, is part."""
        at = bisect_right(self._gradients, number, key=lambda gradients: gradients.begin) - 1
        return self._gradients[at] if at >= 0 and number < self._gradients[at].end else None
