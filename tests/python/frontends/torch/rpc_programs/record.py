"""Records what the programs here print as processes of PyTorch: python record.py, where PyTorch is installed."""

import os
import socket
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent


def free_ports(count):
    """Returns ports that nobody listened at a moment ago."""
    sockets = [socket.create_server(("localhost", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def printed(name, *options):
    """Returns what a program prints which starts its workers itself."""
    port, other = free_ports(2)
    told = {"PROGRAM_PORT": str(port), "GROUP_PORT": str(other), "PYTHONWARNINGS": "ignore"}
    command = [sys.executable, *options, str(HERE / f"{name}.py")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, env={**os.environ, **told})
    assert done.returncode == 0, done.stderr
    return done.stdout


def main():
    """Writes a file for each program."""
    for path in sorted(HERE.glob("*.py")):
        if path != Path(__file__):
            path.with_suffix(".out").write_text(printed(path.stem))


if __name__ == "__main__":
    main()
