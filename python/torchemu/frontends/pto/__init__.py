"""A chip's instructions for kernels in Python, under the names of C++ kernels, so that these can be transcribed line by
line.

A kernel is a function ``kernel_entry(args)`` in a file of its own: args are a :class:`TensorArg` for each tensor, then
the scalars. A file ``x.py`` beside ``x.cpp`` is the kernel that ``simpler_setup``'s compiler makes of the latter; the
C++ file need not exist. docs/simpler.md has an example. The instructions are torchemu's device primitives: they take
simulated time, run on pipes side by side, and races and deadlocks are reported with the kernel's line.

An orchestration of several kernels is a function in a file of its own, beside its source: see rt_submit_aiv_task.
"""

from torchemu.dtypes import bfloat16, float16, float32, int32
from torchemu.frontends.pto._instructions import (
    TADD,
    TASSIGN,
    TGET,
    TLOAD,
    TMATMUL,
    TMUL,
    TNOTIFY,
    TPUT,
    TSTORE,
    TTEST,
    TWAIT,
    AtomicType,
    NotifyOp,
    Pipe,
    WaitCmp,
    dsb,
    pipe_barrier,
    set_flag,
    wait_flag,
)
from torchemu.frontends.pto._memory import (
    CommContext,
    CommRemotePtr,
    GlobalTensor,
    Ptr,
    Signal,
    TensorArg,
    Tile,
)
from torchemu.frontends.pto._orchestration import rt_submit_aic_task, rt_submit_aiv_task

PIPE_S, PIPE_MTE2, PIPE_V = Pipe.PIPE_S, Pipe.PIPE_MTE2, Pipe.PIPE_V
PIPE_M, PIPE_MTE3, PIPE_ALL = Pipe.PIPE_M, Pipe.PIPE_MTE3, Pipe.PIPE_ALL
EVENT_ID0, EVENT_ID1, EVENT_ID2, EVENT_ID3 = range(4)

__all__ = [
    "EVENT_ID0",
    "EVENT_ID1",
    "EVENT_ID2",
    "EVENT_ID3",
    "PIPE_ALL",
    "PIPE_M",
    "PIPE_MTE2",
    "PIPE_MTE3",
    "PIPE_S",
    "PIPE_V",
    "TADD",
    "TASSIGN",
    "TGET",
    "TLOAD",
    "TMATMUL",
    "TMUL",
    "TNOTIFY",
    "TPUT",
    "TSTORE",
    "TTEST",
    "TWAIT",
    "AtomicType",
    "CommContext",
    "CommRemotePtr",
    "GlobalTensor",
    "NotifyOp",
    "Pipe",
    "Ptr",
    "Signal",
    "TensorArg",
    "Tile",
    "WaitCmp",
    "bfloat16",
    "dsb",
    "float16",
    "float32",
    "int32",
    "pipe_barrier",
    "rt_submit_aic_task",
    "rt_submit_aiv_task",
    "set_flag",
    "wait_flag",
]
