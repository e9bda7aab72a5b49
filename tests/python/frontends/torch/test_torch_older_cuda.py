"""Older and rarer programs ask more of torch.cuda: types of tensors, CUDA's runtime, pools of NCCL's memory."""

import os
import warnings

import numpy as np
import pytest
import torch
import torch.distributed as dist

import torchemu

one = torchemu.distributed(world_size=1, torch="real")
two = torchemu.distributed(world_size=2, torch="real")

KINDS = {
    "FloatTensor": torch.float32,
    "HalfTensor": torch.float16,
    "LongTensor": torch.int64,
    "ByteTensor": torch.uint8,
}


@pytest.mark.parametrize("name, dtype", KINDS.items())
@one
def test_types_make_tensors_on_the_current_device(name, dtype):
    kind = getattr(torch.cuda, name)
    with torch.cuda.device(1):
        made = kind([1, 2, 3])
    assert made.device == torch.device("cuda:1") and made.dtype == dtype and made.tolist() == [1, 2, 3]
    assert kind(2, 3).shape == (2, 3) and kind(1, device="cuda:1").device.index == 1 and kind().numel() == 0
    assert kind(made).data_ptr() == made.data_ptr()
    with pytest.raises(TypeError, match=f"expected torch.cuda.{name} "):
        kind(made.cpu())


@one
def test_types_tell_tensors():
    made = torch.cuda.FloatTensor(1)
    assert made.type() == "torch.cuda.FloatTensor" and torch.cuda.FloatTensor.dtype is torch.float32
    assert isinstance(made, torch.cuda.FloatTensor) and not isinstance(made, torch.cuda.LongTensor)
    assert not isinstance(made.cpu(), torch.cuda.FloatTensor)
    assert torch.ones(1).type(torch.cuda.HalfTensor).type() == "torch.cuda.HalfTensor"


@two
def test_a_default_type_is_its_ranks_own():
    dist.init_process_group("nccl")
    kind = torch.cuda.DoubleTensor if dist.get_rank() else torch.FloatTensor
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.set_default_tensor_type(kind)
    dist.barrier()
    made = torch.zeros(1)
    torch.cuda.synchronize()
    assert (made.type(), torch.zeros(1).type()) == (f"{kind.__module__}.{kind.__name__}",) * 2


@one
def test_the_runtime_profiles_and_pins():
    runtime = torch.cuda.cudart()
    torch.cuda.check_error(runtime.cudaProfilerStart())
    torch.cuda.check_error(runtime.cudaProfilerStop())
    with torch.cuda.profiler.profile():
        host = torch.ones(4)
    assert int(runtime.cudaHostRegister(host.data_ptr(), host.nbytes, 0)) == 0
    assert runtime.cudaMemGetInfo(0) == torch.cuda.mem_get_info(0)
    major, minor = torch.cuda.get_device_capability()
    assert torch.cuda.get_arch_list() == [f"sm_{major}{minor}"]


@two
def test_nccl_takes_pools_and_splits():
    rank = int(os.environ["RANK"])
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", device_id=torch.device("cuda", rank))
    backend = dist.group.WORLD._get_backend(torch.device("cuda"))
    pool = torch.cuda.MemPool(backend.mem_allocator)
    with torch.cuda.use_mem_pool(pool):
        x = torch.full((3,), rank + 1.0, device="cuda")
    backend.register_mem_pool(pool, symm=True)
    dist.all_reduce(x)
    backend.deregister_mem_pool(pool)
    assert x.tolist() == [3.0] * 3
    alone = dist.split_group(split_ranks=[[0], [1]])
    dist.all_reduce(x, group=alone)
    assert alone.size() == 1 and x.tolist() == [3.0] * 3


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@one
def test_products_with_a_dtype_for_the_result(dtype):
    """Against NumPy in float64, from which 32-bit sums differ by their rounding and 16-bit ones by far more."""
    a, b = (torch.randn(shape, device="cuda").to(dtype) for shape in ((4, 64), (64, 8)))
    c = torch.randn(4, 8, device="cuda").to(dtype)
    exact = a.cpu().double().numpy() @ b.cpu().double().numpy()
    product = torch.mm(a, b, out_dtype=torch.float32)
    assert product.dtype is torch.float32 and product.is_cuda
    np.testing.assert_allclose(product.cpu().numpy(), exact, rtol=1e-5, atol=1e-5)
    stacked = torch.bmm(a[None], b[None], out_dtype=torch.float32)
    np.testing.assert_allclose(stacked[0].cpu().numpy(), exact, rtol=1e-5, atol=1e-5)
    added = torch.addmm(c, a, b, out_dtype=torch.float32, beta=2)
    np.testing.assert_allclose(added.cpu().numpy(), exact + 2 * c.cpu().double().numpy(), rtol=1e-5, atol=1e-5)
    into = torch.ones(4, 8, device="cuda")
    torch.addmm(into, a, b, out_dtype=torch.float32, out=into)
    np.testing.assert_allclose(into.cpu().numpy(), exact + 1, rtol=1e-5, atol=1e-5)
