"""Arguments that PyTorch's NCCL refuses, with its errors; its words are those of ProcessGroupNCCL.cpp."""

import pytest
import torch
import torch.distributed as dist

import torchemu


def on_devices(program, backend="nccl"):
    @torchemu.distributed(world_size=2, torch="real")
    def test():
        dist.init_process_group(backend)
        torch.cuda.set_device(dist.get_rank())
        program(dist.group.WORLD)

    test()


def test_bitwise_reductions():
    def program(group):
        x = torch.ones(2, dtype=torch.int64, device="cuda")
        for op in (dist.ReduceOp.BAND, dist.ReduceOp.BOR, dist.ReduceOp.BXOR):
            for call in (dist.all_reduce, lambda t, op: dist.reduce(t, 0, op)):
                with pytest.raises(ValueError, match=f"Cannot use ReduceOp.{op.name} with NCCL"):
                    call(x, op=op)
        dist.all_reduce(x, op=dist.ReduceOp.PRODUCT)
        assert x.tolist() == [1, 1]

    on_devices(program)


def test_tensors_that_do_not_fit():
    def program(group):
        one, three = torch.ones(1, device="cuda"), torch.ones(3, device="cuda")
        with pytest.raises(ValueError, match="output tensor size must be equal to world_size times input tensor size"):
            dist.all_gather_into_tensor(three, one)
        with pytest.raises(TypeError, match="output tensor must have the same type as input tensor"):
            dist.all_gather_into_tensor(three.long(), one)
        with pytest.raises(ValueError, match="input tensor must be the same size as output size times world size"):
            dist.reduce_scatter_tensor(three, one)
        with pytest.raises(TypeError, match="input tensor must be the same type as the output tensor"):
            dist.reduce_scatter_tensor(three.long(), one)

    on_devices(program)


@pytest.mark.parametrize(("backend", "kind", "name"), [("nccl", ValueError, "NCCL"), ("gloo", RuntimeError, "Gloo")])
def test_roots_that_are_not_there(backend, kind, name):
    def program(group):
        x = torch.ones(1, device="cuda" if backend == "nccl" else "cpu")
        options = dist.GatherOptions()
        options.rootRank = 2
        with pytest.raises(kind, match=f"ProcessGroup{name}::gather: invalid root rank: 2"):
            group.gather([[x, x]], [x], options)

    on_devices(program, backend)


def test_without_options_the_root_is_the_first():
    def program(group):
        x = torch.full((1,), dist.get_rank() + 1.0, device="cuda")
        group.reduce([x]).wait()
        assert x.item() == (3.0 if dist.get_rank() == 0 else 2.0)
        outs = [[torch.zeros(1, device="cuda") for _ in range(2)]] if dist.get_rank() == 0 else []
        group.gather(outs, [x]).wait()
        assert [float(t) for row in outs for t in row] == ([3.0, 2.0] if dist.get_rank() == 0 else [])

    on_devices(program)


GAPS = {
    "all_reduce": dist.all_reduce,
    "broadcast": lambda t: dist.broadcast(t, 0),
    "reduce": lambda t: dist.reduce(t, 0),
    "all_gather": lambda t: dist.all_gather([torch.empty(t.shape, device="cuda") for _ in range(2)], t),
    "all_gather_into_tensor, of": lambda t: dist.all_gather_into_tensor(torch.empty(2 * t.numel(), device="cuda"), t),
    "all_gather_into_tensor, into": lambda t: dist.all_gather_into_tensor(
        t, torch.empty(t.numel() // 2, device="cuda")
    ),
    "reduce_scatter": lambda t: dist.reduce_scatter(t, [torch.empty(t.shape, device="cuda") for _ in range(2)]),
    "gather": lambda t: dist.gather(
        t, [torch.empty(t.shape, device="cuda") for _ in range(2)] if dist.get_rank() == 0 else None
    ),
    "all_to_all, of": lambda t: dist.all_to_all([torch.empty(t.shape, device="cuda") for _ in range(2)], [t, t]),
    "all_to_all, into": lambda t: dist.all_to_all([t, t], [torch.empty(t.shape, device="cuda") for _ in range(2)]),
    "all_to_all_single, of": lambda t: dist.all_to_all_single(torch.empty(t.shape, device="cuda"), t),
    "all_to_all_single, into": lambda t: dist.all_to_all_single(t, torch.empty(t.shape, device="cuda")),
}


@pytest.mark.parametrize("call", list(GAPS))
def test_collectives_of_tensors_with_gaps(call):
    def program(group):
        for given in (torch.ones(2, 4, device="cuda")[:, ::2], torch.ones(2, 4, device="cuda").t()):
            with pytest.raises(ValueError, match="Tensors must be contiguous"):
                GAPS[call](given)

    on_devices(program)


def test_collectives_of_images_whose_channels_come_last():
    def program(group):
        x = torch.arange(48.0, device="cuda").view(1, 3, 4, 4).to(memory_format=torch.channels_last)
        dist.all_reduce(x)
        assert x.flatten().tolist() == [2.0 * i for i in range(48)]

    on_devices(program)


def test_messages_of_tensors_with_gaps():
    """Gloo's texts are those of 2 processes; NCCL's send what lies there, and warn."""

    def program(group):
        x, other = torch.zeros(4, 4)[:, ::2], 1 - dist.get_rank()
        for call in (dist.send, dist.isend, dist.recv, dist.irecv):
            with pytest.raises(RuntimeError, match="input tensor has to be contiguous"):
                call(x, other)
        with pytest.raises(RuntimeError, match="input tensor has to be contiguous"):
            dist.recv(x)

    on_devices(program, "gloo")


def test_reductions_of_several_tensors():
    """NCCL 2.28 of PyTorch 2.11 says so on one GPU: a coalesced all_reduce takes tensors in any order, without gaps."""

    def program(group):
        rank = dist.get_rank()
        x, y = torch.arange(8.0, device="cuda").view(2, 4), torch.full((3,), rank + 1.0, device="cuda")
        for given in ([x[:, ::2]], [y, x[:, ::2]], [y[:1].expand(4)]):
            with pytest.raises(ValueError, match="Tensors must be non-overlapping and dense"):
                group.allreduce_coalesced(given)
            with (
                pytest.raises(ValueError, match="Tensors must be non-overlapping and dense"),
                dist._coalescing_manager(group, torch.device("cuda")),
            ):
                for tensor in given:
                    dist.all_reduce(tensor)
        with pytest.raises(TypeError, match="Tensors must have identical type"):
            group.allreduce_coalesced([x, y.long()])
        group.allreduce_coalesced([x.t(), y]).wait()
        assert x.flatten().tolist() == [2.0 * i for i in range(8)] and y.tolist() == [3, 3, 3]

    on_devices(program)


@pytest.mark.parametrize(("backend", "kind", "name"), [("nccl", ValueError, "NCCL"), ("gloo", RuntimeError, "Gloo")])
def test_lists_of_gather_and_scatter(backend, kind, name):
    def program(group):
        x = torch.ones(2, device="cuda" if backend == "nccl" else "cpu")
        for verb, what in (("gather", "output"), ("scatter", "input")):
            call = group.gather if verb == "gather" else lambda lists, given: group.scatter(given, lists)
            start = f"ProcessGroup{name}::{verb}: "
            if dist.get_rank() != 0:
                continue
            with pytest.raises(kind, match=start + f"requires a single-element {what} "):
                call([], [x])
            with pytest.raises(kind, match=start + f"Incorrect {what} list size 1. {what.capitalize()} list size"):
                call([[x]], [x])
            with pytest.raises(kind, match=start + r"invalid tensor size at index 0 \(expected \(2\), got \(3\)\)"):
                call([[x.new_ones(3), x]], [x])

    on_devices(program, backend)
