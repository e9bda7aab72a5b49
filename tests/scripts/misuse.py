# torchrun --nproc-per-node 2 misuse.py
"""Calls that a rank can know to be wrong: the exception's type and how its text begins."""

import os
import warnings
from datetime import timedelta

import torch
import torch.distributed as dist

warnings.simplefilter("ignore")


def said(what, call, shown=60):
    """Prints, on rank 0, what the call raises."""
    try:
        call()
        text = "nothing"
    except Exception as error:
        text = f"{type(error).__name__}: {str(error).splitlines()[0][:shown]}"
    if os.environ["RANK"] == "0":
        print(f"{what}: {text}")


t, u = torch.ones(4), torch.ones(4, dtype=torch.int64)
said("before init", lambda: dist.all_reduce(t), 40)
dist.init_process_group("gloo")
rank = dist.get_rank()
said("twice", lambda: dist.init_process_group("gloo"))
said("not a tensor", lambda: dist.all_reduce([1, 2]))
said("not a list", lambda: dist.all_gather(t, t))
said("list of dtypes", lambda: dist.all_gather([t, u], t), 50)
said("send to self", lambda: dist.send(t, rank), 25)
said("no such root", lambda: dist.broadcast(t, 5))
said("both", lambda: dist.broadcast(t, src=0, group_src=0))
said("neither", lambda: dist.broadcast(t))
said("too many", lambda: dist.new_group([0, 1, 2]))
said("subgroups", lambda: dist.new_subgroups(group_size=3))
said("no operation", lambda: dist.P2POp(dist.broadcast, t, 1))
said("empty batch", lambda: dist.batch_isend_irecv([]))
said("not operations", lambda: dist.batch_isend_irecv([1]))
said("splits", lambda: dist.all_to_all_single(torch.empty(4), t, [1, 1], [2, 2]))
said("bad timeout", lambda: dist.new_group([0, 1], timeout=3))
said("gathered size", lambda: dist.all_gather_into_tensor(torch.empty(7), t))
said("list lengths", lambda: dist.all_gather([t], t))
said("destroyed", lambda: (dist.destroy_process_group(), dist.get_rank())[1], 40)
said("timeout", lambda: dist.TCPStore("127.0.0.1", 0, is_master=True).wait(["k"], timedelta(milliseconds=50)), 20)
