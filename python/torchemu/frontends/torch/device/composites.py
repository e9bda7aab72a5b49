"""Functions that C++ makes of other operations, and that go another way on what it takes for memory of the host."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import Any

import torch

from torchemu.frontends.torch.device import places, timing
from torchemu.frontends.torch.device.patches import Replacements, overridable

_MADE_OF_OTHERS: tuple[tuple[Any, tuple[str, ...]], ...] = (
    (torch.nn.functional, ("ctc_loss",)),
    (torch, ("combinations", "ctc_loss", "nanquantile", "quantile", "vander")),
    (torch._C._nn, ("pad_sequence",)),
    (torch.linalg, ("matrix_rank",)),
    (torch.Tensor, ("nanquantile", "quantile")),
)
"""Functions that make tensors on what they take for the device of their operand, or of the first of several."""

_UNALLOCATED = "its data is not allocated yet"
"""PyTorch's words for a look at an element of a tensor that has none."""


def put(replaced: Replacements) -> None:
    """Makes them go the way that they have on devices."""
    for owner, names in _MADE_OF_OTHERS:
        for name in names:
            original = getattr(owner, name)
            replaced.put(owner, name, overridable(_near_operand(original), original))
    replaced.put(torch, "ctc_loss", overridable(_lengths_as_numbers(torch.ctc_loss), torch.ctc_loss))
    replaced.put(torch._VF, "_pad_packed_sequence", _padded(torch._VF._pad_packed_sequence))
    one_hot = torch.nn.functional.one_hot
    replaced.put(torch.nn.functional, "one_hot", overridable(_one_hot(one_hot), one_hot))


def _near_operand(original: Callable[..., Any]) -> Callable[..., Any]:
    """Makes a function put what it makes where its first operand is.

    Raises:
        RuntimeError: it looks at elements, and there are none.
    """

    @functools.wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        first = args[0] if args else None
        if isinstance(first, list | tuple) and first:
            first = first[0]
        try:
            with places.made_at(places.of(first) if isinstance(first, torch.Tensor) else None):
                return original(*args, **kwargs)
        except RuntimeError as error:
            if _UNALLOCATED in str(error) and timing.is_without_elements(first):
                raise timing.lacking(f"{original.__name__}: PyTorch looks at elements of its operands") from None
            raise

    return call


def _lengths_as_numbers(original: Callable[..., Any]) -> Callable[..., Any]:
    """Makes ctc_loss take lengths that the host has as numbers: PyTorch divides by them on the device of the others."""

    @functools.wraps(original)
    def ctc_loss(log_probs: Any, targets: Any, input_lengths: Any, target_lengths: Any, *args: Any, **more: Any) -> Any:
        lengths = [input_lengths, target_lengths]
        tensors = [t for t in lengths if isinstance(t, torch.Tensor)]
        if places.of(log_probs) is not None and any(places.of(t) is None for t in tensors):
            lengths = [t.tolist() if isinstance(t, torch.Tensor) else t for t in lengths]
        return original(log_probs, targets, *lengths, *args, **more)

    return ctc_loss


def _one_hot(original: Callable[..., Any]) -> Callable[..., Any]:
    """Makes one_hot scatter ones into zeros: only the host's looks at the classes first, and meta tensors' compares.

    Raises:
        RuntimeError: the number of classes depends on elements, and there are none.
    """

    @functools.wraps(original)
    def one_hot(tensor: torch.Tensor, num_classes: int = -1) -> torch.Tensor:
        if places.of(tensor) is None or tensor.dtype is not torch.int64 or not tensor.numel():
            return original(tensor, num_classes)
        if num_classes == -1 and timing.is_without_elements(tensor):
            raise timing.lacking("one_hot without num_classes: the size of its result depends on elements")
        classes = int(tensor.max()) + 1 if num_classes == -1 else num_classes
        if classes < 1:
            raise RuntimeError("num_classes should be positive")
        return tensor.new_zeros((*tensor.shape, classes)).scatter_(-1, tensor.unsqueeze(-1), 1)

    return one_hot


def _padded(original: Callable[..., Any]) -> Callable[..., Any]:
    """Makes _pad_packed_sequence put the sequences where what is packed is, and leave their lengths on the host."""

    @functools.wraps(original)
    def _pad_packed_sequence(
        data: torch.Tensor, batch_sizes: torch.Tensor, batch_first: bool, padding_value: float, total_length: int
    ) -> tuple[torch.Tensor, torch.Tensor]:
        if places.of(data) is None:
            padded, lengths = original(data, batch_sizes, batch_first, padding_value, total_length)
            return padded, lengths
        sizes = batch_sizes.tolist()
        steps = len(sizes) if total_length <= 0 else total_length
        if steps < len(sizes):
            raise RuntimeError(
                "Expected total_length to be at least the length of the longest sequence in input, but got "
                f"total_length={total_length} and max sequence length being {len(sizes)}"
            )
        padded, done, start = data.new_full((steps, sizes[0], *data.shape[1:]), padding_value), 0, 0
        for size, run in itertools.groupby(sizes):
            end = start + len(list(run))
            part = data[done : done + size * (end - start)]
            padded[start:end, :size].copy_(part.view(end - start, size, *data.shape[1:]))
            done, start = done + len(part), end
        lengths = torch.tensor([sum(size > i for size in sizes) for i in range(sizes[0])], dtype=batch_sizes.dtype)
        return padded.transpose(0, 1) if batch_first else padded, lengths

    return _pad_packed_sequence
