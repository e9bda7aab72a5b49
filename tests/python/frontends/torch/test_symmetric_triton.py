"""Functions of torch.distributed._symmetric_memory._nvshmem_triton in kernels: what they do, and what they refuse."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from sampling import sampled

pytestmark = pytest.mark.shows("PyTorch: symmetric memory")
SCRIPT = Path(__file__).parent.parent / "triton" / "single" / "nvshmem.py"


def run(*command, **environ):
    """The finished run of the script."""
    at = command.index("--") if "--" in command else len(command)
    line = [sys.executable, "-m", "torchemu", "run", "--torch", "real", *command[:at], str(SCRIPT), *command[at + 1 :]]
    env = {**os.environ, **environ}
    return subprocess.run(line, cwd=SCRIPT.parent, env=env, capture_output=True, text=True, timeout=300)


@pytest.mark.slow
@pytest.mark.parametrize(
    "flags, ranks",
    [
        (("--nproc-per-node", "3", "--check", "--reorder", "3"), 3),
        (("--nproc-per-node", "3", "--check", "--", "--int"), 3),
        (("--nnodes", "2", "--nproc-per-node", "2", "--topology", "h800_2x8", "--check"), 4),
        (("--nproc-per-node", "1"), 1),
    ],
)
def test_functions_of_kernels(flags, ranks):
    done = run(*flags)
    assert done.returncode == 0 and done.stdout.splitlines() == ["ok"] * ranks, done.stderr[-4000:]


def line_of(text):
    """The first line of the script that contains a text."""
    return 1 + next(i for i, code in enumerate(SCRIPT.read_text().splitlines()) if text in code)


@pytest.mark.parametrize(
    "name, line, said",
    sampled(
        [
            ("peer", "nvshmem.put(dest, source, n, pe)", "PE 2 is not one of 0 to 1"),
            ("beyond", "nvshmem.put(dest, source, n, pe)", "1600 bytes from rank"),
            ("plain", "nvshmem.put(dest, source, n, pe)", "what other ranks reach is symmetric memory"),
            (
                "library",
                "tl.store(out, nvshmem.n_pes())",
                "Unresolved extern function 'nvshmem_n_pes': kernel 'bare' is",
            ),
            (
                "backend",
                "numbers[(1,)](torch.zeros(",
                "kernel 'numbers' calls NVSHMEM's functions, and the backend is 'CUDA'",
            ),
            ("symbol", "return core.extern_elementwise(", "__nv_mystery is not emulated: of functions that"),
        ],
        6,
    ),
)
def test_what_functions_of_kernels_refuse(name, line, said):
    done = run("--nproc-per-node", "2", "--", "--wrong", name)
    assert done.returncode != 0 and said in done.stderr, done.stderr
    assert re.search(rf'nvshmem.py(:|", line ){line_of(line)}\b', done.stderr), done.stderr


def test_signals_that_nobody_sends_are_in_the_report():
    done = run("--nproc-per-node", "2", "--", "--wrong", "silent")
    at = f'kernel "wait_for", which on rank 0 at nvshmem.py:{line_of("nvshmem.signal_wait_until(")} waits for the word'
    assert done.returncode != 0 and "DeadlockError" in done.stderr and at in done.stderr, done.stderr


def test_decorated_kernels_need_no_library_of_nvshmems():
    done = run("--nproc-per-node", "1", NVSHMEM_LIB_DIR="/nowhere")
    assert done.returncode == 0, done.stderr
