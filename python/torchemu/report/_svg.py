"""Making SVG and HTML out of text."""

from __future__ import annotations

import html
from collections.abc import Iterable


def escaped(text: object) -> str:
    """Text as it stands in HTML, in quotes too."""
    return html.escape(str(text))


def number(x: float) -> str:
    """A coordinate, as short as it can be seen."""
    return f"{x:.2f}".rstrip("0").rstrip(".")


def fine(x: float) -> str:
    """A coordinate of what may be looked at more closely."""
    return f"{x:.4f}".rstrip("0").rstrip(".")


def element(name: str, content: str = "", **attributes: object) -> str:
    """An element. Underscores in names of attributes are hyphens; class_ is class; numbers are coordinates."""
    parts = []
    for key, value in attributes.items():
        if value is not None and value != "":
            shown = number(value) if isinstance(value, float) else escaped(value)
            parts.append(f' {key.rstrip("_").replace("_", "-")}="{shown}"')
    start = f"<{name}{''.join(parts)}"
    return f"{start}>{content}</{name}>" if content else f"{start}/>"


def tip(text: str) -> str:
    """Returns the tip of the element around, shown under the mouse."""
    return f"<title>{escaped(text)}</title>"


def picture(width: float, height: float, content: Iterable[str], class_: str) -> str:
    """A drawing that is as wide as its place."""
    return element("svg", "".join(content), class_=class_, viewBox=f"0 0 {number(width)} {number(height)}", role="img")


def heat(share: float) -> str:
    """The colour of a share of a link's bandwidth, from a cold grey over yellow and orange to a red that is
    seen on light and on dark pages."""
    x = min(max(share, 0.0), 1.0) * (len(_HEAT) - 1)
    i = min(int(x), len(_HEAT) - 2)
    a, b = _HEAT[i], _HEAT[i + 1]
    return "#" + "".join(f"{round(p + (q - p) * (x - i)):02x}" for p, q in zip(a, b, strict=True))


_HEAT = ((213, 219, 226), (247, 214, 120), (241, 148, 61), (226, 84, 48), (186, 14, 62))
