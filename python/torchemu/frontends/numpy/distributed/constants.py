"""Numbers that programs import."""

from __future__ import annotations

from datetime import timedelta

__all__ = ["default_pg_nccl_timeout", "default_pg_timeout"]

default_pg_timeout = timedelta(minutes=30)
"""How long an operation may take, but for backend nccl."""

default_pg_nccl_timeout = timedelta(minutes=10)
"""How long an operation may take with backend nccl."""

_DEFAULT_PG_TIMEOUT, _DEFAULT_PG_NCCL_TIMEOUT = default_pg_timeout, default_pg_nccl_timeout
