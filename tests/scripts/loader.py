# torchrun --nproc-per-node 3 loader.py
"""Which samples each rank gets, in which order: samplers, loaders and collation of torch.utils.data."""

import collections

import numpy as np
import torch
import torch.distributed as dist
from torch.utils.data import (
    BatchSampler,
    ConcatDataset,
    DataLoader,
    Dataset,
    IterableDataset,
    RandomSampler,
    SequentialSampler,
    SubsetRandomSampler,
    TensorDataset,
    WeightedRandomSampler,
    random_split,
)
from torch.utils.data.distributed import DistributedSampler

Point = collections.namedtuple("Point", ["x", "y"])


class Squares(Dataset):
    def __init__(self, n):
        self.n = n

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        return {"i": i, "square": torch.tensor(i * i), "root": i**0.5, "name": f"n{i}", "at": Point(i, np.float32(-i))}


class Stream(IterableDataset):
    def __iter__(self):
        return iter(range(7))


dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()


def told(title, what):
    answers = [None] * size
    dist.all_gather_object(answers, what)
    if rank == 0:
        print(title, *answers, sep="\n  ", flush=True)


data = TensorDataset(torch.arange(20))
for shuffle, drop_last in ((False, False), (True, False), (True, True)):
    sampler = DistributedSampler(data, shuffle=shuffle, drop_last=drop_last, seed=4)
    loader = DataLoader(data, batch_size=3, sampler=sampler)
    epochs = []
    for epoch in range(2):
        sampler.set_epoch(epoch)
        epochs.append([batch.tolist() for (batch,) in loader])
    told(f"shuffle {shuffle}, drop_last {drop_last}: {len(sampler)} samples, {len(loader)} batches", epochs)
told("a dataset smaller than the group", list(DistributedSampler(range(2))))

torch.manual_seed(10 + rank)
loader = DataLoader(range(10), batch_size=4, shuffle=True)
told("shuffled by each rank", [[b.tolist() for b in loader] for _ in range(2)])
told("after that", torch.randint(0, 1000, (2,)).tolist())
told(
    "with a generator", [b.tolist() for b in DataLoader(range(9), 2, True, generator=torch.Generator().manual_seed(1))]
)
told("replaced", list(RandomSampler(range(5), replacement=True, num_samples=40)))
told("more than there are", list(RandomSampler(range(4), num_samples=10)))
told("some", list(SubsetRandomSampler([3, 1, 4, 1, 5])))
told("weighted", [i in (0, 2) for i in WeightedRandomSampler([0.3, 0.0, 0.7], 5)])
told("batches", list(BatchSampler(SequentialSampler(range(7)), 3, drop_last=rank == 1)))
told("split", [part.indices for part in random_split(range(10), [0.5, 0.3, 0.2], torch.Generator().manual_seed(rank))])

batch = next(iter(DataLoader(Squares(5), batch_size=2 + rank)))
told(
    "collated",
    [batch["i"].tolist(), batch["square"].tolist(), str(batch["root"].dtype), batch["name"], batch["at"]._fields],
)
told("not collated", [sample["i"] for sample in DataLoader(Squares(4), batch_size=None)])
told("of a stream", [b.tolist() for b in DataLoader(Stream(), batch_size=3, drop_last=rank == 2)])
told("joined", [b.tolist() for b in DataLoader(ConcatDataset([range(3), range(10, 12)]), batch_size=4)])
both = (data + TensorDataset(torch.arange(2)))[21]
told("added", both[0].item())


def kind_of(call):
    try:
        call()
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[:50]}"


told("sampler and shuffle", kind_of(lambda: DataLoader(data, shuffle=True, sampler=SequentialSampler(data))))
told("batch_sampler and size", kind_of(lambda: DataLoader(data, 2, batch_sampler=[[1]])))
told("negative workers", kind_of(lambda: DataLoader(data, num_workers=-1)))
told("no batch", kind_of(lambda: DataLoader(data, batch_size=0)))
told("shuffled stream", kind_of(lambda: DataLoader(Stream(), shuffle=True)))
told("wrong rank", kind_of(lambda: DistributedSampler(data, 2, 2)))
told("lengths", kind_of(lambda: random_split(data, [1, 2])))
told("different sizes", kind_of(lambda: next(iter(DataLoader([[1], [1, 2]], batch_size=2)))))
told("unknown", kind_of(lambda: next(iter(DataLoader([object()])))))
dist.destroy_process_group()
