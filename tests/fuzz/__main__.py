"""python -m fuzz --seconds N: see the package."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from fuzz.gloo import Gloo
from fuzz.session import SIZES, Session


def main() -> int:
    """Returns 1 if there were findings."""
    parser = argparse.ArgumentParser(prog="fuzz", description=__doc__)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, help="of the first batch; without it one by the clock")
    parser.add_argument("--folder", type=Path, default=Path("build/fuzz"), help="where failing programs are written to")
    parser.add_argument("--torch", choices=["numpy", "real"], action="append", help="a front end; without it both")
    arguments = parser.parse_args()
    seed = arguments.seed if arguments.seed is not None else int(time.time()) % 10**6
    print(f"the first seed is {seed}", flush=True)
    gloo = Gloo(max(SIZES))
    session = Session(gloo, arguments.torch or ["numpy", "real"], arguments.folder)
    try:
        session.run(seed, arguments.seconds)
    finally:
        gloo.close()
    return min(session.counts["findings"], 1)


sys.exit(main())
