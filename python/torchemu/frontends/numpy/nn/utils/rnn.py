"""torch.nn.utils.rnn: batches of sequences of several lengths, padded or packed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, Self

import numpy as np

from torchemu import dtypes
from torchemu.frontends.numpy._autograd.derivative import Derivative, Joint
from torchemu.frontends.numpy._tensor.conversion import converted
from torchemu.frontends.numpy._tensor.core import Tensor
from torchemu.frontends.numpy._tensor.dispatch import Op, _op, no_flops
from torchemu.frontends.numpy._tensor.from_data import as_tensor, tensor

__all__ = [
    "PackedSequence",
    "invert_permutation",
    "pack_padded_sequence",
    "pack_sequence",
    "pad_packed_sequence",
    "pad_sequence",
    "unpack_sequence",
    "unpad_sequence",
]

Array = np.ndarray


# -- padded


def _pad(*given: Any) -> Array:
    """given: the sequences, then how long they become, whether the batch comes first, the padding, and whether it is
    in front."""
    *sequences, length, batch_first, value, left = given
    first = sequences[0]
    result = np.empty((len(sequences), length, *first.shape[1:]), first.dtype)
    result[...] = converted(np.asarray(value), first.dtype)
    for row, sequence in zip(result, sequences, strict=True):
        row[_span(len(sequence), length, left)] = converted(sequence, first.dtype)
    return result if batch_first else np.ascontiguousarray(np.swapaxes(result, 0, 1))


def _span(length: int, of: int, left: bool) -> slice:
    return slice(of - length, of) if left else slice(0, length)


def _pad_gradients(call: Any, grad: Tensor) -> list[Any]:
    length, batch_first, _, left = call.params
    rows = grad.unbind(0 if batch_first else 1)
    return [
        row[_span(call.shape(i)[0], length, left)].to(call.about(i).dtype) if needed else None
        for i, (row, needed) in enumerate(zip(rows, call.needs, strict=True))
    ]


def _padding(derivative: Derivative) -> Op:
    return Op("pad_sequence", _pad, no_flops, derivative=derivative)


PAD = _padding(Joint(_pad_gradients))


def pad_sequence(
    sequences: Any, batch_first: bool = False, padding_value: float = 0.0, padding_side: str = "right"
) -> Tensor:
    """Sequences of several lengths in one tensor.

    Args:
        sequences: tensors (length, …) that differ in their lengths only; or a tensor, whose rows they are.
        batch_first: (sequences, length, …) and not (length, sequences, …).
        padding_value: what follows, or precedes, the shorter ones.
        padding_side: "right" or "left".

    Raises:
        RuntimeError: no sequences, or not of one shape; no such side.
    """
    if isinstance(sequences, Tensor):
        sequences = sequences.unbind(0)
    elif not isinstance(sequences, Iterable):
        raise RuntimeError(
            f"pad_sequence: Expected iterable for input sequences, but got arg of type: {type(sequences)}"
        )
    given = tuple(sequences)
    if padding_side not in ("left", "right"):
        raise RuntimeError(f"Expected padding_side to be one of left or right, but got {padding_side}.")
    if not given:
        raise RuntimeError("received an empty list of sequences")
    for t in given[1:]:
        for axis, (a, b) in enumerate(zip(given[0]._shape[1:], t._shape[1:], strict=True), 1):
            if a != b:
                raise RuntimeError(
                    f"The size of tensor a ({a}) must match the size of tensor b ({b}) at non-singleton dimension "
                    f"{axis}"
                )
    length = max(t._shape[0] for t in given)
    return _op(PAD, given, length, batch_first, padding_value, padding_side == "left")


def unpad_sequence(padded_sequences: Tensor, lengths: Tensor, batch_first: bool = False) -> list[Tensor]:
    """The sequences that pad_sequence has padded.

    Args:
        padded_sequences: (length, sequences, …), or (sequences, length, …).
        lengths: of each.
        batch_first: which of the two.
    """
    rows = padded_sequences.unbind(0 if batch_first else 1)
    return [row[:length] for row, length in zip(rows, lengths.tolist(), strict=True)]


# -- packed


class _Packed(NamedTuple):
    data: Tensor
    batch_sizes: Tensor
    sorted_indices: Tensor | None
    unsorted_indices: Tensor | None


class PackedSequence(_Packed):
    """Sequences of several lengths without padding: all their first elements, all their second ones, ….

    Attributes:
        data: the elements, (elements of all sequences, …).
        batch_sizes: of how many sequences there is a first element, a second one, …; in the host's memory.
        sorted_indices: the order of the sequences, longest first; None: they are in order.
        unsorted_indices: where each of them has gone.
    """

    __slots__ = ()

    def __new__(
        cls,
        data: Any,
        batch_sizes: Tensor | None = None,
        sorted_indices: Tensor | None = None,
        unsorted_indices: Tensor | None = None,
    ) -> Self:
        if batch_sizes is None:
            if not isinstance(data, list | tuple) or len(data) != 2:
                raise AssertionError("Expected data to be a list or tuple of length 2")
            data, batch_sizes = data
        elif not batch_sizes.device.is_host:
            raise ValueError(
                "batch_sizes should always be on CPU. Instances of PackedSequence should never be created manually. "
                "They should be instantiated by functions like pack_sequence and pack_padded_sequences in nn.utils.rnn."
            )
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """With its data of another dtype or on another device."""
        data = self.data.to(*args, **kwargs)
        if data is self.data:
            return self
        where = data.device
        orders = [None if t is None else t.to(where) for t in (self.sorted_indices, self.unsorted_indices)]
        return type(self)(data, self.batch_sizes, *orders)

    def cuda(self, *args: Any, **kwargs: Any) -> Self:
        """On a device."""
        return self.to(self.data.cuda(*args, **kwargs).device)

    def cpu(self) -> Self:
        """In the host's memory."""
        return self.to("cpu")

    def pin_memory(self) -> Self:
        """Itself: it makes no difference here."""
        return self

    def is_pinned(self) -> bool:
        """Whether its data is in pinned memory."""
        return bool(self.data.is_pinned())

    @property
    def is_cuda(self) -> bool:
        """Whether its data is on a device."""
        return self.data.is_cuda


def _cast(name: str) -> Any:
    def method(self: PackedSequence) -> PackedSequence:
        return self.to(getattr(dtypes, name))

    method.__doc__ = f"With data of {name}."
    return method


for _method, _kind in {
    "double": "float64",
    "float": "float32",
    "half": "float16",
    "long": "int64",
    "int": "int32",
    "short": "int16",
    "char": "int8",
    "byte": "uint8",
}.items():
    setattr(PackedSequence, _method, _cast(_kind))


def invert_permutation(permutation: Tensor | None) -> Tensor | None:
    """Where each index has gone."""
    return None if permutation is None else permutation.argsort()


def pack_padded_sequence(
    input: Tensor,  # noqa: A002 (PyTorch's name)
    lengths: Any,
    batch_first: bool = False,
    enforce_sorted: bool = True,
) -> PackedSequence:
    """Packs sequences that are padded.

    Args:
        input: (length, sequences, …).
        lengths: of each sequence: integers in the host's memory.
        batch_first: the input is (sequences, length, …).
        enforce_sorted: the longest is first, and so on; False: they are brought into that order.

    Raises:
        RuntimeError: not as many lengths as sequences, one that is not positive or too large, or not sorted.
    """
    x = input.transpose(0, 1) if batch_first else input
    longest, sequences = x._shape[:2]
    counts = [int(n) for n in (lengths.tolist() if isinstance(lengths, Tensor) else lengths)]
    order = None
    if not enforce_sorted:
        order = as_tensor(sorted(range(len(counts)), key=lambda i: -counts[i]), device=x.device)
        counts = sorted(counts, reverse=True)
    _check_lengths(counts, longest, sequences)
    sizes = [sum(n > t for n in counts) for t in range(counts[0])]
    if order is not None:
        x = x.index_select(1, order)
    rows = as_tensor([t * sequences + i for t, n in enumerate(sizes) for i in range(n)], device=x.device)
    data = x.reshape(longest * sequences, *x._shape[2:]).index_select(0, rows)
    return PackedSequence(data, tensor(sizes, dtype=dtypes.int64, device="cpu"), order)


def _check_lengths(counts: Sequence[int], longest: int, sequences: int) -> None:
    """Of lengths that are to be sorted."""
    if len(counts) != sequences:
        raise RuntimeError(
            f"Expected `len(lengths)` to be equal to batch_size, but got {len(counts)} (batch_size={sequences})"
        )
    if not counts:
        raise RuntimeError("Cannot pack empty tensors.")
    if list(counts) != sorted(counts, reverse=True):
        raise RuntimeError(
            "`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. You can pass "
            "`enforce_sorted=False` to pack_padded_sequence and/or pack_sequence to sidestep this requirement if you "
            "do not need ONNX exportability."
        )
    if counts[-1] <= 0:
        raise RuntimeError(
            "Length of all samples has to be greater than 0, but found an element in 'lengths' that is <= 0"
        )
    if counts[0] > longest:
        raise RuntimeError(
            f"Expected `lengths` up to {longest}, the length of the padded sequences, but got {counts[0]}"
        )


def pad_packed_sequence(
    sequence: PackedSequence, batch_first: bool = False, padding_value: float = 0.0, total_length: int | None = None
) -> tuple[Tensor, Tensor]:
    """The sequences, padded, and their lengths.

    Args:
        sequence: packed sequences.
        batch_first: (sequences, length, …) and not (length, sequences, …).
        padding_value: what follows the shorter ones.
        total_length: how long they become; None: as the longest.

    Raises:
        ValueError: the longest is longer.
    """
    sizes = sequence.batch_sizes.tolist()
    longest = len(sizes) if total_length is None else total_length
    if longest < len(sizes):
        raise ValueError(
            "Expected total_length to be at least the length of the longest sequence in input, but got "
            f"total_length={total_length} and max sequence length being {len(sizes)}"
        )
    data, sequences = sequence.data, sizes[0]
    rows = as_tensor([t * sequences + i for t, n in enumerate(sizes) for i in range(n)], device=data.device)
    empty = data.new_full((longest * sequences, *data._shape[1:]), padding_value)
    padded = empty.index_copy(0, rows, data).reshape(longest, sequences, *data._shape[1:])
    lengths = tensor([sum(n > i for n in sizes) for i in range(sequences)], dtype=dtypes.int64, device="cpu")
    if sequence.unsorted_indices is not None:
        padded = padded.index_select(1, sequence.unsorted_indices)
        lengths = lengths[sequence.unsorted_indices.cpu()]
    return padded.transpose(0, 1) if batch_first else padded, lengths


def pack_sequence(sequences: list[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """Packs sequences, (length, …) each; see pack_padded_sequence."""
    lengths = [t._shape[0] for t in sequences]
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """The sequences that have been packed."""
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)
