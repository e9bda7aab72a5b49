"""simpler_setup.kernel_compiler: compiles kernels and orchestrations."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from torchemu.frontends.pto._compiler import HEADERS
from torchemu.frontends.simpler import _kernels
from torchemu.frontends.simpler.worker import PLATFORMS, RUNTIMES, check_one_of

_CORE_TYPES = ("aic", "aiv")


class KernelCompiler:
    """The machine's g++, with torchemu's headers under the names of pto-isa's.

    Attributes:
        project_root: a folder, for programs that put include paths together from it.

    Raises:
        ValueError: there is no such platform.
    """

    def __init__(self, platform: str = "a2a3") -> None:
        check_one_of("platform", platform, PLATFORMS)
        self.platform = platform
        self.project_root = Path(__file__).parent

    def get_orchestration_include_dirs(self, runtime_name: str) -> list[str]:
        """The folders where orchestrations for a runtime look for headers.

        Raises:
            ValueError: there is no such runtime.
        """
        check_one_of("runtime", runtime_name, RUNTIMES)
        return [str(HEADERS)]

    def compile_incore(
        self,
        source_path: str | os.PathLike[str],
        core_type: str = "aiv",
        pto_isa_root: str | None = None,
        extra_include_dirs: Sequence[str] | None = None,
    ) -> bytes:
        """Compiles a kernel; returns a key for it, for CoreCallable.build.

        Where there is no g++, or no such file, what runs is the file in Python beside it, or a kernel of torchemu's
        that the base name selects. A line on stderr says so.

        Raises:
            RuntimeError: the compiler has found something wrong, and the text is what it says; or nothing can run.
            ValueError: there is no such type of core.
        """
        check_one_of("core_type", core_type, _CORE_TYPES)
        return _kernels.compiled(Path(source_path), core_type, list(extra_include_dirs or ()))

    def compile_orchestration(
        self,
        runtime_name: str,
        source_path: str | os.PathLike[str],
        extra_include_dirs: Sequence[str] | None = None,
    ) -> bytes:
        """Compiles an orchestration; returns a key for it, for ChipCallable.build. Where it cannot be compiled, and is
        not in Python beside the source, it passes its arguments on to its kernel.

        Raises:
            RuntimeError: the compiler has found something wrong.
            ValueError: there is no such runtime.
        """
        check_one_of("runtime", runtime_name, RUNTIMES)
        return _kernels.compiled_orchestration(Path(source_path), list(extra_include_dirs or ()))
