"""Instructions of compiled kernels, element by element against NumPy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from compiled_cases import callable_of, needs_compiler, orchestrated, source
from conftest import OpenWorld
from simpler_cases import IN, INOUT, OUT, called, domain, run, tensor, window, working

import torchemu as torch
from torchemu.errors import RaceError
from torchemu.runtime import Strictness

pytestmark = needs_compiler


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the same kernel is compiled once."""
    return tmp_path_factory.mktemp("kernels")


BARRIER = "pipe_barrier(PIPE_ALL);"


def computed(
    folder: Path, body: str, out: torch.Tensor, *given: np.ndarray, core: str = "aiv", case: int = 0
) -> np.ndarray:
    """Runs a kernel on one chip with tensors, the last of which is its output, and a number."""
    tensors = [torch.from_numpy(np.ascontiguousarray(x)) for x in given]
    with working(1) as worker:
        cid = worker.register(callable_of(source(folder, body), core))
        args = called(*[(t, IN) for t in tensors], (out, OUT), case)
        run(worker, lambda orch: orch.submit_next_level(cid, args, worker=0))
    return out.numpy()


def strictly(open_world: OpenWorld) -> None:
    open_world().strictness = Strictness(check=True)


def same(got: np.ndarray, want: np.ndarray) -> None:
    np.testing.assert_array_equal(got.view(np.uint8), np.ascontiguousarray(want).view(np.uint8))


R, C = 5, 24
TILES = f"""
    using T = Tile<TileType::Vec, float, {R}, {C}>;
    using G = GlobalTensor<float, Shape<1, 1, 1, {R}, {C}>, Stride<{R * C}, {R * C}, {R * C}, {C}, 1>>;
    T a, b, c;
    TASSIGN(a, 0x0);
    TASSIGN(b, 0x1000);
    TASSIGN(c, 0x2000);
    G ga(pointer<float>(args[0])), gb(pointer<float>(args[1])), gc(pointer<float>(args[2]));
    TLOAD(a, ga);
    TLOAD(b, gb);
    {BARRIER}
"""
ELEMENTWISE = {
    "TADD(c, a, b)": lambda a, b: a + b,
    "TSUB(c, a, b)": lambda a, b: a - b,
    "TMUL(c, a, b)": lambda a, b: a * b,
    "TDIV(c, a, b)": lambda a, b: a / b,
    "TMAX(c, a, b)": np.maximum,
    "TMIN(c, a, b)": np.minimum,
    "TADDS(c, a, 0.1f)": lambda a, _: a + np.float32(0.1),
    "TSUBS(c, a, 0.1f)": lambda a, _: a - np.float32(0.1),
    "TMULS(c, a, 0.1f)": lambda a, _: a * np.float32(0.1),
    "TDIVS(c, a, 0.1f)": lambda a, _: a / np.float32(0.1),
    "TMAXS(c, a, 0.1f)": lambda a, _: np.maximum(a, np.float32(0.1)),
    "TMOV(c, a)": lambda a, _: a,
    "TNEG(c, a)": lambda a, _: -a,
    "TABS(c, a)": lambda a, _: np.abs(a),
    "TRELU(c, a)": lambda a, _: np.maximum(a, np.float32(0)),
    "TRECIP(c, a)": lambda a, _: np.float32(1) / a,
    "TEXPANDS(c, 7)": lambda a, _: np.full_like(a, 7),
    "TROWEXPAND(c, a)": lambda a, _: np.repeat(a[:, :1], C, 1),
    "TCOLEXPAND(c, a)": lambda a, _: np.repeat(a[:1], R, 0),
    "TROWEXPANDMUL(c, a, b)": lambda a, b: a * b[:, :1],
    "TROWEXPANDSUB(c, a, b)": lambda a, b: a - b[:, :1],
}


@pytest.mark.parametrize("call", ELEMENTWISE)
def test_elementwise(call: str, folder: Path, open_world: OpenWorld) -> None:
    strictly(open_world)
    random = np.random.default_rng(7)
    a, b = random.standard_normal((2, R, C)).astype(np.float32)
    cases = " ".join(f"case {i}: {text}; break;" for i, text in enumerate(ELEMENTWISE))
    body = f"{TILES} switch (args[3]) {{ {cases} }} {BARRIER} TSTORE(gc, c); {BARRIER}"
    got = computed(folder, body, torch.zeros(R, C), a, b, case=[*ELEMENTWISE].index(call))
    same(got, ELEMENTWISE[call](a, b))


KINDS = {"SUM": np.add, "MAX": np.maximum, "MIN": np.minimum}


@pytest.mark.slow
@pytest.mark.parametrize(("name", "axis"), [("ROW", 1), ("COL", 0)])
@pytest.mark.parametrize("kind", KINDS)
def test_reductions(kind: str, name: str, axis: int, folder: Path, open_world: OpenWorld) -> None:
    """Sums are made from the first element on."""
    strictly(open_world)
    a = (np.random.default_rng(3).standard_normal((R, C)) * np.exp2(np.arange(C))).astype(np.float32)
    count = R if axis else C
    result = (
        f"using S = Tile<TileType::Vec, float, {count}, 1, BLayout::ColMajor>;"
        f"GlobalTensor<float, Shape<1, 1, 1, {count}, 1>, Stride<1, 1, 1, 1, 1>, Layout::DN> "
        "g(pointer<float>(args[2]));"
        if axis
        else f"using S = Tile<TileType::Vec, float, 1, {count}>; Line<float, {count}> g(pointer<float>(args[2]));"
    )
    cases = " ".join(f"case {i}: T{name}{k}(s, a, c); break;" for i, k in enumerate(KINDS))
    body = f"{TILES} {result} S s; TASSIGN(s, 0x4000); switch (args[3]) {{ {cases} }} {BARRIER} TSTORE(g, s); {BARRIER}"
    want = np.moveaxis(a, axis, 0)[0].copy()
    for row in np.moveaxis(a, axis, 0)[1:]:
        want = KINDS[kind](want, row)
    same(computed(folder, body, torch.zeros(count), a, a, case=[*KINDS].index(kind)), want)


MODES = ["RINT", "ROUND", "FLOOR", "CEIL", "TRUNC"]
CONVERT = " ".join(f"case {i}: TCVT(b, a, RoundMode::CAST_{mode}); break;" for i, mode in enumerate(MODES))
HALVES = [
    1.00390625,
    1.01171875,
    -1.00390625,
    1.5,
    -2.5,
    3e38,
    -0.0,
    1e-40,
    float("inf"),
    1.001,
    -1.001,
    2.5,
    0.5,
    -7.5,
    65504,
    9,
]


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_conversion_to_integers(mode: str, folder: Path, open_world: OpenWorld) -> None:
    strictly(open_world)
    x = np.array([0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 0.49, -0.49, 7, 1e9, -1e9, 3e9, -3e9, 0.0, -0.0, 123.7], np.float32)
    body = f"""
        Tile<TileType::Vec, float, 1, 16> a; Tile<TileType::Vec, int32_t, 1, 16> b;
        TASSIGN(a, 0); TASSIGN(b, 0x100);
        Line<float, 16> ga(pointer<float>(args[0])); Line<int32_t, 16> gb(pointer<int32_t>(args[1]));
        TLOAD(a, ga); {BARRIER} switch (args[2]) {{ {CONVERT} }} {BARRIER} TSTORE(gb, b); {BARRIER}
    """
    rounded = {
        "RINT": np.rint,
        "ROUND": lambda v: np.sign(v) * np.floor(np.abs(v) + 0.5),
        "FLOOR": np.floor,
        "CEIL": np.ceil,
        "TRUNC": np.trunc,
    }[mode](x.astype(np.float64))
    want = np.array([int(min(max(v, -(2**31)), 2**31 - 1)) for v in rounded], np.int32)
    same(computed(folder, body, torch.zeros(16, dtype=torch.int32), x, case=MODES.index(mode)), want)


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", ["bfloat16_t", "half"])
def test_conversion_to_short_floats(kind: str, mode: str, folder: Path, open_world: OpenWorld) -> None:
    """Against all numbers of the type: the nearest, or the next one in a direction."""
    strictly(open_world)
    short = np.dtype(ml_dtypes.bfloat16 if kind == "bfloat16_t" else np.float16)
    x = np.array(HALVES, np.float32)
    body = f"""
        Tile<TileType::Vec, float, 1, 16> a; Tile<TileType::Vec, {kind}, 1, 16> b;
        TASSIGN(a, 0); TASSIGN(b, 0x100);
        Line<float, 16> ga(pointer<float>(args[0])); Line<{kind}, 16> gb(pointer<{kind}>(args[1]));
        TLOAD(a, ga); {BARRIER} switch (args[2]) {{ {CONVERT} }} {BARRIER} TSTORE(gb, b); {BARRIER}
    """
    out = torch.zeros(16, dtype=torch.bfloat16 if kind == "bfloat16_t" else torch.float16)
    given = torch.from_numpy(x)
    with working(1) as worker:
        cid = worker.register(callable_of(source(folder, body)))
        args = called((given, IN), (out, OUT), MODES.index(mode))
        run(worker, lambda orch: orch.submit_next_level(cid, args, worker=0))
    got = out.float().numpy().astype(np.float64)
    with np.errstate(invalid="ignore"):
        every = np.arange(1 << 16, dtype=np.uint16).view(short).astype(np.float64)
    finite = np.unique(every[np.isfinite(every)])
    for value, result in zip(x.astype(np.float64), got, strict=True):
        below, above = finite[finite <= value], finite[finite >= value]
        low = below[-1] if below.size else -np.inf
        high = above[0] if above.size else np.inf
        want = {"FLOOR": low, "CEIL": high, "TRUNC": low if value >= 0 else high}.get(mode)
        if want is not None:
            assert result == want or abs(value) > finite[-1], (value, result)
        elif np.isfinite(low) and np.isfinite(high):
            assert abs(result - value) == min(value - low, high - value), (value, result)
            if low != high and value - low == high - value:
                away = high if value > 0 else low
                even = low if np.float64(low).astype(short).view(np.uint16) % 2 == 0 else high
                assert result == (away if mode == "ROUND" else even), value


@pytest.mark.slow
def test_strided_tensors(tmp_path: Path, open_world: OpenWorld) -> None:
    """Five dimensions with steps, known and not, into rows of a tile with valid rows and columns, and back."""
    strictly(open_world)
    x = np.arange(2 * 3 * 2 * 4 * 10, dtype=np.float32).reshape(2, 3, 2, 4, 10)
    body = f"""
        using G = GlobalTensor<float, Shape<2, DYNAMIC, 1, 2, DYNAMIC>, Stride<240, 80, DYNAMIC, 10, 1>>;
        using T = Tile<TileType::Vec, float, 16, 8, BLayout::RowMajor, DYNAMIC, DYNAMIC>;
        T t(12, 5);
        TASSIGN(t, 0x40);
        Shape<2, DYNAMIC, 1, 2, DYNAMIC> sizes(3, 5);
        G from(pointer<float>(args[0]) + 12, sizes, Stride<240, 80, DYNAMIC, 10, 1>(40));
        GlobalTensor<float, Shape<1, 1, 1, 12, 5>, Stride<1, 1, 1, 5, 1>> to(pointer<float>(args[1]));
        TLOAD(t, from);
        {BARRIER}
        TSTORE(to, t);
        {BARRIER}
    """
    want = x.ravel()[12:]
    at = [240 * i + 80 * j + 10 * r + c for i in range(2) for j in range(3) for r in range(2) for c in range(5)]
    same(computed(tmp_path, body, torch.zeros(12, 5), x), want[at].reshape(12, 5))


@pytest.mark.slow
def test_matrix_product(tmp_path: Path, open_world: OpenWorld) -> None:
    """Through blocks, left and right, as on the matrix core; then accumulated. bfloat16 is summed in float32."""
    strictly(open_world)
    random = np.random.default_rng(5)
    a, b = random.standard_normal((16, 32)).astype(np.float32), random.standard_normal((32, 16)).astype(np.float32)
    body = """
        using GA = GlobalTensor<float, Shape<1, 1, 1, 16, 32>, Stride<512, 512, 512, 32, 1>>;
        using GB = GlobalTensor<float, Shape<1, 1, 1, 32, 16>, Stride<512, 512, 512, 16, 1>>;
        using GC = GlobalTensor<float, Shape<1, 1, 1, 16, 16>, Stride<256, 256, 256, 16, 1>>;
        Tile<TileType::Mat, float, 16, 32, BLayout::ColMajor, 16, 32, SLayout::RowMajor, 512> ma;
        Tile<TileType::Mat, float, 32, 16, BLayout::ColMajor, 32, 16, SLayout::RowMajor, 512> mb;
        TileLeft<float, 16, 32> left; TileRight<float, 32, 16> right; TileAcc<float, 16, 16> sum;
        TASSIGN(ma, 0); TASSIGN(mb, 0x20000); TASSIGN(left, 0); TASSIGN(right, 0); TASSIGN(sum, 0);
        GA ga(pointer<float>(args[0])); GB gb(pointer<float>(args[1])); GC gc(pointer<float>(args[2]));
        TLOAD(ma, ga); TLOAD(mb, gb);
        set_flag(PIPE_MTE2, PIPE_MTE1, EVENT_ID0); wait_flag(PIPE_MTE2, PIPE_MTE1, EVENT_ID0);
        TMOV(left, ma); TMOV(right, mb);
        set_flag(PIPE_MTE1, PIPE_M, EVENT_ID3); wait_flag(PIPE_MTE1, PIPE_M, EVENT_ID3);
        TMATMUL(sum, left, right);
        TMATMUL_ACC(sum, sum, left, right);
        set_flag(PIPE_M, PIPE_FIX, EVENT_ID7); wait_flag(PIPE_M, PIPE_FIX, EVENT_ID7);
        TSTORE(gc, sum);
        set_flag(PIPE_FIX, PIPE_S, EVENT_ID7); wait_flag(PIPE_FIX, PIPE_S, EVENT_ID7);
    """
    want = np.zeros((16, 16), np.float32)
    for _ in range(2):
        for k in range(32):
            want = want + a[:, k : k + 1] * b[k : k + 1]
    same(computed(tmp_path, body, torch.zeros(16, 16), a, b, core="aic"), want)


def test_scalars(tmp_path: Path, open_world: OpenWorld) -> None:
    """The program's own loads and stores, elements of tiles, and copies of memory."""
    strictly(open_world)
    body = f"""
        float *x = pointer<float>(args[0]), *y = pointer<float>(args[1]);
        for (int i = 0; i < 8; ++i) y[i] = x[7 - i] * 2;
        std::memcpy(y + 8, x, 16);
        Tile<TileType::Vec, float, 1, 8> t;
        TASSIGN(t, 0x100);
        TEXPANDS(t, 5.0f);
        {BARRIER}
        t.SetValue(3, 9.0f);
        y[12] = t.GetValue(2);
        y[13] = t.GetValue(3);
        y[14] = static_cast<float>(reinterpret_cast<Tensor *>(args[0])->shapes[0]);
        y[15] = static_cast<float>(get_block_num());
    """
    x = np.arange(8, dtype=np.float32)
    want = np.concatenate([x[::-1] * 2, x[:4], [5, 9, 8, 1]]).astype(np.float32)
    same(computed(tmp_path, body, torch.zeros(16), x), want)


def test_scalar_race(tmp_path: Path, open_world: OpenWorld) -> None:
    """A load that does not wait for the pipe that stores is found."""
    strictly(open_world)
    body = """
        float *y = pointer<float>(args[1]);
        Tile<TileType::Vec, float, 1, 8> t;
        TASSIGN(t, 0);
        TEXPANDS(t, 5.0f);
        set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
        wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
        Line<float, 8> g(y);
        TSTORE(g, t);
        pointer<float>(args[0])[0] = y[1];
    """
    with pytest.raises(
        RaceError,
        match=r"(?s)store by .*:108, .*scalar load by .*:109, |scalar load by .*:109, .*store by .*:108, ",
    ):
        computed(tmp_path, body, torch.zeros(8), np.zeros(8, np.float32))


@pytest.mark.slow
def test_transfers(tmp_path: Path, open_world: OpenWorld) -> None:
    """TPUT with and without adding, TGET, asynchronous ones, several tiles long, and TTEST, between two chips."""
    strictly(open_world)
    body = f"""
        float *x = pointer<float>(args[0]), *y = pointer<float>(args[1]), *w = pointer<float>(args[2]);
        CommContext *ctx = reinterpret_cast<CommContext *>(args[3]);
        int me = ctx->rankId, other = 1 - me;
        float *theirs = reinterpret_cast<float *>(ctx->windowsIn[other]);
        int32_t *words = reinterpret_cast<int32_t *>(w + 512);
        Tile<TileType::Vec, float, 1, 16> small;
        TASSIGN(small, 0);
        Line<float, 40> own(x), there(theirs), here(w);
        comm::TPUT(there, own, small);
        comm::TPUT<AtomicType::AtomicAdd>(there, own, small);
        comm::TPUT(there, own, small, AtomicType::AtomicAdd);
        {BARRIER}
        dsb(DSB_DDR);
        comm::Signal told(reinterpret_cast<int32_t *>(ctx->windowsIn[other]) + 512 + me), heard(words + other);
        comm::TNOTIFY(told, 5, comm::NotifyOp::Set);
        while (!comm::TTEST(heard, 5, comm::WaitCmp::EQ));
        Line<float, 40> y0(y), y1(y + 40), y2(y + 80), mid(w + 64);
        comm::TGET(y0, here, small);
        comm::AsyncSession session;
        comm::BuildAsyncSession(small, nullptr, session);
        comm::TGET_ASYNC(y1, there, session).Wait(session);
        {BARRIER}
        comm::AsyncEvent event = comm::TPUT_ASYNC(mid, own, session);
        event.Wait(session);
        comm::TGET(y2, mid, small);
        {BARRIER}
    """
    x = [tensor(np.arange(40) + 100 * i) for i in range(2)]
    y = [torch.zeros(120) for _ in range(2)]
    with working(2) as worker:
        cid = worker.register(callable_of(source(tmp_path, body)))

        def build(orch: Any) -> None:
            for i, seen in enumerate(domain(orch, range(2))):
                args = called((x[i], IN), (y[i], OUT), (window(seen), INOUT), seen.device_ctx)
                orch.submit_next_level(cid, args, worker=i)

        run(worker, build)
    for i in range(2):
        same(y[i].numpy(), np.concatenate([3 * x[1 - i].numpy(), 3 * x[i].numpy(), x[i].numpy()]))


ORCHESTRATION = """
#include "pto_orchestration_api.h"
extern "C" {
PTO2OrchestrationConfig entry_config(const ChipStorageTaskArgs &) { return {.expected_arg_count = 3}; }
void entry(const ChipStorageTaskArgs &args) {
    const Tensor &x = args.tensor(0).ref();
    Tensor y = from_tensor_arg(args.tensor(1));
    uint32_t sizes[] = {64};
    TensorCreateInfo between(sizes, 1);
    L0TaskArgs first;
    first.add_input(x);
    first.add_output(between);
    first.add_scalar(args.scalar(0));
    TaskOutputTensors made = rt_submit_aiv_task(0, first);
    uint32_t half[] = {32}, second[] = {32};
    for (int i = 0; i < 2; ++i) {
        uint32_t from[] = {i == 0 ? 0u : 32u};
        Arg last;
        last.add_input(made.get_ref(0).view(half, from));
        last.add_output(y.view(half, from));
        last.add_scalar(2);
        pto2_rt_submit_aiv_task(1, last);
    }
}
}
"""
LATER = {
    "pto_orchestration_api.h": "orchestration_api.h",
    "PTO2OrchestrationConfig": "OrchestrationConfig",
    "ChipStorageTaskArgs": "ChipTaskArgs",
    "const Tensor &x": "SIMPLER_SCOPE_GUARD();\n    const simpler::tmr::Tensor &x",
    "    Tensor y = from_tensor_arg(args.tensor(1))": "    simpler::hbg::Tensor y = args.tensor(1).ref()",
    "Arg last": "CoreTaskArgs last",
    "pto2_rt_": "rt_",
}
"""Names of later versions."""
EACH = "float *x = pointer<float>(args[0]), *y = pointer<float>(args[1]); "
ADDS = (
    "static_assert(int(CollectiveReduceOp::kProd) == 3); "
    + EACH
    + "for (int i = 0; i < 64; ++i) y[i] = x[i] + args[2];"
)
TIMES = EACH + "for (int i = 0; i < 32; ++i) y[i] = x[i] * args[2];"


@pytest.mark.slow
@pytest.mark.parametrize("names", [{}, LATER], ids=["names", "later names"])
def test_orchestration_of_several_kernels(names: dict[str, str], tmp_path: Path, open_world: OpenWorld) -> None:
    """Tensors that the chip makes room for, parts of tensors, and tasks that depend on each other."""
    strictly(open_world)
    text = ORCHESTRATION
    for name, later in names.items():
        assert name in text
        text = text.replace(name, later)
    (tmp_path / "orch.cpp").write_text(text)
    kernels = [
        source(tmp_path, ADDS, '#include "collectives_reduce_op.hpp"', name="adds"),
        source(tmp_path, TIMES, name="times"),
    ]
    x, y = tensor(np.arange(64)), [torch.zeros(64) for _ in range(2)]
    with working(2) as worker:
        cid = worker.register(orchestrated(tmp_path / "orch.cpp", kernels))

        def build(orch: Any) -> None:
            for i in range(2):
                orch.submit_next_level(cid, called((x, IN), (y[i], OUT), 10 + i), worker=i)

        run(worker, build)
    for i in range(2):
        same(y[i].numpy(), ((np.arange(64) + 10 + i) * 2).astype(np.float32))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        (
            "rt_submit_aiv_task(0, first)",
            "rt_submit_aiv_task(7, first)",
            r"orch\.cpp:14: submit: no kernel has the number 7",
        ),
        ("args.tensor(0)", "args.tensor(5)", r"argument tensor\(5\) does not exist: the task has 2 tensors"),
        ("args.scalar(0)", "args.scalar(1)", r"argument scalar\(1\) does not exist: the task has 1 scalars"),
        ("first.add_input(x);", "first.add_scalar(1); first.add_input(x);", "a tensor after a scalar"),
        ("uint32_t sizes", "*(volatile int *)8 = 1; uint32_t sizes", "the kernel was ended by SIGSEGV"),
        ("void entry(", "void other(", r'has no function extern "C" void entry\('),
    ],
)
def test_wrong_orchestrations(before: str, after: str, said: str, tmp_path: Path, open_world: OpenWorld) -> None:
    open_world()
    (tmp_path / "orch.cpp").write_text(ORCHESTRATION.replace(before, after))
    kernels = [
        source(tmp_path, ADDS, '#include "collectives_reduce_op.hpp"', name="adds"),
        source(tmp_path, TIMES, name="times"),
    ]
    x, y = tensor(np.arange(64)), torch.zeros(64)
    with working(1) as worker, pytest.raises((RuntimeError, ValueError), match=said):
        cid = worker.register(orchestrated(tmp_path / "orch.cpp", kernels))
        run(worker, lambda orch: orch.submit_next_level(cid, called((x, IN), (y, OUT), 10), worker=0))
