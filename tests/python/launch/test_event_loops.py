"""asyncio in ranks: loops that wait let others run, and what they call on threads takes part in the simulation."""

from __future__ import annotations

from pathlib import Path

import pytest
from launch import launch, lines, written

BEGIN = """
import asyncio, os, sys, time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
import torch, torch.distributed as dist
dist.init_process_group("gloo")
rank = dist.get_rank()
def reduced(x):
    t = torch.ones(2) * (x + rank)
    dist.all_reduce(t)
    return t.tolist()
async def main():
    loop = asyncio.get_running_loop()
"""

RUNS = {
    "to_thread": ("return await asyncio.to_thread(reduced, 1)", "[3.0, 3.0]"),
    "run_in_executor": ("return await loop.run_in_executor(None, reduced, 1)", "[3.0, 3.0]"),
    "a pool of the program": ("return await loop.run_in_executor(ThreadPoolExecutor(1), reduced, 2)", "[5.0, 5.0]"),
    "a future of the program": ("return await asyncio.wrap_future(ThreadPoolExecutor(1).submit(len, 'ab'))", "2"),
    "a pool as default": (
        "loop.set_default_executor(ThreadPoolExecutor(2))\n    return await asyncio.to_thread(reduced, 1)",
        "[3.0, 3.0]",
    ),
    "several at once": (
        "found = await asyncio.gather(*[asyncio.to_thread(time.sleep, 0.01) for _ in range(4)])\n    return len(found)",
        "4",
    ),
    "the loop stays": (
        "await asyncio.to_thread(dist.barrier)\n    return asyncio.get_running_loop() is loop",
        "True",
    ),
    "a limit": (
        "try: await asyncio.wait_for(asyncio.Event().wait(), 0.02)\n    except asyncio.TimeoutError: return 'late'",
        "late",
    ),
    "processes": ("return await loop.run_in_executor(ProcessPoolExecutor(1), abs, -3)", "3"),
    "a program": (
        "p = await asyncio.create_subprocess_exec(sys.executable, '-c', 'print(5)', stdout=-1)\n"
        "    return (await p.communicate())[0].decode().strip()",
        "5",
    ),
    "a program's end": ("return await (await asyncio.create_subprocess_exec('true')).wait()", "0"),
}
"""By what a program does in a loop: the lines, and what they return in each rank."""


@pytest.mark.parametrize("clock", [(), ("--virtual-clock",)])
@pytest.mark.parametrize("name", RUNS)
def test_what_loops_wait_for(tmp_path: Path, name: str, clock: tuple[str, ...]) -> None:
    does, returned = RUNS[name]
    file = written(tmp_path, f"{BEGIN}    {does}\nprint(asyncio.run(main()))\n")
    assert lines(launch("--nproc-per-node", "2", *clock, file)) == [returned] * 2


def test_ranks_talk_by_sockets(tmp_path: Path) -> None:
    """One waits in its loop for what another one is to send."""
    text = """
    import asyncio, os
    rank = int(os.environ["RANK"])
    async def serve():
        done = asyncio.Event()
        async def answer(reader, writer):
            writer.write(await reader.readline())
            await writer.drain()
            writer.close()
            done.set()
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        with open("port.new", "w") as file:
            file.write(str(server.sockets[0].getsockname()[1]))
        os.rename("port.new", "port")
        await done.wait()
        server.close()
        await server.wait_closed()
    async def ask():
        while not os.path.exists("port"):
            await asyncio.sleep(0.001)
        with open("port") as file:
            port = int(file.read())
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"hello\\n")
        await writer.drain()
        print((await reader.readline()).decode(), end="")
        writer.close()
        await writer.wait_closed()
    """
    run = f"os.chdir({str(tmp_path)!r})\n    asyncio.run(serve() if rank == 0 else ask())\n"
    assert lines(launch("--nproc-per-node", "2", written(tmp_path, f"{text}{run}"))) == ["hello"]


@pytest.mark.parametrize(
    ("waits", "says"),
    [
        ("asyncio.Event().wait()", "an event loop that has nothing to do"),
        ("asyncio.to_thread(dist.barrier)", "thread 'asyncio_0' of rank 1 waits for barrier"),
    ],
)
def test_a_loop_that_nobody_wakes_is_a_deadlock(tmp_path: Path, waits: str, says: str) -> None:
    text = f"{BEGIN}    await {waits}\nif rank == 1:\n    asyncio.run(main())\n"
    outcome = launch("--nproc-per-node", "2", written(tmp_path, text))
    assert outcome.status == 1
    assert "DeadlockError" in outcome.err
    assert says in outcome.err


PACKAGE = """
import asyncio, concurrent.futures, threading

class Service:
    def __init__(self):
        self.ready = threading.Event()
        threading.Thread(target=lambda: asyncio.run(self.serve()), daemon=True).start()
        self.ready.wait()

    async def serve(self):
        self.loop = asyncio.get_running_loop()
        self.ready.set()
        await asyncio.Event().wait()

    def ask(self, number):
        return asyncio.run_coroutine_threadsafe(self.answer(number), self.loop)

    async def answer(self, number):
        await asyncio.sleep(0.01)
        return 1 / number

    def first(self, numbers):
        found = concurrent.futures.wait([self.ask(number) for number in numbers])
        return sorted(future.result() for future in found.done)
"""


@pytest.mark.parametrize("front_end", ["numpy", "real"])
def test_a_loop_on_a_packages_thread_answers(tmp_path: Path, front_end: str) -> None:
    """That of wandb, whose thread is none of the rank's."""
    if front_end == "real":
        pytest.importorskip("torch")
    written(tmp_path, PACKAGE, "site-packages/answering.py")
    text = f"""
    import os, sys
    sys.path.insert(0, {str(tmp_path / "site-packages")!r})
    import answering
    import torch, torch.distributed as dist
    dist.init_process_group("gloo")
    one = answering.Service()
    assert one.ask(4).result() == 0.25 and one.first([2, 1]) == [0.5, 1]
    try:
        one.ask(0).result(10)
    except ZeroDivisionError as error:
        dist.barrier()
        print(error)
    """
    file = written(tmp_path, text)
    assert lines(launch("--torch", front_end, "--nproc-per-node", "2", file)) == ["division by zero"] * 2
