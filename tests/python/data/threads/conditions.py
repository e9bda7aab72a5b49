import threading

event = threading.Event()
print(event.wait(0.01), event.is_set(), event.wait(0))
threading.Timer(0.02, event.set).start()
print(event.wait(), event.is_set(), event.wait(0), event.wait(5))
event.clear()
print(event.is_set())

condition, items, taken = threading.Condition(), [], []


def consume():
    with condition:
        while not items:
            condition.wait()
        taken.append(items.pop())


threads = [threading.Thread(target=consume) for _ in range(3)]
for thread in threads:
    thread.start()
for i in range(3):
    with condition:
        items.append(i)
        condition.notify()
for thread in threads:
    thread.join()
print(sorted(taken), items)
with condition:
    print(condition.wait(0.01), condition.wait_for(lambda: False, timeout=0.01), condition.wait_for(lambda: 7))
for call in (condition.notify, condition.wait, condition.notify_all):
    try:
        call()
    except RuntimeError as error:
        print(error)
own = threading.Condition(threading.Lock())
with own:
    own.notify_all()
    print(own.wait(0))

few = threading.Semaphore(2)
inside, most = 0, 0
turn = threading.Lock()


def use():
    global inside, most
    with few:
        with turn:
            inside += 1
            most = max(most, inside)
        with turn:
            inside -= 1


threads = [threading.Thread(target=use) for _ in range(6)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(
    most <= 2, inside, few.acquire(), few.acquire(timeout=0.01), few.acquire(timeout=0.01), few.acquire(blocking=False)
)
few.release(2)
try:
    threading.BoundedSemaphore(1).release()
except ValueError as error:
    print(error)

places = []
barrier = threading.Barrier(3, action=lambda: places.append("action"))
threads = [threading.Thread(target=lambda: places.append(barrier.wait())) for _ in range(3)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(places[0], sorted(places[1:]), barrier.parties, barrier.n_waiting, barrier.broken)
try:
    barrier.wait(0.01)
except threading.BrokenBarrierError as error:
    print(type(error).__name__, barrier.broken)
barrier.reset()
print(barrier.broken)
