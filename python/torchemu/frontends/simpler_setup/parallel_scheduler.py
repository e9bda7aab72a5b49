"""simpler_setup.parallel_scheduler: numbers of devices as commands say them, and jobs that share devices."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

_RUN = ("-m", "torchemu", "run", "--nproc-per-node", "1")


@dataclass
class Job:
    """A command that needs devices.

    Attributes:
        label: its name in reports.
        device_count: how many devices it needs.
        build_cmd: gives the command for the devices that it gets.
        cwd, env: where it runs, and its environment; None for this process's.
    """

    label: str
    device_count: int
    build_cmd: Callable[[list[int]], list[str]]
    cwd: str | None = None
    env: Mapping[str, str] | None = None


@dataclass
class JobResult:
    """The end of a job.

    Attributes:
        label: the job's.
        returncode: the command's status.
        device_ids: the devices that it had.
        output: what it wrote, on both streams.
        duration_s: seconds of the host's.
    """

    label: str
    returncode: int
    device_ids: list[int]
    output: str = ""
    duration_s: float = 0.0


def run_jobs(
    jobs: Sequence[Job],
    device_ids: Sequence[int],
    *,
    max_parallel: int | None = None,
    fail_fast: bool = False,
    poll_interval_s: float = 0.1,
    on_job_done: Callable[[JobResult], None] | None = None,
) -> list[JobResult]:
    """Runs jobs one after another, each on the first of the devices. Those that are this Python's run under torchemu.

    Args:
        device_ids: the devices that there are.
        max_parallel, poll_interval_s: without effect.
        fail_fast: end after the first that fails.
        on_job_done: called with each result.

    Raises:
        ValueError: a job needs more devices than there are.
    """
    for job in jobs:
        if job.device_count > len(device_ids):
            raise ValueError(f"job {job.label!r} needs {job.device_count} devices, and there are {len(device_ids)}")
    results: list[JobResult] = []
    for job in jobs:
        results.append(_done(job, list(device_ids[: job.device_count])))
        if on_job_done is not None:
            on_job_done(results[-1])
        if fail_fast and results[-1].returncode:
            break
    return results


def _done(job: Job, devices: list[int]) -> JobResult:
    command = job.build_cmd(devices)
    if command and command[0] == sys.executable:
        command = [command[0], *_RUN, *command[1:]]
    begun = time.monotonic()
    done = subprocess.run(
        command, cwd=job.cwd, env=job.env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    return JobResult(job.label, done.returncode, devices, done.stdout, time.monotonic() - begun)


def default_max_parallel(platform: str, device_ids: Sequence[int]) -> int:
    """The number of jobs that may run at a time: one a device, on a simulator at most one a processor."""
    most = len(device_ids) if not platform.endswith("sim") else min(len(device_ids), os.cpu_count() or 1)
    return max(most, 1)


def device_range_to_list(spec: str) -> list[int]:
    """The numbers, ascending, that "0", "0-3" or "0,2-4,7" stands for; [] for "".

    Raises:
        ValueError: it is none of these.
    """
    found: set[int] = set()
    for part in filter(None, (part.strip() for part in spec.split(","))):
        first, dash, last = part.partition("-")
        found.update(range(int(first), int(last if dash else first) + 1))
    return sorted(found)


def format_device_range(ids: Sequence[int]) -> str:
    """Returns numbers as device_range_to_list reads them: "0-3" where they follow each other, else "0,2,5"."""
    numbers = sorted(ids)
    if len(numbers) > 1 and numbers == list(range(numbers[0], numbers[-1] + 1)):
        return f"{numbers[0]}-{numbers[-1]}"
    return ",".join(map(str, numbers))
