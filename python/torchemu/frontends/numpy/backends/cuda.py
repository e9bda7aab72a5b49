"""torch.backends.cuda: switches of NVIDIA's libraries. They change nothing here."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

matmul = SimpleNamespace(
    allow_tf32=False,
    allow_fp16_reduced_precision_reduction=False,
    allow_bf16_reduced_precision_reduction=False,
    allow_fp16_accumulation=False,
    fp32_precision="ieee",
)


def is_built() -> bool:
    """True: there are devices of that name."""
    return True


def flash_sdp_enabled() -> bool:
    """False."""
    return False


mem_efficient_sdp_enabled = cudnn_sdp_enabled = flash_sdp_enabled


def math_sdp_enabled() -> bool:
    """True: attention is calculated as its definition says."""
    return True


def enable_flash_sdp(enabled: bool) -> None:
    """Does nothing."""


enable_mem_efficient_sdp = enable_math_sdp = enable_cudnn_sdp = enable_flash_sdp


@contextlib.contextmanager
def sdp_kernel(*args: Any, **kwargs: Any) -> Iterator[None]:
    """Changes nothing for the duration of a with block."""
    yield
