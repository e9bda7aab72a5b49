"""A small GPT whose layers are divided among ranks, and its training."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from megatron.core import parallel_state, tensor_parallel
from megatron.core.distributed import finalize_model_grads
from megatron.core.transformer import TransformerConfig

from parallel_models.mlp import MLP


@dataclass(frozen=True)
class Task:
    """The training of a model: its sizes, and for how long.

    Attributes:
        vocabulary, sequence, batch: of the texts.
        hidden, heads, layers: of the model.
        steps, rate: of Adam.
        dtype: of parameters and activations.
        degree: ranks among which layers are divided.
        sequence_parallel: whether what is between them is divided, too.
    """

    vocabulary: int = 64
    sequence: int = 16
    batch: int = 4
    hidden: int = 64
    heads: int = 8
    layers: int = 2
    steps: int = 50
    rate: float = 3e-3
    dtype: str = "float64"
    degree: int = 1
    sequence_parallel: bool = False

    def config(self) -> TransformerConfig:
        """Returns the configuration of Megatron's layers."""
        return TransformerConfig(
            tensor_model_parallel_size=self.degree,
            sequence_parallel=self.sequence_parallel,
            num_layers=self.layers,
            hidden_size=self.hidden,
            num_attention_heads=self.heads,
            params_dtype=getattr(torch, self.dtype),
            use_cpu_initialization=True,  # so that the model does not depend on the number of ranks
        )


class LayerNorm(torch.nn.LayerNorm):
    """One whose parameters are marked: with sequence parallelism a rank's gradients are those of its tokens."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__(config.hidden_size, config.layernorm_epsilon, dtype=config.params_dtype)
        for parameter in self.parameters():
            parameter.sequence_parallel = config.sequence_parallel


class Attention(torch.nn.Module):
    """Causal self-attention. Each rank has some of the heads."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        h = config.hidden_size
        self.heads = config.num_attention_heads // config.tensor_model_parallel_size
        self.linear_qkv = tensor_parallel.ColumnParallelLinear(h, 3 * h, config=config, init_method=config.init_method)
        self.linear_proj = tensor_parallel.RowParallelLinear(
            h,
            h,
            config=config,
            init_method=config.output_layer_init_method,
            bias=True,
            input_is_parallel=True,
            skip_bias_add=False,
        )

    def forward(self, hidden_states: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """[s, b, h], and what a position must not see, [s, s]."""
        mixed, _ = self.linear_qkv(hidden_states)
        s, b, width = mixed.shape
        size = width // (3 * self.heads)
        query, key, value = mixed.view(s, b * self.heads, 3 * size).transpose(0, 1).chunk(3, dim=-1)
        scores = torch.bmm(query, key.transpose(1, 2)) / math.sqrt(size)
        probabilities = torch.softmax(scores.masked_fill(mask, -10000.0), dim=-1)
        context = torch.bmm(probabilities, value).transpose(0, 1).reshape(s, b, self.heads * size)
        output, _ = self.linear_proj(context)
        return output


class TransformerLayer(torch.nn.Module):
    """Attention and an MLP, each after a layer norm and beside a residual connection."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.input_layernorm, self.self_attention = LayerNorm(config), Attention(config)
        self.pre_mlp_layernorm, self.mlp = LayerNorm(config), MLP(config)

    def forward(self, hidden_states: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """[s, b, h], or the rank's part along s, to the same."""
        hidden_states = hidden_states + self.self_attention(self.input_layernorm(hidden_states), mask)
        return hidden_states + self.mlp(self.pre_mlp_layernorm(hidden_states))


class GPT(torch.nn.Module):
    """Tokens to the loss of predicting the next ones. The output layer has the embedding's weight.

    Args:
        task: sizes.
        config: the same, for layers.
    """

    def __init__(self, task: Task, config: TransformerConfig) -> None:
        super().__init__()
        self.config = config
        self.word_embeddings = tensor_parallel.VocabParallelEmbedding(
            task.vocabulary, task.hidden, init_method=config.init_method, config=config
        )
        self.position_embeddings = torch.nn.Embedding(task.sequence, task.hidden, dtype=config.params_dtype)
        config.init_method(self.position_embeddings.weight)
        self.layers = torch.nn.ModuleList(TransformerLayer(config) for _ in range(task.layers))
        self.final_layernorm = LayerNorm(config)
        self.output_layer = tensor_parallel.ColumnParallelLinear(
            task.hidden,
            task.vocabulary,
            config=config,
            init_method=config.init_method,
            bias=False,
            skip_weight_param_allocation=True,
        )
        ahead = torch.ones(task.sequence, task.sequence, dtype=torch.bool).triu(1)
        self.register_buffer("mask", ahead, persistent=False)
        self.register_buffer("positions", torch.arange(task.sequence), persistent=False)

    def forward(self, tokens: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """The loss of each token, [s, b], for tokens and labels of [b, s]."""
        embedded = self.word_embeddings(tokens) + self.position_embeddings(self.positions)
        hidden = embedded.transpose(0, 1).contiguous()
        if self.config.sequence_parallel:
            hidden = tensor_parallel.scatter_to_sequence_parallel_region(hidden)
        for layer in self.layers:
            hidden = layer(hidden, self.mask)
        logits, _ = self.output_layer(self.final_layernorm(hidden), weight=self.word_embeddings.weight)
        return tensor_parallel.vocab_parallel_cross_entropy(logits, labels.transpose(0, 1).contiguous())


class Texts:
    """Texts that can be learnt: each token follows from the one before by one of four rules, which the first tells."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self._generator = torch.Generator().manual_seed(7)

    def __iter__(self) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        """Batches of tokens and of the next tokens, [b, s]; the same on all ranks."""
        task = self._task
        while True:
            token = torch.randint(task.vocabulary, (task.batch,), generator=self._generator)
            step, text = 2 * (token % 4) + 1, [token]
            for _ in range(task.sequence):
                text.append((text[-1] + step) % task.vocabulary)
            whole = torch.stack(text, dim=1).cuda()
            yield whole[:, :-1].contiguous(), whole[:, 1:].contiguous()


class Adam:
    """torch.optim.Adam; for parameters of short floats on copies of them in float32, as Megatron's optimizers do it."""

    def __init__(self, model: torch.nn.Module, rate: float) -> None:
        self._parameters = list(model.parameters())
        short = self._parameters[0].dtype in (torch.bfloat16, torch.float16)
        self._main = [p.detach().float() for p in self._parameters] if short else self._parameters
        self._adam = torch.optim.Adam(self._main, lr=rate)

    def step(self) -> None:
        """Moves the parameters along their gradients, and forgets these."""
        if self._main is self._parameters:
            self._adam.step()
        else:
            for main, parameter in zip(self._main, self._parameters, strict=True):
                main.grad = parameter.grad.float()
            self._adam.step()
            with torch.no_grad():
                for main, parameter in zip(self._main, self._parameters, strict=True):
                    parameter.copy_(main)
        for parameter in self._parameters:
            parameter.grad = None


@dataclass(frozen=True)
class Training:
    """The notes of one rank.

    Attributes:
        losses: the mean loss of each step.
        time: simulated, of a step, in microseconds.
    """

    losses: list[float]
    time: float


def train(rank: int, task: Task, notes: list[Training | None]) -> None:
    """One rank's part."""
    torch.distributed.init_process_group("nccl")
    torch.cuda.set_device(rank)
    parallel_state.initialize_model_parallel(tensor_model_parallel_size=task.degree)
    torch.manual_seed(1234)
    model = GPT(task, task.config()).cuda()
    optimizer = Adam(model, task.rate)
    losses = []
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    for _, (tokens, labels) in zip(range(task.steps), Texts(task), strict=False):
        loss = model(tokens, labels).mean()
        loss.backward()
        finalize_model_grads([model])
        optimizer.step()
        losses.append(loss.item())
    end.record()
    torch.cuda.synchronize()
    notes[rank] = Training(losses, 1e3 * start.elapsed_time(end) / task.steps)
