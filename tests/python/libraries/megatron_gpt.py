"""Trains Megatron-core's GPTModel, with as many ranks of tensor parallelism as TP says, and the rest data parallel."""

import os

import torch
import torch.distributed as dist
from megatron.core import parallel_state, tensor_parallel
from megatron.core.distributed import DistributedDataParallel, DistributedDataParallelConfig, finalize_model_grads
from megatron.core.models.gpt import GPTModel
from megatron.core.models.gpt.gpt_layer_specs import get_gpt_layer_local_spec
from megatron.core.transformer.transformer_config import TransformerConfig


def main():
    rank, world, tp = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]), int(os.environ["TP"])
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl")
    parallel_state.initialize_model_parallel(tensor_model_parallel_size=tp)
    torch.manual_seed(7)
    tensor_parallel.model_parallel_cuda_manual_seed(7)
    config = TransformerConfig(
        num_layers=2, hidden_size=32, num_attention_heads=4, tensor_model_parallel_size=tp, use_cpu_initialization=True,
        pipeline_dtype=torch.float32, hidden_dropout=0.0, attention_dropout=0.0,
        gradient_accumulation_fusion=False, bias_activation_fusion=False,
    )  # fmt: skip
    model = GPTModel(config, get_gpt_layer_local_spec(), vocab_size=64, max_sequence_length=16).cuda()
    model = DistributedDataParallel(config, DistributedDataParallelConfig(), model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    replicas, replica = world // tp, parallel_state.get_data_parallel_rank()
    rows = torch.arange(4 // replicas, device="cuda") + replica * (4 // replicas)
    tokens = (torch.arange(17, device="cuda")[None] * (rows[:, None] + 1)) % 64
    positions = torch.arange(16, device="cuda")[None].expand(len(rows), -1)
    mask = torch.ones(1, 1, 16, 16, device="cuda").triu(1).bool()
    losses = []
    for _ in range(4):
        model.zero_grad_buffer()
        loss = model(tokens[:, :-1], positions, mask, labels=tokens[:, 1:]).mean()
        loss.backward()
        finalize_model_grads([model])
        for p in model.parameters():
            p.grad = p.main_grad
        optimizer.step()
        total = loss.detach().clone()
        dist.all_reduce(total, group=parallel_state.get_data_parallel_group())
        losses.append(total.item() / replicas)
    if rank == 0:
        print("losses", *losses)


main()
