/* SPDX-License-Identifier: GPL-2.0-only */
/* The times of starvation (EFS, Eqs. 21-23), in ns. src/tables.rs compiles this for the machine itself and compares it with the model. */
#ifndef COSCHED_RULES_H
#define COSCHED_RULES_H

/* Scheduling periods (Eq. 21). */
#define PERIOD (18 * 1000 * 1000ULL)
#define PERIOD_OF_EACH (4 * 1000 * 1000ULL)
#define MANY 5
/* The least slice of a starved process, which is ours. */
#define LEAST_SLICE (4 * 1000 * 1000ULL)

static __always_inline unsigned long long period(unsigned long long tasks)
{
	return tasks < MANY ? PERIOD : tasks * PERIOD_OF_EACH;
}

/* Whether a process starves that has waited and lags for so long. The third rule, which counts also for those that are not first in
 * line, is ours: it bounds every wait. */
static __always_inline int starves(unsigned long long waits, unsigned long long lag, int is_first, unsigned long long local,
				   unsigned long long global)
{
	return waits > (local > global ? local : global) || (is_first && (waits > global || lag > local));
}

/* The slice of a starved process on a CPU with so many. */
static __always_inline unsigned long long starved_slice(unsigned long long lag, unsigned long long tasks)
{
	unsigned long long most = period(tasks);

	if (lag > most)
		return most;
	return lag > LEAST_SLICE ? lag : LEAST_SLICE;
}

#endif
