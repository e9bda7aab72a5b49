"""torch.cuda.is_initialized, with what PyTorch 2.11 said on an H200 after each first call of a process."""

import pytest
import torch
import torch.distributed as dist

import torchemu

real = torchemu.distributed(world_size=1, torch="real")

BEGIN = {
    "accelerator.synchronize()", "accelerator.set_device_index(0)", "accelerator.current_device_index()",
    "accelerator.current_stream()", "cuda.set_device(0)", "cuda.current_device()", "cuda.get_device_properties(0)",
    "cuda.synchronize()", "cuda.current_stream()", "cuda.default_stream()", "cuda.Event().record()",
    "cuda.get_rng_state()", "cuda.init()", "cuda.device(0).__enter__()", "cuda.is_bf16_supported()",
    "cuda.get_device_name()", "cuda.reset_peak_memory_stats()", "cuda.mem_get_info()", "cuda.ipc_collect()",
    "cuda.can_device_access_peer(0, 0)", "cuda._exchange_device(0)", "cuda.initial_seed()",
    "cuda.get_rng_state_all()", "ones(1, device='cuda')", "ones(1).cuda()", "random.fork_rng([0]).__enter__()",
}  # fmt: skip

LEAVE = {
    "autocast('cuda').__enter__()", "cuda.device_count()", "cuda.is_available()", "cuda.manual_seed(1)",
    "cuda.memory_allocated()", "cuda.memory_stats()", "cuda.empty_cache()", "cuda.Event()", "cuda.Stream()",
    "cuda.manual_seed_all(1)", "cuda.get_arch_list()", "cuda.CUDAGraph()", "cuda.memory_snapshot()",
    "cuda.nvtx.range_push('')", "cuda.seed()", "cuda.is_current_stream_capturing()", "ones(1).pin_memory()",
    "ones(1).is_pinned()", "manual_seed(1)", "Generator('cuda')", "accelerator.current_accelerator()",
    "tensor([1], pin_memory=True)", "distributed.init_process_group('nccl')", "nn.Linear(2, 2)",
}  # fmt: skip


@pytest.mark.parametrize("call", sorted(BEGIN | LEAVE))
def test_after_the_first_call(call):
    @real
    def program():
        assert not torch.cuda.is_initialized()
        eval("torch." + call)
        assert torch.cuda.is_initialized() == (call in BEGIN)

    program()


def test_each_rank_has_its_own():
    @torchemu.distributed(world_size=2, torch="real")
    def program():
        dist.init_process_group("gloo")
        if dist.get_rank() == 0:
            torch.cuda.init()
        dist.barrier()
        assert torch.cuda.is_initialized() == (dist.get_rank() == 0)

    program()


class Moved(torch.utils.data.Dataset):
    """Rows that are put on the device where they are asked for."""

    def __len__(self):
        return 2

    def __getitem__(self, index):
        said = torch.cuda.is_initialized(), torch.cuda._is_in_bad_fork()
        return torch.full((1,), float(index), device="cuda"), said


@pytest.mark.parametrize(("method", "begun"), [(None, True), (None, False), ("spawn", True), ("fork", False)])
def test_workers_of_a_loader(method, begun):
    """Forked workers of a process that has initialized CUDA cannot use it."""

    @real
    def program():
        if begun:
            torch.cuda.init()
        loader = torch.utils.data.DataLoader(Moved(), None, num_workers=1, multiprocessing_context=method)
        if begun and method != "spawn":
            with pytest.raises(
                RuntimeError, match=r"(?s)worker process 0.*Cannot re-initialize CUDA in forked subproc"
            ):
                list(loader)
        else:
            rows = list(loader)
            assert [row.tolist() for row, _ in rows] == [[0], [1]]
            assert [said for _, said in rows] == [[False, False], [True, False]]
        assert torch.cuda.is_initialized() == begun and not torch.cuda._is_in_bad_fork()

    program()
