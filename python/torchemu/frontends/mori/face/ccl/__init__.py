"""mori.ccl: collectives over SDMA engines and network cards."""

from __future__ import annotations

from torchemu.frontends.mori._flat import All2allSdma, AllgatherSdma, AllreduceSdma
from torchemu.frontends.mori._hier_handle import HierAllGather
from torchemu.frontends.mori._host_proxy import HostProxyHierAllGather
from torchemu.frontends.mori._into_tensor import AllGatherIntoTensor, DataType, size_of
from torchemu.frontends.mori._references import hier_allgather_reference, inter_node_ring_reference
from torchemu.frontends.mori._subgroups import (
    InterNodeRingAllgather,
    IntraNodeSubGroupAllgatherSdma,
    IntraNodeSubGroupBroadcastSdma,
)

__all__ = [
    "All2allSdma",
    "AllGatherIntoTensor",
    "AllgatherSdma",
    "AllreduceSdma",
    "DataType",
    "HierAllGather",
    "HostProxyHierAllGather",
    "InterNodeRingAllgather",
    "IntraNodeSubGroupAllgatherSdma",
    "IntraNodeSubGroupBroadcastSdma",
    "hier_allgather_reference",
    "inter_node_ring_reference",
    "size_of",
]
