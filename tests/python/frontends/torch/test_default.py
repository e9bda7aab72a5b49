"""The torch of a script whose command names none."""

import subprocess
import sys

import pytest

from torchemu.frontends import base

WHERE = "import torch, torch.distributed as dist\ndist.init_process_group('gloo')\nprint(torch.__file__)\n"


def run(folder, text, *flags, **beside):
    for name, code in beside.items():
        (folder / f"{name}.py").write_text(code)
    (folder / "program.py").write_text(text)
    command = [sys.executable, "-m", "torchemu", "run", "--nproc-per-node", "1", *flags, "program.py"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize("flags, is_ours", [((), False), (("--torch", "numpy"), True), (("--no-data",), False)])
def test_a_script_gets_what_is_installed(tmp_path, flags, is_ours):
    done = run(tmp_path, WHERE, *flags)
    assert done.returncode == 0, done.stderr
    assert ("torchemu" in done.stdout) == is_ours


def test_a_script_that_uses_what_is_beside_ours_gets_ours(tmp_path):
    assert "torchemu" in run(tmp_path, WHERE + "torch.ahbm.set_device(0)\n").stdout
    helper = "import torchemu.language\n"
    assert "torchemu" in run(tmp_path, "import helper\n" + WHERE, helper=helper).stdout


def test_a_report_says_which(tmp_path):
    report = run(tmp_path, WHERE + "1 / 0\n").stderr
    assert "  torch     : --torch real, the PyTorch that is installed\n" in report
    assert "torch     :" not in run(tmp_path, WHERE + "1 / 0\n", "--torch", "numpy").stderr


@pytest.mark.parametrize(
    "names, expected",
    [
        ((), "real"),
        (("torch", "torch.cuda", "torch.distributed.tensor", "numpy"), "real"),
        (("torchemu.pytorch",), "real"),
        (("torch", "ahbm"), "numpy"),
        (("torch.ahbm",), "numpy"),
        (("torch.distributed._symmetric_memory",), "real"),
        (("torchemu",), "numpy"),
        (("torchemu.language",), "numpy"),
        (("kernbench.tp",), "numpy"),
        (("simpler",), "numpy"),
        (("triton", "triton.language"), "real"),
        (("triton_dist.language", "nvshmem.core", "cuda.bindings"), "real"),
        (("triton", "torchemu.language"), "numpy"),
    ],
)
def test_names_decide(names, expected):
    assert base.fitting(names)[0].name == expected


@pytest.mark.parametrize(
    "text, flags, expected",
    [
        ("", (), "--torch real, the PyTorch that is installed: it is there"),
        ("", ("--torch", "numpy"), "--torch numpy, torchemu's own, on NumPy: the command says so"),
        ("", ("--no-data",), "--torch real, the PyTorch that is installed: for --no-data"),
        (
            "def main():\n    from torchemu import language\n",
            (),
            "--torch numpy, torchemu's own, on NumPy: the program uses torchemu, which is there with it only",
        ),
    ],
)
def test_verbose_says_first_which_and_why(tmp_path, text, flags, expected):
    done = run(tmp_path, "import sys\nprint('program', file=sys.stderr)\n" + text, "--verbose", *flags)
    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines() == [f"torchemu: {expected}", "program"]
