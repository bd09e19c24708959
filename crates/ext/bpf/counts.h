/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the hardware counts for each slot.
 *
 * The events count whatever runs on a CPU, in user mode. They are read on the CPU itself when it goes from a process of one slot to
 * one of another or of none: what was counted meanwhile is the first one's. So no CPU is interrupted to be read, but for a slot
 * that has a CPU while user space asks for it. A process counts from the moment in which it becomes its program, and so
 * does what it starts.
 */
#ifndef COSCHED_COUNTS_H
#define COSCHED_COUNTS_H

#include "common.h"

/* The event of a counter on a CPU has the number counter x COSCHED_CPUS + CPU. */
struct {
	__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
	__uint(max_entries, COSCHED_COUNTERS * COSCHED_CPUS);
	__uint(key_size, sizeof(u32));
	__uint(value_size, sizeof(u32));
} events SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, COSCHED_SLOTS);
	__type(key, u32);
	__type(value, struct cosched_total);
} totals SEC(".maps");

/* What a CPU counts for whom, and what its events had counted before. */
struct counting {
	u64 at;
	/* The slot and one; 0 for nobody. */
	u32 who;
	u32 unused;
	/* An event that could not be read was never enabled. */
	struct bpf_perf_event_value was[COSCHED_COUNTERS];
};
struct counting countings[COSCHED_CPUS];

/* A bit for each counter in use. */
u32 counters;

/* A CPU has had a slot for a time and moved so many lines of memory for it, and goes on for another one, or with the same. The time
 * is 0 where they were not counted. Each program has its own; slots are numbered from one here, and 0 is nobody. */
static __always_inline void has_moved(u32 cpu, u32 who, u64 span, u64 lines, u32 next);

/* What a process counts for: its slot and one; 0 if it does not count. */
static __always_inline u32 counts_for(struct task_struct *p)
{
	struct cosched_task *task = task_of(p);

	return task && task->counts && task->slot < COSCHED_SLOTS ? task->slot + 1 : 0;
}

/* Adds the events of a counter since the last reading. Answers how many there were, also while they were not counted; below 0 if
 * they never were. */
static __always_inline s64 add_count(struct cosched_total *total, u32 counter, const struct bpf_perf_event_value *was,
				     const struct bpf_perf_event_value *now, u64 span)
{
	struct cosched_count *count = &total->of[counter];
	u64 value = now->counter - was->counter, enabled = now->enabled - was->enabled, running = now->running - was->running;

	if (!was->enabled || !now->enabled) {
		__sync_fetch_and_add(&count->enabled, span);
		return -1;
	}
	__sync_fetch_and_add(&count->enabled, enabled);
	__sync_fetch_and_add(&count->running, running);
	__sync_fetch_and_add(&count->value, value);
	if (!running)
		return -1;
	/* Only where the kernel shares counters out in time. */
	if (running < enabled)
		value = value * enabled / running;
	return value;
}

/* Reads the events of this CPU, gives what they have counted to whom it belongs, and goes on for somebody. */
static __always_inline void count_for(u32 who)
{
	u32 cpu = BELOW(bpf_get_smp_processor_id(), COSCHED_CPUS), counter, slot;
	struct counting *own = &countings[cpu];
	u32 before = own->who;
	struct cosched_total *total;
	u64 now = bpf_ktime_get_ns(), lines = 0;
	bool moved_is_known = counters >> COSCHED_READS & 1;

	slot = before ? before - 1 : 0;
	total = bpf_map_lookup_elem(&totals, &slot);
	if (!total)
		return;
	for (counter = 0; counter < COSCHED_COUNTERS; counter++) {
		struct bpf_perf_event_value value = {};

		if (!(counters >> counter & 1))
			continue;
		if (bpf_perf_event_read_value(&events, counter * COSCHED_CPUS + cpu, &value, sizeof(value)))
			value.enabled = 0;
		if (before) {
			s64 count = add_count(total, counter, &own->was[counter], &value, now - own->at);

			if (counter == COSCHED_READS || counter == COSCHED_WRITES) {
				moved_is_known &= count >= 0;
				lines += count;
			}
		}
		own->was[counter] = value;
	}
	has_moved(cpu, before, moved_is_known ? now - own->at : 0, lines, who);
	own->at = now;
	own->who = who;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(cosched_on_switch, bool preempt, struct task_struct *prev, struct task_struct *next)
{
	u32 who = counts_for(next);

	if (countings[BELOW(bpf_get_smp_processor_id(), COSCHED_CPUS)].who != who)
		count_for(who);
	return 0;
}

/* The first process of a slot has become its program. */
SEC("tp_btf/sched_process_exec")
int BPF_PROG(cosched_on_exec, struct task_struct *p)
{
	struct cosched_task *task = task_of(p);

	if (task && !task->counts && task->slot < COSCHED_SLOTS) {
		task->counts = 1;
		count_for(task->slot + 1);
	}
	return 0;
}

/* While the scheduler is there its own program has done this already. */
SEC("tp_btf/sched_process_fork")
int BPF_PROG(cosched_on_fork, struct task_struct *parent, struct task_struct *child)
{
	inherit(child, true);
	return 0;
}

/* Brings what is counted on this CPU up to date: user space has it run on a CPU. */
SEC("raw_tp")
int cosched_count_here(void *ctx)
{
	u32 who = countings[BELOW(bpf_get_smp_processor_id(), COSCHED_CPUS)].who;

	if (who)
		count_for(who);
	return 0;
}

/* Tells in the span which counters are in use. */
SEC("syscall")
int cosched_use_counters(struct cosched_call *call_)
{
	counters = call_->span;
	return 0;
}

/* The first CPU, from the one in the answer on, that counts for a slot; COSCHED_NONE if there is none. */
SEC("syscall")
int cosched_where(struct cosched_call *call_)
{
	u32 cpu, who = call_->slot + 1, from = call_->answer;

	call_->answer = COSCHED_NONE;
	EACH(cpu, config.cpus) {
		if (cpu < COSCHED_CPUS && cpu >= from && countings[cpu].who == who) {
			call_->answer = cpu;
			break;
		}
	}
	return 0;
}

#endif
