#include "baton.h"

#include <errno.h>
#include <semaphore.h>
#include <stdlib.h>

void *torchemu_baton_make(void)
{
	sem_t *baton = malloc(sizeof *baton);
	if (baton && sem_init(baton, 0, 0)) {
		free(baton);
		return 0;
	}
	return baton;
}

void torchemu_baton_free(void *baton)
{
	sem_destroy(baton);
	free(baton);
}

void torchemu_baton_pass(void *next, void *own)
{
	if (next)
		sem_post(next);
	while (own && sem_wait(own) && errno == EINTR)
		;
}
