import contextvars
import sys
import threading

seen = []


def run(*calls, **options):
    thread = threading.Thread(target=lambda: [call() for call in calls], **options)
    thread.start()
    thread.join()
    return thread


data = threading.local()
data.x = 1


class Local(threading.local):
    def __init__(self, value):
        self.value = value


local = Local([7])
run(
    lambda: seen.append((hasattr(data, "x"), local.value)),
    lambda: setattr(data, "x", 5),
    lambda: setattr(local, "value", 8),
)
print(seen, data.x, local.value, vars(data))

try:
    data.__dict__ = {}
except AttributeError as error:
    print(error)
try:
    threading.local(1)
except TypeError as error:
    print(error)
del data.x
print(hasattr(data, "x"), vars(local))

variable = contextvars.ContextVar("variable", default="default")
variable.set("main")
run(lambda: seen.append(variable.get()), lambda: variable.set("thread"))
print(seen[-1], variable.get())
copied = contextvars.copy_context()
run(lambda: seen.append(copied.run(variable.get)))
print(seen[-1])

print(threading.main_thread().name, threading.current_thread() is threading.main_thread(), threading.active_count())
print(
    threading.get_ident() == threading.main_thread().ident,
    threading.get_native_id() == threading.main_thread().native_id,
)
thread = run(
    lambda: seen.append([threading.current_thread().name, threading.active_count()]),
    lambda: seen[-1].extend(t.name for t in threading.enumerate()),
    lambda: seen[-1].append(threading.get_ident() == threading.current_thread().ident != threading.main_thread().ident),
    name="worker",
)
print(seen[-1], thread.is_alive(), thread.name, thread.daemon)
print(repr(threading.Thread(target=print, name="new")), threading.Thread(daemon=True).daemon)
for wrong in (thread.start, threading.Thread(target=print).join, threading.current_thread().join):
    try:
        wrong()
    except RuntimeError as error:
        print(error)


class Nested(threading.Thread):
    def run(self):
        threads = [threading.Thread(target=seen.append, args=(i,)) for i in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


nested = Nested()
nested.start()
nested.join()
print(sorted(seen[-2:]), nested.name)

threading.settrace(lambda *_: seen.append("traced"))
run(lambda: None)
threading.settrace(None)
print(seen[-1])


def fails():
    raise ValueError("no")


threading.excepthook, before = (
    lambda args: print(args.exc_type.__name__, args.exc_value, args.thread.name),
    threading.excepthook,
)
print(run(fails, name="fails").is_alive())
threading.excepthook = before
run(sys.exit, name="leaves")
sys.stderr = sys.stdout
run(fails, name="fails aloud")
import _thread  # noqa: E402

lock = _thread.allocate_lock()
lock.acquire()
_thread.start_new_thread(lambda x: (seen.append(x), lock.release()), ("low",))
print(lock.acquire(), seen[-1])

import copy  # noqa: E402
import logging  # noqa: E402
import pickle  # noqa: E402
import signal  # noqa: E402

logger, handler = logging.getLogger("program"), logging.StreamHandler(sys.stdout)
handler.setFormatter(logging.Formatter("%(threadName)s says %(message)s"))
logger.addHandler(handler)
logger.propagate = False
logger.warning("one")
run(lambda: logger.warning("two"), name="another")
for unpicklable in (threading.Lock(), threading.RLock(), threading.local()):
    for call in (pickle.dumps, copy.deepcopy):
        try:
            call(unpicklable)
        except TypeError as error:
            print(error)


def sets_handler():
    try:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    except ValueError as error:
        print(error)


run(sets_handler)
print(type(threading.Lock()), type(threading.RLock()), threading.local)
print(threading.__name__, threading.__file__ is not None, threading.Thread.__module__, threading.__spec__.name)
