"""The build says what is missing, and notices what gopy leaves out."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

BACKEND = Path(__file__).resolve().parents[2] / "python" / "build_backend"

NEEDED_BY_THE_SCRIPT = ("sh", "tail")


def loaded(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, BACKEND / f"{name}.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def extension() -> ModuleType:
    return loaded("extension")


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    """A folder for PATH with stand-ins that satisfy every check."""
    for name in NEEDED_BY_THE_SCRIPT:
        (tmp_path / name).symlink_to(str(shutil.which(name)))
    for name in ("python", "gcc", "git"):
        stand_in(tmp_path / name, "exit 0")
    stand_in(tmp_path / "go", "echo go1.26.0")
    return tmp_path


def stand_in(path: Path, script: str) -> None:
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def complaint(tools: Path, purpose: str = "setup") -> str:
    """Returns what prerequisites.sh says on a machine with these tools; empty when it is content."""
    command = ["sh", str(BACKEND / "prerequisites.sh"), purpose, "python"]
    done = subprocess.run(command, env={"PATH": str(tools)}, capture_output=True, text=True, check=False)
    assert (done.returncode == 0) == (done.stderr == "")
    assert done.stdout == ""
    return done.stderr


def test_complete_machine_is_accepted(tools: Path) -> None:
    assert complaint(tools) == ""


@pytest.mark.parametrize(
    ("tool", "package"),
    [("python", "python3"), ("go", "golang-go"), ("gcc", "gcc"), ("git", "git")],
)
def test_missing_tool_is_named_in_one_line(tools: Path, tool: str, package: str) -> None:
    (tools / tool).unlink()
    said = complaint(tools)
    assert said.count("\n") == 1
    assert f": install {package} " in said


@pytest.mark.parametrize(
    ("what", "package"),
    [("version_info", "python3 3.11 or newer"), ("ensurepip", "python3-venv"), ("Python.h", "python3-dev")],
)
def test_missing_part_of_python_is_named_in_one_line(tools: Path, what: str, package: str) -> None:
    stand_in(tools / "python", f'case $2 in *{what}*) exit 1;; esac; [ "$1" != --version ] || echo Python 3.9.1')
    said = complaint(tools)
    assert said.count("\n") == 1
    assert "Python 3.9.1" in said
    assert f": install {package} " in said


@pytest.mark.parametrize("version", ["go1.9", "go1.9.7", "go1.19.2", "go1.25.9", "go1.20", "go1.25rc1"])
def test_old_go_is_refused(tools: Path, version: str) -> None:
    stand_in(tools / "go", f"echo {version}")
    assert f"Go 1.26 or newer ({version} is there)" in complaint(tools)


@pytest.mark.parametrize("version", ["go1.26", "go1.26.8", "go1.30.1", "go1.100", "go2.0", "devel go1.27-abcdef"])
def test_new_go_is_accepted(tools: Path, version: str) -> None:
    stand_in(tools / "go", f"echo {version}")
    assert complaint(tools) == ""


def test_missing_c_headers_are_named(tools: Path) -> None:
    stand_in(tools / "gcc", "exit 1")
    assert ": install libc6-dev " in complaint(tools)


def test_building_a_wheel_takes_neither_git_nor_venv(tools: Path) -> None:
    (tools / "git").unlink()
    stand_in(tools / "python", "case $2 in *ensurepip*) exit 1;; esac")
    assert complaint(tools, "build") == ""


def bindings(folder: Path, exported: str, wrapped: str) -> tuple[Path, Path]:
    """A Go package and what gopy made of it."""
    package = folder / "pybind"
    package.mkdir()
    (package / "exported.go").write_text(exported)
    (package / "exported_test.go").write_text("package pybind\n\nfunc TestNotExported(t *testing.T) {}\n")
    generated = folder / "generated.go"
    generated.write_text(wrapped)
    return package, generated


def test_complete_bindings_are_accepted(extension: ModuleType, tmp_path: Path) -> None:
    exported = "package pybind\n\nfunc Run(n int) {}\n\nfunc hidden() {}\n"
    package, generated = bindings(tmp_path, exported, "//export pybind_Run\nfunc pybind_Run(n C.long) {\n")
    extension.check_complete("--- Processing package: pybind ---\n", package, generated)


def test_function_that_was_left_out_fails_the_build(extension: ModuleType, tmp_path: Path) -> None:
    exported = "package pybind\n\nfunc Run(n int) {}\n\nfunc Lost(n int) {}\n"
    package, generated = bindings(tmp_path, exported, "//export pybind_Run\nfunc pybind_Run(n C.long) {\n")
    with pytest.raises(extension.BuildError, match="missing: Lost\n"):
        extension.check_complete("", package, generated)


@pytest.mark.parametrize(
    "line",
    [
        "ignoring python incompatible function: pybind.func pybind.F() (int, int): func() (int, int): too many",
        "2026/01/01 00:00:00 Note: there was an error building [pybind] -- will continue but it may fail later",
        "gopy: programmer error: empty zval zero value in symbol: F",
    ],
)
def test_complaint_of_gopy_fails_the_build(extension: ModuleType, tmp_path: Path, line: str) -> None:
    package, generated = bindings(tmp_path, "package pybind\n", "")
    with pytest.raises(extension.BuildError) as raised:
        extension.check_complete(f"--- Processing package ---\n{line}\n", package, generated)
    assert line in str(raised.value)


def test_changed_gopy_output_is_noticed(extension: ModuleType, tmp_path: Path) -> None:
    file = tmp_path / "pybind.go"
    file.write_text("no flags here\n")
    with pytest.raises(extension.BuildError, match="found 0"):
        extension.patch_cgo_flags(file)


def test_only_sources_of_the_extension_are_inputs(extension: ModuleType) -> None:
    names = ["ccl/ring.go", "torchemu/topology/presets/default.yaml", "torchemu/tensor/sum_amd64.s"]
    others = ["ccl/ring_test.go", "ccl/testdata/golden.yaml", "pybind/notes.md"]
    assert [name for name in names + others if extension.is_source(Path(name))] == names


def test_digest_follows_the_sources(extension: ModuleType, tmp_path: Path) -> None:
    for name in extension.BUILD_FILES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    source = tmp_path / "ccl" / "ring.go"
    source.parent.mkdir()
    digests = [extension.inputs_digest(tmp_path)]
    for text in ("package ccl\n", "package ccl // changed\n"):
        source.write_text(text)
        digests.append(extension.inputs_digest(tmp_path))
    source.unlink()
    assert len(set(digests)) == 3
    assert extension.inputs_digest(tmp_path) == digests[0]


def test_prerequisites_of_this_machine_are_met() -> None:
    command = ["sh", str(BACKEND / "prerequisites.sh"), "setup", sys.executable]
    assert subprocess.run(command, capture_output=True, check=False).returncode == 0


def test_wheels_are_built_for_each_python_that_is_new_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One of each minor version, which can build, from PATH or pyenv."""
    wheels = loaded("wheels")
    says = {
        "bin/python3": "cpython 3 11 2 0",
        "bin/python3.12": "cpython 3 12 0 0",
        "bin/python3.13": "cpython 3 13 0 1",  # without a GIL
        "bin/python3.9": "cpython 3 9 1 0",
        "bin/python3-config": "cpython 3 15 0 0",
        ".pyenv/versions/3.11.7/bin/python3": "cpython 3 11 7 0",
        ".pyenv/versions/3.12.1/bin/python3": "cpython 3 12 1 0",
        ".pyenv/versions/3.14.0/bin/python3": "cpython 3 14 0 0",
        ".pyenv/versions/pypy/bin/python3": "pypy 3 11 0 0",
        ".pyenv/versions/broken/bin/python3": "",
    }
    for name, text in says.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        stand_in(tmp_path / name, f"echo {text}")
    lacking = {tmp_path / "bin/python3.12", tmp_path / ".pyenv/versions/3.14.0/bin/python3"}
    monkeypatch.setattr(wheels, "lacks", lambda python: "no Python.h" if python in lacking else "")
    found = wheels.pythons({"HOME": str(tmp_path), "PATH": f"{tmp_path}/none:{tmp_path}/bin"})
    assert found == {
        (3, 11): tmp_path / "bin/python3",
        (3, 12): tmp_path / ".pyenv/versions/3.12.1/bin/python3",
    }
    told = capsys.readouterr().err
    assert told == f"no wheel for CPython 3.14: {tmp_path}/.pyenv/versions/3.14.0/bin/python3: no Python.h\n"


def test_tools_of_wheels_are_pinned() -> None:
    wheels = loaded("wheels")
    assert {line.partition("==")[0] for line in wheels.pinned()} == set(wheels.TOOLS)
