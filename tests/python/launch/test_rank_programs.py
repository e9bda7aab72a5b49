"""Programs that a program starts one by one as its ranks: what they are told, where they print, how they end."""

import subprocess
import sys
from pathlib import Path

import pytest

WORKER = """
import os, sys
import torch, torch.distributed as dist
rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
for argument in sys.argv[1:]:
    if argument.startswith("--rank="):
        rank = int(argument.partition("=")[2])
torch.ahbm.set_device(rank)
dist.init_process_group("ahbm", init_method="tcp://localhost:29511", rank=rank, world_size=size)
t = torch.ones(2, device="ahbm") * (rank + 1)
for _ in range(5):
    dist.all_reduce(t)
print(__name__, os.path.basename(sys.argv[0]), sys.argv[1:], rank, t.tolist(), os.path.basename(os.getcwd()))
if "long" in sys.argv and rank == 1:
    print("y" * 200_000, file=sys.stderr)
if "fail" in sys.argv and rank == 1:
    raise ValueError("no data")
sys.exit(3 if "exit" in sys.argv and rank == 1 else 0)
"""


def ran(folder: Path, program: str, *before: str) -> subprocess.CompletedProcess[str]:
    (folder / "worker.py").write_text(WORKER)
    (folder / "launch.py").write_text(program)
    command = [sys.executable, "-m", "torchemu", "run", "--torch", "numpy", *before, "launch.py"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120)


def total(size: int) -> list[float]:
    """Returns what five all_reduces make of the numbers 1, 2, … of ranks."""
    return [sum(range(1, size + 1)) * float(size) ** 4] * 2


BY_ARGUMENTS = """
import os, subprocess, sys
os.environ["WORLD_SIZE"] = "3"
os.mkdir("inner")
ranks = []
for rank in range(3):
    log = open(f"log{rank}.txt", "w") if rank else None
    command = [sys.executable, "-u", "worker.py", "a b", "--rank=%d" % rank]
    ranks.append(subprocess.Popen(command, stdout=log))
print([each.wait() for each in ranks], [each.poll() for each in ranks], len({each.pid for each in ranks}))
"""


def test_ranks_told_by_arguments_meet(tmp_path: Path) -> None:
    """It is not said how many there are: the program starts them, so it is started once."""
    done = ran(tmp_path, BY_ARGUMENTS)
    assert (done.returncode, done.stderr) == (0, "")
    texts = [f"__main__ worker.py ['a b', '--rank={rank}'] {rank} {total(3)} {tmp_path.name}" for rank in range(3)]
    assert done.stdout.splitlines() == [texts[0], "[0, 0, 0] [0, 0, 0] 3"]
    assert [(tmp_path / f"log{rank}.txt").read_text() for rank in (1, 2)] == [f"{text}\n" for text in texts[1:]]


BY_VARIABLES = """
import os, subprocess, sys, time
os.mkdir("inner")
env = dict(os.environ, WORLD_SIZE="2", PYTHONHASHSEED="1")
ranks = []
for rank in range(2):
    env["RANK"] = str(rank)
    ranks.append(subprocess.Popen([sys.executable, "../worker.py", *sys.argv[1:]], env=env, cwd="inner", text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE if rank else subprocess.STDOUT))
looks = 0
while "poll" in ARGUMENTS and any(each.poll() is None for each in ranks):
    looks += 1
    time.sleep(1)
for each in ranks:
    out, err = each.communicate()
    print(out.strip(), each.returncode, err and (len(err), err.splitlines()[-1][-30:]), looks)
print(os.environ["WORLD_SIZE"], os.path.basename(os.getcwd()) != "inner")
"""


@pytest.mark.parametrize(
    ("what", "code", "error"),
    [("well", 0, ""), ("exit", 3, ""), ("long", 0, (200_001, "y" * 30)), ("fail", 1, (None, "ValueError: no data"))],
)
def test_ranks_told_by_variables_print_to_pipes(tmp_path: Path, what: str, code: int, error: object) -> None:
    program = BY_VARIABLES.replace("*sys.argv[1:]", f"{what!r}").replace("ARGUMENTS", "()")
    done = ran(tmp_path, program, "--nproc-per-node", "1")
    assert (done.returncode, done.stderr) == (0, "")
    first, second, last = done.stdout.splitlines()
    assert first == f"__main__ worker.py ['{what}'] 0 {total(2)} inner 0 None 0"
    assert second.startswith(f"__main__ worker.py ['{what}'] 1 {total(2)} inner {code} ")
    rest = second.partition(f"inner {code} ")[2]
    if what == "fail":
        assert rest.endswith("'ValueError: no data') 0")
    else:
        assert rest == f"{error} 0"
    assert last == "1 True"


def test_who_asks_and_sleeps_waits_no_longer_than_they_take(tmp_path: Path) -> None:
    """A second is more than the ranks take: time passes, and nobody sleeps it."""
    program = BY_VARIABLES.replace("*sys.argv[1:]", "'x'").replace("ARGUMENTS", "('poll',)")
    done = ran(tmp_path, program, "--nproc-per-node", "1")
    assert (done.returncode, done.stderr) == (0, "")
    assert [line.rpartition(" ")[2] for line in done.stdout.splitlines()[:2]] == ["1", "1"]


ENDED = """
import os, subprocess, sys
env = dict(os.environ, WORLD_SIZE="2", RANK="0")
one = subprocess.Popen([sys.executable, "worker.py"], env=env)
try:
    one.wait(timeout=2)
except subprocess.TimeoutExpired as error:
    print(error.timeout, one.poll())
one.terminate()
print(one.wait())
"""


def test_a_rank_that_waits_for_ever_can_be_terminated(tmp_path: Path) -> None:
    done = ran(tmp_path, ENDED, "--nproc-per-node", "1")
    assert (done.returncode, done.stdout.splitlines()) == (0, ["2 None", "-15"]), done.stderr


@pytest.mark.parametrize(
    ("text", "once"),
    [
        ("import subprocess, sys\nsubprocess.Popen([sys.executable, 'x.py', f'--local_rank={0}'])", True),
        (
            "from subprocess import Popen\nimport sys\nenv = {}\nenv['RANK'] = '0'\nPopen([sys.executable], env=env)",
            True,
        ),
        ("import subprocess, sys\nsubprocess.Popen([sys.executable, 'eval.py', '--rank', 'x'])", False),
        ("import os, subprocess\nr = os.environ['RANK']\nsubprocess.Popen(['git', f'--rank={r}'])", False),
        ("import sys\ninit_process_group()\nPopen([sys.executable])\nenv['RANK'] = '0'", False),
    ],
)
def test_what_starts_its_ranks_is_started_once(tmp_path: Path, text: str, once: bool) -> None:
    from torchemu.runtime.program import Script

    (tmp_path / "p.py").write_text(text)
    assert Script([str(tmp_path / "p.py")]).is_one_host() is once
