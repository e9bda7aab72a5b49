"""PyTorch's loggers print in ranks what they print in processes."""

import os
import re
import subprocess
import sys

import pytest

PROGRAM = """
import logging, sys
import torch, torch.distributed as dist
from torch.distributed import c10d_logger, distributed_c10d
from torch.fx.experimental import symbolic_shapes  # has loggers, and comes with a run of torchemu
dist.init_process_group("gloo")
rank = dist.get_rank()

def is_configured(logger):
    return isinstance(logger, logging.Logger) and (logger.handlers or logger.level or not logger.propagate)

def show(when):
    dist.barrier()
    for name, logger in sorted(logging.root.manager.loggerDict.items()):
        if name.startswith(("torch", "c10d")) and is_configured(logger):
            handlers = [(type(h).__name__, h.level, getattr(h, "stream", None) is sys.stderr) for h in logger.handlers]
            state = logger, logger.disabled, logger.propagate, logger.parent, handlers
            sys.stdout.write(f"{when} {rank} {state}\\n")

show("begin")
distributed_c10d.logger.warning("all warn")
if rank == 1:
    torch._logging.set_logs(dynamo=logging.DEBUG, graph_breaks=True)
    logging.getLogger("torch.distributed").setLevel(logging.DEBUG)
    logging.getLogger("torch").handlers.clear()
    c10d_logger._c10d_logger.addHandler(logging.StreamHandler(sys.stdout))
dist.barrier()
logging.basicConfig(level=logging.INFO, format="%(name)s %(message)s")
distributed_c10d.logger.debug("debug of %d", rank)
logging.getLogger("torch").warning("torch of %d", rank)
logging.getLogger("torch.own").warning("own of %d", rank)
logging.info("root of %d", rank)
try:
    dist.all_gather([torch.ones(1)], torch.ones(1), group="none")
except Exception:
    pass
show("end")
"""
TIME = re.compile(r"\d{4} \d\d:\d\d:\d\d\.\d+ \d+ ")
FROM_ABOVE = ("W", "[Gloo]")
"""How lines begin that torchrun and gloo print."""


def _printed(command, folder, environment):
    (folder / "program.py").write_text(PROGRAM)
    done = subprocess.run(
        [sys.executable, "-m", *command, "--nproc-per-node", "2", "program.py"],
        capture_output=True, text=True, timeout=300, cwd=folder,
        env={**os.environ, "OMP_NUM_THREADS": "1", **environment},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    text = TIME.sub("", done.stdout + done.stderr)
    return sorted(line for line in text.splitlines() if not line.startswith(FROM_ABOVE))


@pytest.mark.slow
@pytest.mark.parametrize("variables", [{}, {"TORCH_LOGS": "+dtensor"}], ids=str)
def test_ranks_print_what_processes_print(tmp_path, variables):
    found = _printed(["torchemu", "run", "--torch", "real"], tmp_path, variables)
    assert found == _printed(["torch.distributed.run", "--standalone"], tmp_path, variables)
    assert len(found) > 50


LISTENING = """
import logging, logging.handlers, queue
import torch, torch.distributed as dist
dist.init_process_group("gloo")
rank, records, told = dist.get_rank(), queue.Queue(), []

class Kept(logging.Handler):
    def emit(self, record):
        told.append(record.getMessage())

listener = logging.handlers.QueueListener(records, Kept())
listener.start()
logger = logging.getLogger("listened")
logger.propagate = False
logger.addHandler(logging.handlers.QueueHandler(records))
logger.warning("before %d", rank)
dist.barrier()
logger.warning("after %d", rank)
listener.stop()
assert told == [f"before {rank}", f"after {rank}"], told
"""


def test_a_listener_of_records_is_a_thread_of_its_rank(tmp_path):
    script = tmp_path / "listening.py"
    script.write_text(LISTENING)
    command = [sys.executable, "-m", "torchemu", "run", "--torch", "real", "--nproc-per-node", "2", str(script)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
