# torchrun --nproc-per-node 3 objects.py
"""Objects of the program's own classes travel; those that arrive are of the receiver's classes."""

import dataclasses

import torch.distributed as dist
from torch.distributed.elastic.multiprocessing.errors import record


@dataclasses.dataclass
class Report:
    rank: int
    words: list

    made = 0


@record
def main():
    dist.init_process_group("gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    Report.made += rank
    reports = [None] * size
    dist.all_gather_object(reports, Report(rank, ["w"] * rank))
    assert all(type(report) is Report and report.made == rank for report in reports)
    best = [max(reports, key=lambda report: len(report.words)) if rank == 1 else None]
    dist.broadcast_object_list(best, src=1)
    assert best[0] == Report(2, ["w", "w"])
    if rank == 0:
        print(reports, best)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
