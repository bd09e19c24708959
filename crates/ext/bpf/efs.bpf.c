/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * EFS in the kernel (EFS, section 4): each CPU decides for itself, at every scheduling event, whether the next process of its
 * queue fits the memory bus beside what runs on the other CPUs. If none does, the CPU stays idle.
 *
 * - Each CPU has a queue in the order of the virtual time, which goes slower for those of greater weight.
 * - Each memory domain has a load: the demands of those that run there, as user space tells or knows them. It changes, under a
 *   lock, when what runs on a CPU changes to another demand.
 * - A CPU is judged beside what the others run, without what it runs itself.
 * - The first that fits may not be the first in line. Who has waited too long runs at once whatever the load, one at a time.
 * - When the load falls, idle CPUs look again; a timer has them look again for whatever was missed.
 */
#include "shared.h"
/* See bus.h. */
#define BUS_START READ_ONCE(nothing)
#include "bus.h"

char LICENSE[] SEC("license") = "GPL";

/* Scheduling periods (Eq. 21), and the least slice of a starved process, which is ours. */
#define PERIOD (18 * 1000 * 1000ULL)
#define PERIOD_OF_EACH (4 * 1000 * 1000ULL)
#define MANY 5
#define LEAST_SLICE (4 * 1000 * 1000ULL)
/* How often idle CPUs look again at the latest, and who has starved. */
#define TICK (4 * 1000 * 1000ULL)
/* One that woke has the CPU of another one that is ahead by more than this. */
#define WAKEUP_GRANULARITY (4 * 1000 * 1000ULL)
/* A starved process that was called runs by then, or another CPU is called for it. */
#define PATIENCE (12 * 1000 * 1000ULL)
/* Where the virtual time of each queue begins: whoever goes from one to another may be behind. */
#define ORIGIN (1ULL << 40)
/* For so long those beside whom it does not fit are given time to leave. */
#define GRACE (2 * 1000 * 1000ULL)
/* So many of a queue are looked at. */
#define LOOKS 64
/* A CPU's place in an array. */
#define AT(cpu) BELOW(cpu, COSCHED_CPUS)
/* A choice is made again if the load has changed meanwhile. */
#define TRIES 3
/* As it is: a gain of one. And what one more must bring at the least: a hundredth of what it does alone. */
#define NO_GAIN (1U << 20)
#define LEAST_WORK (BUS_ONE / 100)

const volatile struct cosched_tables tables SEC(".rodata.tables") = {};
const volatile struct cosched_efs efs SEC(".rodata.efs") = {};

/* The tables. The compiler must not take them for the zeros that stand here. */
static __always_inline struct cosched_tables *known(void)
{
	struct cosched_tables *all = (struct cosched_tables *)&tables;

	asm volatile("" : "+r"(all));
	return all;
}

/* The demands of slots, and what the throughput must grow by. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct cosched_demands);
} demands SEC(".maps");

struct domain {
	struct bpf_spin_lock lock;
	/* Changes so far. */
	u32 version;
	/* Cores with a process of the batch. */
	u32 active;
	u32 unused;
	struct cosched_bus bus;
};
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, COSCHED_DOMAINS);
	__type(key, u32);
	__type(value, struct domain);
} domains SEC(".maps");

/* What a CPU sees when it decides. */
struct view {
	u32 version;
	u32 active;
	/* What runs on the CPU itself, and whether anything runs on the others of its core. */
	u32 own;
	u32 is_awake;
	struct cosched_bus bus;
};
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, COSCHED_CPUS);
	__type(key, u32);
	__type(value, struct view);
} views SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct cosched_measured);
} measured SEC(".maps");

struct ticks {
	struct bpf_timer timer;
};
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct ticks);
} ticks SEC(".maps");

/* Who runs on each CPU: its class and one, or 0 for nobody of the batch. Changed under the lock of the CPU's domain. */
u32 words[COSCHED_CPUS];

/* Whether the bus decides; otherwise all run as they come. */
u32 in_force;

struct queue {
	/* Virtual time: that of the process that began last. */
	u64 vtime;
};
struct queue queues[COSCHED_CPUS];
u64 others_vtime;

/* The starved process of the machine: at most one has a slice of its own. */
enum { NOBODY, CALLED, RUNS };
struct starved {
	/* When its slice is over, or when it must run by. */
	u64 until;
	u64 lag;
	u32 state;
	s32 pid;
	/* The CPU that is called for it, and the one in whose queue it stands. */
	u32 cpu;
	u32 queue;
	u32 class;
	u32 unused;
};
struct starved starved;

static __always_inline struct cosched_demands *told(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&demands, &zero);
}

static __always_inline u32 domain_of(u32 cpu)
{
	return BELOW(efs.domain[BELOW(cpu, COSCHED_CPUS)], COSCHED_DOMAINS);
}

/* The class of a slot's demand: what was measured, else what was told. */
static __always_inline u32 class_of(u32 slot)
{
	struct cosched_demands *all = told();
	struct cosched_measured *own;
	u32 zero = 0, word;

	if (!all || slot >= COSCHED_SLOTS)
		return 0;
	own = bpf_map_lookup_elem(&measured, &zero);
	word = own ? own->word[BELOW(slot, COSCHED_SLOTS)] : 0;
	return word ? word - 1 : all->class[BELOW(slot, COSCHED_SLOTS)];
}

static __always_inline u64 period(u64 tasks)
{
	return tasks < MANY ? PERIOD : tasks * PERIOD_OF_EACH;
}

/* The part of the period that each of so many has, by its weight on average. */
static __always_inline u64 slice_of(u64 tasks)
{
	if (tasks >= MANY)
		return PERIOD_OF_EACH;
	if (tasks == 4)
		return PERIOD / 4;
	if (tasks == 3)
		return PERIOD / 3;
	return tasks == 2 ? PERIOD / 2 : PERIOD;
}

/*
 * The highest class that fits on a CPU beside what runs on the others, BUS_NOTHING if none does. What it saw stays in the
 * CPU's view.
 */
__noinline int threshold(u32 cpu)
{
	struct cosched_tables *all = known();
	u32 d = domain_of(cpu), at = BELOW(cpu, COSCHED_CPUS), i, active, gain, count;
	u64 least;
	struct cosched_demands *wanted = told();
	struct domain *domain;
	struct view *view;

	domain = bpf_map_lookup_elem(&domains, &d);
	view = bpf_map_lookup_elem(&views, &at);
	if (!domain || !view || !wanted)
		return BUS_NOTHING;
	bpf_spin_lock(&domain->lock);
	view->version = domain->version;
	view->active = domain->active;
	view->bus.tasks = domain->bus.tasks;
	view->bus.undisturbed = domain->bus.undisturbed;
	for (i = 0; i < BUS_POINTS; i++) {
		view->bus.busy[i] = domain->bus.busy[i];
		view->bus.computing[i] = domain->bus.computing[i];
	}
	view->own = words[AT(at)];
	view->is_awake = 0;
	for (i = READ_ONCE(nothing); i < COSCHED_SIBLINGS && MAY_GO_ON; i++) {
		u32 here = config.siblings[AT(at)][BELOW(i, COSCHED_SIBLINGS)];

		if (here < COSCHED_CPUS && here != at)
			view->is_awake |= words[here] != 0;
	}
	bpf_spin_unlock(&domain->lock);

	if (view->own)
		bus_remove(all, &view->bus, view->own - 1);
	active = view->active - (view->own && !view->is_awake);
	/* Who was called comes in any case. */
	if (starved.state == CALLED && starved.cpu != cpu && domain_of(starved.cpu) == d) {
		bus_add(all, &view->bus, starved.class);
		active += !words[AT(starved.cpu)];
	}
	count = wanted->nr_gains;
	gain = NO_GAIN;
	if (active && count)
		gain = wanted->gains[BELOW(active <= count ? active - 1 : count - 1, COSCHED_CPUS)];
	/* Where energy does not count, a task need not bring anything. */
	least = gain > NO_GAIN ? LEAST_WORK : 0;
	if (view->is_awake && gain > NO_GAIN)
		gain = NO_GAIN;
	return bus_ceiling(all, &view->bus, gain, least);
}

/* Notes who runs on a CPU: its class and one, or 0. With `only_if`, only if the load has still this version; says whether it
 * did. Like the other functions without `static` it is verified once, and not at each call. */
__noinline int seat(u32 cpu, u32 word, u32 only_if, u32 seen)
{
	struct cosched_tables *all = known();
	u32 d = domain_of(cpu), at = BELOW(cpu, COSCHED_CPUS), old, i;
	bool others = false;
	struct domain *domain = bpf_map_lookup_elem(&domains, &d);

	if (!domain)
		return false;
	bpf_spin_lock(&domain->lock);
	old = words[AT(at)];
	if (only_if && domain->version != seen && old != word) {
		bpf_spin_unlock(&domain->lock);
		return false;
	}
	if (old != word) {
		if (old)
			bus_remove(all, &domain->bus, old - 1);
		if (word)
			bus_add(all, &domain->bus, word - 1);
		for (i = READ_ONCE(nothing); i < COSCHED_SIBLINGS && MAY_GO_ON; i++) {
			u32 here = config.siblings[AT(at)][BELOW(i, COSCHED_SIBLINGS)];

			if (here < COSCHED_CPUS && here != at)
				others |= words[here] != 0;
		}
		if (!others)
			domain->active += !!word - !!old;
		words[AT(at)] = word;
		domain->version++;
	}
	bpf_spin_unlock(&domain->lock);
	return true;
}

/* Idle CPUs look again if somebody waits: all of them, or those that have somebody in their own queue and the first one of each
 * memory domain. */
__noinline int call_idle(u32 all)
{
	u64 seen = 0;
	u32 cpu, waits = READ_ONCE(nothing);

	EACH(cpu, config.cpus) {
		if (cpu < COSCHED_CPUS && scx_bpf_dsq_nr_queued(cpu) > 0) {
			waits = 1;
			break;
		}
	}
	if (!waits)
		return 0;
	EACH(cpu, config.cpus) {
		u64 domain;

		if (cpu >= COSCHED_CPUS)
			break;
		if (!cpus[cpu].is_idle || !efs.is_ours[cpu])
			continue;
		domain = 1ULL << domain_of(cpu);
		if (all || !(seen & domain) || scx_bpf_dsq_nr_queued(cpu) > 0)
			scx_bpf_kick_cpu(cpu, SCX_KICK_IDLE);
		seen |= domain;
	}
	return 0;
}

static __always_inline void nobody(u32 cpu)
{
	if (words[BELOW(cpu, COSCHED_CPUS)]) {
		seat(cpu, 0, false, 0);
		call_idle(false);
	}
}

/* Virtual time for a time with a CPU: less for those of greater weight. */
static __always_inline u64 charged(const struct cosched_task *task, u64 used)
{
	return task && task->inverse ? used * task->inverse >> 16 : used;
}

/* The virtual time with which a process joins a queue: whoever slept has no more than half a period of precedence, and whoever
 * comes from another queue no less than its due. */
static __always_inline u64 joins_at(u64 vtime, u64 base)
{
	if (vtime + PERIOD / 2 < base)
		return base - PERIOD / 2;
	return vtime > base + MOST_DEBT ? base + MOST_DEBT : vtime;
}

SEC("struct_ops/cosched_select_cpu")
s32 BPF_PROG(cosched_select_cpu, struct task_struct *p, s32 prev, u64 wake_flags)
{
	struct cosched_task *task = task_of(p);
	u32 slot = slot_in(task);

	if (slot == COSCHED_NONE || !in_force || is_free(slot)) {
		if (scx_bpf_test_and_clear_cpu_idle(prev))
			insert(p, SCX_DSQ_LOCAL, SLICE, 0);
	}
	return prev;
}

/* The CPU with the fewest in its queue that a process may use. */
static __always_inline u32 least_queue(struct task_struct *p, u32 other)
{
	s32 least = 0x7fffffff;
	u32 cpu, best = other;

	EACH(cpu, config.cpus) {
		s32 waits;

		if (cpu >= COSCHED_CPUS || !efs.is_ours[cpu] || !may_use(p, cpu))
			continue;
		waits = 2 * scx_bpf_dsq_nr_queued(cpu) + !cpus[cpu].is_idle;
		if (waits < least) {
			least = waits;
			best = cpu;
		}
	}
	return best;
}

SEC("struct_ops/cosched_enqueue")
void BPF_PROG(cosched_enqueue, struct task_struct *p, u64 enq_flags)
{
	struct cosched_task *task = task_of(p);
	u32 slot = slot_in(task), cpu, home;
	u64 now = bpf_ktime_get_ns(), vtime;
	bool ran;

	if (slot == COSCHED_NONE || !task || is_free(slot)) {
		if (p->nr_cpus_allowed == 1) {
			insert(p, SCX_DSQ_LOCAL, SLICE, enq_flags);
			return;
		}
		has_others = 1;
		insert_by_vtime(p, OTHERS, SLICE, joins_at(p->scx.dsq_vtime, others_vtime), enq_flags);
		call_for_other(p);
		return;
	}
	home = task->home - 1;
	/* It has just had the CPU, which sees to what comes next. */
	ran = task->requeued && home == scx_bpf_task_cpu(p) && !(enq_flags & SCX_ENQ_REENQ);
	task->requeued = 0;
	if (!task->queued_at)
		task->queued_at = now;
	if (!task->inverse)
		task->inverse = (100 << 16) / (p->scx.weight ?: 100);
	if (home >= COSCHED_CPUS || !may_use(p, home)) {
		home = BELOW(least_queue(p, scx_bpf_task_cpu(p)), COSCHED_CPUS);
		p->scx.dsq_vtime = queues[home].vtime;
		task->home = home + 1;
	}
	vtime = joins_at(p->scx.dsq_vtime, queues[home].vtime);
	insert_by_vtime(p, home, slice_of(1), vtime, enq_flags);
	if (ran)
		return;
	/* Also one that is about to be idle. */
	scx_bpf_kick_cpu(home, SCX_KICK_IDLE);
	if (cpus[home].is_idle)
		return;
	EACH(cpu, config.cpus) {
		if (cpu < COSCHED_CPUS && cpus[cpu].is_idle && efs.is_ours[cpu] && may_use(p, cpu)) {
			scx_bpf_kick_cpu(cpu, SCX_KICK_IDLE);
			return;
		}
	}
	if (vtime + WAKEUP_GRANULARITY < queues[home].vtime && !(starved.state == RUNS && starved.cpu == home))
		scx_bpf_kick_cpu(home, SCX_KICK_PREEMPT);
}

enum picked { NONE_FITS, PICKED, CHANGED };

/* Takes the first of a queue that fits and is before a virtual time. */
__noinline int pick(u32 from, u32 cpu, int ceiling, u32 seen, u64 before)
{
	struct task_struct *p;
	int found = NONE_FITS;
	u32 looks = READ_ONCE(nothing);

	bpf_for_each(scx_dsq, p, from, 0) {
		u32 slot = slot_in(task_of(p)), class = class_of(slot);

		if (looks++ >= LOOKS || p->scx.dsq_vtime >= before)
			break;
		if ((int)class > ceiling || !may_go_to(p, cpu))
			continue;
		if (!seat(cpu, class + 1, true, seen)) {
			found = CHANGED;
			break;
		}
		scx_bpf_dsq_move_set_slice(&___it, slice_of(scx_bpf_dsq_nr_queued(cpu) + 1));
		if (scx_bpf_dsq_move(&___it, p, SCX_DSQ_LOCAL, 0)) {
			found = PICKED;
			break;
		}
	}
	return found;
}

/* The others are judged again, beside who has starved. */
__noinline int call_busy(u32 but)
{
	u32 cpu;

	EACH(cpu, config.cpus) {
		if (cpu < COSCHED_CPUS && cpu != but && words[AT(cpu)])
			scx_bpf_kick_cpu(cpu, SCX_KICK_PREEMPT);
	}
	return 0;
}

/* Whether the starved process came from one state into the next: it is changed without a lock. */
static __always_inline bool starved_becomes(u32 from, u32 to)
{
	return __sync_val_compare_and_swap(&starved.state, from, to) == from;
}

/* Lets the starved process run on this CPU, which was called for it, or keeps the CPU for it until those have left beside whom it
 * does not fit; false if it is not there any more. */
static __always_inline bool run_starved(u32 cpu, struct task_struct *prev, u64 now)
{
	u64 slice = starved.lag, most;
	u32 queue = AT(starved.queue);
	struct task_struct *p;
	bool runs = false;

	if (starved.state == RUNS) {
		if (prev && prev->pid == starved.pid && now < starved.until) {
			prev->scx.slice = starved.until - now;
			return true;
		}
		starved_becomes(RUNS, NOBODY);
		return false;
	}
	most = period(scx_bpf_dsq_nr_queued(queue) + 1);
	if (now + PATIENCE < starved.until + GRACE && (int)starved.class > threshold(cpu)) {
		nobody(cpu);
		return true;
	}
	if (slice > most)
		slice = most;
	if (slice < LEAST_SLICE)
		slice = LEAST_SLICE;
	if (!starved_becomes(CALLED, RUNS))
		return false;
	/* Before it runs: the CPU looks again when it is over. */
	starved.until = now + slice;
	bpf_for_each(scx_dsq, p, queue, 0) {
		if (p->pid != starved.pid || !may_go_to(p, cpu))
			continue;
		seat(cpu, class_of(slot_in(task_of(p))) + 1, false, 0);
		scx_bpf_dsq_move_set_slice(&___it, slice);
		runs = scx_bpf_dsq_move(&___it, p, SCX_DSQ_LOCAL, 0);
		break;
	}
	if (!runs)
		starved_becomes(RUNS, NOBODY);
	return runs;
}

SEC("struct_ops/cosched_dispatch")
void BPF_PROG(cosched_dispatch, s32 number, struct task_struct *prev)
{
	u32 cpu = BELOW(number, COSCHED_CPUS), had = COSCHED_NONE, class = 0, step, try, old = words[AT(cpu)];
	struct cosched_task *task = 0;
	u64 now = bpf_ktime_get_ns(), before = ~0ULL;
	struct view *view;
	bool is_ours;
	int ceiling;

	/* One that sleeps does not go on. */
	if (prev && !(prev->scx.flags & SCX_TASK_QUEUED))
		prev = 0;
	if (prev) {
		task = task_of(prev);
		had = slot_in(task);
	}
	is_ours = had < COSCHED_SLOTS && in_force && !is_free(had);
	/* The CPU is then given back, and nobody is on it. */
	if (others_come_first(cpu))
		return;
	/* Others and the batch take turns. */
	if (has_others && !others_turn[AT(cpu)] && move_to_local(OTHERS)) {
		others_turn[AT(cpu)] = 1;
		nobody(cpu);
		return;
	}
	others_turn[AT(cpu)] = 0;
	if (!in_force) {
		EACH(step, config.cpus) {
			u32 other = cpu + step;

			if (other >= config.cpus)
				other -= config.cpus;
			if (move_to_local(other))
				return;
		}
		goto others;
	}
	/* Nobody is here but who has chosen this CPU for itself. */
	if (!efs.is_ours[AT(cpu)]) {
		if (move_to_local(cpu))
			return;
		is_ours = false;
		goto others;
	}
	if (starved.state != NOBODY && starved.cpu == cpu && run_starved(cpu, prev, now))
		return;
	view = bpf_map_lookup_elem(&views, &cpu);
	if (!view)
		return;
	if (is_ours && task) {
		class = class_of(had);
		before = prev->scx.dsq_vtime + charged(task, used_by(task, now));
	}
	EACH(try, TRIES) {
		int found;
		u32 seen;

		ceiling = threshold(cpu);
		seen = view->version;
		if (ceiling == BUS_NOTHING)
			break;
		found = pick(cpu, cpu, ceiling, seen, is_ours && (int)class <= ceiling ? before : ~0ULL);
		if (found == NONE_FITS && is_ours && (int)class <= ceiling) {
			found = CHANGED;
			/* It has the CPU, so it does not lose it to the last of several changes. */
			if (seat(cpu, class + 1, try + 1 < TRIES, seen)) {
				/* The time of the queue goes on with it: whoever comes has no precedence for what it has had
				 * meanwhile. */
				prev->scx.slice = slice_of(scx_bpf_dsq_nr_queued(cpu) + 1);
				prev->scx.dsq_vtime = before;
				task->ran_at = now;
				if (queues[AT(cpu)].vtime < before)
					queues[AT(cpu)].vtime = before;
				found = PICKED;
			}
		}
		if (found == NONE_FITS) {
			/* What waits for others. */
			EACH(step, config.cpus) {
				u32 other = cpu + step;

				if (other >= config.cpus)
					other -= config.cpus;
				if (other == cpu || other >= COSCHED_CPUS || scx_bpf_dsq_nr_queued(other) <= 0)
					continue;
				found = pick(other, cpu, ceiling, seen, ~0ULL);
				if (found != NONE_FITS)
					break;
			}
		}
		if (found == PICKED) {
			/* There may be room for more: the next one looks. */
			if (words[AT(cpu)] < old || !old)
				call_idle(false);
			return;
		}
		if (found == NONE_FITS)
			break;
		/* Somebody fits, but the load changes too often: it looks once more. */
		if (try + 1 == TRIES)
			scx_bpf_kick_cpu(cpu, 0);
	}
	nobody(cpu);
others:
	if (has_others && move_to_local(OTHERS)) {
		others_turn[AT(cpu)] = 1;
		return;
	}
	if (prev && !is_ours)
		go_on(prev);
	else
		rests(cpu);
}

SEC("struct_ops/cosched_running")
void BPF_PROG(cosched_running, struct task_struct *p)
{
	struct cosched_task *task = task_of(p);
	u32 slot = slot_in(task), cpu = BELOW(scx_bpf_task_cpu(p), COSCHED_CPUS), word = 0, home;
	u64 now = bpf_ktime_get_ns();

	if (task && slot < COSCHED_SLOTS && in_force && !is_free(slot)) {
		word = class_of(slot) + 1;
		home = BELOW(task->home - 1, COSCHED_CPUS);
		if (task->home && home != cpu)
			p->scx.dsq_vtime += queues[cpu].vtime - queues[home].vtime;
		task->home = cpu + 1;
		if (queues[cpu].vtime < p->scx.dsq_vtime)
			queues[cpu].vtime = p->scx.dsq_vtime;
	} else if (others_vtime < p->scx.dsq_vtime) {
		others_vtime = p->scx.dsq_vtime;
	}
	if (task) {
		task->ran_at = now;
		task->queued_at = 0;
	}
	cpus[cpu].is_idle = 0;
	cpus[cpu].pid = p->pid;
	/* Whoever got here without being chosen counts too. */
	if (words[cpu] != word)
		seat(cpu, word, false, 0);
	if (cpus[cpu].slot != slot)
		change(cpu, slot, now);
}

SEC("struct_ops/cosched_stopping")
void BPF_PROG(cosched_stopping, struct task_struct *p, bool runnable)
{
	struct cosched_task *task = task_of(p);
	u32 cpu = BELOW(scx_bpf_task_cpu(p), COSCHED_CPUS);
	u64 now = bpf_ktime_get_ns();

	if (task) {
		p->scx.dsq_vtime += charged(task, used_by(task, now));
		task->requeued = runnable;
	} else {
		u64 left = p->scx.slice;

		p->scx.dsq_vtime += (left < SLICE ? SLICE - left : 0) * 100 / (p->scx.weight ?: 100);
	}
	cpus[cpu].stopped_at = now;
}

SEC("struct_ops/cosched_set_weight")
void BPF_PROG(cosched_set_weight, struct task_struct *p, u32 weight)
{
	struct cosched_task *task = task_of(p);

	if (task)
		task->inverse = (100 << 16) / (weight ?: 100);
}

static __always_inline void vacate(u32 cpu)
{
	leave(cpu);
	nobody(cpu);
}

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

/* Nothing is told by less time on a CPU. */
#define SHORTEST (200 * 1000ULL)
/* The least free share of the bus that can be told, as in user space: 1/1024. */
#define LEAST_FREE 4U

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
 * others use what they used when they were last measured, at most a tick ago.
 */
static __always_inline void has_moved(u32 cpu, u32 who, u64 span, u64 lines, u32 next)
{
	struct cosched_tables *all = known();
	u32 slot = BELOW(who - 1, COSCHED_SLOTS), after = BELOW(next - 1, COSCHED_SLOTS), zero = 0, share, total, left, demand;
	struct cosched_measured *told_ = bpf_map_lookup_elem(&measured, &zero);
	u64 busy, unused;
	int class;

	if (!efs.line_time || !told_)
		return;
	if (who && span) {
		span += slot_demands[slot].span;
		lines += slot_demands[slot].lines;
		slot_demands[slot].span = span < SHORTEST ? span : 0;
		slot_demands[slot].lines = span < SHORTEST ? lines : 0;
	}
	if (who && span >= SHORTEST) {
		busy = lines * efs.line_time >> 20;
		share = bus_fraction(busy, span);
		set_used(cpu, share);
		slot_demands[slot].used = share;
		total = used_in[BELOW(domain_of(cpu), COSCHED_DOMAINS)];
		left = total + LEAST_FREE < (1U << BUS_FRACTION) ? (1U << BUS_FRACTION) - total : LEAST_FREE;
		unused = (span * left >> BUS_FRACTION) + 1;
		class = 0;
		/* u (u + d) / d, with times in place of shares. */
		if (busy)
			class = bus_class_at(bus_log(all, busy) + bus_log(all, busy + unused) - bus_log(all, unused) -
					     bus_log(all, span));
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

SEC("struct_ops/cosched_update_idle")
void BPF_PROG(cosched_update_idle, s32 number, bool idle)
{
	u32 cpu = BELOW(number, COSCHED_CPUS);

	cpus[cpu].is_idle = idle;
	if (idle)
		vacate(cpu);
}

SEC("struct_ops/cosched_cpu_release")
void BPF_PROG(cosched_cpu_release, s32 number, struct scx_cpu_release_args *args)
{
	u32 cpu = BELOW(number, COSCHED_CPUS);

	cpus[cpu].is_idle = 0;
	/* What stands in the queue of this CPU can run elsewhere. */
	if (bpf_ksym_exists(scx_bpf_reenqueue_local))
		scx_bpf_reenqueue_local();
	if (starved.cpu == cpu)
		starved_becomes(RUNS, NOBODY);
	vacate(cpu);
}

/* How long a process of a queue has waited beyond what makes it starve (Eqs. 22 and 23); 0 if it does not. The third rule, which
 * counts also for those that are not first in line, is ours: it bounds every wait. */
static __always_inline u64 starves_for(struct task_struct *p, u32 cpu, bool is_first, u64 now, u64 local, u64 global)
{
	struct cosched_task *task = task_of(p);
	u64 waits, lag, most = local > global ? local : global;

	if (!task || !task->queued_at || now < task->queued_at)
		return 0;
	waits = now - task->queued_at;
	lag = queues[cpu].vtime > p->scx.dsq_vtime ? queues[cpu].vtime - p->scx.dsq_vtime : 0;
	if (waits > most || (is_first && (waits > global || lag > local)))
		return waits ?: 1;
	return 0;
}

/* Whether a CPU is at the service of the batch now: idle, or with a process of it. */
static __always_inline bool answers_soon(u32 cpu)
{
	return efs.is_ours[AT(cpu)] && (cpus[AT(cpu)].is_idle || words[AT(cpu)]);
}

/* The CPU to call for a process of a queue: its own, or another one that it may use if that one is not at the service of the batch,
 * or was called in vain. */
static __always_inline u32 cpu_for(s32 pid, u32 queue, u32 in_vain)
{
	u32 cpu, best = queue, looks = READ_ONCE(nothing);
	struct task_struct *p;

	if (answers_soon(queue) && queue != in_vain)
		return queue;
	bpf_rcu_read_lock();
	bpf_for_each(scx_dsq, p, queue, 0) {
		if (looks++ >= LOOKS)
			break;
		if (p->pid != pid)
			continue;
		EACH(cpu, config.cpus) {
			if (cpu < COSCHED_CPUS && cpu != in_vain && answers_soon(cpu) && may_go_to(p, cpu)) {
				best = cpu;
				break;
			}
		}
		break;
	}
	bpf_rcu_read_unlock();
	return best;
}

/* Calls a CPU for the longest starved process of the machine. */
__noinline int look_for_starved(u64 now)
{
	u64 longest = READ_ONCE(nothing), lag = 0, global, running = READ_ONCE(nothing), waiting = READ_ONCE(nothing);
	u32 cpu, best = COSCHED_NONE, in_vain = COSCHED_NONE;
	u32 class = 0, state = starved.state;
	s32 pid = 0;

	if (state == RUNS && now < starved.until + PATIENCE)
		return 0;
	if (state == CALLED) {
		if (now < starved.until)
			return 0;
		in_vain = starved.cpu;
	}
	if (!starved_becomes(state, NOBODY))
		return 0;
	EACH(cpu, config.cpus) {
		if (cpu >= COSCHED_CPUS)
			break;
		running += words[AT(cpu)] != 0;
		waiting += scx_bpf_dsq_nr_queued(cpu);
	}
	if (!waiting)
		return 0;
	global = efs.c_global * period(running + waiting);
	EACH(cpu, config.cpus) {
		struct task_struct *p;
		u64 local, queued;
		u32 looks = READ_ONCE(nothing);

		if (cpu >= COSCHED_CPUS)
			break;
		queued = scx_bpf_dsq_nr_queued(cpu);
		/* Who is bound to a CPU that is not the run's needs no call. */
		if (!queued || !efs.is_ours[cpu])
			continue;
		local = efs.c_local * period(queued + (words[AT(cpu)] != 0));
		bpf_rcu_read_lock();
		bpf_for_each(scx_dsq, p, cpu, 0) {
			u64 waits = starves_for(p, BELOW(cpu, COSCHED_CPUS), looks == 0, now, local, global);

			if (looks++ >= LOOKS)
				break;
			if (waits > longest) {
				u64 vtime = queues[BELOW(cpu, COSCHED_CPUS)].vtime;

				longest = waits;
				pid = p->pid;
				class = class_of(slot_in(task_of(p)));
				best = cpu;
				lag = vtime > p->scx.dsq_vtime ? vtime - p->scx.dsq_vtime : 0;
			}
		}
		bpf_rcu_read_unlock();
	}
	if (best == COSCHED_NONE)
		return 0;
	cpu = cpu_for(pid, AT(best), pid == starved.pid ? in_vain : COSCHED_NONE);
	starved.pid = pid;
	starved.queue = best;
	starved.cpu = cpu;
	starved.lag = lag;
	starved.class = class;
	starved.until = now + PATIENCE;
	starved_becomes(NOBODY, CALLED);
	call_busy(cpu);
	scx_bpf_kick_cpu(cpu, SCX_KICK_PREEMPT);
	return 0;
}

/* Idle CPUs look for one of the others that came when they were about to be idle. */
__noinline int call_resting(void)
{
	u32 cpu;

	EACH(cpu, config.cpus) {
		if (cpu < COSCHED_CPUS && cpus[cpu].is_idle)
			scx_bpf_kick_cpu(cpu, SCX_KICK_IDLE);
	}
	return 0;
}

static int tick(void *map, u32 *key, struct bpf_timer *timer)
{
	if (in_force)
		look_for_starved(bpf_ktime_get_ns());
	/* This calls also a CPU that is kept for one that has starved. */
	call_idle(true);
	if (has_others && scx_bpf_dsq_nr_queued(OTHERS) > 0)
		call_resting();
	if (!is_gone)
		bpf_timer_start(timer, TICK, 0);
	return 0;
}

SEC("struct_ops.s/cosched_init")
s32 BPF_PROG(cosched_init)
{
	struct ticks *ticking;
	u32 zero = 0, cpu;
	s32 failed;

	EACH(cpu, COSCHED_CPUS) {
		if (cpu < COSCHED_CPUS)
			queues[cpu].vtime = ORIGIN;
	}
	others_vtime = ORIGIN;
	failed = make_queues(config.cpus);
	if (failed)
		return failed;
	ticking = bpf_map_lookup_elem(&ticks, &zero);
	if (!ticking)
		return -3; /* ESRCH */
	failed = bpf_timer_init(&ticking->timer, &ticks, CLOCK_MONOTONIC);
	if (failed)
		return failed;
	failed = bpf_timer_set_callback(&ticking->timer, tick);
	if (failed)
		return failed;
	return bpf_timer_start(&ticking->timer, TICK, 0);
}

/* From now on the bus decides, or, with 2, all run as they come. */
SEC("syscall")
int cosched_install(struct cosched_install *call_)
{
	u32 cpu;

	in_force = call_->which != 2;
	EACH(cpu, config.cpus) {
		if (cpu < COSCHED_CPUS)
			scx_bpf_kick_cpu(cpu, cpus[cpu].slot < COSCHED_SLOTS ? SCX_KICK_PREEMPT : SCX_KICK_IDLE);
	}
	return 0;
}

/* Lets processes of a queue run: those of a slot, or of slots that are free, and those that have waited for longer than a time,
 * if that is not 0, for a moment. Answers how many. */
static __always_inline u32 let_out_of(u32 queue, u32 of_slot, u64 longer_than)
{
	u64 now = bpf_ktime_get_ns();
	struct task_struct *p;
	u32 count = 0;

	bpf_rcu_read_lock();
	bpf_for_each(scx_dsq, p, queue, 0) {
		struct cosched_task *task = task_of(p);
		u32 cpu, slot = slot_in(task);
		bool waited = longer_than && task && task->queued_at && now > task->queued_at + longer_than;

		if (slot != of_slot && !is_free(slot) && !waited)
			continue;
		cpu = way_out(p);
		scx_bpf_dsq_move_set_slice(&___it, waited ? RESCUE_SLICE : SLICE);
		if (scx_bpf_dsq_move(&___it, p, SCX_DSQ_LOCAL_ON | cpu, 0)) {
			scx_bpf_kick_cpu(cpu, SCX_KICK_IDLE);
			count++;
		}
	}
	bpf_rcu_read_unlock();
	return count;
}

/* Lets all processes of a slot out of the queues: from now on it is free. */
SEC("syscall")
int cosched_let_out(struct cosched_call *call_)
{
	u32 cpu, count = 0;

	EACH(cpu, config.cpus)
		count += let_out_of(cpu, call_->slot, 0);
	call_->answer = count;
	return 0;
}

/* Lets those run for a moment that have waited for longer than a span, so that the kernel does not take them for lost; and
 * lets out who came into a queue when its slot had just become free. Answers in the span how long a slot has waited at most. */
SEC("syscall")
int cosched_rescue(struct cosched_call *call_)
{
	u64 span = call_->span ?: 1, now = bpf_ktime_get_ns(), longest = 0;
	u32 slot, cpu, count = 0;

	EACH(slot, config.slots) {
		u64 waits = slot < COSCHED_SLOTS ? waits_for(slot, now) : 0;

		if (waits > longest)
			longest = waits;
	}
	EACH(cpu, config.cpus)
		count += let_out_of(cpu, COSCHED_NONE, span);
	call_->answer = count;
	call_->span = longest;
	return 0;
}

SEC(".struct_ops.link")
struct sched_ext_ops cosched_efs =
	OPS(.flags = SCX_OPS_KEEP_BUILTIN_IDLE | SCX_OPS_ENQ_LAST | SCX_OPS_SWITCH_PARTIAL, .name = "cosched_efs",
	    .set_weight = (void *)cosched_set_weight);

SEC(".struct_ops.link")
struct sched_ext_ops cosched_efs_all =
	OPS(.flags = SCX_OPS_KEEP_BUILTIN_IDLE | SCX_OPS_ENQ_LAST, .name = "cosched_efs_all",
	    .set_weight = (void *)cosched_set_weight);
