# torchrun --nproc-per-node 4 experts.py
"""A mixture of experts, one on each rank: tokens go to their experts and come back (all_to_all_single, uneven)."""

import torch
import torch.distributed as dist

TOKENS, WIDTH = 10, 4


def main():
    dist.init_process_group("gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    tokens = torch.arange(TOKENS * WIDTH, dtype=torch.float32).reshape(TOKENS, WIDTH) + 100 * rank
    expert_of = torch.tensor([(i * i + rank) % (size - 1 if rank == 0 else size) for i in range(TOKENS)])

    order = torch.argsort(expert_of, stable=True)
    give = torch.tensor([int((expert_of == e).sum()) for e in range(size)])
    take = torch.empty_like(give)
    dist.all_to_all_single(take, give)
    outgoing = tokens[order]
    incoming = torch.empty(int(take.sum()), WIDTH)
    dist.all_to_all_single(incoming, outgoing, take.tolist(), give.tolist())

    computed = incoming * (rank + 1)
    returned = torch.empty_like(outgoing)
    dist.all_to_all_single(returned, computed, give.tolist(), take.tolist())
    result = torch.empty_like(tokens)
    result[order] = returned

    right = torch.equal(result, tokens * (expert_of.unsqueeze(1) + 1))
    reports = [None] * size if rank == 0 else None
    dist.gather_object((give.tolist(), take.tolist(), incoming.sum().item(), right), reports)
    if rank == 0:
        for r, report in enumerate(reports):
            print(f"rank {r}: gives {report[0]}, takes {report[1]}, sum {report[2]}, {report[3]}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
