# torchrun --nproc-per-node 3 recovery.py
"""Programs that go on after an error: wrong arguments, a rank that is late, a group that is made anew."""

from datetime import timedelta

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()


def kind_of(call):
    try:
        call()
    except Exception as error:
        return type(error).__name__
    return "fine"


def told(title, what):
    answers = [None] * 3
    dist.all_gather_object(answers, what)
    if rank == 0:
        print(title, answers, flush=True)


t = torch.ones(4)
told("send to oneself:", kind_of(lambda: dist.send(t, rank)))
told("no tensor:", kind_of(lambda: dist.all_reduce([1, 2])))
told("rank that is not there:", kind_of(lambda: dist.broadcast(t, 9)))
told("both ranks:", kind_of(lambda: dist.broadcast(t, 0, group_src=0)))
told("list of one:", kind_of(lambda: dist.all_gather([t], t)))
told("two dtypes:", kind_of(lambda: dist.all_gather([t, t, t.double()], t)))
told("integers only:", kind_of(lambda: dist.all_reduce(t, dist.ReduceOp.BXOR)))
told("no such store:", kind_of(lambda: dist.init_process_group("gloo")))
told("timeout of a number:", kind_of(lambda: dist.new_group([0, 1], timeout=3)))
dist.all_reduce(t)
told("and still:", t.tolist())

work = dist.irecv(torch.empty(1), src=(rank + 1) % 3, tag=5)
told("not there yet:", work.is_completed())
dist.send(torch.full((1,), float(rank)), dst=(rank - 1) % 3, tag=5)
told("waited for:", work.wait() or True)

some = dist.new_group([0, 2])
told("outsiders:", "group" if isinstance(some, dist.ProcessGroup) else some)
if rank != 1:
    dist.all_reduce(t, group=some)
told("sums:", t[0].item())
dist.destroy_process_group()
dist.init_process_group("gloo", timeout=timedelta(seconds=30))
dist.barrier()
told("made anew:", [dist.get_rank(), dist.is_initialized()])
dist.destroy_process_group()
told_nothing = kind_of(lambda: dist.barrier())
print(told_nothing) if rank == 0 else None
