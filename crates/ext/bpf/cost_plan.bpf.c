/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a CPU does to find what it runs by a plan, called many times to see how long it takes. This needs no sched_ext: moving a
 * process is not part of it.
 */
#define COSCHED_ALONE
#include "plan.bpf.c"
#include "cost.h"

/* Which of the two plans is in force, and in the answer the queue that has a process. */
SEC("syscall")
int cost_plan(struct cosched_call *call_)
{
	in_force = call_->slot;
	only_queue = call_->answer;
	return 0;
}

/* The CPU in the slot chooses. */
COST(cost_choose, choose(BELOW(call_->slot, COSCHED_CPUS), 0))
