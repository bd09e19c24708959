/* SPDX-License-Identifier: GPL-2.0-only */
/* Demands as they are measured (Eqs. 9 and 18 to 20). */
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

/* Written by user space. */
struct cosched_traffic traffic SEC(".data.traffic") = {};
/* The lines that were counted for jobs in each memory domain. User space reads them. */
u64 counted_in[COSCHED_DOMAINS] SEC(".data.counted") = {};

/* Nothing is told by less time on a CPU. */
#define SHORTEST (200 * 1000ULL)

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
 * others use what they used when they were last measured, at most a tick ago; other programs, what they used in the last quantum.
 */
static __always_inline void has_moved(u32 cpu, u32 who, u64 span, u64 lines, u32 next)
{
	struct cosched_tables *all = known();
	u32 slot = BELOW(who - 1, COSCHED_SLOTS), after = BELOW(next - 1, COSCHED_SLOTS), zero = 0, share, demand;
	u32 domain = BELOW(domain_of(cpu), COSCHED_DOMAINS);
	struct cosched_measured *told_ = bpf_map_lookup_elem(&measured, &zero);
	u64 busy, line_time = traffic.line_time[domain];
	int class;

	if (!line_time || !told_)
		return;
	if (who && span) {
		__sync_fetch_and_add(&counted_in[domain], lines);
		span += slot_demands[slot].span;
		lines += slot_demands[slot].lines;
		slot_demands[slot].span = span < SHORTEST ? span : 0;
		slot_demands[slot].lines = span < SHORTEST ? lines : 0;
	}
	if (who && span >= SHORTEST) {
		busy = bus_busy(lines, line_time);
		share = bus_fraction(busy, span);
		set_used(cpu, share);
		slot_demands[slot].used = share;
		class = bus_solo(all, busy, span, used_in[domain] + traffic.others[domain]);
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
