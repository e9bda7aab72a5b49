"""Reports of wrong kernels say what is wrong: the kernel's line, the rank, and what would be right."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from kernel_worlds import run, world_of

import torchemu as torch
import torchemu.frontends.triton.face as triton
import torchemu.frontends.triton.face.language as tl
from torchemu.errors import KernelError, RaceError
from torchemu.frontends.triton_dist import _symmetric
from torchemu.frontends.triton_dist.face import language as dl
from torchemu.frontends.triton_dist.face.language import extra
from torchemu.frontends.triton_dist.face.language.extra import language_extra, libshmem_device
from torchemu.frontends.triton_dist.nvshmem import core
from torchemu.multiprocessing import SpawnException


def allocate(*shape: int, dtype: str = "int64") -> Any:
    """Zeroed symmetric memory; all ranks have zeroed theirs."""
    made = _symmetric.allocate(shape, dtype)
    made.fill_(0)
    meet()
    return made


def meet() -> None:
    """A barrier of all ranks' streams."""
    _symmetric.on_stream(_symmetric.HostOperation("barrier"), _symmetric.quiet_and_sync)
    torch.cuda.synchronize()


def failure(ranks: int, program: Callable[[int], None], **strict: Any) -> str:
    """The text of what a program fails with."""
    with pytest.raises(SpawnException) as caught:
        run(ranks, program, **strict)
    return str(caught.value.errors[0].exception)


def line_of(kernel: Any, text: str) -> int:
    """The line of a kernel that has a text."""
    import inspect

    lines, first = inspect.getsourcelines(kernel.fn)
    return first + next(i for i, line in enumerate(lines) if text in line)


@triton.jit
def skips(words, WORLD: tl.constexpr):
    rank = dl.rank()
    pid = tl.program_id(0)
    if pid == 1:
        for peer in range(WORLD):
            if rank != 1:
                dl.notify(words + rank, peer, signal=7, sig_op="set", comm_scope="intra_node")
    else:
        thread = language_extra.tid(0)
        if thread < WORLD:
            libshmem_device.signal_wait_until(words + thread, libshmem_device.NVSHMEM_CMP_EQ, 7)


def test_a_rank_that_skips_its_notify() -> None:
    def program(rank: int) -> None:
        words = allocate(4)
        skips[(2,)](words, 3)
        torch.cuda.synchronize()

    text = failure(3, program)
    line = line_of(skips, "signal_wait_until")
    assert re.search(
        rf'kernel "skips", which on rank 0, program 0 at test_diagnoses.py:{line} waits for the word at rank 0 ', text
    )
    assert '(window "symmetric int64[4]" +8) to be EQ 7; it is 0' in text
    assert "a rank skips its notify: rank 0 has heard nothing" in text and "from rank 1" in text


@triton.jit
def spins(words):
    while language_extra.ld_acquire(words) != 3:
        pass


def test_a_spin_that_nothing_ends() -> None:
    def program(rank: int) -> None:
        spins[(1,)](allocate(1))
        torch.cuda.synchronize()

    text = failure(1, program)
    line = line_of(spins, "while")
    assert f"at test_diagnoses.py:{line} waits for the word at rank 0 " in text
    assert "to change: while language_extra.ld_acquire(words) != 3; it is 0" in text


@triton.jit
def spins_on_a_copy(words):
    v = language_extra.ld_acquire(words)
    while v != 3:
        pass


@triton.jit
def meets(count, skips: tl.constexpr, of: tl.constexpr):
    if tl.program_id(0) != skips:
        tl.atomic_add(count, 1)
        while tl.atomic_add(count, 0) < of:
            pass


@pytest.mark.parametrize(
    ("skips", "of", "says"),
    [(2, 4, "1 of the 4 have ended: before it ends each"), (-1, 5, "all 4 wait: the loop is for more programs")],
)
def test_a_grid_that_waits_for_itself(skips: int, of: int, says: str) -> None:
    def program(rank: int) -> None:
        meets[(4,)](torch.zeros(1, dtype="int32").cuda(), skips, of)
        torch.cuda.synchronize()

    said = failure(2, program)
    assert f'those of kernel "meets" wait at test_diagnoses.py:{line_of(meets, "while")}' in said
    assert says in said


@pytest.mark.slow
def test_a_loop_that_looks_at_no_memory_has_no_end() -> None:
    def program(rank: int) -> None:
        spins_on_a_copy[(1,)](allocate(1))
        torch.cuda.synchronize()

    text = failure(1, program)
    line = line_of(spins_on_a_copy, "while")
    assert f"test_diagnoses.py:{line}: RuntimeError: the loop (while v != 3) has no end: it looks at no memory" in text


@triton.jit
def beyond(x):
    tl.store(x + tl.arange(0, 16), 1.0)


@triton.jit
def misaligned(x):
    tl.load(tl.cast(tl.cast(x, tl.pointer_type(tl.int8)) + 2, tl.pointer_type(tl.float32)))


@triton.jit
def short_signal(x):
    dl.notify(tl.cast(x, tl.pointer_type(tl.int32)), 0)


@triton.jit
def wrong_word(x):
    dl.wait(x, 1, "gpu", "acquire")


@triton.jit
def misaligned_word(x):
    dl.wait(tl.cast(tl.cast(x, tl.pointer_type(tl.int8)) + 4, tl.pointer_type(tl.int64)), 1, "gpu", "acquire")


@triton.jit
def misaligned_signal(x):
    dl.notify(tl.cast(tl.cast(x, tl.pointer_type(tl.int8)) + 4, tl.pointer_type(tl.int64)), 0)


@triton.jit
def wait_beyond(x):
    dl.wait(tl.cast(x, tl.pointer_type(tl.int64)) + 3, 2, "gpu", "acquire", waitValue=0)


@triton.jit
def nowhere(x):
    tl.load(x + (1 << 40))


@triton.jit
def unknown(x):
    tl.something_new(x)


@triton.jit
def assembly(x):
    tl.inline_asm_elementwise("bfind.u32 $0, 1;", "=r", [], tl.int32, True, 1)


@triton.jit
def no_rank(x):
    libshmem_device.putmem_block(x, x, 4, 9)


@triton.jit
def asserts(x):
    tl.device_assert(tl.load(x) == 1, "one")


@triton.jit
def block_condition(x):
    if tl.load(x + tl.arange(0, 4)) > 0:
        tl.store(x, 1.0)


@triton.jit
def put_beyond(x):
    libshmem_device.putmem_nbi_block(x, x + 130, 32, 0)


@triton.jit
def get_beyond(x):
    libshmem_device.getmem_block(x + 130, x, 32, 0)


MISTAKES = {
    beyond: (
        "tl.store",
        r"ValueError: tl.store, element 8 of 16: test_diagnoses.py:LINE: 4 bytes from rank 0 .* reach beyond window",
    ),
    misaligned: ("tl.load", "ValueError: tl.load: misaligned address: .* is no multiple of 4 bytes"),
    short_signal: ("dl.notify", "TypeError: ptr is a word of int32: it has to be an integer of 64 bits"),
    wrong_word: ("dl.wait", "TypeError: barrierPtrs is a word of fp32: it has to be an integer of 32 or 64 bits"),
    misaligned_word: ("dl.wait", "ValueError: test_diagnoses.py:LINE: a word of 8 bytes at rank 0 .* not a multiple"),
    misaligned_signal: (
        "dl.notify",
        "ValueError: test_diagnoses.py:LINE: a word of 8 bytes at rank 0 .* not a multiple",
    ),
    wait_beyond: ("dl.wait", "ValueError: test_diagnoses.py:LINE: 8 bytes from rank 0 .* reach beyond window"),
    put_beyond: ("putmem", "ValueError: putmem_nbi, source: test_diagnoses.py:LINE: .* beyond the end of window"),
    get_beyond: ("getmem", "ValueError: getmem, dest: test_diagnoses.py:LINE: .* beyond the end of window"),
    nowhere: ("tl.load", "ValueError: tl.load, test_diagnoses.py:LINE: rank 0 .* is in no window"),
    unknown: ("something_new", "NotImplementedError: triton.language.something_new is not emulated"),
    assembly: ("inline_asm", r"NotImplementedError: inline assembly: .bfind.u32 \$0, 1. is not emulated"),
    no_rank: ("putmem_block", "ValueError: PE 9 is not one of 0 to 0"),
    asserts: ("device_assert", "AssertionError: device assertion failed in program .0, 0, 0.: one"),
    block_condition: ("if tl.load", "TypeError: the condition of an if is a block of shape .4."),
}


@pytest.mark.parametrize("kernel", MISTAKES, ids=lambda kernel: kernel.name)
def test_mistakes_name_the_line(kernel: Any) -> None:
    where, text = MISTAKES[kernel]
    line = line_of(kernel, where)
    with world_of(1):
        x = torch.zeros(8)
        kernel[(1,)](x)
        with pytest.raises(KernelError) as caught:
            x.tolist()
    said = str(caught.value)
    start = rf"kernel '{kernel.name}' on rank 0 failed at .*test_diagnoses.py:{line}: "
    assert re.search(start + text.replace("LINE", str(line)), said), said
    assert "torchemu/frontends" not in said.split("Traceback")[1]


@triton.jit
def far_load(x):
    p = dl.symm_at(x, 1)
    tl.load(p)


def test_memory_of_another_node_is_not_mapped() -> None:
    from torchemu.frontends.triton import _launching

    def program(rank: int) -> None:
        x = allocate(8, dtype="float32")
        before = _launching.GridLaunch.__init__

        def apart(self: Any, *args: Any) -> None:
            before(self, *args)
            self.node = range(rank, rank + 1)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(_launching.GridLaunch, "__init__", apart)
            if rank == 0:
                far_load[(1,)](x)
        torch.cuda.synchronize()

    text = failure(2, program)
    assert "memory of rank 1 is not mapped on rank 0: they are on different nodes" in text
    assert f"test_diagnoses.py:{line_of(far_load, 'tl.load')}" in text


@triton.jit
def sends(x, words, SYNC: tl.constexpr):
    right = (dl.rank() + 1) % dl.num_ranks()
    i = tl.arange(0, 128)
    tl.store(dl.symm_at(x, right) + i, i)
    if SYNC:
        language_extra.__syncthreads()
    libshmem_device.fence()
    dl.notify(words, right)
    dl.wait(words, 1, "sys", "acquire")
    language_extra.__syncthreads()
    tl.load(x + i)


@pytest.mark.parametrize("sync", [True, False])
def test_a_missing_syncthreads_before_a_notify(sync: bool) -> None:
    def program(rank: int) -> None:
        x, words = allocate(128), allocate(1)
        sends[(1,)](x, words, sync)
        torch.cuda.synchronize()
        meet()

    if sync:
        run(2, program)
        return
    text = failure(2, program)
    assert re.search(
        rf"tl.load by kernel \"sends\" on rank [01] at test_diagnoses.py:{line_of(sends, 'tl.load(x')}", text
    )
    assert 'tl.store by kernel "sends" on rank' in text
    assert "before the signal there must be a __syncthreads()" in text


@triton.jit
def increments(x, APART: tl.constexpr):
    i = tl.program_id(0) * APART + tl.arange(0, 64)
    tl.store(x + i, tl.load(x + i) + 1)


def test_two_programs_of_a_grid_and_two_streams() -> None:
    def program(apart: int, streams: int) -> Callable[[int], None]:
        def body(rank: int) -> None:
            x = torch.zeros(128)
            torch.cuda.synchronize()
            increments[(2,)](x, apart)
            with torch.cuda.stream(torch.cuda.Stream() if streams > 1 else torch.cuda.current_stream()):
                increments[(2,)](x, apart)
            torch.cuda.synchronize()

        return body

    run(1, program(64, 1))
    text = failure(1, program(32, 1))
    assert "of program 0 to the tl." in text and "of program 1, two programs of one grid" in text
    text = failure(1, program(64, 2))
    text = failure(1, program(64, 2))
    assert "the two kernels, for they are on different streams of rank 0" in text
    assert "the kernel for a signal of the other one" in text


@triton.jit
def moves(x, y):
    i = tl.arange(0, 64)
    tl.store(y + i, tl.load(x + i))


def test_what_kernels_do_with_a_tensor_that_they_share_is_told_apart() -> None:
    """The first one's writes are in order with the stream's next operation, the second one's are not."""

    def program(rank: int) -> None:
        a, b, c = torch.ones(64), torch.zeros(64), torch.zeros(64)
        torch.cuda.synchronize()
        moves[(1,)](a, b)
        other = torch.cuda.Stream()
        other.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(other):
            moves[(1,)](b, c)
        twice = b * 2
        torch.cuda.current_stream().wait_stream(other)
        assert twice.tolist() == [2.0] * 64 and c.tolist() == [1.0] * 64

    run(1, program)


@triton.jit
def stores_before(x):
    tl.store(dl.symm_at(x, 1) - 100 + tl.arange(0, 4), 1)


def test_an_address_before_symmetric_memory_says_how_far() -> None:
    def program(rank: int) -> None:
        stores_before[(1,)](allocate(4))
        torch.cuda.synchronize()

    text = failure(2, program)
    assert '800 bytes before the beginning of window "symmetric int64[4]" of rank 1' in text


def test_symmetric_memory_of_different_sizes_in_one_granule() -> None:
    with pytest.raises(SpawnException) as caught:
        run(2, lambda rank: _symmetric.allocate((4 + rank,), "int64"))
    assert re.search(r"asks for int64\[[45]\] at .* another rank for int64\[[45]\] at", str(caught.value))


@triton.jit
def waits_for_all(words, N: tl.constexpr):
    dl.wait(words, N, "sys", "acquire", waitValue=0)


def test_a_wait_for_more_words_than_there_are_is_a_warning() -> None:
    def program(rank: int) -> None:
        waits_for_all[(1,)](allocate(4), 5)
        torch.cuda.synchronize()

    with pytest.warns(RuntimeWarning, match="bytes 0 to 40 of an allocation of 32 bytes are used"):
        run(1, program, check=False)


@triton.jit
def stores_to(x, peer, N: tl.constexpr):
    tl.store(dl.symm_at(x, peer) + tl.arange(0, N), 1)


@pytest.mark.parametrize("peer", [0, 1])
def test_a_store_beyond_what_was_asked_for_is_a_warning(peer: int) -> None:
    def program(rank: int) -> None:
        if rank == 0:
            stores_to[(1,)](allocate(12), peer, 16)
        else:
            allocate(12)
        torch.cuda.synchronize()

    with pytest.warns(RuntimeWarning, match="bytes 0 to 128 of an allocation of 96 bytes are used") as warned:
        run(2, program, check=False)
    assert (warned[0].filename, warned[0].lineno) == (__file__, line_of(stores_to, "tl.store"))


@triton.jit(do_not_specialize=["value"])
def pushes(buffer, flags, WORLD: tl.constexpr, value):
    pid, rank = tl.program_id(0), dl.rank()
    thread = language_extra.tid(0)
    if pid == rank:
        if thread < WORLD and thread != rank:
            libshmem_device.signal_wait_until(flags + thread, libshmem_device.NVSHMEM_CMP_EQ, value)
        language_extra.__syncthreads()
    else:
        libshmem_device.putmem_signal_block(
            buffer + rank * 8, buffer + rank * 8, 64, flags + rank, value, libshmem_device.NVSHMEM_SIGNAL_SET, pid
        )


def rows(count: int) -> Callable[[int], None]:
    """A program that pushes again and again, with so many rows of signals in turn."""

    def program(rank: int) -> None:
        buffers, flags = allocate(2, 32), allocate(2, 4)
        for call in range(1, 11):
            pushes[(4,)](buffers[call % count], flags[call % count], 4, call)
        torch.cuda.synchronize()
        meet()

    return program


def test_one_row_of_signals_is_a_hazard() -> None:
    text = failure(4, rows(1))
    assert "signal row reused without a phase" in text
    assert (
        'wait by kernel "pushes" on rank' in text
        and f"test_diagnoses.py:{line_of(pushes, 'signal_wait_until')}" in text
    )
    text = failure(4, rows(1), check=False, reorder=1)
    assert "deadlock at simulated time" in text and "EQ wait overshot" in text
    assert f"at test_diagnoses.py:{line_of(pushes, 'signal_wait_until')} waits for the word at rank" in text


@pytest.mark.parametrize("reorder", [None, 1, 2, 3])
def test_two_rows_in_turn_are_none(reorder: int | None) -> None:
    run(4, rows(2), reorder=reorder)


def test_a_granule_is_lent_with_a_warning_and_no_more() -> None:
    def program(rank: int) -> None:
        words = allocate(1)
        waits[(1,)](words, 63 if rank == 0 else 0)
        torch.cuda.synchronize()

    with pytest.warns(RuntimeWarning, match="bytes 504 to 512 of an allocation of 8 bytes are used"):
        run(1, program, check=False)

    def too_far(rank: int) -> None:
        waits[(1,)](allocate(1), 64)
        torch.cuda.synchronize()

    assert "reach beyond window" in failure(1, too_far)


@triton.jit
def waits(words, i):
    libshmem_device.signal_wait_until(words + i, libshmem_device.NVSHMEM_CMP_EQ, 0)


def test_placeholders_say_their_names() -> None:
    something = extra.libshmem_device.some_new_function
    assert callable(something | None) and something[0] is something
    with pytest.raises(NotImplementedError, match=r"triton_dist.language.extra.libshmem_device.some_new_function"):
        something(1, 2)
    assert triton.new_decorator(len) is len


def test_race_of_two_programs() -> None:
    with world_of(1):
        x = torch.zeros(8)
        races[(2,)](x)
        with pytest.raises(
            RaceError,
            match=rf"tl.store by kernel \"races\" on rank 0 at test_diagnoses.py:{line_of(races, 'tl.store')}",
        ):
            x.tolist()


@triton.jit
def races(x):
    tl.store(x + tl.arange(0, 8), tl.program_id(0).to(tl.float32))


@triton.jit
def counted(data, count, COUNTS: tl.constexpr, LOOKS: tl.constexpr, FENCES: tl.constexpr):
    if tl.program_id(0) == 0:
        tl.store(data, 7)
        if FENCES:
            language_extra.fence("acq_rel", "gpu")
        tl.atomic_add(count, 1, sem=COUNTS)
    else:
        for _ in range(9):  # it comes after the other program's
            tl.atomic_add(count + 1, 1, sem="relaxed")
        if tl.atomic_add(count, 0, sem=LOOKS) == 1:
            if FENCES:
                language_extra.fence("acq_rel", "gpu")
            tl.store(data + 1, tl.load(data))


@pytest.mark.parametrize(
    "counts, looks, fences, races",
    [
        ("acq_rel", "acq_rel", False, False),
        ("release", "acquire", False, False),
        ("relaxed", "acquire", False, True),
        ("release", "relaxed", False, True),
        ("relaxed", "relaxed", True, False),
    ],
)
def test_atomic_operations_order_as_they_say(counts: str, looks: str, fences: bool, races: bool) -> None:
    def program(rank: int) -> None:
        memory = allocate(8)
        counted[(2,)](memory, memory[4:], counts, looks, fences)
        torch.cuda.synchronize()
        assert memory.tolist()[:2] == [7, 7]

    if races:
        text = failure(1, program, check=True)
        assert f"test_diagnoses.py:{line_of(counted, 'tl.load(data)')}" in text
    else:
        run(1, program, check=True)


@triton.jit
def set_one(words: Any) -> None:
    tl.store(words, 1)


@pytest.mark.parametrize("free", [_symmetric.free, core.free_tensor])
def test_freed_memory_is_refused(free: Callable[[Any], None]) -> None:
    def program(rank: int) -> None:
        words, others = allocate(4), allocate(4)
        set_one[(1,)](words)
        meet()
        free(words)
        set_one[(1,)](others)
        meet()
        set_one[(1,)](words)

    said = failure(2, program)
    assert re.search(
        r"argument words of kernel 'set_one' is symmetric memory that rank \d has freed at .*\.py:\d+", said
    )


def test_memory_is_freed_once() -> None:
    def program(rank: int) -> None:
        words = allocate(4)
        _symmetric.free(words)
        _symmetric.free(words)

    assert re.search(r"has freed this symmetric memory already, at .*test_diagnoses.py:\d+", failure(2, program))


def test_memory_stays_after_the_end_of_the_library() -> None:
    def program(rank: int) -> None:
        words = allocate(4)
        core.finalize()
        set_one[(1,)](words)
        assert words.tolist() == [1, 0, 0, 0]

    run(2, program)


@triton.jit
def meets_apart(out: Any, FEW: tl.constexpr, OUTSIDE: tl.constexpr) -> None:
    t = language_extra.tid(0)
    if t < FEW:
        language_extra.st(out + t, t)
        if OUTSIDE == 0:
            language_extra.__syncthreads()  # not by all
    if OUTSIDE:
        language_extra.__syncthreads()


@pytest.mark.parametrize("few", [1, 33, 127])
def test_a_barrier_of_some_threads_of_a_block_is_told(few: int) -> None:
    def program(rank: int) -> None:
        meets_apart[(1,)](torch.zeros(128, dtype=torch.int32, device="cuda"), few, 0)
        torch.cuda.synchronize()

    said = failure(1, program)
    assert f"test_diagnoses.py:{line_of(meets_apart, 'not by all')}" in said
    assert f"a barrier of all 128 threads of a block is under a condition that holds for {few} of them" in said


@pytest.mark.parametrize(("few", "outside"), [(128, 0), (33, 1)])
def test_a_barrier_of_all_threads_is_right(few: int, outside: int) -> None:
    def program(rank: int) -> None:
        out = torch.zeros(128, dtype=torch.int32, device="cuda")
        meets_apart[(1,)](out, few, outside)
        assert out.tolist() == [*range(few), *[0] * (128 - few)]

    run(1, program)


@triton.jit
def send(words, N: tl.constexpr):
    for _ in range(N):
        libshmem_device.signal_op(words, 1, libshmem_device.NVSHMEM_SIGNAL_ADD, (dl.rank() + 1) % dl.num_ranks())


@triton.jit
def take(words, N: tl.constexpr):
    for m in range(N):
        libshmem_device.signal_wait_until(words, libshmem_device.NVSHMEM_CMP_GE, m + 1)  # a signal each


@triton.jit
def takes_first(words, N: tl.constexpr) -> None:
    if language_extra.tid(0) == 32:
        take(words, N)
    if language_extra.tid(0) == 0:
        send(words, N)


@triton.jit
def takes_or_sends(words, N: tl.constexpr) -> None:
    if language_extra.tid(0) >= 32:
        take(words, N)
    else:
        send(words, N)


@triton.jit
def takes_then_meets(words, N: tl.constexpr) -> None:
    if language_extra.tid(0) == 32:
        take(words, N)
    language_extra.__syncthreads()
    if language_extra.tid(0) == 0:
        send(words, N)


@triton.jit
def sends_first(words, N: tl.constexpr) -> None:
    if language_extra.tid(0) == 0:
        send(words, N)
    elif language_extra.tid(0) == 32:
        take(words, N)


def in_roles(kernel: Any) -> None:
    words = allocate(1)
    kernel[(1,)](words, 3)
    torch.cuda.synchronize()


@pytest.mark.parametrize("kernel", [takes_first, takes_or_sends])
def test_threads_in_roles_that_wait_for_a_later_branch_are_told(kernel: Any) -> None:
    said, line = failure(2, lambda rank: in_roles(kernel)), line_of(take, "a signal each")
    cause = said.partition("likely cause: ")[2]
    role = rf'threads in roles: on rank \d some threads of kernel "{kernel.name}" wait at .*test_diagnoses.py:{line}'
    assert re.match(role + r" for the word at \+0 of window .*, and others have a later branch", cause), said


def test_threads_that_meet_before_the_second_branch_have_no_roles() -> None:
    said = failure(2, lambda rank: in_roles(takes_then_meets))
    assert said.partition("likely cause: ")[2].startswith("nobody has signalled yet in window"), said


def test_signals_that_are_sent_first_are_heard_in_later_roles() -> None:
    run(2, lambda rank: in_roles(sends_first))
