"""Tests of what a bench finds inside a run, and what the torchemu command answers."""

from __future__ import annotations

import importlib
import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import OpenWorld, YamlFile

import torchemu
from torchemu.bridge.binding import go
from torchemu.launch import bench, cli

pytestmark = pytest.mark.shows("programs: benches")

KERNBENCH = ["kernbench", "kernbench.ccl", "kernbench.ccl.install", "kernbench.policy.placement.dp"]


@pytest.fixture
def bench_file(tmp_path: Path) -> Any:
    def write(body: str, head: str = "") -> str:
        path = tmp_path / "some_bench.py"
        path.write_text(f"{head}\ndef run(torch):\n    " + body.replace("\n", "\n    ") + "\n")
        return str(path)

    return write


# -- world size and configuration


@pytest.mark.parametrize(
    ("ccl", "world_size"),
    [
        ("", 4),
        ("# nothing\n", 4),
        ("defaults: {world_size: 7}\n", 7),
        ("defaults: {algorithm: ring, world_size: 7}\nalgorithms: {ring: {world_size: 16}}", 16),
        ("defaults: {algorithm: ring}\nalgorithms: {ring: {world_size: 16}}", 16),
        ("defaults: {algorithm: ring}\nalgorithms: {one_shot: {world_size: 16}}", 4),
        ("defaults: {algorithm: ring, world_size: 7}\nalgorithms: {ring: {n_elem: 5}}", 7),
        ("defaults: {world_size: 7}\nalgorithms: {auto: {world_size: 2}}", 2),
    ],
)
def test_world_size_precedence(open_world: OpenWorld, ccl: str, world_size: int) -> None:
    world = open_world("default", ccl)
    torchemu.distributed.init_process_group(backend="ahbm")
    assert torchemu.distributed.get_world_size() == world_size == world.world_size
    assert torchemu.distributed.get_rank() == 0
    assert torchemu.distributed.get_backend() == "ahbm"


@pytest.mark.parametrize(
    ("ccl", "algorithm", "n_elem"),
    [
        ("", "auto", 32),
        ("defaults: {n_elem: 9}\n", "auto", 9),
        ("defaults: {algorithm: ring, n_elem: 9}\nalgorithms: {ring: {n_elem: 0}}", "ring", 0),
    ],
)
def test_resolved_configuration(
    yaml_file: YamlFile, bench_file: Any, capsys: pytest.CaptureFixture[str], ccl: str, algorithm: str, n_elem: int
) -> None:
    file = bench_file(
        "load_ccl_config()['defaults']['mine'] = 1\n"
        "assert 'mine' not in str(load_ccl_config())\n"
        "print(resolve_algorithm_config(load_ccl_config()))",
        head="from kernbench.ccl.install import load_ccl_config, resolve_algorithm_config",
    )
    bench.run(file, ccl=yaml_file(ccl) if ccl else "")
    said = capsys.readouterr().out.splitlines()[1]
    assert f"'algorithm': '{algorithm}'" in said
    assert f"'n_elem': {n_elem}" in said


@pytest.mark.parametrize("preset", json.loads(go.Presets()))
def test_spec_has_what_the_contract_names(open_world: OpenWorld, preset: str) -> None:
    world = open_world(preset)
    spec = torchemu.spec
    assert spec is world.spec
    assert spec["system"]["sips"]["count"] == world.sips == torchemu.ahbm.device_count()
    gpus = re.match("h[28]00|mi3", preset)
    assert spec["sip"]["cube_mesh"] == ({"w": 1, "h": 1} if gpus else {"w": 4, "h": 4})
    assert spec["cube"]["pe_layout"]["corners"] == ["nw", "ne", "sw", "se"]
    assert gpus or spec["cube"]["pe_layout"]["pe_per_corner"] == 2
    assert json.loads(json.dumps(spec)) == spec


def test_run_gets_the_namespace_that_import_gives(bench_file: Any, capsys: pytest.CaptureFixture[str]) -> None:
    imports = "import torchemu as t, torch as i"
    same = "print(i is torch and t.Tensor is torch.Tensor, torch.float16 is t.dtypes.parse('f16'))"
    file = bench_file(f"{imports}\n{same}")
    bench.run(file)
    assert "True True" in capsys.readouterr().out
    assert {"spec", "float16", "zeros", "distributed"} <= set(dir(torchemu))


# -- kernbench


def not_importable() -> bool:
    for name in KERNBENCH:
        assert name not in sys.modules
        with pytest.raises(ModuleNotFoundError):
            importlib.import_module(name)
    return True


def test_kernbench_exists_only_inside_a_run(bench_file: Any) -> None:
    assert not_importable()
    file = bench_file(
        "import kernbench.ccl.install, kernbench.policy.placement.dp as dp\n"
        "assert dp.DPPolicy is torch.DPPolicy\n"
        "try:\n    import kernbench.nothing.here\n"
        "except ModuleNotFoundError as e:\n    assert e.name == 'kernbench.nothing'\n"
        "else:\n    raise AssertionError\n"
        "print(kernbench.ccl.install.load_ccl_config())",
        head="from kernbench.policy.placement.dp import DPPolicy",
    )
    for _ in range(2):
        bench.run(file)
        assert not_importable()


def test_kernbench_is_gone_after_a_run_that_fails(bench_file: Any) -> None:
    file = bench_file("raise ZeroDivisionError", head="import kernbench.ccl.install")
    with pytest.raises(ZeroDivisionError):
        bench.run(file)
    assert not_importable()


def test_real_kernbench_is_hidden_and_restored(
    bench_file: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = tmp_path / "real" / "kernbench"
    real.mkdir(parents=True)
    (real / "__init__.py").write_text("REAL = True\n")
    (real / "extra.py").write_text("")
    monkeypatch.syspath_prepend(real.parent)
    loaded = importlib.import_module("kernbench")
    try:
        bench.run(bench_file("import kernbench\nassert not hasattr(kernbench, 'REAL')"))
        assert sys.modules["kernbench"] is loaded
        assert importlib.import_module("kernbench.extra").__file__ == str(real / "extra.py")
        assert "kernbench.ccl" not in sys.modules
    finally:
        for name in ("kernbench", "kernbench.extra"):
            sys.modules.pop(name, None)


# -- the report and the trace


def test_report_counts_equal_lines(bench_file: Any, capsys: pytest.CaptureFixture[str]) -> None:
    file = bench_file(
        "torch.distributed.init_process_group(world_size=4)\n"
        "def rank(r):\n"
        "    t = torch.zeros(8)\n"
        "    for _ in range(3): torch.distributed.all_reduce(t); t.numpy()\n"
        "    torch.distributed.all_gather_into_tensor(torch.zeros(32), t)\n"
        "torch.multiprocessing.spawn(rank, nprocs=4)"
    )
    bench.run(file)
    lines = capsys.readouterr().out.splitlines()
    assert lines[-2].startswith("all_reduce ") and lines[-2].endswith("  × 3")
    assert lines[-1].startswith("all_gather_into_tensor ") and "128" in lines[-1]


def test_report_waits_for_what_nobody_has_read(
    bench_file: Any, yaml_file: YamlFile, capsys: pytest.CaptureFixture[str]
) -> None:
    file = bench_file(
        "torch.distributed.init_process_group()\n"
        "torch.distributed.all_reduce(torch.zeros(2, dp=torch.DPPolicy('replicate', 'column_wise', 1, 2)))"
    )
    bench.run(file, ccl=yaml_file("defaults: {world_size: 2}"))
    assert "all_reduce" in capsys.readouterr().out.splitlines()[-1]


def test_a_run_without_collectives(bench_file: Any, capsys: pytest.CaptureFixture[str]) -> None:
    bench.run(bench_file("pass"))
    assert capsys.readouterr().out.endswith("\nno collective was run\n")


def test_trace_is_json_with_a_slice_for_each_rank(
    bench_file: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = bench_file(
        "torch.distributed.init_process_group()\n"
        "torch.multiprocessing.spawn(lambda r: torch.distributed.all_reduce(torch.zeros(8)), nprocs=4)"
    )
    trace = tmp_path / "trace.json"
    assert cli.main(["bench", file, "--trace", str(trace)]) == 0
    events = json.loads(trace.read_text())["traceEvents"]
    slices = [e for e in events if e.get("cat") == "collective"]
    assert [e["name"] for e in slices] == ["all_reduce"] * 4
    assert {e["pid"] for e in slices} == {0, 1, 2, 3}
    begun = sorted(e["id"] for e in events if e["ph"] == "b")
    assert begun == sorted(e["id"] for e in events if e["ph"] == "e") != []
    assert str(trace) in capsys.readouterr().out


# -- the command


def said_by(capsys: pytest.CaptureFixture[str], *arguments: str, status: int = 1) -> str:
    """Returns what the command writes to stderr; nothing of it may be a traceback."""
    assert cli.main(["bench", *arguments]) == status
    err = capsys.readouterr().err
    assert "Traceback" not in err
    assert err.endswith("\n")
    return err.removeprefix("torchemu: ").removesuffix("\n")


def test_bench_that_is_not_there(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    missing = str(tmp_path / "none.py")
    assert said_by(capsys, missing) == f"{missing}: no such file"
    assert said_by(capsys, str(tmp_path)) == f"{tmp_path}: a folder, where a bench is a Python file"


def test_bench_without_run(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "b.py"
    for text in ("", "run = 3\n", "def ran(torch): pass\n"):
        file.write_text(text)
        assert said_by(capsys, str(file)) == f"{file}: a bench has a function run(torch), this file has none"
    text = tmp_path / "b.txt"
    text.write_text("x")
    assert said_by(capsys, str(text)) == f"{text}: not a Python file"


def test_unknown_preset_names_the_presets(capsys: pytest.CaptureFixture[str], bench_file: Any) -> None:
    said = said_by(capsys, bench_file("pass"), "--topology", "sips3")
    assert said.startswith('there is no topology preset "sips3"; the presets are default, h200_8, h200_8_nvls, h8')


@pytest.mark.parametrize("option", ["--topology", "--ccl"])
def test_missing_yaml_is_named(
    capsys: pytest.CaptureFixture[str], bench_file: Any, tmp_path: Path, option: str
) -> None:
    missing = str(tmp_path / "none.yaml")
    assert missing in said_by(capsys, bench_file("pass"), option, missing)
    assert str(tmp_path) in said_by(capsys, bench_file("pass"), option, f"{tmp_path}/")


def test_all_problems_of_a_topology_at_once(
    capsys: pytest.CaptureFixture[str], bench_file: Any, yaml_file: YamlFile
) -> None:
    file = yaml_file(
        "name: broken\n"
        "system:\n"
        "  sips: {count: 4, connect: rign, link: {bandwidth: -5}}\n"
        "cube:\n"
        "  hmb: {bandwidth: 1}\n"
        "pe: {dma: {engines: two}}\n"
    )
    said = said_by(capsys, bench_file("pass"), "--topology", file).splitlines()
    for line, path in [
        (3, "system.sips.connect"),
        (3, "system.sips.link.bandwidth"),
        (5, "cube.hmb"),
        (6, "pe.dma.engines"),
    ]:
        (one,) = [text for text in said if f"{file}:{line}: " in text and path in text]
        assert len(one) > len(f"{file}:{line}: {path}") + 10


def test_all_problems_of_a_ccl_yaml_at_once(
    capsys: pytest.CaptureFixture[str], bench_file: Any, yaml_file: YamlFile
) -> None:
    file = yaml_file("defaults:\n  algorithm: rign\n  world_size: -1\nalgorithms:\n  ring: {n_elm: 5}\n")
    said = said_by(capsys, bench_file("pass"), "--ccl", file)
    for line, path in [(2, "defaults.algorithm"), (3, "defaults.world_size"), (5, "algorithms.ring.n_elm")]:
        assert f"{file}:{line}: {path}" in said
    assert all(name in said for name in ("auto", "double_binary_tree", "two_shot"))


def test_text_that_is_no_yaml(capsys: pytest.CaptureFixture[str], bench_file: Any, yaml_file: YamlFile) -> None:
    broken = yaml_file("system: [\n")
    for option in ("--topology", "--ccl"):
        assert f"{broken}:" in said_by(capsys, bench_file("pass"), option, broken)


def test_bytes_that_are_no_text(capsys: pytest.CaptureFixture[str], bench_file: Any, tmp_path: Path) -> None:
    broken = tmp_path / "b.yaml"
    broken.write_bytes(b"name: \xff\xfe\x00\n")
    for option in ("--topology", "--ccl"):
        assert str(broken) in said_by(capsys, bench_file("pass"), option, str(broken))


def test_trace_that_cannot_be_written_is_found_before_the_run(
    capsys: pytest.CaptureFixture[str], bench_file: Any, tmp_path: Path
) -> None:
    said = said_by(capsys, bench_file("raise AssertionError"), "--trace", str(tmp_path / "no" / "t.json"))
    assert str(tmp_path / "no" / "t.json") in said


def test_failed_spawn_is_reported_with_the_users_line(capsys: pytest.CaptureFixture[str], bench_file: Any) -> None:
    file = bench_file("def rank(r):\n    1 / r\ntorch.multiprocessing.spawn(rank, nprocs=2)")
    assert cli.main(["bench", file]) == 1
    err = capsys.readouterr().err
    assert err.startswith("torchemu: -- Process 0 terminated with the following error:\nTraceback (most recent call")
    assert f'File "{file}", line 4, in rank\n' in err
    assert err.endswith("ZeroDivisionError: division by zero\n")
    assert "torchemu/_" not in err


def test_errors_of_the_bench_itself_are_shown_from_its_own_lines_on(
    bench_file: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = bench_file("int('x')")
    assert cli.main(["bench", file]) == 1
    lines = capsys.readouterr().err.splitlines()
    assert lines[:2] == ["Traceback (most recent call last):", f'  File "{file}", line 3, in run']
    assert lines[-1] == "ValueError: invalid literal for int() with base 10: 'x'"
    monkeypatch.setenv("TORCHEMU_TRACEBACK", "full")
    assert cli.main(["bench", file]) == 1
    assert "in _collectives_of" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("def run(torch: pass", "    def run(torch: pass\n                   ^^^^\nSyntaxError: invalid syntax\n"),
        ("import nowhere", "    import nowhere\nModuleNotFoundError: No module named 'nowhere'\n"),
    ],
)
def test_benches_that_cannot_be_loaded(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, error: str
) -> None:
    (tmp_path / "b.py").write_text(text)
    assert cli.main(["bench", str(tmp_path / "b.py")]) == 1
    err = capsys.readouterr().err
    assert err.endswith(error) and err.count("File") == 1


@pytest.mark.parametrize("parameters", ["", "torch, more", "*, torch"])
def test_run_with_other_parameters(tmp_path: Path, capsys: pytest.CaptureFixture[str], parameters: str) -> None:
    (tmp_path / "b.py").write_text(f"def run({parameters}): pass")
    assert cli.main(["bench", str(tmp_path / "b.py")]) == 1
    assert (
        capsys.readouterr().err == f"torchemu: {tmp_path}/b.py: a bench's run is called with one argument, run(torch)\n"
    )


@pytest.mark.parametrize("text", ["async def run(torch): pass", "def run(torch): yield", "async def run(torch): yield"])
def test_a_run_that_a_call_does_not_run(tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str) -> None:
    (tmp_path / "b.py").write_text(text)
    assert cli.main(["bench", str(tmp_path / "b.py")]) == 1
    said = f"torchemu: {tmp_path}/b.py: a bench's run is called, which runs nothing of a coroutine or a generator\n"
    assert capsys.readouterr().err == said


def test_interrupt_is_status_130(capsys: pytest.CaptureFixture[str], bench_file: Any) -> None:
    assert said_by(capsys, bench_file("raise KeyboardInterrupt"), status=130) == "interrupted"
    press = "import os, signal\ndef rank(r):\n    os.kill(os.getpid(), signal.SIGINT)\n"
    file = bench_file(press + "torch.multiprocessing.spawn(rank, nprocs=2)")
    assert said_by(capsys, file, status=130) == f"interrupted while rank 0 was at {file}:5 in rank"


def test_a_rank_that_interrupts_itself_has_ended_well(bench_file: Any) -> None:
    """PyTorch's processes keep a KeyboardInterrupt to themselves, too."""
    body = "def rank(r):\n    raise KeyboardInterrupt\ntorch.multiprocessing.spawn(rank, nprocs=2)"
    assert cli.main(["bench", str(bench_file(body))]) == 0


def test_modules_that_a_bench_imports_lie_beside_it(
    bench_file: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "beside_the_bench.py").write_text("VALUE = 42\n")
    path = list(sys.path)
    bench.run(bench_file("import beside_the_bench\nprint(beside_the_bench.VALUE)"))
    assert "42" in capsys.readouterr().out
    assert sys.path == path
    sys.modules.pop("beside_the_bench", None)


def test_a_bench_leaves_no_module_behind(bench_file: Any) -> None:
    before = set(sys.modules)
    bench.run(bench_file("pass"))
    left = {n for n in set(sys.modules) - before if not n.startswith("torchemu.")}
    assert left == set()


def test_rows_of_several_ccl_yamls_say_which(
    bench_file: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = bench_file(
        "torch.distributed.init_process_group()\n"
        "torch.multiprocessing.spawn(lambda r: torch.distributed.all_reduce(torch.zeros(8)), nprocs=4)"
    )
    configs = [str(tmp_path / f"{name}.yaml") for name in ("a", "b")]
    for config in configs:
        Path(config).write_text("defaults: {algorithm: ring}\n")
    assert cli.main(["bench", file, "--ccl", configs[0], "--ccl", configs[1]]) == 0
    *_, head, first, second = capsys.readouterr().out.splitlines()
    assert head.split()[:2] == ["ccl", "collective"]
    assert [row.split()[0] for row in (first, second)] == configs
    assert cli.main(["bench", file, "--ccl", configs[0]]) == 0
    assert "ccl " not in capsys.readouterr().out


@pytest.mark.parametrize("name", ["ccl_allreduce", "ccl_allreduce.py"])
def test_benches_that_come_with_torchemu_have_names(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli.main(["bench", name, "--topology", "sips2"]) == 0
    assert "ccl_allreduce.py on sips2" in capsys.readouterr().out
    (tmp_path / "ccl_allreduce").mkdir()
    assert cli.main(["bench", "ccl_allreduce"]) == 1
    assert "a folder" in capsys.readouterr().err
    assert cli.main(["bench", f"elsewhere/{name}"]) == 1
    assert "no such file" in capsys.readouterr().err
