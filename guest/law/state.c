// SPDX-License-Identifier: GPL-2.0-only
/*
 * The state of all CPUs. Between two changes every CPU has constant rates, so its sums are exact. A change is a switch
 * of threads, or that a thread comes to the end of a phase. Sums are kept as of the last change: a read costs little.
 */
#include <linux/math64.h>
#include <linux/sched/clock.h>
#include <linux/string.h>
#include "law.h"

struct cpu {
	/* Instructions until the phase ends, as a sum; unused if it does not. */
	sum_t left;
	sum_t sums[EVENTS];
	/* The part of the sums that faults hide from the counters. */
	sum_t hidden[EVENTS_OF_PMU];
	/* The sums when they were last taken. */
	sum_t taken[EVENTS];
};

DEFINE_RAW_SPINLOCK(state_lock);
static struct cpu cpus[MAX_CPUS];
static u8 phase_of_cpu[MAX_CPUS];
static struct rates rates[MAX_CPUS];
static u64 power;
static sum_t energy;
/* When the sums were last brought up to date. */
static u64 since;
static u64 now;
/* When the first phase ends. */
static u64 next_end;
/* Whether the phases have changed since the rates were solved. */
static bool stale = true;

/* Solutions, by the phases of the CPUs. The same threads run together again and again. */
#define SOLUTIONS 256
static struct solution {
	u8 phases[MAX_CPUS];
	u8 valid;
	u64 power;
	struct rates rates[MAX_CPUS];
} solutions[SOLUTIONS];

static struct solution *solution_for(const u8 *phases)
{
	u64 hash = 14695981039346656037ULL;
	int cpu;

	for (cpu = 0; cpu < MAX_CPUS; cpu++)
		hash = (hash ^ phases[cpu]) * 1099511628211ULL;
	return &solutions[(hash >> 20) % SOLUTIONS];
}

static void solve_now(void)
{
	struct solution *solution = solution_for(phase_of_cpu);

	if (!solution->valid || memcmp(solution->phases, phase_of_cpu, sizeof(phase_of_cpu))) {
		memcpy(solution->phases, phase_of_cpu, sizeof(phase_of_cpu));
		solution->power = solve(phase_of_cpu, solution->rates);
		solution->valid = 1;
	}
	memcpy(rates, solution->rates, sizeof(rates));
	power = solution->power;
	stale = false;
}

static sum_t since_then(int cpu, enum event event)
{
	return (sum_t)rates[cpu].of[event] * (now - since);
}

static bool is_hidden(enum event event)
{
	return dead == 2 || (zeros & (1u << event));
}

static bool ends(int cpu)
{
	return phases[phase_of_cpu[cpu]].length && rates[cpu].of[INSTRUCTIONS];
}

static void bring_up_to_date(int cpu)
{
	struct cpu *c = &cpus[cpu];
	enum event event;

	for (event = 0; event < EVENTS; event++) {
		c->sums[event] += since_then(cpu, event);
		if (event < EVENTS_OF_PMU && is_hidden(event))
			c->hidden[event] += since_then(cpu, event);
	}
	if (ends(cpu))
		c->left -= min(c->left, since_then(cpu, INSTRUCTIONS));
}

/* Brings all sums up to date: the rates are about to change. */
static void fold(void)
{
	int cpu;

	if (since == now)
		return;
	for (cpu = 0; cpu < MAX_CPUS; cpu++)
		if (rates[cpu].of[BUSY])
			bring_up_to_date(cpu);
	energy += (sum_t)power * (now - since);
	since = now;
}

/* Nanoseconds in which so many instructions are done, rounded up. */
static u64 time_for(sum_t instructions, u64 rate)
{
	/* A phase of less than 2^31 instructions, as a sum, fits in 63 bits. */
	return div64_u64((u64)instructions + rate - 1, rate);
}

static void next_phases(void)
{
	int cpu;

	for (cpu = 0; cpu < MAX_CPUS; cpu++) {
		if (!ends(cpu) || cpus[cpu].left)
			continue;
		phase_of_cpu[cpu] = phases[phase_of_cpu[cpu]].next;
		cpus[cpu].left = (sum_t)phases[phase_of_cpu[cpu]].length << RATE_BITS;
		stale = true;
	}
}

static void refresh(void)
{
	int cpu;

	solve_now();
	next_end = U64_MAX;
	for (cpu = 0; cpu < MAX_CPUS; cpu++)
		if (ends(cpu))
			next_end = min(next_end, now + time_for(cpus[cpu].left, rates[cpu].of[INSTRUCTIONS]));
}

void advance(void)
{
	u64 to = local_clock();

	/* Clocks of CPUs may differ a little. */
	if (to <= now)
		return;
	if (stale)
		refresh();
	while (next_end <= to) {
		now = next_end;
		fold();
		next_phases();
		refresh();
	}
	now = to;
}

u64 state_now(void)
{
	return now;
}

void set_phase(int cpu, u8 phase, u64 left)
{
	fold();
	phase_of_cpu[cpu] = phase;
	cpus[cpu].left = (sum_t)left << RATE_BITS;
	stale = true;
}

void get_phase(int cpu, u8 *phase, u64 *left)
{
	fold();
	*phase = phase_of_cpu[cpu];
	*left = (u64)(cpus[cpu].left >> RATE_BITS);
}

void take_sums(int cpu, sum_t sums[EVENTS])
{
	enum event event;

	for (event = 0; event < EVENTS; event++) {
		sum_t sum = cpus[cpu].sums[event] + since_then(cpu, event);

		sums[event] = sum - cpus[cpu].taken[event];
		cpus[cpu].taken[event] = sum;
	}
}

u64 time_of(int cpu, u64 instructions)
{
	u64 rate;

	if (stale)
		refresh();
	rate = rates[cpu].of[INSTRUCTIONS];
	if (!rate || instructions >> 31)
		return U64_MAX;
	return time_for((sum_t)instructions << RATE_BITS, rate);
}

u64 counted(int cpu, enum event event)
{
	return (u64)((cpus[cpu].sums[event] + since_then(cpu, event)) >> RATE_BITS);
}

u64 shown(int cpu, enum event event)
{
	sum_t sum = cpus[cpu].sums[event] - cpus[cpu].hidden[event];

	if (!is_hidden(event))
		sum += since_then(cpu, event);
	return (u64)(sum >> RATE_BITS);
}

u64 energy_nj(void)
{
	return (u64)((energy + (sum_t)power * (now - since)) >> RATE_BITS);
}

void changed_rules(void)
{
	memset(solutions, 0, sizeof(solutions));
	stale = true;
}

void freeze_sums(void)
{
	advance();
	fold();
}

int start_state(void)
{
	solve_alone();
	since = now = local_clock();
	return 0;
}
