"""Results in a rank's host memory have the bits of plain PyTorch, also where CUDA's kernels have others."""

import pytest

import torchemu

torch = pytest.importorskip("torch", reason="no PyTorch is installed here")
nn, functional = torch.nn, torch.nn.functional

MODULES = {
    "layer norm": lambda: nn.LayerNorm(16),
    "root mean square": lambda: nn.RMSNorm(16),
    "group norm": lambda: nn.Sequential(nn.Unflatten(-1, (4, 4)), nn.GroupNorm(2, 6), nn.Flatten(2)),
    "batch norm": lambda: nn.BatchNorm1d(6),
    "batch norm in evaluation": lambda: nn.BatchNorm1d(6).eval(),
    "products": lambda: nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 16), nn.SiLU()),
    "attention": lambda: nn.MultiheadAttention(16, 2, batch_first=True),
    "a layer": lambda: nn.TransformerEncoderLayer(16, 2, 32, 0.0, batch_first=True),
    "convolution": lambda: nn.Conv1d(6, 4, 3),
    "softmax": lambda: nn.Softmax(-1),
    "mish": nn.Mish,
    "recurrent": lambda: nn.GRU(16, 8, batch_first=True),
}
DTYPES = [torch.float32, torch.bfloat16, torch.float16]


def trained(name, dtype):
    """Returns a module's output, its gradients and its buffers after a pass forward and one backward."""
    generator = torch.Generator().manual_seed(sum(map(ord, name)))
    torch.manual_seed(1)
    module = MODULES[name]().to(dtype)
    for parameter in module.parameters():
        nn.init.normal_(parameter, generator=generator)
    x = torch.randn(4, 6, 16, generator=generator).to(dtype).requires_grad_()
    out = module(x, x, x, need_weights=False) if name == "attention" else module(x)
    out = out[0] if isinstance(out, tuple) else out
    out.backward(torch.randn(out.shape, generator=generator).to(dtype))
    return [t.detach().clone() for t in (out, x.grad, *(p.grad for p in module.parameters()), *module.buffers())]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", MODULES)
def test_modules(name, dtype):
    found = []

    @torchemu.distributed(world_size=1, torch="real")
    def in_a_rank():
        found.extend(trained(name, dtype))

    in_a_rank()
    for made, want in zip(found, trained(name, dtype), strict=True):
        assert made.dtype == want.dtype
        torch.testing.assert_close(made, want, rtol=0, atol=0, equal_nan=True)


@torchemu.distributed(world_size=1, torch="real")
def test_products_of_another_dtype_are_cudas():
    a = torch.ones(2, 2, dtype=torch.bfloat16)
    assert torch.mm(a.cuda(), a.cuda(), out_dtype=torch.float32).tolist() == [[2, 2], [2, 2]]
    with pytest.raises((RuntimeError, NotImplementedError)):
        torch.mm(a, a, out_dtype=torch.float32)
