"""Pinned memory, as PyTorch 2.11 had it on an H200."""

import pytest
import torch
from torch.cuda._pin_memory_utils import pin_memory, unpin_memory

import torchemu

pytestmark = pytest.mark.filterwarnings("ignore:Sparse CSR tensor support is in beta")

real = torchemu.distributed(world_size=1, torch="real")


@real
def test_copies_that_the_host_does_not_wait_for_are_pinned():
    x = torch.arange(4.0, device="cuda")
    for late, pinned in (
        (x.to("cpu", non_blocking=True), True),
        (x.to("cpu", torch.float16, non_blocking=True), True),
        (x.view(2, 2).t().to("cpu", non_blocking=True), True),
        (x.clone().requires_grad_().to("cpu", non_blocking=True), True),
        (x.type(torch.FloatTensor, non_blocking=True), True),
        (x[:0].to("cpu", non_blocking=True), False),
        (x.cpu(), False),
        (torch.empty(4).copy_(x, non_blocking=True), False),
        (torch.eye(3).to_sparse().cuda().to("cpu", non_blocking=True), True),
        (torch.eye(3).to_sparse_csr().cuda().to("cpu", non_blocking=True), True),
    ):
        assert late.is_pinned() == pinned
        assert late.device.type == "cpu"


@pytest.mark.parametrize("layout", [torch.sparse_coo, torch.sparse_csr])
def test_sparse_tensors(layout):
    @real
    def program():
        x = torch.eye(3).to_sparse(layout=layout)
        pinned = x.pin_memory()
        assert pinned.is_pinned() and not x.is_pinned() and pinned.to_dense().equal(torch.eye(3))
        parts = (pinned._values(), pinned._indices()) if layout is torch.sparse_coo else (
            pinned.values(), pinned.crow_indices(), pinned.col_indices()
        )  # fmt: skip
        assert all(part.is_pinned() for part in parts)
        assert not x.cuda().is_pinned()
        with pytest.raises(
            RuntimeError,
            match=r"cannot pin '(SparseCsr)?torch.cuda.(sparse.)?FloatTensor' only dense CPU tensors can be pinned",
        ):
            x.cuda().pin_memory()

    program()


@real
def test_memory_that_a_program_registers_is_pinned_until_it_no_longer_is():
    x, other = torch.zeros(8), torch.zeros(8)
    memory = x.untyped_storage()
    pin_memory(memory.data_ptr(), memory.nbytes())
    assert x.is_pinned() and x[4:].is_pinned() and memory.is_pinned() and x.pin_memory() is x
    assert not other.is_pinned() and not x.cuda().is_pinned()
    unpin_memory(memory.data_ptr())
    assert not x.is_pinned() and not memory.is_pinned()
