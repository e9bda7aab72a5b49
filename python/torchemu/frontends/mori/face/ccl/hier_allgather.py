"""mori.ccl.hier_allgather: the hierarchical all-gather, and what it gives without a device."""

from __future__ import annotations

from torchemu.frontends.mori._hier_handle import HierAllGather
from torchemu.frontends.mori._references import hier_allgather_reference, inter_node_ring_reference

__all__ = ["HierAllGather", "hier_allgather_reference", "inter_node_ring_reference"]
