"""Files of LMDB: what ranks open at once, which its library refuses in one process, and when they are closed."""

import subprocess
import sys
import textwrap

LIBRARY = """
class Error(Exception):
    pass

files, log = {}, []

class Transaction:
    writers = 0

    def __init__(self, environment, write, parent):
        assert parent is None or type(parent) is Transaction
        Transaction.writers += write and parent is None
        assert Transaction.writers <= 1, "stops the process"
        self.of, self.write = (environment.name, write), write and parent is None

    def put(self, key, value):
        log.append((key, value))

    def commit(self):
        Transaction.writers -= self.write
        self.write = False

    abort = commit

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.commit()

class Environment:
    def __init__(self, path, map_size=10485760, readonly=False, lock=True):
        self.name, self.readonly, self.size = path, readonly, map_size
        if path in files:
            raise Error(f"The environment {path!r} is already open in this process.")
        files[path] = self
        log.append(("open", readonly))

    def begin(self, db=None, parent=None, write=False, buffers=False):
        if files.get(self.name) is not self:
            raise Error("closed")
        if write and self.readonly:
            raise Error("Permission denied")
        return Transaction(self, write, parent)

    def open_db(self, key=None, txn=None):
        assert type(txn) in (Transaction, type(None))
        return key

    def path(self):
        return self.name

    def close(self):
        if files.get(self.name) is self:
            del files[self.name]
            log.append("close")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __del__(self):
        self.close()

open = Environment
"""

PROGRAM = """
import os, sys, time
sys.path.append("site-packages")
import lmdb
import torch.distributed as dist
dist.init_process_group("gloo")
rank = dist.get_rank()

def refused(function, *args, **kwargs):
    try:
        function(*args, **kwargs)
    except lmdb.Error as error:
        return str(error)
    raise AssertionError

env = lmdb.open("a", readonly=True, lock=False)
dist.barrier()
assert len(lmdb.files) == 1 and env.begin().of == ("a", False) and env.path() == "a"
assert isinstance(env, lmdb.Environment) and not hasattr(env, "unknown") and not hasattr(env, "__len__")
assert "already open" in refused(lmdb.open, "a", readonly=True)
assert refused(env.begin, write=True) == "Permission denied"
dist.barrier()
if rank == 1:
    env.close(), env.close()
    closed = "Attempt to operate on closed/deleted/dropped object."
    assert refused(lambda: env.begin()) == refused(lambda: env.path) == closed
dist.barrier()
if rank == 1:
    with lmdb.open("a", 20, readonly=False) as writing:
        assert writing.begin(write=True).of == ("a", True) and lmdb.files["a"].size == 20
if rank != 1:
    assert env.begin().of == ("a", False)
dist.barrier()
if rank != 1:
    del env
dist.barrier()
assert not lmdb.files
if rank == 0:
    assert lmdb.log == [("open", True), "close", ("open", False), "close"], lmdb.log
dist.barrier()
shared = lmdb.open("b")
lmdb.log.clear()
dist.barrier()
for part in range(2):
    with shared.begin(write=True) as txn:
        assert shared.open_db("inner", txn=txn) == "inner" and shared.begin(parent=txn, write=True).of == ("b", True)
        for value in range(3):
            txn.put(rank, value)
            time.sleep(0.001)
txn = shared.begin(write=True)
time.sleep(0.001)
txn.commit() if rank else txn.abort()
dist.barrier()
groups = [lmdb.log[i : i + 3] for i in range(0, 18, 3)]
assert sorted(groups) == sorted([(r, value) for value in range(3)] for r in [0, 1, 2] * 2), lmdb.log
dist.barrier()
shared.close()
dist.barrier()
own = lmdb.Environment(str(rank), map_size=rank)
dist.barrier()
assert len(lmdb.files) == 3 and lmdb.files[str(rank)].size == rank
print("ends well")
"""


def test_ranks_open_a_file_at_once(tmp_path):
    library = tmp_path / "site-packages" / "lmdb" / "__init__.py"
    library.parent.mkdir(parents=True)
    library.write_text(LIBRARY)
    (tmp_path / "program.py").write_text(textwrap.dedent(PROGRAM))
    command = [sys.executable, "-m", "torchemu", "run", "--torch", "real", "--nproc-per-node", "3", "program.py"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "ends well\n" * 3), done.stderr
