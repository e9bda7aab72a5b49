"""Threads of a rank's program: tasks that take turns with all others, as ranks do, and in the same schedule.

The program, and its packages, import modules of the rank's own under the names ``threading``, ``queue``,
``concurrent.futures``, ``multiprocessing.pool`` and ``_thread`` (`copies`). They are Python's own code, executed anew
with another ``_thread`` below (`locks`, `starting`), so they mean what they mean in Python. All others have the modules
of the process, with threads of the system, which must not touch the World.

What is as in Python: a rank ends when its program has returned and the threads that are not daemons have ended; then
daemons are dropped where they wait. An exception goes to ``threading.excepthook`` and ends that thread only. A program
that fails by an exception waits for no thread. A new thread has a current device, a current stream, grad mode and
autocast of its own, as they are at first, and an empty context of contextvars.

What is not: threads switch only where one waits, for another, for its device, for a rank or for time to pass. One that
computes in a loop until another has set a flag waits for ever. To ask in vain (``Event.is_set``, ``Thread.is_alive``,
``Queue.get_nowait``, ``Future.done``, a lock that is not free) counts as a wait of a microsecond.

Time: what a wait is limited to (``timeout=``, Timer) is simulated time, as that of stores is, and so is ``time.sleep``
while a rank has several threads. It passes when nothing else can happen: a heartbeat, every second, beats a million
times less often than a collective of a microsecond ends. Without ``--virtual-clock`` the process sleeps for as long
where a sleep is all that the rank's main program waits for: perhaps it waits for something outside.

Deadlocks: threads are named in the report, with what they wait for and where. Deadlines do not hide one: when a
thousand in a row have changed nothing for those who wait without one, and no main program waits for a thread of its
own, all that is left are heartbeats.
"""
