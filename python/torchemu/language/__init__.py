"""The language of device programs: what a function with ``@torchemu.kernel`` is made of.

::

    import torchemu
    import torchemu.language as tl

    @torchemu.kernel
    def double(out, x, n):
        tl.store(out, tl.load(x, n) * 2)

    double[1](out, x, n)

A kernel runs on the PEs of its rank's device, in simulated time. Tensors are pointers to it; :func:`load` makes tiles
in the scratch memory of the PE, arithmetic makes tiles of tiles, and :func:`store` brings them back. Instructions run
asynchronously, on the load, vector, matrix and store pipes; what uses a tile waits for what makes it. Memory is not
looked after like that: who reads what another pipe or rank writes needs :func:`drain`, a signal, or a barrier.
``torchemu run --check`` finds where one is missing.
"""

from torchemu.language._arithmetic import (
    absolute,
    add,
    arange,
    combine,
    cos,
    divide,
    divided,
    dot,
    exp,
    exp2,
    full,
    log,
    log2,
    max,  # noqa: A004 (the language has its own)
    maximum,
    min,  # noqa: A004 (the language has its own)
    minimum,
    multiply,
    negative,
    rsqrt,
    sigmoid,
    sin,
    sqrt,
    subtract,
    sum,  # noqa: A004 (the language has its own)
    tanh,
    trans,
    where,
    zeros,
)
from torchemu.language._launch import Kernel, kernel
from torchemu.language._memory import (
    Event,
    copy_async,
    get,
    get_nbi,
    load,
    put,
    put_nbi,
    put_reduce,
    put_signal,
    put_signal_nbi,
    store,
    store_reduce,
)
from torchemu.language._order import (
    EQ,
    GE,
    GT,
    LE,
    LT,
    NE,
    Queue,
    atomic_add,
    atomic_cas,
    atomic_exchange,
    barrier,
    drain,
    fence,
    fetch,
    quiet,
    recv,
    send,
    set_flag,
    signal,
    sync,
    test,
    wait,
    wait_flag,
)
from torchemu.language._pointer import Pointer
from torchemu.language._surroundings import (
    call_number,
    clock,
    num_programs,
    program_id,
    queue,
    rank,
    scratch_bytes,
    workspace,
    world_size,
)
from torchemu.language._symmetric import symmetric_empty
from torchemu.language._tile import Tile

__all__ = [
    "EQ",
    "GE",
    "GT",
    "LE",
    "LT",
    "NE",
    "Event",
    "Kernel",
    "Pointer",
    "Queue",
    "Tile",
    "absolute",
    "add",
    "arange",
    "atomic_add",
    "atomic_cas",
    "atomic_exchange",
    "barrier",
    "call_number",
    "clock",
    "combine",
    "copy_async",
    "cos",
    "divide",
    "divided",
    "dot",
    "drain",
    "exp",
    "exp2",
    "fence",
    "fetch",
    "full",
    "get",
    "get_nbi",
    "kernel",
    "load",
    "log",
    "log2",
    "max",
    "maximum",
    "min",
    "minimum",
    "multiply",
    "negative",
    "num_programs",
    "program_id",
    "put",
    "put_nbi",
    "put_reduce",
    "put_signal",
    "put_signal_nbi",
    "queue",
    "quiet",
    "rank",
    "recv",
    "rsqrt",
    "scratch_bytes",
    "send",
    "set_flag",
    "sigmoid",
    "signal",
    "sin",
    "sqrt",
    "store",
    "store_reduce",
    "subtract",
    "sum",
    "symmetric_empty",
    "sync",
    "tanh",
    "test",
    "trans",
    "wait",
    "wait_flag",
    "where",
    "workspace",
    "world_size",
    "zeros",
]
