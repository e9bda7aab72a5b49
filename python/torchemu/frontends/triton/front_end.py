"""The stand-in for Triton: its kernels run in simulated time on a rank's device."""

from __future__ import annotations

from torchemu.frontends.base import FrontEnd

_EXTRA = "torchemu.frontends.triton_dist.face.language.extra"

FRONT_END = FrontEnd(
    packages={"triton": "torchemu.frontends.triton.face"},
    modules={  # where Triton-distributed had its functions before it had a package of its own
        "triton.language.extra.libshmem_device": f"{_EXTRA}.libshmem_device",
        "triton.language.extra.cuda.libshmem_device": f"{_EXTRA}.libshmem_device",
        "triton.language.extra.cuda.language_extra": f"{_EXTRA}.language_extra",
    },
    beside_all=True,
)
