/* SPDX-License-Identifier: GPL-2.0-only */
/* Who has waited too long (section 4.3): a CPU is called for the longest starved of the machine, and the others make room. */
#ifndef COSCHED_EFS_STARVED_H
#define COSCHED_EFS_STARVED_H

#include "efs_load.h"

/* A starved process that was called runs by then, or another CPU is called for it. */
#define PATIENCE (12 * 1000 * 1000ULL)
/* For so long those beside whom it does not fit are given time to leave. */
#define GRACE (2 * 1000 * 1000ULL)

/* The others are judged again, beside who has starved. */
__noinline int call_busy(u32 but)
{
	u32 cpu;

	EACH(cpu, config.cpus) {
		if (cpu < COSCHED_CPUS && cpu != but && words[AT(cpu)])
			scx_bpf_kick_cpu(cpu, SCX_KICK_PREEMPT);
	}
	return 0;
}

/* Whether the starved process came from one state into the next: it is changed without a lock. */
static __always_inline bool starved_becomes(u32 from, u32 to)
{
	return __sync_val_compare_and_swap(&starved.state, from, to) == from;
}

/* Lets the starved process run on this CPU, which was called for it, or keeps the CPU for it until those have left beside whom it
 * does not fit; false if it is not there any more. */
__noinline int answer_call(u32 cpu, u64 now)
{
	u32 queue = AT(starved.queue);
	u64 slice = starved_slice(starved.lag, scx_bpf_dsq_nr_queued(queue) + 1);
	struct task_struct *p;
	bool runs = false;

	if (now + PATIENCE < starved.until + GRACE && (int)starved.class > threshold(cpu)) {
		nobody(cpu);
		return true;
	}
	if (!starved_becomes(CALLED, RUNS))
		return false;
	/* Before it runs: the CPU looks again when it is over. */
	starved.until = now + slice;
	bpf_for_each(scx_dsq, p, queue, 0) {
		if (p->pid != starved.pid || !may_go_to(p, cpu))
			continue;
		seat(cpu, class_of(slot_in(task_of(p))) + 1, false, 0);
		scx_bpf_dsq_move_set_slice(&___it, slice);
		runs = scx_bpf_dsq_move(&___it, p, SCX_DSQ_LOCAL, 0);
		break;
	}
	if (!runs)
		starved_becomes(RUNS, NOBODY);
	return runs;
}

/* Whether this CPU is for the starved process, which has it already or was to be called to it. */
static __always_inline bool run_starved(u32 cpu, struct task_struct *prev, u64 now)
{
	if (starved.state != RUNS)
		return answer_call(cpu, now);
	if (prev && prev->pid == starved.pid && now < starved.until) {
		prev->scx.slice = starved.until - now;
		return true;
	}
	starved_becomes(RUNS, NOBODY);
	return false;
}

/* The greatest virtual time of a CPU's processes: of the last in its queue, or of the one that runs. */
__noinline u64 greatest_of(u32 cpu, u64 now)
{
	struct task_struct *p;
	u64 greatest = 0;

	bpf_rcu_read_lock();
	bpf_for_each(scx_dsq, p, AT(cpu), SCX_DSQ_ITER_REV) {
		greatest = p->scx.dsq_vtime;
		break;
	}
	bpf_rcu_read_unlock();
	p = words[AT(cpu)] ? bpf_task_from_pid(cpus[AT(cpu)].pid) : 0;
	if (p) {
		struct cosched_task *task = task_of(p);
		u64 vtime = p->scx.dsq_vtime + (task ? charged(task, used_by(task, now)) : 0);

		if (vtime > greatest)
			greatest = vtime;
		bpf_task_release(p);
	}
	return greatest;
}

/* Whether a CPU is at the service of the batch now: idle, or with a process of it. */
static __always_inline bool answers_soon(u32 cpu)
{
	return efs.is_ours[AT(cpu)] && (cpus[AT(cpu)].is_idle || words[AT(cpu)]);
}

/* The CPU to call for a process of a queue: its own, or another one that it may use if that one is not at the service of the batch,
 * or was called in vain. COSCHED_NONE if there is none: nobody needs to wait for it, or to make room. A function of numbers, so that
 * the verifier looks at it once, and not in each turn of a loop. */
__noinline u32 cpu_for(s32 pid, u32 queue, u32 in_vain)
{
	struct task_struct *p = bpf_task_from_pid(pid);
	u32 step, found = COSCHED_NONE;

	if (!p)
		return COSCHED_NONE;
	bpf_rcu_read_lock();
	/* Its own is the first. */
	EACH(step, config.cpus) {
		u32 cpu = queue + step;

		if (cpu >= config.cpus)
			cpu -= config.cpus;
		if (cpu < COSCHED_CPUS && cpu != in_vain && answers_soon(cpu) && may_go_to(p, cpu)) {
			found = cpu;
			break;
		}
	}
	bpf_rcu_read_unlock();
	bpf_task_release(p);
	return found;
}

/* The longest starved process that was found so far. Only the tick looks, and it is one. What is kept in memory and not in registers
 * is no state that the verifier must follow through the loops. */
struct longest {
	u64 waits;
	u64 lag;
	u32 queue;
	u32 class;
	s32 pid;
	/* The CPU to call for it. */
	u32 cpu;
	/* The one that was called in vain for the process that was called last. */
	u32 in_vain;
	u32 unused;
};
struct longest longest;

/* Looks who of a queue has starved for longer than whoever was found before. */
__noinline int look_in(u32 queue, u64 now, u64 global)
{
	u32 looks = READ_ONCE(nothing), cpu = AT(queue);
	u64 local = efs.c_local * period(scx_bpf_dsq_nr_queued(queue) + (words[cpu] != 0)), greatest = greatest_of(cpu, now);
	struct task_struct *p;

	bpf_rcu_read_lock();
	bpf_for_each(scx_dsq, p, queue, 0) {
		struct cosched_task *task = task_of(p);
		u64 waits = task && task->queued_at && now > task->queued_at ? now - task->queued_at : 0;
		u64 lag = greatest > p->scx.dsq_vtime ? greatest - p->scx.dsq_vtime : 0;
		bool is_first = looks == 0;

		if (looks++ >= LOOKS)
			break;
		if (waits > longest.waits && starves(waits, lag, is_first, local, global)) {
			u32 to = cpu_for(p->pid, cpu, p->pid == starved.pid ? longest.in_vain : COSCHED_NONE);

			if (to == COSCHED_NONE)
				continue;
			longest.cpu = to;
			longest.waits = waits;
			longest.lag = lag;
			longest.queue = queue;
			longest.class = class_of(slot_in(task));
			longest.pid = p->pid;
		}
	}
	bpf_rcu_read_unlock();
	return 0;
}

/* Calls a CPU for the longest starved process of the machine. */
__noinline int look_for_starved(u64 now)
{
	u64 global, running = READ_ONCE(nothing), waiting = READ_ONCE(nothing);
	u32 cpu, state = starved.state;

	if (state == RUNS && now < starved.until + PATIENCE)
		return 0;
	if (state == CALLED && now < starved.until)
		return 0;
	longest.in_vain = state == CALLED ? starved.cpu : COSCHED_NONE;
	if (!starved_becomes(state, NOBODY))
		return 0;
	EACH(cpu, config.cpus) {
		if (cpu >= COSCHED_CPUS)
			break;
		running += words[AT(cpu)] != 0;
		waiting += scx_bpf_dsq_nr_queued(cpu);
	}
	if (!waiting)
		return 0;
	global = efs.c_global * period(running + waiting);
	longest.waits = 0;
	EACH(cpu, config.cpus) {
		/* Who is bound to a CPU that is not the run's needs no call. */
		if (cpu < COSCHED_CPUS && efs.is_ours[cpu] && scx_bpf_dsq_nr_queued(cpu) > 0)
			look_in(cpu, now, global);
	}
	if (!longest.waits)
		return 0;
	cpu = longest.cpu;
	starved.pid = longest.pid;
	starved.queue = longest.queue;
	starved.cpu = cpu;
	starved.lag = longest.lag;
	starved.class = longest.class;
	starved.until = now + PATIENCE;
	starved_becomes(NOBODY, CALLED);
	call_busy(cpu);
	scx_bpf_kick_cpu(cpu, SCX_KICK_PREEMPT);
	return 0;
}

#endif
