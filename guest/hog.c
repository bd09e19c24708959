// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Another session of perf, which takes counters from cosched.
 *
 *   hog cpus pinned|flexible N       N events on each CPU, until it is killed
 *   hog own N COMMAND [ARG]...       N events of the command and of all that it starts
 */
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static void open_event(pid_t pid, int cpu, int pinned)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_HARDWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_HW_INSTRUCTIONS,
		.pinned = pinned,
		.inherit = cpu < 0,
		.exclude_kernel = 1,
		.exclude_hv = 1,
	};

	/* It stays open for as long as this process and what it executes. */
	if (syscall(SYS_perf_event_open, &attr, pid, cpu, -1, 0) < 0) {
		perror("hog: perf_event_open");
		exit(1);
	}
}

static void hold_cpus(int pinned, int number)
{
	int cpus = (int)sysconf(_SC_NPROCESSORS_ONLN);

	for (int cpu = 0; cpu < cpus; cpu++)
		for (int i = 0; i < number; i++)
			open_event(-1, cpu, pinned);
	puts("held");
	fflush(stdout);
	pause();
}

int main(int argc, char **argv)
{
	if (argc == 4 && !strcmp(argv[1], "cpus")) {
		hold_cpus(!strcmp(argv[2], "pinned"), atoi(argv[3]));
	} else if (argc > 3 && !strcmp(argv[1], "own")) {
		for (int i = 0; i < atoi(argv[2]); i++)
			open_event(0, -1, 0);
		execvp(argv[3], argv + 3);
		perror(argv[3]);
	} else {
		fputs("hog: see its source\n", stderr);
	}
	return 1;
}
