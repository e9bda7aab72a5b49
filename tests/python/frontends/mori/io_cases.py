"""mori.io: transfers of two engines of a rank, and of engines of ranks on two nodes, each against what was sent."""

import os
import warnings

import torch
import torch.distributed as dist
from failing import fails
from mori.io import (
    BackendType,
    EngineDesc,
    IOEngine,
    IOEngineConfig,
    MemoryDesc,
    MemoryLocationType,
    PollCqMode,
    RdmaBackendConfig,
    StatusCode,
    set_log_level,
)

rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group("cpu:gloo,cuda:nccl", rank=rank, world_size=world)
set_log_level("error")


def engine(key, **options):
    made = IOEngine(key=f"{key} {rank}", config=IOEngineConfig(host="127.0.0.1", port=8080))
    made.create_backend(BackendType.RDMA, RdmaBackendConfig(poll_cq_mode=PollCqMode.POLLING, **options))
    return made


def exchanged(packed):
    found = [None] * world
    dist.all_gather_object(found, packed)
    return found


# two engines of one rank
one, two = engine("one"), engine("two")
assert EngineDesc.unpack(one.get_engine_desc().pack()) == one.get_engine_desc()
a, b = torch.arange(100, dtype=torch.uint8, device="cuda"), torch.zeros(100, dtype=torch.uint8, device="cuda")
mine, theirs = one.register_torch_tensor(a), two.register_torch_tensor(b)
assert (mine.device_id, mine.data, mine.size) == (a.device.index, a.data_ptr(), 100)
assert mine.loc == MemoryLocationType.GPU and MemoryDesc.unpack(mine.pack()) == mine
fails(ValueError, "no packed MemoryDesc", lambda: MemoryDesc.unpack(b"{}"))
assert one.create_session(mine, theirs) is None
status = one.write(mine, 0, theirs, 0, 100, one.allocate_transfer_uid())
assert status.Failed() and status.Code() == StatusCode.ERR_NOT_FOUND and "two" in status.Message()
one.register_remote_engine(two.get_engine_desc())
uid = one.allocate_transfer_uid()
status = one.write(mine, 10, theirs, 20, 5, uid)
while status.InProgress():
    pass
assert status.Succeeded() and b.cpu().tolist() == [0] * 20 + [10, 11, 12, 13, 14] + [0] * 75
assert two.pop_inbound_transfer_status(f"one {rank}", uid).Succeeded()
assert two.pop_inbound_transfer_status(f"one {rank}", uid) is None
session = one.create_session(mine, theirs)
assert session.alive() and session.batch_read((0, 32), (0, 32), (32, 34), session.allocate_transfer_uid()).Wait() == 0
assert a.cpu().tolist()[:67] == [*b.cpu().tolist()[:66], 66]
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    beyond = session.write(90, 0, 11, session.allocate_transfer_uid())
    assert one.wait_all([beyond], 60000) == StatusCode.ERR_INVALID_ARGS
text = f"rank {rank} waits for a transfer that has failed with ERR_INVALID_ARGS: 11 bytes from 90 on are not in the 100"
assert [str(w.message)[: len(text)] for w in said] == [text], said
late = session.batch_read((0, 90), (0, 90), (32, 34), session.allocate_transfer_uid())
assert late.Failed() and late.Code() == StatusCode.ERR_INVALID_ARGS and "34 bytes from 90 on" in late.Message()
assert session.write(0, 0, 0, session.allocate_transfer_uid()).Wait() == StatusCode.SUCCESS
one.deregister_memory(mine)
fails(ValueError, "knows no memory", lambda: one.deregister_memory(mine))
assert one.write(mine, 0, theirs, 0, 1, 1).Code() == StatusCode.ERR_NOT_FOUND
fails(NotImplementedError, "TCP", lambda: one.create_backend(BackendType.TCP))
fails(TypeError, "no tensor", lambda: one.register_torch_tensor([1]))

# engines of ranks: each writes to the next one and reads from it, on the device and on the host
for options in ({"qp_per_transfer": 4, "enable_transfer_chunking": True, "chunk_bytes": 1000}, {}):
    own = engine(f"own {len(options)}", **options)
    for device in ("cuda", "cpu"):
        n = 5003
        source = (torch.arange(n, device=device) + 10000 * rank).to(torch.int32)
        target = torch.zeros(2 * n, dtype=torch.int32, device=device)
        torch.cuda.synchronize()
        local, home = own.register_torch_tensor(source), own.register_torch_tensor(target)
        engines = exchanged(own.get_engine_desc().pack())
        memories = exchanged(home.pack())
        sources = exchanged(local.pack())
        following = (rank + 1) % world
        own.register_remote_engine(EngineDesc.unpack(engines[following]))
        writes = own.create_session(local, MemoryDesc.unpack(memories[following]))
        reads = own.create_session(home, MemoryDesc.unpack(sources[following]))
        statuses = [writes.write(0, 0, 4 * n, own.allocate_transfer_uid())]
        statuses.append(reads.read(4 * n, 0, 4 * n, own.allocate_transfer_uid()))
        assert own.wait_all(statuses, 60000) == StatusCode.SUCCESS
        dist.barrier()
        expected = [torch.arange(n, dtype=torch.int32) + 10000 * r for r in ((rank - 1) % world, following)]
        assert torch.equal(target.cpu(), torch.cat(expected)), (device, options)
        dist.barrier()
        own.deregister_memory(local), own.deregister_memory(home)
    own.deregister_remote_engine(EngineDesc.unpack(engines[following]))
slow = engine("slow")
big = torch.zeros(1 << 20, device="cuda")
local = slow.register_torch_tensor(big)
memories, engines = exchanged(local.pack()), exchanged(slow.get_engine_desc().pack())
slow.register_remote_engine(EngineDesc.unpack(engines[(rank + 1) % world]))
to = MemoryDesc.unpack(memories[(rank + 1) % world])
if rank == 0:
    assert slow.wait_all([slow.write(local, 0, to, 0, 4 << 20, 5)], 0) == StatusCode.IN_PROGRESS
dist.barrier()
print("all equal")
