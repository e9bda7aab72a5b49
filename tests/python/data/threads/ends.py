import atexit
import sys
import threading
import time

go_on = threading.Event()


def forgotten():
    try:
        threading.Event().wait()
    finally:
        print("nobody waits for a daemon")


def lasts():
    go_on.wait()
    print("a thread that is no daemon ends")


def beats():
    while True:
        time.sleep(0.01)


atexit.register(print, "atexit")
threading.Thread(target=forgotten, daemon=True).start()
threading.Thread(target=beats, daemon=True).start()
threading.Thread(target=lasts).start()
print("the main program ends")
threading.Timer(0.02, go_on.set).start()
if len(sys.argv) > 1:
    sys.exit(0)
