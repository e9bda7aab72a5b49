"""torch.backends: switches of libraries that are not used here. Programs may set them; nothing changes."""

from __future__ import annotations

from types import SimpleNamespace

cudnn = SimpleNamespace(enabled=False, benchmark=False, deterministic=True, allow_tf32=False)
cuda = SimpleNamespace(
    matmul=SimpleNamespace(
        allow_tf32=False,
        allow_fp16_reduced_precision_reduction=False,
        allow_bf16_reduced_precision_reduction=False,
    )
)
