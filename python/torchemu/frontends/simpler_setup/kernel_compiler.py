"""simpler_setup.kernel_compiler: makes keys for kernels of sources, which need not exist."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from torchemu.frontends.simpler import _kernels
from torchemu.frontends.simpler.worker import PLATFORMS, RUNTIMES

_CORE_TYPES = ("aic", "aiv")


class KernelCompiler:
    """What takes the place of the compiler.

    Attributes:
        project_root: a folder, for programs that put include paths together from it.

    Raises:
        ValueError: there is no such platform.
    """

    def __init__(self, platform: str = "a2a3") -> None:
        if platform not in PLATFORMS:
            raise ValueError(f"platform {platform!r}: want one of {', '.join(PLATFORMS)}")
        self.platform = platform
        self.project_root = Path(__file__).parent

    def get_orchestration_include_dirs(self, runtime_name: str) -> list[str]:
        """The folders where orchestrations for a runtime look for headers: none.

        Raises:
            ValueError: there is no such runtime.
        """
        _check_runtime(runtime_name)
        return []

    def compile_incore(
        self,
        source_path: str | os.PathLike[str],
        core_type: str = "aiv",
        pto_isa_root: str | None = None,
        extra_include_dirs: Sequence[str] | None = None,
    ) -> bytes:
        """A key for the kernel that the source's base name selects, for CoreCallable.build.

        Raises:
            RuntimeError: none is known by that name. The text lists those that are, and says how to write one.
            ValueError: there is no such type of core.
        """
        if core_type not in _CORE_TYPES:
            raise ValueError(f"core_type {core_type!r}: want one of {', '.join(_CORE_TYPES)}")
        return _kernels.compiled(source_path)

    def compile_orchestration(
        self,
        runtime_name: str,
        source_path: str | os.PathLike[str],
        extra_include_dirs: Sequence[str] | None = None,
    ) -> bytes:
        """A key for an orchestration, for ChipCallable.build. Without a file in Python beside the source it passes its
        arguments on to its kernel.

        Raises:
            ValueError: there is no such runtime.
        """
        _check_runtime(runtime_name)
        return _kernels.compiled_orchestration(source_path)


def _check_runtime(name: str) -> None:
    if name not in RUNTIMES:
        raise ValueError(f"runtime {name!r}: want one of {', '.join(RUNTIMES)}")
