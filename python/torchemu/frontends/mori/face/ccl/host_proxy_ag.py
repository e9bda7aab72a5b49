"""mori.ccl.host_proxy_ag: a hierarchical all-gather whose hosts post what crosses between nodes."""

from __future__ import annotations

from torchemu.frontends.mori._host_proxy import HostProxyHierAllGather

__all__ = ["HostProxyHierAllGather"]
