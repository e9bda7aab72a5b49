import threading

total = 0
lock = threading.Lock()


def add(times):
    global total
    for _ in range(times):
        with lock:
            total += 1


threads = [threading.Thread(target=add, args=(100,)) for _ in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(total, lock.locked(), lock.acquire(), lock.locked(), lock.acquire(blocking=False), lock.acquire(timeout=0.01))
lock.release()
for wrong in [(False, 1), (True, -2), (True, 1e300), ("no", "timeout")]:
    try:
        lock.acquire(*wrong)
    except (ValueError, OverflowError, TypeError) as error:
        print(type(error).__name__, error)
try:
    lock.release()
    lock.release()
except RuntimeError as error:
    print(error)

again = threading.RLock()
seen = []


def other():
    seen.append(again.acquire(blocking=False))
    try:
        again.release()
    except RuntimeError as error:
        seen.append(str(error))


with again, again:
    print(again.acquire(False))
    again.release()
    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
print(seen)
thread = threading.Thread(target=lambda: seen.append(again.acquire()))
thread.start()
thread.join()
print(seen[-1], again.acquire(blocking=False), again.acquire(timeout=0.01))

# A lock may be released by another thread than the one that acquired it.
gate = threading.Lock()
gate.acquire()
threading.Thread(target=gate.release).start()
print(gate.acquire(), gate.locked())
