"""Registries that refuse a name twice: each rank registers its own under one name, as processes do."""

import pytest
import torch
import torch.distributed as dist

import torchemu


def defined(namespace, key):
    """An operation that doubles, and its library, with which it goes."""
    library = torch.library.Library(namespace, "DEF")
    library.define("scaled(Tensor x) -> Tensor")
    library.impl("scaled", lambda x: x * 2, key)
    return getattr(torch.ops, namespace).scaled.default, library


@torchemu.distributed(world_size=3, torch="real")
def test_each_rank_has_the_decomposition_that_it_has_registered():
    from torch._decomp import decomposition_table, get_decompositions, register_decomposition

    dist.init_process_group("gloo")
    rank = dist.get_rank()
    scaled, _library = defined("testing_decomposed", "CompositeExplicitAutograd")
    before = len(decomposition_table)
    register_decomposition(scaled)(lambda x: x * (rank + 2))
    dist.barrier()
    assert len(decomposition_table) == before + 1
    assert decomposition_table[scaled](1) == rank + 2
    assert get_decompositions([scaled])[scaled](1) == rank + 2
    assert torch.ops.aten.addmm.default in decomposition_table
    with pytest.raises(RuntimeError, match=r"duplicate registrations for testing_decomposed\.scaled"):
        register_decomposition(scaled)(lambda x: x)
    dist.barrier()


@torchemu.distributed(world_size=2, torch="real")
def test_each_rank_has_the_decomposition_for_compilers_that_it_has_registered():
    from torch._inductor import decomposition

    dist.init_process_group("gloo")
    rank = dist.get_rank()
    scaled, _library = defined("testing_compiled", "CompositeImplicitAutograd")
    decomposition.register_decomposition([scaled])(lambda x: x * (rank + 2))
    dist.barrier()
    assert decomposition.decompositions[scaled](1) == rank + 2
    assert torch.ops.aten.addmm.default in decomposition.decompositions
    dist.barrier()


@torchemu.distributed(world_size=2, torch="real")
def test_each_rank_has_the_rule_that_it_has_registered():
    from torch.utils._python_dispatch import TorchDispatchMode

    dist.init_process_group("gloo")
    rank = dist.get_rank()

    class Seen(TorchDispatchMode):
        pass

    @torch.library.custom_op("testing_rules::same", mutates_args=())
    def same(x: torch.Tensor) -> torch.Tensor:
        return x.clone()

    torch.library.register_torch_dispatch(
        "testing_rules::same", Seen, lambda mode, func, types, args, kw: torch.full((1,), rank + 5.0)
    )
    dist.barrier()
    x = torch.ones(1)
    with Seen():
        given = torch.ops.testing_rules.same(x)
    assert given.item() == rank + 5
    assert torch.ops.testing_rules.same(x).item() == 1
    dist.barrier()


@torchemu.distributed(world_size=2, torch="real")
def test_each_rank_defines_an_operation_of_triton():
    dist.init_process_group("gloo")
    rank = dist.get_rank()

    @torch.library.triton_op("testing_rules::moved", mutates_args={})
    def moved(x: torch.Tensor) -> torch.Tensor:
        return x + rank

    dist.barrier()
    assert moved(torch.zeros(1)).item() == rank
    dist.barrier()


@torchemu.distributed(world_size=2, torch="real")
def test_each_rank_names_a_compiler():
    from torch._dynamo import lookup_backend, register_backend

    dist.init_process_group("gloo")

    def own(module, inputs):
        return module

    register_backend(own, name="testing_compiler")
    dist.barrier()
    assert lookup_backend("testing_compiler") is own
    assert lookup_backend("eager") is not own
    with pytest.raises(AssertionError, match="duplicate name"):
        register_backend(own, name="testing_compiler")
    dist.barrier()


@torchemu.distributed(world_size=2, torch="real")
def test_each_rank_names_a_data_pipe():
    from torch.utils.data import IterDataPipe, functional_datapipe
    from torch.utils.data.datapipes.iter import IterableWrapper

    dist.init_process_group("gloo")
    rank = dist.get_rank()

    @functional_datapipe("testing_shifted")
    class Shifted(IterDataPipe):
        def __init__(self, source):
            self.source = source

        def __iter__(self):
            return (number + rank for number in self.source)

    dist.barrier()
    assert list(IterableWrapper([1, 2]).testing_shifted()) == [1 + rank, 2 + rank]
    assert list(IterableWrapper([1, 2]).batch(2)) == [[1, 2]]
    dist.barrier()


def test_nothing_is_left_after_a_run():
    from torch._decomp import decomposition_table, global_decomposition_table
    from torch.utils.data import IterDataPipe

    assert type(decomposition_table) is dict is type(IterDataPipe.functions)
    assert global_decomposition_table["post_autograd"] is decomposition_table
