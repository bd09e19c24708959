/* SPDX-License-Identifier: GPL-2.0-only */
/* What both schedulers do alike: who may run where, who belongs to whom, and what user space asks. */
#ifndef COSCHED_SHARED_H
#define COSCHED_SHARED_H

#include "presence.h"

/* The queue of processes that are nobody's to choose: free slots, and those that are not of the batch. */
#define OTHERS COSCHED_SLOTS

/* Nobody has used more than this more than others of its queue. */
#define MOST_DEBT (1000 * 1000 * 1000ULL)

static __always_inline bool may_use(struct task_struct *p, u32 cpu)
{
	return bpf_cpumask_test_cpu(cpu, p->cpus_ptr);
}

static __always_inline bool is_free(u32 slot)
{
	struct cosched_wish *wish = wish_of(slot);

	return !wish || wish->free;
}

/* Lets the process that has the CPU go on. */
static __always_inline void go_on(struct task_struct *prev)
{
	prev->scx.slice = SLICE;
}

/* The CPU has no process of ours any more. */
static __always_inline void leave(u32 cpu)
{
	if (cpus[cpu].slot < COSCHED_SLOTS)
		change(cpu, COSCHED_NONE, cpus[cpu].stopped_at);
}

SEC("struct_ops/cosched_runnable")
void BPF_PROG(cosched_runnable, struct task_struct *p, u64 enq_flags)
{
	woke(slot_in(task_of(p)), bpf_ktime_get_ns());
}

SEC("struct_ops/cosched_quiescent")
void BPF_PROG(cosched_quiescent, struct task_struct *p, u64 deq_flags)
{
	slept(slot_in(task_of(p)), bpf_ktime_get_ns());
}

SEC("struct_ops.s/cosched_init_task")
s32 BPF_PROG(cosched_init_task, struct task_struct *p, struct scx_init_task_args *args)
{
	return inherit(p, args->fork);
}

SEC("struct_ops/cosched_disable")
void BPF_PROG(cosched_disable, struct task_struct *p)
{
	note_escape(p);
}

SEC("struct_ops/cosched_exit")
void BPF_PROG(cosched_exit, struct scx_exit_info *ei)
{
	tell_exit(ei);
}

static __always_inline int residency(struct cosched_call *call_, bool forget)
{
	u32 zero = 0;
	struct cosched_residency *out = bpf_map_lookup_elem(&answers, &zero);

	if (!out)
		return 0;
	tell_residency(call_->slot, forget, out);
	return 0;
}

/* Tells where the time of a slot went. */
SEC("syscall")
int cosched_read(struct cosched_call *call_)
{
	return residency(call_, false);
}

/* Tells it for the last time: the slot is given to another job. */
SEC("syscall")
int cosched_forget(struct cosched_call *call_)
{
	return residency(call_, true);
}

#endif
