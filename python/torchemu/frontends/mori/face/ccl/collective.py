"""mori.ccl.collective: collectives of one node, and the parts of the hierarchical all-gather."""

from __future__ import annotations

from torchemu.frontends.mori._flat import All2allSdma, AllgatherSdma, AllreduceSdma
from torchemu.frontends.mori._subgroups import (
    InterNodeRingAllgather,
    IntraNodeSubGroupAllgatherSdma,
    IntraNodeSubGroupBroadcastSdma,
)

__all__ = [
    "All2allSdma",
    "AllgatherSdma",
    "AllreduceSdma",
    "InterNodeRingAllgather",
    "IntraNodeSubGroupAllgatherSdma",
    "IntraNodeSubGroupBroadcastSdma",
]
