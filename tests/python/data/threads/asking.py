"""Loops that ask for what another thread does."""

import queue
import threading
import time
from concurrent.futures import ThreadPoolExecutor

value = 0


def change():
    global value
    time.sleep(0.01)
    value = 1


thread = threading.Thread(target=change)
thread.start()
while thread.is_alive():
    pass
print(value)
event = threading.Event()
threading.Timer(0.005, event.set).start()
while not event.is_set():
    pass
print("event")
items = queue.Queue()
threading.Timer(0.005, items.put, (1,)).start()
while items.empty():
    pass
print(items.get())
threading.Timer(0.005, items.put, (2,)).start()
while True:
    try:
        print(items.get_nowait())
        break
    except queue.Empty:
        continue
lock = threading.Lock()
lock.acquire()
threading.Timer(0.005, lock.release).start()
while not lock.acquire(blocking=False):
    pass
print(lock.locked())
with ThreadPoolExecutor() as pool:
    future = pool.submit(time.sleep, 0.01)
    while not future.done():
        pass
print(future.result())
while not event.wait(0):
    pass
never = threading.Timer(60, print, ("never",))
never.start()
never.cancel()
never.join()
print(never.finished.is_set())
