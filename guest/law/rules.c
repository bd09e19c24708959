// SPDX-License-Identifier: GPL-2.0-only
/*
 * The laws of contention. Each has a common base, and one effect that it is named for:
 *
 *   bus    threads queue at the memory: a closed network of queues by mean value analysis (Schweitzer, 1979).
 *          Writes are posted, take longer than reads, and the bus loses time whenever it turns around.
 *   cache  threads share the last-level cache by their accesses, up to what each can use (water-filling). What a thread
 *          lacks of its working set misses, by a square. A full bus stretches the waits of all by one factor.
 *   smt    siblings take issue slots from each other by a product of squares, and halve the private caches, so that
 *          accesses to the last-level cache rise. The clock falls with the number of busy cores.
 *
 * The base: a sibling costs a fixed share of the core in `bus` and `cache`. Memory has a fixed latency in `cache`; in
 * `smt` the latency rises in proportion to the lines.
 */
#include <linux/math64.h>
#include <linux/string.h>
#include <linux/topology.h>
#include "law.h"

/* Fixed point within a law: 24 bits after the point. */
typedef s64 fixed;
#define POINT 24
#define ONE (1LL << POINT)
#define OF(numerator, denominator) ((fixed)((numerator) * ONE / (denominator)))
/* Amounts of phases are for so many instructions. */
#define AMOUNT 100000

int law = BUS;

static fixed times(fixed a, fixed b)
{
	return (fixed)(((__int128)a * b) >> POINT);
}

static fixed over(fixed a, fixed b)
{
	return div64_s64(a << POINT, b);
}

/* The machine. */
#define CLOCK OF(28, 10) /* cycles in a ns */
#define HIT OF(14, 1) /* ns that an access to the last-level cache takes */
#define LLC_KIB 12288
#define PRIVATE_KIB 1024
#define IDLE_MEMORY OF(65, 1) /* ns that a read from memory takes beside its transfer */
#define READ_TRANSFER OF(6, 1) /* ns on the bus */
#define WRITE_TRANSFER OF(75, 10)
#define TURN_AROUND OF(5, 1)
#define MOST_LINES OF(16, 100) /* lines in a ns */
#define SIBLING OF(145, 100) /* the factor for the cycles in a core with two busy threads */
#define ISSUE_PRESSURE OF(22, 100)
/* The steps of the clock by the number of busy cores. */
static const fixed turbo[] = { OF(33, 10), OF(33, 10), OF(31, 10), OF(28, 10), OF(26, 10) };
/* Power, in nJ/ns. */
#define STATIC_POWER OF(11, 1)
#define CORE_POWER OF(55, 10)
#define THREAD_POWER OF(9, 10)
#define LINE_ENERGY OF(24, 1) /* nJ */

/* A thread while a law is solved. Rates are per ns, amounts per instruction. */
struct thread {
	const struct phase *phase;
	int sibling; /* index of the thread on the same core; -1 for none */
	fixed clock;
	fixed cycles; /* in the core */
	fixed llc;
	fixed reads;
	fixed writes;
	fixed overlap;
	fixed memory; /* ns that a read from memory takes */
	fixed speed; /* instructions in a ns */
	fixed queued; /* reads at the bus */
	fixed room; /* KiB of the last-level cache */
};

static u64 alone[LAWS][MAX_PHASES];

static fixed amount(u32 of)
{
	return OF((s64)of, AMOUNT);
}

static void begin(struct thread *t)
{
	const struct phase *p = t->phase;

	t->clock = CLOCK;
	t->cycles = amount(p->cycles);
	t->llc = amount(p->llc);
	t->reads = amount(p->reads);
	t->writes = amount(p->writes);
	t->overlap = OF((s64)p->overlap, 10);
	t->memory = IDLE_MEMORY + READ_TRANSFER;
	t->queued = 0;
	t->room = (fixed)p->shared_kib << POINT;
}

/* Instructions in a ns: one waits for the core, for the last-level cache and for memory. Half of the hits are hidden. */
static fixed speed_of(const struct thread *t)
{
	fixed time = over(t->cycles, t->clock);

	time += times(t->llc, HIT) / 2;
	time += over(times(t->reads, t->memory), t->overlap);
	return over(ONE, time);
}

static void half_way(fixed *old, fixed new)
{
	*old += (new - *old) / 2;
}

static void share_core(struct thread *t)
{
	if (t->sibling >= 0)
		t->cycles = times(t->cycles, SIBLING);
}

/* bus */

/* Time that a line needs on the bus: the more evenly reads and writes are mixed, the more often it turns around. */
static fixed transfer(fixed reads, fixed writes)
{
	fixed all = reads + writes, part;

	if (all <= 0)
		return READ_TRANSFER;
	part = over(writes, all);
	return times(ONE - part, READ_TRANSFER) + times(part, WRITE_TRANSFER) +
	       times(times(2 * part, ONE - part), TURN_AROUND);
}

static void queue_at_bus(struct thread *threads, int n)
{
	int round, i;

	for (i = 0; i < n; i++) {
		share_core(&threads[i]);
		threads[i].speed = speed_of(&threads[i]);
	}
	for (round = 0; round < 40; round++) {
		fixed reads = 0, writes = 0, queued = 0, posted, line;

		for (i = 0; i < n; i++) {
			reads += times(threads[i].reads, threads[i].speed);
			writes += times(threads[i].writes, threads[i].speed);
			queued += threads[i].queued;
		}
		line = transfer(reads, writes);
		/* Posted writes let reads pass, so a read meets half of them. */
		posted = reads + writes ? times(over(writes, reads + writes), queued) / 2 : 0;
		for (i = 0; i < n; i++) {
			struct thread *t = &threads[i];
			fixed own = over(t->queued, t->overlap);
			fixed waits = times(line, queued - own + posted);

			half_way(&t->memory, IDLE_MEMORY + line + waits);
			t->speed = speed_of(t);
			half_way(&t->queued, times(times(t->reads, t->speed), waits + line));
		}
	}
}

/* cache */

/* Divides the last-level cache by accesses. A thread that can use less than its part leaves the rest to the others. */
static void divide_cache(struct thread *threads, int n)
{
	bool full[MAX_CPUS] = {};
	int round, i;

	for (round = 0; round < n; round++) {
		fixed left = (fixed)LLC_KIB << POINT, weights = 0;
		bool again = false;

		for (i = 0; i < n; i++) {
			if (full[i])
				left -= (fixed)threads[i].phase->shared_kib << POINT;
			else
				weights += times(threads[i].llc, threads[i].speed);
		}
		for (i = 0; i < n && weights > 0; i++) {
			fixed can_use = (fixed)threads[i].phase->shared_kib << POINT;
			fixed weight = times(threads[i].llc, threads[i].speed);

			if (full[i])
				continue;
			threads[i].room = times(left, over(weight, weights));
			if (threads[i].room >= can_use) {
				threads[i].room = can_use;
				full[i] = again = true;
			}
		}
		if (!again)
			break;
	}
}

static void miss(struct thread *t)
{
	fixed lacks = ONE - over(t->room, (fixed)t->phase->shared_kib << POINT);
	fixed fewest = amount(t->phase->reads);
	fixed now = fewest + times(times(lacks, lacks), t->llc - fewest);

	half_way(&t->reads, now);
}

static fixed lines_of(const struct thread *threads, int n)
{
	fixed lines = 0;
	int i;

	for (i = 0; i < n; i++)
		lines += times(threads[i].reads + threads[i].writes, threads[i].speed);
	return lines;
}

/* One factor for the waits of all, so that no more lines move than the bus can. */
static void stretch(struct thread *threads, int n)
{
	fixed low = ONE, high = 64 * ONE;
	int round, i;

	for (round = 0; round < 24; round++) {
		fixed factor = (low + high) / 2;

		for (i = 0; i < n; i++) {
			threads[i].memory = times(IDLE_MEMORY + READ_TRANSFER, factor);
			threads[i].speed = speed_of(&threads[i]);
		}
		if (lines_of(threads, n) > MOST_LINES)
			low = factor;
		else
			high = factor;
	}
}

static void share_cache(struct thread *threads, int n)
{
	int round, i;

	for (i = 0; i < n; i++) {
		share_core(&threads[i]);
		threads[i].speed = speed_of(&threads[i]);
	}
	for (round = 0; round < 12; round++) {
		divide_cache(threads, n);
		for (i = 0; i < n; i++)
			miss(&threads[i]);
		stretch(threads, n);
	}
}

/* smt */

/* The part of its private caches that a thread lacks while its sibling uses them, too. */
static fixed lacks_private(const struct thread *t, const struct thread *sibling)
{
	s64 both = (s64)t->phase->private_kib + sibling->phase->private_kib;

	if (both <= PRIVATE_KIB)
		return 0;
	return OF(both - PRIVATE_KIB, both);
}

/* How much of the issue slots a thread uses: four instructions in a cycle are all. */
static fixed slots(const struct thread *t)
{
	return over(over(t->speed, t->clock), 4 * ONE);
}

static void share_issue(struct thread *threads, int n, const fixed *alone_slots)
{
	int i;

	for (i = 0; i < n; i++) {
		struct thread *t = &threads[i];
		fixed lacks, pressure;

		if (t->sibling < 0)
			continue;
		pressure = alone_slots[t->sibling] * 3;
		pressure = times(times(pressure, pressure), alone_slots[i] * 2);
		t->cycles = times(t->cycles, ONE + OF(18, 100) + times(ISSUE_PRESSURE, pressure));
		lacks = lacks_private(t, &threads[t->sibling]);
		/* What the private caches no longer hold comes from the last level. */
		t->llc += times(lacks, amount(t->phase->private_kib) * 6);
	}
}

static int busy_cores(const struct thread *threads, int n)
{
	int i, cores = 0;

	for (i = 0; i < n; i++)
		if (threads[i].sibling < i)
			cores++;
	return cores;
}

static void share_threads(struct thread *threads, int n)
{
	int cores = min(busy_cores(threads, n), (int)ARRAY_SIZE(turbo) - 1);
	fixed alone_slots[MAX_CPUS];
	int round, i;

	for (i = 0; i < n; i++) {
		threads[i].clock = turbo[cores];
		threads[i].speed = speed_of(&threads[i]);
		alone_slots[i] = slots(&threads[i]);
	}
	share_issue(threads, n, alone_slots);
	for (round = 0; round < 20; round++) {
		fixed load;

		for (i = 0; i < n; i++)
			threads[i].speed = speed_of(&threads[i]);
		load = over(lines_of(threads, n), MOST_LINES);
		for (i = 0; i < n; i++)
			half_way(&threads[i].memory, times(IDLE_MEMORY + READ_TRANSFER, ONE + 2 * load));
	}
}

static void apply_law(int which, struct thread *threads, int n)
{
	switch (which) {
	case BUS:
		queue_at_bus(threads, n);
		break;
	case CACHE:
		share_cache(threads, n);
		break;
	default:
		share_threads(threads, n);
	}
}

static u64 rate(fixed per_ns)
{
	return per_ns > 0 ? (u64)per_ns << (RATE_BITS - POINT) : 0;
}

static void tell(const struct thread *t, u64 speed_alone, struct rates *rates)
{
	u64 speed = rate(t->speed);

	rates->of[CYCLES] = rate(t->clock);
	rates->of[INSTRUCTIONS] = speed;
	rates->of[L1] = rate(times(amount(t->phase->l1), t->speed));
	rates->of[LLC] = rate(times(t->llc, t->speed));
	rates->of[READS] = rate(times(t->reads, t->speed));
	rates->of[WRITES] = rate(times(t->writes, t->speed));
	rates->of[BUSY] = 1ULL << RATE_BITS;
	rates->of[ALONE] = speed_alone ? mul_u64_u64_div_u64(speed, 1ULL << RATE_BITS, speed_alone) : 0;
}

static u64 power(const struct thread *threads, int n)
{
	fixed cores = (fixed)busy_cores(threads, n) << POINT;
	fixed all = STATIC_POWER + times(cores, CORE_POWER) + n * THREAD_POWER;

	/* A faster clock costs more than in proportion. */
	if (n && threads[0].clock > CLOCK)
		all += times(cores, over(threads[0].clock - CLOCK, CLOCK)) * 9;
	return rate(all + times(lines_of(threads, n), LINE_ENERGY));
}

static int sibling_of(int cpu, const int *index_of_cpu)
{
	int other;

	for_each_cpu(other, topology_sibling_cpumask(cpu))
		if (other != cpu && other < MAX_CPUS && index_of_cpu[other] >= 0)
			return index_of_cpu[other];
	return -1;
}

u64 solve(const u8 *phase_of_cpu, struct rates *rates)
{
	static struct thread threads[MAX_CPUS]; /* used under the lock of the state */
	int index_of_cpu[MAX_CPUS], cpu, n = 0;

	for (cpu = 0; cpu < MAX_CPUS; cpu++) {
		index_of_cpu[cpu] = -1;
		if (phase_of_cpu[cpu] == IDLE)
			continue;
		index_of_cpu[cpu] = n;
		threads[n].phase = &phases[phase_of_cpu[cpu]];
		begin(&threads[n++]);
	}
	for (cpu = 0; cpu < MAX_CPUS; cpu++)
		if (index_of_cpu[cpu] >= 0)
			threads[index_of_cpu[cpu]].sibling = sibling_of(cpu, index_of_cpu);
	apply_law(law, threads, n);
	memset(rates, 0, MAX_CPUS * sizeof(*rates));
	for (cpu = 0; cpu < MAX_CPUS; cpu++)
		if (index_of_cpu[cpu] >= 0)
			tell(&threads[index_of_cpu[cpu]], alone[law][phase_of_cpu[cpu]], &rates[cpu]);
	return power(threads, n);
}

void solve_alone(void)
{
	int which, p;

	for (which = 0; which < LAWS; which++) {
		for (p = ORDINARY; p < MAX_PHASES; p++) {
			struct thread t = { .phase = &phases[p], .sibling = -1 };

			if (!phases[p].cycles)
				continue;
			begin(&t);
			apply_law(which, &t, 1);
			alone[which][p] = rate(t.speed);
		}
	}
}
