// SPDX-License-Identifier: GPL-2.0-only
/* The programs that jobs run. Some have two phases that take turns. */
#include <linux/kernel.h>
#include <linux/string.h>
#include "law.h"

enum { COMPUTE = ORDINARY + 1, CHASE, STREAM, COPY, REUSE, FIT, TURNS_IN, TURNS_OUT, WAVES_LOW, WAVES_HIGH };

const struct phase phases[MAX_PHASES] = {
	/* Most of what is no program of the law is in the kernel, where little is counted. */
	[ORDINARY] = { .cycles = 300000, .l1 = 35000, .llc = 300, .reads = 20, .writes = 5,
		       .overlap = 15, .shared_kib = 256, .private_kib = 128 },
	/* Hardly leaves the core. */
	[COMPUTE] = { .cycles = 45000, .l1 = 30000, .llc = 60, .reads = 4, .writes = 1,
		      .overlap = 20, .shared_kib = 128, .private_kib = 200 },
	/* Follows pointers: each read waits for the one before. */
	[CHASE] = { .cycles = 70000, .l1 = 40000, .llc = 2600, .reads = 1500, .writes = 100,
		    .overlap = 10, .shared_kib = 30000, .private_kib = 650 },
	/* Reads much more than any cache holds. */
	[STREAM] = { .cycles = 42000, .l1 = 45000, .llc = 2700, .reads = 2500, .writes = 200,
		     .overlap = 80, .shared_kib = 2000, .private_kib = 80 },
	/* Writes as much as it reads. */
	[COPY] = { .cycles = 48000, .l1 = 50000, .llc = 2200, .reads = 1500, .writes = 1500,
		   .overlap = 60, .shared_kib = 2000, .private_kib = 80 },
	/* Lives in the last-level cache. */
	[REUSE] = { .cycles = 60000, .l1 = 38000, .llc = 2400, .reads = 60, .writes = 20,
		    .overlap = 14, .shared_kib = 7000, .private_kib = 600 },
	/* Lives in the private caches. */
	[FIT] = { .cycles = 55000, .l1 = 42000, .llc = 300, .reads = 30, .writes = 10,
		  .overlap = 20, .shared_kib = 1500, .private_kib = 700 },
	[TURNS_IN] = { .length = 400000000, .next = TURNS_OUT, .cycles = 50000, .l1 = 32000, .llc = 90,
		       .reads = 6, .writes = 2, .overlap = 20, .shared_kib = 256, .private_kib = 200 },
	[TURNS_OUT] = { .length = 200000000, .next = TURNS_IN, .cycles = 60000, .l1 = 42000, .llc = 2300,
			.reads = 1700, .writes = 300, .overlap = 40, .shared_kib = 6000, .private_kib = 300 },
	[WAVES_LOW] = { .length = 600000000, .next = WAVES_HIGH, .cycles = 65000, .l1 = 36000, .llc = 900,
			.reads = 150, .writes = 40, .overlap = 20, .shared_kib = 4000, .private_kib = 500 },
	[WAVES_HIGH] = { .length = 300000000, .next = WAVES_LOW, .cycles = 80000, .l1 = 43000, .llc = 2500,
			 .reads = 900, .writes = 250, .overlap = 20, .shared_kib = 9000, .private_kib = 300 },
};

static const struct program programs[] = {
	{ "ordinary", ORDINARY }, { "compute", COMPUTE }, { "chase", CHASE }, { "stream", STREAM },
	{ "copy", COPY },	  { "reuse", REUSE },	  { "fit", FIT },     { "turns", TURNS_IN },
	{ "waves", WAVES_LOW },
};

const struct program *find_program(const char *name)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(programs); i++)
		if (!strcmp(programs[i].name, name))
			return &programs[i];
	return NULL;
}
