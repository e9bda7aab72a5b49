"""Plans: what a tensor parallel layer does in a pass, as data; and running through one on our tensors.

The Go core makes plans (tp/plan.go says what its steps mean) and runs through them on its own tensors. Here an executor
runs through the same ones, of whose steps Operations does each.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from torchemu.bridge.binding import go
from torchemu.c10d.ops import KINDS
from torchemu.frontends.numpy.plan_operations import Operations

COLLECTIVES = frozenset(KINDS)
"""The operations of plans that are collectives."""


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """One operation, as the Go core's Step says it (tp/plan.go).

    Attributes:
        inputs, outputs: the values that it reads and makes, by their numbers.
        parameters: what it is to know besides.
        costs: the step as the Go core has it, which says what it costs (its StepCosts); "" for nothing.
    """

    op: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    parameters: Mapping[str, Any]
    after: tuple[int, ...]
    beside: bool
    drop: tuple[int, ...]
    costs: str


@dataclass(frozen=True, slots=True)
class Plan:
    """One pass of a layer, as the Go core's Plan says it."""

    inputs: tuple[str, ...]
    values: int
    steps: tuple[Step, ...]
    after: tuple[int, ...]
    outputs: Mapping[str, int]
    saved: tuple[int, ...]


class Plans(NamedTuple):
    """The two passes of a layer; no backward where gradients have no way back."""

    forward: Plan
    backward: Plan | None


@functools.lru_cache(maxsize=4096)
def plans(name: str, **options: Any) -> Plans:
    """Describes a layer, the loss or a mapping, once for the same options.

    Args:
        name: Megatron's: ColumnParallelLinear, vocab_parallel_cross_entropy, …
        options: what decides the plans; see tp.Describe of the Go core.

    Raises:
        ValueError: there are no such plans.
    """
    described = json.loads(go.ParallelPlans(name, json.dumps(options)))
    backward = described["backward"]
    return Plans(_read(described["forward"]), None if backward is None else _read(backward))


def _read(plan: Mapping[str, Any]) -> Plan:
    steps = tuple([
        Step(
            step["op"],
            tuple(step["in"]),
            tuple(step["out"]),
            step["with"],
            tuple(step.get("after", ())),
            step.get("beside", False),
            tuple(step.get("drop", ())),
            json.dumps(step) if "kernels" in step else "",
        )
        for step in plan["steps"] or ()
    ])  # fmt: skip
    outputs = {output["name"]: output["value"] for output in plan["outputs"] or ()}
    after, saved = tuple(plan.get("after", ())), tuple(plan.get("saved", ()))
    return Plan(tuple(plan["inputs"]), plan["values"], steps, after, outputs, saved)


def execute(plan: Plan, operations: Operations, inputs: Sequence[Any]) -> tuple[dict[str, Any], list[Any]]:
    """Runs through a plan.

    Args:
        plan: of which pass.
        operations: those among the ranks of the layer's group.
        inputs: a tensor for each of the plan's inputs. A list is emptied, so that nobody else has what is dropped.

    Returns:
        what the plan returns, by name; and what it saves.
    """
    values: list[Any] = [*inputs, *[None] * (plan.values - len(inputs))]
    if isinstance(inputs, list):
        inputs.clear()
    works: dict[int, Any] = {}
    for number, step in enumerate(plan.steps):
        for at in step.after:
            works.pop(at).wait()
        operands = [values[v] for v in step.inputs]
        if step.op in COLLECTIVES:
            made, works[number] = operations.collective(step, operands)
        else:
            made = operations.local(step, operands)
        del operands
        if len(step.outputs) == 1:
            values[step.outputs[0]] = made
        else:
            for v, value in zip(step.outputs, made, strict=True):
                values[v] = value
        for v in step.drop:
            values[v] = None
    for at in plan.after:
        works.pop(at).wait()
    return {name: values[v] for name, v in plan.outputs.items()}, [values[v] for v in plan.saved]
