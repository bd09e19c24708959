/* SPDX-License-Identifier: GPL-2.0-only */
/* What both schedulers do alike: who may run where, who belongs to whom, and what user space asks. */
#ifndef COSCHED_SHARED_H
#define COSCHED_SHARED_H

#include "counts.h"
#include "presence.h"

/* The queue of processes that are nobody's to choose: free slots, and those that are not of the batch. */
#define OTHERS COSCHED_SLOTS

/* Nobody has used more than this more than others of its queue. All others of the machine stand in one queue, where a greater debt
 * could keep one from every CPU for so long that the kernel takes it for lost. */
#define MOST_DEBT (1000 * 1000 * 1000ULL)
#define MOST_DEBT_OF_OTHERS (100 * 1000 * 1000ULL)

/* On each CPU, whether another process than one of the batch had the last turn. */
u8 others_turn[COSCHED_CPUS];
/* There was one at some time; where there is none, nobody looks. */
u32 has_others;

static __always_inline bool may_use(struct task_struct *p, u32 cpu)
{
	return bpf_cpumask_test_cpu(cpu, p->cpus_ptr);
}

/* Whether a process that stands in a queue can be moved to a CPU. One that must stay where it is may not have said so to the queue
 * yet; to move it elsewhere is an error that ends the scheduler. */
static __always_inline bool may_go_to(struct task_struct *p, u32 cpu)
{
	if (bpf_core_field_exists(p->migration_disabled) && p->migration_disabled && scx_bpf_task_cpu(p) != (s32)cpu)
		return false;
	return may_use(p, cpu);
}

static __always_inline bool is_free(u32 slot)
{
	struct cosched_wish *wish = wish_of(slot);

	return !wish || wish->free;
}

/* Whether a process of a class above ours waits for this CPU, or has it. */
static __always_inline bool others_want(u32 cpu)
{
	struct rq *rq = 0;

	if (bpf_ksym_exists(scx_bpf_locked_rq))
		rq = scx_bpf_locked_rq();
	else if (bpf_ksym_exists(scx_bpf_cpu_rq))
		rq = scx_bpf_cpu_rq(cpu);
	if (!rq || !bpf_core_field_exists(rq->cfs.h_nr_runnable))
		return false;
	return rq->cfs.h_nr_runnable || rq->rt.rt_nr_running;
}

/* Whether such a process comes first. Up to Linux 6.18 a scheduler is asked even then, and what it gives would be bound to the CPU
 * until that one has left. Where a server keeps a part of the CPU for us we are asked to use it. */
static __always_inline bool others_come_first(u32 cpu)
{
	struct rq *any = 0;

	return !bpf_core_field_exists(any->ext_server) && others_want(cpu);
}

/* Whether one of the others comes before everybody: the kernel's threads that serve one CPU. */
static __always_inline bool serves_cpu(struct task_struct *p)
{
	return p->nr_cpus_allowed == 1 && p->flags & PF_KTHREAD;
}

/* Makes the queues with the numbers below `count`, and that of the others. */
static __always_inline s32 make_queues(u32 count)
{
	s32 failed;
	u32 i;

	EACH(i, COSCHED_CPUS) {
		if (i < COSCHED_CPUS)
			cpus[i].slot = COSCHED_NONE;
	}
	EACH(i, count) {
		failed = scx_bpf_create_dsq(i, -1);
		if (failed)
			return failed;
	}
	return scx_bpf_create_dsq(OTHERS, -1);
}

/* Calls a CPU for one of the others: an idle one that it may use, else the one that it had, if the batch has that. */
static __always_inline void call_for_other(struct task_struct *p)
{
	u32 cpu, at = BELOW(scx_bpf_task_cpu(p), COSCHED_CPUS);

	EACH(cpu, config.cpus) {
		if (cpu < COSCHED_CPUS && cpus[cpu].is_idle && may_use(p, cpu)) {
			scx_bpf_kick_cpu(cpu, SCX_KICK_IDLE);
			return;
		}
	}
	if (cpus[at].slot < COSCHED_SLOTS && !others_turn[at])
		scx_bpf_kick_cpu(at, SCX_KICK_PREEMPT);
	else
		scx_bpf_kick_cpu(at, SCX_KICK_IDLE);
}

/* The CPU to which a process is let out of its queue: an idle one, else one that the batch has, else its last one. */
static __always_inline u32 way_out(struct task_struct *p)
{
	u32 cpu, best = COSCHED_NONE;

	EACH(cpu, config.cpus) {
		if (cpu >= COSCHED_CPUS || !may_go_to(p, cpu))
			continue;
		if (cpus[cpu].is_idle)
			return cpu;
		if (cpus[cpu].slot < COSCHED_SLOTS)
			best = cpu;
	}
	if (best != COSCHED_NONE)
		return best;
	cpu = scx_bpf_task_cpu(p);
	return may_use(p, cpu) ? cpu : bpf_cpumask_first(p->cpus_ptr);
}

/* Lets the process that has the CPU go on. */
static __always_inline void go_on(struct task_struct *prev)
{
	prev->scx.slice = SLICE;
}

/* The CPU has found nothing to run. It may have been idle when the scheduler came, of which nobody tells; but it is not where others
 * have it, and a server asks us for its part. */
static __always_inline void rests(u32 cpu)
{
	cpus[BELOW(cpu, COSCHED_CPUS)].is_idle = !others_want(cpu);
}

/* The process that had the CPU does not belong to this scheduler any more. Each has its own. */
static __always_inline void vacate(u32 cpu);

/* The CPU has no process of ours any more. */
static __always_inline void leave(u32 cpu)
{
	if (cpus[cpu].slot < COSCHED_SLOTS)
		change(cpu, COSCHED_NONE, cpus[cpu].stopped_at);
}

SEC("struct_ops/cosched_runnable")
void BPF_PROG(cosched_runnable, struct task_struct *p, u64 enq_flags)
{
	struct cosched_task *task = task_of(p);

	if (task && !task->wants) {
		task->wants = 1;
		woke(slot_in(task), bpf_ktime_get_ns());
	}
}

static __always_inline void sleeps(struct task_struct *p)
{
	struct cosched_task *task = task_of(p);

	if (task && task->wants) {
		task->wants = 0;
		slept(slot_in(task), bpf_ktime_get_ns());
	}
}

SEC("struct_ops/cosched_quiescent")
void BPF_PROG(cosched_quiescent, struct task_struct *p, u64 deq_flags)
{
	/* Otherwise it only changes its place or its settings. */
	if (deq_flags & SCX_DEQ_SLEEP)
		sleeps(p);
}

SEC("struct_ops.s/cosched_init_task")
s32 BPF_PROG(cosched_init_task, struct task_struct *p, struct scx_init_task_args *args)
{
	return inherit(p, args->fork);
}

SEC("struct_ops/cosched_disable")
void BPF_PROG(cosched_disable, struct task_struct *p)
{
	struct cosched_task *task = task_of(p);
	u32 slot = slot_in(task), cpu = BELOW(scx_bpf_task_cpu(p), COSCHED_CPUS);

	if (task)
		task->queued_at = 0;
	note_escape(p);
	sleeps(p);
	if (slot != COSCHED_NONE && cpus[cpu].slot == slot && cpus[cpu].pid == p->pid)
		vacate(cpu);
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

/* What a program knows of a slot beside that is forgotten too. Each has its own. */
static __always_inline void forget_slot(u32 slot);

/* Tells it for the last time: the slot is given to another job. */
SEC("syscall")
int cosched_forget(struct cosched_call *call_)
{
	forget_slot(call_->slot);
	return residency(call_, true);
}

/* What both schedulers give the kernel, under the same names; flags, a name and what only one has come with it. */
#define OPS(...)                                                                                                       \
	{                                                                                                              \
		.select_cpu = (void *)cosched_select_cpu, .enqueue = (void *)cosched_enqueue,                          \
		.dispatch = (void *)cosched_dispatch, .runnable = (void *)cosched_runnable,                            \
		.running = (void *)cosched_running, .stopping = (void *)cosched_stopping,                              \
		.quiescent = (void *)cosched_quiescent, .update_idle = (void *)cosched_update_idle,                    \
		.cpu_release = (void *)cosched_cpu_release, .init_task = (void *)cosched_init_task,                    \
		.disable = (void *)cosched_disable, .init = (void *)cosched_init, .exit = (void *)cosched_exit,        \
		.timeout_ms = 30000, __VA_ARGS__                                                                       \
	}

#endif
