"""Writes NAME.out, or of all programs, with a PyTorch: python record.py [NAME …], by a Python that has it."""

import shlex
import subprocess
import sys
from pathlib import Path

ATTEMPTS = 3  # PyTorch 2.15 aborts now and then when it ends: "terminate called without an active exception"
FOLDER = Path(__file__).resolve().parent


def programs():
    """The programs and their commands."""
    for source in sorted([*FOLDER.glob("*.py"), *FOLDER.glob("*/__main__.py")]):
        mark, *command = source.read_text().splitlines()[0].split(" ", 1)
        if mark == "#":
            yield source.parent.name if source.name == "__main__.py" else source.stem, shlex.split(*command)


def record(name, command):
    start = {"torchrun": ["-m", "torch.distributed.run"], "python": []}[command[0]]
    for _ in range(ATTEMPTS):
        done = subprocess.run([sys.executable, *start, *command[1:]], cwd=FOLDER, capture_output=True, text=True)
        if done.returncode == 0:
            break
    else:
        raise SystemExit(f"{name} failed:\n{done.stderr}")
    (FOLDER / f"{name}.out").write_text(done.stdout)


if __name__ == "__main__":
    for name, command in programs():
        if not sys.argv[1:] or name in sys.argv[1:]:
            print(name, flush=True)
            record(name, command)
