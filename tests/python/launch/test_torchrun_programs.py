"""Programs that a program starts: torchemu runs in torchrun's place, and a line says where ranks run."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from torchemu.launch import torchrun_programs

WORKER = """
import os, sys
import torch, torch.distributed as dist
dist.init_process_group("ahbm")
t = torch.ones(2, device="ahbm") * (dist.get_rank() + 1)
dist.all_reduce(t)
print(dist.get_rank(), os.environ["LOCAL_WORLD_SIZE"], sys.argv[1:], t.tolist(), flush=True)
dist.barrier()
sys.exit(3 if "--fail" in sys.argv else 0)
"""

PROGRAM = """
import os, subprocess, sys
common = ["--nproc_per_node=3", "--master_port", "29700"]
ways = [
    (["torchrun", "--standalone", *common, "worker.py", "--node_rank", "0"], {}),
    ([sys.executable, "-u", "-m", "torch.distributed.run", *common, "--node_rank=0", "worker.py", "x"], {}),
    ("torchrun --nproc-per-node 3 --node-rank 0 worker.py 'a b'", {"shell": True}),
    ("torchrun --nproc-per-node 3 worker.py y > out.txt && grep 6.0 < out.txt", {"shell": True}),
    (["bash", "-c", "set -e; N=3 && torchrun --nproc-per-node $N worker.py z"], {"env": {**os.environ, "N": "7"}}),
    (["./start.sh", "3"], {}),
    (["torchrun", *common, "worker.py", "--fail"], {}),
    (["echo", "torchrun", "worker.py"], {}),
]
for args, options in ways:
    try:
        done = subprocess.run(args, capture_output=True, text=True, **options)
        print(done.returncode, sorted(done.stdout.splitlines()), flush=True)
    except FileNotFoundError as error:
        print(error)
path = os.environ["PATH"]
print(os.system("torchrun --nproc-per-node 3 worker.py w > out.txt"), sorted(open("out.txt").read().splitlines()))
assert os.environ["PATH"] == path
"""


def said(arguments: list[str], total: float = 6.0) -> list[str]:
    return [f"{rank} 3 {arguments} {[total, total]}" for rank in range(3)]


def test_torchemu_runs_in_its_place(tmp_path: Path) -> None:
    (tmp_path / "worker.py").write_text(WORKER)
    (tmp_path / "program.py").write_text(textwrap.dedent(PROGRAM))
    script = tmp_path / "start.sh"
    script.write_text("#!/bin/sh\ntorchrun --nproc-per-node=$1 worker.py of a script\n")
    script.chmod(0o755)
    command = [sys.executable, "-m", "torchemu", "run", "--torch", "numpy", "--nproc-per-node", "1", "program.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == f"0 {said(['--node_rank', '0'])}"
    assert lines[1] == f"0 {said(['x'])}"
    assert lines[2] == f"0 {said(['a b'])}"
    assert lines[3] == f"0 {said(['y'])}"
    assert lines[4] == f"0 {said(['z'])}"
    assert lines[5] == f"0 {said(['of', 'a', 'script'])}"
    assert lines[6] == f"1 {said(['--fail'])}"
    assert lines[7] == "0 ['torchrun worker.py']"
    assert lines[8] == f"0 {said(['w'])}"


@pytest.mark.parametrize(
    "command",
    [
        "torchrun",
        ["python", "train.py", "-m", "torch.distributed.run"],
        ["python", "-m", "torch.distributed.launches"],
        ["python", "launch.py", "-m", "torch.distributed.launch"],
        [],
    ],
)
def test_other_commands_are_as_they_were(command: object) -> None:
    for shell in (False, True):
        if not (shell and command == "torchrun"):
            assert torchrun_programs._instead(command, ["--torch", "numpy"], shell) is command


@pytest.mark.parametrize("flags", [[], ["-u"]])
@pytest.mark.parametrize("module", ["torch.distributed.launch", "deepspeed.launcher.launch"])
def test_torchemu_runs_launchers(module: str, flags: list[str]) -> None:
    made = torchrun_programs._instead(["python3", *flags, "-m", module, "train.py", "-x"], ["--torch", "real"], False)
    assert made == [sys.executable, "-m", "torchemu", "run", "--torch", "real", "-m", module, "train.py", "-x"]


STARTS = """
import os, subprocess, sys
ways = [
    (["helper.py"], {}),
    (["helper.py"], {"env": dict(os.environ)}),
    (["-c", "print('c')", "--rank", "0"], {}),
    (["helper.py", "--ranking", "1"], {}),
    (["helper.py", "--rank", "0"], {}),
    (["helper.py", "--rank", "1"], {}),
    (["-u", "helper.py", "--local_rank=1"], {}),
    (["helper.py"], {"env": dict(os.environ, RANK="7")}),
]
for number, (arguments, options) in enumerate(ways if os.environ["RANK"] == "1" else []):
    print(number, file=sys.stderr, flush=True)
    if number in (4, 5):
        subprocess.Popen([sys.executable, *arguments]).wait()
    else:
        subprocess.run([sys.executable, *arguments], check=True, **options)
"""


def test_a_line_says_that_ranks_which_one_of_several_starts_are_outside(tmp_path: Path) -> None:
    (tmp_path / "helper.py").write_text("")
    (tmp_path / "program.py").write_text(STARTS)
    command = [sys.executable, "-m", "torchemu", "run", "--torch", "numpy", "--nproc-per-node", "2", "program.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    lines = done.stderr.splitlines()
    said = [(lines[i - 1], line) for i, line in enumerate(lines) if line.startswith("torchemu: the process that ")]
    assert [number for number, _ in said] == ["4", "6"]  # of one place it is said once
    first, second = (line for _, line in said)
    assert "program.py:16 in <module> starts is a rank outside of the simulation" in first
    assert "program.py:18 in <module> starts is a rank outside of the simulation" in second


def test_it_gives_each_rank_the_packages_that_the_run_isolates(tmp_path: Path) -> None:
    (tmp_path / "site-packages").mkdir()
    (tmp_path / "site-packages/kept.py").write_text("ranks = []\n")
    (tmp_path / "worker.py").write_text(
        "import os, sys\nsys.path.append('site-packages')\nimport kept\n"
        "import torch.distributed as dist\ndist.init_process_group('ahbm')\n"
        "kept.ranks.append(dist.get_rank())\ndist.barrier()\nprint(kept.ranks)\n"
    )
    (tmp_path / "program.py").write_text(
        "import subprocess\n"
        "print(subprocess.check_output(['torchrun', '--nproc-per-node=2', 'worker.py'], text=True))\n"
    )
    flags = ["--torch", "numpy", "--nproc-per-node", "1", "--isolate", "kept"]
    command = [sys.executable, "-m", "torchemu", "run", *flags, "program.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert sorted(done.stdout.split()) == ["[0]", "[1]"], done.stderr


COMMANDS = """#!/bin/bash
set -e
N=$1
python3 -u -m torch.distributed.run --nproc_per_node $N worker.py run
torchrun --nproc_per_node $N worker.py torchrun
python alone.py a
python -m alone b
python -c "import torch; print(torch.ones(2, device='ahbm').tolist())" c
python -c "import sys; print('torchemu' in sys.modules, sys.argv[1:])" d
RANK=1 WORLD_SIZE=2 python alone.py e || echo outside
python no_torch.py f
exit $2
"""

ALONE = """
import os, sys, torch
print(torch.ones(1, device="ahbm").item(), sys.argv[1:], os.environ.get("WORLD_SIZE"))
"""

NO_TORCH = "import sys\nprint('torchemu' in sys.modules, sys.argv[1:])\n"


def expected_of_commands(number: int) -> list[str]:
    ranks = [
        f"{rank} {number} {[how]} {[float(number * (number + 1) // 2)] * 2}"
        for how in ("run", "torchrun")
        for rank in range(number)
    ]
    others = ["1.0 ['a'] None", "1.0 ['b'] None", "[1.0, 1.0]", "False ['d']", "outside", "False ['f']"]
    return sorted([*ranks, *others])


@pytest.mark.parametrize(("first", "name"), [("#!/bin/bash", "start.sh"), ("#!/usr/bin/env bash", "start")])
def test_a_shells_script_is_a_program_whose_commands_have_ranks(tmp_path: Path, first: str, name: str) -> None:
    (tmp_path / "worker.py").write_text(WORKER)
    (tmp_path / "alone.py").write_text(ALONE)
    (tmp_path / "no_torch.py").write_text(NO_TORCH)
    (tmp_path / name).write_text(COMMANDS.replace("#!/bin/bash", first))
    command = [sys.executable, "-m", "torchemu", "run", "--torch", "numpy", name, "2", "0"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == expected_of_commands(2)


def test_a_shells_script_ends_by_its_status_and_is_run_once(tmp_path: Path) -> None:
    (tmp_path / "ends.sh").write_text("exit $1\n")
    command = [sys.executable, "-m", "torchemu", "run", "--torch", "numpy"]
    done = subprocess.run([*command, "ends.sh", "7"], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 1
    assert "exitcode  : 7" in done.stderr
    several = [*command, "--nproc-per-node", "2", "ends.sh", "0"]
    done = subprocess.run(several, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode != 0
    assert "ends.sh is a shell's script, which is run once: give --nproc-per-node 1, or none" in done.stderr


def test_python_in_a_shells_script_has_the_packages_of_its_environment(tmp_path: Path) -> None:
    """It is found in PATH, where torchemu's comes first, and so are the packages of which it needs none of PyTorch."""
    (tmp_path / "ends.sh").write_text("python -c 'import sys; print(sys.prefix)' && python -m no_torch g\n")
    (tmp_path / "no_torch.py").write_text(NO_TORCH)
    venv = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True, timeout=60)
    command = [sys.executable, "-m", "torchemu", "run", "--torch", "numpy", "ends.sh"]
    environment = {**os.environ, "PATH": f"{venv / 'bin'}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout.splitlines()) == (0, [str(venv), "False ['g']"]), done.stderr


def test_a_module_imports_torch_where_its_package_has_another_name(tmp_path: Path) -> None:
    """ESPnet's is espnet2. What a package of that name would need is looked up first."""
    for name, module, requires in (("speech_kit", "speech2", "torch>=2"), ("text_kit", "text2", "numpy")):
        info = tmp_path / f"site-packages/{name}-1.0.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\nRequires-Dist: {requires}\n"
        )
        (info / "top_level.txt").write_text(f"{module}\n")
    asks = "from torchemu.launch.shell_commands import of_torch\nprint(of_torch(['python', sys.argv[1]]))\n"
    (tmp_path / "asks.py").write_text(f"import sys\nsys.path.append('site-packages')\n{asks}")
    for module, found in (("speech2", "['--nproc-per-node', '1', 'main.py']"), ("text2", "None")):
        (tmp_path / "main.py").write_text(f"import os, {module}.bin\n")
        done = subprocess.run([sys.executable, "asks.py", "main.py"], cwd=tmp_path, capture_output=True, text=True)
        assert (done.stdout.strip(), done.stderr) == (found, "")


def test_a_program_that_imports_torch_has_devices_where_a_program_starts_it(tmp_path: Path) -> None:
    (tmp_path / "alone.py").write_text(ALONE)
    (tmp_path / "no_torch.py").write_text(NO_TORCH)
    (tmp_path / "program.py").write_text(
        "import subprocess, sys\n"
        "for name in ('alone.py', 'no_torch.py', 'site-packages/worker.py'):\n"
        "    print(subprocess.run([sys.executable, name, 'x'], capture_output=True, text=True).stdout, end='')\n"
    )
    (tmp_path / "site-packages").mkdir()
    (tmp_path / "site-packages/worker.py").write_text(
        "import sys\nprint('torchemu' in sys.modules)\nif 0: import torch\n"
    )
    command = [sys.executable, "-m", "torchemu", "run", "--torch", "numpy", "--nproc-per-node", "1", "program.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout.splitlines()) == (0, ["1.0 ['x'] 1", "False ['x']", "False"]), done.stderr


def test_launchers_that_packages_install_are_started_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "accelerate"
    script.write_text(f"#!{sys.executable}\n")
    script.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    made = torchrun_programs._instead(["accelerate", "launch", "train.py"], ["--torch", "real"], False)
    options = ["--torch", "real", "--nproc-per-node", "1", str(script)]
    assert made == [sys.executable, "-m", "torchemu", "run", *options, "launch", "train.py"]


def test_torchemu_runs_where_a_rank_is_replaced_by_torchrun(tmp_path: Path) -> None:
    (tmp_path / "worker.py").write_text(WORKER)
    call = "[sys.executable, '-m', 'torch.distributed.run', '--nproc-per-node', '3', 'worker.py', 'e']"
    (tmp_path / "program.py").write_text(f"import os, sys\nos.execv(sys.executable, {call})\n")
    command = [sys.executable, "-m", "torchemu", "run", "--torch", "numpy", "--nproc-per-node", "1", "program.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert (done.returncode, sorted(done.stdout.splitlines())) == (0, said(["e"])), done.stderr
