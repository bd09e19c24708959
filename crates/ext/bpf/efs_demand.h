/* SPDX-License-Identifier: GPL-2.0-only */
/* Demands as they are measured (Eqs. 9 and 20). */
#ifndef COSCHED_EFS_DEMAND_H
#define COSCHED_EFS_DEMAND_H

#include "efs_load.h"

/* What each slot was last measured at. */
struct demand {
	/* Its predicted solo utilisation, in units of 2^-31. */
	u32 predicted;
	/* What it used, in units of 2^-12. */
	u32 used;
	/* Turns that are too short to tell something are put together: their time, and the lines that were moved. */
	u64 span;
	u64 lines;
};
struct demand slot_demands[COSCHED_SLOTS];
/* What is used on each CPU, as far as it is known, and in each memory domain, in units of 2^-12. */
u32 used_on[COSCHED_CPUS];
u32 used_in[COSCHED_DOMAINS];

/* Nothing is told by less time on a CPU. */
#define SHORTEST (200 * 1000ULL)
/* The least free share of the bus that can be told, as in user space: 1/1024. */
#define LEAST_FREE 4U

static __always_inline void set_used(u32 cpu, u32 used)
{
	u32 before = used_on[AT(cpu)];

	if (before == used)
		return;
	used_on[AT(cpu)] = used;
	__sync_fetch_and_add(&used_in[BELOW(domain_of(cpu), COSCHED_DOMAINS)], used - before);
}

/*
 * What a slot would use of the bus alone, from what it used beside the others (Eq. 9), and from that what it will use (Eq. 20). The
 * others use what they used when they were last measured, at most a tick ago.
 */
static __always_inline void has_moved(u32 cpu, u32 who, u64 span, u64 lines, u32 next)
{
	struct cosched_tables *all = known();
	u32 slot = BELOW(who - 1, COSCHED_SLOTS), after = BELOW(next - 1, COSCHED_SLOTS), zero = 0, share, total, left, demand;
	struct cosched_measured *told_ = bpf_map_lookup_elem(&measured, &zero);
	u64 busy, unused;
	int class;

	if (!efs.line_time || !told_)
		return;
	if (who && span) {
		span += slot_demands[slot].span;
		lines += slot_demands[slot].lines;
		slot_demands[slot].span = span < SHORTEST ? span : 0;
		slot_demands[slot].lines = span < SHORTEST ? lines : 0;
	}
	if (who && span >= SHORTEST) {
		busy = lines * efs.line_time >> 20;
		share = bus_fraction(busy, span);
		set_used(cpu, share);
		slot_demands[slot].used = share;
		total = used_in[BELOW(domain_of(cpu), COSCHED_DOMAINS)];
		left = total + LEAST_FREE < (1U << BUS_FRACTION) ? (1U << BUS_FRACTION) - total : LEAST_FREE;
		unused = (span * left >> BUS_FRACTION) + 1;
		class = 0;
		/* u (u + d) / d, with times in place of shares. */
		if (busy)
			class = bus_class_at(bus_log(all, busy) + bus_log(all, busy + unused) - bus_log(all, unused) -
					     bus_log(all, span));
		demand = all->demand[class < BUS_CLASSES ? class : BUS_HIGHEST];
		if (told_->word[slot] && span < 1 << 20) {
			demand = bus_predict(slot_demands[slot].predicted, demand, span);
			class = bus_class_of_share(all, demand);
		}
		slot_demands[slot].predicted = demand;
		told_->word[slot] = class + 1;
	}
	if (who != next)
		set_used(cpu, next ? slot_demands[after].used : 0);
}

static __always_inline void forget_slot(u32 slot)
{
	u32 zero = 0, at = BELOW(slot, COSCHED_SLOTS);
	struct cosched_measured *told_ = bpf_map_lookup_elem(&measured, &zero);

	if (told_)
		told_->word[at] = 0;
	slot_demands[at].used = slot_demands[at].span = slot_demands[at].lines = 0;
}

/* What runs on is measured at each tick of the clock. */
SEC("fentry/sched_tick")
int BPF_PROG(cosched_on_tick)
{
	u32 who = countings[BELOW(bpf_get_smp_processor_id(), COSCHED_CPUS)].who;

	if (who)
		count_for(who);
	return 0;
}

#endif
