/* SPDX-License-Identifier: GPL-2.0-only */
/* The memory bus: what runs on each CPU, what still fits beside it, and who is called when that changes. */
#ifndef COSCHED_EFS_LOAD_H
#define COSCHED_EFS_LOAD_H

#include "shared.h"
/* See bus.h. */
#define BUS_UNKNOWN READ_ONCE(nothing)
#include "bus.h"
#include "rules.h"

/* So many of a queue are looked at. */
#define LOOKS 64
/* A CPU's place in an array. */
#define AT(cpu) BELOW(cpu, COSCHED_CPUS)
/* As it is: a gain of one. And what one more must bring at the least: a hundredth of what it does alone. */
#define NO_GAIN (1U << 20)
#define LEAST_WORK (BUS_ONE / 100)

const volatile struct cosched_tables tables SEC(".rodata.tables") = {};
const volatile struct cosched_efs efs SEC(".rodata.efs") = {};

/* The tables. The compiler must not take them for the zeros that stand here. */
static __always_inline struct cosched_tables *known(void)
{
	struct cosched_tables *all = (struct cosched_tables *)&tables;

	asm volatile("" : "+r"(all));
	return all;
}

/* The demands of slots, and what the throughput must grow by. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct cosched_demands);
} demands SEC(".maps");

struct domain {
	struct bpf_spin_lock lock;
	/* Changes so far. */
	u32 version;
	/* Cores with a process of the batch. */
	u32 active;
	u32 unused;
	struct cosched_bus bus;
};
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, COSCHED_DOMAINS);
	__type(key, u32);
	__type(value, struct domain);
} domains SEC(".maps");

/* What a CPU sees when it decides. */
struct view {
	u32 version;
	u32 active;
	/* What runs on the CPU itself, and whether anything runs on the others of its core. */
	u32 own;
	u32 is_awake;
	/* The highest class that fits beside them. */
	int ceiling;
	u32 unused;
	/* Of the first of a queue that fits: since when it waits, and its virtual time. And the longest such wait that was found. */
	u64 first_since;
	u64 first_vtime;
	u64 longest;
	struct cosched_bus bus;
};
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, COSCHED_CPUS);
	__type(key, u32);
	__type(value, struct view);
} views SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct cosched_measured);
} measured SEC(".maps");

/* Who runs on each CPU: its class and one, or 0 for nobody of the batch. Changed under the lock of the CPU's domain. */
u32 words[COSCHED_CPUS];

/* Whether the bus decides; otherwise all run as they come. */
u32 in_force;

struct queue {
	/* Virtual time: that of the process that began last. */
	u64 vtime;
	/* The least class of those in it, and one; 0 if that is not known. A CPU beside which not even this fits need not look at
	 * them (the paper's rule for idle CPUs). One that is too great, since two came at once or a demand fell, holds until the next
	 * tick. */
	u32 least;
	u32 unused;
};
struct queue queues[COSCHED_CPUS];
u64 others_vtime;

/* The starved process of the machine: at most one has a slice of its own. */
enum { NOBODY, CALLED, RUNS };
struct starved {
	/* When its slice is over, or when it must run by. */
	u64 until;
	u64 lag;
	u32 state;
	s32 pid;
	/* The CPU that is called for it, and the one in whose queue it stands. */
	u32 cpu;
	u32 queue;
	u32 class;
	u32 unused;
};
struct starved starved;

static __always_inline struct cosched_demands *told(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&demands, &zero);
}

/* Virtual time for a time with a CPU: less for those of greater weight. */
static __always_inline u64 charged(const struct cosched_task *task, u64 used)
{
	return task && task->inverse ? used * task->inverse >> 16 : used;
}

static __always_inline u32 domain_of(u32 cpu)
{
	return BELOW(efs.domain[BELOW(cpu, COSCHED_CPUS)], COSCHED_DOMAINS);
}

/* The class of a slot's demand: what was measured, else what was told. */
static __always_inline u32 class_of(u32 slot)
{
	struct cosched_demands *all = told();
	struct cosched_measured *own;
	u32 zero = 0, word;

	if (!all || slot >= COSCHED_SLOTS)
		return 0;
	own = bpf_map_lookup_elem(&measured, &zero);
	word = own ? own->word[BELOW(slot, COSCHED_SLOTS)] : 0;
	return word ? word - 1 : all->class[BELOW(slot, COSCHED_SLOTS)];
}

/* The part of the period that each of so many has, by its weight on average. */
static __always_inline u64 slice_of(u64 tasks)
{
	if (tasks >= MANY)
		return PERIOD_OF_EACH;
	if (tasks == 4)
		return PERIOD / 4;
	if (tasks == 3)
		return PERIOD / 3;
	return tasks == 2 ? PERIOD / 2 : PERIOD;
}

/*
 * The highest class that fits on a CPU beside what runs on the others, BUS_NOTHING if none does. What it saw stays in the
 * CPU's view.
 */
__noinline int threshold(u32 cpu)
{
	struct cosched_tables *all = known();
	u32 d = domain_of(cpu), at = BELOW(cpu, COSCHED_CPUS), i, active, gain, count;
	u64 least;
	struct cosched_demands *wanted = told();
	struct domain *domain;
	struct view *view;

	domain = bpf_map_lookup_elem(&domains, &d);
	view = bpf_map_lookup_elem(&views, &at);
	if (!domain || !view || !wanted)
		return BUS_NOTHING;
	bpf_spin_lock(&domain->lock);
	view->version = domain->version;
	view->active = domain->active;
	view->bus.tasks = domain->bus.tasks;
	view->bus.undisturbed = domain->bus.undisturbed;
	/* Unrolled: the compiler lets a loop count up from a negative place, which Linux 7.3 does not follow. */
#pragma clang loop unroll(full)
	for (i = 0; i < BUS_POINTS; i++) {
		view->bus.busy[i] = domain->bus.busy[i];
		view->bus.computing[i] = domain->bus.computing[i];
	}
	view->own = words[AT(at)];
	view->is_awake = 0;
	for (i = READ_ONCE(nothing); i < COSCHED_SIBLINGS && MAY_GO_ON; i++) {
		u32 here = config.siblings[AT(at)][BELOW(i, COSCHED_SIBLINGS)];

		if (here < COSCHED_CPUS && here != at)
			view->is_awake |= words[here] != 0;
	}
	bpf_spin_unlock(&domain->lock);

	if (view->own)
		bus_remove(all, &view->bus, view->own - 1);
	active = view->active - (view->own && !view->is_awake);
	/* Who was called comes in any case. */
	if (starved.state == CALLED && starved.cpu != cpu && domain_of(starved.cpu) == d) {
		bus_add(all, &view->bus, starved.class);
		active += !words[AT(starved.cpu)];
	}
	count = wanted->nr_gains;
	gain = NO_GAIN;
	if (active && count)
		gain = wanted->gains[BELOW(active <= count ? active - 1 : count - 1, COSCHED_CPUS)];
	/* Where energy does not count, a task need not bring anything. */
	least = gain > NO_GAIN ? LEAST_WORK : 0;
	if (view->is_awake && gain > NO_GAIN)
		gain = NO_GAIN;
	return bus_ceiling(all, &view->bus, gain, least);
}

/* Notes who runs on a CPU: its class and one, or 0. With `only_if`, only if the load has still this version; says whether it
 * did. Like the other functions without `static` it is verified once, and not at each call. */
__noinline int seat(u32 cpu, u32 word, u32 only_if, u32 seen)
{
	struct cosched_tables *all = known();
	u32 d = domain_of(cpu), at = BELOW(cpu, COSCHED_CPUS), old, i;
	bool others = false;
	struct domain *domain = bpf_map_lookup_elem(&domains, &d);

	if (!domain)
		return false;
	bpf_spin_lock(&domain->lock);
	old = words[AT(at)];
	if (only_if && domain->version != seen && old != word) {
		bpf_spin_unlock(&domain->lock);
		return false;
	}
	if (old != word) {
		if (old)
			bus_remove(all, &domain->bus, old - 1);
		if (word)
			bus_add(all, &domain->bus, word - 1);
		for (i = READ_ONCE(nothing); i < COSCHED_SIBLINGS && MAY_GO_ON; i++) {
			u32 here = config.siblings[AT(at)][BELOW(i, COSCHED_SIBLINGS)];

			if (here < COSCHED_CPUS && here != at)
				others |= words[here] != 0;
		}
		if (!others)
			domain->active += !!word - !!old;
		words[AT(at)] = word;
		domain->version++;
	}
	bpf_spin_unlock(&domain->lock);
	return true;
}

/* Idle CPUs look again if somebody waits: all of them, or those that have somebody in their own queue and the first one of each
 * memory domain. */
__noinline int call_idle(u32 all)
{
	u64 seen = 0;
	u32 cpu, waits = READ_ONCE(nothing);

	EACH(cpu, config.cpus) {
		if (cpu < COSCHED_CPUS && scx_bpf_dsq_nr_queued(cpu) > 0) {
			waits = 1;
			break;
		}
	}
	if (!waits)
		return 0;
	EACH(cpu, config.cpus) {
		u64 domain;

		if (cpu >= COSCHED_CPUS)
			break;
		if (!cpus[cpu].is_idle || !efs.is_ours[cpu])
			continue;
		domain = 1ULL << domain_of(cpu);
		if (all || !(seen & domain) || scx_bpf_dsq_nr_queued(cpu) > 0)
			scx_bpf_kick_cpu(cpu, SCX_KICK_IDLE);
		seen |= domain;
	}
	return 0;
}

static __always_inline void nobody(u32 cpu)
{
	if (words[BELOW(cpu, COSCHED_CPUS)]) {
		seat(cpu, 0, false, 0);
		call_idle(false);
	}
}

#endif
