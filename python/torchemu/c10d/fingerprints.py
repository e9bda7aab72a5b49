"""Fingerprints are what PyTorch says of collectives that do not fit together, where the debug level is DETAIL."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from torchemu import dtypes
from torchemu.c10d.ops import OPS

_OPTIONS = (
    "TensorOptions(dtype=float (default), device={}, layout=Strided (default), requires_grad=false (default), "
    "pinned_memory=false (default), memory_format=(nullopt))"
)
"""How it prints a device type."""


class Fingerprint(NamedTuple):
    """A fingerprint is what is compared of a rank's call. The core does not know what a program calls its devices:
    the place is that of the tensors that the rank which asks has used last."""

    rank: int
    number: int
    operation: str
    shape: tuple[int, ...]
    dtypes: tuple[str, ...]
    place: str

    def __str__(self) -> str:
        if not self.dtypes:
            return f"CollectiveFingerPrint(SequenceNumber={self.number}OpType={self.operation})"
        return (
            f"CollectiveFingerPrint(SequenceNumber={self.number}, OpType={self.operation}, "
            f"TensorShape=[{', '.join(map(str, self.shape))}], TensorDtypes={' '.join(self.dtypes)}, "
            f"TensorDeviceTypes={self.devices})"
        )

    @property
    def devices(self) -> str:
        """The device type of each tensor."""
        return " ".join([_OPTIONS.format(self.place)] * len(self.dtypes))

    def differences(self, other: Fingerprint) -> str:
        """Returns what differs, as PyTorch lists it."""
        pairs = [
            ("  Op type: ", self.operation, other.operation),
            ("  Tensor Tensor shapes: ", " ".join(map(str, self.shape)), " ".join(map(str, other.shape))),
            ("  Tensor Tensor dtypes: ", " ".join(self.dtypes), " ".join(other.dtypes)),
            ("  Tensor Tensor devices: ", self.devices, other.devices),
        ]
        return "".join(f"{name}{mine}vs {theirs}" for name, mine, theirs in pairs if mine != theirs)


def mismatch(details: str, rank: int, place: str) -> str:
    """PyTorch's text for a rank of the group, which names its own call first; "" where it would find nothing.

    Args:
        details: of the core's MismatchError, as JSON: the collective's number, and two ranks' calls.
        rank: in the World; any rank that is not one of the two gets the text of the first.
        place: the type of the devices that its tensors are on.
    """
    found = json.loads(details)
    mine, other = (
        _of(call, found["number"], place) for call in sorted(found["calls"], key=lambda c: c["world"] != rank)
    )
    return told_apart(mine, other)


def told_apart(mine: Fingerprint, other: Fingerprint) -> str:
    """Returns PyTorch's text of two calls that differ; "" where they do not."""
    aspects = mine.differences(other)
    return aspects and f"{both(mine, other)}Collectives differ in the following aspects: {aspects}"


def both(mine: Fingerprint, other: Fingerprint) -> str:
    """Returns the beginning of PyTorch's text of two calls."""
    return (
        f"Detected mismatch between collectives on ranks. Rank {mine.rank} is running collective: {mine}, but "
        f"Rank {other.rank} is running collective: {other}."
    )


def _of(call: dict[str, Any], number: int, place: str) -> Fingerprint:
    op = OPS.get(call["name"])
    operation = (op and op.op_type) or call["name"].upper()
    compares = "given" if op is None else op.compares
    if not compares:
        return Fingerprint(call["rank"], number, operation, (), (), place)
    if call["name"].endswith(("_object", "_object_list")):
        return Fingerprint(call["rank"], number, operation, _sizes(call), ("Long",), place)
    kind = dtypes.parse(call["dtype"])
    shape = _shape(call, compares)
    if kind.is_complex:  # PyTorch hands the parts on
        kind, shape = kind.to_real(), (*shape, 2)
    title = kind.title
    titles = (title, title) if "SCATTER_BASE" in operation else (title,)
    return Fingerprint(call["rank"], number, operation, shape, titles, place)


def _shape(call: dict[str, Any], compares: str) -> tuple[int, ...]:
    """Of the tensor that is compared: what a rank itself gives, or gets where all is given by one or comes in parts."""
    own, others = call["inputs"], call["outputs"]
    if compares == "received":
        own, others = others, own
    return tuple((own or others)[0])


def _sizes(call: dict[str, Any]) -> tuple[int, ...]:
    """Of the tensor with objects' sizes: one for each in a list that is broadcast, else one."""
    return tuple(call["outputs"][0]) if call["name"] == "broadcast_object_list" else (1,)
