# torchrun --nproc-per-node 2 sharded_mlp.py
"""A two-layer network cut over the ranks, trained: gradients go through collectives, and are those of the whole."""

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as funcol
import torch.distributed.nn.functional as dist_nn

HIDDEN, STEPS = 8, 4


def constants(rows, columns, start):
    return torch.sin(torch.arange(rows * columns, dtype=torch.float64) + start).reshape(rows, columns)


def trained(up, down, x, target, together):
    """Trains by gradient descent; together makes the sum of what the ranks have."""
    losses = []
    for _ in range(STEPS):
        loss = ((together(torch.tanh(x @ up) @ down) - target) ** 2).mean()
        losses.append(round(loss.item(), 9))
        up.grad = down.grad = None
        loss.backward()
        with torch.no_grad():
            up -= 0.1 * up.grad
            down -= 0.1 * down.grad
    return losses


def leaf(t):
    return t.clone().requires_grad_()


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    x, target = constants(5, 3, 1), constants(5, 2, 2)
    up, down = constants(3, HIDDEN, 3), constants(HIDDEN, 2, 4)
    whole = trained(leaf(up), leaf(down), x, target, lambda t: t)
    mine = slice(rank * HIDDEN // world, (rank + 1) * HIDDEN // world)

    def summed(t):
        # Backward adds up what all ranks' losses give: each is the whole loss, so one of world parts of it counts.
        total = dist_nn.all_reduce(t)
        return total / world + (1 - 1 / world) * total.detach()

    parts = trained(leaf(up[:, mine]), leaf(down[mine]), x, target, summed)
    if rank == 0:
        print("whole", whole)
        print("parts", parts)
        print("equal", all(abs(a - b) < 1e-9 for a, b in zip(whole, parts, strict=True)))

    rows = leaf(constants(4, 2, 10 * rank))
    gathered = torch.cat(dist_nn.all_gather(rows))
    (gathered**2).sum().backward()
    spread = leaf(constants(4, 2, 20 * rank))
    swapped = funcol.all_to_all_single_autograd(spread, None, None, dist.group.WORLD)
    (swapped * (rank + 1)).sum().backward()
    for turn in range(world):
        if rank == turn:
            print(f"rank {rank} gathered", [round(v, 6) for v in rows.grad.flatten().tolist()], flush=True)
            print(f"rank {rank} swapped", spread.grad.flatten().tolist(), flush=True)
        dist.barrier()
    dist.destroy_process_group()


main()
