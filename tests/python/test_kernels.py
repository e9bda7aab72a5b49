"""Kernels, copies and faults, through the Go core's functions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import torchemu as torch
from torchemu import _runtime
from torchemu import distributed as dist
from torchemu import multiprocessing as mp
from torchemu._binding import go

TOPOLOGY = """
name: handy
system: {sips: {count: 4}}
sip: {cube_mesh: {w: 2, h: 2}}
cube: {hbm: {bandwidth: 250, latency: 100}, pe_layout: {pe_per_corner: 1, corners: [nw]}}
pe: {matrix: {f8_tflops: 1, f16_tflops: 0.5, f32_tflops: 0.25}, vector: {f32_tflops: 0.125}}
host: {launch_overhead: 5000, link: {bandwidth: 50, latency: 1000}}
"""
"""All memories of a SIP together move a byte a picosecond."""

US = 1_000_000  # ps
OVERHEAD = 5 * US


@pytest.fixture
def world(tmp_path: Path) -> Iterator[_runtime.World]:
    file = tmp_path / "handy.yaml"
    file.write_text(TOPOLOGY)
    with _runtime.opened(file) as opened:
        yield opened


def wait(world: _runtime.World, event: int) -> int:
    """The time at which the event ends, when the host has waited for it."""
    while not go.Await(world.handle, 0, event):
        pass
    return go.EventTime(event)


@pytest.mark.parametrize(
    ("nbytes", "ops", "unit", "took"),
    [
        (20 * US, 0, "vector", 20 * US),
        (20 * US, 1000, "vector", 20 * US),
        (0, 10_000_000, "vector", 20 * US),
        (0, 10_000_000, "float32", 10 * US),
        (0, 10_000_000, "bfloat16", 5 * US),
        (0, 10_000_000, "float8_e5m2", 2.5 * US),
        (0, 10_000_000, "int64", 20 * US),
        (0, 0, "vector", 0),
    ],
)
def test_a_kernel_takes_the_longer_of_its_times(
    world: _runtime.World, nbytes: int, ops: int, unit: str, took: int
) -> None:
    stream = go.DefaultStream(world.handle, 0)
    assert wait(world, go.LaunchKernel(stream, "a kernel", "", nbytes, ops, unit)) == OVERHEAD + took


def test_events_around_a_kernel_are_its_time_apart(world: _runtime.World) -> None:
    stream = go.DefaultStream(world.handle, 0)
    go.LaunchKernel(stream, "before", "", 7 * US, 0, "vector")
    start = go.StreamRecord(stream)
    go.LaunchKernel(stream, "a kernel", "", 123_456_789, 0, "vector")
    end = go.StreamRecord(stream)
    assert wait(world, end) - wait(world, start) == 123_456_789


def test_who_reads_an_output_waits_for_its_kernel(world: _runtime.World) -> None:
    stream = go.DefaultStream(world.handle, 0)
    t = go.NewTensor(world.handle, "f32", "4")
    assert go.LaunchKernel(stream, "a kernel", str(t), 20 * US, 0, "vector") == 0
    assert go.IsPending(t)
    assert not go.Settled(t)
    while not go.Await(world.handle, 0, t):
        pass
    assert not go.IsPending(t)


def test_copies_to_and_from_the_host(world: _runtime.World) -> None:
    stream = go.DefaultStream(world.handle, 0)
    latency = 1 * US + 100_000
    assert wait(world, go.LaunchCopy(stream, "", 1000, False)) == OVERHEAD + 20_000 + latency
    host = go.HostTime(world.handle, 0)
    assert wait(world, go.LaunchCopy(stream, "", 0, True)) == host + OVERHEAD + latency


@pytest.mark.parametrize("nbytes", [-1, 1 << 62])
def test_absurd_amounts(world: _runtime.World, nbytes: int) -> None:
    stream = go.DefaultStream(world.handle, 0)
    with pytest.raises(ValueError, match=str(nbytes)):
        go.LaunchKernel(stream, "a kernel", "", nbytes, 0, "vector")
    with pytest.raises(ValueError, match=str(nbytes)):
        go.LaunchCopy(stream, "", nbytes, True)
    with pytest.raises(ValueError, match="unknown dtype"):
        go.LaunchKernel(stream, "a kernel", "", 1, 0, "tensor")


def _reduces(rank: int, told: list[str]) -> None:
    x = torch.ones(4, device=rank)
    try:
        dist.all_reduce(x)
        x.tolist()
    except dist.DistBackendError as error:
        told.append(str(error))


@pytest.mark.parametrize("read", [True, False])
def test_a_dropped_link(world: _runtime.World, tmp_path: Path, read: bool) -> None:
    text = "faults: [{drop_link: [1, 2]}]"
    if read:
        file = tmp_path / "faults.yaml"
        file.write_text(text)
        go.LoadFaults(world.handle, str(file))
    else:
        go.AddFaults(world.handle, text)
    dist.init_process_group(backend="ahbm")
    told: list[str] = []
    mp.spawn(_reduces, (told,), nprocs=4)
    assert len(told) == 4
    for text in told:
        assert "all_reduce" in text
        assert text.endswith("; the link between SIP 1 and SIP 2 was dropped at 0s")


def test_wrong_faults_are_all_named(world: _runtime.World) -> None:
    with pytest.raises(ValueError) as raised:
        go.AddFaults(world.handle, "faults:\n- {kill: 4, at: 1}\n- {slow_rank: 1}\n")
    assert str(raised.value).splitlines() == [
        "faults has 2 problems:",
        '  faults:2: faults[0].kill: there is no rank 4; topology "handy" has ranks 0 to 3',
        "  faults:3: faults[1].factor: is missing; slow_rank needs it",
    ]
    with pytest.raises(FileNotFoundError):
        go.LoadFaults(world.handle, "none.yaml")
