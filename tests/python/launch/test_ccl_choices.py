"""Which algorithm runs a collective: the one that ccl.yaml chooses."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from conftest import OpenWorld, YamlFile
from ranks import on_ranks

import torchemu as torch

dist = torch.distributed
N = 4


def parts() -> list[torch.Tensor]:
    return [torch.zeros(2) for _ in range(N)]


CALLS: dict[str, Callable[[int], object]] = {
    "all_gather": lambda r: dist.all_gather(parts(), torch.ones(2)),
    "reduce_scatter": lambda r: dist.reduce_scatter(torch.zeros(2), parts()),
    "broadcast": lambda r: dist.broadcast(torch.ones(2), 1),
    "reduce": lambda r: dist.reduce(torch.ones(2), 1),
    "gather": lambda r: dist.gather(torch.ones(2), parts() if r == 1 else None, 1),
    "scatter": lambda r: dist.scatter(torch.zeros(2), parts() if r == 1 else None, 1),
    "all_to_all": lambda r: dist.all_to_all(parts(), parts()),
}
ALGORITHMS = {
    "all_gather": "ring bidirectional_ring recursive direct hierarchical",
    "reduce_scatter": "ring bidirectional_ring recursive direct hierarchical",
    "broadcast": "chain binomial direct",
    "reduce": "chain binomial direct",
    "gather": "binomial direct",
    "scatter": "binomial direct",
    "all_to_all": "pairwise direct bruck",
}


def ran(world: torch.World, collective: str) -> str:
    """The algorithm of a call of a collective."""
    dist.init_process_group()
    on_ranks(N, CALLS[collective])
    (line,) = (c for c in world.collectives() if c["collective"] == collective)
    return line["algorithm"]


@pytest.mark.parametrize(("collective", "name"), [(c, a) for c, names in ALGORITHMS.items() for a in names.split()])
def test_a_chosen_algorithm_runs(open_world: OpenWorld, yaml_file: YamlFile, collective: str, name: str) -> None:
    text = f"defaults: {{algorithm: one_shot}}\ncollectives: {{{collective}: {name}}}\n"
    assert ran(open_world("name: square\nsystem: {sips: {count: 4}}\n", yaml_file(text)), collective) == name


def test_without_a_choice_it_is_the_namesake(open_world: OpenWorld, yaml_file: YamlFile) -> None:
    assert ran(open_world("default", yaml_file("defaults: {algorithm: ring}")), "all_gather") == "ring"


def test_auto_is_a_choice_too(open_world: OpenWorld, yaml_file: YamlFile) -> None:
    """The Tuner finds the direct exchange of so few bytes faster than a ring, which is tested with its times."""
    text = "defaults: {algorithm: ring}\ncollectives: {all_gather: auto}"
    assert ran(open_world("default", yaml_file(text)), "all_gather") != "ring"
