/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the scheduler in the kernel and user space exchange. src/intf.rs has the same shapes; a test compares both by the
 * type information in the compiled object.
 *
 * A job of the batch has a slot: a small number that its processes inherit. Times are nanoseconds of CLOCK_MONOTONIC.
 */
#ifndef COSCHED_INTF_H
#define COSCHED_INTF_H

#define COSCHED_CPUS 512
#define COSCHED_SLOTS 1024
#define COSCHED_MASKS 128
#define COSCHED_WORDS (COSCHED_CPUS / 64)
/* No slot, no CPU, or no mask. */
#define COSCHED_NONE 0xffff

/* Others may take the CPU while its slot does not need it. */
#define COSCHED_SEAT_FILL 1
/* No slot has the CPU, and loose slots may use it. */
#define COSCHED_SEAT_SPARE 2

/* Memory domains, at most. */
#define COSCHED_DOMAINS 64

/* CPUs of one core, at most. */
#define COSCHED_SIBLINGS 8

/* What is known before the program is loaded. */
struct cosched_config {
	/* All CPU numbers of the machine are below this, and slots below that. */
	unsigned int cpus;
	unsigned int slots;
	/* All ordinary processes of the machine are taken, not only those of the batch. */
	unsigned int takes_all;
	unsigned int unused;
	/* The CPUs of each CPU's core, this one among them; COSCHED_NONE after the last. */
	unsigned short siblings[COSCHED_CPUS][COSCHED_SIBLINGS];
};

/* A CPU in a plan. */
struct cosched_seat {
	/* When the seat ends; 0: never. */
	unsigned long long until;
	unsigned short slot;
	unsigned short flags;
	unsigned int unused;
};

/* A slot in a plan: its one CPU, or else a mask of them. Both are COSCHED_NONE if it has no seat. */
struct cosched_place {
	unsigned short cpu;
	unsigned short mask;
	/* It may use spare CPUs. */
	unsigned short loose;
	unsigned short unused;
};

/* A slot that may fill in, and the mask of the CPUs that it may use; COSCHED_NONE for all. */
struct cosched_filler {
	unsigned short slot;
	unsigned short mask;
};

struct cosched_mask {
	unsigned long long words[COSCHED_WORDS];
};

/* Who runs where until when, and who fills in: adopted as a whole. */
struct cosched_plan {
	unsigned long long generation;
	unsigned int fillers;
	unsigned int loose;
	struct cosched_seat seats[COSCHED_CPUS];
	struct cosched_place places[COSCHED_SLOTS];
	struct cosched_filler filler[COSCHED_SLOTS];
	/* Slots that may use spare CPUs, with their masks. */
	struct cosched_filler spare[COSCHED_SLOTS];
	struct cosched_mask masks[COSCHED_MASKS];
};

/* What belongs to a process of a job. */
struct cosched_task {
	/* When it was put into the queue of its slot. */
	unsigned long long queued_at;
	/* When it last got a CPU. */
	unsigned long long ran_at;
	unsigned int slot;
	/* 100 / its weight, in units of 2^-16; 0 if it is not known. */
	unsigned int inverse;
	/* The CPU in whose queue it stands, and one; 0: in none yet. */
	unsigned short home;
	/* It has just had a CPU. */
	unsigned char requeued;
	/* It has gone on with its CPU when its turn was over. */
	unsigned char went_on;
	/* It has become its program, or what made it has. */
	unsigned short counts;
	/* It is among those that are awake. */
	unsigned short wants;
};

/* Counters, in the order in which they are numbered. */
#define COSCHED_COUNTERS 6

/* Events: for how long they were wanted (ns), for how long they were counted, and how many there were in that time. */
struct cosched_count {
	unsigned long long enabled;
	unsigned long long running;
	unsigned long long value;
};

/* Lines of memory that were read, and written: `mm_reads` and `mm_writes`, which a test compares. */
#define COSCHED_READS 4
#define COSCHED_WRITES 5

/* All that was counted for a slot. */
struct cosched_total {
	struct cosched_count of[COSCHED_COUNTERS];
};

/* How a slot is treated whatever the plan says. */
struct cosched_wish {
	/* Its processes run on any CPU, as they come. */
	unsigned int free;
	unsigned int unused;
};

/* Where the time of a slot went, up to `at`. */
struct cosched_residency {
	unsigned long long at;
	/* With a CPU; and the part of it in which another slot was on one of its cores. */
	unsigned long long on_cpu;
	unsigned long long shared;
	/* With a thread that wants a CPU or has one. */
	unsigned long long awake;
	/* When it last had a CPU; 0: never. */
	unsigned long long last_on_cpu;
	/* With a CPU while that slot had one. */
	unsigned long long beside[COSCHED_SLOTS];
};

/* Numbers of slots with a CPU at once that are told apart, 0 among them. */
#define COSCHED_AT_ONCE 17

/* A CPU went to a slot, or with COSCHED_NONE to none. */
struct cosched_switch {
	unsigned long long at;
	unsigned int cpu;
	unsigned int slot;
};

/* For how long so many slots had a CPU at once, up to `since`; the last of so many or more. */
struct cosched_occupation {
	unsigned long long since;
	/* Slots that have one, and whether one ever had. */
	unsigned int now;
	unsigned int begun;
	/* The longest time for which a slot wanted a CPU and had none. */
	unsigned long long longest;
	/* Switches for which there was no room. */
	unsigned long long lost;
	unsigned long long times[COSCHED_AT_ONCE];
};

/* Why the scheduler was removed. */
struct cosched_exit {
	int kind;
	int unused;
	long long code;
	char reason[128];
	char message[384];
};

/* What the program `cosched_install` is told, and answers. */
struct cosched_install {
	/* Which of the two plans is to be in force. */
	unsigned int which;
	unsigned int unused;
};

/* What the other programs that user space calls are told, and answer. */
struct cosched_call {
	unsigned int slot;
	unsigned int answer;
	/* A time span. */
	unsigned long long span;
};

/* What EFS in the kernel knows before it is loaded. */
struct cosched_efs {
	/* Factors of Eqs. 22 and 23. */
	unsigned long long c_local;
	unsigned long long c_global;
	/* The memory domain of each CPU, and whether the run may use it. */
	unsigned short domain[COSCHED_CPUS];
	unsigned char is_ours[COSCHED_CPUS];
};

/* How the bus of each memory domain is used, as user space measures it once a quantum (Eqs. 18 and 19). */
struct cosched_traffic {
	/* For how long a counted line keeps the bus, with its part of the lines that are not counted, in units of 2^-20 ns; 0: demands
	 * are not measured. */
	unsigned long long line_time[COSCHED_DOMAINS];
	/* The share of the bus that others than jobs use, in units of 2^-12. */
	unsigned int others[COSCHED_DOMAINS];
};

/* What it is told while it runs. */
struct cosched_demands {
	/* The factor by which the throughput of a memory domain must grow for a process that wakes its core number 2, 3, ...,
	 * in units of 2^-20. */
	unsigned int nr_gains;
	unsigned int gains[COSCHED_CPUS];
	/* The class of the demand of each slot. */
	unsigned short class[COSCHED_SLOTS];
	unsigned int unused;
};

/* The demands that it has measured: the class of each slot, and one; 0 where there is none. */
struct cosched_measured {
	unsigned short word[COSCHED_SLOTS];
};

#endif
