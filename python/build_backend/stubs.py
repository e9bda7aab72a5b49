"""Writes the stubs by which type checkers know the names of torchemu.

    python python/build_backend/stubs.py [FOLDER]

Programs reach modules of the NumPy front end by second names (torchemu.nn), and tensors get their methods while the
package is loaded; type checkers see neither. From the loaded package this makes ``torchemu-stubs``, a partial stub
package (PEP 561) with one line for each name, and the methods of Tensor. tests/python/test_types.py compares them with
what is in the tree.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import inspect
import operator
import pkgutil
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import torchemu

FRONT_END = "torchemu.frontends.numpy"
METHODS = f"{FRONT_END}._tensor.operators"
_OWN = ("front_end", "namespace", "plan_operations", "pytorch")
"""Modules that are not for programs, and one that cannot be loaded without PyTorch."""

_SOURCES = Path(__file__).resolve().parents[1]
_PLAIN = {"Tensor", "None", "bool", "int", "float", "str", "bytes", "complex", "tuple[Tensor, ...]", "list[Tensor]"}
_CONSTANTS = {float: "float", int: "int", str: "str", bool: "bool", type(None): "None"}


def _public() -> list[str]:
    """The names that programs find in torchemu, and modules of its own."""
    front_end = importlib.import_module(FRONT_END)
    modules = {m.name for path in (front_end.__path__, torchemu.__path__) for m in pkgutil.iter_modules(path)}
    namespace = importlib.import_module(f"{FRONT_END}.namespace")
    names = {*dir(namespace), *modules, "kernel", "kernels", "pto"} - {*_OWN, "frontends"}
    return sorted(name for name in names if not name.startswith("_"))


def _origin(name: str, value: Any, homes: dict[int, tuple[str, str]]) -> tuple[str, str] | None:
    """The module and the name there of a value, as a type checker finds it."""
    if isinstance(value, ModuleType):
        return tuple(value.__name__.rpartition(".")[::2])  # type: ignore[return-value]
    module, own = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
    if (
        isinstance(value, type | FunctionType)
        and module
        and own
        and getattr(sys.modules.get(module), own, None) is value
    ):
        return module, own
    return homes.get(id(value))


def _homes() -> dict[int, tuple[str, str]]:
    """Where values are that do not know it: the module that defines them, and their name there."""
    found: dict[int, tuple[str, str]] = {}
    for module_name in sorted(m for m in sys.modules if m.startswith(f"{FRONT_END}.") or m == "torchemu.dtypes"):
        module = sys.modules[module_name]
        source = set(getattr(module, "__all__", ())) | _assigned(module)
        for name in sorted(source):
            value = getattr(module, name, None)
            if value is not None and type(value) not in _CONSTANTS:
                found.setdefault(id(value), (module_name, name))
    return found


def _assigned(module: ModuleType) -> set[str]:
    """The names that the statements of a module's file assign."""
    if not str(getattr(module, "__file__", "")).endswith(".py"):
        return set()
    tree = ast.parse(Path(str(module.__file__)).read_text())
    targets = [t for node in tree.body if isinstance(node, ast.Assign) for t in node.targets]
    return {t.id for t in targets if isinstance(t, ast.Name)}


def names_of(module: Any, names: list[str], homes: dict[int, tuple[str, str]]) -> str:
    """The stub of a module: an import or a type for each of some names."""
    imports, typed = [], []
    for name in names:
        value = getattr(module, name)
        if isinstance(value, torchemu.dtypes.dtype):
            typed.append(f"{name}: dtype")
        elif type(value) in _CONSTANTS:
            kind = _CONSTANTS[type(value)]
            typed.append(f"{name}: {'builtins.' if kind in names else ''}{kind}")
        elif (origin := _origin(name, value, homes)) is not None:
            imports.append(f"from {origin[0]} import {origin[1]} as {name}")
        else:
            typed.append(f"{name}: {_made(name, value)}")
    return "\n".join([*_header(typed, names), "", *sorted(imports), "", *sorted(typed), ""])


def _header(typed: list[str], names: list[str]) -> list[str]:
    """The first lines of a stub, which import what types of values are made of."""
    text = "\n".join(typed)
    needed = {
        "builtins": "import builtins",
        "Callable": "from collections.abc import Callable",
        "Any": "from typing import Any",
        "dtype": "from torchemu.dtypes import dtype",
        "Tensor": f"from {FRONT_END}._tensor.core import Tensor",
    }
    lines = [line for word, line in needed.items() if word not in names and re.search(rf"\b{word}\b", text)]
    return ['"""Names for type checkers; written by python/build_backend/stubs.py."""', "", *lines]


def _made(name: str, value: Any) -> str:
    """The type of a value that is made while the package is loaded; twins that work in place return the tensor."""
    if not callable(value) or isinstance(value, type):
        return "Any"
    return "Callable[..., Tensor]" if name.endswith("_") else "Callable[..., Any]"


_NOT_METHODS = {"__doc__", "__module__", "__annotations__", "__slots__", "__hash__", "__dict__", "__getattr__"}


def methods() -> str:
    """The stub of what tensors get while the package is loaded."""
    tensor = torchemu.Tensor
    own = {name for name in vars(tensor) if name in _written_in_class()}
    lines = [
        "# mypy: disable-error-code=empty-body",
        '"""The methods of Tensor that its class body does not have, for type checkers, and written by stubs.py."""',
        "",
        "import builtins",
        "from typing import Any",
        "",
        f"from {FRONT_END}._tensor.core import Tensor",
        "",
        "class Operators:",
    ]
    for name in sorted(vars(tensor)):
        value = inspect.getattr_static(tensor, name)
        if name in own or name in _NOT_METHODS:
            continue
        if callable(value):
            lines.append(_method(name, value))
        elif isinstance(value, property):
            lines += ["    @property", f"    def {name}(self) -> {_returned(value.fget)}: ..."]
    return "\n".join([*lines, ""])


def _written_in_class() -> set[str]:
    file = Path(str(sys.modules[f"{FRONT_END}._tensor.core"].__file__))
    body = next(n for n in ast.parse(file.read_text()).body if isinstance(n, ast.ClassDef) and n.name == "Tensor").body
    named = {n.name for n in body if isinstance(n, ast.FunctionDef)}
    return named | {n.target.id for n in body if isinstance(n, ast.AnnAssign) and isinstance(n.target, ast.Name)}


def _method(name: str, function: Any) -> str:
    overrides = "  # type: ignore[override]" if name in ("__eq__", "__ne__") else ""
    returned = _returned(function)
    if returned == "Any" and _is_operator(name):
        returned = "Tensor"
    return f"    def {name}({', '.join(_parameters(function))}) -> {returned}: ...{overrides}"


def _is_operator(name: str) -> bool:
    """Whether a method is one of Python's operators, perhaps with the operands exchanged or in place."""
    plain = name.strip("_")
    return name.startswith("__") and (hasattr(operator, plain) or hasattr(operator, plain[1:]))


def _parameters(function: Any) -> Iterator[str]:
    """The parameters as a stub has them: names, kinds and whether there is a default."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        yield from ("self", "*args: Any", "**kwargs: Any")
        return
    yield "self"
    starred = False
    for p in parameters[1:] if parameters and parameters[0].kind is not p_var else parameters:
        if p.kind is inspect.Parameter.KEYWORD_ONLY and not starred:
            starred = True
            yield "*"
        starred |= p.kind is inspect.Parameter.VAR_POSITIONAL
        prefix = "*" if p.kind is p_var else "**" if p.kind is inspect.Parameter.VAR_KEYWORD else ""
        default = "" if p.default is inspect.Parameter.empty else " = ..."
        yield f"{prefix}{p.name}: Any{default}"


p_var = inspect.Parameter.VAR_POSITIONAL


def _returned(function: Any) -> str:
    annotation = getattr(inspect.unwrap(function), "__annotations__", {}).get("return", "Any")
    text = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "Any")
    return re.sub(r"\b(bool|int|float|str|bytes|complex)\b", r"builtins.\1", text) if text in _PLAIN else "Any"


def seconds() -> Iterator[tuple[str, str]]:
    """The stubs of modules under their second names: the path of each, and the module that it stands for."""
    elsewhere = {"kernels": "torchemu.language.kernels", "pto": "torchemu.frontends.pto"}
    front_end = importlib.import_module(FRONT_END)
    tops = {m.name: f"{FRONT_END}.{m.name}" for m in pkgutil.iter_modules(front_end.__path__)} | elsewhere
    for name, module in sorted(tops.items()):
        if name not in _OWN and not name.startswith("_"):
            yield from _stubs_of(name, module)


def _exported(module: ModuleType) -> list[str]:
    """The names that a program may take from a module: what it says, or all that is public and not another's."""
    listed = getattr(module, "__all__", None)
    if listed is not None:
        return sorted(set(listed))
    public = (name for name in dir(module) if not name.startswith("_"))
    return sorted(name for name in public if not _is_foreign(module, getattr(module, name)))


def _is_foreign(module: ModuleType, value: Any) -> bool:
    """Whether a module has imported a value from outside of torchemu."""
    owner = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
    return owner is not None and not str(owner).startswith("torchemu")


def _stubs_of(path: str, name: str) -> Iterator[tuple[str, str]]:
    spec = importlib.util.find_spec(name)
    inside = None if spec is None else spec.submodule_search_locations
    if inside is None:
        yield f"{path}.pyi", name
        return
    yield f"{path}/__init__.pyi", name
    for inner in pkgutil.iter_modules(inside):
        if not inner.name.startswith("_"):
            yield from _stubs_of(f"{path}/{inner.name}", f"{name}.{inner.name}")


def written() -> dict[str, str]:
    """All stubs, by their path below python/."""
    modules = {path: importlib.import_module(name) for path, name in seconds()}
    homes = _homes()
    stubs = {f"torchemu-stubs/{path}": names_of(m, _exported(m), homes) for path, m in modules.items()}
    stubs["torchemu-stubs/__init__.pyi"] = names_of(torchemu, [*_public(), "__version__"], homes)
    stubs["torchemu-stubs/py.typed"] = "partial\n"
    stubs[f"{METHODS.replace('.', '/')}.py"] = methods()  # of a .pyi beside what imports it Pyright knows no names
    return stubs


if __name__ == "__main__":
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else _SOURCES
    shutil.rmtree(folder / "torchemu-stubs", ignore_errors=True)
    for path, text in written().items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
