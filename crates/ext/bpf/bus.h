/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Admission to the memory bus (EFS, Eq. 16), as crates/core/src/model/bus_admission_table has it: integers, bounded loops and
 * no division. src/tables.rs compiles this for the machine itself and compares it with that, number by number.
 *
 * A share is a number from 0 to 1 in units of 2^-40, a logarithm one of base 2 in units of 2^-12.
 */
#ifndef COSCHED_BUS_H
#define COSCHED_BUS_H

#define BUS_POINTS 65
#define BUS_STEPS 64
#define BUS_PHASES 32
/* 105 + 64 are used; the others let every column of 7 digits be one. */
#define BUS_COLUMNS 192
#define BUS_MANTISSAS 1024
#define BUS_LOWEST (-42)
/* The highest class; class 0 does not use the bus. */
#define BUS_HIGHEST 3329
#define BUS_CLASSES (BUS_HIGHEST + 1)
/* Nothing fits. */
#define BUS_NOTHING (-1)
#define BUS_MOST_TASKS 2048
#define BUS_ONE (1ULL << 40)
#define BUS_FRACTION 12
/* A demand or a use as it is measured: 1 in these units. */
#define BUS_UNIT (1U << 31)
/* The least free share of the bus that can be told, as in user space: 1/1024, in units of 2^-12. */
#define BUS_LEAST_FREE 4U

/* What user space computes once. */
struct cosched_tables {
	unsigned int computing[BUS_PHASES][BUS_COLUMNS];
	unsigned int octave[BUS_STEPS];
	unsigned long long free[BUS_POINTS];
	unsigned short log[BUS_MANTISSAS];
	/* The solo utilisation of each class, in units of 2^-31. */
	unsigned int demand[BUS_CLASSES];
};

/* The tasks that run in a memory domain, as sums over the grid of free shares. */
struct cosched_bus {
	unsigned long long busy[BUS_POINTS];
	unsigned long long computing[BUS_POINTS];
	unsigned int tasks;
	/* Tasks of class 0. */
	unsigned int undisturbed;
};

/* How the tasks would be at some free share, and what they leave. */
struct bus_state {
	unsigned long long free;
	unsigned long long rest;
	unsigned long long others;
};

/*
 * The verifier of the kernel follows both ways of each branch, so what is decided often is computed without one. It follows each
 * known number of its own, too, so what is searched goes through a number that it does not know: the kernel defines BUS_UNKNOWN,
 * which is 0.
 */
#ifndef BUS_UNKNOWN
#define BUS_UNKNOWN 0
#endif

/* The compiler must not know what a number can be: it would make a branch of what is computed with 0 or 1. */
#define BUS_HIDE(x) asm volatile("" : "+r"(x))

/* The first bit of a number: 0 or 1. */
static __always_inline unsigned long long bus_sign(unsigned long long x)
{
	BUS_HIDE(x);
	x >>= 63;
	BUS_HIDE(x);
	return x;
}

/* 1 if a number is not 0. */
static __always_inline unsigned long long bus_is_some(unsigned long long x)
{
	return bus_sign(x | -x);
}

/* 1 if `a` is less than `b`; they are less than 2^63 apart. */
static __always_inline unsigned long long bus_less(unsigned long long a, unsigned long long b)
{
	return bus_sign(a - b);
}

/* `a` if `which` is 1, `b` if it is 0. */
static __always_inline unsigned long long bus_either(unsigned long long which, unsigned long long a, unsigned long long b)
{
	return b ^ ((a ^ b) & -which);
}

/* By how much `a` is above `b`; 0 if it is not. */
static __always_inline unsigned long long bus_above(unsigned long long a, unsigned long long b)
{
	return (a - b) & (bus_less(a, b) - 1);
}

static __always_inline unsigned int bus_leading_zeros(unsigned long long x)
{
	unsigned int half;
	unsigned long long n = 0;

	for (half = 32; half; half /= 2) {
		unsigned long long step = half * (1 - bus_is_some(x >> (64 - half)));

		n += step;
		x <<= step & 63;
	}
	/* 63 were found in a number of 0. */
	return n + 1 - bus_sign(x);
}

/* The logarithm of a share; a share of 0 counts as the least. */
static __always_inline int bus_log(const struct cosched_tables *tables, unsigned long long share)
{
	unsigned int zeros, mantissa;

	share += 1 - bus_is_some(share);
	zeros = bus_leading_zeros(share);
	mantissa = (share << zeros) << 1 >> 54;
	return (int)((23 - (int)zeros) * 4096) + tables->log[mantissa & (BUS_MANTISSAS - 1)];
}

/* part / whole in units of 2^-12, rounded down, at most 1; whole is above 0, and both are below 2^62. */
static __always_inline unsigned long long bus_fraction(unsigned long long part, unsigned long long whole)
{
	unsigned long long quotient = 0, is_part = bus_less(part, whole);
	int i;

	for (i = 0; i < BUS_FRACTION; i++) {
		unsigned long long digit;

		part <<= 1;
		digit = 1 - bus_less(part, whole);
		part -= digit * whole;
		quotient = quotient << 1 | digit;
	}
	return bus_either(is_part, quotient, 1 << BUS_FRACTION);
}

/* The class nearest to odds with this logarithm. */
static __always_inline int bus_class_at(int log)
{
	/* 64 units are a step, half of one rounds; the shift rounds down below 0 as well. */
	int above = ((log + 32) >> 6) - BUS_LOWEST * BUS_STEPS + 1;

	if (above < 0)
		return 0;
	return above > BUS_HIGHEST ? BUS_HIGHEST : above;
}

/* The class of a solo utilisation in units of 2^-31. */
static __always_inline int bus_class_of_share(const struct cosched_tables *tables, unsigned int demand)
{
	if (!demand)
		return 0;
	if (demand >= BUS_UNIT)
		return BUS_HIGHEST;
	return bus_class_at(bus_log(tables, demand) - bus_log(tables, BUS_UNIT - demand));
}

/* For how long the bus is busy with so many lines, in ns; the time of a line is in units of 2^-20 ns. */
static __always_inline unsigned long long bus_busy(unsigned long long lines, unsigned long long line_time)
{
	return lines * line_time >> 20;
}

/*
 * The class of what a task would use of the bus alone, from the time of a span in which the bus was busy for it, while `total` of the
 * bus was used, in units of 2^-12 (EFS, Eq. 9).
 */
static __always_inline int bus_solo(const struct cosched_tables *tables, unsigned long long busy, unsigned long long span,
				    unsigned int total)
{
	unsigned int one = 1U << BUS_FRACTION, left = total + BUS_LEAST_FREE < one ? one - total : BUS_LEAST_FREE;
	unsigned long long unused = (span * left >> BUS_FRACTION) + 1;

	if (!busy)
		return 0;
	/* u (u + d) / d, with times in place of shares. */
	return bus_class_at(bus_log(tables, busy) + bus_log(tables, busy + unused) - bus_log(tables, unused) - bus_log(tables, span));
}

/*
 * The predicted demand after an interval of `span` ns in which it was `measured` (EFS, Eq. 20), with a window of 2^20 ns:
 * 1.05 ms, where the paper has 1 ms.
 */
static __always_inline unsigned int bus_predict(unsigned int before, unsigned int measured, unsigned long long span)
{
	const unsigned long long window = 1 << 20;

	if (span >= window)
		return measured;
	return (measured * span + before * (window - span)) >> 20;
}

/* Adds a task of a class to a load, or with a sign of -1 removes one that was added with this class. */
static __always_inline void bus_change(const struct cosched_tables *tables, struct cosched_bus *bus, unsigned int class, int sign)
{
	unsigned int steps = class - 1, row = steps % BUS_PHASES, column = steps / BUS_PHASES & 127;
	unsigned long long mantissa = tables->octave[steps % BUS_STEPS];
	/* 2 x 31 digits of the table less 40 of a share, and the octave of the class. */
	int shift = 62 - 40 - BUS_LOWEST - (int)(steps / BUS_STEPS), i;

	if (shift > 63)
		shift = 63;

	bus->tasks += sign;
	if (!class)
		bus->undisturbed += sign;
	for (i = 0; i < BUS_POINTS; i++) {
		unsigned long long u, h;

		if (class) {
			h = tables->computing[row][column + i];
			u = h * mantissa >> (shift & 63);
			h <<= 9;
		} else {
			u = 0;
			h = BUS_ONE;
		}
		bus->busy[i] += sign * u;
		bus->computing[i] += sign * h;
	}
}

/* Adds a task; says whether there was room. */
static __always_inline int bus_add(const struct cosched_tables *tables, struct cosched_bus *bus, unsigned int class)
{
	if (bus->tasks >= BUS_MOST_TASKS || class > BUS_HIGHEST)
		return 0;
	bus_change(tables, bus, class, 1);
	return 1;
}

/* Removes a task that was added with this class. */
static __always_inline void bus_remove(const struct cosched_tables *tables, struct cosched_bus *bus, unsigned int class)
{
	if (bus->tasks && class <= BUS_HIGHEST)
		bus_change(tables, bus, class, -1);
}

static __always_inline unsigned int bus_point(unsigned int point)
{
	return point < BUS_POINTS ? point : BUS_POINTS - 1;
}

static __always_inline struct bus_state bus_at(const struct cosched_tables *tables, const struct cosched_bus *bus,
					       unsigned int point)
{
	unsigned int at = bus_point(point);
	unsigned long long free = tables->free[at], used = BUS_ONE - free;
	struct bus_state state = {
		.free = free,
		.rest = bus_above(used, bus->busy[at]),
		.others = used + bus->computing[at],
	};

	return state;
}

/* How far the throughput falls short of what is needed if one more task takes the rest; negative if it does not. */
static __always_inline long long bus_short(const struct bus_state *state, unsigned long long needed)
{
	unsigned long long a = bus_above(needed, state->others);
	unsigned long long v = state->rest + state->free;

	a -= bus_above(a, BUS_ONE);
	/* (a v) >> 40 in two parts, each below 2^62. */
	return (long long)(((a >> 20) * v + ((a & 0xfffff) * v >> 20)) >> 20) - (long long)state->free;
}

static __always_inline unsigned long long bus_way(unsigned long long from, unsigned long long to, unsigned long long part)
{
	return from + (((long long)(to - from) * (long long)part) >> BUS_FRACTION);
}

static __always_inline struct bus_state bus_towards(const struct bus_state *from, const struct bus_state *to,
						     unsigned long long part)
{
	struct bus_state state = {
		.free = bus_way(from->free, to->free, part),
		.rest = bus_way(from->rest, to->rest, part),
		.others = bus_way(from->others, to->others, part),
	};

	return state;
}

static __always_inline unsigned long long bus_half(unsigned long long from, unsigned long long to, unsigned int halvings)
{
	return from + ((long long)(to - from) >> (halvings & 63));
}

static __always_inline struct bus_state bus_halved(const struct bus_state *from, const struct bus_state *to,
						    unsigned int halvings)
{
	struct bus_state state = {
		.free = bus_half(from->free, to->free, halvings),
		.rest = bus_half(from->rest, to->rest, halvings),
		.others = bus_half(from->others, to->others, halvings),
	};

	return state;
}

static __always_inline struct bus_state bus_one_of(unsigned long long which, const struct bus_state *a,
						    const struct bus_state *b)
{
	struct bus_state state = {
		.free = bus_either(which, a->free, b->free),
		.rest = bus_either(which, a->rest, b->rest),
		.others = bus_either(which, a->others, b->others),
	};

	return state;
}

/*
 * The highest class that is admitted beside the tasks of a load if the throughput must grow by the factor `gain`, in units of
 * 2^-20, and by `least`, in units of 2^-40 of a task that runs alone; BUS_NOTHING if nothing is.
 */
static __always_inline int bus_ceiling(const struct cosched_tables *tables, const struct cosched_bus *bus, unsigned int gain,
				       unsigned long long least)
{
	unsigned int settled_at = BUS_UNKNOWN, point, passed = BUS_UNKNOWN, tries, halvings, half;
	struct bus_state settled, low, high, root;
	unsigned long long needed, below, above;
	int i;

	if (!bus->tasks)
		return BUS_HIGHEST;

	/* Where the tasks fill the bus: the first point where they do not use more than there is. */
	for (half = 64; half; half /= 2) {
		unsigned int at = bus_point(settled_at + half - 1);
		unsigned long long is_over = bus_less(BUS_ONE, bus->busy[at] + tables->free[at]);

		settled_at += half * (is_over & bus_less(settled_at + half, BUS_POINTS + 1)) + BUS_UNKNOWN;
	}
	settled_at = bus_point(settled_at);
	settled = bus_at(tables, bus, settled_at);
	if (settled_at > 0) {
		unsigned int before = bus_point(settled_at - 1);
		unsigned long long full = bus->busy[settled_at] + tables->free[settled_at];

		if (full < BUS_ONE) {
			unsigned long long step = bus->busy[before] + tables->free[before] - full;
			struct bus_state other = bus_at(tables, bus, before);

			settled = bus_towards(&settled, &other, bus_fraction(BUS_ONE - full, step));
		}
	}
	settled.rest = 0;

	needed = (settled.others >> 20) * gain;
	if (least && needed < settled.others + least)
		needed = settled.others + least;
	if (needed > settled.others + BUS_ONE)
		return BUS_NOTHING;
	if (needed <= ((unsigned long long)bus->undisturbed + 1) * BUS_ONE)
		return BUS_HIGHEST;

	/* The first point where one more that takes the rest brings too little. */
	point = settled_at + BUS_UNKNOWN;
	for (half = 64; half; half /= 2) {
		low = bus_at(tables, bus, point + half - 1);
		point += half * (bus_sign(bus_short(&low, needed)) & bus_less(point + half, BUS_POINTS + 1)) + BUS_UNKNOWN;
	}
	if (point >= BUS_POINTS)
		return BUS_HIGHEST;

	low = bus_at(tables, bus, point);
	high = point == settled_at ? settled : bus_at(tables, bus, point - 1);
	/* So many halvings of the way from the upper state surely pass the root: between 4 and 44. */
	tries = bus_above(bus_leading_zeros(high.free | 1), bus_leading_zeros(low.rest | 1)) + 4;
	/* Those before the first that has passed it. */
	for (half = 32; half; half /= 2) {
		root = bus_halved(&high, &low, passed + half);
		passed += half * (bus_sign(-bus_short(&root, needed)) & bus_less(passed + half, tries)) + BUS_UNKNOWN;
	}
	halvings = passed + 1;
	root = low;
	low = bus_halved(&high, &root, halvings - 1);
	root = bus_halved(&high, &root, halvings);
	high = bus_one_of(bus_less(halvings, tries), &root, &high);

	for (i = 0; i < 2; i++) {
		unsigned long long is_short;

		root = bus_halved(&low, &high, 1);
		is_short = 1 - bus_sign(bus_short(&root, needed));
		low = bus_one_of(is_short, &root, &low);
		high = bus_one_of(is_short, &high, &root);
	}
	below = bus_above(bus_short(&low, needed), 0);
	above = bus_above(-bus_short(&high, needed), 0);
	root = bus_towards(&low, &high, bus_fraction(below, below + above + 1 - bus_is_some(below + above)));
	if (!root.rest)
		return 0;
	return bus_class_at(bus_log(tables, root.rest) + bus_log(tables, root.rest + root.free) - bus_log(tables, root.free));
}

#endif
