# torchrun --nproc-per-node 3 tags.py
"""Messages with tags are received in another order than they were sent; those from anybody say from whom they are."""

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()
said = []
if rank == 0:
    sent = [dist.isend(torch.tensor([10 * tag + peer]), dst=peer, tag=tag) for tag in (3, 1, 2) for peer in (1, 2)]
    for request in sent:
        request.wait()
    boxes = [torch.zeros(2, dtype=torch.int64) for _ in range(4)]
    senders = [dist.recv(box, tag=7) for box in boxes]
    by_sender = {
        s: [box.tolist() for box, sender in zip(boxes, senders, strict=True) if sender == s] for s in set(senders)
    }
    print(by_sender)
else:
    for tag in (1, 2, 3):
        box = torch.zeros(1, dtype=torch.int64)
        assert dist.recv(box, src=0, tag=tag) == 0
        said.append(box.item())
    for i in range(2):
        dist.send(torch.tensor([rank, i]), dst=0, tag=7)
everybody = [None] * size
dist.all_gather_object(everybody, said)
if rank == 0:
    print(everybody[1:])
dist.destroy_process_group()
