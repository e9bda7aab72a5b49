# torchrun --nproc-per-node 2 environment.py one --two=3
"""Prints what torchrun tells a program: environment, arguments, names."""

import os
import sys

import torch.distributed as dist

NAMES = ["RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK", "GROUP_WORLD_SIZE", "ROLE_RANK"]
NAMES += ["ROLE_NAME", "ROLE_WORLD_SIZE", "TORCHELASTIC_RESTART_COUNT", "TORCHELASTIC_MAX_RESTARTS"]

dist.init_process_group("gloo")
everybody = [None] * dist.get_world_size()
about = {name: os.environ[name] for name in NAMES}
os.environ["MINE"] = str(dist.get_rank() * 7)
dist.all_gather_object(everybody, (about, os.environ["MINE"], dist.get_node_local_rank()))
if dist.get_rank() == 0:
    print(os.path.basename(sys.argv[0]), sys.argv[1:], __name__)
    for about, mine, local in everybody:
        print(about, mine, local)
    print(dist.is_torchelastic_launched(), dist.is_initialized(), dist.get_backend())
dist.destroy_process_group()
print(dist.is_initialized()) if os.environ["RANK"] == "0" else None
