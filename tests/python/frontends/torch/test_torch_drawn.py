"""Random numbers of DTensors from a generator that the program passes, against those of the default generator."""

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh

import torchemu


@torchemu.distributed(world_size=2, torch="real")
def test_dtensors_drawn_by_a_generator_of_a_device():
    from torch.distributed.tensor import Shard, empty

    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank())
    mesh = init_device_mesh("cuda", (2,))
    ours, default = (empty((8, 3), device_mesh=mesh, placements=[Shard(0)]) for _ in range(2))
    generator = torch.Generator(device="cuda")
    last = None
    for seed in (42, None, 55):
        if seed is not None:
            torch.manual_seed(seed)
            generator.manual_seed(seed)
        drawn = torch.nn.init.uniform_(ours, generator=generator).full_tensor()
        assert torch.equal(drawn, torch.nn.init.uniform_(default).full_tensor())
        assert len(drawn.unique()) == 24
        assert last is None or not torch.equal(drawn, last)
        last = drawn
