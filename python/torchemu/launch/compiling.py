"""Programs' code, as ranks need it."""

from __future__ import annotations

import ast
import types

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
    telling, looking = own_attributes.Telling(), busy_loops.Spinning()
    tree = looking.visit(telling.visit(ast.parse(source, file)))
    if own_orders:
        tree = set_orders.Through().visit(tree)
    elif not (telling.found or looking.found):
        return None
    code: types.CodeType = compile(ast.fix_missing_locations(tree), file, "exec", dont_inherit=True)
    return code
