"""The wheel build's hook: has the Go core compiled and puts it into the wheel, or in place for an editable install."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

sys.path.insert(0, str(Path(__file__).parent))  # hatchling loads this file by its path
from extension import BuildError, build, install


class ExtensionHook(BuildHookInterface):
    """Adds torchemu._core, which makes the wheel one for this Python and this platform."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        root = Path(self.root)
        try:
            out = build(root)
        except BuildError as error:
            self.app.abort(str(error))
        if version == "editable":
            install(out, root / "python" / "torchemu" / "_core")
        else:
            build_data["force_include"][str(out)] = "torchemu/_core"
            build_data["force_include"].update(_benches(root))
        build_data["pure_python"] = False
        build_data["infer_tag"] = True


def _benches(root: Path) -> dict[str, str]:
    """The benches but for those in Go: files of the tree, and where they are in the wheel."""
    files = (f for f in (root / "benches").rglob("*") if f.is_file() and f.suffix not in (".go", ".pyc"))
    return {str(f): f"torchemu/{f.relative_to(root).as_posix()}" for f in files}
