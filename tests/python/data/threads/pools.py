import concurrent.futures
import threading
from concurrent.futures import FIRST_COMPLETED, FIRST_EXCEPTION, ThreadPoolExecutor, as_completed, wait
from multiprocessing.pool import ThreadPool


def fails():
    raise ValueError("no")


gate, begun, called = threading.Event(), threading.Event(), []


def waits():
    begun.set()
    return gate.wait()


with ThreadPoolExecutor(3, thread_name_prefix="pool") as pool:
    print(list(pool.map(lambda x: x * x, range(10))), list(pool.map(pow, [2, 3], [5, 2])))
    print(sorted(f.result() for f in as_completed([pool.submit(pow, 2, i) for i in range(5)])))
    failed = pool.submit(fails)
    print(repr(failed.exception()), failed.done(), failed.running(), failed.cancelled())
    try:
        failed.result()
    except ValueError as error:
        print(error)
    waiting = pool.submit(waits)
    begun.wait()
    done, not_done = wait([pool.submit(int), waiting], return_when=FIRST_COMPLETED)
    print(len(done), len(not_done), not_done == {waiting}, waiting.running(), waiting.cancel())
    for call in (lambda: waiting.result(timeout=0.01), lambda: list(as_completed([waiting], timeout=0.01))):
        try:
            call()
        except concurrent.futures.TimeoutError as error:
            print(type(error).__name__, isinstance(error, TimeoutError))
    print(sorted(map(len, wait([waiting, pool.submit(fails)], return_when=FIRST_EXCEPTION))))
    waiting.add_done_callback(lambda future: called.append(future.result()))
    gate.set()
    print(waiting.result())
    print({pool.submit(lambda: threading.current_thread().name).result().rpartition("_")[0] for _ in range(3)})
print(called)
try:
    pool.submit(print)
except RuntimeError as error:
    print(error)

gate.clear()
begun.clear()
single = ThreadPoolExecutor(max_workers=1)
first, second = single.submit(waits), single.submit(print, "never")
begun.wait()
print(second.cancel(), second.cancelled(), second.done())
try:
    second.result()
except concurrent.futures.CancelledError as error:
    print(type(error).__name__)
gate.set()
single.shutdown(wait=True, cancel_futures=True)
print(first.result())


def no_worker():
    raise KeyError("initializer")


broken = ThreadPoolExecutor(1, initializer=no_worker)
import logging  # noqa: E402

logging.disable()
try:
    broken.submit(int).result()
except concurrent.futures.BrokenExecutor as error:
    print(type(error).__name__, error)

future = concurrent.futures.Future()
future.set_result(1)
try:
    future.set_result(2)
except concurrent.futures.InvalidStateError as error:
    print(type(error).__name__, future.result())
with ThreadPool(3) as threads:
    print(threads.map(abs, [-1, 2, -3]), threads.apply(pow, (2, 5)), sorted(threads.imap_unordered(abs, [-4, 5])))
    print(
        threads.apply_async(len, ("abc",)).get(5), threads.starmap(pow, [(2, 3), (3, 2)]), list(threads.imap(abs, [-7]))
    )
    try:
        threads.apply(fails)
    except ValueError as error:
        print(error)
ThreadPoolExecutor(2).submit(print, "is done before the end")
