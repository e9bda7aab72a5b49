"""The MLP of a transformer: a column-parallel layer, gelu, and a row-parallel layer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from megatron.core import parallel_state, tensor_parallel
from megatron.core.transformer import TransformerConfig
from torch.profiler import profile

from parallel_models.timeline import Pass


class MLP(torch.nn.Module):
    """h → 4h → h.

    Args:
        config: sizes, dtype and sequence parallelism.
    """

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.linear_fc1 = tensor_parallel.ColumnParallelLinear(
            config.hidden_size, config.ffn_hidden_size, config=config, init_method=config.init_method
        )
        self.linear_fc2 = tensor_parallel.RowParallelLinear(
            config.ffn_hidden_size,
            config.hidden_size,
            config=config,
            init_method=config.output_layer_init_method,
            bias=True,
            input_is_parallel=True,
            skip_bias_add=False,
        )

    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        """[s, b, h] to the same."""
        intermediate, _ = self.linear_fc1(hidden_states)
        output, _ = self.linear_fc2(torch.nn.functional.gelu(intermediate))
        return output


@dataclass(frozen=True)
class Shape:
    """The problem that is timed: tokens of a hidden size, in a dtype, on so many ranks."""

    hidden: int
    tokens: int
    dtype: str
    degree: int
    sequence_parallel: bool


def time_passes(rank: int, shape: Shape, report: Callable[[Pass, Pass], Any]) -> None:
    """One rank's part: a forward and a backward pass. Rank 0 reports them."""
    torch.distributed.init_process_group("nccl")
    torch.cuda.set_device(rank)
    parallel_state.initialize_model_parallel(tensor_model_parallel_size=shape.degree)
    tensor_parallel.model_parallel_cuda_manual_seed(1234)
    config = TransformerConfig(
        tensor_model_parallel_size=shape.degree,
        sequence_parallel=shape.sequence_parallel and shape.degree > 1,
        num_layers=1,
        hidden_size=shape.hidden,
        num_attention_heads=shape.degree,
        params_dtype=getattr(torch, shape.dtype),
    )
    mlp = MLP(config)
    tokens = shape.tokens // shape.degree if config.sequence_parallel else shape.tokens
    hidden = torch.randn(tokens, 1, shape.hidden, dtype=config.params_dtype, device="cuda", requires_grad=True)
    grad = torch.randn_like(hidden)
    forward, output = _timed(lambda: mlp(hidden))
    backward, _ = _timed(lambda: output.backward(grad))
    if rank == 0:
        report(forward, backward)


def _timed(call: Callable[[], Any]) -> tuple[Pass, Any]:
    """Times this rank's device in a call that all ranks make at once."""
    torch.cuda.synchronize()
    torch.distributed.barrier()
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    with profile() as prof:
        start.record()
        result = call()
        end.record()
    kernels = [event for event in prof.events() if event.device_type == "CUDA"]
    communication = [(e.start, e.end) for e in kernels if e.name.startswith("nccl")]
    compute = [(e.start, e.end) for e in kernels if not e.name.startswith("nccl")]
    return Pass(1e3 * start.elapsed_time(end), compute, communication), result
