"""Methods of PyTorch's backends beside those of process groups: connections, and memory of their own."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, NoReturn

import torchemu.frontends.numpy as torch
from torchemu.frontends.numpy.distributed._options import BackendOptions

if TYPE_CHECKING:
    from torchemu.frontends.numpy._tensor import Tensor
    from torchemu.frontends.numpy.distributed._process_group import ProcessGroup

_LIBRARY = (2, 28, 9)  # of PyTorch 2.11


class ErrorType(enum.Enum):
    """The state of a backend, in its own words."""

    SUCCESS = 0
    TIMEOUT = 1
    COMM_ERROR = 2
    REMOTE_ERROR = 3


class BackendMethods:
    """ProcessGroup's methods among them: a group on the fabric is its own backend."""

    if TYPE_CHECKING:

        def _self(self) -> ProcessGroup: ...
    else:

        def _self(self) -> Any:
            return self

    @property
    def options(self) -> BackendOptions:
        """Returns those of a backend, which mean nothing here."""
        given = BackendOptions()
        given._timeout = self._self().timeout
        return given

    @property
    def supports_splitting(self) -> bool:
        """True: split_group works."""
        return True

    @property
    def supports_coalescing(self) -> bool:
        """True: several collectives can be one."""
        return True

    @property
    def supports_shrinking(self) -> bool:
        """True: shrink_group works."""
        return True

    @property
    def supports_time_estimate(self) -> bool:
        """True: _time_estimator works."""
        return True

    def _set_default_timeout(self, timeout: timedelta) -> None:
        self._self().set_timeout(timeout)

    def eager_connect_single_device(self, device: Any = None) -> None:
        """Does nothing: ranks are connected."""

    def perform_nocolor_split(self, device: Any = None) -> None:
        """Does nothing: groups are made without the ranks that are not in them."""

    def comm_split_count(self) -> int:
        """0: no communicator is made out of another."""
        return 0

    def get_error(self) -> ErrorType:
        """SUCCESS: what fails raises."""
        return ErrorType.SUCCESS

    @staticmethod
    def get_build_nccl_version() -> tuple[int, int, int]:
        """The version of NCCL that PyTorch would have been built with."""
        return _LIBRARY

    @staticmethod
    def get_runtime_nccl_version() -> tuple[int, int, int]:
        """The version of NCCL that PyTorch would run with."""
        return _LIBRARY

    def shrink(self, ranks_to_exclude: Sequence[int], shrink_flags: int = 0, opts_override: Any = None) -> NoReturn:
        """Returns what shrink_group is made of in PyTorch.

        Raises:
            RuntimeError: always.
        """
        name = self._self().name()
        raise RuntimeError(f"Backend {name} does not support shrink: use torch.distributed.shrink_group")

    # -- memory

    def supports_tensor_alloc(self, device: Any) -> bool:
        """Reports whether allocate_tensor works for a device: for all but the host."""
        return self._self().takes_devices and torch.device(device).type != "cpu"

    def allocate_tensor(self, size: Any, *, dtype: Any, device: Any) -> Tensor:
        """A tensor of this rank.

        Raises:
            RuntimeError: it is to be in the host's memory.
        """
        if not self.supports_tensor_alloc(device):
            raise RuntimeError(f"Backend {self._self().name()} does not support allocateTensor")
        return torch.empty(size, dtype=dtype, device=device)
