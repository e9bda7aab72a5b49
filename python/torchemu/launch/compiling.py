"""Programs' code, as ranks need it."""

from __future__ import annotations

import ast
import functools
import types
import zlib
from pathlib import Path

from torchemu.launch import busy_loops, own_attributes, set_orders


def compiled(source: bytes, file: str, own_orders: bool = False) -> types.CodeType | None:
    """Returns the code of a program's file; None where the one that Python makes of it is right.

    Args:
        source: what is in the file.
        file: its path.
        own_orders: ranks go through sets in orders of their own.

    Raises:
        SyntaxError: it is not Python.
    """
    tree = ast.parse(source, file)
    return code_of(tree, file) if adapt(tree, own_orders) else None


def told(source: bytes, file: str) -> types.CodeType | None:
    """Returns the code of a file of a package that sets attributes for its rank, as a program does; None where it sets
    none. Its loops are not looked at: none of them waits for another rank.

    Args:
        source: what is in the file.
        file: its path.
    """
    telling, tree = own_attributes.Telling(), ast.parse(source, file)
    telling.visit(tree)
    return code_of(tree, file) if telling.found else None


def code_of(tree: ast.Module, file: str) -> types.CodeType:
    """Returns the code of a file's tree that was changed."""
    code: types.CodeType = compile(ast.fix_missing_locations(tree), file, "exec", dont_inherit=True)
    return code


def adapt(tree: ast.Module, own_orders: bool) -> bool:
    """Changes a program's tree to what ranks need. Returns whether there was something to change.

    Args:
        tree: of one of its files.
        own_orders: ranks go through sets in orders of their own.
    """
    telling, looking = own_attributes.Telling(), busy_loops.Spinning()
    looking.visit(telling.visit(tree))
    if own_orders:
        set_orders.Through().visit(tree)
    return own_orders or telling.found or looking.found


@functools.cache
def way(*modules: types.ModuleType) -> int:
    """Returns a number that tells ways of compiling apart: those by the text of modules; without any, adapt's."""
    files = (str(module.__file__) for module in modules or (busy_loops, own_attributes, set_orders))
    return zlib.crc32(b"".join(Path(file).read_bytes() for file in files))
