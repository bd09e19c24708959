/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Where the time of each slot goes: with a CPU, beside whom, and awake without one.
 *
 * Which slot has a CPU changes when a process of another one begins there, or the CPU becomes idle or is taken by another
 * class of the scheduler. While processes of the same slot follow each other nothing changes and nothing is written. All
 * changes are made under one lock, so that each time is counted once. Two slots are beside each other until the first of both
 * loses its last CPU: then the time since the later of both began is added.
 */
#ifndef COSCHED_PRESENCE_H
#define COSCHED_PRESENCE_H

#include "common.h"

/* Always zero, which the verifier does not know: it would follow a loop that begins with a known number turn by turn. */
u32 nothing;

struct presence {
	u64 since;
	u64 on_cpu;
	u64 shared_since;
	u64 shared;
	u64 last_on;
	/* CPUs that it has, and those of them beside another slot's. */
	u32 cpus;
	u32 beside_others;
	/* Its place in the list of slots that have a CPU. */
	u32 place;
	u32 unused;
};

struct cpu {
	/* When its last process stopped. */
	u64 stopped_at;
	u32 slot;
	u32 is_idle;
	/* Its last process. */
	s32 pid;
	u32 unused;
};

/* libbpf wants a lock in a section of its own, and hidden from user space. */
struct bpf_spin_lock book SEC(".data.book") __hidden __attribute__((aligned(8)));
struct presence presences[COSCHED_SLOTS];
u64 beside[COSCHED_SLOTS][COSCHED_SLOTS];
/* The slots that have a CPU, in no order. */
u32 present[COSCHED_CPUS];
u32 nr_present;
struct cpu cpus[COSCHED_CPUS];

/* Awake time. The sum of the times at which it slept less those at which it woke needs no lock: while it is awake, that and
 * the present time are what it was awake for. */
struct awake {
	s64 sum;
	u64 threads;
	/* When it woke last. */
	u64 woke_at;
};
struct awake awake[COSCHED_SLOTS];

static __always_inline void woke(u32 slot, u64 now)
{
	if (slot < COSCHED_SLOTS && __sync_fetch_and_add(&awake[slot].threads, 1) == 0) {
		__sync_fetch_and_add(&awake[slot].sum, -(s64)now);
		awake[slot].woke_at = now;
	}
}

static __always_inline void slept(u32 slot, u64 now)
{
	if (slot < COSCHED_SLOTS && __sync_fetch_and_add(&awake[slot].threads, -1ULL) == 1)
		__sync_fetch_and_add(&awake[slot].sum, now);
}

/* Brings what a slot has met up to a time, and goes on from there. The lock is held. */
static __always_inline void bring_up(u32 slot, u64 at)
{
	struct presence *own = &presences[slot & (COSCHED_SLOTS - 1)];
	u32 i;

	slot &= COSCHED_SLOTS - 1;
	for (i = READ_ONCE(nothing); i < nr_present && MAY_GO_ON; i++) {
		u32 other = present[BELOW(i, COSCHED_CPUS)] & (COSCHED_SLOTS - 1);
		u64 since = presences[other].since;

		if (other == slot)
			continue;
		if (since < own->since)
			since = own->since;
		if (at > since) {
			beside[slot][other] += at - since;
			beside[other][slot] += at - since;
		}
	}
	if (at > own->since) {
		own->on_cpu += at - own->since;
		own->since = at;
	}
	if (own->beside_others && at > own->shared_since) {
		own->shared += at - own->shared_since;
		own->shared_since = at;
	}
	own->last_on = at;
}

/* Counts for each slot on a core whether it has another one beside it. `step` is -1 before a change and 1 after it. */
static __always_inline void note_core(u32 cpu, s32 step, u64 at)
{
	u32 i, k;

	for (i = READ_ONCE(nothing); i < COSCHED_SIBLINGS && MAY_GO_ON; i++) {
		u32 here = config.siblings[BELOW(cpu, COSCHED_CPUS)][BELOW(i, COSCHED_SIBLINGS)], slot;
		bool others = false;

		if (here >= COSCHED_CPUS)
			break;
		slot = cpus[here].slot;
		if (slot >= COSCHED_SLOTS)
			continue;
		for (k = READ_ONCE(nothing); k < COSCHED_SIBLINGS && MAY_GO_ON; k++) {
			u32 there = config.siblings[BELOW(cpu, COSCHED_CPUS)][BELOW(k, COSCHED_SIBLINGS)];

			if (there >= COSCHED_CPUS)
				break;
			others |= cpus[there].slot < COSCHED_SLOTS && cpus[there].slot != slot;
		}
		if (others) {
			struct presence *own = &presences[slot];

			if (own->beside_others == 0 && step > 0)
				own->shared_since = at;
			if (own->beside_others == 1 && step < 0 && at > own->shared_since)
				own->shared += at - own->shared_since;
			own->beside_others += step;
		}
	}
}

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct cosched_occupation);
} occupation SEC(".maps");

/* Which CPU went to which slot. Nobody is called for it: user space looks once a second at the latest. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20);
} switches SEC(".maps");
/* So that its shape is in the type information. */
struct cosched_switch *shape_of_switch;

/* A CPU goes from the slot that has it to another one, or to none. */
static __always_inline void change(u32 cpu, u32 to, u64 at)
{
	struct cosched_switch told = { .at = at, .cpu = cpu, .slot = to };
	u32 from, last, zero = 0;
	struct cosched_occupation *all = bpf_map_lookup_elem(&occupation, &zero);

	if (cpu >= COSCHED_CPUS || !all)
		return;
	bpf_spin_lock(&book);
	note_core(cpu, -1, at);
	from = cpus[cpu].slot;
	if (from < COSCHED_SLOTS) {
		struct presence *own = &presences[from];

		if (own->cpus == 1) {
			bring_up(from, at);
			last = nr_present - 1;
			if (last < COSCHED_CPUS && own->place < COSCHED_CPUS) {
				present[own->place] = present[last];
				presences[present[last] & (COSCHED_SLOTS - 1)].place = own->place;
				nr_present = last;
			}
		}
		if (own->cpus)
			own->cpus--;
	}
	cpus[cpu].slot = to;
	if (to < COSCHED_SLOTS) {
		struct presence *own = &presences[to];

		if (own->cpus++ == 0 && nr_present < COSCHED_CPUS) {
			u64 since = own->last_on > awake[to].woke_at ? own->last_on : awake[to].woke_at;

			if (since && at > since && at - since > all->longest)
				all->longest = at - since;
			own->since = at;
			own->place = nr_present;
			present[nr_present++] = to;
		}
	}
	note_core(cpu, 1, at);
	if (all->begun && at > all->since) {
		u32 count = all->now < COSCHED_AT_ONCE ? all->now : COSCHED_AT_ONCE - 1;

		all->times[count] += at - all->since;
	}
	if (at > all->since)
		all->since = at;
	all->begun |= to < COSCHED_SLOTS;
	all->now = nr_present;
	bpf_spin_unlock(&book);
	if (bpf_ringbuf_output(&switches, &told, sizeof(told), BPF_RB_NO_WAKEUP))
		__sync_fetch_and_add(&all->lost, 1);
}

/* For how long a slot has been awake and without a CPU. */
static __always_inline u64 waits_for(u32 slot, u64 now)
{
	u32 at = BELOW(slot, COSCHED_SLOTS);
	u64 since = presences[at].last_on;

	if (presences[at].cpus || !awake[at].threads)
		return 0;
	if (since < awake[at].woke_at)
		since = awake[at].woke_at;
	return now > since ? now - since : 0;
}

/* What a slot has used up to now goes into the answer, and is forgotten if `forget` is set. */
static __always_inline void tell_residency(u32 slot, bool forget, struct cosched_residency *out)
{
	u64 now = bpf_ktime_get_ns();
	struct presence *own;
	u32 i;

	if (slot >= COSCHED_SLOTS)
		return;
	own = &presences[slot];
	bpf_spin_lock(&book);
	if (own->cpus)
		bring_up(slot, now);
	out->on_cpu = own->on_cpu;
	out->shared = own->shared;
	out->last_on_cpu = own->last_on;
	if (forget)
		own->on_cpu = own->shared = own->last_on = 0;
	bpf_spin_unlock(&book);
	out->at = now;
	EACH(i, config.slots) {
		u32 other = BELOW(i, COSCHED_SLOTS);

		out->beside[other] = beside[slot][other];
		if (forget)
			beside[slot][other] = beside[other][slot] = 0;
	}
	/* Two threads that change at once may be between their two steps: a time that has begun is below zero, another is not. */
	for (i = READ_ONCE(nothing); i < 100 && MAY_GO_ON; i++) {
		u64 threads = READ_ONCE(awake[slot].threads);
		s64 sum = READ_ONCE(awake[slot].sum);

		if ((sum < 0) != (threads > 0) || READ_ONCE(awake[slot].threads) != threads)
			continue;
		out->awake = threads ? sum + now : sum;
		break;
	}
	if (forget)
		/* A process of the one before that has not slept yet still will. */
		awake[slot].sum = awake[slot].threads ? -(s64)now : 0;
}

#endif
