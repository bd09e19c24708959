/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * EFS in the kernel (EFS, section 4): each CPU decides for itself, at every scheduling event, whether the next process of its
 * queue fits the memory bus beside what runs on the other CPUs. If none does, the CPU stays idle.
 *
 * - Each CPU has a queue in the order of the virtual time, which goes slower for those of greater weight.
 * - Each memory domain has a load: the demands of those that run there, as user space tells or knows them. It changes, under a
 *   lock, when what runs on a CPU changes to another demand.
 * - A CPU is judged beside what the others run, without what it runs itself.
 * - Whoever waits for a CPU that stays idle, and would fit in the place of one that runs, takes turns with it.
 * - Who has gone on evens out queues of the same memory domain.
 * - The first that fits may not be the first in line. Who has waited too long runs at once whatever the load, one at a time.
 * - When the load falls, idle CPUs look again; a timer has them look again for whatever was missed.
 */
#include "efs_demand.h"
#include "efs_starved.h"

char LICENSE[] SEC("license") = "GPL";

/* How often idle CPUs look again at the latest, and who has starved. */
#define TICK (4 * 1000 * 1000ULL)
/* One that woke has the CPU of another one that is ahead by more than this. */
#define WAKEUP_GRANULARITY (4 * 1000 * 1000ULL)
/* Where the virtual time of each queue begins: whoever goes from one to another may be behind. */
#define ORIGIN (1ULL << 40)
/* Who is ahead of its queue by more than this waits there, where all want a CPU. */
#define MOST_AHEAD (2 * PERIOD)
/* A choice is made again if the load has changed meanwhile. */
#define TRIES 3

struct ticks {
	struct bpf_timer timer;
};
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct ticks);
} ticks SEC(".maps");

/* The virtual time with which a process joins a queue: whoever slept has no more than half a period of precedence, and whoever
 * comes from another queue no less than its due. */
static __always_inline u64 joins_at(u64 vtime, u64 base, u64 most)
{
	if (vtime + PERIOD / 2 < base)
		return base - PERIOD / 2;
	return vtime > base + most ? base + most : vtime;
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

		if (cpu >= COSCHED_CPUS || !efs.is_ours[cpu] || !may_go_to(p, cpu))
			continue;
		waits = 2 * scx_bpf_dsq_nr_queued(cpu) + !cpus[cpu].is_idle;
		if (waits < least) {
			least = waits;
			best = cpu;
		}
	}
	return best;
}

/* Notes the class of one that comes into a queue. */
static __always_inline void comes(u32 home, u32 class)
{
	struct queue *queue = &queues[AT(home)];

	if (scx_bpf_dsq_nr_queued(home) <= 0 || (queue->least && class + 1 < queue->least))
		queue->least = class + 1;
}

/* Calls an idle CPU for one that has come, rather one beside which it fitted when that CPU looked last; says whether it is such a
 * one. Otherwise the bus is full, and it needs the place of somebody who runs. */
static __always_inline bool call_one_for(struct task_struct *p, u32 class)
{
	u32 cpu, idle = COSCHED_NONE;

	EACH(cpu, config.cpus) {
		struct view *view;
		u32 at = AT(cpu);

		if (!cpus[at].is_idle || !efs.is_ours[at] || !may_use(p, at))
			continue;
		view = bpf_map_lookup_elem(&views, &at);
		if (view && (int)class <= view->ceiling) {
			scx_bpf_kick_cpu(at, SCX_KICK_IDLE);
			return true;
		}
		if (idle == COSCHED_NONE)
			idle = at;
	}
	if (idle != COSCHED_NONE)
		scx_bpf_kick_cpu(idle, SCX_KICK_IDLE);
	return false;
}

SEC("struct_ops/cosched_enqueue")
void BPF_PROG(cosched_enqueue, struct task_struct *p, u64 enq_flags)
{
	struct cosched_task *task = task_of(p);
	u32 slot = slot_in(task), home, class;
	u64 now = bpf_ktime_get_ns(), vtime;
	bool ran;

	if (slot == COSCHED_NONE || !task || is_free(slot)) {
		if (serves_cpu(p)) {
			insert(p, SCX_DSQ_LOCAL, SLICE, enq_flags);
			return;
		}
		has_others = 1;
		insert_by_vtime(p, OTHERS, SLICE, joins_at(p->scx.dsq_vtime, others_vtime, MOST_DEBT_OF_OTHERS), enq_flags);
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
	if (home >= COSCHED_CPUS || !efs.is_ours[AT(home)] || !may_go_to(p, home)) {
		home = BELOW(least_queue(p, scx_bpf_task_cpu(p)), COSCHED_CPUS);
		p->scx.dsq_vtime = queues[home].vtime;
		task->home = home + 1;
	}
	vtime = joins_at(p->scx.dsq_vtime, queues[home].vtime, MOST_DEBT);
	class = class_of(slot);
	comes(home, class);
	insert_by_vtime(p, home, slice_of(1), vtime, enq_flags);
	if (ran)
		return;
	/* Also one that is about to be idle. */
	scx_bpf_kick_cpu(home, SCX_KICK_IDLE);
	if (cpus[home].is_idle || call_one_for(p, class))
		return;
	if (vtime + WAKEUP_GRANULARITY < queues[home].vtime && !(starved.state == RUNS && starved.cpu == home))
		scx_bpf_kick_cpu(home, SCX_KICK_PREEMPT);
}

enum picked { NONE_FITS, PICKED, GOES_ON, CHANGED };

/* At whatever time. */
#define ANY (~0ULL)

static __always_inline bool fits(struct task_struct *p, u32 cpu, int ceiling)
{
	return (int)class_of(slot_in(task_of(p))) <= ceiling && may_go_to(p, cpu);
}

/* Takes the first of a queue that fits, is before a virtual time, and waits since some time. */
__noinline int pick(u32 from, u32 cpu, u64 before, u64 since)
{
	struct view *view = bpf_map_lookup_elem(&views, &cpu);
	u32 looks = READ_ONCE(nothing), least = queues[AT(from)].least, own = words[AT(cpu)] != 0;
	struct task_struct *p;
	int found = NONE_FITS;

	if (!view || (least && (int)least - 1 > view->ceiling))
		return NONE_FITS;
	bpf_for_each(scx_dsq, p, from, 0) {
		struct cosched_task *task = task_of(p);

		if (looks++ >= LOOKS || p->scx.dsq_vtime >= before)
			break;
		if (!fits(p, cpu, view->ceiling) || (task && task->queued_at > since))
			continue;
		if (!seat(cpu, class_of(slot_in(task)) + 1, true, view->version)) {
			found = CHANGED;
			break;
		}
		/* One of its own queue was counted there; whoever has the CPU comes into it. */
		scx_bpf_dsq_move_set_slice(&___it, slice_of(scx_bpf_dsq_nr_queued(cpu) + 1 + (from != cpu && own)));
		if (scx_bpf_dsq_move(&___it, p, SCX_DSQ_LOCAL, 0)) {
			found = PICKED;
			break;
		}
	}
	return found;
}

/* Takes what waits for others, where at least so many do. To even out queues only of its memory domain, and nobody who has had
 * much more than others of its queue: it would be taken by one CPU after the other, and never pay for that. */
__noinline int take_over(u32 cpu, s32 least, u32 evens_out)
{
	int found = NONE_FITS;
	u32 step;

	EACH(step, config.cpus) {
		u32 other = cpu + step;

		if (other >= config.cpus)
			other -= config.cpus;
		if (other == cpu || other >= COSCHED_CPUS || (evens_out && domain_of(other) != domain_of(cpu)) ||
		    scx_bpf_dsq_nr_queued(other) < least)
			continue;
		found = pick(other, cpu, evens_out ? queues[AT(other)].vtime + MOST_AHEAD : ANY, ANY);
		if (found != NONE_FITS)
			break;
	}
	return found;
}

/* Looks at the first of a queue that fits on a CPU: since when it waits, and its virtual time. */
__noinline int look_at_first(u32 from, u32 cpu)
{
	struct view *view = bpf_map_lookup_elem(&views, &cpu);
	u32 looks = READ_ONCE(nothing), least = queues[AT(from)].least;
	struct task_struct *p;

	if (!view)
		return 0;
	view->first_since = ANY;
	view->first_vtime = ANY;
	/* The paper's rule for idle CPUs. */
	if (least && (int)least - 1 > view->ceiling)
		return 0;
	bpf_for_each(scx_dsq, p, from, 0) {
		struct cosched_task *task = task_of(p);

		if (looks++ >= LOOKS)
			break;
		if (!task || !fits(p, cpu, view->ceiling))
			continue;
		view->first_since = task->queued_at;
		view->first_vtime = p->scx.dsq_vtime;
		break;
	}
	return 0;
}

/* The CPU of the memory domain that runs nothing of the batch, and of which the first that would fit on another CPU has waited
 * longest, since some time at the least; that CPU itself if there is none. */
__noinline u32 overlooked(u32 cpu, u64 since)
{
	struct view *view = bpf_map_lookup_elem(&views, &cpu);
	u32 other, best = cpu;

	if (!view)
		return cpu;
	EACH(other, config.cpus) {
		if (other == cpu || other >= COSCHED_CPUS || words[AT(other)] || domain_of(other) != domain_of(cpu) ||
		    scx_bpf_dsq_nr_queued(other) <= 0)
			continue;
		look_at_first(other, cpu);
		if (view->first_since <= since) {
			since = view->first_since;
			best = other;
		}
	}
	view->longest = since;
	return best;
}

/* How a CPU chooses. */
enum {
	/* Whoever has it does not lose it since the load was changed meanwhile. */
	IN_ANY_CASE = 1,
	/* It has gone on with it before. */
	WENT_ON = 2,
};

/*
 * What a CPU does next: it takes somebody who waits, or the process that has it goes on, whose class and one is `word`, whose
 * virtual time is `before`, and which has it since some time; with 0 it has none of the batch. CHANGED says that somebody fits and
 * the load was changed meanwhile.
 *
 * Who waits for a CPU that stays idle, since the bus is full, waits for whoever fills the bus. Its own queue stands still, so no
 * order of virtual time is between the two. If it fits here, in the place of whoever had this CPU, the one comes first that has
 * waited for longer: it, or the first of this queue. But who has just woken, and is far behind, has this CPU.
 */
__noinline int choose(u32 cpu, u32 word, u64 before, u64 since, u32 how)
{
	struct view *view = bpf_map_lookup_elem(&views, &cpu);
	bool may_stay, must_decide;
	u64 longest;
	int found;
	u32 other;

	if (!view)
		return NONE_FITS;
	view->ceiling = threshold(cpu);
	if (view->ceiling == BUS_NOTHING)
		return NONE_FITS;
	may_stay = word && (int)word - 1 <= view->ceiling;
	must_decide = may_stay && (how & IN_ANY_CASE);
	other = overlooked(cpu, since);
	longest = view->longest;
	if (other != cpu) {
		look_at_first(cpu, cpu);
		if (view->first_since >= longest &&
		    !(may_stay && view->first_since > since && view->first_vtime < before - WAKEUP_GRANULARITY)) {
			found = pick(other, cpu, ANY, longest);
			if (found == PICKED || (found == CHANGED && !must_decide))
				return found;
		}
	}
	found = pick(cpu, cpu, may_stay ? before : ANY, ANY);
	if (found == PICKED || (found == CHANGED && !must_decide))
		return found;
	if (!may_stay)
		return take_over(cpu, 1, false);
	if (other != cpu)
		found = pick(other, cpu, ANY, longest);
	else
		/* Queues are evened out. */
		found = take_over(cpu, scx_bpf_dsq_nr_queued(cpu) + (how & WENT_ON ? 1 : 2), true);
	if (found == PICKED || (found == CHANGED && !must_decide))
		return found;
	return seat(cpu, word, !must_decide, view->version) ? GOES_ON : CHANGED;
}

/* Takes whatever waits, where the bus does not decide. */
__noinline int take_any(u32 cpu)
{
	u32 step;

	EACH(step, config.cpus) {
		u32 other = cpu + step;

		if (other >= config.cpus)
			other -= config.cpus;
		if (move_to_local(other))
			return true;
	}
	return false;
}

SEC("struct_ops/cosched_dispatch")
void BPF_PROG(cosched_dispatch, s32 number, struct task_struct *prev)
{
	u32 cpu = BELOW(number, COSCHED_CPUS), had = COSCHED_NONE, word = 0, try, old = words[AT(cpu)];
	struct cosched_task *task = 0;
	/* Where nobody has the CPU: one that comes from an idle CPU before those that wait here has waited for a period. */
	u64 now = bpf_ktime_get_ns(), before = 0, since = now - PERIOD;
	u32 how = 0;
	bool is_ours;

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
		if (take_any(cpu))
			return;
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
	if (is_ours && task) {
		word = class_of(had) + 1;
		before = prev->scx.dsq_vtime + charged(task, used_by(task, now));
		since = task->ran_at;
		how = task->went_on ? WENT_ON : 0;
	}
	for (try = READ_ONCE(nothing); try < TRIES && MAY_GO_ON; try++) {
		/* Who has the CPU does not lose it to the last of several changes. */
		int found = choose(cpu, word, before, since, how | (try + 1 == TRIES ? IN_ANY_CASE : 0));

		if (found == GOES_ON && word) {
			/* The time of the queue goes on with it: whoever comes has no precedence for what it has had meanwhile. */
			prev->scx.slice = slice_of(scx_bpf_dsq_nr_queued(cpu) + 1);
			prev->scx.dsq_vtime = before;
			task->ran_at = now;
			task->went_on = 1;
			if (queues[AT(cpu)].vtime < before)
				queues[AT(cpu)].vtime = before;
		}
		if (found == GOES_ON || found == PICKED) {
			/* There may be room for more: the next one looks, and that is not this one. */
			cpus[AT(cpu)].is_idle = 0;
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
	bool came;

	if (task && slot < COSCHED_SLOTS && in_force && !is_free(slot)) {
		word = class_of(slot) + 1;
		home = BELOW(task->home - 1, COSCHED_CPUS);
		came = task->home && home != cpu;
		if (came)
			p->scx.dsq_vtime += queues[cpu].vtime - queues[home].vtime;
		task->home = cpu + 1;
		/* One that came before its time does not take the others' time forward. */
		if (queues[cpu].vtime < p->scx.dsq_vtime && !(came && scx_bpf_dsq_nr_queued(cpu) > 0))
			queues[cpu].vtime = p->scx.dsq_vtime;
	} else if (others_vtime < p->scx.dsq_vtime) {
		others_vtime = p->scx.dsq_vtime;
	}
	if (task) {
		task->ran_at = now;
		task->queued_at = 0;
		task->went_on = 0;
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

/* Looks which class is the least of each queue. */
__noinline int look_for_least(void)
{
	u32 cpu;

	EACH(cpu, config.cpus) {
		u32 looks = READ_ONCE(nothing), least = 0;
		struct task_struct *p;

		if (cpu >= COSCHED_CPUS || scx_bpf_dsq_nr_queued(cpu) <= 0)
			continue;
		bpf_rcu_read_lock();
		bpf_for_each(scx_dsq, p, cpu, 0) {
			u32 word = class_of(slot_in(task_of(p))) + 1;

			/* Whoever was not looked at may be less. */
			if (looks++ >= LOOKS) {
				least = 0;
				break;
			}
			if (!least || word < least)
				least = word;
		}
		bpf_rcu_read_unlock();
		queues[AT(cpu)].least = least;
	}
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

/* For how many ticks a CPU has been counted for one that is not there. */
u8 absent[COSCHED_CPUS];

/* After a process was chosen an ordinary one may take the CPU before it has come. It does not count then until it runs. */
__noinline int look_for_absent(void)
{
	u32 cpu;

	EACH(cpu, config.cpus) {
		u32 at = AT(cpu);

		absent[at] = words[at] && cpus[at].slot >= COSCHED_SLOTS ? absent[at] + 1 : 0;
		if (absent[at] > 1)
			nobody(at);
	}
	return 0;
}

static int tick(void *map, u32 *key, struct bpf_timer *timer)
{
	if (in_force) {
		look_for_absent();
		look_for_starved(bpf_ktime_get_ns());
		look_for_least();
	}
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
