"""Memory that kernels go through, and how: what operations are counted as, with and without data, and what a topology
makes of it."""

import random

import pytest
from launched import noted

torch = pytest.importorskip("torch", reason="no PyTorch is installed here")
import torch.nn.functional as F  # noqa: E402, N812 (so the calls read)

ROWS, WIDTH = 6, 8
ALL = ROWS * WIDTH  # elements, of four bytes

MEETS = 680  # nanoseconds of kernels whose threads meet, beside others

COUNTED = {
    # operands and results
    "x + y": ("add", 3 * 4 * ALL, ALL, "vector"),
    "x.exp()": ("exp", 2 * 4 * ALL, ALL, "vector"),
    "mask.sum()": ("sum", ALL + 8, ALL, "strided"),
    "F.layer_norm(x, (WIDTH,))": ("native_layer_norm", 8 * (ALL + ROWS), MEETS + 1008, "staged"),
    "F.layer_norm(wide, (1025,))": ("native_layer_norm", 8 * (1025 + 1), MEETS + 2001, "staged"),
    "F.layer_norm(x.new_zeros(1 << 16, 64), (64,))": ("native_layer_norm", 65 << 19, MEETS + 101_424, "staged"),
    "F.layer_norm(x[:0], (WIDTH,))": ("native_layer_norm", 0, 0, "vector"),
    "F.group_norm(image, 1)": ("native_group_norm", 8 * ALL + 8, MEETS + 3321, "staged"),
    "aten.native_group_norm_backward(image, image, *[one.view(1, 1)] * 2, row[:2], 1, 2, 24, 1, [True] * 3)": (
        "native_group_norm_backward", 12 * ALL + 8 + 8 + 16, MEETS + 6252, "staged"
    ),
    "F.rms_norm(x, (WIDTH,))": ("_fused_rms_norm", 4 * (2 * ALL + ROWS), MEETS + 304, "staged"),
    "torch.ops.aten.native_layer_norm_backward(x, x, (8,), column, column, row, row, (True, True, True))": (
        "native_layer_norm_backward", 12 * ALL + 48 + 16 * WIDTH, MEETS + 1122, "staged"
    ),
    "torch.ops.aten.native_layer_norm_backward(x, x, (8,), column, column, row, row, (True, False, False))": (
        "native_layer_norm_backward", 12 * ALL + 48 + 8 * WIDTH, MEETS + 1105, "staged"
    ),
    "x.cumsum(-1)": ("cumsum", 2 * 4 * ALL, 14 * 1024, "shared"),
    "x.cumsum(0)": ("cumsum", 2 * 4 * ALL, ROWS * 1024, "serial"),
    "x.view(2, 3, 8).cumprod(1)": ("cumprod", 2 * 4 * ALL, 3 * 1024, "serial"),
    "x.clone().cumsum_(-2)": ("cumsum_", 2 * 4 * ALL, ROWS * 1024, "serial"),
    "long.flatten().cumsum(0)": ("cumsum", 8 * 2048, 2048, "vector"),
    "column.cumsum(0)": ("cumsum", 8 * ROWS, ROWS, "vector"),
    "x.new_zeros(0, 8).cumsum(0)": ("cumsum", 0, 0, "vector"),
    "x.new_zeros(8, 0).cumsum(-1)": ("cumsum", 0, 0, "vector"),
    "x.new_zeros(2, 1 << 21).cumsum(0)": ("cumsum", 1 << 25, 2 * 1024, "serial_far"),
    "x.softmax(-1)": ("_softmax", 2 * 4 * ALL, 20, "staged"),
    "x * host": ("mul", 2 * 4 * ALL, ALL, "vector"),
    # what is written and not read, and what is done to a copy
    "x.clone().zero_()": ("zero_", 4 * ALL, ALL, "vector"),
    "x.clone().normal_()": ("normal_", 4 * ALL, ALL, "vector"),
    "x.masked_fill(mask, 0.0)": ("masked_fill", (4 + 1 + 4 + 8) * ALL, ALL, "strided"),
    "torch._foreach_copy_([x.clone()], [y])": ("_foreach_copy_", 2 * 4 * ALL, 5, "staged"),
    "torch._foreach_zero_([x.clone()])": ("_foreach_zero_", 4 * ALL, 3, "staged"),
    "torch._foreach_add_([x.clone(), column.clone()], 1.0)": ("_foreach_add_", 8 * (ALL + ROWS), 5, "staged"),
    # other ways through memory
    "x + row": ("add", 4 * (2 * ALL + WIDTH), ALL, "strided"),
    "x * column": ("mul", 4 * (2 * ALL + ROWS), ALL, "strided"),
    "x[:, 4:].neg()": ("neg", 4 * ALL, ALL // 2, "strided"),
    "x.t().neg()": ("neg", 8 * ALL, ALL, "vector"),
    "torch.cat((x, y))": ("cat", 16 * ALL, 2 * ALL, "vector"),
    "torch.cat((x[:, 4:], x[:, :4]), -1)": ("cat", 8 * ALL, ALL, "strided"),
    "x.half()": ("_to_copy", 6 * ALL, ALL, "vector"),
    "short.float()": ("_to_copy", 6 * ALL, ALL, "strided"),
    "x.t().contiguous()": ("clone", 8 * ALL, ALL, "transposed"),
    "x.t().clone()": ("clone", 8 * ALL, ALL, "vector"),
    "x[:, :4].contiguous()": ("clone", 4 * ALL, ALL // 2, "strided"),
    "x.view(3, 2, 8).transpose(0, 1).contiguous()": ("clone", 8 * ALL, ALL, "strided"),
    "y.clone().copy_(row)": ("copy_", 4 * (ALL + WIDTH), ALL, "strided"),
    # rows that are short, and statistics that are given
    "x.log_softmax(0)": ("_log_softmax", 8 * ALL, 4 * 1024, "serial"),
    "x.view(2, 3, 8).softmax(-2)": ("_softmax", 8 * ALL, 2 * 1024, "serial"),
    "x.view(6, 8, 1).softmax(1)": ("_softmax", 8 * ALL, 20, "staged"),
    "x.new_zeros(64, 8).softmax(0)": ("_softmax", 8 * 512, 2 * 1024, "shared"),
    "x.new_zeros(8192, 1024).softmax(0)": ("_softmax", 1 << 26, 8192 * 1024, "serial_far"),
    "x.new_zeros(0, 8).softmax(0)": ("_softmax", 0, 0, "short"),
    "torch._softmax_backward_data(x, x, 0, x.dtype)": ("_softmax_backward_data", 12 * ALL, 6 * 1024, "serial"),
    "torch._softmax_backward_data(x, x, 1, x.dtype)": ("_softmax_backward_data", 24 * ALL, 12, "staged"),
    "long.softmax(-1)": ("_softmax", 8 * 2048, 2458, "staged"),
    "long.softmax(0)": ("_softmax", 8 * 2048, 2 * 1024, "serial"),
    "long.view(1, -1)[:, :1025].softmax(-1)": ("_softmax", 8 * 1025, 2400 + 205, "staged"),
    "x.new_zeros(1024, 20).softmax(-1)": ("_softmax", 8 * 20480, 1024 * 56, "short"),
    "x.new_zeros(1024, 20).log_softmax(-1)": ("_log_softmax", 8 * 20480, 1024 * 56, "short"),
    "torch._log_softmax_backward_data(*[x.new_zeros(512, 100)] * 2, 1, x.dtype)": (
        "_log_softmax_backward_data", 12 * 51200, 512 * 128, "short"
    ),
    "x.new_zeros(300, 2048).softmax(-1)": ("_softmax", 8 * 614400, 614400, "vector"),
    "x.new_zeros(300, 16384).softmax(-1)": ("_softmax", 8 * 4915200, 5406720, "vector"),
    "x.new_zeros(300, 32768).half().softmax(-1)": ("_softmax", 4 * 9830400, 5406720, "vector"),
    "torch._softmax_backward_data(*[x.new_zeros(300, 16384)] * 2, 1, x.dtype)": (
        "_softmax_backward_data", 24 * 4915200, 4915200, "vector"
    ),
    "one.softmax(0)": ("_softmax", 8, 1, "short"),
    "F.batch_norm(x, row, row)": ("native_batch_norm", 4 * (2 * ALL + 2 * WIDTH), ALL, "eval"),
    "F.batch_norm(x, None, None, training=True)": ("native_batch_norm", 8 * (ALL + WIDTH), ALL, "channels_last"),
    "F.batch_norm(x.view(2, 3, 8), *[None] * 4, True)": ("native_batch_norm", 8 * (ALL + 3), ALL, "channels"),
    # what is sorted, picked by rank and drawn: nanoseconds of an H200
    "x.sort(-1)": ("sort", 4 * ALL + 12 * ALL, 3000 + 1 + 4500, "staged"),
    "x.sort(dim=0, stable=True)": ("sort", 4 * ALL + 12 * ALL, 3000 + 1 + 4500, "staged"),
    "x.new_zeros(1, 64).argsort()": ("sort", 16 * 64, 3000 + 1 + (2 * 4 + 4) * 400, "staged"),
    "x.new_zeros(128, 8192).half().sort()": ("sort", 12 << 20, 3 * 15483 + 5000 + 8389, "staged"),
    "x[:0].sort(-1)": ("sort", 0, 0, "vector"),
    "one.sort()": ("sort", 4 + 12, 3000 + 1 + 4500, "staged"),
    "x.topk(2, -1)": ("topk", 4 * ALL + 12 * 2 * ROWS, 4318 + 500 + 4500, "staged"),
    "x.topk(2, -1, sorted=False)": ("topk", 4 * ALL + 12 * 2 * ROWS, 4318, "staged"),
    "x.topk(1, 0)": ("topk", 4 * ALL + 12 * WIDTH, 4309, "staged"),
    "x.topk(0)": ("topk", 4 * ALL, 0, "vector"),
    "x.median(0)": ("median", 4 * ALL + 12 * WIDTH, 2533, "staged"),
    "x.kthvalue(2)": ("kthvalue", 4 * ALL + 12 * ROWS, 2539, "staged"),
    "x.median()": ("median", 4 * ALL + 4, 10_000 + 4 * 7000 + 3, "staged"),
    "x.multinomial(1)": ("multinomial", 4 * ALL + 8 * ROWS, 20_001, "staged"),
    "x.multinomial(2, True)": ("multinomial", 4 * ALL + 16 * ROWS, 8001, "staged"),
    # what is reduced
    "x.sum(-1)": ("sum", 4 * (ALL + ROWS), MEETS + 50, "staged"),
    "x.sum(0)": ("sum", 4 * (ALL + WIDTH), MEETS + 6 * 50, "staged"),
    "x.sum()": ("sum", 4 * ALL + 4, MEETS + 2 * 50, "staged"),
    "x.sum((0, 1))": ("sum", 4 * ALL + 4, MEETS + 2 * 50, "staged"),
    "x.t().sum(0)": ("sum", 4 * (ALL + ROWS), MEETS + 50, "staged"),
    "x.mean(0)": ("mean", 4 * (ALL + WIDTH), MEETS + 6 * 50, "staged"),
    "x.amax(0)": ("amax", 4 * (ALL + WIDTH), MEETS + 6 * 50, "staged"),
    "short.amax(0)": ("amax", 2 * (ALL + WIDTH), MEETS + 6 * 220, "staged"),
    "x.max()": ("max", 4 * ALL + 4, MEETS + 2 * 50, "staged"),
    "x.max(0)": ("max", 4 * ALL + 12 * WIDTH, MEETS + 6 * 188, "staged"),
    "x[:, :7].max(0)": ("max", 4 * 42 + 12 * 7, MEETS + 6 * 105, "staged"),
    "x.argmax()": ("argmax", 4 * ALL + 8, MEETS + 2 * 105, "staged"),
    "x.var(0)": ("var", 4 * (ALL + WIDTH), MEETS + 6 * 220, "staged"),
    "torch.var_mean(x, -1)": ("var_mean", 4 * (ALL + 2 * ROWS), MEETS + 120, "staged"),
    "x.norm(dim=0)": ("linalg_vector_norm", 4 * (ALL + WIDTH), MEETS + 6 * 50, "staged"),
    "x.logsumexp(0)": ("logsumexp", 4 * (ALL + WIDTH), MEETS + 2 * 300 + 9001, "staged"),
    "mask.any()": ("any", ALL + 1, MEETS + 2 * 50, "staged"),
    "x.new_zeros(8192, 64).sum(0)": ("sum", 4 * (8192 * 64 + 64), MEETS + 16 * 50 + 3700 + 8 * 260, "staged"),
    "x.new_zeros(1 << 19, 4).sum(1)": ("sum", 4 * 5 << 19, MEETS + 14080, "staged"),
    "x[:0].sum(0)": ("sum", 4 * WIDTH, 0, "vector"),
    # images of another size
    "F.interpolate(image, scale_factor=2, mode='bilinear')": ("upsample_bilinear2d", 20 * ALL, 2 * 220, "staged"),
    "F.interpolate(last, scale_factor=2, mode='bilinear')": ("upsample_bilinear2d", 20 * ALL, 4 * ALL, "channels_last"),
    "F.interpolate(image, scale_factor=2, mode='bicubic')": ("upsample_bicubic2d", 20 * ALL, 4000 + 840, "staged"),
    "F.interpolate(image, scale_factor=2)": ("upsample_nearest2d", 20 * ALL, 4 * ALL, "channels"),
    "torch.ops.aten.upsample_nearest2d_backward(image, [3, 8], [1, 2, 3, 4])": (
        "upsample_nearest2d_backward", 6 * ALL, 300 + 200, "staged"
    ),
    "torch.ops.aten.upsample_bilinear2d_backward(image.half(), [3, 8], [1, 2, 3, 4], False)": (
        "upsample_bilinear2d_backward", 3 * ALL, 2 * ALL + 3, "vector"
    ),
    # a part of an operand
    "torch.ops.aten.embedding_dense_backward(x, classes, 3, -1, False)": (
        "embedding_dense_backward", 4 * ALL + 8 * ROWS + 4 * 3 * WIDTH, 154, "staged"
    ),
    "torch.ops.aten.embedding_dense_backward(x.new_zeros(3073, 8), x.new_zeros(3073).long(), 2, -1, False)": (
        "embedding_dense_backward", 4 * 3073 * 8 + 8 * 3073 + 4 * 16, 85_003, "staged"
    ),
    "F.embedding(three, x)": ("embedding", 2 * 3 * WIDTH * 4 + 3 * 8, 2, "staged"),
    "x.index_select(0, three)": ("index_select", 2 * 3 * WIDTH * 4 + 3 * 8, 2, "staged"),
    "x[three]": ("index", 2 * 3 * WIDTH * 4 + 3 * 8, 2, "staged"),
    "x[three, three]": ("index", 2 * 3 * 4 + 2 * 3 * 8, 1, "staged"),
    # 11 rows of 100 are likely to be picked by 12 indices; six warps, of bags of four rows
    "F.embedding_bag(three.new_zeros(12), x.new_zeros(100, 40), torch.arange(0, 12, 4, device='cuda'))": (
        "_embedding_bag_forward_only", (11 + 3) * 40 * 4 + 8 * (2 * 12 + 2 * 3), 1383, "staged"
    ),
    # 36 of 6 x 8 elements in each of 2 matrices, one by one, after indices are sorted that all differ
    "torch.ops.aten.index_put_(x.new_zeros(2, 6, 8), (None, three, three), x.new_zeros(2, 3), True)": (
        "index_put_", 2 * 6 * 4 + 6 * 4 + 2 * 3 * 8, 20_603, "staged"
    ),
    "x.gather(1, classes[:, None])": ("gather", 2 * ROWS * 4 + ROWS * 8, ROWS, "vector"),
    "x.gather(0, three[:, None].expand(3, WIDTH))": ("gather", 2 * 3 * WIDTH * 4 + 3 * 8, 3 * WIDTH, "vector"),
    "x.clone().scatter_(1, classes[:, None], 1.0)": ("scatter_", 2 * ROWS * 4 + ROWS * 8, ROWS, "vector"),
    "x.clone().index_add_(0, three, y[:3])": ("index_add_", 3 * 3 * WIDTH * 4 + 3 * 8, 3 * WIDTH, "vector"),
    "x.index_add(0, three, y[:3])": ("index_add", 9 * WIDTH * 4 + 24 + 8 * ALL, 3 * WIDTH, "vector"),
    "x.clone().index_fill_(1, three, 2.0)": ("index_fill_", 3 * ROWS * 4 + 24, 3 * ROWS, "vector"),
    "one.clone().index_fill_(0, three[:1], 2.0)": ("index_fill_", 4 + 8, 1, "vector"),
    "x.clone().index_put_((three,), one)": ("index_put_", 2 * 3 * WIDTH * 4 + 4 + 24, 3 * WIDTH, "vector"),
    "x.clone().index_put_((three,), y[:3])": ("index_put_", 3 * 3 * WIDTH * 4 + 24, 3 * WIDTH, "vector"),
    "x.clone().index_put_((three,), y[:3], True)": ("index_put_", 9 * WIDTH * 4 + 24, 20_000 + 300 + 1, "staged"),
    "x.flatten().index_select(0, three)": ("index_select", 2 * 3 * 4 + 24, 3, "vector"),
    "x.clone().index_put_((mask,), one)": ("index_put_", 2 * ALL * 4 + 4 + ALL, ALL, "vector"),
    "F.nll_loss(x, classes)": ("nll_loss_forward", 2 * ROWS * 8 + 2 * 4, 281, "staged"),
    "F.nll_loss(x, classes, reduction='none')": ("nll_loss_forward", 2 * ROWS * 8 + 4 * ROWS + 4, 1001, "staged"),
    "torch.ops.aten.nll_loss_backward(one, x, classes, None, 1, -100, one)": (
        "nll_loss_backward", 4 * ALL + 2 * 8 * ROWS, 1169, "staged"
    ),
    "F.dropout(x, 0.5)": ("native_dropout", (4 + 4 + 1) * ALL, ALL, "vector"),
    # nothing
    "empty + empty": ("add", 0, 0, "vector"),
    "x[empty.long()]": ("index", 0, 0, "vector"),
    "x.clone().index_add_(0, empty.long(), y[:0])": ("index_add_", 0, 0, "vector"),
}  # fmt: skip


def operands():
    x, three = torch.ones(ROWS, WIDTH, device="cuda"), torch.arange(3, device="cuda")
    return {
        "torch": torch, "aten": torch.ops.aten, "F": F, "WIDTH": WIDTH, "x": x, "y": torch.ones_like(x),
        "row": torch.ones(WIDTH, device="cuda"), "column": torch.ones(ROWS, 1, device="cuda"), "mask": x > 0,
        "short": x.half(), "three": three,
        "classes": torch.zeros(ROWS, dtype=torch.int64, device="cuda"), "one": torch.ones((), device="cuda"),
        "long": torch.ones(2, 1024, device="cuda"), "wide": torch.ones(1, 1025, device="cuda"),
        "image": x.view(1, 2, 3, 8), "last": x.view(1, 4, 3, 4).to(memory_format=torch.channels_last),
        "host": torch.tensor(2.0), "empty": torch.ones(0, device="cuda"),
    }  # fmt: skip


def launched(monkeypatch, call, data):
    """Returns the last kernel of a call: its name, bytes, elements and way."""
    from torchemu.frontends.torch import device
    from torchemu.runtime import world

    issued = noted(monkeypatch)
    with world.opened(), device.running(data=data):
        eval(call, operands())
    return issued[-1]


@pytest.mark.parametrize("data", [True, False], ids=["data", "no data"])
@pytest.mark.parametrize("call", COUNTED)
def test_what_operations_take(monkeypatch, call, data):
    if call == "x.clone().index_put_((mask,), one)" and not data:
        pytest.skip("nobody knows how many elements a mask picks")
    assert launched(monkeypatch, call, data) == COUNTED[call]


@pytest.mark.parametrize(("rows", "columns"), [(4, 4), (3, 5), (5, 3), (1, 1)])
def test_a_causal_mask_hides_operations(monkeypatch, rows, columns):
    """Each row sees the columns up to its own."""
    call = f"torch.nn.functional.scaled_dot_product_attention(x[:{rows}].view(1, 1, {rows}, 8), *[x[:{columns}].view("
    call += f"1, 1, {columns}, 8)] * 2, is_causal=%s)"
    name, _, all_of_them, _ = launched(monkeypatch, call % False, True)
    assert launched(monkeypatch, call % True, True)[:3:2] == (
        name,
        all_of_them * sum(min(row + 1, columns) for row in range(rows)) // (rows * columns),
    )


TOPOLOGY = """
name: one
system: {sips: {count: 1}}
sip: {cube_mesh: {w: 1, h: 1}}
cube: {hbm: {bandwidth: 1000, latency: 0, capacity_gib: 1}, pe_layout: {pe_per_corner: 1, corners: [nw]}}
pe:
  matrix: {f8_tflops: 1, f16_tflops: 1, f32_tflops: 0.5, tf32_tflops: 1}
  vector: {f32_tflops: 1, reduce_bandwidth: 1}
host: {launch_overhead: 0, link: {bandwidth: 1, latency: 0}}
kernels:
  launch: 2000
  operations: {strided: 50, transposed: 100, exp: 200, relu: 3, _to_copy: 300, convolution: 4}
"""

MIB = 1 << 20
TAKES = {  # in ns, of 2^20 elements: 1000 GB/s and 1 TFLOPS
    "x + y": 12 * MIB / 1000,
    "x.exp()": 200 * MIB / 1000,
    "x.exp_()": 200 * MIB / 1000,
    "x.relu()": 8 * MIB / 1000,  # its memory takes longer
    "x + row": 50 * MIB / 1000,
    "x.t().contiguous()": 100 * MIB / 1000,
    "x.half()": 300 * MIB / 1000,  # its own, and not that of its way
    "torch.zeros_like(x)": 4 * MIB / 1000,
}


def of_calls(calls, **more):
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    x = torch.ones(1024, 1024, device="cuda")
    names = {"torch": torch, "F": F, "x": x, "y": x.clone(), "row": x[0].clone(), "image": x.view(1, 16, 256, 256)}
    names |= {"kernel": torch.ones(16, 16, 1, 1, device="cuda"), **more}
    took = {}
    for call in calls:
        torch.cuda.synchronize()
        start.record()
        eval(call, names)
        end.record()
        end.synchronize()
        took[call] = start.elapsed_time(end) * 1e6
    return took


@pytest.mark.parametrize("data", [True, False], ids=["data", "no data"])
def test_topologies_say_what_operations_take(tmp_path, data):
    path = tmp_path / "one.yaml"
    path.write_text(TOPOLOGY, encoding="utf-8")
    from torchemu.frontends.torch import device
    from torchemu.runtime import world

    with world.opened(topology=str(path)), device.running(data=data):
        took = of_calls(TAKES)
        for call, expected in TAKES.items():
            assert took[call] == pytest.approx(expected + 2000, rel=1e-6), call
        product, image = "x @ x", "F.conv2d(image, kernel)"
        before = torch.get_float32_matmul_precision()
        try:
            torch.set_float32_matmul_precision("highest")
            exact = of_calls([product])[product]
            torch.set_float32_matmul_precision("high")
            assert of_calls([product])[product] - 2000 == pytest.approx((exact - 2000) / 2, rel=1e-6)
        finally:
            torch.set_float32_matmul_precision(before)
        with torch.backends.cudnn.flags(allow_tf32=False):
            exact = of_calls([image])[image]
        operations = 2 * 16 * 16 * 256 * 256
        assert exact - 2000 == pytest.approx(4 * operations / 0.5 / 1000, rel=1e-6)
        assert of_calls([image])[image] - 2000 == pytest.approx(4 * operations / 1000, rel=1e-6)


FACTORS = {  # for a product of which a row in memory has 1023 elements, where others have 1024
    "most @ w": 1,
    "x @ narrow": 5,
    "F.linear(most, w)": 1,
    "F.linear(x, most)": 7,
    "F.linear(narrow, narrow)": 5,
    "x @ most.t()": 7,
    "narrow @ most": 5,
    "most.t() @ most": 1,
    "narrow.t() @ x": 5,
    "x.t() @ narrow": 5,
    "torch.addmm(bias, x, most.t())": 7,
    "torch.bmm(x.expand(2, -1, -1), most.t().expand(2, -1, -1))": 7,
    "x.mv(w[0])": 1,
}


@pytest.mark.parametrize("data", [True, False], ids=["data", "no data"])
def test_rows_in_memory_decide_what_products_take(tmp_path, data):
    text = TOPOLOGY.replace("  operations:", "  unaligned: {2: 3, 1: 5, result: 7}\n  operations:")
    path = tmp_path / "one.yaml"
    path.write_text(text, encoding="utf-8")
    from torchemu.frontends.torch import device
    from torchemu.runtime import world

    with world.opened(topology=str(path)), device.running(data=data):
        x = torch.ones(1024, 1024, device="cuda").half()
        like = {"w": x.clone(), "x": x, "most": x[1:].clone(), "narrow": x[:, 1:].clone(), "bias": x[0, 1:].clone()}
        took = of_calls(FACTORS, **like)
        aligned = of_calls(["x @ x"], **like)["x @ x"] - 2000
        for call, factor in FACTORS.items():
            parts = 2 if "bmm" in call else 1 / 16 if "mv" in call else 1  # the narrowest tile has 64 columns
            share = 1023 / 1024 if call.startswith(("narrow @", "F.linear(narrow", "most.t() @")) else 1
            assert took[call] - 2000 == pytest.approx(parts * share * factor * aligned, rel=2e-3), call


CONVOLVED = "  convolution: {step: 64, tile: 1000, split: 5000, convert: 1, depthwise: {forward: 1}}\n"
IMAGES, RESULTS, WEIGHTS = 2 * 32 * 64, 2 * 64 * 64, 64 * 9 * 32
COPIES = [(IMAGES, IMAGES), (RESULTS, RESULTS), (WEIGHTS, 64 * 32 * 32)]  # of a kernel 9 elements take what 32 do
PASSES = {  # kernels of convolutions with float16: their names and units, and elements that the vector units take
    "F.conv2d(x, w, padding=1)": ["copies", "product"],
    "F.conv2d(x, w, b, padding=1)": ["copies", "product", "add"],
    "F.conv2d(last, w, padding=1)": ["product"],
    "F.conv2d(last, w, b, padding=1)": ["product", "add"],
    "gradients(x, [True, False, False])": ["copies", "product"],
    "gradients(x, [False, True, False])": ["copies", "product"],
    "gradients(x, [True, True, False])": ["copies", "product", "copies", "product"],
    "gradients(last, [True, True, True])": ["product", "product", "sum"],
    "gradients(last, [False, False, True])": ["sum"],
    "F.conv2d(x, alone, groups=32, padding=1)": ["depthwise"],
}


def convolved(monkeypatch, tmp_path, calls, data):
    """Returns the kernels of each call on a topology that says what convolutions take."""
    from torchemu.frontends.torch import device
    from torchemu.runtime import world

    path = tmp_path / "one.yaml"
    path.write_text(TOPOLOGY + CONVOLVED, encoding="utf-8")
    issued, kernels = noted(monkeypatch), {}
    with world.opened(topology=str(path)), device.running(data=data):
        x, w = torch.ones(2, 32, 8, 8, device="cuda").half(), torch.ones(64, 32, 3, 3, device="cuda").half()
        grad = torch.ones(2, 64, 8, 8, device="cuda").half()

        def gradients(images, mask):
            bias, same = [64], [[1, 1], [1, 1], False, [0, 0], 1, mask]
            return torch.ops.aten.convolution_backward(grad, images, w, bias, [1, 1], *same)

        names = {
            "torch": torch, "F": F, "x": x, "w": w, "b": grad[0, :, 0, 0].clone(), "gradients": gradients,
            "last": x.to(memory_format=torch.channels_last), "alone": w[:32, :1].clone(), "line": x.flatten(2),
            "single": w[:, :, 0].clone(), "turned": w.transpose(0, 1).contiguous(),
        }  # fmt: skip
        for call in calls:
            issued.clear()
            eval(call, names)
            kernels[call] = issued[:]
    return kernels


@pytest.mark.parametrize("data", [True, False], ids=["data", "no data"])
def test_kernels_of_convolutions(monkeypatch, tmp_path, data):
    for call, kinds in PASSES.items():
        name = "convolution_backward" if call.startswith("gradients") else "convolution"
        expected = {
            "copies": [(name, 4 * n, taken, "vector") for n, taken in COPIES],
            "product": [(name, 2 * (IMAGES + RESULTS + WEIGHTS), None, "float16")],
            "add": [("add_", 2 * (2 * RESULTS + 64), RESULTS, "strided")],
            "sum": [("sum", 2 * (RESULTS + 64), RESULTS, "strided")],
            "depthwise": [(name, 2 * (2 * IMAGES + 32 * 9), IMAGES * 9, "vector")],
        }  # fmt: skip
        kernels = convolved(monkeypatch, tmp_path, [call], data)[call]
        assert [(n, b, None if u == "float16" else o, u) for n, b, o, u in kernels] == [
            kernel for kind in kinds for kernel in expected[kind]
        ], call


def test_convolutions_of_the_same_operands_differ_by_their_settings(monkeypatch, tmp_path):
    """A stride of 4 makes a sixteenth of the elements; transposed convolutions are gradients of others."""
    calls = ["F.conv2d(x, w, padding=1)", "F.conv2d(x, w, padding=1, stride=4)"]
    first, second = (kernels[-1] for kernels in convolved(monkeypatch, tmp_path, calls, False).values())
    assert first[1] - second[1] == 2 * 2 * 64 * (64 - 4)
    assert second[2] < first[2]
    turned = "F.conv_transpose2d(x, turned, padding=1)"
    line = "F.conv1d(line, single, padding=1)"
    found = convolved(monkeypatch, tmp_path, [calls[0], turned, line], False)
    assert found[turned][0] == found[calls[0]][1], "the results are the images"
    assert found[line][0] == found[calls[0]][0], "a line has the elements of an image"
    assert found[line][2][2] == 64 * 32 * 32


FUSED = "  attention: {flash: {forward: {side: 128, tile: 1000}}, efficient: {forward: {side: 64, tile: 500}}}\n"


@pytest.mark.parametrize("data", [True, False], ids=["data", "no data"])
def test_kernels_of_attention(monkeypatch, tmp_path, data):
    """Where blocks take nothing, tiles do: a PE has 6 heads of 2 or 3 tiles, and the last one ends half a tile late."""
    from torchemu.frontends.torch import device
    from torchemu.runtime import world

    path = tmp_path / "one.yaml"
    path.write_text(TOPOLOGY + FUSED, encoding="utf-8")
    issued = noted(monkeypatch)
    with world.opened(topology=str(path)), device.running(data=data):
        x = torch.ones(2, 3, 160, 32, device="cuda", requires_grad=True)
        for operand, tiles, name in ((x.bfloat16(), 2, "flash"), (x, 3, "efficient")):
            tile = 1000 if name == "flash" else 500
            dtype = str(operand.dtype).removeprefix("torch.")
            operations = round((6 * tiles + 0.5) * tile * (1000 if name == "flash" else 500))
            moved = 4 * 2 * 3 * 160 * 32 * operand.itemsize
            for causal in (False, True):
                issued.clear()
                result = F.scaled_dot_product_attention(operand, operand, operand, is_causal=causal)
                fused = f"_scaled_dot_product_{name}_attention"
                assert issued == [(fused, moved, operations, dtype)], (name, causal)
                issued.clear()
                torch.autograd.grad(result.sum(), x, retain_graph=True)
                backward = [kernel for kernel in issued if "attention" in kernel[0]]
                assert [kernel[0] for kernel in backward] == [f"{fused}_backward"] * 2
                assert [kernel[1] for kernel in backward] == [2 * moved, 0]


@pytest.mark.parametrize("data", [True, False], ids=["data", "no data"])
def test_channels_that_processors_take_whole(monkeypatch, tmp_path, data):
    """Of 3 channels a machine of 2 PEs takes one wave more; planes of 64 elements take what 100 do."""
    from torchemu.frontends.torch import device
    from torchemu.runtime import world

    two = TOPOLOGY.replace("corners: [nw]", "corners: [nw, ne]") + "  batch_norm: {plane: 100}\n"
    path = tmp_path / "one.yaml"
    path.write_text(two, encoding="utf-8")
    issued = noted(monkeypatch)
    with world.opened(topology=str(path)), device.running(data=data):
        for order, way, elements in (
            (torch.contiguous_format, "channels", 5 * 4 * 64),
            (torch.channels_last, "channels_last", 5 * 3 * 64),
        ):
            images = torch.ones(5, 3, 8, 8, device="cuda").to(memory_format=order).requires_grad_()
            issued.clear()
            result = F.batch_norm(images, None, None, training=True)
            torch.autograd.grad(result, images, result.detach())
            assert [(name, n, how) for name, _, n, how in issued] == [
                ("native_batch_norm", elements, way), ("native_batch_norm_backward", elements, way),
            ]  # fmt: skip
            given = torch.ones(3, device="cuda")
            issued.clear()
            F.batch_norm(images, given, given)
            assert issued[0][2:] == (5 * 3 * (64 if way == "channels_last" else 100), "eval")


def test_graphs_without_data_are_replayed(tmp_path):
    """A replay takes what the calls took, and no elements are copied, for there are none."""
    path = tmp_path / "one.yaml"
    path.write_text(TOPOLOGY, encoding="utf-8")
    from torchemu.frontends.torch import device
    from torchemu.runtime import world

    with world.opened(topology=str(path)), device.running(data=False):
        x, graph = torch.ones(1024, 1024, device="cuda"), torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            x.exp()
            torch.zeros(1024, 1024, device="cuda").add_(x)
        took = of_calls(["graph.replay()"], graph=graph)["graph.replay()"]
        assert took == pytest.approx((200 + 4 + 12) * MIB / 1000 + 3 * 2000, rel=1e-6)
        with torch.device("cuda"):  # a function mode, which a device that replays asks nothing
            again = of_calls(["graph.replay()"], graph=graph)["graph.replay()"]
        assert again == took


@pytest.mark.parametrize(
    ("rows", "columns", "stages"),
    [
        (1024, 1024, 32 * 14),  # 16 threads have 32 columns at a time, in a tree of 4 levels; 32 blocks
        (8192, 64, 2 * 17),  # 256 blocks: a processor has two, and 3/5 of 28 stages for them
        (8192, 65, 3 * 17),
        (16, 65536, 64 * 19),  # 512 threads have a row, in a tree of 9 levels
        (8192, 8, 719),  # and here, too: 8,192 blocks, of which a processor has 63
        (4096, 4096, 128 * 19),  # 64 MB, which no cache holds: 5 stages more
    ],
)
def test_stages_of_scans_follow_from_how_pytorch_shares_rows(rows, columns, stages):
    """The expected are by hand, for an H200's 132 processors."""
    from torchemu.frontends.torch.device import scans

    assert scans.stages(rows, columns, 4 * rows * columns, 132) == stages


@pytest.mark.parametrize(
    ("shape", "threads", "steps", "of_gradients"),
    [
        ((1, 8192, 65), 1, 8192, 8192),  # a column is a thread's, and goes on to the end
        ((1, 8192, 64), 16, 513, 513),  # 16 threads share one, for a block of 1,024
        ((1, 8192, 8), 128, 39, 39),  # 65 steps, which cost 3/5 where rows are short
        ((1, 63, 8), 1, 38, 63),  # too short to be shared; the passes after the first are from the processor's cache
        ((16, 21, 65536), 1, 135, 135),  # 8 blocks for a processor, which has 4/5 of 21 steps for each
        ((64, 77, 64), 16, 6, 6),
    ],
)
def test_steps_of_softmax_follow_from_how_pytorch_shares_columns(shape, threads, steps, of_gradients):
    """The expected are by hand, for an H200's 132 processors."""
    from torchemu.frontends.torch.device import softmaxes

    columns = softmaxes.columns_of(shape, 1, 4)
    assert columns.threads[0] == threads
    assert (columns.steps(132, is_backward=False), columns.steps(132, is_backward=True)) == (steps, of_gradients)


@pytest.mark.parametrize("most", [1, 2, 36, 110])
def test_chunks_are_handed_out_as_pytorch_does(most):
    """The oracle goes chunk by chunk: a launch is full with so many chunks, or with the last one of so many tensors."""
    from torchemu.frontends.torch.device import updates

    def launches(sizes):
        tensors = blocks = longest = 0
        for size in sizes:
            if not size:
                continue
            tensors += 1
            chunks = -(-size // 65536)
            for chunk in range(chunks):
                blocks += 1
                longest = max(longest, min(size - 65536 * chunk, 65536))
                is_last = chunk == chunks - 1
                if blocks == 320 or (tensors == most and is_last):
                    yield blocks, longest
                    tensors, blocks, longest = 0 if is_last else 1, 0, 0
        if blocks:
            yield blocks, longest

    draw = random.Random(most)
    for sizes in (
        (), (0, 0), (1,), (65536,), (65537,), (320 * 65536,), (320 * 65536 + 1, 5), (3, 0, 5) * 50,
        (1 << 28, 7, 1 << 26),
        *(tuple(round(2 ** draw.uniform(0, 25)) for _ in range(draw.randrange(1, 200))) for _ in range(40)),
    ):  # fmt: skip
        assert list(updates._launches(sizes, most)) == list(launches(sizes)), (most, sizes)


@pytest.mark.parametrize(
    ("sizes", "lists", "moved", "takes", "expected"),
    [
        ((), 2, 0, (0.1, 0.1), 0),
        ((100,), 1, 800, (0.1, 0.1), 10),  # 0.065 where caches hold it, but a processor takes 0.1
        ((1 << 24,), 4, 28 << 24, (0.56, 0.54), 800 + 65536 * 2 * 28 / 34),  # 256 blocks: a processor has two
        ((1 << 24,), 4, 14 << 24, (0.56, 0.54), 800 + 65536 * 2 * 0.54),  # half the bytes, but as much arithmetic
        ((1 << 20,) * 37, 4, 28 * 37 << 20, (0.56, 0.54), 800 + 2200 + 65536 * (3 + 3) * 28 / 34),  # 320 and 272 blocks
        ((4096,) * 111, 1, 8 * 4096 * 111, (0.1, 0.1), 1400 + 2 * 4096 * 0.1),  # a launch has 110 tensors
    ],
)
def test_launches_for_lists_take_what_blocks_and_processors_do(sizes, lists, moved, takes, expected):
    """The expected are by hand, for an H200's 132 processors, of 34 bytes in a nanosecond, or 110 from caches."""
    from torchemu.frontends.torch.device import updates

    assert updates.went_through(sizes, lists, moved, *takes) == pytest.approx(expected, rel=1e-9)
