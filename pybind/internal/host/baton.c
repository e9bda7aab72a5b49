#define _GNU_SOURCE
#include "baton.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

struct baton {
	sem_t handed;
	int times; // that its thread has found it handed over, by torchemu_baton_look
#ifdef __linux__
	_Atomic pid_t waiter; // 0 unless cpus is that of a thread which waits
	cpu_set_t cpus;       // where the waiter may run
	int kept;             // the waiter may run nowhere else now than where the baton was handed over
	int patient;          // the waiter pushes nobody aside as it wakes, or may not be told to
#endif
};

#ifdef __linux__

// calm has the thread that is about to wait not push aside the one that will wake it, which itself waits next: the kernel
// would let it go on for that later, which takes as long as to hand over once more.
static void calm(struct baton *own)
{
	struct sched_param same = {0};
	own->patient = 1;
	if (sched_getscheduler(0) == SCHED_OTHER)
		sched_setscheduler(0, SCHED_BATCH, &same);
}

// note tells those who hand over who is about to wait.
static void note(struct baton *own)
{
	if (!own->patient)
		calm(own);
	own->kept = 0;
	if (!sched_getaffinity(0, sizeof own->cpus, &own->cpus))
		atomic_store_explicit(&own->waiter, syscall(SYS_gettid), memory_order_release);
}

// keep has the thread that waits wake on the processor that runs, which is about to be free. On another one, which sleeps,
// that takes ten times as long, and what the turns before have left in the caches is not there.
static void keep(struct baton *next)
{
	pid_t waiter = atomic_load_explicit(&next->waiter, memory_order_acquire);
	int cpu = sched_getcpu();
	if (!waiter || cpu < 0 || cpu >= CPU_SETSIZE || !CPU_ISSET(cpu, &next->cpus))
		return;
	cpu_set_t here;
	CPU_ZERO(&here);
	CPU_SET(cpu, &here);
	next->kept = !sched_setaffinity(waiter, sizeof here, &here);
}

// release lets the thread run where it might before it waited, and with it the threads that it starts.
static void release(struct baton *own)
{
	atomic_store_explicit(&own->waiter, 0, memory_order_relaxed);
	if (own->kept)
		sched_setaffinity(0, sizeof own->cpus, &own->cpus);
}

// await waits for a baton for a tenth of a second at most, or until a signal comes; it returns 0 once that is handed over.
static int await(struct baton *own)
{
	struct timespec until;
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += 100000000;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	return sem_timedwait(&own->handed, &until);
}

#else

static void note(struct baton *own) {}
static void keep(struct baton *next) {}
static void release(struct baton *own) {}
static int await(struct baton *own) { return sem_wait(&own->handed); }

#endif

void *torchemu_baton_make(void)
{
	struct baton *made = calloc(1, sizeof *made);
	if (made && sem_init(&made->handed, 0, 0)) {
		free(made);
		return 0;
	}
	return made;
}

void torchemu_baton_free(void *baton)
{
	struct baton *ended = baton;
	sem_destroy(&ended->handed);
	free(ended);
}

void torchemu_baton_pass(void *following, void *waited)
{
	struct baton *next = following, *own = waited;
	if (own)
		note(own);
	if (next) {
		keep(next);
		sem_post(&next->handed);
	}
	if (!own)
		return;
	while (sem_wait(&own->handed) && errno == EINTR)
		;
	release(own);
}

int torchemu_baton_look(void *waited, int seen)
{
	struct baton *own = waited;
	if (own->times == seen && !await(own))
		own->times++; // and not whoever hands over, for whom the baton may be gone after the semaphore is posted
	return own->times;
}

static pthread_key_t at_end;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static int has_key;

// end hands over in the second round of a thread's destructors: the first one is for those of everybody else.
static void end(void *next)
{
	static _Thread_local int rounds;
	if (rounds++ || pthread_setspecific(at_end, next))
		torchemu_baton_pass(next, 0);
}

static void make_key(void)
{
	has_key = !pthread_key_create(&at_end, end);
}

void torchemu_baton_pass_at_end(void *next)
{
	pthread_once(&once, make_key);
	if (!has_key || pthread_setspecific(at_end, next))
		torchemu_baton_pass(next, 0);
}
