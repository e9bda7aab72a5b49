"""Ranks under torchemu that run one script after another: batch.py FOLDER. Results are written beside the scripts."""

import json
import os
import sys
from pathlib import Path

FOLDER, RANK = Path(sys.argv[1]), os.environ["RANK"]

for script in sorted(FOLDER.glob("*.py")):
    names: dict[str, object] = {"__name__": "a script"}
    exec(compile(script.read_text(), str(script), "exec"), names)
    script.with_suffix(f".{RANK}").write_text(json.dumps(names["results"]()))  # type: ignore[operator]
