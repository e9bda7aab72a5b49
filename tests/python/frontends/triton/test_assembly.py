"""Inline assembly of kernels: what instructions of PTX give on a GPU, and what is said of those that are not emulated.

recorded_assembly.json was recorded by record_assembly.py with the Triton, PyTorch and GPU that it names.
"""

import json
import subprocess
import sys
from pathlib import Path

import assembly_cases as cases
import numpy as np
import pytest

from torchemu.frontends.triton import _ptx

HERE = Path(__file__).parent
RECORDED = json.loads((HERE / "recorded_assembly.json").read_text())["rows"]


def run(script, *flags):
    """The finished run of a script with the NumPy front end."""
    line = [sys.executable, "-m", "torchemu", "run", "--torch", "numpy", "--nproc-per-node", "1", *flags, str(script)]
    return subprocess.run(line, cwd=HERE, capture_output=True, text=True, timeout=120)


@pytest.fixture(scope="module")
def emulated():
    """The same rows, emulated."""
    done = run(HERE / "record_assembly.py")
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)["rows"]


@pytest.mark.slow
def test_instructions_give_what_a_gpu_gives_bit_by_bit(emulated):
    exact = [asm for asm in RECORDED if asm not in cases.APPROXIMATE]
    assert len(exact) == len(cases.INTEGERS + cases.FLOATS + cases.TO_INTEGERS + cases.PACKED)
    assert {asm: emulated[asm] for asm in exact} == {asm: RECORDED[asm] for asm in exact}


@pytest.mark.parametrize("asm", cases.APPROXIMATE)
def test_approximations_are_rounded_to_the_nearest_here(emulated, asm):
    real, here = (np.array(rows[asm], np.int32).view(np.float32) for rows in (RECORDED, emulated))
    np.testing.assert_allclose(here, real, rtol=3e-6, atol=4e-6)  # PTX promises 2⁻¹¹ for tanh, 2⁻²⁰ for sin and cos


KERNEL = """
import torch, triton, triton.language as tl

@triton.jit
def kernel(o, B: tl.constexpr):
    i = tl.arange(0, B)
    {body}

o = torch.zeros(64, dtype=torch.int32, device="cuda")
kernel[(2,)](o, B=64, num_warps=4)
print(o.tolist())
"""


def program(folder, body):
    """A program whose kernel has such a body."""
    script = folder / "program.py"
    script.write_text(KERNEL.format(body=body))
    return script


def test_scalars_are_the_threads(tmp_path):
    body = """
    lane, n = tl.inline_asm_elementwise("mov.u32 $0, %laneid; mov.u32 $1, %ntid.x;", "=r,=r", [],
        dtype=(tl.int32, tl.int32), is_pure=True, pack=1)
    word = o + lane
    tl.inline_asm_elementwise("red.global.add.s32 [$1], 1; mov.u32 $0, 0;", "=r,l", [word], dtype=tl.int32,
        is_pure=False, pack=1)
    if n == 128: tl.store(o + 63, n)"""
    done = run(program(tmp_path, body))
    assert done.returncode == 0, done.stderr[-3000:]
    assert json.loads(done.stdout) == [8] * 32 + [0] * 31 + [128]  # 4 warps of 2 programs


def test_elements_of_small_blocks_are_those_of_all_threads_that_have_them(tmp_path):
    body = """
    few = tl.arange(0, 4)
    tl.inline_asm_elementwise("atom.relaxed.gpu.global.add.u32 $0, [$1], 1;", "=r,l", [o + few], dtype=tl.int32,
        is_pure=False, pack=1)"""
    done = run(program(tmp_path, body))
    assert done.returncode == 0, done.stderr[-3000:]
    assert json.loads(done.stdout) == [64] * 4 + [0] * 60  # 2 programs of 128 threads, 4 elements


@pytest.mark.slow
@pytest.mark.parametrize(
    ("asm", "said"),
    [
        ("mma.sync.aligned.m16n8k8 $0, $1;", "'mma.sync.aligned.m16n8k8 $0, $1' is not emulated"),
        ("add.s32 $0, $1, %r7;", "the register %r7 is not emulated, or has no value yet"),
        ("bra nowhere;", "'bra nowhere' goes to a label that is not there"),
        ("multimem.red.add.f32 [$1], 1;", "'multimem.red.add.f32 [$1], 1' is not emulated"),
        ("add.s32 $0, $1, $2;", "the register $2 is not emulated"),
        ("ld.global.u32 $0, $1;", "'$1' is no place in memory"),
        ("?!;", "'?!' is no instruction"),
    ],
)
def test_what_is_not_emulated_is_named(tmp_path, asm, said):
    body = f'tl.store(o + i, tl.inline_asm_elementwise("{asm}", "=r,r", [i], dtype=tl.int32, is_pure=True, pack=1))'
    done = run(program(tmp_path, body))
    assert done.returncode != 0 and f"inline assembly: {said}" in done.stderr


@pytest.mark.slow
def test_constraints_have_to_fit(tmp_path):
    body = 'tl.store(o + i, tl.inline_asm_elementwise("mov.u32 $0, 1;", "", [i], dtype=tl.int32, is_pure=True, pack=1))'
    done = run(program(tmp_path, body))
    said = "constraints for 0 results and 0 arguments, and not for 1 results and 1 registers of arguments"
    assert done.returncode != 0 and f"ValueError: inline assembly has {said}" in done.stderr


def test_a_loop_that_nobody_ends_is_a_deadlock(tmp_path):
    body = """
    tl.inline_asm_elementwise('''
        look: ld.global.acquire.sys.b32 $0, [$1];
        { .reg .pred p; setp.ne.u32 p, $0, 1; @p bra look; }''', "=r,l", [o + tl.arange(0, 1)], dtype=tl.int32,
        is_pure=False, pack=1)"""
    done = run(program(tmp_path, body))
    assert "DeadlockError" in done.stderr and "the loop of 'ld.global.acquire.sys.b32 $0, [$1]'" in done.stderr


def test_texts_are_read_whatever_their_form():
    code = _ptx.parse("{ .reg .b32 %r<2>; // two\n a: @!%p0 bra a; ld.global.v2.b32 {%r0, %r1}, [$1+8]; /* x */ ret }")
    assert code.labels == {"a": 0}
    assert [one.name for one in code.instructions] == ["bra", "ld", "ret"]
    assert code.instructions[0].guard == "%p0" and code.instructions[0].negated
    assert code.instructions[1].operands == ("{%r0, %r1}", "[$1+8]")
    assert code.instructions[1].modifiers == ("global", "v2", "b32")
