/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A machine whose programs run by a law. Each part of this module has a file of its own:
 *
 *   programs.c  the programs that jobs run, as phases
 *   rules.c     the laws of contention: who runs where gives the rate of each CPU
 *   state.c     the state of all CPUs, advanced exactly at each switch and each read
 *   jobs.c      the device in which jobs run, and their truth
 *   core_pmu.c  the counters of the CPUs
 *   chip.c      the counters of the memory controller, and the energy of the package
 */
#ifndef LAW_H
#define LAW_H

#include <linux/cpumask.h>
#include <linux/sched.h>
#include <linux/spinlock.h>
#include <linux/types.h>

#define MAX_CPUS 16
#define MAX_PHASES 24

/* What is counted for each CPU and each thread. */
enum event {
	CYCLES,
	INSTRUCTIONS,
	L1,
	LLC,
	READS,
	WRITES,
	EVENTS_OF_PMU,
	/* Nanoseconds with a CPU. */
	BUSY = EVENTS_OF_PMU,
	/* Nanoseconds that the same instructions take alone on the machine. */
	ALONE,
	EVENTS,
};

/* Fixed point: sums and rates have 32 bits after the point. */
typedef unsigned __int128 sum_t;
#define RATE_BITS 32

/* What a program asks for while it is in a phase. Amounts are for 100,000 instructions. */
struct phase {
	/* Instructions until the next phase; 0 for ever. */
	u64 length;
	/* Index of the next phase. */
	u8 next;
	/* Cycles in the core. */
	u32 cycles;
	u32 l1;
	/* Accesses to the last-level cache. */
	u32 llc;
	/* Lines read from memory by a program that has all of the last-level cache. */
	u32 reads;
	u32 writes;
	/* Tenths of reads from memory that wait at the same time. */
	u32 overlap;
	/* KiB of the last-level cache that it can use. */
	u32 shared_kib;
	/* KiB of the private caches that it can use. */
	u32 private_kib;
};

/* Phases that are not of a program. */
enum { IDLE, ORDINARY };

struct program {
	const char *name;
	u8 first;
};

/* programs.c */
extern const struct phase phases[];
const struct program *find_program(const char *name);

/* The rates of a CPU, per nanosecond. */
struct rates {
	u64 of[EVENTS];
};

/* rules.c */
enum law { BUS, CACHE, SMT, LAWS };
extern int law;
/* Solves the law for the phase of each CPU. Returns the power in nJ/ns, in units of a rate. */
u64 solve(const u8 *phase_of_cpu, struct rates *rates);
/* Finds out how fast each phase is alone. */
void solve_alone(void);

/* state.c */
extern raw_spinlock_t state_lock;
/* The energy of the package so far, in nJ. */
u64 energy_nj(void);
/* What a CPU has counted so far. */
u64 counted(int cpu, enum event event);
/* What its counters show: the same but for faults. */
u64 shown(int cpu, enum event event);
/* Advances all CPUs to now. Needs the lock. */
void advance(void);
/* The present time of the state. Needs the lock. */
u64 state_now(void);
/* Sets the phase of a CPU from now on, and the instructions that are left of it. Needs the lock. */
void set_phase(int cpu, u8 phase, u64 left);
/* The phase of a CPU, and the instructions that are left of it. Needs the lock. */
void get_phase(int cpu, u8 *phase, u64 *left);
/* Sums of a CPU since the last call. Needs the lock. */
void take_sums(int cpu, sum_t sums[EVENTS]);
/* Nanoseconds in which a CPU does so many instructions at its present rate. Needs the lock. */
u64 time_of(int cpu, u64 instructions);
/* Advances to now, and keeps the sums so far as they are: rules or faults are about to change. Needs the lock. */
void freeze_sums(void);
/* Solves the law anew. Needs the lock. */
void changed_rules(void);
int start_state(void);

/* jobs.c */
void switched(int cpu, struct task_struct *prev, struct task_struct *next, bool dead);
int start_jobs(void);
void stop_jobs(void);

/* core_pmu.c */
extern int counters;
/* Bits of events whose counts stand still. */
extern unsigned int zeros;
extern int dead;
int start_core_pmu(void);
void stop_core_pmu(void);

/* chip.c */
int start_chip(void);
void stop_chip(void);

#endif
