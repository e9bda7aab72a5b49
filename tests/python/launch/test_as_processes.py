"""Ranks are as separate as processes where they change what the system keeps for one."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from launch import launch, lines, written

START = """
import ctypes, multiprocessing, os, resource, signal, subprocess, sys, time
from concurrent.futures import ProcessPoolExecutor, as_completed, wait
import torch.distributed as dist
dist.init_process_group("gloo")
rank = dist.get_rank()
"""


def _run(tmp_path: Path, text: str, *flags: str, ranks: int = 3) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "torchemu", "run", "--nproc-per-node", str(ranks), *flags]
    file = written(tmp_path, START + text)
    return subprocess.run([*command, str(file)], capture_output=True, text=True, timeout=120)


def test_programs_that_ranks_start_and_code_in_c_see_their_variables(tmp_path: Path) -> None:
    done = _run(
        tmp_path,
        """
os.environ["WHO"] = f"who{rank}"
dist.barrier()
sys.stdout.flush()
os.system("echo system $WHO $RANK")
print("sub", subprocess.check_output("echo $WHO $RANK", shell=True, text=True), end="")
print("popen", os.popen("echo $WHO $RANK").read(), end="")
getenv = ctypes.CDLL(None).getenv
getenv.restype = ctypes.c_char_p
dist.barrier()
print("getenv", getenv(b"WHO").decode(), getenv(b"RANK").decode())
del os.environ["WHO"]
dist.barrier()
assert getenv(b"WHO") is None
""",
    )
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == sorted(
        f"{by} who{rank} {rank}" for by in ("system", "sub", "popen", "getenv") for rank in range(3)
    )


def test_the_environment_is_as_before_after_a_run(tmp_path: Path) -> None:
    assert launch("--nproc-per-node", "1", written(tmp_path, START)).status == 0  # PyTorch may set some as it is loaded
    before = subprocess.check_output("env", text=True)
    text = START + "os.environ['TORCHEMU_TEST'] = '1'\nctypes.CDLL(None)\nos.system('true')\n"
    assert launch("--nproc-per-node", "2", written(tmp_path, text)).status == 0
    assert subprocess.check_output("env", text=True) == before
    os.system('test -z "$TORCHEMU_TEST"')


@pytest.mark.slow
def test_each_rank_has_an_alarm(tmp_path: Path) -> None:
    text = """
got = []
def ring(number, frame): got.append(rank)
if rank < 2:
    signal.signal(signal.SIGALRM, ring)
    assert signal.alarm(5) == 0 and signal.alarm(1) > 3
begun = time.time()
while time.time() - begun < 1.5: time.sleep(0.05)
assert got == ([rank] if rank < 2 else []), got
"""
    assert _run(tmp_path, text).returncode == 0


@pytest.mark.slow
@pytest.mark.parametrize("wait", ["time.sleep(20)", "while n < 10**9: n += 1"])
def test_an_alarm_comes_to_a_rank_that_does_not_wait_for_others(tmp_path: Path, wait: str) -> None:
    text = f"""
def ring(number, frame): raise TimeoutError(rank)
signal.signal(signal.SIGALRM, ring)
signal.setitimer(signal.ITIMER_REAL, 0.3)
n = 0
try:
    {wait}
except TimeoutError as error:
    print(error)
"""
    done = _run(tmp_path, text, ranks=2)
    assert (done.returncode, sorted(done.stdout)) == (0, ["\n", "\n", "0", "1"]), done.stderr


@pytest.mark.parametrize("wait", ["time.sleep(0.01)", "n += 1"])
def test_an_alarm_that_comes_while_ranks_take_turns_is_the_rank_s(tmp_path: Path, wait: str) -> None:
    text = f"""
import ctypes
from torchemu import runtime
def ring(number, frame): raise TimeoutError(rank)
switch_to = runtime.switch_to
def switch_late(context):
    before = switch_to(context)
    if context is not None and context.rank == 1:
        runtime.switch_to = switch_to
        ctypes.CDLL(None).usleep(300_000)  # the alarm rings here
    return before
n = 0
if rank == 1:
    signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    runtime.switch_to = switch_late
try:
    while n < 10**9 and rank == 1 or n < 3:
        {wait}
        if rank == 0: n, _ = n + 1, time.sleep(0.001)
except TimeoutError as error:
    print(error)
"""
    done = _run(tmp_path, text, ranks=2)
    assert (done.returncode, sorted(done.stdout)) == (0, ["\n", "1"]), done.stderr


@pytest.mark.slow
def test_an_alarm_without_a_handler_ends_its_rank(tmp_path: Path) -> None:
    done = _run(tmp_path, "if rank == 1: signal.alarm(1)\nfor _ in range(40): time.sleep(0.05)\nprint('end')\n")
    assert done.returncode == 1 and "rank      : 1 " in done.stderr and "SIGALRM" in done.stderr


@pytest.mark.slow
def test_exec_ends_one_rank(tmp_path: Path) -> None:
    text = 'if rank == 1: os.execlp("sh", "sh", "-c", "echo $RANK; exit 3")\nprint("goes on")\n'
    done = _run(tmp_path, text)
    assert done.stdout.count("goes on") >= 1 and "1\n" in done.stdout
    assert done.returncode == 1 and "exitcode  : 3" in done.stderr
    assert "rank 1 was replaced by" in done.stderr and f"/sh, at {tmp_path / 'program.py'}:" in done.stderr
    assert _run(tmp_path, text.replace("exit 3", "exit 0")).returncode == 0


def test_umask_descriptors_and_limits(tmp_path: Path) -> None:
    text = f"""
if rank == 0: assert os.umask(0o077) == 0o022 or True
dist.barrier()
file = "{tmp_path}/made" + str(rank)
open(file, "w").close()
assert (os.stat(file).st_mode & 0o077 == 0) == (rank == 0)
soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
resource.setrlimit(resource.RLIMIT_NOFILE, (soft - 1 - rank, hard))
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
dist.barrier()
assert resource.getrlimit(resource.RLIMIT_NOFILE) == (soft - 1 - rank, hard)
assert resource.getrlimit(resource.RLIMIT_CORE) == (0, 0)
with open("/proc/self/limits") as file: assert f"{{soft}} " in next(line for line in file if "open files" in line)
try: resource.setrlimit(resource.RLIMIT_NOFILE, (soft - 1, soft - 2))
except ValueError as error: assert str(error) == "current limit exceeds maximum limit"
else: raise AssertionError
resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
assert resource.getrlimit(resource.RLIMIT_NOFILE) == (soft, hard)
try: resource.setrlimit(resource.RLIMIT_AS, (1 << 40, resource.RLIM_INFINITY))
except NotImplementedError as error: assert f"rank {{rank}} would lower" in str(error)
else: raise AssertionError
try: os.closerange(900, 901)
except NotImplementedError as error: assert "close what the rank has opened" in str(error)
else: raise AssertionError
log = os.open("{tmp_path}/log" + str(rank), os.O_CREAT | os.O_WRONLY)
if rank == 1: os.dup2(log, 1)
if rank == 2: os.close(1)
dist.barrier()
try: os.write(1, f"raw {{rank}}\\n".encode())
except OSError as error: assert rank == 2 and error.errno == 9
else: assert rank != 2
"""
    done = _run(tmp_path, text)
    assert (done.returncode, done.stdout) == (0, "raw 0\n"), done.stderr
    assert (tmp_path / "log1").read_text() == "raw 1\n"


def test_a_closed_output_stays_closed(tmp_path: Path) -> None:
    text = """
if rank == 0:
    sys.stdout.close()
    assert sys.stdout.closed
    try: print("lost")
    except ValueError: sys.stderr.write("closed\\n")
dist.barrier()
if rank: print("open")
"""
    done = _run(tmp_path, text)
    assert (done.returncode, done.stdout, done.stderr) == (0, "open\nopen\n", "closed\n")


def test_files_of_a_ranks_process(tmp_path: Path) -> None:
    text = """
pid = os.getpid()
assert os.path.exists(f"/proc/{pid}") and "VmRSS" in open(f"/proc/{pid}/status").read()
assert os.listdir(f"/proc/{pid}/task") and os.readlink(f"/proc/{pid}/exe")
"""
    assert _run(tmp_path, text).returncode == 0


POOLS = {
    "Pool": "with multiprocessing.Pool(2) as pool: print(pool.map(square, [1, 2, 3]))",
    "PyTorch's Pool": "with torch.multiprocessing.Pool(2) as pool: print(pool.map(square, [1, 2, 3]))",
    "PyTorch's context": "with torch.multiprocessing.get_context('fork').Pool(2, set, ([],)) as pool:\n"
    "        print(pool.map(square, [1, 2, 3]))",
    "ProcessPoolExecutor": "with ProcessPoolExecutor(2) as pool: print(list(pool.map(square, [1, 2, 3])))",
    "futures": "with ProcessPoolExecutor(2) as pool:\n"
    "        given = [pool.submit(square, i) for i in (1, 2, 3)]\n"
    "        assert len(wait(given).done) == 3\n"
    "        print(sorted(f.result() for f in as_completed([pool.submit(square, i) for i in (1, 2, 3)])))",
    "Process and Queue": "queue = multiprocessing.Queue()\n"
    "    child = multiprocessing.Process(target=put, args=(queue,))\n"
    "    child.start(); print(queue.get()); child.join(); assert child.exitcode == 0",
    "Process after Pool": "with multiprocessing.Pool(1) as pool: pool.map(square, [1])\n"
    "    child = multiprocessing.Process(target=square, args=(1,))\n"
    "    child.start(); child.join(); assert child.exitcode == 0; print([1, 4, 9])",
}
"""Processes of a program's own that are no ranks, by what starts them."""


@pytest.mark.slow
@pytest.mark.parametrize("name", POOLS)
def test_processes_beside_ranks_work_and_end(tmp_path: Path, name: str) -> None:
    text = f"""
import torch.multiprocessing
def square(x): return x * x
def put(queue): queue.put([1, 4, 9])
if __name__ == "__main__":
    {POOLS[name]}
    dist.barrier()
"""
    done = _run(tmp_path, text)
    assert (done.returncode, done.stdout) == (0, "[1, 4, 9]\n" * 3), done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_processes_that_begin_anew_load_the_program(tmp_path: Path, method: str) -> None:
    text = f"""
    import multiprocessing, os
    import torch

    def square(x): return torch.tensor(x * x).item()
    def put(queue): queue.put(os.environ["RANK"])
    if __name__ == "__main__":
        context, rank = multiprocessing.get_context("{method}"), os.environ["RANK"]
        torch.distributed.init_process_group("gloo")
        with context.Pool(1) as pool: print(pool.map(square, [1, 2, 3]))
        child = context.Process(target=put, args=(queue := context.Queue(),))
        child.start(); assert queue.get() == rank; child.join(); assert child.exitcode == 0
    """
    command = [sys.executable, "-m", "torchemu", "run", "--nproc-per-node", "2", str(written(tmp_path, text))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, "[1, 4, 9]\n" * 2), done.stderr


@pytest.mark.slow
def test_a_rank_leaves_other_ranks_processes_alone(tmp_path: Path) -> None:
    text = """
    import multiprocessing, os, time
    import torch

    def nap(seconds): time.sleep(seconds)
    if __name__ == "__main__":
        context, rank = multiprocessing.get_context("forkserver"), int(os.environ["RANK"])
        torch.distributed.init_process_group("gloo")
        first = context.Process(target=nap, args=(0.5,))
        assert first.name == "ForkServerProcess-1"
        first.start()
        torch.distributed.barrier()
        for _ in range(4 * rank):  # each start asks the rank's processes whether they have ended, while rank 0 waits
            time.sleep(0.2)
            other = context.Process(target=nap, args=(0,))
            other.start()
            assert set(multiprocessing.active_children()) <= {first, other}
            other.join()
        first.join()
        assert first.exitcode == 0 and not multiprocessing.active_children()
    """
    command = [sys.executable, "-m", "torchemu", "run", "--nproc-per-node", "2", str(written(tmp_path, text))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("module", ["multiprocessing", "torch.multiprocessing"])
def test_pools_of_a_program_on_one_rank_hold_no_rank(tmp_path: Path, module: str) -> None:
    text = f"""
    import os, sys, torch, {module} as mp

    def worked(x): return x * x, os.getpid()
    if __name__ == "__main__":
        for pool in (mp.Pool(2), mp.get_context("spawn").Pool(1)):
            with pool: found = pool.map(worked, [1, 2, 3])
            assert [square for square, _ in found] == [1, 4, 9] and os.getpid() not in dict(found).values()
        print("done")
    """
    command = [sys.executable, "-m", "torchemu", "run", "--nproc-per-node", "1", str(written(tmp_path, text))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("ranks", [1, 2])
def test_executors_of_processes_take_the_programs_way_of_starting_them(tmp_path: Path, ranks: int) -> None:
    text = """
    import multiprocessing, os, sys
    from concurrent.futures import ProcessPoolExecutor
    import torch.multiprocessing

    def worked(x): return x * x, multiprocessing.get_start_method(), os.getpid()
    if __name__ == "__main__":
        if os.environ["WORLD_SIZE"] == "1":
            multiprocessing.set_start_method("spawn")
        contexts = torch.multiprocessing.get_context("spawn"), multiprocessing.get_context("fork"), None
        for context in contexts:
            with ProcessPoolExecutor(2, context) as pool: found = list(pool.map(worked, [1, 2, 3]))
            squares, methods, places = zip(*found)
            assert squares == (1, 4, 9) and os.getpid() not in places
            if context is not None: continue
            assert set(methods) == {"spawn" if os.environ["WORLD_SIZE"] == "1" else "fork"}
        print("done")
    """
    command = [sys.executable, "-m", "torchemu", "run", "--nproc-per-node", str(ranks), str(written(tmp_path, text))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, "done\n" * ranks), done.stderr


def test_a_crash_in_c_names_the_rank_its_line_and_its_last_operation(tmp_path: Path) -> None:
    text = "import torch\ndist.all_reduce(torch.ones(3))\nif rank == 1:\n    ctypes.string_at(0)\ndist.barrier()\n"
    done = _run(tmp_path, text)
    file = tmp_path / "program.py"
    at = file.read_text().splitlines().index("    ctypes.string_at(0)") + 1
    assert done.returncode == 1
    place, last = f"place     : {file}:{at} in <module>", "last      : all_reduce at"
    for part in ("crashed in rank 1", "exitcode  : -11", place, last):
        assert part in done.stderr, done.stderr


SLEEPS = """
import torch
flag = "{}/flag"
if rank == 0:
    {}
else:
    for _ in range(30): dist.all_reduce(torch.ones(1 << 20), group=pair)
    if rank == 1: open(flag, "w").close()
print("end")
"""


LOOKS = {
    "os.path": "while not os.path.exists(flag): pass",
    "sleeping": "while not os.path.exists(flag): time.sleep(0.001)",
    "pathlib": "while not pathlib.Path(flag).exists(): pass",
    "glob": "while not list(pathlib.Path(flag).parent.glob('fla*')): pass",
    "reading": "while True:\n        with contextlib.suppress(OSError): pathlib.Path(flag).read_text(); break",
    "several": "while not all(map(os.path.exists, [flag, __file__])): pass",
    "one after another": "while not all(map(os.path.exists, [__file__, flag])): pass",
}
"""Statements that wait for a file."""


@pytest.mark.slow
@pytest.mark.parametrize("name", LOOKS)
def test_who_looks_for_a_file_lets_others_run(tmp_path: Path, name: str) -> None:
    text = "import contextlib, pathlib\npair = dist.new_group([1, 2])\n" + SLEEPS.format(tmp_path, LOOKS[name])
    done = _run(tmp_path, text)
    assert (done.returncode, done.stdout) == (0, "end\n" * 3), done.stderr


FEW_LOOKS = {
    "os.path": "while not os.path.exists(flag): looks += 1",
    "a package": """
    while True:
        try: np.load(flag)
        except FileNotFoundError: looks += 1
        except EOFError: break
    """,
    "os.open": """
    while True:
        try: os.close(os.open(flag, os.O_RDONLY)); break
        except FileNotFoundError: looks += 1
    """,
}


@pytest.mark.slow
@pytest.mark.parametrize("name", FEW_LOOKS)
def test_looks_for_a_file_are_few(tmp_path: Path, name: str) -> None:
    """Each takes simulated time, after the first ones, and not a processor's until a loop has gone round for long."""
    looks = FEW_LOOKS[name].strip() + "\n    assert looks < 2000, looks"
    text = "import numpy as np\nlooks, pair = 0, dist.new_group([1, 2])\n" + SLEEPS.format(tmp_path, looks)
    done = _run(tmp_path, text)
    assert (done.returncode, done.stdout) == (0, "end\n" * 3), done.stderr


def test_a_package_that_sleeps_lets_others_run(tmp_path: Path) -> None:
    packages = tmp_path / "site-packages"
    packages.mkdir()
    (packages / "poller.py").write_text(
        "import os\nfrom time import sleep\n\ndef wait_for(path):\n    while not os.path.exists(path): sleep(0.01)\n"
    )
    text = f"""
    import os, sys
    sys.path.insert(0, {str(packages)!r})
    import poller
    flag = {str(tmp_path / "flag")!r}
    if os.environ["RANK"] == "0": poller.wait_for(flag)
    else: open(flag, "w").close()
    print("end")
    """
    assert lines(launch("--nproc-per-node", "2", written(tmp_path, text))) == ["end"] * 2


LOCKING = """
import contextlib, threading, torch.distributed as dist
lock, again, changed = threading.Lock(), threading.RLock(), threading.Condition()
class One:
    lock = threading.Lock()
def summed(tensor):
    with lock, again, again, changed, One.lock:
        assert lock.locked() and not lock.acquire(blocking=False)
        dist.all_reduce(tensor)
        changed.notify_all()
    assert not lock.locked() and isinstance(lock, type(threading.Lock()))
    return tensor
def beside():
    seen = []
    def look():
        seen.append([one.acquire(blocking=False) for one in (lock, again, One.lock)])
    for held in (lock, again), ():
        with contextlib.ExitStack() as stack:
            for one in held: stack.enter_context(one)
            thread = threading.Thread(target=look)
            thread.start()
            thread.join()
    return seen
"""


def test_locks_of_packages_are_a_ranks_own(tmp_path: Path) -> None:
    """A rank that holds one waits for the others, which take theirs; threads of the system are kept out."""
    written(tmp_path, LOCKING, "site-packages/locking.py")
    text = f"""
    import sys, threading, torch
    sys.path.append({str(tmp_path / "site-packages")!r})
    import locking
    print(locking.summed(torch.ones(2)).tolist())
    def hold():
        with locking.lock: dist.recv(torch.ones(1), 1 - rank)
    thread = threading.Thread(target=hold)
    if rank == 0: thread.start()
    while rank == 0 and not locking.lock.locked(): pass
    if rank == 1: dist.send(torch.ones(1), 0)
    if rank == 0: locking.lock.acquire(); thread.join(); locking.lock.release()
    dist.barrier()
    if rank == 0: assert locking.beside() == [[False, False, True], [True, True, False]]
    """
    done = _run(tmp_path, textwrap.dedent(text), ranks=2)
    assert (done.returncode, done.stdout) == (0, "[2.0, 2.0]\n" * 2), done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["HTTPServer", "ThreadingHTTPServer"])
def test_a_rank_serves_others_and_shuts_its_server_down(tmp_path: Path, kind: str) -> None:
    text = f"""
    import http.server, threading, urllib.request
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.end_headers()
            self.wfile.write(f"from {{rank}}".encode())
        def log_message(self, *_): pass
    server = http.server.{kind}(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    ports = [None] * 3
    dist.all_gather_object(ports, server.server_port)
    print(urllib.request.urlopen(f"http://127.0.0.1:{{ports[rank - 1]}}/").read())
    dist.barrier()
    server.shutdown()
    thread.join()
    """
    done = _run(tmp_path, textwrap.dedent(text))
    assert (done.returncode, sorted(done.stdout.split("\n"))) == (0, ["", *(f"b'from {r}'" for r in range(3))]), (
        done.stderr
    )


def test_many_files_take_no_simulated_time(tmp_path: Path) -> None:
    text = """
    import os, sys, time, torch.distributed as dist
    dist.init_process_group("gloo")
    begun = time.monotonic()
    for i in range(2000): os.path.exists(f"/nowhere/{i}")
    print(time.monotonic() - begun)
    """
    assert lines(launch("--nproc-per-node", "1", "--virtual-clock", written(tmp_path, text))) == ["0.0"]


def test_programs_that_a_rank_starts_have_no_agent(tmp_path: Path) -> None:
    """Such a program, which may start ranks of its own, would wait for a store that nobody serves."""
    text = """
code = "import os; print(os.environ.get('TORCHELASTIC_USE_AGENT_STORE'), os.environ.get('MINE'), os.environ['RANK'])"
assert os.environ["TORCHELASTIC_USE_AGENT_STORE"] == "True"
os.environ["MINE"] = "a"
for env in (None, dict(os.environ, MINE="b"), {"RANK": "7"}):
    print(subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True).stdout.strip())
assert os.environ["TORCHELASTIC_USE_AGENT_STORE"] == "True"
"""
    done = _run(tmp_path, text)
    said = [line for rank in range(3) for line in (f"False a {rank}", f"False b {rank}", "None None 7")]
    assert done.returncode == 0 and sorted(done.stdout.splitlines()) == sorted(said), done.stderr
