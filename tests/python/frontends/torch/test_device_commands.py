"""Programs find nvidia-smi, which tells of simulated devices, unless the system has one."""

import csv
import io
import os

import pytest
from launch import launch, lines, written

from torchemu.frontends.torch import nvidia_smi

DEVICES = [
    {"index": i, "count": 3, "name": "AHBM", "uuid": f"0-{i}", "memory": (i + 1) << 30, "capability": "9.0"}
    for i in range(3)
]

PROGRAM = """
    import os, subprocess, torch
    import torch.distributed as dist
    dist.init_process_group("nccl")
    listed = subprocess.run("nvidia-smi -L", shell=True, capture_output=True, text=True).stdout.splitlines()
    devices = [torch.cuda.get_device_properties(i) for i in range(torch.cuda.device_count())]
    assert listed == [f"GPU {i}: {d.name} (UUID: GPU-{d.uuid})" for i, d in enumerate(devices)], listed
    asked = ["nvidia-smi", "--query-gpu=memory.total,count", "--format=csv,noheader,nounits", "-i", "1"]
    assert subprocess.check_output(asked, text=True).strip() == f"{devices[1].total_memory >> 20}, {len(devices)}"
    print(devices[0].uuid[-1])
"""


@pytest.fixture
def programs(tmp_path, monkeypatch):
    """A folder that is the only one with programs of the system, of which it has sh."""
    folder = tmp_path / "programs"
    folder.mkdir()
    (folder / "sh").symlink_to("/bin/sh")
    monkeypatch.setenv("PATH", str(folder))
    return folder


def test_it_lists_the_devices_of_the_node(tmp_path, programs):
    asked = ("--torch", "real", "--nnodes", "2", "--nproc-per-node", "2", "--topology", "nodes2x8")
    assert lines(launch(*asked, written(tmp_path, PROGRAM))) == ["0", "0", "2", "2"]
    assert os.environ["PATH"] == str(programs)


def test_the_systems_own_comes_first(tmp_path, programs):
    command = programs / "nvidia-smi"
    command.write_text("#!/bin/sh\necho of the system\n")
    command.chmod(0o755)
    program = written(tmp_path, f"import shutil; assert shutil.which('nvidia-smi') == {str(command)!r}\n")
    done = launch("--torch", "real", "--nproc-per-node", "1", program)
    assert done.status == 0, done.err


def test_there_is_none_where_no_devices_are_to_be_seen(tmp_path, programs, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    program = written(tmp_path, "import shutil; assert shutil.which('nvidia-smi') is None\n")
    assert launch("--torch", "real", "--nproc-per-node", "2", program).status == 0


def test_fields_are_written_as_csv():
    asked = ["--query-gpu=index, memory.total,power.draw,name", "--format=csv"]
    rows = list(csv.reader(io.StringIO("\n".join(nvidia_smi.lines(DEVICES, asked))), skipinitialspace=True))
    assert rows[0] == ["index", "memory.total [MiB]", "power.draw [W]", "name"]
    assert rows[1:] == [[str(i), f"{1024 * (i + 1)} MiB", "[N/A]", "AHBM"] for i in range(3)]


def test_the_table_says_that_devices_are_simulated():
    first, *table = nvidia_smi.lines(DEVICES, ["-i", "2,0"])
    assert "simulated" in first
    assert [row.split("|")[1:3] for row in table if "AHBM" in row] == [["   2 ", " AHBM "], ["   0 ", " AHBM "]]
    assert len({len(row) for row in table}) == 1


def test_the_matrix_has_a_row_and_a_column_for_each_device():
    head, *rows = nvidia_smi.lines(DEVICES, ["topo", "-m"])
    assert head.split("\t") == ["", "GPU0", "GPU1", "GPU2"]
    assert [row.split("\t") for row in rows[:3]] == [
        [f"GPU{i}", *("X" if i == j else "FAB" for j in range(3))] for i in range(3)
    ]
    assert any("FAB" in row and "simulated" in row for row in rows[3:])


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (["-i", "3"], 6, "No devices were found"),
        (["--query-gpu=name"], 2, "--query-gpu wants --format=csv"),
        (["topo"], 2, "topo and -m come together"),
        (["-m"], 2, "topo and -m come together"),
        (["-q"], 2, "unrecognized arguments: -q"),
    ],
)
def test_wrong_arguments(capsys, arguments, status, said):
    with pytest.raises(SystemExit) as ended:
        nvidia_smi.lines(DEVICES, arguments)
    assert ended.value.code == status and said in capsys.readouterr().err
