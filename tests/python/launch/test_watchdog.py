"""A rank whose operation lasts longer than its group allows is ended as by NCCL's watchdog, whatever it does meanwhile;
gloo has none, and what the environment leaves to the program the program may catch."""

from __future__ import annotations

from pathlib import Path

import pytest
from launch import launch, written
from watchdog_cases import PROGRAM, is_ended


def test_nccls_watchdog_ends_the_rank(tmp_path: Path) -> None:
    outcome = launch("--nproc-per-node", "2", "--virtual-clock", written(tmp_path, PROGRAM), "nccl", "cuda")
    assert is_ended(outcome.status, outcome.out, outcome.err), outcome


def test_gloo_has_none(tmp_path: Path) -> None:
    outcome = launch("--nproc-per-node", "2", "--virtual-clock", written(tmp_path, PROGRAM), "gloo", "cpu")
    assert (outcome.status, outcome.out) == (0, "goes on\ncatches DistBackendError\n"), outcome


@pytest.mark.parametrize("name", ["TORCH_NCCL_BLOCKING_WAIT=1", "TORCH_NCCL_ASYNC_ERROR_HANDLING=0"])
def test_a_program_may_choose_to_catch_the_error(tmp_path: Path, name: str) -> None:
    variable, _, value = name.partition("=")
    text = PROGRAM.replace("backend, device", f'os.environ["{variable}"] = "{value}"\nbackend, device', 1)
    outcome = launch("--nproc-per-node", "2", "--virtual-clock", written(tmp_path, text), "nccl", "cuda")
    assert (outcome.status, outcome.out) == (0, "catches DistBackendError\n"), outcome


def test_a_thread_that_waits_is_ended_with_its_rank(tmp_path: Path) -> None:
    text = """
import threading
from datetime import timedelta
import torch
import torch.distributed as dist

dist.init_process_group("nccl", timeout=timedelta(seconds=1))
if dist.get_rank() == 0:
    def reads():
        t = torch.ones(4, device="cuda")
        dist.all_reduce(t)
        t.tolist()
    thread = threading.Thread(target=reads)
    thread.start()
    thread.join()
    print("goes on")
else:
    import time
    time.sleep(3)
"""
    outcome = launch("--nproc-per-node", "2", "--virtual-clock", written(tmp_path, text))
    assert outcome.status == 1 and "exitcode  : -6" in outcome.err and outcome.out == "", outcome
