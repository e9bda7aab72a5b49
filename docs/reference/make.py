"""Writes the pages of the reference: `make reference`.

Files' keys come of the parser that reads them, by way of its JSON Schemas, and commands of the command line's own: so
there is no second copy of either. tests/python/test_reference.py compares the pages with what this would write.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from torchemu.bridge.binding import go
from torchemu.launch import commands, topologies

ABOUT = {
    "topology": """A topology.yaml describes a fabric: `--topology FILE`. A key that is left out has its default,
which is the preset `default`'s; only `system.sips.count` has none. `torchemu topology validate FILE` says what is
wrong in one.""",
    "ccl": """A ccl.yaml chooses algorithms: `--ccl FILE`. A key that is left out is as in the built-in one. `NAME`
is an algorithm of all_reduce, or one of the file's own, which has a kernel.""",
    "faults": """A file of faults says what goes wrong, and when: `--faults FILE`. Times are simulated. See
[faults](../faults.md).""",
}
USE = """Editors that know YAML's language server take the schema, [{kind}.schema.json]({kind}.schema.json) or what
`torchemu schema {kind}` prints, from a line at the top of the file:

    # yaml-language-server: $schema={kind}.schema.json
"""


def keys(schema: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Goes through all keys that have values of their own, by path."""
    if schema.get("type") == "array":
        yield from keys(schema["items"], f"{path}[]") if "properties" in schema["items"] else [(path, schema)]
    elif "properties" not in schema:
        yield path, schema
    else:
        for name, part in schema["properties"].items():
            yield from keys(part, f"{path}.{name}" if path else name)
        if isinstance(schema["additionalProperties"], dict):
            yield from keys(schema["additionalProperties"], f"{path}.NAME")


def sections(schema: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Goes through all keys that have keys below them."""
    for name, part in schema.get("properties", {}).items():
        if "properties" in part:
            yield f"{path}{name}", part
            yield from sections(part, f"{path}{name}.")


def row(path: str, schema: dict[str, Any]) -> str:
    """A line of a page's table."""
    is_list = schema.get("type") == "array"
    leaf = schema["items"] if is_list else schema
    about = leaf.get("description", schema.get("description", "")).removeprefix("must be ")
    if not about and "anyOf" in leaf:
        about = ", ".join(leaf["anyOf"][0]["enum"]) + ", or a kernel of the file's own"
    about = ("a list, each of it " if is_list and about else "") + about
    default = f"`{json.dumps(leaf['default'])}`" if "default" in leaf else ""
    return f"| `{path}` | {about} | {default} |".replace("  ", " ")


def file_page(kind: str) -> str:
    """The page about a kind of file."""
    schema = json.loads(go.FileSchema(kind))
    open_ = {path for path, part in sections(schema) if isinstance(part["additionalProperties"], dict)}
    shown = [
        (p, part) for p, part in keys(schema) if not any(p.startswith(f"{o}.") and f"{o}.NAME" not in p for o in open_)
    ]
    rows = "\n".join(row(path, part) for path, part in shown)
    about = f"# {schema['title']}\n\n{ABOUT[kind]}\n\n{USE.format(kind=kind)}"
    return f"{about}\n| key | must be | default |\n|---|---|---|\n{rows}\n"


def commands_page() -> str:
    """The page about the command line."""
    parser = commands.parser()
    (listed,) = (action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    parts = ["# Commands\n\nWhat each says of itself with `--help`.\n"]
    for name, command in listed.choices.items():
        parts.append(f"## torchemu {name}\n\n```text\n{command.format_help().rstrip()}\n```\n")
    return "\n".join(parts)


def pages() -> dict[str, str]:
    """All files, by name."""
    os.environ["COLUMNS"] = "120"  # argparse's lines
    written = {f"{kind}.md": file_page(kind) for kind in topologies.KINDS}
    written |= {f"{kind}.schema.json": go.FileSchema(kind) + "\n" for kind in topologies.KINDS}
    return written | {"commands.md": commands_page()}


if __name__ == "__main__":
    for name, text in pages().items():
        Path(__file__).with_name(name).write_text(text)
