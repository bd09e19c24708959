/* SPDX-License-Identifier: GPL-2.0-only */
/* Calls something many times to see how long it takes. */
#ifndef COSCHED_COST_H
#define COSCHED_COST_H

#define CALLS 20000

u32 kept;

/* In the span the time of so many calls as are in the answer. */
#define COST(name, what)                                                                                               \
	SEC("syscall")                                                                                                 \
	int name(struct cosched_call *call_)                                                                           \
	{                                                                                                              \
		u64 begin = bpf_ktime_get_ns();                                                                        \
		u32 i;                                                                                                 \
                                                                                                                       \
		for (i = READ_ONCE(nothing); i < CALLS && MAY_GO_ON; i++)                                               \
			what;                                                                                          \
		call_->span = bpf_ktime_get_ns() - begin;                                                              \
		call_->answer = i;                                                                                     \
		return 0;                                                                                              \
	}

/* Nothing: what the others take beside what is measured. */
COST(cost_nothing, kept = i)

#endif
