"""Numbers that programs import."""

from __future__ import annotations

from torchemu.c10d.backends import DEFAULT_TIMEOUT, NCCL_TIMEOUT

__all__ = ["default_pg_nccl_timeout", "default_pg_timeout"]

default_pg_timeout = DEFAULT_TIMEOUT
"""How long an operation may take, but for backend nccl."""

default_pg_nccl_timeout = NCCL_TIMEOUT
"""How long an operation may take with backend nccl."""

_DEFAULT_PG_TIMEOUT, _DEFAULT_PG_NCCL_TIMEOUT = default_pg_timeout, default_pg_nccl_timeout
