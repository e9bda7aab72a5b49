"""Tests of attention of packed sequences on devices, beside a definition of it in float32."""

import inspect

import pytest
import torch
from torch.nn.attention.varlen import AuxRequest, varlen_attn

import torchemu
from torchemu.runtime.waiting import host_time

one = torchemu.distributed(world_size=1, torch="real")
aten = torch.ops.aten

ROWS = torch.tensor([0, 5, 5, 8, 16], dtype=torch.int32)
KEYS = torch.tensor([0, 7, 9, 11, 19], dtype=torch.int32)


def defined(query, key, value, own, before, after):
    """Attention of (rows, heads, depth), where row i sees keys from i + own - before to i + own + after; -1 is all."""
    key, value = (t.repeat_interleave(query.shape[1] // key.shape[1], 1) for t in (key, value))
    scores = torch.einsum("shd,thd->hst", query, key) * query.shape[-1] ** -0.5
    apart = torch.arange(key.shape[0]) - torch.arange(query.shape[0])[:, None] - own
    hidden = (apart < -before if before >= 0 else apart < -99) | (apart > after if after >= 0 else apart > 99)
    scores = scores.masked_fill(hidden, float("-inf"))
    shares = scores.softmax(-1).nan_to_num(0.0)
    return torch.einsum("hst,thd->shd", shares, value), scores.logsumexp(-1)


def each(tensors, own, before, after):
    """The definition, sequence by sequence. Returns what it gives of each behind that of the others."""
    query, key, value = tensors
    outs, sums = [], []
    for (a, b), (c, d) in zip(ROWS.unfold(0, 2, 1).tolist(), KEYS.unfold(0, 2, 1).tolist(), strict=True):
        last = d - c - (b - a) if own is None else own
        out, total = defined(query[a:b], key[c:d], value[c:d], last, before, after)
        outs.append(out)
        sums.append(total)
    return torch.cat(outs), torch.cat(sums, 1)


SHARED = {"enable_gqa": True} if "enable_gqa" in inspect.signature(varlen_attn).parameters else {}
"""Options of newer versions for keys that queries share."""


def drawn(dtype, heads):
    """Returns query, key and value on the device, and the same on the host in float32, which all want gradients."""
    torch.manual_seed(1)
    made = [torch.randn(n, h, 16).to(dtype) for n, h in ((16, 4), (19, heads), (19, heads))]
    return [t.cuda().requires_grad_() for t in made], [t.float().requires_grad_() for t in made]


@one
@pytest.mark.parametrize("window", [(-1, -1), (-1, 0), (2, 0), (1, 1)])
def test_packed_sequences_of_shared_keys(window):
    ours, plain = drawn(torch.bfloat16, 2)
    aux = AuxRequest(lse=True)
    out, sums = varlen_attn(*ours, ROWS.cuda(), KEYS.cuda(), 8, 8, window_size=window, return_aux=aux, **SHARED)
    want, wanted = each(plain, None, *window)
    assert out.device.type == sums.device.type == "cuda"
    torch.testing.assert_close(out.cpu().float(), want, atol=2e-2, rtol=0)
    seen = wanted.isfinite()
    torch.testing.assert_close(sums.cpu()[seen], wanted[seen])
    weights = torch.randn_like(want)
    (out.float() * weights.cuda()).sum().backward()
    (want * weights).sum().backward()
    for mine, other in zip(ours, plain, strict=True):
        torch.testing.assert_close(mine.grad.cpu().float(), other.grad, atol=5e-2, rtol=0)


@one
@pytest.mark.parametrize(("kind", "window", "own"), [(0, None, 0), (1, None, 0), (2, None, None), (1, 3, 0)])
def test_packed_sequences_efficiently(kind, window, own):
    ours, plain = drawn(torch.float32, 4)
    taken = [t.unsqueeze(0) for t in ours]
    packed = (ROWS.cuda(), KEYS.cuda(), 8, 8)
    found = aten._efficient_attention_forward(*taken, None, *packed, 0.0, kind, True, window_size=window)
    out, sums, seed, offset = found[:4]
    before, after = (-1, -1) if kind == 0 else (-1 if window is None else window - 1, 0)
    want, _ = each(plain, own, before, after)
    assert sums.shape == (4, 4, 32)
    torch.testing.assert_close(out[0].cpu(), want)
    random = 0.0, seed, offset
    grads = aten._efficient_attention_backward(
        2 * out, *taken, None, out, *packed, sums, *random, kind, False, window_size=window
    )
    (want * want).sum().backward()
    for mine, other in zip(grads, plain, strict=False):
        torch.testing.assert_close(mine[0].cpu(), other.grad, atol=1e-5, rtol=1e-4)


@one
def test_batches_of_rows_with_heads_behind_them():
    torch.manual_seed(2)
    query, key, value = (torch.randn(2, 6, 3, 8) for _ in range(3))
    bias = torch.randn(2, 3, 6, 6)
    out = aten._efficient_attention_forward(
        *[t.cuda() for t in (query, key, value, bias)], None, None, None, None, 0.0, 0
    )[0]
    scores = torch.einsum("bshd,bthd->bhst", query, key) * 8**-0.5 + bias
    torch.testing.assert_close(out.cpu(), torch.einsum("bhst,bthd->bshd", scores.softmax(-1), value))
    short = [t.cuda().half() for t in (query, key, value)]
    out, sums, *_ = aten._flash_attention_forward(*short, None, None, 6, 6, 0.0, True, False)
    want = [defined(*[t[i].half().float() for t in (query, key, value)], 0, -1, 0) for i in range(2)]
    torch.testing.assert_close(out.cpu().float(), torch.stack([w[0] for w in want]), atol=5e-3, rtol=0)
    torch.testing.assert_close(sums.cpu(), torch.stack([w[1] for w in want]))


@one
def test_flash_attention_takes_short_floats_only():
    ours, _ = drawn(torch.float32, 4)
    with pytest.raises(RuntimeError, match="only support fp16 and bf16"):
        varlen_attn(*ours, ROWS.cuda(), KEYS.cuda(), 8, 8)


@one
def test_the_host_does_not_wait_for_the_ends_of_sequences():
    ours, _ = drawn(torch.bfloat16, 4)
    ends = ROWS.cuda(), KEYS.cuda()
    torch.cuda.synchronize()
    torch.cuda._sleep(10**8)
    begun = host_time()
    varlen_attn(*ours, *ends, 8, 8)
    assert host_time() - begun < 10**9  # ps, of which the sleep takes more than ten times as many


@one
def test_longer_sequences_take_longer():
    """There are more pairs of a query and a key where as many tokens are in fewer sequences."""

    def taken(step):
        size = 2048
        ours = [torch.zeros(size, 8, 64, dtype=torch.bfloat16, device="cuda") for _ in range(3)]
        ends = torch.arange(0, size + 1, step, dtype=torch.int32, device="cuda")
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        varlen_attn(*ours, ends, ends, step, step)
        end.record()
        torch.cuda.synchronize()
        return begin.elapsed_time(end)

    assert taken(512) < taken(1024) < taken(2048)
