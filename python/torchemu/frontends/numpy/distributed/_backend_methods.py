"""Methods by which PyTorch's backends tell of themselves, beside those of process groups."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torchemu.frontends.numpy.distributed._options import BackendOptions

if TYPE_CHECKING:
    from torchemu.frontends.numpy.distributed._process_group import ProcessGroup


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
