"""Communication hooks of DistributedDataParallel: averaging, and the same in fewer bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torchemu import dtypes
from torchemu.c10d.futures import Future
from torchemu.frontends.numpy._tensor.core import Tensor
from torchemu.frontends.numpy.distributed import GradBucket, ProcessGroup, all_reduce
from torchemu.frontends.numpy.distributed._process_group import resolved

__all__ = [
    "allreduce_hook",
    "bf16_compress_hook",
    "bf16_compress_wrapper",
    "fp16_compress_hook",
    "fp16_compress_wrapper",
]

Hook = Callable[[Any, GradBucket], Future[Tensor]]


def _averaged(group: ProcessGroup | None, tensor: Tensor) -> Future[Tensor]:
    ranks = resolved(group)
    work = all_reduce(tensor.div_(ranks.size()), group=ranks, async_op=True)
    assert work is not None
    return work.get_future().then(lambda future: future.value()[0])


def _compressed(group: ProcessGroup | None, bucket: GradBucket, kind: dtypes.dtype) -> Future[Tensor]:
    buffer = bucket.buffer()
    return _averaged(group, buffer.to(kind)).then(lambda future: buffer.copy_(future.value()))


def allreduce_hook(process_group: ProcessGroup | None, bucket: GradBucket) -> Future[Tensor]:
    """Averages the gradients over the ranks of the group; None: the default group."""
    return _averaged(process_group, bucket.buffer())


def fp16_compress_hook(process_group: ProcessGroup | None, bucket: GradBucket) -> Future[Tensor]:
    """Averages the gradients as float16."""
    return _compressed(process_group, bucket, dtypes.float16)


def bf16_compress_hook(process_group: ProcessGroup | None, bucket: GradBucket) -> Future[Tensor]:
    """Averages the gradients as bfloat16."""
    return _compressed(process_group, bucket, dtypes.bfloat16)


def _wrapped(hook: Hook, kind: dtypes.dtype) -> Hook:
    def compressing(state: Any, bucket: GradBucket) -> Future[Tensor]:
        buffer = bucket.buffer()
        bucket.set_buffer(buffer.to(kind))
        return hook(state, bucket).then(lambda future: buffer.copy_(future.value()))

    return compressing


def fp16_compress_wrapper(hook: Hook) -> Hook:
    """The hook, given the gradients as float16."""
    return _wrapped(hook, dtypes.float16)


def bf16_compress_wrapper(hook: Hook) -> Hook:
    """The hook, given the gradients as bfloat16."""
    return _wrapped(hook, dtypes.bfloat16)
