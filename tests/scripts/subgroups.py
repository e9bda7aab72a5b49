# torchrun --nproc-per-node 8 subgroups.py
"""Groups within groups: by list, by enumeration, by size; ranks of the world and of the group."""

import warnings

import torch
import torch.distributed as dist

warnings.simplefilter("ignore")  # those about ranks that are not members
dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()


def say(*words):
    """Prints what all ranks say, in the order of ranks."""
    everybody = [None] * size
    dist.all_gather_object(everybody, " ".join(map(str, words)))
    if rank == 0:
        for r, text in enumerate(everybody):
            print(f"  {r}: {text}")


def title(text):
    if rank == 0:
        print(text)


title("rows and columns")
rows = [dist.new_group([2 * r, 2 * r + 1]) for r in range(4)]
columns = [dist.new_group([c, c + 2, c + 4, c + 6]) for c in range(2)]
row, column = rows[rank // 2], columns[rank % 2]
t = torch.tensor([rank])
dist.all_reduce(t, group=row)
u = t.clone()
dist.all_reduce(u, op=dist.ReduceOp.MAX, group=column)
say(t.item(), u.item(), dist.get_rank(column), dist.get_world_size(column), dist.get_process_group_ranks(column))

title("members in another order")
shuffled = dist.new_group([6, 1, 4])
say(dist.get_rank(shuffled), dist.get_world_size(shuffled))
if rank in (1, 4, 6):
    assert dist.get_global_rank(shuffled, 0) == 1 and dist.get_group_rank(shuffled, 6) == 2
    t = torch.tensor([10 * rank])
    dist.broadcast(t, src=4, group=shuffled)
    u = torch.tensor([10 * rank])
    dist.broadcast(u, group_src=2, group=shuffled)
    assert (t.item(), u.item()) == (40, 60)

title("what is no member's business")
t = torch.tensor([rank])
says = dist.all_reduce(t, group=rows[0])
say(says, t.item(), rows[3] == dist.GroupMember.NON_GROUP_MEMBER)

title("equal parts")
mine, everyones = dist.new_subgroups(group_size=4)
gathered = [torch.zeros(1, dtype=torch.int64) for _ in range(4)]
dist.all_gather(gathered, torch.tensor([rank * rank]), group=mine)
say([g.item() for g in gathered], len(everyones))

title("an enumeration")
mine, everyones = dist.new_subgroups_by_enumeration([[0, 7], [1, 6], [2, 5], [3, 4]])
t = torch.tensor([rank])
dist.reduce(t, dst=max(rank, 7 - rank), group=mine)
say(t.item() if rank > 3 else "-")

title("one group goes, the others stay")
dist.destroy_process_group(column)
t = torch.ones(1)
dist.all_reduce(t, group=row)
dist.all_reduce(t)
say(t.item())
dist.destroy_process_group()
