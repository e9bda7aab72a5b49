"""Whatever a compiled kernel does wrong is a report with its line, its name and its rank, and the process goes on."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from compiled_cases import callable_of, needs_compiler, source
from conftest import OpenWorld
from launch import launch, written
from simpler_cases import INOUT, OUT, called, domain, run, tensor, window, working

import torchemu as torch
from torchemu.errors import DeadlockError

pytestmark = needs_compiler

BEFORE = """
int without_end(int n) { volatile int a[64]; a[n % 64] = n; return n < 0 ? 0 : without_end(n / 2 + 7) + a[n % 64]; }
int without_result(int n) { if (n > 100) return 1; }
"""

WRONG = {
    "null": ("*(volatile int *)nullptr = n;", r"writes 4 bytes at 0x0, which is in no window"),
    "read": ("p[0] = *(volatile float *)(uint64_t)(64 * n);", r"reads 4 bytes at 0xc0, which is in no window"),
    "wild": ("((float *)0x123456789000ull)[n] = 1.0f;", r"writes 4 bytes at 0x12345678900c, which"),
    "copy": ("std::memset((void *)16, 0, 64);", r"writes 64 bytes at 0x10, which"),
    "struct": ("*(Tensor *)4096 = Tensor();", r"writes \d+ bytes at 0x10\d\d, which"),
    "beyond": ("*(int64_t *)((char *)p + 252) = 1;", r"8 bytes from .* reach beyond"),
    "divide": ("p[0] = 5 / (n - 3);", "an integer is divided by 0"),
    "remain": ("p[0] = 5 % (n - 3);", "an integer is divided by 0"),
    "index": (
        "int a[4]; for (int i = 0; i < n + 9; ++i) a[i] = i; p[0] = a[n];",
        "index 4 is out of the array's bounds",
    ),
    "throw": ('throw std::runtime_error("bad luck");', "the kernel threw an exception: bad luck"),
    "throw a number": ("throw n;", "the kernel threw an exception: no std::exception"),
    "abort": ("abort();", r"the kernel called abort\(\)"),
    "exit": ("exit(n);", r"the kernel called exit\(\)"),
    "trap": ("__builtin_trap();", "the kernel was ended by SIGILL"),
    "unreachable": ("if (n == 3) __builtin_unreachable();", "__builtin_unreachable"),
    "no place": ("Tile<TileType::Vec, float, 1, 64> t; TEXPANDS(t, 1.0f);", "TEXPANDS: the tile has no place"),
    "far tile": ("Tile<TileType::Vec, float, 1, 64> t; TASSIGN(t, 1 << 20);", "TASSIGN: a Vec tile of 256 bytes at"),
    "matrix": ("TileAcc<float, 16, 16> t; TASSIGN(t, 0);", "a tile of type Acc in a kernel for aiv"),
    "sizes": (
        "Tile<TileType::Vec, float, 1, 64> t; TASSIGN(t, 0); Line<float, 32> g(p); TLOAD(t, g);",
        "TLOAD: a tile with 1x64 valid elements of float32, and in memory 1x32",
    ),
    "types": (
        "Tile<TileType::Vec, int32_t, 1, 64> t; TASSIGN(t, 0); Line<float, 64> g(p); TLOAD(t, g);",
        "TLOAD: .* of int32, and in memory 1x64 of float32",
    ),
    "long load": (
        "Tile<TileType::Vec, float, 1, 128> t; TASSIGN(t, 0); Line<float, 128> g(p); TLOAD(t, g);",
        "512 bytes from .* reach beyond",
    ),
    "wild load": (
        "Tile<TileType::Vec, float, 1, 64> t; TASSIGN(t, 0); Line<float, 64> g((float *)64); TLOAD(t, g);",
        "TLOAD: the address 0x40 is in no window",
    ),
    "flag": ("set_flag(PIPE_MTE2, PIPE_V, 8);", "flag 8 from the load pipe"),
    "event": ("comm::AsyncEvent{5}.Wait({});", "AsyncEvent::Wait: an AsyncEvent with handle 5"),
}


def ran(file: Path, case: int = 0) -> np.ndarray:
    """Runs a kernel on one chip, with a tensor of 64 zeros, the number 3 and a case; returns the tensor."""
    with working(1) as worker:
        cid = worker.register(callable_of(file))
        t = tensor([0] * 64)
        run(worker, lambda orch: orch.submit_next_level(cid, called((t, OUT), 3, case), worker=0))
        return t.numpy()


START = "float *p = pointer<float>(args[0]); int n = static_cast<int>(args[1]); "
OTHERS = {
    "deep": ("p[0] = without_end(n);", "more than 2 MiB of stack"),
    "no return": ("p[0] = without_result(n);", "ends without return"),
    "loop": ('while (n) asm volatile("");', "does not come to an end"),
    "terminate": ("[]() noexcept { throw 1; }();", "SIGABRT"),
}
"""Crashes that are reported with another line, or none."""


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A kernel that does each wrong thing as one case, which has a line of its own; and case 99, which is right."""
    bodies = [body for body, _ in (*WRONG.values(), *OTHERS.values())]
    cases = [f"case {i}: {{ {body} break; }}" for i, body in enumerate(bodies)]
    text = "\n".join([START + "switch (args[2]) {", *cases, "case 99: p[1] = p[0] + n;", "}"])
    return source(tmp_path_factory.mktemp("wrong"), text, BEFORE)


@pytest.mark.parametrize("what", WRONG)
def test_wrong(what: str, kernel: Path, open_world: OpenWorld) -> None:
    open_world()
    case = [*WRONG].index(what)
    with pytest.raises(
        (RuntimeError, ValueError), match=rf"own_kernel\.cpp:{101 + case}(: |.*){WRONG[what][1]}"
    ) as caught:
        ran(kernel, case)
    assert caught.value.__notes__ == ['in kernel "own_kernel #1" on rank 0']
    assert ran(kernel, 99).tolist() == [0, 3] + 62 * [0]


@pytest.mark.slow
@pytest.mark.parametrize("what", OTHERS)
def test_wrong_elsewhere(what: str, kernel: Path, open_world: OpenWorld) -> None:
    open_world()
    with pytest.raises(RuntimeError, match=OTHERS[what][1]):
        ran(kernel, len(WRONG) + [*OTHERS].index(what))


@pytest.mark.slow
def test_crash_among_others(tmp_path: Path, open_world: OpenWorld) -> None:
    """One chip's kernel crashes while others wait inside theirs."""
    open_world()
    body = """
        int32_t *word = pointer<int32_t>(args[0]);
        CommContext *ctx = reinterpret_cast<CommContext *>(args[1]);
        if (ctx->rankId == 2) *(volatile int *)nullptr = 1;
        comm::Signal signal(word);
        comm::TWAIT(signal, 1, comm::WaitCmp::GE);
    """
    with working(4) as worker:
        cid = worker.register(callable_of(source(tmp_path, body)))

        def build(orch) -> None:
            for i, seen in enumerate(domain(orch, range(4))):
                orch.submit_next_level(cid, called((window(seen), INOUT), seen.device_ctx), worker=i)

        with pytest.raises(RuntimeError, match=r"own_kernel\.cpp:103: the kernel writes 4 bytes at 0x0") as caught:
            run(worker, build)
    assert caught.value.__notes__ == ['in kernel "own_kernel #3" on rank 2']


@pytest.mark.slow
@pytest.mark.parametrize(
    "look", ["while (*word == 0) dcci(word, SINGLE_CACHE_LINE);", "while (!comm::TTEST(signal, 1, comm::WaitCmp::GE));"]
)
def test_polling(look: str, tmp_path: Path, open_world: OpenWorld) -> None:
    """A kernel may look again and again until another chip's signal is there; when none comes, that is a deadlock."""
    open_world()
    body = f"""
        volatile int32_t *word = pointer<int32_t>(args[0]);
        CommContext *ctx = reinterpret_cast<CommContext *>(args[1]);
        comm::Signal signal(const_cast<int32_t *>(word));
        if (ctx->rankId == 0) {{
            comm::Signal there(reinterpret_cast<int32_t *>(ctx->windowsIn[1]));
            if (args[2]) comm::TNOTIFY(there, 1, comm::NotifyOp::Set);
        }} else {{
            {look}
        }}
    """
    file = source(tmp_path, body)
    for signals in (1, 0):
        with working(2) as worker:
            cid = worker.register(callable_of(file))

            def build(orch, cid: int = cid, signals: int = signals) -> None:
                for i, seen in enumerate(domain(orch, range(2))):
                    orch.submit_next_level(cid, called((window(seen), INOUT), seen.device_ctx, signals), worker=i)

            if signals:
                run(worker, build)
                continue
            with pytest.raises(DeadlockError, match=r'"own_kernel #2" on rank 1 at own_kernel\.cpp:108'):
                run(worker, build)


def test_stand_in_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a compiler torchemu's own kernel runs, and says so."""
    monkeypatch.setenv("PATH", str(tmp_path))
    (tmp_path / "allreduce_kernel.cpp").write_text("nothing that compiles")
    (tmp_path / "mine_kernel.cpp").write_text("")
    program = """
        import sys
        from simpler_setup.kernel_compiler import KernelCompiler
        KernelCompiler("a2a3sim").compile_incore(sys.argv[1])
        print("done")
    """
    file = written(tmp_path, program)
    outcome = launch("--nproc-per-node", "1", file, tmp_path / "allreduce_kernel.cpp")
    assert (outcome.status, outcome.out) == (0, "done\n")
    assert outcome.err == (
        "torchemu: allreduce_kernel.cpp was not compiled (no g++: the Debian package g++ has it); "
        "torchemu's own onephase runs instead\n"
    )
    outcome = launch("--nproc-per-node", "1", file, tmp_path / "mine_kernel.cpp")
    assert outcome.status == 1
    assert "mine_kernel.cpp was not compiled (no g++: the Debian package g++ has it)" in outcome.err


@pytest.mark.slow
def test_kept_builds(tmp_path: Path, open_world: OpenWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """A build is used again until the source, or a header of it, changes."""
    open_world()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "number.h").write_text("constexpr float number = 5;\n")
    file = source(tmp_path, "pointer<float>(args[0])[0] = number;", '#include "number.h"')

    def built() -> int:
        return len(list((tmp_path / "cache" / "torchemu" / "kernels").glob("*.so")))

    for header, want, builds in (("5", 5, 1), ("5", 5, 1), ("6", 6, 2), ("5", 5, 2)):
        (tmp_path / "number.h").write_text(f"constexpr float number = {header};\n")
        assert ran(file)[0] == want
        assert built() == builds
    assert torch.zeros(1).tolist() == [0]
