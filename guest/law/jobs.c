// SPDX-License-Identifier: GPL-2.0-only
/*
 * The device /dev/law, in which jobs run, and the truth about them.
 *
 *   follow                        each program that this process starts from now on is a job, with all its processes
 *   PROGRAM INSTRUCTIONS [NAME]   runs a program for so many instructions; NAME names the job
 *   clear                         forgets the jobs that have ended
 *
 * The writer stays a running task all the time while its virtual CPU halts. So its time depends on who runs beside it,
 * and costs the host nothing. It can be stopped, frozen and killed; then it goes on where it was.
 *
 * A read gives a line for the machine and a line for each job:
 *
 *   machine NS NANOJOULES READS WRITES
 *   job NAME PID PROCESSES START_NS END_NS CYCLES INSTRUCTIONS L1 LLC READS WRITES BUSY_NS ALONE_NS
 */
#include <linux/cpu.h>
#include <linux/hashtable.h>
#include <linux/hrtimer.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/sched/signal.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/tracepoint.h>
#include <linux/uaccess.h>
#include <linux/version.h>
#include <linux/vmalloc.h>
#include "law.h"

#define MAX_THREADS 2048
#define MAX_JOBS 512
#define TEXT 96

struct job {
	char name[40];
	pid_t pid;
	/* Threads that live. */
	int threads;
	u64 start;
	u64 end;
	sum_t sums[EVENTS];
};

/* A thread of a job, or one that starts jobs. */
struct member {
	struct hlist_node node;
	const struct task_struct *task;
	/* Whether its children are jobs of their own. */
	bool founds;
	/* Whether it has not yet executed a program: it becomes a job when it does. */
	bool unborn;
	struct job *job;
	/*
	 * Whether its CPU runs its program. After a switch that begins when the thread is back in the device: what the kernel does until
	 * then, as reading the counters for the thread before, is not of the program.
	 */
	bool runs;
	/* Its place in the program while it has no CPU. */
	u8 phase;
	u64 phase_left;
	/* Instructions until its program ends. */
	sum_t left;
	/* The line that a signal has interrupted. */
	char interrupted[TEXT];
};

/* All under the lock of the state. */
static DEFINE_HASHTABLE(members, 9);
static struct member *pool;
static struct hlist_head unused;
static struct job *jobs;
static int number_of_jobs;
/* The member that has each CPU. */
static struct member *running[MAX_CPUS];
/* Threads and jobs for which there was no room. */
static unsigned int lost;

static struct member *member_of(const struct task_struct *task)
{
	struct member *member;

	hash_for_each_possible(members, member, node, (unsigned long)task)
		if (member->task == task)
			return member;
	return NULL;
}

static struct member *add_member(const struct task_struct *task)
{
	struct member *member;

	if (hlist_empty(&unused)) {
		lost++;
		return NULL;
	}
	member = hlist_entry(unused.first, struct member, node);
	hlist_del(&member->node);
	memset(member, 0, sizeof(*member));
	member->task = task;
	hash_add(members, &member->node, (unsigned long)task);
	return member;
}

static void remove_member(struct member *member)
{
	struct job *job = member->job;

	if (job && --job->threads == 0)
		job->end = state_now();
	hash_del(&member->node);
	hlist_add_head(&member->node, &unused);
}

static struct job *add_job(const struct task_struct *task)
{
	struct job *job;

	if (number_of_jobs == MAX_JOBS) {
		lost++;
		return NULL;
	}
	job = &jobs[number_of_jobs++];
	memset(job, 0, sizeof(*job));
	strscpy(job->name, "-", sizeof(job->name));
	job->pid = task->tgid;
	job->start = state_now();
	return job;
}

/* Gives the sums of a CPU to the thread that has it. */
static void settle(int cpu, struct member *member)
{
	sum_t sums[EVENTS];
	enum event event;

	take_sums(cpu, sums);
	if (!member)
		return;
	if (member->runs)
		member->left -= min(member->left, sums[INSTRUCTIONS]);
	for (event = 0; member->job && event < EVENTS; event++)
		member->job->sums[event] += sums[event];
}

static void leave(int cpu, struct member *member)
{
	settle(cpu, member);
	if (member && member->runs)
		get_phase(cpu, &member->phase, &member->phase_left);
	if (member)
		member->runs = false;
}

static void enter(int cpu, const struct task_struct *task)
{
	set_phase(cpu, task->flags & PF_KTHREAD ? IDLE : ORDINARY, 0);
}

static void on_switch(void *unused_data, bool preempt, struct task_struct *prev, struct task_struct *next,
		      unsigned int prev_state)
{
	int cpu = raw_smp_processor_id();
	struct member *member;
	unsigned long flags;

	raw_spin_lock_irqsave(&state_lock, flags);
	advance();
	member = member_of(prev);
	leave(cpu, member);
	if (member && !preempt && (prev_state & TASK_DEAD))
		remove_member(member);
	running[cpu] = member_of(next);
	enter(cpu, next);
	raw_spin_unlock_irqrestore(&state_lock, flags);
}

static void on_fork(void *unused_data, struct task_struct *parent, struct task_struct *child)
{
	struct member *from, *member;
	unsigned long flags;

	raw_spin_lock_irqsave(&state_lock, flags);
	from = member_of(parent);
	if (from && (from->founds || from->job || from->unborn)) {
		member = add_member(child);
		if (member) {
			member->unborn = from->founds || from->unborn;
			member->job = from->job;
			if (member->job)
				member->job->threads++;
		}
	}
	raw_spin_unlock_irqrestore(&state_lock, flags);
}

static void on_exec(void *unused_data, struct task_struct *task, pid_t old_pid, struct linux_binprm *program)
{
	struct member *member;
	unsigned long flags;

	raw_spin_lock_irqsave(&state_lock, flags);
	advance();
	member = member_of(task);
	settle(raw_smp_processor_id(), member);
	if (member && member->unborn) {
		member->unborn = false;
		member->job = add_job(task);
		if (member->job)
			member->job->threads = 1;
	}
	raw_spin_unlock_irqrestore(&state_lock, flags);
}

/* The device. */

static enum hrtimer_restart wake(struct hrtimer *timer)
{
	/* The interrupt alone ends the halt. */
	return HRTIMER_NORESTART;
}

/* A timer for the moment when the program ends, if no tick comes before. */
static void set_alarm(struct hrtimer *alarm, u64 ns)
{
	if (ns < TICK_NSEC)
		hrtimer_start(alarm, ns_to_ktime(ns), HRTIMER_MODE_REL_PINNED);
}

/* Goes on with the caller's program. Answers the time until it ends, at the present rate; 0 if it has. Interrupts are off. */
static u64 time_left(struct member *member)
{
	int cpu = raw_smp_processor_id();
	u64 time = 0;

	raw_spin_lock(&state_lock);
	advance();
	settle(cpu, member);
	if (!member->runs) {
		member->runs = true;
		set_phase(cpu, member->phase, member->phase_left);
	}
	if (member->left)
		time = time_of(cpu, (u64)(member->left >> RATE_BITS) + 1);
	raw_spin_unlock(&state_lock);
	return time;
}

/* Halts this CPU, again and again, until the caller's program has ended. */
static int run(struct member *member)
{
	struct hrtimer alarm;
	int error = 0;

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 13, 0)
	hrtimer_setup_on_stack(&alarm, wake, CLOCK_MONOTONIC, HRTIMER_MODE_REL_PINNED);
#else
	hrtimer_init_on_stack(&alarm, CLOCK_MONOTONIC, HRTIMER_MODE_REL_PINNED);
	alarm.function = wake;
#endif
	for (;;) {
		u64 time;

		cond_resched();
		local_irq_disable();
		time = time_left(member);
		if (!time)
			break;
		if (signal_pending(current)) {
			error = -ERESTARTSYS;
			break;
		}
		if (need_resched()) {
			local_irq_enable();
			continue;
		}
		set_alarm(&alarm, time);
		/* It enables interrupts, so that none is lost before the halt. */
		raw_safe_halt();
	}
	local_irq_enable();
	hrtimer_cancel(&alarm);
	destroy_hrtimer_on_stack(&alarm);
	return error;
}

/* The caller runs its program no longer. */
static void leave_program(struct member *member)
{
	unsigned long flags;
	int cpu;

	raw_spin_lock_irqsave(&state_lock, flags);
	cpu = raw_smp_processor_id();
	advance();
	leave(cpu, member);
	enter(cpu, current);
	raw_spin_unlock_irqrestore(&state_lock, flags);
}

/* The member for the caller, made if need be. */
static struct member *own_member(void)
{
	struct member *member;
	unsigned long flags;

	raw_spin_lock_irqsave(&state_lock, flags);
	member = member_of(current);
	if (!member)
		member = running[raw_smp_processor_id()] = add_member(current);
	raw_spin_unlock_irqrestore(&state_lock, flags);
	return member;
}

/* A whole number with an exponent, as in 25e8. */
static int parse_number(char *text, u64 *number)
{
	char *exponent = strchr(text, 'e');
	unsigned int zeros_behind = 0;
	int error;

	if (exponent) {
		*exponent++ = 0;
		error = kstrtouint(exponent, 10, &zeros_behind);
		if (error || zeros_behind > 15)
			return -EINVAL;
	}
	error = kstrtou64(text, 10, number);
	while (!error && zeros_behind--)
		*number *= 10;
	return error;
}

static int begin_program(struct member *member, char *line)
{
	char *name = strsep(&line, " ");
	char *amount = strsep(&line, " ");
	const struct program *program = find_program(name);
	u64 instructions;

	if (!program || !amount || parse_number(amount, &instructions))
		return -EINVAL;
	if (line && member->job)
		strscpy(member->job->name, line, sizeof(member->job->name));
	member->phase = program->first;
	member->phase_left = phases[program->first].length;
	member->left = (sum_t)instructions << RATE_BITS;
	return 0;
}

static int run_line(const char *text)
{
	struct member *member = own_member();
	char line[TEXT];
	int error;

	if (!member)
		return -ENOSPC;
	strscpy(line, text, sizeof(line));
	if (strcmp(member->interrupted, text)) {
		error = begin_program(member, line);
		if (error)
			return error;
	}
	member->interrupted[0] = 0;
	error = run(member);
	leave_program(member);
	if (error)
		strscpy(member->interrupted, text, sizeof(member->interrupted));
	return error;
}

static int follow(void)
{
	struct member *member = own_member();

	if (!member)
		return -ENOSPC;
	member->founds = true;
	return 0;
}

/* Forgets all jobs if none of them lives; else those after the last one that does. */
static void clear(void)
{
	unsigned long flags;

	raw_spin_lock_irqsave(&state_lock, flags);
	while (number_of_jobs && jobs[number_of_jobs - 1].end)
		number_of_jobs--;
	raw_spin_unlock_irqrestore(&state_lock, flags);
}

static ssize_t law_write(struct file *file, const char __user *buffer, size_t length, loff_t *offset)
{
	char text[TEXT];
	int error = 0;

	if (length >= sizeof(text))
		return -EINVAL;
	if (copy_from_user(text, buffer, length))
		return -EFAULT;
	text[length] = 0;
	strim(text);
	if (!strcmp(text, "follow"))
		error = follow();
	else if (!strcmp(text, "clear"))
		clear();
	else
		error = run_line(text);
	return error ? error : length;
}

/* Brings the sums of all CPUs to their threads. */
static void settle_all(void)
{
	int cpu;

	advance();
	for (cpu = 0; cpu < MAX_CPUS; cpu++)
		settle(cpu, running[cpu]);
}

static void show_machine(struct seq_file *file)
{
	u64 reads = 0, writes = 0;
	int cpu;

	for (cpu = 0; cpu < MAX_CPUS; cpu++) {
		reads += counted(cpu, READS);
		writes += counted(cpu, WRITES);
	}
	seq_printf(file, "machine %llu %llu %llu %llu\n", state_now(), energy_nj(), reads, writes);
	if (lost)
		seq_printf(file, "lost %u\n", lost);
}

static void show_job(struct seq_file *file, const struct job *job)
{
	enum event event;

	seq_printf(file, "job %s %d %d %llu %llu", job->name, job->pid, job->threads, job->start, job->end);
	for (event = 0; event < EVENTS; event++)
		seq_printf(file, " %llu", (u64)(job->sums[event] >> RATE_BITS));
	seq_putc(file, '\n');
}

static int law_show(struct seq_file *file, void *data)
{
	struct job *copy = vmalloc(MAX_JOBS * sizeof(*copy));
	unsigned long flags;
	int i, number;

	if (!copy)
		return -ENOMEM;
	raw_spin_lock_irqsave(&state_lock, flags);
	settle_all();
	number = number_of_jobs;
	memcpy(copy, jobs, number * sizeof(*copy));
	show_machine(file);
	raw_spin_unlock_irqrestore(&state_lock, flags);
	for (i = 0; i < number; i++)
		show_job(file, &copy[i]);
	vfree(copy);
	return 0;
}

static int law_open(struct inode *inode, struct file *file)
{
	/* The kernel warns of what misc_open has put here, with a long trace: that would be time of the caller. */
	file->private_data = NULL;
	return single_open_size(file, law_show, NULL, MAX_JOBS * 256);
}

static const struct file_operations operations = {
	.owner = THIS_MODULE,
	.open = law_open,
	.read = seq_read,
	.write = law_write,
	.release = single_release,
};

static struct miscdevice device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "law",
	.fops = &operations,
	.mode = 0666,
};

/* Tracepoints are found by name: the kernel does not export them to modules. */
static struct probe {
	const char *name;
	void *function;
	struct tracepoint *point;
} probes[] = {
	{ "sched_switch", on_switch },
	{ "sched_process_fork", on_fork },
	{ "sched_process_exec", on_exec },
};

static void find_points(struct tracepoint *point, void *data)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(probes); i++)
		if (!strcmp(point->name, probes[i].name))
			probes[i].point = point;
}

static void stop_probes(void)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(probes); i++)
		if (probes[i].point)
			tracepoint_probe_unregister(probes[i].point, probes[i].function, NULL);
	tracepoint_synchronize_unregister();
}

static int start_probes(void)
{
	int i, error = 0;

	for_each_kernel_tracepoint(find_points, NULL);
	for (i = 0; !error && i < ARRAY_SIZE(probes); i++)
		error = probes[i].point ? tracepoint_probe_register(probes[i].point, probes[i].function, NULL) : -ENOENT;
	if (error)
		stop_probes();
	return error;
}

static void free_tables(void)
{
	vfree(pool);
	vfree(jobs);
}

int start_jobs(void)
{
	int i, error = -ENOMEM;

	pool = vzalloc(MAX_THREADS * sizeof(*pool));
	jobs = vzalloc(MAX_JOBS * sizeof(*jobs));
	if (!pool || !jobs)
		goto no_probes;
	for (i = 0; i < MAX_THREADS; i++)
		hlist_add_head(&pool[i].node, &unused);
	error = start_probes();
	if (error)
		goto no_probes;
	error = misc_register(&device);
	if (!error)
		return 0;
	stop_probes();
no_probes:
	free_tables();
	return error;
}

void stop_jobs(void)
{
	misc_deregister(&device);
	stop_probes();
	free_tables();
}
