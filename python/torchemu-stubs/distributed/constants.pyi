"""Names for type checkers; written by python/build_backend/stubs.py."""


from torchemu.frontends.numpy._C._distributed_c10d import _DEFAULT_PG_NCCL_TIMEOUT as default_pg_nccl_timeout
from torchemu.frontends.numpy._C._distributed_c10d import _DEFAULT_PG_TIMEOUT as default_pg_timeout

