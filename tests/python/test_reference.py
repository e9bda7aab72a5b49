"""The pages of the reference are what their generator writes, and the schemas take what the parsers take."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT

from torchemu.bridge.binding import go
from torchemu.launch import cli

FOLDER = ROOT / "docs" / "reference"


def generator() -> Any:
    spec = importlib.util.spec_from_file_location("reference", FOLDER / "make.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_pages_are_as_generated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    pages = generator().pages()
    assert {f.name for f in FOLDER.iterdir() if f.is_file()} == {*pages, "make.py"}
    if sys.version_info >= (3, 13):
        del pages["commands.md"]  # its argparse sets help in other lines
    for name, text in pages.items():
        assert (FOLDER / name).read_text() == text, f"{name}: make reference"


def checked(schema: dict[str, Any], value: Any, path: str = "") -> list[str]:
    """Returns what of a document the schema has no place for: keys, types and names, as an editor would say it."""
    if value is None:
        return []
    if schema.get("type") == "object":
        known, more = schema["properties"], schema["additionalProperties"]
        unknown = [f"{path}.{key}" for key in value if key not in known and more is False]
        return unknown + [
            problem for key in value if key in known or more is not False
            for problem in checked(known.get(key, more), value[key], f"{path}.{key}")
        ]  # fmt: skip
    if schema.get("type") == "array":
        return [problem for item in value for problem in checked(schema["items"], item, path)]
    if "enum" in schema:
        return [] if value in schema["enum"] else [f"{path}: {value}"]
    kinds = {"integer": int, "number": int | float, "string": str, "boolean": bool}
    allowed = schema.get("type", list(kinds))
    return [] if any(isinstance(value, kinds[k]) for k in allowed) else [f"{path}: {value!r} is no {allowed}"]


@pytest.mark.parametrize("preset", json.loads(go.Presets()))
def test_topologies_fit_their_schema(preset: str) -> None:
    schema = json.loads(go.FileSchema("topology"))
    spec = json.loads(go.TopologySpec(preset, 0))
    assert checked(schema, spec) == []
    spec["system"]["sips"]["conect"] = "ring"
    assert checked(schema, spec) == [".system.sips.conect"]


def test_schema_command(capsys: pytest.CaptureFixture[str]) -> None:
    for kind in ("topology", "ccl", "faults"):
        assert cli.main(["schema", kind]) == 0
        assert json.loads(capsys.readouterr().out) == json.loads((Path(FOLDER) / f"{kind}.schema.json").read_text())
    with pytest.raises(ValueError, match='there is no schema of "other"'):
        go.FileSchema("other")
