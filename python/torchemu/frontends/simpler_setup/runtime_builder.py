"""simpler_setup.runtime_builder: the runtimes of a platform, which a simulated chip needs none of."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from torchemu.frontends.simpler.worker import PLATFORMS, RUNTIMES, check_one_of

_ROLES = ("host", "aicpu", "aicore")


@dataclass(frozen=True)
class RuntimeBinaries:
    """A runtime's files. All are the module that stands in for them: there is nothing to be loaded from them.

    Attributes:
        host_path, aicpu_path, aicore_path: of the host, the chip's scheduler and its cores.
        simpler_log_path, sim_context_path: of what these use; the last is None but for a simulator's platform.
        role_paths: the first three, by "host", "aicpu" and "aicore".
    """

    host_path: Path
    aicpu_path: Path
    aicore_path: Path
    simpler_log_path: Path
    sim_context_path: Path | None = None
    role_paths: dict[str, Path] = field(default_factory=dict)

    def path_for_role(self, role: str) -> Path:
        """The file of a role.

        Raises:
            KeyError: there is no such role.
        """
        if role not in self.role_paths:
            raise KeyError(f"no role {role!r}: there are {', '.join(self.role_paths)}")
        return self.role_paths[role]


class RuntimeBuilder:
    """The runtimes of a platform.

    Raises:
        ValueError: there is no such platform.
    """

    def __init__(self, platform: str = "a2a3") -> None:
        check_one_of("platform", platform, PLATFORMS)
        self.platform = platform

    def list_runtimes(self) -> list[str]:
        """The names of the runtimes that there are."""
        return list(RUNTIMES)

    def get_binaries(self, name: str, build: bool = False) -> RuntimeBinaries:
        """The files of a runtime; nothing is built.

        Raises:
            ValueError: there is no such runtime.
        """
        check_one_of("runtime", name, RUNTIMES)
        here = Path(__file__).resolve()
        context = here if self.platform.endswith("sim") else None
        return RuntimeBinaries(here, here, here, here, context, dict.fromkeys(_ROLES, here))
