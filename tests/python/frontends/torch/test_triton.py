"""Triton's kernels on tensors of the installed PyTorch: single programs, those of several ranks, and the tutorials."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from sampling import sampled

PROGRAMS = Path(__file__).parent.parent / "triton"
TUTORIAL = Path(__file__).parents[2] / "data" / "triton" / "03-inter-node-allgather.txt"


def run(script, *command, **environ):
    """The finished run of a script on the installed PyTorch."""
    at = command.index("--") if "--" in command else len(command)
    line = [sys.executable, "-m", "torchemu", "run", "--torch", "real", *command[:at], str(script), *command[at + 1 :]]
    env = {**os.environ, **environ}
    return subprocess.run(line, cwd=script.parent, env=env, capture_output=True, text=True, timeout=300)


def passed(*args, **environ):
    """Returns what a script prints that has to end well."""
    done = run(*args, **environ)
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout.splitlines()


@pytest.mark.shows("libraries: Triton")
@pytest.mark.parametrize("name", sampled(["vectors", "products", "layer_norm", "operators"], 4))
def test_programs_of_one_device(name):
    assert passed(PROGRAMS / "single" / f"{name}.py", "--nproc-per-node", "1") == ["ok"]


def test_kernels_among_collectives():
    assert passed(PROGRAMS / "single" / "ranks.py", "--nproc-per-node", "4", "--check") == ["ok"] * 4


@pytest.mark.slow
@pytest.mark.parametrize("flags", [("--check",), ("--reorder", "3", "--", "--fill")])
def test_words_of_other_streams_let_kernels_go_on(flags):
    assert passed(PROGRAMS / "single" / "streams.py", "--nproc-per-node", "4", *flags) == ["ok"] * 4


@pytest.mark.slow
def test_kernels_of_two_streams_race():
    done = run(PROGRAMS / "single" / "streams.py", "--nproc-per-node", "2", "--check", "--", "--race")
    assert done.returncode != 0 and "RaceError: unordered writes" in done.stderr
    text = (PROGRAMS / "single" / "streams.py").read_text().splitlines()
    line = 1 + next(i for i, code in enumerate(text) if "tl.store" in code)
    assert 'tl.store by kernel "consumer" on rank' in done.stderr and f"streams.py:{line}" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("flags", [(), ("--tensors",), ("--half",)])
def test_kernels_on_symmetric_memory(flags):
    checked = ("--nproc-per-node", "4", "--check", "--reorder", "3")
    assert passed(PROGRAMS / "single" / "symmetric.py", *checked, "--", *flags) == ["ok"] * 4


@pytest.mark.slow
def test_kernels_wait_for_words_that_a_stream_sets():
    script = PROGRAMS / "single" / "progress.py"
    assert passed(script, "--nproc-per-node", "4") == ["ok"] * 4
    assert passed(script, "--nproc-per-node", "4", "--check") == ["ok"] * 4
    done = run(script, "--nproc-per-node", "4", "--check", "--", "--relaxed")
    assert done.returncode != 0 and "RaceError: unordered read" in done.stderr
    assert f"progress.py:{line_of(script, 'whole[peer].copy_(')} in main writes" in done.stderr
    assert re.search(f"tl.load by kernel .*progress.py:{line_of(script, 'tl.load(')} reads", done.stderr)


def line_of(script, text):
    """The first line of a script that contains a text."""
    return 1 + next(i for i, code in enumerate(script.read_text().splitlines()) if text in code)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("flag", "missing"),
    [
        ("--relaxed", "is relaxed, so that what came before the signal it saw may not be there: it is to acquire"),
        ("--early", "a barrier, or a signal back, is missing before the bytes are written again"),
    ],
)
def test_races_of_kernels_on_symmetric_memory(flag, missing):
    script = PROGRAMS / "single" / "symmetric.py"
    done = run(script, "--nproc-per-node", "4", "--check", "--", flag)
    assert done.returncode != 0 and "RaceError: " in done.stderr and missing in done.stderr
    for name, text in (("tl.load", "total += tl.load(x + i"), ("copy_", "t.copy_(")):
        assert re.search(f"{name} by kernel .*symmetric.py:{line_of(script, text)}", done.stderr)


TUTORIALS = {
    "notify_wait": [f"rank{r} Passed✅!" for r in range(4)],
    "intra_node_reduce_scatter": [f"RANK {r}: pass!" for r in range(4)],
    "inter_node_reduce_scatter": [f"RANK {r}: pass!" for r in range(4)],
    "all_to_all": [f"✅ Round-{k} combine check passed!" for k in range(3)],
}


@pytest.mark.shows("programs: tutorials for Triton-distributed")
@pytest.mark.parametrize("name", sampled(TUTORIALS, 4))
def test_tutorials(name):
    flags = ("--nproc-per-node", "4", "--check", "--reorder", "3")
    lines = passed(PROGRAMS / "tutorials" / f"{name}.py", *flags, ITEMS="70", ROUNDS="2")
    assert sorted(lines) == sorted(TUTORIALS[name])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["intra_node_allgather", "gemm_reduce_scatter"])
def test_tutorials_that_print_more(name):
    lines = passed(PROGRAMS / "tutorials" / f"{name}.py", "--nproc-per-node", "4")
    wanted = "Pass!✅" if name == "intra_node_allgather" else "dist-triton #"
    assert sum(wanted in line for line in lines) == (8 if name == "intra_node_allgather" else 4)


@pytest.mark.slow
@pytest.mark.shows("libraries: Triton-distributed")
@pytest.mark.parametrize(
    "flags, world",
    [
        (("--nproc-per-node", "4"), 4),
        (("--nproc-per-node", "4", "--check", "--reorder", "5"), 4),
        (("--nnodes", "2", "--nproc-per-node", "8", "--topology", "h800_2x8"), 16),
    ],
)
def test_the_tutorial_that_gathers_between_nodes(tmp_path, flags, world):
    script = tmp_path / "03-inter-node-allgather.py"
    script.write_bytes(TUTORIAL.read_bytes())
    lines = passed(script, *flags)
    for rank in range(world):
        assert lines.count(f"✅ RANK[{rank}] check passed") == 2
    assert len(lines) == world * 8


SILENT = """
import torch
import triton_dist
import triton_dist.language as dl
from triton_dist.utils import initialize_distributed, nvshmem_barrier_all_on_stream, nvshmem_create_tensor


@triton_dist.jit
def silent(words):
    if dl.rank() != 1:
        dl.notify(words, 1 - dl.rank())
    dl.wait(words, 1, "gpu", "acquire")


initialize_distributed()
words = nvshmem_create_tensor((1,), torch.int64)
words.fill_(0)
nvshmem_barrier_all_on_stream()
silent[(1,)](words)
torch.cuda.synchronize()
"""


def test_deadlocks_have_the_kernels_line(tmp_path):
    script = tmp_path / "silent.py"
    script.write_text(SILENT)
    done = run(script, "--nproc-per-node", "2")
    assert done.returncode != 0
    assert 'kernel "silent", which on rank 0 at silent.py:12 waits for the word at rank 0 +0x' in done.stderr
    assert "to be EQ 1; it is 0" in done.stderr and "a rank skips its notify: rank 0 has heard nothing" in done.stderr


@pytest.mark.slow
def test_kernels_need_elements(tmp_path):
    script = tmp_path / "silent.py"
    script.write_text(SILENT)
    done = run(script, "--nproc-per-node", "1", "--no-data")
    assert done.returncode != 0 and "of which a run with --no-data has none" in done.stderr


HALF = """
import torch
import triton
import triton.language as tl


@triton.jit
def doubled(out, x, n: tl.constexpr):
    i = tl.arange(0, n)
    tl.store(out + i, tl.load(x + i) * 2)


torch.manual_seed(1)
half = torch.randn(8, 32).half()
x, out = half.cuda(), torch.empty(8, 32, dtype=torch.float16, device="cuda")
doubled[(1,)](out, x, 256)
weight, bias = torch.rand(2, 32).half().cuda()
leaves = [t.detach().clone().requires_grad_() for t in (out, weight, bias)]
wide = [(2 * half).float(), weight.cpu().float(), bias.cpu().float()]
wide = [t.detach().requires_grad_() for t in wide]
made, want = (torch.nn.functional.layer_norm(a, (32,), b, c) for a, b, c in (leaves, wide))
made.sum().backward()
want.sum().backward()
assert torch.equal(made.cpu(), want.half())
for own, of in zip(leaves, wide):
    assert torch.equal(own.grad.cpu(), of.grad.half())
out, mean, _ = torch.native_layer_norm(leaves[0], (32,), None, None, 1e-5)
assert (out.dtype, mean.dtype) == (torch.float16, torch.float32)
pointers = torch.tensor([x.data_ptr(), x[4:].data_ptr()], device="cuda")


@triton.jit
def pointed(pointers, out, n: tl.constexpr):
    p = tl.load(pointers + tl.program_id(0)).to(tl.pointer_type(tl.float16))
    tl.store(p, tl.load(p + tl.arange(0, n)).sum() * 0 + tl.program_id(0) + 1)


pointed[(2,)](pointers, out, 16)
assert x[::4, 0].tolist() == [1, 2]
print("ok")
"""


@pytest.mark.slow
def test_normalization_of_halves_and_tables_of_addresses(tmp_path):
    """Of what a kernel is yet to write, and by addresses that are elements of a tensor."""
    script = tmp_path / "half.py"
    script.write_text(HALF)
    assert passed(script, "--nproc-per-node", "1") == ["ok"]


HAZARD = """
import torch
import triton_dist
import triton.language as tl
import triton_dist.language as dl
from triton_dist.language.extra import libshmem_device
from triton_dist.language.extra.language_extra import __syncthreads, tid
from triton_dist.utils import initialize_distributed, nvshmem_barrier_all_on_stream, nvshmem_create_tensor


@triton_dist.jit
def one_row(x, whole, words, nbytes, call):
    rank, world, pid = dl.rank(), dl.num_ranks(), tl.program_id(0)
    if pid != rank:
        libshmem_device.putmem_signal_block(
            whole + rank * nbytes // 4, x, nbytes, words + rank, call, libshmem_device.NVSHMEM_SIGNAL_SET, pid
        )
    else:
        thread = tid(0)
        if thread < world and thread != rank:
            libshmem_device.signal_wait_until(words + thread, libshmem_device.NVSHMEM_CMP_EQ, call)  # waits
        __syncthreads()


group = initialize_distributed()
world, n = torch.distributed.get_world_size(), 256
x, whole = nvshmem_create_tensor((n,), torch.float32), nvshmem_create_tensor((ROWS, world * n), torch.float32)
words = nvshmem_create_tensor((ROWS, world), torch.int64)
words.fill_(0)
x.fill_(1.0)
nvshmem_barrier_all_on_stream()
for call in range(1, 9):
    one_row[(world,)](x, whole[call % ROWS], words[call % ROWS], n * 4, call)
torch.cuda.synchronize()
print("over")
"""


@pytest.fixture
def hazard(tmp_path):
    """A gather whose calls have one row of signals, as a script, and one with two rows; and the line that waits."""
    line = 1 + next(i for i, code in enumerate(HAZARD.splitlines()) if "# waits" in code)
    for rows in (1, 2):
        (tmp_path / f"rows{rows}.py").write_text(HAZARD.replace("ROWS", str(rows)))
    return tmp_path, line


@pytest.mark.slow
def test_one_row_of_signals_for_all_calls_is_reported(hazard):
    folder, line = hazard
    done = run(folder / "rows1.py", "--nproc-per-node", "4", "--check")
    assert done.returncode != 0 and "signal row reused without a phase" in done.stderr
    assert f"rows1.py:{line}" in done.stderr
    done = run(folder / "rows1.py", "--nproc-per-node", "4", "--reorder", "3")
    assert done.returncode != 0 and "DeadlockError" in done.stderr
    assert 'kernel "one_row", which on rank' in done.stderr and f"rows1.py:{line} waits for the word" in done.stderr
    for flags in (("--check",), ("--reorder", "3")):
        assert passed(folder / "rows2.py", "--nproc-per-node", "4", *flags) == ["over"] * 4
