"""mori's names and parameters, as its documentation gives them: what a program may write by keyword."""

from __future__ import annotations

import importlib
import inspect

import pytest

SIZES = "my_pe, npes, input_buffer_size=None, output_buffer_size=None, transit_buffer_size=None"
GROUP = "group_size=-1, group_pos=-1, pe_base=0, pe_stride=1"
CALL = "self, input, output, count, stream=None"
SPLITS = "self, input, output, count, split_sizes, split_offsets, stream=None"

CCL = {
    "HierAllGather": f"{SIZES}, copy_output_to_user=True, *, ranks_per_node=None, inter_num_qp=None, "
    "inter_num_blocks=None, fuse_barrier=None, slice_inter=None, slice_fused=None, slice_min_bytes=None, "
    "slice_fuse_ib=None, slice_pipe_chunks=None, slice_direct=None",
    "HierAllGather.__call__": CALL,
    "HierAllGather.all_gather": "self, tensor_list, tensor, stream=None",
    "HierAllGather.supports_param_contiguous_output": "self",
    "HierAllGather.enqueue_param_contiguous": SPLITS,
    "HierAllGather.get_output_transit_buffer": "self, dtype=None, device=None",
    "AllgatherSdma": f"{SIZES}, copy_output_to_user=True",
    "AllgatherSdma.__call__": CALL,
    "AllgatherSdma.enqueue_param_contiguous": SPLITS,
    "AllgatherSdma.start_async": CALL,
    "AllgatherSdma.start_async_param_contiguous": SPLITS,
    "AllgatherSdma.wait_async": "self, stream=None",
    "AllgatherSdma.is_async_in_progress": "self",
    "AllgatherSdma.cancel_async": "self",
    "AllgatherSdma.reset_flags": "self",
    "AllgatherSdma.get_output_transit_buffer": "self, dtype=None, device=None",
    "AllgatherSdma.register_output_buffer": "self, tensor",
    "AllgatherSdma.deregister_output_buffer": "self, tensor",
    "AllgatherSdma.is_output_registered": "self, tensor",
    "All2allSdma": f"{SIZES}, copy_output_to_user=True",
    "All2allSdma.__call__": CALL,
    "All2allSdma.start_async": CALL,
    "All2allSdma.wait_async": "self, stream=None",
    "AllreduceSdma": f"{SIZES}, copy_output_to_user=True, dtype=None, mode='eager'",
    "AllreduceSdma.__call__": CALL,
    "AllreduceSdma.allreduce_inplace": "self, data, count, stream=None",
    "AllreduceSdma.start_async": CALL,
    "InterNodeRingAllgather": "my_pe, npes, ring_buffer_bytes=None, ring_size=-1, ring_pos=-1, pe_base=0, "
    "pe_stride=1, num_qp=1, num_blocks=1",
    "InterNodeRingAllgather.__call__": CALL,
    "IntraNodeSubGroupAllgatherSdma": f"my_pe, npes, out_buffer_bytes=None, {GROUP}",
    "IntraNodeSubGroupAllgatherSdma.__call__": f"{CALL}, *, barrier=True, prepare_barrier=True",
    "IntraNodeSubGroupBroadcastSdma": f"my_pe, npes, out_buffer_bytes=None, {GROUP}",
    "IntraNodeSubGroupBroadcastSdma.__call__": CALL,
    "AllGatherIntoTensor": "my_pe, npes, transit_buffer_size=None, copy_output_to_user=True, auto_register=False",
    "AllGatherIntoTensor.__call__": "self, sendptr, recvptr, count, dtype, stream_ptr=None",
    "size_of": "dtype",
    "HostProxyHierAllGather": "my_pe, npes, ranks_per_node=None, output_buffer_size=512 << 20, device=None",
    "HostProxyHierAllGather.__call__": "self, input, output, numel, stream=None",
    "HostProxyHierAllGather.call_async": "self, input, output, numel, stream=None",
    "HostProxyHierAllGather._complete": "self, handle",
    "hier_allgather_reference": "shards, num_nodes, ranks_per_node",
    "inter_node_ring_reference": "blocks",
}
SHMEM = {
    "shmem_torch_process_group_init": "group_name",
    "shmem_get_unique_id": "",
    "shmem_init_attr": "flags, rank, nranks, unique_id",
    "shmem_finalize": "",
    "shmem_mype": "",
    "shmem_npes": "",
    "shmem_barrier_all": "",
    "shmem_barrier_on_stream": "stream=None",
    "shmem_malloc": "size",
    "shmem_malloc_align": "alignment, size",
    "shmem_free": "ptr",
    "shmem_buffer_register": "ptr, size",
    "shmem_buffer_deregister": "ptr, size",
    "shmem_ptr_p2p": "ptr, my_pe, pe",
    "shmem_num_qp_per_pe": "",
    "shmem_module_init": "module",
    "mori_shmem_create_tensor": "shape, dtype",
    "symm_mori_shmem_tensor": "tensor, peer",
    "mori_shmem_free_tensor": "tensor",
}
IO = {
    "IOEngine": "key, config",
    "IOEngineConfig": "host='', port=0",
    "IOEngine.create_backend": "self, type, config=None",
    "IOEngine.get_engine_desc": "self",
    "IOEngine.register_torch_tensor": "self, tensor",
    "IOEngine.register_remote_engine": "self, engine_desc",
    "IOEngine.create_session": "self, local_mem, remote_mem",
    "IOEngine.allocate_transfer_uid": "self",
    "IOEngine.wait_all": "self, statuses, timeout_ms=-1",
    "IOEngineSession.write": "self, local_offset, remote_offset, size, transfer_uid",
    "EngineDesc.pack": "self",
    "EngineDesc.unpack": "packed",
    "MemoryDesc.pack": "self",
    "MemoryDesc.unpack": "packed",
}
RDMA = "qp_per_transfer post_batch_size num_worker_threads poll_cq_mode enable_transfer_chunking chunk_bytes"

NAMES = [
    (module, name, wanted) for module, of in (("ccl", CCL), ("shmem", SHMEM), ("io", IO)) for name, wanted in of.items()
]


def named(module: str, name: str) -> object:
    found: object = importlib.import_module(f"torchemu.frontends.mori.face.{module}")
    for part in name.split("."):
        found = getattr(found, part)
    return found


@pytest.mark.parametrize(("module", "name", "wanted"), NAMES, ids=[f"{m}.{n}" for m, n, _ in NAMES])
def test_parameters(module: str, name: str, wanted: str) -> None:
    """Ours may have more of them, behind mori's, with defaults."""
    asked = inspect.signature(eval(f"lambda {wanted}: None")).parameters
    given = inspect.signature(named(module, name)).parameters  # type: ignore[arg-type]
    for kind in (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY):
        ours = [(p.name, p.default) for p in given.values() if p.kind == kind]
        theirs = [(p.name, p.default) for p in asked.values() if p.kind == kind]
        assert ours[: len(theirs)] == theirs
        assert all(default is not inspect.Parameter.empty for _, default in ours[len(theirs) :])


def test_options_of_a_backend() -> None:
    assert list(inspect.signature(named("io", "RdmaBackendConfig")).parameters)[:6] == RDMA.split()  # type: ignore[arg-type]


def test_types_have_mori_s_numbers() -> None:
    kinds = "Int8 Uint8 Int16 Uint16 Int32 Uint32 Int64 Uint64 Float16 BFloat16 Float32 Float64"
    sizes = [1, 1, 2, 2, 4, 4, 8, 8, 2, 2, 4, 8]
    data_type, size_of = named("ccl", "DataType"), named("ccl", "size_of")
    assert [int(getattr(data_type, f"k{kind}")) for kind in kinds.split()] == list(range(12))
    assert [size_of(getattr(data_type, f"k{kind}")) for kind in kinds.split()] == sizes  # type: ignore[operator]
