/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Plan mode: user space decides, and this carries it out at every event.
 *
 * Each slot has a queue. The slot that a CPU's seat belongs to has that CPU. While it does not need it, because its
 * processes sleep or the seat's time is up, the first filler of the plan that wants a CPU has it, and gives it back when the
 * slot wakes. What has no seat and fills nothing waits in its queue: it is runnable, so nothing is ever stopped.
 *
 * Two plans stand side by side. User space writes the one that is not in force and then calls cosched_install.
 */
#include "shared.h"

char LICENSE[] SEC("license") = "GPL";

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 2);
	__type(key, u32);
	__type(value, struct cosched_plan);
} plans SEC(".maps");

/* Which plan is in force; 2 for none: then all run as they come. */
u32 in_force = 2;

struct turn {
	/* Virtual time of the queue: that of the process that began last. */
	u64 vtime;
};
struct turn turns[COSCHED_SLOTS + 1];

u32 spare_turn;

static __always_inline struct cosched_plan *plan_in_force(void)
{
	u32 which = in_force;

	return bpf_map_lookup_elem(&plans, &which);
}

static __always_inline bool in_mask(const struct cosched_plan *plan, u32 mask, u32 cpu)
{
	if (mask >= COSCHED_MASKS || cpu >= COSCHED_CPUS)
		return mask == COSCHED_NONE;
	return plan->masks[BELOW(mask, COSCHED_MASKS)].words[BELOW(cpu / 64, COSCHED_WORDS)] >> (cpu % 64) & 1;
}

static __always_inline bool is_owner(const struct cosched_seat *seat, u32 slot, u64 now)
{
	return slot < COSCHED_SLOTS && seat->slot == slot && (!seat->until || now < seat->until);
}

/* Whether a slot other than the seat's own may have this CPU now. */
static __always_inline bool is_open(const struct cosched_seat *seat, u64 now)
{
	if (!(seat->flags & COSCHED_SEAT_FILL))
		return false;
	return seat->slot >= COSCHED_SLOTS || (seat->until && now >= seat->until) ||
	       scx_bpf_dsq_nr_queued(seat->slot) == 0;
}

/* Wakes an idle CPU, also one that is about to be idle, or has another slot leave it. */
static __always_inline void call(u32 cpu, u32 slot)
{
	if (cpu >= COSCHED_CPUS)
		return;
	if (cpus[cpu].slot < COSCHED_SLOTS && cpus[cpu].slot != slot)
		scx_bpf_kick_cpu(cpu, SCX_KICK_PREEMPT);
	else
		scx_bpf_kick_cpu(cpu, SCX_KICK_IDLE);
}

/* Wakes an idle CPU for a process of a slot that is not that slot's own. */
static __always_inline bool call_idle(struct cosched_plan *plan, struct task_struct *p, bool fills, bool spare, u32 mask)
{
	u64 now = bpf_ktime_get_ns();
	u32 cpu;

	EACH(cpu, config.cpus) {
		struct cosched_seat *seat;

		if (cpu >= COSCHED_CPUS)
			break;
		seat = &plan->seats[cpu];
		if (!cpus[cpu].is_idle || !may_use(p, cpu) || !in_mask(plan, mask, cpu))
			continue;
		if ((fills && is_open(seat, now)) || (spare && seat->flags & COSCHED_SEAT_SPARE)) {
			scx_bpf_kick_cpu(cpu, SCX_KICK_IDLE);
			return true;
		}
	}
	return false;
}

/* Puts a process into a queue. Whoever slept has no more than a slice of precedence, and whoever comes from another queue no
 * less than its due. */
static __always_inline void queue_up(struct task_struct *p, u32 queue, u64 enq_flags)
{
	u64 vtime = p->scx.dsq_vtime, base, most = queue == OTHERS ? MOST_DEBT_OF_OTHERS : MOST_DEBT;

	if (queue > OTHERS)
		return;
	base = turns[queue].vtime;
	if (vtime + SLICE < base)
		vtime = base - SLICE;
	else if (vtime > base + most)
		vtime = base + most;
	insert_by_vtime(p, queue, SLICE, vtime, enq_flags);
}

SEC("struct_ops/cosched_select_cpu")
s32 BPF_PROG(cosched_select_cpu, struct task_struct *p, s32 prev, u64 wake_flags)
{
	u32 slot = slot_in(task_of(p)), cpu;
	struct cosched_plan *plan = plan_in_force();
	u64 now = bpf_ktime_get_ns();

	if (slot == COSCHED_NONE || !plan || is_free(slot)) {
		if (scx_bpf_test_and_clear_cpu_idle(prev))
			insert(p, SCX_DSQ_LOCAL, SLICE, 0);
		return prev;
	}
	cpu = plan->places[slot].cpu;
	/* Where it was there is the least to fetch. */
	if (cpu >= COSCHED_CPUS && prev >= 0 && in_mask(plan, plan->places[slot].mask, prev))
		cpu = prev;
	if (cpu >= COSCHED_CPUS || !may_use(p, cpu))
		return prev;
	if (is_owner(&plan->seats[cpu], slot, now) && scx_bpf_test_and_clear_cpu_idle(cpu))
		insert(p, SCX_DSQ_LOCAL, SLICE, 0);
	return cpu;
}

SEC("struct_ops/cosched_enqueue")
void BPF_PROG(cosched_enqueue, struct task_struct *p, u64 enq_flags)
{
	struct cosched_task *task = task_of(p);
	struct cosched_plan *plan = plan_in_force();
	u32 slot = slot_in(task), place_cpu, mask, cpu, fillers, i;
	u64 now = bpf_ktime_get_ns();

	if (slot == COSCHED_NONE || !plan || is_free(slot)) {
		if (serves_cpu(p)) {
			insert(p, SCX_DSQ_LOCAL, SLICE, enq_flags);
			return;
		}
		has_others = 1;
		queue_up(p, OTHERS, enq_flags);
		call_for_other(p);
		return;
	}
	if (task && !task->queued_at)
		task->queued_at = now;
	queue_up(p, slot, enq_flags);

	place_cpu = plan->places[slot].cpu;
	mask = plan->places[slot].mask;
	if (place_cpu < COSCHED_CPUS) {
		if (is_owner(&plan->seats[place_cpu], slot, now))
			call(place_cpu, slot);
	} else if (mask < COSCHED_MASKS) {
		/* One of its CPUs, rather an idle one. */
		u32 other = COSCHED_NONE;

		EACH(cpu, config.cpus) {
			if (cpu >= COSCHED_CPUS)
				break;
			if (!in_mask(plan, mask, cpu) || !may_use(p, cpu) || cpus[cpu].slot == slot)
				continue;
			other = cpu;
			if (cpus[cpu].is_idle)
				break;
		}
		call(other, slot);
	}
	if (plan->places[slot].loose && call_idle(plan, p, false, true, COSCHED_NONE))
		return;
	fillers = plan->fillers;
	EACH(i, fillers) {
		if (i >= COSCHED_SLOTS)
			break;
		if (plan->filler[i].slot == slot) {
			call_idle(plan, p, true, false, plan->filler[i].mask);
			break;
		}
	}
}

/* Charges a process for the time since it was last charged. */
static __always_inline void charge(struct task_struct *p, struct cosched_task *task, u64 used)
{
	p->scx.dsq_vtime += used * 100 / (p->scx.weight ?: 100);
	if (task)
		task->ran_at = bpf_ktime_get_ns();
}

/* Nobody else of its slot wants the CPU. The time of its queue goes on with it, so that whoever comes has no precedence for what
 * it has had meanwhile. */
static __always_inline void keeps(struct task_struct *prev, u32 slot, u64 now)
{
	struct cosched_task *task = task_of(prev);
	u32 at = BELOW(slot, COSCHED_SLOTS);

	if (task)
		charge(prev, task, used_by(task, now));
	if (turns[at].vtime < prev->scx.dsq_vtime)
		turns[at].vtime = prev->scx.dsq_vtime;
	go_on(prev);
}

/* What a CPU runs next. */
static __always_inline void choose(u32 cpu, struct task_struct *prev)
{
	struct cosched_plan *plan = plan_in_force();
	u32 had = COSCHED_NONE, i, count, first;
	struct cosched_seat *seat;
	u64 now;

	/* One that sleeps does not go on. */
	if (prev && !(prev->scx.flags & SCX_TASK_QUEUED))
		prev = 0;
	if (prev)
		had = slot_in(task_of(prev));
	if (others_come_first(cpu))
		return;
	/* They and the batch take turns. */
	if (has_others && !others_turn[cpu] && move_to_local(OTHERS)) {
		others_turn[cpu] = 1;
		return;
	}
	others_turn[cpu] = 0;
	if (!plan)
		goto others;
	now = bpf_ktime_get_ns();
	seat = &plan->seats[cpu];
	if (seat->slot < COSCHED_SLOTS && is_owner(seat, seat->slot, now)) {
		if (move_to_local(seat->slot))
			return;
		if (prev && had == seat->slot) {
			keeps(prev, had, now);
			return;
		}
	}
	if (seat->flags & COSCHED_SEAT_FILL) {
		count = plan->fillers;
		EACH(i, count) {
			u32 slot;

			if (i >= COSCHED_SLOTS)
				break;
			slot = plan->filler[i].slot;
			if (slot >= COSCHED_SLOTS || !in_mask(plan, plan->filler[i].mask, cpu))
				continue;
			/* A filler has one CPU. */
			if (presences[slot].cpus && cpus[cpu].slot != slot)
				continue;
			if (move_to_local(slot))
				return;
			if (prev && had == slot) {
				keeps(prev, slot, now);
				return;
			}
		}
	}
	if (seat->flags & COSCHED_SEAT_SPARE) {
		count = plan->loose;
		/* All have a turn. */
		first = __sync_fetch_and_add(&spare_turn, 1);
		EACH(i, count) {
			u32 at = BELOW((first + i) % (count ?: 1), COSCHED_SLOTS), slot;

			slot = plan->spare[at].slot;
			if (slot >= COSCHED_SLOTS || !in_mask(plan, plan->spare[at].mask, cpu))
				continue;
			if (move_to_local(slot))
				return;
			if (prev && had == slot) {
				keeps(prev, slot, now);
				return;
			}
		}
	}
others:
	if (has_others && move_to_local(OTHERS)) {
		others_turn[cpu] = 1;
		return;
	}
	if (prev && (had == COSCHED_NONE || !plan || is_free(had)))
		go_on(prev);
	else
		rests(cpu);
}

SEC("struct_ops/cosched_dispatch")
void BPF_PROG(cosched_dispatch, s32 number, struct task_struct *prev)
{
	choose(BELOW(number, COSCHED_CPUS), prev);
}

SEC("struct_ops/cosched_running")
void BPF_PROG(cosched_running, struct task_struct *p)
{
	struct cosched_task *task = task_of(p);
	u32 slot = slot_in(task), queue = slot < COSCHED_SLOTS && !is_free(slot) ? slot : OTHERS;
	u32 cpu = BELOW(scx_bpf_task_cpu(p), COSCHED_CPUS);
	u64 now = bpf_ktime_get_ns();

	if (task) {
		task->ran_at = now;
		task->queued_at = 0;
	}
	cpus[cpu].is_idle = 0;
	cpus[cpu].pid = p->pid;
	if (queue <= OTHERS && turns[queue].vtime < p->scx.dsq_vtime)
		turns[queue].vtime = p->scx.dsq_vtime;
	if (cpus[cpu].slot != slot)
		change(cpu, slot, now);
}

SEC("struct_ops/cosched_stopping")
void BPF_PROG(cosched_stopping, struct task_struct *p, bool runnable)
{
	struct cosched_task *task = task_of(p);
	u32 cpu = BELOW(scx_bpf_task_cpu(p), COSCHED_CPUS);
	u64 now = bpf_ktime_get_ns(), left = p->scx.slice, used = left < SLICE ? SLICE - left : 0;

	/* One load for two kinds of pointer would be refused. */
	asm volatile("" : "+r"(used));
	if (task)
		used = used_by(task, now);
	charge(p, task, used);
	cpus[cpu].stopped_at = now;
}

static __always_inline void vacate(u32 cpu)
{
	leave(cpu);
}

/* User space measures. */
static __always_inline void has_moved(u32 cpu, u32 who, u64 span, u64 lines, u32 next)
{
}

static __always_inline void forget_slot(u32 slot)
{
}

SEC("struct_ops/cosched_update_idle")
void BPF_PROG(cosched_update_idle, s32 number, bool idle)
{
	u32 cpu = BELOW(number, COSCHED_CPUS);

	cpus[cpu].is_idle = idle;
	if (idle)
		leave(cpu);
}

SEC("struct_ops/cosched_cpu_release")
void BPF_PROG(cosched_cpu_release, s32 cpu, struct scx_cpu_release_args *args)
{
	cpus[BELOW(cpu, COSCHED_CPUS)].is_idle = 0;
	leave(BELOW(cpu, COSCHED_CPUS));
	/* What stands in the queue of this CPU can run elsewhere. */
	if (bpf_ksym_exists(scx_bpf_reenqueue_local))
		scx_bpf_reenqueue_local();
}

SEC("struct_ops.s/cosched_init")
s32 BPF_PROG(cosched_init)
{
	return make_queues(config.slots);
}

/* Calls the CPUs without a process of the batch for which there is one; with `changes`, also those of which the plan says that
 * another slot has them. */
static __always_inline void call_cpus(struct cosched_plan *plan, bool changes)
{
	bool fillers_wait = false, others_wait = scx_bpf_dsq_nr_queued(OTHERS) > 0;
	u32 cpu, i, fillers = plan->fillers;

	EACH(i, fillers) {
		if (i >= COSCHED_SLOTS)
			break;
		if (plan->filler[i].slot < COSCHED_SLOTS && scx_bpf_dsq_nr_queued(plan->filler[i].slot) > 0) {
			fillers_wait = true;
			break;
		}
	}
	EACH(cpu, config.cpus) {
		struct cosched_seat *seat;
		u32 has;

		if (cpu >= COSCHED_CPUS)
			break;
		seat = &plan->seats[cpu];
		has = cpus[cpu].slot;
		if (changes && has < COSCHED_SLOTS && has != seat->slot)
			scx_bpf_kick_cpu(cpu, SCX_KICK_PREEMPT);
		else if (has >= COSCHED_SLOTS &&
			 (others_wait ||
			  (seat->slot < COSCHED_SLOTS && scx_bpf_dsq_nr_queued(seat->slot) > 0) ||
			  (fillers_wait && seat->flags & COSCHED_SEAT_FILL) || seat->flags & COSCHED_SEAT_SPARE))
			scx_bpf_kick_cpu(cpu, SCX_KICK_IDLE);
	}
}

/* Puts a plan into force. */
SEC("syscall")
int cosched_install(struct cosched_install *call_)
{
	struct cosched_plan *plan;
	u32 cpu;

	in_force = call_->which;
	plan = plan_in_force();
	if (plan) {
		call_cpus(plan, true);
		return 0;
	}
	/* All run as they come; user space lets those out that are in a queue. */
	EACH(cpu, config.cpus) {
		if (cpu < COSCHED_CPUS && cpus[cpu].slot < COSCHED_SLOTS)
			scx_bpf_kick_cpu(cpu, SCX_KICK_PREEMPT);
	}
	return 0;
}

/* Lets processes of a slot that stand in its queue run anywhere: all of them, or the one that has waited for longer than a
 * time, for a moment. Answers how many. */
static __always_inline u32 let_out(u32 slot, u64 longer_than, u64 slice)
{
	struct task_struct *p;
	u64 now = bpf_ktime_get_ns();
	u32 count = 0;

	bpf_rcu_read_lock();
	bpf_for_each(scx_dsq, p, slot, 0) {
		struct cosched_task *task = task_of(p);
		u32 cpu;

		if (longer_than && (!task || !task->queued_at || now - task->queued_at < longer_than))
			continue;
		cpu = way_out(p);
		scx_bpf_dsq_move_set_slice(&___it, slice);
		if (scx_bpf_dsq_move(&___it, p, SCX_DSQ_LOCAL_ON | cpu, 0)) {
			scx_bpf_kick_cpu(cpu, SCX_KICK_IDLE);
			count++;
		}
	}
	bpf_rcu_read_unlock();
	return count;
}

/* Lets all processes of a slot out of its queue: from now on it is free. */
SEC("syscall")
int cosched_let_out(struct cosched_call *call_)
{
	call_->answer = call_->slot < COSCHED_SLOTS ? let_out(call_->slot, 0, SLICE) : 0;
	return 0;
}

/* Lets those run for a moment that have waited for longer than a span, so that the kernel does not take them for lost; and
 * lets out who came into the queue of a slot that had just become free. Answers in the span how long a slot has waited at
 * most. */
SEC("syscall")
int cosched_rescue(struct cosched_call *call_)
{
	u64 span = call_->span ?: 1, now = bpf_ktime_get_ns(), longest = 0;
	struct cosched_plan *plan = plan_in_force();
	u32 slot, count = 0;

	/* A CPU that was about to be idle when somebody came was not seen as idle. */
	if (plan)
		call_cpus(plan, false);

	EACH(slot, config.slots) {
		u64 waits;

		if (slot >= COSCHED_SLOTS)
			break;
		waits = waits_for(slot, now);
		if (waits > longest)
			longest = waits;
		if (scx_bpf_dsq_nr_queued(slot) <= 0)
			continue;
		if (is_free(slot))
			count += let_out(slot, 0, SLICE);
		else
			count += let_out(slot, span, RESCUE_SLICE);
	}
	call_->answer = count;
	call_->span = longest;
	return 0;
}

SEC(".struct_ops.link")
struct sched_ext_ops cosched_plan =
	OPS(.flags = SCX_OPS_KEEP_BUILTIN_IDLE | SCX_OPS_ENQ_LAST | SCX_OPS_SWITCH_PARTIAL, .name = "cosched_plan");

SEC(".struct_ops.link")
struct sched_ext_ops cosched_plan_all =
	OPS(.flags = SCX_OPS_KEEP_BUILTIN_IDLE | SCX_OPS_ENQ_LAST, .name = "cosched_plan_all");
