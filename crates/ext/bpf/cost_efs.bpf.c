/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What EFS computes for a decision, called many times to see how long it takes. This needs no sched_ext: calls of the scheduler's
 * functions are not reached.
 */
#define COSCHED_ALONE
#include "efs.bpf.c"
#include "cost.h"

/* Lets a process of a class run on a CPU: the class and one is in the answer. */
SEC("syscall")
int cost_seat(struct cosched_call *call_)
{
	seat(call_->slot, call_->answer, false, 0);
	return 0;
}

/* The threshold of a CPU beside what runs on the others. */
COST(cost_threshold, kept += threshold(call_->slot))
/* A CPU goes from a process of one class to one of another. */
COST(cost_change, seat(call_->slot, 1000 + (i & 1), false, 0))
/* A demand from what was counted. */
COST(cost_measure, has_moved(call_->slot, 1, 4000000 + i, 100000 + i, 1))
