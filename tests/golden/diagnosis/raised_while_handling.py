# torchemu run --nproc-per-node 2 raised_while_handling.py
"""An exception in the handling of another one: both are shown."""

import torch.distributed as dist

dist.init_process_group("gloo")
try:
    config = {"rate": 0.1}
    config["rates"]
except KeyError:
    if dist.get_rank() == 0:
        raise RuntimeError("the configuration has no rates")  # noqa: B904
dist.barrier()
