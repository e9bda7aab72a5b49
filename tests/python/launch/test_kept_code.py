"""Code of installed packages, compiled for ranks, is kept beside Python's own, and made anew where it must be."""

import importlib.util
import sys
from pathlib import Path

import pytest

from torchemu.launch import importing, shared_attributes
from torchemu.launch.modules import Rules

TELLS = "from torch.nn import functional as F\ndef f():\n    F.mine = {value}\n    return {value}\n"
PLAIN = "def f():\n    return {value}\n"


@pytest.fixture
def compiled(monkeypatch):
    """The files that have been compiled."""
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    files, real = [], shared_attributes.compiled

    def noting(source, file):
        files.append(file)
        return real(source, file)

    monkeypatch.setattr(shared_attributes, "compiled", noting)
    return files


def names(file: Path) -> set[str]:
    """The names that a file's function uses."""
    code = importing._Told("module", str(file), Rules(())).get_code("module")
    (function,) = (part for part in code.co_consts if hasattr(part, "co_names"))
    return {*function.co_names, *map(str, function.co_consts)}


@pytest.mark.parametrize("text", [TELLS, PLAIN])
def test_a_file_is_compiled_once(tmp_path, compiled, text):
    file = tmp_path / "module.py"
    file.write_text(text.format(value=3))
    first = names(file)
    assert names(file) == first and "3" in first
    assert compiled == [str(file)]
    file.write_text(text.format(value=44))
    assert "44" in names(file)
    assert len(compiled) == 2


@pytest.mark.parametrize("change", [lambda data: b"", lambda data: data[:30], lambda data: data[:24] + b"?" * 40])
def test_what_is_broken_is_made_anew(tmp_path, compiled, change):
    file = tmp_path / "module.py"
    file.write_text(TELLS.format(value=3))
    first, kept = names(file), Path(importlib.util.cache_from_source(str(file), optimization="told"))
    data = kept.read_bytes()
    kept.write_bytes(change(data))
    assert names(file) == first
    assert kept.read_bytes() == data and len(compiled) == 2


def test_a_copy_elsewhere_is_another_file(tmp_path, compiled):
    file, copy = tmp_path / "a" / "module.py", tmp_path / "b" / "module.py"
    file.parent.mkdir()
    file.write_text(TELLS.format(value=3))
    names(file)
    file.parent.rename(copy.parent)
    assert importing._Told("module", str(copy), Rules(())).get_code("module").co_filename == str(copy)


def test_nothing_is_kept_where_nothing_can_be(tmp_path, compiled):
    file = tmp_path / "module.py"
    file.write_text(TELLS.format(value=3))
    (tmp_path / "__pycache__").write_text("no folder")
    assert names(file) == names(file)
    assert len(compiled) == 2


def test_nothing_is_kept_where_python_keeps_nothing(tmp_path, compiled, monkeypatch):
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    file = tmp_path / "module.py"
    file.write_text(TELLS.format(value=3))
    names(file)
    assert not (tmp_path / "__pycache__").exists()
