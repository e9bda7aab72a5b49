"""torch.utils._pytree: trees of lists, tuples, dicts and what else is registered, with anything at their leaves."""

from __future__ import annotations

import types
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from torchemu.frontends.numpy.utils._pytree_nodes import (
    MAPPINGS,
    GetAttrKey,
    KeyPath,
    MappingKey,
    NodeDef,
    SequenceKey,
    is_namedtuple_class,
    key_get,
    keys_of,
    keystr,
    kind_of,
    kinds,
    register_constant,
    register_dataclass,
    register_pytree_node,
)

__all__ = [
    "GetAttrKey",
    "KeyPath",
    "LeafSpec",
    "MappingKey",
    "NodeDef",
    "PyTree",
    "PyTreeSpec",
    "SequenceKey",
    "TreeSpec",
    "arg_tree_leaves",
    "is_namedtuple_class",
    "is_namedtuple_instance",
    "key_get",
    "keystr",
    "map_only",
    "register_constant",
    "register_dataclass",
    "register_pytree_node",
    "tree_all",
    "tree_all_only",
    "tree_any",
    "tree_any_only",
    "tree_flatten",
    "tree_flatten_with_path",
    "tree_is_leaf",
    "tree_iter",
    "tree_leaves",
    "tree_leaves_with_path",
    "tree_map",
    "tree_map_",
    "tree_map_only",
    "tree_map_only_",
    "tree_map_with_path",
    "tree_structure",
    "tree_unflatten",
    "treespec_leaf",
]

PyTree = Any
IsLeaf = Callable[[Any], bool] | None


class TreeSpec:
    """A tree without its leaves.

    Args:
        type: the class of the node; of named tuples ``namedtuple``; None: a leaf.
        context: what it takes beside children to make the node again.
        children_specs: the trees below it.

    Attributes:
        num_nodes, num_leaves, num_children: how many there are in the tree; children are those of the node itself.
    """

    __slots__ = ("_children", "_context", "num_children", "num_leaves", "num_nodes", "type")

    def __init__(self, type: Any, context: Any, children_specs: list[TreeSpec]) -> None:  # noqa: A002
        self.type, self._context, self._children = type, context, children_specs
        self.num_children: int = len(children_specs)
        self.num_nodes: int = 1 + sum(child.num_nodes for child in children_specs)
        self.num_leaves: int = 1 if type is None else sum(child.num_leaves for child in children_specs)

    @property
    def context(self) -> Any:
        """What it takes beside children to make the node again."""
        return self._context

    def is_leaf(self) -> bool:
        """Whether there is nothing but a leaf."""
        return self.type is None

    def children(self) -> list[TreeSpec]:
        """The trees below."""
        return list(self._children)

    def child(self, index: int) -> TreeSpec:
        """One of them."""
        return self._children[index]

    def unflatten(self, leaves: Iterable[Any]) -> Any:
        """A tree with these leaves.

        Raises:
            ValueError: they are not as many.
        """
        given = list(leaves)
        if len(given) != self.num_leaves:
            raise ValueError(
                f"treespec.unflatten(leaves): `leaves` has length {len(given)} but the spec refers to a pytree that "
                f"holds {self.num_leaves} items ({self})."
            )
        return self._made(iter(given))

    def _made(self, leaves: Iterator[Any]) -> Any:
        if self.type is None:
            return next(leaves)
        children = [child._made(leaves) for child in self._children]
        return kinds()[self.type].unflatten_fn(children, self._context)

    def flatten_up_to(self, tree: Any) -> list[Any]:
        """What another tree has where this one has leaves.

        Raises:
            ValueError: the other tree has no such places.
        """
        if self.type is None:
            return [tree]
        children = self._children_of(tree)
        return [
            leaf for spec, child in zip(self._children, children, strict=True) for leaf in spec.flatten_up_to(child)
        ]

    def _children_of(self, tree: Any) -> list[Any]:
        """The children of another node in the order of this one's."""
        kind = kind_of(tree)
        alike = kind is not None and (kind.type is self.type or (kind.type in MAPPINGS and self.type in MAPPINGS))
        if kind is None or not alike:
            raise ValueError(f"Node type mismatch; expected {self.type!r}, but got {type(tree)!r}.")
        children, context = kind.flatten_fn(tree)
        children = list(children)
        if self.type in MAPPINGS:
            wanted, found = keys_of(self.type, self._context), keys_of(kind.type, context)
            _check_keys(set(wanted), set(found))
            return [tree[key] for key in wanted]
        if len(children) != self.num_children:
            raise ValueError(f"Node arity mismatch; expected {self.num_children}, but got {len(children)}.")
        if context != self._context and self.type is not deque:  # whose context is only its greatest length
            raise ValueError(f"Node context mismatch for node type {self.type!r}.")
        return children

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TreeSpec):
            return NotImplemented
        return (self.type, self._context, self._children) == (other.type, other._context, other._children)

    def __hash__(self) -> int:
        return hash((self.type, repr(self._context), self.num_children, self.num_leaves))

    def __repr__(self) -> str:
        return self._shown(0)

    def _shown(self, indent: int) -> str:
        if self.type is None:
            return "*"
        inner = ",\n".join(
            (" " * (indent + 2) if at else "") + child._shown(indent + 2) for at, child in enumerate(self._children)
        )
        return f"TreeSpec({self.type.__name__}, {self._context}, [{inner}])"


def _check_keys(wanted: set[Any], found: set[Any]) -> None:
    if wanted != found:
        missing, extra = wanted - found, found - wanted
        text = "Node keys mismatch"
        text += f"; missing key(s): {missing}" if missing else ""
        text += f"; extra key(s): {extra}" if extra else ""
        raise ValueError(f"{text}.")


PyTreeSpec = TreeSpec


class LeafSpec(TreeSpec):
    """The tree that is only a leaf."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(None, None, [])


def treespec_leaf() -> LeafSpec:
    """The tree that is only a leaf."""
    return LeafSpec()


# -- taking apart and putting together


def tree_is_leaf(tree: Any, is_leaf: IsLeaf = None) -> bool:
    """Whether it is no node, or is_leaf says that it is a leaf."""
    return (is_leaf is not None and is_leaf(tree)) or kind_of(tree) is None


def _into(leaves: list[Any], tree: Any, is_leaf: IsLeaf) -> TreeSpec:
    """The tree's structure; its leaves are added to the list."""
    kind = None if is_leaf is not None and is_leaf(tree) else kind_of(tree)
    if kind is None:
        leaves.append(tree)
        return LeafSpec()
    children, context = kind.flatten_fn(tree)
    return TreeSpec(kind.type, context, [_into(leaves, child, is_leaf) for child in children])


def tree_flatten(tree: Any, is_leaf: IsLeaf = None) -> tuple[list[Any], TreeSpec]:
    """The leaves, depth first, and what is left of the tree.

    Args:
        tree: anything; what is no node is a leaf itself, also None.
        is_leaf: what it returns True for is taken for a leaf.
    """
    leaves: list[Any] = []
    spec = _into(leaves, tree, is_leaf)
    return leaves, spec


def tree_unflatten(leaves: Iterable[Any], treespec: TreeSpec) -> Any:
    """The tree again.

    Raises:
        TypeError: no TreeSpec. ValueError: not as many leaves.
    """
    if not isinstance(treespec, TreeSpec):
        raise TypeError(f"Expected `treespec` to be an instance of PyTreeSpec but got item of type {type(treespec)}.")
    return treespec.unflatten(leaves)


def tree_iter(tree: Any, is_leaf: IsLeaf = None) -> Iterator[Any]:
    """The leaves, one after another."""
    yield from tree_leaves(tree, is_leaf)


def tree_leaves(tree: Any, is_leaf: IsLeaf = None) -> list[Any]:
    """The leaves."""
    return tree_flatten(tree, is_leaf)[0]


def tree_structure(tree: Any, is_leaf: IsLeaf = None) -> TreeSpec:
    """The tree without its leaves."""
    return tree_flatten(tree, is_leaf)[1]


def arg_tree_leaves(*args: Any, **kwargs: Any) -> list[Any]:
    """The leaves of all arguments."""
    return tree_leaves((args, kwargs))


def is_namedtuple_instance(obj: object) -> bool:
    """Whether it is a named tuple."""
    return is_namedtuple_class(type(obj))


# -- leaf by leaf


def tree_map(func: Callable[..., Any], tree: Any, *rests: Any, is_leaf: IsLeaf = None) -> Any:
    """The tree with func(leaf) at each leaf, or func(leaf, *what the rests have there).

    Raises:
        ValueError: one of the rests has another structure.
    """
    leaves, spec = tree_flatten(tree, is_leaf)
    others = [spec.flatten_up_to(rest) for rest in rests]
    return spec.unflatten([func(*each) for each in zip(leaves, *others, strict=True)])


def tree_map_(func: Callable[..., Any], tree: Any, *rests: Any, is_leaf: IsLeaf = None) -> Any:
    """Calls func as tree_map does, and returns the tree as it is."""
    tree_map(func, tree, *rests, is_leaf=is_leaf)
    return tree


def map_only(type_or_types_or_pred: Any, /) -> Callable[[Callable[[Any], Any]], Callable[[Any], Any]]:
    """Makes of a function one that returns its argument where that is of no such type.

    Raises:
        TypeError: neither types nor a function that says whether.
    """
    if isinstance(type_or_types_or_pred, type | tuple | types.UnionType):
        wanted: Callable[[Any], bool] = lambda x: isinstance(x, type_or_types_or_pred)  # noqa: E731
    elif callable(type_or_types_or_pred):
        wanted = type_or_types_or_pred
    else:
        raise TypeError("Argument must be a type, a tuple of types, or a callable.")
    return lambda func: lambda x: func(x) if wanted(x) else x


def tree_map_only(type_or_types_or_pred: Any, /, func: Callable[[Any], Any], tree: Any, is_leaf: IsLeaf = None) -> Any:
    """tree_map where a leaf is of certain types; others stay as they are."""
    return tree_map(map_only(type_or_types_or_pred)(func), tree, is_leaf=is_leaf)


def tree_map_only_(type_or_types_or_pred: Any, /, func: Callable[[Any], Any], tree: Any, is_leaf: IsLeaf = None) -> Any:
    """Calls func where a leaf is of certain types, and returns the tree as it is."""
    return tree_map_(map_only(type_or_types_or_pred)(func), tree, is_leaf=is_leaf)


def tree_all(pred: Callable[[Any], bool], tree: Any, is_leaf: IsLeaf = None) -> bool:
    """Whether it holds of all leaves."""
    return all(map(pred, tree_leaves(tree, is_leaf)))


def tree_any(pred: Callable[[Any], bool], tree: Any, is_leaf: IsLeaf = None) -> bool:
    """Whether it holds of some leaf."""
    return any(map(pred, tree_leaves(tree, is_leaf)))


def tree_all_only(type_or_types: Any, /, pred: Callable[[Any], bool], tree: Any, is_leaf: IsLeaf = None) -> bool:
    """Whether it holds of all leaves of certain types."""
    return all(pred(leaf) for leaf in tree_leaves(tree, is_leaf) if isinstance(leaf, type_or_types))


def tree_any_only(type_or_types: Any, /, pred: Callable[[Any], bool], tree: Any, is_leaf: IsLeaf = None) -> bool:
    """Whether it holds of some leaf of certain types."""
    return any(pred(leaf) for leaf in tree_leaves(tree, is_leaf) if isinstance(leaf, type_or_types))


# -- with paths


def tree_flatten_with_path(tree: Any, is_leaf: IsLeaf = None) -> tuple[list[tuple[KeyPath, Any]], TreeSpec]:
    """tree_flatten, with the path of each leaf.

    Raises:
        ValueError: a node's class was registered without a function for that.
    """
    return tree_leaves_with_path(tree, is_leaf), tree_structure(tree, is_leaf)


def tree_leaves_with_path(tree: Any, is_leaf: IsLeaf = None) -> list[tuple[KeyPath, Any]]:
    """The leaves, each with its path."""
    return list(_paths((), tree, is_leaf))


def _paths(path: KeyPath, tree: Any, is_leaf: IsLeaf) -> Iterator[tuple[KeyPath, Any]]:
    kind = None if is_leaf is not None and is_leaf(tree) else kind_of(tree)
    if kind is None:
        yield path, tree
        return
    if kind.flatten_with_keys_fn is None:
        raise ValueError(
            f"Did not find a flatten_with_keys_fn for type: {kind.type}. Please pass a flatten_with_keys_fn argument "
            "to register_pytree_node."
        )
    for key, child in kind.flatten_with_keys_fn(tree)[0]:
        yield from _paths((*path, key), child, is_leaf)


def tree_map_with_path(func: Callable[..., Any], tree: Any, *rests: Any, is_leaf: IsLeaf = None) -> Any:
    """tree_map of func(path, leaf, …)."""
    found, spec = tree_flatten_with_path(tree, is_leaf)
    others = [spec.flatten_up_to(rest) for rest in rests]
    return spec.unflatten([func(path, leaf, *rest) for (path, leaf), *rest in zip(found, *others, strict=True)])


def _broadcast_to_and_flatten(tree: Any, treespec: TreeSpec, is_leaf: IsLeaf = None) -> list[Any] | None:
    """The leaves of a tree whose own leaves stand for all that the other structure has there; None: it does not fit."""
    if tree_is_leaf(tree, is_leaf):
        return [tree] * treespec.num_leaves
    kind = kind_of(tree)
    if kind is None or treespec.is_leaf() or kind.type is not treespec.type:
        return None
    children, context = kind.flatten_fn(tree)
    children = list(children)
    if len(children) != treespec.num_children or context != treespec.context:
        return None
    found: list[Any] = []
    for child, spec in zip(children, treespec.children(), strict=True):
        flat = _broadcast_to_and_flatten(child, spec, is_leaf)
        if flat is None:
            return None
        found += flat
    return found


_register_pytree_node = register_pytree_node


def __getattr__(name: str) -> Any:
    """SUPPORTED_NODES: the running rank's kinds of nodes, by class."""
    if name == "SUPPORTED_NODES":
        return kinds()
    raise AttributeError(f"module 'torch.utils._pytree' has no attribute {name!r}")
