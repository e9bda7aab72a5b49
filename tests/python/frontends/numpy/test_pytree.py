"""torch.utils._pytree: taking trees apart, putting them together, and what is refused."""

from __future__ import annotations

import dataclasses
import random
from collections import OrderedDict, defaultdict, deque, namedtuple
from typing import Any

import pytest
from conftest import OpenWorld
from ranks import on_ranks

import torchemu as torch
from torchemu.utils import _pytree as pytree

Point = namedtuple("Point", "x y")
TREE: dict[str, Any] = {
    "b": [1, (2, None)],
    "a": Point(3, []),
    "o": OrderedDict(z=1),
    "d": defaultdict(list, q=9),
    "dq": deque([1, 2], maxlen=3),
    "s": torch.Size([4, 5]),
}
LEAVES = [1, 2, None, 3, 1, 9, 1, 2, 4, 5]


@pytest.fixture(autouse=True)
def _world(open_world: OpenWorld) -> None:
    open_world()


def test_apart_and_together() -> None:
    leaves, spec = pytree.tree_flatten(TREE)
    assert leaves == LEAVES
    assert (spec.num_leaves, spec.num_children, spec.num_nodes) == (10, 6, 19)
    again = pytree.tree_unflatten(leaves, spec)
    assert again == TREE
    assert [type(again[key]) for key in TREE] == [type(value) for value in TREE.values()]
    assert (again["d"].default_factory, again["dq"].maxlen) == (list, 3)


def test_random_trees() -> None:
    seed = 7
    print(f"{seed=}")
    rng = random.Random(seed)

    def tree(depth: int) -> tuple[Any, list[Any], list[str]]:
        """A tree, its leaves in order, and their places."""
        if not depth or rng.random() < 0.2:
            leaf = rng.random()
            return leaf, [leaf], [""]
        below = [tree(depth - 1) for _ in range(rng.randrange(4))]
        leaves = [leaf for _, found, _ in below for leaf in found]
        if rng.random() < 0.5:
            places = [f"[{i}]{p}" for i, (_, _, found) in enumerate(below) for p in found]
            return rng.choice([list, tuple])(t for t, _, _ in below), leaves, places
        places = [f"['k{i}']{p}" for i, (_, _, found) in enumerate(below) for p in found]
        return {f"k{i}": t for i, (t, _, _) in enumerate(below)}, leaves, places

    for _ in range(200):
        made, leaves, places = tree(4)
        found, spec = pytree.tree_flatten(made)
        assert found == leaves and pytree.tree_unflatten(found, spec) == made
        assert pytree.tree_map(lambda x: x, made) == made and pytree.tree_structure(made) == spec
        assert [pytree.keystr(path) for path, _ in pytree.tree_leaves_with_path(made)] == places
        assert [pytree.key_get(made, path) for path, _ in pytree.tree_leaves_with_path(made)] == leaves


def test_text() -> None:
    spec = pytree.tree_structure({"a": [1, (2,)], "p": Point(1, 2)})
    assert repr(spec) == (
        "TreeSpec(dict, ['a', 'p'], [TreeSpec(list, None, [*,\n    TreeSpec(tuple, None, [*])]),\n"
        f"  TreeSpec(namedtuple, {Point}, [*,\n    *])])"
    )


def test_map() -> None:
    add = lambda *xs: sum(xs)  # noqa: E731
    assert pytree.tree_map(add, [1, (2,)], [10, (20,)], [100, (200,)]) == [111, (222,)]
    assert pytree.tree_map(lambda a, b: (a, b), [1, 2], [[1, 2], 3]) == [(1, [1, 2]), (2, 3)]
    assert pytree.tree_map(add, {"a": 1, "b": 2}, OrderedDict(b=10, a=20)) == {"a": 21, "b": 12}
    assert pytree.tree_map(len, [[1, 2], [3]], is_leaf=lambda x: x != [[1, 2], [3]]) == [2, 1]
    tree: list[Any] = [1, "a", 2.0]
    assert pytree.tree_map_only(int, lambda x: x + 1, tree) == [2, "a", 2.0]
    assert pytree.tree_map_only((int, float), lambda x: x + 1, tree) == [2, "a", 3.0]
    assert pytree.tree_map_only(int | str, lambda x: x * 2, tree) == [2, "aa", 2.0]
    assert pytree.tree_map_only(lambda x: x == "a", lambda x: x * 2, tree) == [1, "aa", 2.0]
    seen: list[Any] = []
    assert pytree.tree_map_(seen.append, tree) is tree and seen == tree
    assert pytree.tree_map_only_(str, seen.append, tree) is tree and seen == [*tree, "a"]
    assert pytree.tree_map_with_path(lambda path, x: f"{pytree.keystr(path)}={x}", {"k": [5]}) == {"k": ["['k'][0]=5"]}


def test_questions() -> None:
    assert pytree.tree_all(lambda x: x > 0, [1, 2]) and not pytree.tree_all(lambda x: x > 1, [1, 2])
    assert pytree.tree_any(lambda x: x > 1, [1, 2]) and not pytree.tree_any(lambda x: x > 2, [1, 2])
    assert pytree.tree_all_only(int, lambda x: x > 0, [1, "a"]) and not pytree.tree_any_only(str, len, [1, ""])
    assert pytree.tree_is_leaf(None) and not pytree.tree_is_leaf([]) and pytree.tree_leaves([]) == []
    assert pytree.arg_tree_leaves(1, [2], a={"b": 3}) == [1, 2, 3]
    assert pytree.tree_structure(5) == pytree.treespec_leaf() and pytree.treespec_leaf().is_leaf()


def test_broadcasting() -> None:
    spec = pytree.tree_structure([1, [2, 3]])
    for tree, wanted in ((1, [1, 1, 1]), ([1, 2], [1, 2, 2]), ([1, [2, 3]], [1, 2, 3]), ([1], None), ((1, 2), None)):
        assert pytree._broadcast_to_and_flatten(tree, spec) == wanted


class Holder:
    def __init__(self, held: Any) -> None:
        self.held = held


def test_registered_classes() -> None:
    pytree.register_pytree_node(Holder, lambda node: ([node.held], None), lambda children, _: Holder(*children))
    doubled = pytree.tree_map(lambda x: x * 2, [Holder((1, 2)), 3])
    assert (doubled[0].held, doubled[1]) == ((2, 4), 6)
    assert Holder in pytree.SUPPORTED_NODES
    with pytest.raises(ValueError, match=r"Holder'> is already registered as pytree node\."):
        pytree.register_pytree_node(Holder, lambda node: ([], None), lambda children, _: Holder(1))
    with pytest.raises(ValueError, match=r"Did not find a flatten_with_keys_fn for type: .*Holder"):
        pytree.tree_flatten_with_path([Holder(1)])


def test_what_a_rank_registers_is_its_own(open_world: OpenWorld) -> None:
    def program(rank: int) -> int:
        if rank == 0:
            pytree.register_pytree_node(Holder, lambda node: ([node.held], None), lambda c, _: Holder(*c))
        return len(pytree.tree_leaves([Holder((1, 2))]))

    assert on_ranks(2, program) == [2, 1] and len(pytree.tree_leaves(Holder([1, 2]))) == 1


@dataclasses.dataclass
class Fields:
    a: Any
    b: Any
    c: int = 3


def test_dataclasses() -> None:
    pytree.register_dataclass(Fields, drop_field_names=["c"])
    leaves, spec = pytree.tree_flatten_with_path(Fields([1], None, 9))
    assert [(pytree.keystr(path), leaf) for path, leaf in leaves] == [(".a[0]", 1)]
    assert spec.unflatten([5]) == Fields([5], None, 3)
    with pytest.raises(ValueError, match=r"Missing fields in `field_names`: \['b', 'c'\]"):
        pytree.register_dataclass(Fields, field_names=["a"])
    with pytest.raises(ValueError, match=r"unknown dataclass fields: \['z'\]"):
        pytree.register_dataclass(Fields, field_names=["a", "b", "c", "z"])
    with pytest.raises(ValueError, match="field_names must be specified"):
        pytree.register_dataclass(Holder)


def test_constants() -> None:
    pytree.register_constant(Fields)
    assert pytree.tree_leaves([Fields(1, 2)]) == []
    assert pytree.tree_structure([Fields(1, 2)]) != pytree.tree_structure([Fields(1, 3)])
    assert pytree.tree_map(abs, [Fields(1, 2), -1]) == [Fields(1, 2), 1]
    with pytest.raises(TypeError, match="non-default `__eq__`"):
        pytree.register_constant(Holder)


@pytest.mark.parametrize(
    ("trees", "text"),
    [
        (([1, 2], [1]), "Node arity mismatch; expected 2, but got 1."),
        (([1, 2], (1, 2)), "Node type mismatch; expected <class 'list'>, but got <class 'tuple'>."),
        (([1, [2]], [1, 2]), "Node type mismatch; expected <class 'list'>, but got <class 'int'>."),
        (({"a": 1}, {"b": 1}), "Node keys mismatch; missing key(s): {'a'}; extra key(s): {'b'}."),
    ],
)
def test_trees_that_differ(trees: tuple[Any, Any], text: str) -> None:
    with pytest.raises(ValueError) as caught:
        pytree.tree_map(lambda a, b: a, *trees)
    assert str(caught.value) == text


def test_misuse() -> None:
    spec = pytree.tree_structure([1, 2])
    for leaves in ([], [1], [1, 2, 3]):
        with pytest.raises(ValueError, match=f"has length {len(leaves)} but the spec refers to a pytree that holds 2"):
            pytree.tree_unflatten(leaves, spec)
    with pytest.raises(TypeError, match="Expected `treespec` to be an instance of PyTreeSpec"):
        pytree.tree_unflatten([1], 3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"Argument must be a type, a tuple of types, or a callable\."):
        pytree.tree_map_only(3, lambda x: x, [1])
