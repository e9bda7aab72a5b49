"""Operations that ranks define: each has its own kernels, under one name, as processes have."""

import pytest
import torch
import torch.distributed as dist

import torchemu


@pytest.mark.parametrize("device", ["cpu", "cuda"])
@torchemu.distributed(world_size=3, torch="real")
def test_each_rank_calls_the_operation_that_it_has_defined(device):
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    for again in range(2):  # the second time it takes the place of the first
        number = torch.tensor(rank + 10 * again)

        @torch.library.custom_op("testing::shifted", mutates_args=())
        def shifted(x: torch.Tensor) -> torch.Tensor:
            return x + number.to(x.device)  # noqa: B023

        @shifted.register_fake
        def _(x):
            return torch.empty_like(x)

        def keep(ctx, inputs, output):
            ctx.factor = rank + 1

        shifted.register_autograd(lambda ctx, grad: grad * ctx.factor, setup_context=keep)
        dist.barrier()  # all have defined it
        x = torch.zeros(2, device=device, requires_grad=True)
        shifted(x).sum().backward()
        assert x.grad.tolist() == [rank + 1.0] * 2
        assert torch.ops.testing.shifted(torch.zeros(1, device=device)).item() == rank + 10 * again
        dist.barrier()


@torchemu.distributed(world_size=2, torch="real")
def test_a_kernel_for_one_device_is_the_ranks():
    dist.init_process_group("gloo")
    rank = dist.get_rank()

    @torch.library.custom_op("testing::placed", mutates_args=(), device_types="cuda")
    def placed(x: torch.Tensor) -> torch.Tensor:
        return x - rank

    dist.barrier()
    assert placed(torch.zeros(1, device="cuda")).item() == -rank


@torchemu.distributed(world_size=2, torch="real")
def test_each_rank_opens_a_library():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    library = torch.library.Library("testing_ranks", "DEF")
    library.define("scaled(Tensor x) -> Tensor")
    library.impl("scaled", lambda x: x * (rank + 2), "CompositeExplicitAutograd")
    dist.barrier()
    assert torch.ops.testing_ranks.scaled(torch.ones(1)).item() == rank + 2
    with pytest.raises(RuntimeError, match="already a kernel registered"):
        library.impl("scaled", lambda x: x, "CompositeExplicitAutograd")
    dist.barrier()
    assert torch.ops.testing_ranks.scaled(torch.ones(1)).item() == rank + 2
    if rank == 0:
        library._destroy()
    dist.barrier()
    if rank == 1:  # which has it still
        assert torch.ops.testing_ranks.scaled(torch.ones(1)).item() == 3


@torchemu.distributed(world_size=2, torch="real")
def test_one_name_has_one_schema():
    dist.init_process_group("gloo")
    library = torch.library.Library("testing_schemas", "FRAGMENT")
    given = ["same(Tensor x) -> Tensor", "same(Tensor y) -> Tensor"]
    if dist.get_rank() == 0:
        library.define(given[0])
    dist.barrier()
    if dist.get_rank() == 1:
        with pytest.raises(RuntimeError, match=r"ranks define testing_schemas::same as same\(Tensor x\)"):
            library.define(given[1])


def test_nothing_is_left_after_a_run():
    @torchemu.distributed(world_size=2, torch="real")
    def program():
        torch.library.define("testing_left::none", "(Tensor x) -> Tensor")

    program()
    program()
    assert not hasattr(torch.ops.testing_left, "none")


@torchemu.distributed(world_size=1, torch="real")
def test_operations_for_any_device_take_what_they_are_made_of():
    library = torch.library.Library("testing_any", "DEF")
    library.define("thrice(Tensor x) -> Tensor")
    library.impl("thrice", lambda x: x + x + x, "CompositeExplicitAutograd")
    x = torch.ones(1 << 22, device="cuda")

    def took(function):
        torch.cuda.synchronize()
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        result = function(x)
        end.record()
        torch.cuda.synchronize()
        assert result.device == x.device and torch.equal(result, torch.full_like(x, 3))
        return start.elapsed_time(end)

    assert took(torch.ops.testing_any.thrice) == took(lambda x: x + x + x) > 0


PACKAGE = """
import torch

@torch.library.custom_op("testing::packaged", mutates_args=())
def packaged(x: torch.Tensor) -> torch.Tensor:
    return x + 7
"""


def test_an_installed_package_defines_its_operations_once_for_all(tmp_path, monkeypatch):
    folder = tmp_path / "site-packages"
    folder.mkdir()
    (folder / "testing_packaged.py").write_text(PACKAGE)
    monkeypatch.syspath_prepend(str(folder))

    @torchemu.distributed(world_size=2, torch="real")
    def program():
        import testing_packaged

        dist.init_process_group("gloo")
        dist.barrier()
        for device in ("cpu", "cuda"):
            assert testing_packaged.packaged(torch.zeros(1, device=device)).item() == 7

    program()
    program()  # it is loaded still
