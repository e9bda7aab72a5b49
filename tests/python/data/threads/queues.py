import queue
import threading
from functools import partial

for kind in (queue.Queue, queue.LifoQueue, queue.PriorityQueue, queue.SimpleQueue):
    items = kind()
    thread = threading.Thread(target=lambda items=items: [items.put(i) for i in (3, 1, 2)])
    thread.start()
    thread.join()
    print(kind.__name__, items.qsize(), [items.get(), items.get(timeout=1), items.get_nowait()], items.empty())
    for call in (partial(items.get, timeout=0.01), partial(items.get, block=False), items.get_nowait):
        try:
            call()
        except queue.Empty as error:
            print(type(error).__name__)

narrow, got = queue.Queue(maxsize=1), []


def consume():
    while (item := narrow.get()) is not None:
        got.append(item)
        narrow.task_done()
    narrow.task_done()


consumer = threading.Thread(target=consume)
consumer.start()
for i in range(5):
    narrow.put(i)
narrow.put(None)
narrow.join()
consumer.join()
print(got)
narrow.put(1)
for call in (lambda: narrow.put(2, timeout=0.01), lambda: narrow.put(2, block=False), lambda: narrow.put_nowait(2)):
    try:
        call()
    except queue.Full as error:
        print(type(error).__name__, narrow.full(), narrow.qsize())
try:
    narrow.task_done()
    narrow.task_done()
except ValueError as error:
    print(error)
try:
    narrow.get(timeout=-1)
    narrow.get(timeout=-1)
except ValueError as error:
    print(error)
