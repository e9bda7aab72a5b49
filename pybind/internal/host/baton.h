// A baton is what a thread waits for that takes turns with others. Python calls these functions by ctypes, without its
// lock: a thread that hands over in Python wakes the next one, which then waits for that lock, and takes twice as long.

// torchemu_baton_make makes a baton that nobody has handed over; 0 where there is no memory for it.
void *torchemu_baton_make(void);

// torchemu_baton_free ends a baton for which nobody waits.
void torchemu_baton_free(void *baton);

// torchemu_baton_pass lets the thread go on that waits for a baton, unless that is 0, and waits for another one, unless
// that is 0.
void torchemu_baton_pass(void *next, void *own);

// torchemu_baton_pass_at_end lets the thread go on that waits for a baton once the running thread has ended, with what C and
// C++ keep for it.
void torchemu_baton_pass_at_end(void *next);

// torchemu_baton_look returns how often the running thread has found its baton handed over. Where that is as often as was
// seen, it looks first: for a tenth of a second at most, or until a signal comes. So a result that is lost comes again.
int torchemu_baton_look(void *own, int seen);
