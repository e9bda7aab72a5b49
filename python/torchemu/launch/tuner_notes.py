"""Choices of algorithms that a run says were made without trying all."""

from __future__ import annotations

import json
import sys

from torchemu import runtime
from torchemu.bridge.binding import go


def tell(world: runtime.World) -> None:
    """Names, on stderr, algorithms that may be faster than what `auto` chose, and take too long to simulate."""
    for collective, ranks, chosen, others in json.loads(go.UntriedAlgorithms(world.handle)):
        print(
            f"torchemu: {collective} among {ranks} ranks goes by {chosen}: {', '.join(others)} may be faster, but "
            "auto did not try what takes so long to simulate; ccl.yaml can name an algorithm",
            file=sys.stderr,
        )
