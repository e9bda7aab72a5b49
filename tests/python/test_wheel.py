"""The wheel: built from the sdist through PEP 517, then used from a venv of its own outside the source tree."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.slow
EXTRA = re.compile(r"Requires-Dist: (\w+)[^;]*; extra == '(\w+)'")


def run(command: Sequence[str | Path], folder: Path) -> str:
    """Runs a command in folder and returns what it printed; without PYTHONPATH, which could show it the source tree."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel built from the sdist, so that a file that the sdist lacks is missed."""
    folder = tmp_path_factory.mktemp("dist")
    run([sys.executable, "-m", "hatchling", "build", "--target", "sdist", "--directory", folder], ROOT)
    (sdist,) = folder.glob("torchemu-*.tar.gz")
    run([sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", sdist], folder)
    (built,) = folder.glob("torchemu-*.whl")
    return built


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of a venv that has the wheel; it borrows the wheel's dependencies from the running one."""
    venv = tmp_path_factory.mktemp("other") / "venv"
    run([sys.executable, "-m", "venv", "--without-pip", venv], venv.parent)
    interpreter = venv / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", interpreter]
    run([*pip, "install", "--no-deps", "--no-index", wheel], venv.parent)
    site = Path(run([interpreter, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], venv).strip())
    # A path named in a .pth file is searched, but the .pth files in it, such as the editable install's, are not read.
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return interpreter


def test_tag_is_of_this_python_and_platform(wheel: Path) -> None:
    tag = f"cp{sys.version_info.major}{sys.version_info.minor}"
    platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    assert wheel.name.endswith(f"-{tag}-{tag}-{platform}.whl")


def test_holds_the_package_and_one_extension(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert "torchemu/py.typed" in names
    assert [name for name in names if name.endswith(".so")] == [
        f"torchemu/_core/_pybind{sysconfig.get_config_var('EXT_SUFFIX')}"
    ]
    assert not [name for name in names if not name.startswith(("torchemu/", "torchemu-"))]


def test_declares_its_dependencies(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (metadata,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        lines = archive.read(metadata).decode().splitlines()
    required = [line.removeprefix("Requires-Dist: ") for line in lines if line.startswith("Requires-Dist: ")]
    required = [line for line in required if "; extra ==" not in line]
    names = {re.split("[<>=]", name)[0].replace("-", "_") for name in required}
    assert names == {"numpy", "greenlet", "ml_dtypes", "shtab"}


def test_has_extras_for_what_is_not_always_needed(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (metadata,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        lines = archive.read(metadata).decode().splitlines()
    wanted = {(found[2], found[1]) for line in lines if (found := EXTRA.match(line))}
    assert wanted == {("plot", "matplotlib"), ("sweep", "matplotlib"), ("sweep", "pyarrow"), ("torch", "torch")}


def test_imports_from_the_other_venv(python: Path, tmp_path: Path) -> None:
    said = run([python, "-c", "import torchemu; print(torchemu.__file__)"], tmp_path)
    assert Path(said.strip()).is_relative_to(python.parents[1])


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("bench ccl_allreduce --topology sips2", "all_reduce of 32 float16 on 2 ranks: OK"),
        ("topology show h800_2x8", "h800_2x8"),
        ("bandwidth all_reduce --topology h200_8 -b 1K -e 1K", "algbw"),
        ("schema faults", "json-schema.org"),
        ("completion bash", "_shtab_torchemu"),
    ],
)
def test_what_comes_with_it(command: str, said: str, python: Path, tmp_path: Path) -> None:
    """Benches, presets and nccl-tests' table, in a folder with nothing in it."""
    assert said in run([python.parent / "torchemu", *command.split()], tmp_path)


def test_benches_are_whole(wheel: Path) -> None:
    names = {name for name in zipfile.ZipFile(wheel).namelist() if name.startswith("torchemu/benches/")}
    listed = run(["git", "ls-files", "benches"], ROOT).split() if (ROOT / ".git").exists() else []
    assert names >= {f"torchemu/{name}" for name in listed if not name.endswith(".go")}
    assert "torchemu/benches/ccl_allreduce.py" in names and not [n for n in names if n.endswith((".pyc", ".go"))]


def test_bench_runs_from_the_other_venv(python: Path, tmp_path: Path) -> None:
    bench = shutil.copy(ROOT / "benches" / "ccl_allreduce.py", tmp_path)
    assert "OK" in run([python.parent / "torchemu", "bench", bench, "--topology", "sips2"], tmp_path)
