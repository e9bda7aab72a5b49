"""Hierarchical all-gathers of many types, sizes and handles, each compared with all_gather_into_tensor."""

import os

import mori
import torch
import torch.distributed as dist

rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group("cpu:gloo,cuda:nccl", rank=rank, world_size=world)
torch._C._distributed_c10d._register_process_group("default", dist.group.WORLD)
mori.shmem.shmem_torch_process_group_init("default")
assert (mori.shmem.shmem_mype(), mori.shmem.shmem_npes()) == (rank, world)
G = int(os.environ.get("NODE_SIZE", os.environ["LOCAL_WORLD_SIZE"]))
COUNTS = {torch.bfloat16: (2, 10, 4098), torch.float16: (6, 66), torch.float32: (1, 3, 1001), torch.int32: (7, 4099)}
HANDLES = {
    "default": {},
    "small": {"slice_min_bytes": 0},
    "by block": {"slice_fused": False, "slice_min_bytes": 0},
    "transit": {"slice_direct": False, "slice_min_bytes": 0},
    "transit, by block": {"slice_direct": False, "slice_fused": False, "slice_min_bytes": 0},
    "sliced": {"slice_min_bytes": 0, "MORI_HIER_FUSE_LOCAL": "0"},
    "fused remote": {"slice_min_bytes": 0, "MORI_HIER_FUSE_REMOTE": "1"},
    "three parts": {"slice_pipe_chunks": 3},
    "not sliced": {"slice_inter": False},
    "one queue pair": {"inter_num_qp": 1, "slice_min_bytes": 0},
}
for name, options in HANDLES.items():
    room = 1 << 15
    os.environ.update({key: value for key, value in options.items() if key.startswith("MORI")})
    options = {key: value for key, value in options.items() if not key.startswith("MORI")}
    h = mori.ccl.HierAllGather(rank, world, room, room * world, ranks_per_node=G, **options)
    os.environ.pop("MORI_HIER_FUSE_LOCAL", None), os.environ.pop("MORI_HIER_FUSE_REMOTE", None)
    assert (h.num_nodes, h.node_id, h.local_rank) == (world // G, rank // G, rank % G)
    for dtype, counts in COUNTS.items():
        for count in counts:
            x = (torch.arange(count, device="cuda") * 3 + rank * 101).to(dtype)
            want = torch.zeros(count * world, dtype=dtype, device="cuda")
            dist.all_gather_into_tensor(want, x)
            for again in range(2):
                out = torch.zeros(count * world, dtype=dtype, device="cuda")
                assert h(x, out, count)
                assert torch.equal(out, want), (name, dtype, count, again)
x = torch.arange(301, dtype=torch.float32, device="cuda") + 1000 * rank
entries = [torch.zeros(301, device="cuda") for _ in range(world)]
assert h.all_gather(entries, x)
assert all(torch.equal(e.cpu(), torch.arange(301, dtype=torch.float32) + 1000 * r) for r, e in enumerate(entries))
for dtype in (torch.float32, torch.bfloat16):
    x = (torch.arange(300, device="cuda") + 10 * rank).to(dtype)
    sizes, starts = [100, 0, 30, 170], [0, 100, 100, 130]
    out = torch.zeros(300 * world, dtype=dtype, device="cuda")
    done = h.enqueue_param_contiguous(x, out, 300, sizes, starts)
    assert done == h.supports_param_contiguous_output()
    if done:
        want = torch.cat(
            [
                (torch.arange(o, o + e) + 10 * r).to(dtype)
                for e, o in zip(sizes, starts, strict=True)
                for r in range(world)
            ]
        )
        assert torch.equal(out.cpu(), want)
assert not h.enqueue_param_contiguous(x, out, 300, [1], [0])
for wrong in (lambda: h.enqueue_param_contiguous(x, out, 300, [1, 2], [0]), lambda: h.all_gather([x], x)):
    try:
        wrong()
        raise AssertionError("no error")
    except ValueError:
        pass
if h.num_nodes > 1:  # how calls go may change between them
    h.pipe_band = True
    for least, band, way in ((64, True, "slice"), (1 << 20, True, "pipe"), (1 << 20, False, None), (0, False, "slice")):
        h.slice_min_bytes, h.pipe_band, h.slice_inter = least, band, True
        x = torch.arange(300, dtype=torch.int32, device="cuda") + 10 * rank
        out = torch.zeros(300 * world, dtype=torch.int32, device="cuda")
        assert h(x, out, 300) and h._last_use_slice == way
        assert torch.equal(out.cpu(), torch.cat([torch.arange(300, dtype=torch.int32) + 10 * r for r in range(world)]))
streams = [torch.cuda.Stream(), torch.cuda.Stream()]
h = mori.ccl.HierAllGather(rank, world, 1 << 15, (1 << 15) * world, ranks_per_node=G)
outs, count = [], 555
for i in range(6):
    with torch.cuda.stream(streams[i % 2]):
        x = torch.full((count,), float(rank + 100 * i), device="cuda")
        outs.append(torch.zeros(count * world, device="cuda"))
        h(x, outs[-1], count, streams[i % 2])
torch.cuda.synchronize()
for i, out in enumerate(outs):
    wanted = torch.cat([torch.full((count,), float(r + 100 * i)) for r in range(world)])
    assert torch.equal(out.cpu(), wanted), i
assert h(torch.zeros(0, device="cuda"), torch.zeros(0, device="cuda"), 0)
for value in ("0", "1"):  # with it the host waits for each call
    os.environ["MORI_HIER_DEBUG_SYNC"] = value
    ended = torch.cuda.Event()
    h(torch.zeros(count, device="cuda"), outs[0], count)
    ended.record()
    assert ended.query() == (value == "1")
del os.environ["MORI_HIER_DEBUG_SYNC"]
torch.cuda.synchronize()
try:
    h(torch.zeros(1 << 15, device="cuda"), torch.zeros(world << 15, device="cuda"), 1 << 15)
    raise AssertionError("no error")
except RuntimeError as error:
    assert "exceeds" in str(error) and "capacity" in str(error)
mori.shmem.shmem_finalize()
print("all equal")
