"""Records what a GPU makes of instructions of PTX: run by hand where there is one, with Triton and PyTorch.

python record_assembly.py > recorded_assembly.json
"""

import json

import assembly_cases as cases
import torch
import triton
import triton.language as tl


@triton.jit
def _two(o, a, b, N: tl.constexpr, ASM: tl.constexpr, HOW: tl.constexpr):
    i = tl.arange(0, N)
    x, y = tl.load(a + i), tl.load(b + i)
    tl.store(o + i, tl.inline_asm_elementwise(ASM, HOW, [x, y], dtype=o.dtype.element_ty, is_pure=True, pack=1))


@triton.jit
def _packed(o, a, N: tl.constexpr, ASM: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(o + i, tl.inline_asm_elementwise(ASM, "=r,r", [tl.load(a + i)], dtype=tl.int8, is_pure=True, pack=4))


def two(asm, arguments, how, kind):
    """The result of instructions with two arguments, as integers of the same bits."""
    a, b = (torch.from_numpy(x).cuda() for x in arguments)
    out = torch.empty(cases.N, dtype=kind, device="cuda")
    _two[(1,)](out, a, b, N=cases.N, ASM=asm, HOW=how)
    return out.view(torch.int32).tolist()


def main():
    """Prints the results by the instructions' texts."""
    rows = {asm: two(asm, cases.integers(), "=r,r,r", torch.int32) for asm in cases.INTEGERS}
    for asm in cases.FLOATS + cases.APPROXIMATE:
        rows[asm] = two(asm, cases.floats(), "=f,f,f", torch.float32)
    for asm in cases.TO_INTEGERS:
        rows[asm] = two(asm, cases.floats(), "=r,f,f", torch.int32)
    for asm in cases.PACKED:
        small = torch.from_numpy(cases.small()).cuda()
        out = torch.empty_like(small)
        _packed[(1,)](out, small, N=cases.N, ASM=asm)
        rows[f"packed {asm}"] = out.tolist()
    about = f"Triton {triton.__version__}, PyTorch {torch.__version__}, {torch.cuda.get_device_name()}"
    print(json.dumps({"about": about, "rows": rows}))


if __name__ == "__main__":
    main()
