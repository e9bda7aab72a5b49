"""Under which names programs import tensor parallelism, and that each rank has a state of its own there."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest
from launch import launch, lines, written

from torchemu import tp
from torchemu.frontends import stand_ins

MLP = """
    import os
    import torch
    import torch.distributed as dist
    from megatron.core import ModelParallelConfig, parallel_state, tensor_parallel
    from megatron.core.tensor_parallel.layers import ColumnParallelLinear, RowParallelLinear
    from megatron.core.distributed import finalize_model_grads
    from megatron.core.tensor_parallel.data import broadcast_data
    from megatron.core.tensor_parallel.utils import VocabUtility
    from megatron.core.transformer.transformer_config import TransformerConfig
    from megatron.core.utils import divide, init_method_normal

    dist.init_process_group("nccl")
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    parallel_state.initialize_model_parallel(tensor_model_parallel_size=2)
    tensor_parallel.model_parallel_cuda_manual_seed(1)
    config = ModelParallelConfig(tensor_model_parallel_size=2)
    up = ColumnParallelLinear(4, 8, config=config, init_method=torch.nn.init.ones_)
    down = RowParallelLinear(8, 4, config=config, init_method=torch.nn.init.ones_, bias=True, input_is_parallel=True,
                             skip_bias_add=False)
    x = torch.full((1, 4), float(dist.get_rank() // 2 + 1), device="cuda", requires_grad=True)
    y, _ = down(up(x)[0])
    y.sum().backward()
    print(dist.get_rank(), parallel_state.get_tensor_model_parallel_rank(), up.weight.shape[0] == divide(8, 2),
          y.tolist(), x.grad.tolist())
"""


def test_a_script_for_megatron_runs_as_it_is(tmp_path: Path) -> None:
    outcome = launch("--nproc-per-node", "4", written(tmp_path, MLP))
    assert lines(outcome) == [f"{r} {r % 2} True {[[32.0 * (r // 2 + 1)] * 4]} {[[32.0] * 4]}" for r in range(4)]


def test_kernbench_tp_in_a_run(tmp_path: Path) -> None:
    program = """
        import torch
        from kernbench.tp.layers import RowParallelLinear
        from kernbench.tp.mappings import gather_from_tensor_model_parallel_region
        from kernbench.tp.parallel_state import get_tensor_model_parallel_group, get_tensor_model_parallel_rank
        from kernbench.tp.parallel_state import initialize_model_parallel
        from kernbench.tp.primitives import reduce
        import kernbench.tp

        torch.distributed.init_process_group()
        initialize_model_parallel(2)
        rank = get_tensor_model_parallel_rank()
        assert kernbench.tp.RowParallelLinear is RowParallelLinear
        group = get_tensor_model_parallel_group()
        print(rank, gather_from_tensor_model_parallel_region(torch.tensor([rank])).tolist(),
              reduce(torch.tensor([rank + 1]), group).tolist())
    """
    assert lines(launch("--nproc-per-node", "2", written(tmp_path, program))) == ["0 [0, 1] [3]", "1 [0, 1] [3]"]


def test_modules_that_only_megatron_has(tmp_path: Path) -> None:
    program = """
        for name in ("megatron.core.models.gpt", "megatron.training", "kernbench.training"):
            try:
                __import__(name)
            except ModuleNotFoundError as error:
                print(error.name, error, sep=": ")
    """
    lacks = "torchemu's stand-in for Megatron has no {0}: install megatron-core, and run with --torch real"
    assert lines(launch("--nproc-per-node", "1", written(tmp_path, program))) == [
        "kernbench.training: No module named 'kernbench.training'",
        *(f"{name}: {lacks.format(name)}" for name in ("megatron.core.models", "megatron.training")),
    ]


def test_programs_that_spawn_their_ranks(tmp_path: Path) -> None:
    program = """
        import torch
        from megatron.core import mpu

        def rank(r):
            torch.distributed.init_process_group("gloo", init_method="tcp://localhost:2950", rank=r, world_size=2)
            mpu.initialize_model_parallel(2)
            print(r, mpu.get_tensor_model_parallel_rank())

        if __name__ == "__main__":
            torch.multiprocessing.spawn(rank, nprocs=2)
    """
    assert lines(launch("--nproc-per-node", "1", written(tmp_path, program))) == ["0 0", "1 1"]


def test_megatron_itself_wins(tmp_path: Path) -> None:
    """Where it can be imported, and each rank has its own modules of it; a folder of that name is not it."""
    program = (
        "import os\nfrom megatron.core import parallel_state\nprint(parallel_state.__name__, parallel_state.WHO)\n"
    )
    (tmp_path / "megatron" / "core").mkdir(parents=True)
    file = written(tmp_path, "from megatron.core import parallel_state\nprint(parallel_state.__name__)\n")
    assert lines(launch("--nproc-per-node", "2", file)) == ["torchemu.tp.parallel_state"] * 2
    written(tmp_path / "megatron" / "core", "")
    (tmp_path / "megatron" / "core" / "__init__.py").write_text("")
    written(tmp_path / "megatron" / "core", "import os\nWHO = os.environ['RANK']\n", "parallel_state.py")
    file = written(tmp_path, program)
    found = lines(launch("--nproc-per-node", "2", file))
    assert found == ["megatron.core.parallel_state 0", "megatron.core.parallel_state 1"]


def test_outside_of_runs_there_are_no_stand_ins() -> None:
    with pytest.raises(ImportError):
        __import__("megatron.core")
    with stand_ins.installed():
        from megatron.core import parallel_state, tensor_parallel  # type: ignore[import-not-found]

        assert parallel_state is tp.parallel_state
        assert tensor_parallel.ColumnParallelLinear is tp.ColumnParallelLinear
    with pytest.raises(ImportError):
        __import__("megatron.core")


def test_loaded_before_a_run(tmp_path: Path) -> None:
    """A test's module may have imported Megatron when its ranks begin: they have it too."""
    program = """
        import torchemu.pytest_plugin
        from megatron.core import parallel_state

        @torchemu.distributed(world_size=2)
        def test_ranks():
            from megatron.core import parallel_state as again

            assert again is parallel_state
            parallel_state.initialize_model_parallel(2)
            assert parallel_state.get_tensor_model_parallel_world_size() == 2
    """
    file = written(tmp_path, program, "test_loaded.py")
    with stand_ins.installed():
        import importlib.util

        spec = importlib.util.spec_from_file_location("test_loaded", file)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        module.test_ranks()


SIGNATURES = {
    "initialize_model_parallel": "tensor_model_parallel_size=1, pipeline_model_parallel_size=1, "
    "virtual_pipeline_model_parallel_size=None, pipeline_model_parallel_comm_backend=None, use_sharp=False, "
    "context_parallel_size=1, hierarchical_context_parallel_sizes=None, hybrid_context_parallel=False, "
    "expert_model_parallel_size=1, gtp_remat_size=1, expert_gtp_remat_size=1, num_distributed_optimizer_instances=1, "
    "expert_tensor_parallel_size=None, nccl_communicator_config_path=None, distributed_timeout_minutes=30, "
    "order='tp-cp-ep-dp-pp', get_embedding_ranks=None, get_position_embedding_ranks=None, "
    "create_gloo_process_groups=True, high_priority_stream_groups=None, sharp_enabled_group=None, rank_offset=0, "
    "local_world_size=None",
    "ColumnParallelLinear": "input_size, output_size, *, config, init_method, bias=True, gather_output=False, "
    "stride=1, keep_master_weight_for_test=False, skip_bias_add=False, skip_weight_param_allocation=False, "
    "embedding_activation_buffer=None, grad_output_buffer=None, is_expert=False, tp_comm_buffer_name=None, "
    "disable_grad_reduce=False, tp_group=None, name=None, output_dtype=None, pg_collection=None",
    "RowParallelLinear": "input_size, output_size, *, config, init_method, bias, input_is_parallel, skip_bias_add, "
    "stride=1, keep_master_weight_for_test=False, is_expert=False, tp_comm_buffer_name=None, tp_group=None, name=None, "
    "pg_collection=None",
    "VocabParallelEmbedding": "num_embeddings, embedding_dim, *, init_method, reduce_scatter_embeddings=False, config, "
    "tp_group=None, pg_collection=None",
}


@pytest.mark.parametrize("name", SIGNATURES)
def test_signatures(name: str) -> None:
    called = getattr(tp, name, None) or getattr(tp.parallel_state, name)
    plain = [p.replace(annotation=inspect.Parameter.empty) for p in inspect.signature(called).parameters.values()]
    assert str(inspect.Signature(plain)) == f"({SIGNATURES[name]})"
