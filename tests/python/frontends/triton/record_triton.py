"""Records what Triton on a GPU makes of the rows of language_cases: run there, with a folder for the result.

Needs PyTorch and Triton, and nothing of torchemu.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import io
import json
import multiprocessing
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Any

import language_cases as cases
import torch
import triton

_TORCH = {"int1": "bool", "float8e4nv": "float8_e4m3fn", "float8e5": "float8_e5m2"}
_SIGNED = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def kind_of(name: str) -> torch.dtype:
    """Returns PyTorch's dtype for the language's name."""
    return getattr(torch, _TORCH.get(name, name))


def values(name: str) -> torch.Tensor:
    """Returns the 16 values of a type."""
    size = cases.SIZES[name]
    if name == "int1":
        return torch.tensor([i % 3 == 0 for i in range(16)])
    if "int" in name:
        bits = 8 * size
        turned = [(v + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1) for v in cases.WHOLE]
        return torch.tensor(turned, dtype=_SIGNED[size]).view(kind_of(name))
    return (
        torch.tensor(cases.FLOATS, dtype=torch.float64)
        .to(torch.float32 if size == 1 else kind_of(name))
        .to(kind_of(name))
    )


def module(expression: str) -> ModuleType:
    """Returns the module with an expression's kernels."""
    name = "m" + hashlib.md5(expression.encode()).hexdigest()[:12]
    path = Path(tempfile.mkdtemp()) / f"{name}.py"
    path.write_text(cases.SOURCE.format(expression=expression))
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def record(row: cases.Row) -> dict[str, Any]:
    """Returns a row with the type and the bytes of its result, or the error."""
    expression, a, b = row
    found: dict[str, Any] = {"expression": expression, "a": a, "b": b}
    try:
        kernels = module(expression)
        x, y = values(a).cuda(), values(b).roll(cases.SHIFT).cuda()
        z, printed = torch.zeros(16, dtype=torch.int32, device="cuda"), io.StringIO()
        with contextlib.redirect_stdout(printed):
            kernels.typed[(1,)](x, y, z, z)
        text = next(line for line in reversed(printed.getvalue().splitlines()) if "TYPE" in line).split()[-1]
        text = text.replace("triton.language.", "")
        kind = cases.SHORT.get(text, text)
        o = torch.zeros(16, dtype=kind_of(kind), device="cuda")
        kernels.result[(1,)](x, y, z, o)
        torch.cuda.synchronize()
        found.update(type=kind, bytes=o.view(torch.uint8).cpu().numpy().tobytes().hex())
    except Exception as error:
        found["error"] = f"{type(error).__name__}: {str(error).strip().splitlines()[-1][:120]}"
    return found


def main(folder: str) -> None:
    """Records all rows."""
    with ProcessPoolExecutor(14, mp_context=multiprocessing.get_context("spawn")) as pool:
        found = list(pool.map(record, cases.rows(), chunksize=8))
    about = {"triton": triton.__version__, "torch": torch.__version__, "gpu": torch.cuda.get_device_name()}
    (Path(folder) / "recorded_triton.json").write_text(json.dumps({**about, "rows": found}))
    print(about, len(found), "rows,", sum("error" in row for row in found), "with errors")


if __name__ == "__main__":
    main(sys.argv[1])
