/* SPDX-License-Identifier: GPL-2.0-only */
/* What both schedulers have: the processes of jobs, their slots, and the news for user space. */
#ifndef COSCHED_COMMON_H
#define COSCHED_COMMON_H

#include "kernel.h"
#include "intf.h"

/* How long a process runs before another one of its job has a turn on the same CPU. */
#define SLICE (5 * 1000 * 1000ULL)
/* A process of the batch that the plan does not name is let run for so long, so that the kernel does not take it for lost. */
#define RESCUE_SLICE (1000 * 1000ULL)

/* User space writes it before the program is loaded. */
const volatile struct cosched_config config SEC(".rodata.config") = {};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct cosched_task);
} tasks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, COSCHED_SLOTS);
	__type(key, u32);
	__type(value, struct cosched_wish);
} wishes SEC(".maps");

/* Processes of each slot that left the scheduler by choosing a policy of their own. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, COSCHED_SLOTS);
	__type(key, u32);
	__type(value, u32);
} escapes SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct cosched_residency);
} answers SEC(".maps");

/* Why the scheduler was removed. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct cosched_exit);
} exits SEC(".maps");

/* Something is written into it when there is an exit, so that user space can wait for that. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} bell SEC(".maps");

static __always_inline struct cosched_task *task_of(struct task_struct *p)
{
	return bpf_task_storage_get(&tasks, p, 0, 0);
}

/* The slot of a process; COSCHED_NONE if it is no process of the batch. */
static __always_inline u32 slot_in(const struct cosched_task *task)
{
	return task && task->slot < COSCHED_SLOTS ? task->slot : COSCHED_NONE;
}

static __always_inline struct cosched_wish *wish_of(u32 slot)
{
	return bpf_map_lookup_elem(&wishes, &slot);
}

/* A new process belongs to the job of the one that made it. */
static __always_inline s32 inherit(struct task_struct *p, bool fork)
{
	struct cosched_task *from, *to;

	if (!fork)
		return 0;
	from = task_of(bpf_get_current_task_btf());
	if (!from)
		return 0;
	to = bpf_task_storage_get(&tasks, p, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!to)
		return -12; /* ENOMEM */
	to->slot = from->slot;
	to->counts = from->counts;
	return 0;
}

/* The time on its CPU since it began, or since it was last charged for it. */
static __always_inline u64 used_by(const struct cosched_task *task, u64 now)
{
	return task->ran_at && now > task->ran_at ? now - task->ran_at : 0;
}

/* A process that leaves, and not because it or the scheduler ends, has chosen a policy of its own. */
static __always_inline void note_escape(struct task_struct *p)
{
	u32 slot = slot_in(task_of(p));
	u32 *count, policy = p->policy;
	bool chose;

	chose = config.takes_all ? policy == SCHED_FIFO || policy == SCHED_RR || policy == SCHED_DEADLINE : policy != SCHED_EXT;
	if (slot == COSCHED_NONE || !chose || p->flags & PF_EXITING)
		return;
	count = bpf_map_lookup_elem(&escapes, &slot);
	if (count)
		__sync_fetch_and_add(count, 1);
}

/* The scheduler was removed. What it counts goes on. */
u32 is_gone;

static __always_inline void tell_exit(struct scx_exit_info *ei)
{
	u32 zero = 0;
	struct cosched_exit *told = bpf_map_lookup_elem(&exits, &zero);

	is_gone = 1;
	if (!told)
		return;
	told->code = BPF_CORE_READ(ei, exit_code);
	bpf_probe_read_kernel_str(told->reason, sizeof(told->reason), BPF_CORE_READ(ei, reason));
	bpf_probe_read_kernel_str(told->message, sizeof(told->message), BPF_CORE_READ(ei, msg));
	told->kind = BPF_CORE_READ(ei, kind);
	bpf_ringbuf_output(&bell, &zero, sizeof(zero), 0);
}

#endif
