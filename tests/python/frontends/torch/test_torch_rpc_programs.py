"""Programs of remote procedure calls, in the shapes of PyTorch's tutorials: they print what processes of PyTorch do."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAMS = Path(__file__).parent / "rpc_programs"
NAMES = sorted(path.stem for path in PROGRAMS.glob("*.py"))
SIMULATED = ("-m", "torchemu", "run", "--torch", "real", "--nproc-per-node", "1")


def free_ports(count):
    """Returns ports that nobody listened at a moment ago."""
    sockets = [socket.create_server(("localhost", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def printed(name, *options):
    """Returns the lines that a program prints which starts its workers itself."""
    port, other = free_ports(2)
    told = {"PROGRAM_PORT": str(port), "GROUP_PORT": str(other), "PYTHONWARNINGS": "ignore"}
    command = [sys.executable, *options, str(PROGRAMS / f"{name}.py")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, env={**os.environ, **told})
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize("name", NAMES)
def test_they_print_what_processes_print(name):
    """Also where the ranks take turns in another order."""
    simulated = printed(name, *SIMULATED)
    assert len(simulated) > 1
    assert simulated == printed(name)
    assert simulated == printed(name, *SIMULATED, "--schedule", "random")
