"""What nodes of pytrees are: which classes, their children, and how they are made of children again."""

from __future__ import annotations

import dataclasses
from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from torchemu.frontends.numpy._shape import Size
from torchemu.runtime.rank_local import RankLocal

KeyPath = tuple[Any, ...]


@dataclasses.dataclass(frozen=True)
class SequenceKey:
    """The place of an element in a list or tuple."""

    idx: int

    def __str__(self) -> str:
        return f"[{self.idx!r}]"

    def get(self, sequence: Any) -> Any:
        """What is there."""
        return sequence[self.idx]


@dataclasses.dataclass(frozen=True)
class MappingKey:
    """The place of a value in a dict."""

    key: Any

    def __str__(self) -> str:
        return f"[{self.key!r}]"

    def get(self, mapping: Any) -> Any:
        """What is there."""
        return mapping[self.key]


@dataclasses.dataclass(frozen=True)
class GetAttrKey:
    """The place of an attribute."""

    name: str

    def __str__(self) -> str:
        return f".{self.name}"

    def get(self, obj: Any) -> Any:
        """What is there."""
        return getattr(obj, self.name)


class NodeDef(NamedTuple):
    """A kind of nodes.

    Attributes:
        type: the class; of named tuples ``namedtuple``.
        flatten_fn: a node → its children, and a context.
        unflatten_fn: children and the context → the node.
        flatten_with_keys_fn: a node → pairs of the key and the child, and the context; None: paths are not known.
    """

    type: Any
    flatten_fn: Callable[[Any], tuple[Any, Any]]
    unflatten_fn: Callable[[Iterable[Any], Any], Any]
    flatten_with_keys_fn: Callable[[Any], tuple[Any, Any]] | None = None


def _of_sequence(kind: Any, make: Callable[[Iterable[Any], Any], Any], context: Callable[[Any], Any]) -> NodeDef:
    return NodeDef(
        kind,
        lambda node: (list(node), context(node)),
        make,
        lambda node: ([(SequenceKey(i), child) for i, child in enumerate(node)], context(node)),
    )


def _of_mapping(kind: Any, make: Callable[[Iterable[Any], Any], Any], context: Callable[[Any], Any]) -> NodeDef:
    return NodeDef(
        kind,
        lambda node: (list(node.values()), context(node)),
        make,
        lambda node: ([(MappingKey(key), child) for key, child in node.items()], context(node)),
    )


def _defaults(children: Iterable[Any], context: Any) -> Any:
    factory, keys = context
    return defaultdict(factory, zip(keys, children, strict=True))


def _nothing(node: Any) -> None:
    return None


NAMED_TUPLES = NodeDef(
    namedtuple,
    lambda node: (list(node), type(node)),
    lambda children, kind: kind(*children),
    lambda node: ([(GetAttrKey(name), getattr(node, name)) for name in node._fields], type(node)),
)

MAPPINGS = (dict, OrderedDict, defaultdict)
"""Those that stand for each other where trees are compared."""


def _known() -> dict[Any, NodeDef]:
    """What every rank begins with."""
    kinds = [
        _of_sequence(list, lambda children, _: list(children), _nothing),
        _of_sequence(tuple, lambda children, _: tuple(children), _nothing),
        _of_sequence(Size, lambda children, _: Size(children), _nothing),
        _of_sequence(deque, lambda children, length: deque(children, maxlen=length), lambda node: node.maxlen),
        _of_mapping(dict, lambda children, keys: dict(zip(keys, children, strict=True)), list),
        _of_mapping(OrderedDict, lambda children, keys: OrderedDict(zip(keys, children, strict=True)), list),
        _of_mapping(defaultdict, _defaults, lambda node: [node.default_factory, list(node)]),
        NAMED_TUPLES,
    ]
    return {kind.type: kind for kind in kinds}


_KINDS: RankLocal[dict[Any, NodeDef]] = RankLocal(_known)


def kinds() -> dict[Any, NodeDef]:
    """The running rank's kinds of nodes, by class."""
    return _KINDS.get()


def is_namedtuple_class(cls: type) -> bool:
    """Whether its instances are named tuples."""
    fields = getattr(cls, "_fields", None)
    return isinstance(cls, type) and issubclass(cls, tuple) and isinstance(fields, tuple)


def kind_of(tree: Any) -> NodeDef | None:
    """The kind of a node; None: it is a leaf."""
    cls, known = type(tree), kinds()
    found = known.get(cls)
    if found is None and is_namedtuple_class(cls):
        return known[namedtuple]
    return found


def keys_of(cls: Any, context: Any) -> list[Any]:
    """The keys of a mapping, from its context."""
    keys: list[Any] = context[1] if cls is defaultdict else context
    return keys


def register_pytree_node(
    cls: type,
    flatten_fn: Callable[[Any], tuple[Any, Any]],
    unflatten_fn: Callable[[Iterable[Any], Any], Any],
    *,
    serialized_type_name: str | None = None,
    to_dumpable_context: Callable[[Any], Any] | None = None,
    from_dumpable_context: Callable[[Any], Any] | None = None,
    flatten_with_keys_fn: Callable[[Any], tuple[Any, Any]] | None = None,
) -> None:
    """Lets instances of a class be nodes, in this rank.

    Args:
        cls: the class itself; subclasses are others.
        flatten_fn: a node → its children, and what else it takes to make it again.
        unflatten_fn: these two → the node.
        serialized_type_name, to_dumpable_context, from_dumpable_context: mean nothing here.
        flatten_with_keys_fn: as flatten_fn, with pairs of a key and a child.

    Raises:
        ValueError: the class is known already.
    """
    known = kinds()
    if cls in known:
        raise ValueError(f"{cls} is already registered as pytree node.")
    known[cls] = NodeDef(cls, flatten_fn, unflatten_fn, flatten_with_keys_fn)


def register_dataclass(
    cls: type,
    *,
    field_names: list[str] | None = None,
    drop_field_names: list[str] | None = None,
    serialized_type_name: str | None = None,
) -> None:
    """Lets instances of a dataclass be nodes, whose children are their fields. Fields that are None are left out.

    Args:
        cls: the class.
        field_names: which fields; None: all that ``__init__`` takes.
        drop_field_names: those that are to have their defaults.
        serialized_type_name: means nothing here.

    Raises:
        ValueError: not all fields are named, or the class has none and none are named.
    """
    dropped = drop_field_names or []
    if dataclasses.is_dataclass(cls):
        names = {field.name for field in dataclasses.fields(cls) if field.init}
        field_names = [f.name for f in dataclasses.fields(cls) if f.init] if field_names is None else field_names
        _check_fields(names, set(field_names), set(dropped))
    elif field_names is None:
        raise ValueError(
            f"field_names must be specified with a list of all fields used to initialize {cls}, as it is not a "
            "dataclass."
        )
    chosen = tuple(name for name in field_names if name not in dropped)

    def split(node: Any) -> tuple[list[str], list[str]]:
        missing = [name for name in chosen if getattr(node, name) is None]
        return [name for name in chosen if name not in missing], missing

    def flatten(node: Any) -> tuple[list[Any], Any]:
        present, missing = split(node)
        return [getattr(node, name) for name in present], [present, missing]

    def flatten_with_keys(node: Any) -> tuple[list[Any], Any]:
        present, missing = split(node)
        return [(GetAttrKey(name), getattr(node, name)) for name in present], [present, missing]

    def unflatten(children: Iterable[Any], context: Any) -> Any:
        return cls(**dict(zip(context[0], children, strict=True)), **dict.fromkeys(context[1]))

    register_pytree_node(cls, flatten, unflatten, flatten_with_keys_fn=flatten_with_keys)


def _check_fields(names: set[str], given: set[str], dropped: set[str]) -> None:
    missing, unknown = names - given - dropped, (given | dropped) - names
    if missing:
        raise ValueError(
            f"field_names does not include all dataclass fields.\nMissing fields in `field_names`: {sorted(missing)}. "
            "If you want to include these fields in the pytree, please add them to `field_names`, otherwise please "
            "add them to `drop_field_names`.\n"
        )
    if unknown:
        raise ValueError(f"field_names includes unknown dataclass fields: {sorted(unknown)}.")


def register_constant(cls: type) -> None:
    """Lets instances of a class be nodes without children, which are compared by ``==``.

    Raises:
        TypeError: they are compared by identity.
    """
    if cls.__eq__ is object.__eq__:
        raise TypeError(
            f"register_constant(cls) expects `cls` to have a non-default `__eq__` implementation, which {cls} has not"
        )
    register_pytree_node(
        cls, lambda node: ([], node), lambda children, node: node, flatten_with_keys_fn=lambda node: ([], node)
    )


def keystr(kp: Sequence[Any]) -> str:
    """The path as Python would have it: ``['a'][0].b``."""
    return "".join(map(str, kp))


def key_get(obj: Any, kp: Sequence[Any]) -> Any:
    """What is at the end of a path."""
    for key in kp:
        obj = key.get(obj)
    return obj
