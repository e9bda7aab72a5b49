"""A process of gloo that runs one script after another: worker.py RANK PORT.

Each line that it reads is a script's path, the number of ranks and where to write results; each line that it writes
says how a script has ended.
"""

import json
import os
import sys
import traceback
import warnings
from pathlib import Path

import torch
import torch.distributed as dist

torch.set_num_threads(1)
warnings.simplefilter("ignore")
RANK, STORE = int(sys.argv[1]), dist.TCPStore("127.0.0.1", int(sys.argv[2]), is_master=False)
_init, _destroy = dist.init_process_group, dist.destroy_process_group


def run(path: str, size: int, results: str) -> None:
    """Runs a script as a rank of so many, in a group whose keys in the store are its own."""

    def init(backend: str) -> None:
        _init(backend, store=dist.PrefixStore(results, STORE), rank=RANK, world_size=size)

    def destroy() -> None:
        dist.barrier()  # a process does not go on here while others still need it
        _destroy()

    dist.init_process_group, dist.destroy_process_group = init, destroy
    os.environ.update(RANK=str(RANK), LOCAL_RANK=str(RANK), WORLD_SIZE=str(size))
    names: dict[str, object] = {"__name__": "a script"}
    exec(compile(Path(path).read_text(), path, "exec"), names)
    Path(f"{results}.{RANK}").write_text(json.dumps(names["results"]()))  # type: ignore[operator]


for line in sys.stdin:
    script, ranks, to = line.rstrip("\n").split("\t")
    try:
        run(script, int(ranks), to)
        print("done", flush=True)
    except BaseException:
        print("failed " + json.dumps(traceback.format_exc()), flush=True)
