"""Plans: read through a door, run through here as the Go core does, with the same bits in the same time."""

from __future__ import annotations

import dataclasses
import json
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from conftest import ROOT, OpenWorld
from tp_ranks import on_tensor_parallel_ranks

import torchemu as torch
import torchemu.distributed as dist
from torchemu import tp
from torchemu.bridge.binding import go
from torchemu.frontends.numpy._plans import COLLECTIVES, execute, plans
from torchemu.frontends.numpy._tensor import dispatch
from torchemu.frontends.numpy.plan_operations import Operations

GOLDEN = (ROOT / "tests" / "golden" / "tp_plans.txt").read_text()
"""Results of the Go core's layers on the same data, and how long they take; tp/golden_test.go writes them."""

SEQUENCE, BATCH, INPUTS, OUTPUTS, VOCABULARY, HIDDEN = 24, 2, 24, 48, 48, 10


def forms() -> list[tuple[dict[str, Any], list[str]]]:
    """The layers of the golden file, each with a line for every rank."""
    found: list[tuple[dict[str, Any], list[str]]] = []
    for line in GOLDEN.splitlines():
        if line.startswith("{"):
            found.append((json.loads(line), []))
        else:
            found[-1][1].append(line.strip())
    return found


def patterned(step: int, *shape: int) -> np.ndarray:
    """Whole numbers from -2 to 2, whose sums and products every dtype holds."""
    i = np.arange(np.prod(shape))
    return ((step * i + i // 5) % 5 - 2.0).reshape(shape)


def tokens_in(*shape: int) -> np.ndarray:
    i = np.arange(np.prod(shape))
    return ((7 * i + i // 3) % VOCABULARY).reshape(shape)


class Layer:
    """A layer of the golden file on a rank.

    Args:
        form: what the file says of it.
        rank: whose part.
    """

    def __init__(self, form: dict[str, Any], rank: int) -> None:
        self.form, self.rank, self.ranks = form, rank, form["ranks"]
        self.dtype = getattr(torch, form["dtype"])
        config = tp.ModelParallelConfig(
            tensor_model_parallel_size=self.ranks, sequence_parallel=form["sp"], params_dtype=self.dtype,
            perform_initialization=False,
        )  # fmt: skip
        self.config, self.init = config, torch.nn.init.zeros_
        self.parameters: list[Any] = []
        self.call, self.x, self.grad = getattr(self, form["layer"])()

    def tensor(self, array: np.ndarray, dim: int = 0, divided: bool = False, dtype: Any = None) -> Any:
        """The array, or the rank's part of it."""
        if divided:
            array = np.split(array, self.ranks, axis=dim)[self.rank]
        return torch.tensor(array.tolist(), dtype=dtype or self.dtype).reshape(array.shape)

    def set(self, parameter: Any, array: np.ndarray, dim: int = 0, divided: bool = True) -> None:
        with torch.no_grad():
            parameter.copy_(self.tensor(array, dim, divided))
        self.parameters.append(parameter)

    def column(self) -> tuple[Callable[[Any], Any], Any, Any]:
        sp, whole = self.form["sp"], self.form["whole"]
        layer = tp.ColumnParallelLinear(INPUTS, OUTPUTS, config=self.config, init_method=self.init, gather_output=whole)
        self.set(layer.weight, patterned(3, OUTPUTS, INPUTS))
        self.set(layer.bias, patterned(4, OUTPUTS))
        x = self.tensor(patterned(1, SEQUENCE, BATCH, INPUTS), 0, sp)
        return lambda x: layer(x)[0], x, self.tensor(patterned(2, SEQUENCE, BATCH, OUTPUTS), 2, not whole)

    def row(self) -> tuple[Callable[[Any], Any], Any, Any]:
        sp, whole = self.form["sp"], self.form["whole"]
        layer = tp.RowParallelLinear(
            INPUTS, OUTPUTS, config=self.config, init_method=self.init, bias=True, input_is_parallel=not whole,
            skip_bias_add=False,
        )  # fmt: skip
        self.set(layer.weight, patterned(3, OUTPUTS, INPUTS), 1)
        self.set(layer.bias, patterned(4, OUTPUTS), divided=False)
        x = self.tensor(patterned(1, SEQUENCE, BATCH, INPUTS), 2, not whole)
        return lambda x: layer(x)[0], x, self.tensor(patterned(2, SEQUENCE, BATCH, OUTPUTS), 0, sp)

    def embedding(self) -> tuple[Callable[[Any], Any], Any, Any]:
        sp = self.form["sp"]
        layer = tp.VocabParallelEmbedding(
            VOCABULARY, HIDDEN, init_method=self.init, reduce_scatter_embeddings=sp, config=self.config
        )
        self.set(layer.weight, patterned(3, VOCABULARY, HIDDEN))
        shape = (SEQUENCE, BATCH, HIDDEN) if sp else (BATCH, SEQUENCE, HIDDEN)
        tokens = self.tensor(tokens_in(BATCH, SEQUENCE), dtype=torch.int64)
        return layer, tokens, self.tensor(patterned(2, *shape), 0, sp)

    def loss(self) -> tuple[Callable[[Any], Any], Any, Any]:
        logits = self.tensor(patterned(3, SEQUENCE, BATCH, VOCABULARY), 2, True)
        target = self.tensor(tokens_in(SEQUENCE, BATCH), dtype=torch.int64)
        grad = self.tensor(patterned(1, SEQUENCE, BATCH), dtype=torch.float32)
        return lambda x: tp.vocab_parallel_cross_entropy(x, target, self.form["smooth"]), logits, grad

    def shown(self, t: Any) -> str:
        """Returns what the golden file has of a tensor."""
        if self.form["layer"] != "loss":
            return f"{zlib.crc32(t.detach().contiguous().view(torch.uint8).numpy().tobytes()):08x}"
        return f"{t.detach().double().abs().sum().item():.3g}"

    def run(self) -> str:
        """The line of the golden file."""
        if self.x.dtype.is_floating_point:
            self.x.requires_grad_()
        marks = [torch.cuda.Event(enable_timing=True) for _ in range(4)]
        torch.cuda.synchronize()
        marks[0].record()
        y = self.call(self.x)
        marks[1].record()
        torch.cuda.synchronize()
        marks[2].record()
        y.backward(self.grad)
        marks[3].record()
        torch.cuda.synchronize()
        forward, backward = (round(1e9 * marks[i].elapsed_time(marks[i + 1])) for i in (0, 2))
        leaves = [self.x] * self.x.requires_grad + self.parameters
        grads = " ".join(self.shown(leaf.grad) for leaf in leaves)
        return f"rank {self.rank}: {forward} ps {self.shown(y)} {backward} ps {grads}"


def named(part: Any) -> str:
    return "-".join(map(str, part.values())) if isinstance(part, dict) else ""


@pytest.mark.parametrize(("form", "lines"), forms(), ids=named)
def test_the_same_bits_in_the_same_time(open_world: OpenWorld, form: dict[str, Any], lines: list[str]) -> None:
    """The Go core runs through the same plans on its own tensors. Only losses, which are no whole numbers, round
    differently there."""
    open_world(f"name: test\nsystem: {{sips: {{count: {form['ranks']}}}}}\nhost: {{launch_overhead: 0}}\n")
    assert on_tensor_parallel_ranks(form["ranks"], lambda rank: Layer(form, rank).run()) == lines


# -- the executor, on values of others


class Free:
    """Operations that cost nothing."""

    def local(self, step: Any, operands: Any) -> Any:
        return getattr(self, step.op)(*operands, **step.parameters)

    def collective(self, step: Any, operands: Any) -> Any:
        return getattr(self, step.op)(*operands, **step.parameters, beside=step.beside)


class Logged(Free):
    """Operations on texts: each notes what is done, and returns what that is."""

    def __init__(self) -> None:
        self.log: list[str] = []

    def __getattr__(self, op: str) -> Callable[..., Any]:
        def do(*operands: str, beside: bool = False, **parameters: Any) -> Any:
            self.log.append(op + "…" * beside)
            if op not in COLLECTIVES:
                return f"{op}({', '.join(operands)})"
            return f"{op}({operands[0]})", Logged.Work(self, op) if beside else None

        return do

    class Work:
        def __init__(self, operations: Logged, op: str) -> None:
            self.operations, self.op = operations, op

        def wait(self) -> None:
            self.operations.log.append(f"wait for {self.op}")


COLUMN = {"ranks": 2, "weight_grad": True, "bias_grad": True, "bias": True}


def test_what_runs_beside_what() -> None:
    operations = Logged()
    grads, saved = execute(plans("ColumnParallelLinear", **COLUMN).backward, operations, ("dy", "x", "w"))
    assert operations.log == [
        "matmul", "all_reduce…", "rows", "rows", "matmul", "rows", "sum_rows", "wait for all_reduce"
    ]  # fmt: skip
    assert grads == {
        "input": "all_reduce(matmul(dy, w))",
        "weight": "matmul(rows(dy), rows(x))",
        "bias": "sum_rows(rows(dy))",
    }
    assert saved == []
    operations = Logged()
    execute(plans("ColumnParallelLinear", sequence_parallel=True, **COLUMN).backward, operations, ("dy", "x", "w"))
    assert operations.log[:5] == ["contiguous", "all_gather…", "matmul", "wait for all_gather", "reduce_scatter…"]
    assert operations.log[-1] == "wait for reduce_scatter"


class Arrays(Free):
    """Operations of a group of one rank, on NumPy's arrays."""

    def matmul(self, a: Any, b: Any, transpose_left: bool = False, transpose_right: bool = False) -> Any:
        return (a.T if transpose_left else a) @ (b.T if transpose_right else b)

    def add(self, a: Any, b: Any) -> Any:
        return a + b

    def rows(self, x: Any) -> Any:
        return x.reshape(-1, x.shape[-1])

    def sum_rows(self, x: Any) -> Any:
        return x.sum(axis=0)


def test_a_plan_on_arrays() -> None:
    """A plan needs no tensors of ours."""
    print("seed", 7)
    rng = np.random.default_rng(7)
    x, w, b, dy = (rng.standard_normal(shape) for shape in ((4, 3, 5), (6, 5), (6,), (4, 3, 6)))
    forward, backward = plans("ColumnParallelLinear", **COLUMN | {"ranks": 1})
    operations: Any = Arrays()
    outputs, saved = execute(forward, operations, (x, w, b))
    np.testing.assert_allclose(outputs["output"], x @ w.T + b, rtol=1e-13)
    grads, _ = execute(backward, operations, (dy, *saved))
    np.testing.assert_allclose(grads["input"], dy @ w, rtol=1e-13)
    np.testing.assert_allclose(grads["weight"], np.einsum("sbo,sbi->oi", dy, x), rtol=1e-12)
    np.testing.assert_allclose(grads["bias"], dy.sum((0, 1)), rtol=1e-12)


LAYERS: list[tuple[str, dict[str, Any]]] = [
    ("ColumnParallelLinear", COLUMN | {"gather_output": True, "dtype": "bfloat16", "output_dtype": "float32"}),
    ("ColumnParallelLinear", COLUMN | {"sequence_parallel": True}),
    ("RowParallelLinear", {"ranks": 2, "input_grad": True, "weight_grad": True, "bias": True, "bias_grad": True}),
    ("RowParallelLinear", {"ranks": 2, "sequence_parallel": True, "input_is_parallel": True, "input_grad": True}),
    ("VocabParallelEmbedding", {"ranks": 2, "part": 3, "reduce_scatter_embeddings": True}),
    ("vocab_parallel_cross_entropy", {"ranks": 2, "part": 3, "dtype": "float16", "label_smoothing": 0.5}),
    ("all_to_all_sp2hp", {"ranks": 2}),
    ("gather_from_sequence_parallel_region", {"ranks": 2, "sizes": (1, 2), "tensor_parallel_output_grad": True}),
]


@pytest.mark.parametrize(("name", "options"), LAYERS)
def test_plans_are_described_once(name: str, options: dict[str, Any]) -> None:
    """And all operations that they have are there."""
    both = plans(name, **options)
    assert plans(name, **options) is both
    for plan in both:
        assert {step.op for step in plan.steps} <= set(dir(Operations))
        assert all(set(step.after) <= set(range(at)) for at, step in enumerate(plan.steps))


@pytest.mark.parametrize(
    ("name", "options", "text"),
    [
        ("ParallelLinear", {}, 'there are no plans of "ParallelLinear"'),
        ("RowParallelLinear", {"ranks": 0}, "a plan of 0 ranks"),
        ("RowParallelLinear", {"rank": 1}, 'unknown field "rank"'),
        ("vocab_parallel_cross_entropy", {"ranks": 1, "part": 1, "label_smoothing": 0.5}, "one token"),
        ("all_to_all", {"ranks": "two"}, "cannot unmarshal string"),
    ],
)
def test_plans_that_there_are_not(name: str, options: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        plans(name, **options)


# -- what steps cost


class Weighed(Operations):
    """Operations that note what each step launches when it costs what its operations say, as those of programs do."""

    def __init__(self, group: Any, launched: list[Any]) -> None:
        super().__init__(group)
        self.launched = launched
        self.steps: list[tuple[Any, list[Any], list[Any]]] = []

    def local(self, step: Any, operands: Any) -> Any:
        self.launched.clear()
        made = getattr(self, step.op)(*operands, **step.parameters)
        results = made if isinstance(made, tuple) else (made,)
        self.steps.append((step, [*operands, *results], list(self.launched)))
        return made


def said(step: Any, operands: list[Any]) -> list[tuple[Any, ...]]:
    """Returns what the Go core says of a step's kernels: the name, bytes, operations and unit of each."""
    if not step.costs:
        return []
    layouts = [{"DType": t.dtype.name, "Shape": t.shape} for t in operands]
    costs = json.loads(go.StepCosts(operands[0]._storage.world.handle, step.costs, json.dumps(layouts)))
    names = [kernel["name"] for kernel in json.loads(step.costs)["kernels"]]
    return [(name, *cost) for name, cost in zip(names, costs, strict=True)]


@pytest.mark.parametrize("kind", ["float32", "bfloat16"])
@pytest.mark.parametrize("name", ["column", "row", "embedding", "loss"])
def test_steps_cost_what_their_operations_do(
    open_world: OpenWorld, monkeypatch: pytest.MonkeyPatch, name: str, kind: str
) -> None:
    """The Go core says what the same operations cost when a program calls them."""
    open_world("sips2")
    dtype, launch = getattr(torch, kind), dispatch.launch
    x, w, b = (4, 3, 6), (8, 6), (8,)
    both_grads = {"bias_grad": True, "weight_grad": True}
    layers: dict[str, tuple[str, dict[str, Any], list[Any]]] = {
        "column": ("ColumnParallelLinear", COLUMN | {"gather_output": True}, [x, w, b]),
        "row": ("RowParallelLinear", {"ranks": 2, "bias": True, "input_grad": True} | both_grads, [(4, 3, 12), w, b]),
        "embedding": (
            "VocabParallelEmbedding",
            {"ranks": 2, "part": 8, "reduce_scatter_embeddings": True},
            [[3, 4], w],
        ),
        "loss": (
            "vocab_parallel_cross_entropy",
            {"ranks": 2, "part": 6, "dtype": kind, "label_smoothing": 0.5},
            [x, [4, 3]],
        ),
    }  # shapes as lists are those of tokens
    called, options, shapes = layers[name]

    def rank(r: int) -> None:
        logs[r] = []
        weighed = Weighed(tp.parallel_state.get_tensor_model_parallel_group(), logs[r])
        inputs = [torch.ones(s, dtype=torch.int64 if isinstance(s, list) else dtype) for s in shapes]
        both = plans(called, **options)
        outputs, saved = execute(both.forward, weighed, inputs)
        assert both.backward is not None
        execute(both.backward, weighed, [torch.ones_like(outputs["output"]), *saved])
        assert weighed.steps
        for step, operands, launched in weighed.steps:
            assert launched == said(step, operands) or (not launched and step.op in {"contiguous", "rows", "cast"})

    logs: dict[int, list[Any]] = {}

    def noted(context: Any, *call: Any) -> None:
        logs[dist.get_rank()].append(call[:-1])
        launch(context, *call)

    monkeypatch.setattr(dispatch, "launch", noted)
    on_tensor_parallel_ranks(2, rank)


def test_steps_cost_what_plans_say(open_world: OpenWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where that is not what an operation costs by itself; and afterwards operations cost that again."""
    open_world("sips2")
    costs: list[tuple[Any, ...]] = []
    launch = dispatch.launch
    monkeypatch.setattr(dispatch, "launch", lambda c, *call: (costs.append(call[:-1]), launch(c, *call)))

    def rank(r: int) -> None:
        operations = Operations(tp.parallel_state.get_tensor_model_parallel_group())
        step = plans("ColumnParallelLinear", **COLUMN | {"ranks": 1}).forward.steps[-1]
        assert step.op == "add"
        dear = json.loads(step.costs)
        dear["kernels"][0] |= {"bytes": [{"elements": 1, "size": 1000, "size_of": 0}], "ops": 0}
        a, b = torch.ones(2, 8), torch.ones(8)
        costs.clear()
        operations.local(dataclasses.replace(step, costs=json.dumps(dear)), (a, b))
        operations.local(step, (a, b))
        assert a.add(b).shape == (2, 8)
        assert costs == [("add", 8000, 16, "vector"), *[("add", 4 * (16 + 8 + 16), 16, "vector")] * 2]

    on_tensor_parallel_ranks(1, rank)


@pytest.mark.parametrize(
    ("step", "operands", "text"),
    [
        ("{}", '[{"DType": "float33", "Shape": [1]}]', "float33"),
        (
            '{"op": "add", "in": [0, 1]}',
            '[{"DType": "float32", "Shape": [1]}]',
            "add reads 2 operands and makes another: 1 are too few",
        ),
        ("step", "[]", "invalid character"),
    ],
)
def test_steps_that_there_are_not(open_world: OpenWorld, step: str, operands: str, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        go.StepCosts(open_world("sips2").handle, step, operands)
