// SPDX-License-Identifier: GPL-2.0-only
/*
 * The state of all CPUs. Between two changes every CPU has constant rates, so its sums are exact. A change is a switch
 * of threads, or that a thread comes to the end of a phase.
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
static u64 now;
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

static bool ends(int cpu)
{
	return phases[phase_of_cpu[cpu]].length && rates[cpu].of[INSTRUCTIONS];
}

/* Nanoseconds in which so many instructions are done, rounded up. */
static u64 time_for(sum_t instructions, u64 rate)
{
	/* A phase of less than 2^31 instructions, as a sum, fits in 63 bits. */
	return div64_u64((u64)instructions + rate - 1, rate);
}

/* The time until the first phase ends, but at most this. */
static u64 time_to_end(u64 most)
{
	int cpu;

	for (cpu = 0; cpu < MAX_CPUS; cpu++)
		if (ends(cpu))
			most = min(most, time_for(cpus[cpu].left, rates[cpu].of[INSTRUCTIONS]));
	return most;
}

static bool is_hidden(enum event event)
{
	return dead == 2 || (zeros & (1u << event));
}

static void add(int cpu, u64 time)
{
	struct cpu *c = &cpus[cpu];
	enum event event;

	for (event = 0; event < EVENTS; event++) {
		sum_t more = (sum_t)rates[cpu].of[event] * time;

		c->sums[event] += more;
		if (event < EVENTS_OF_PMU && is_hidden(event))
			c->hidden[event] += more;
	}
	if (ends(cpu)) {
		sum_t done = (sum_t)rates[cpu].of[INSTRUCTIONS] * time;

		c->left = done < c->left ? c->left - done : 0;
	}
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

void advance(void)
{
	u64 to = local_clock();

	if (to <= now)
		return;
	while (now < to) {
		u64 time;
		int cpu;

		if (stale)
			solve_now();
		time = time_to_end(to - now);
		for (cpu = 0; cpu < MAX_CPUS; cpu++)
			if (phase_of_cpu[cpu] != IDLE)
				add(cpu, time);
		energy += (sum_t)power * time;
		now += time;
		next_phases();
	}
}

u64 state_now(void)
{
	return now;
}

void set_phase(int cpu, u8 phase, u64 left)
{
	stale = stale || phase_of_cpu[cpu] != phase;
	phase_of_cpu[cpu] = phase;
	cpus[cpu].left = (sum_t)left << RATE_BITS;
}

void get_phase(int cpu, u8 *phase, u64 *left)
{
	*phase = phase_of_cpu[cpu];
	*left = (u64)(cpus[cpu].left >> RATE_BITS);
}

void take_sums(int cpu, sum_t sums[EVENTS])
{
	enum event event;

	for (event = 0; event < EVENTS; event++) {
		sums[event] = cpus[cpu].sums[event] - cpus[cpu].taken[event];
		cpus[cpu].taken[event] = cpus[cpu].sums[event];
	}
}

u64 time_of(int cpu, u64 instructions)
{
	u64 rate;

	if (stale)
		solve_now();
	rate = rates[cpu].of[INSTRUCTIONS];
	if (!rate || instructions >> 31)
		return U64_MAX;
	return time_for((sum_t)instructions << RATE_BITS, rate);
}

u64 counted(int cpu, enum event event)
{
	return (u64)(cpus[cpu].sums[event] >> RATE_BITS);
}

u64 shown(int cpu, enum event event)
{
	return (u64)((cpus[cpu].sums[event] - cpus[cpu].hidden[event]) >> RATE_BITS);
}

u64 energy_nj(void)
{
	return (u64)(energy >> RATE_BITS);
}

void changed_rules(void)
{
	memset(solutions, 0, sizeof(solutions));
	stale = true;
}

int start_state(void)
{
	solve_alone();
	now = local_clock();
	return 0;
}
