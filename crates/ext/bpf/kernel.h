/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The parts of the kernel that the scheduler touches. Members are found by name in the type information of the running
 * kernel (CO-RE), so structures here need neither all members nor their order.
 */
#ifndef COSCHED_KERNEL_H
#define COSCHED_KERNEL_H

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef int s32;
typedef long long s64;
typedef u8 __u8;
typedef u16 __u16;
typedef u32 __u32;
typedef u64 __u64;
typedef s32 __s32;
typedef s64 __s64;
typedef u16 __be16;
typedef u32 __be32;
typedef u32 __wsum;
typedef _Bool bool;
#define true 1
#define false 0

enum {
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PERF_EVENT_ARRAY = 4,
	BPF_MAP_TYPE_RINGBUF = 27,
	BPF_MAP_TYPE_TASK_STORAGE = 29,
	BPF_F_NO_PREALLOC = 1,
	BPF_LOCAL_STORAGE_GET_F_CREATE = 1,
	BPF_RB_NO_WAKEUP = 1,
};

#define PF_EXITING 0x4
#define PF_KTHREAD 0x200000
#define SCHED_FIFO 1
#define SCHED_RR 2
#define SCHED_DEADLINE 6
#define SCHED_EXT 7
#define SCX_DSQ_BUILTIN (1ULL << 63)
#define SCX_DSQ_LOCAL_ON (SCX_DSQ_BUILTIN | 1ULL << 62)
#define SCX_DSQ_GLOBAL (SCX_DSQ_BUILTIN | 1)
#define SCX_DSQ_LOCAL (SCX_DSQ_BUILTIN | 2)
#define SCX_OPS_KEEP_BUILTIN_IDLE (1ULL << 0)
#define SCX_OPS_ENQ_LAST (1ULL << 1)
#define SCX_OPS_SWITCH_PARTIAL (1ULL << 3)
#define SCX_KICK_IDLE (1ULL << 0)
#define SCX_KICK_PREEMPT (1ULL << 1)
#define SCX_ENQ_REENQ (1ULL << 40)
#define SCX_DEQ_SLEEP (1ULL << 0)
#define SCX_TASK_QUEUED 1
#define SCX_DSQ_ITER_REV (1U << 16)
#define CLOCK_MONOTONIC 1

struct cpumask {
	unsigned long bits[1];
};
struct bpf_spin_lock {
	u32 val;
};
struct bpf_perf_event_value {
	u64 counter;
	u64 enabled;
	u64 running;
};
struct bpf_timer {
	u64 __opaque[2];
} __attribute__((aligned(8)));

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct sched_ext_entity {
	u64 slice;
	u64 dsq_vtime;
	u32 weight;
	u32 flags;
};

struct task_struct {
	unsigned int flags;
	unsigned int policy;
	int pid;
	int nr_cpus_allowed;
	unsigned short migration_disabled;
	const struct cpumask *cpus_ptr;
	struct sched_ext_entity scx;
};

struct cfs_rq {
	unsigned int h_nr_runnable;
};
struct rt_rq {
	unsigned int rt_nr_running;
};
struct sched_dl_entity {
	u64 dl_runtime;
};
struct rq {
	struct cfs_rq cfs;
	struct rt_rq rt;
	/* Since Linux 7.1. */
	struct sched_dl_entity ext_server;
};

enum scx_exit_kind { SCX_EXIT_NONE };

struct scx_exit_info {
	enum scx_exit_kind kind;
	s64 exit_code;
	const char *reason;
	char *msg;
};

struct scx_init_task_args {
	bool fork;
};

struct scx_cpu_release_args;
struct scx_cpu_acquire_args;
struct scx_exit_task_args;

#pragma clang attribute pop

struct sched_ext_ops {
	s32 (*select_cpu)(struct task_struct *p, s32 prev_cpu, u64 wake_flags);
	void (*enqueue)(struct task_struct *p, u64 enq_flags);
	void (*dispatch)(s32 cpu, struct task_struct *prev);
	void (*runnable)(struct task_struct *p, u64 enq_flags);
	void (*running)(struct task_struct *p);
	void (*stopping)(struct task_struct *p, bool runnable);
	void (*quiescent)(struct task_struct *p, u64 deq_flags);
	void (*set_weight)(struct task_struct *p, u32 weight);
	void (*update_idle)(s32 cpu, bool idle);
	void (*cpu_release)(s32 cpu, struct scx_cpu_release_args *args);
	s32 (*init_task)(struct task_struct *p, struct scx_init_task_args *args);
	void (*disable)(struct task_struct *p);
	s32 (*init)(void);
	void (*exit)(struct scx_exit_info *ei);
	u64 flags;
	u32 timeout_ms;
	char name[128];
};

struct bpf_iter_scx_dsq {
	u64 __opaque[6];
} __attribute__((aligned(8)));

struct bpf_iter_num {
	u64 __opaque[1];
} __attribute__((aligned(8)));

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>

/* What a program needs of the scheduler. One that is loaded without it says so. */
#ifdef COSCHED_ALONE
#define __needed __ksym __weak
#else
#define __needed __ksym
#endif

/* The first since Linux 6.18, where the second is no longer to be used. */
extern struct rq *scx_bpf_locked_rq(void) __ksym __weak;
extern struct rq *scx_bpf_cpu_rq(s32 cpu) __ksym __weak;

extern int bpf_iter_num_new(struct bpf_iter_num *it, int start, int end) __ksym;
extern int *bpf_iter_num_next(struct bpf_iter_num *it) __ksym;
extern void bpf_iter_num_destroy(struct bpf_iter_num *it) __ksym;

extern void bpf_rcu_read_lock(void) __ksym;
extern void bpf_rcu_read_unlock(void) __ksym;

extern s32 scx_bpf_create_dsq(u64 dsq_id, s32 node) __needed;
extern s32 scx_bpf_dsq_nr_queued(u64 dsq_id) __needed;
extern void scx_bpf_kick_cpu(s32 cpu, u64 flags) __needed;
extern bool scx_bpf_test_and_clear_cpu_idle(s32 cpu) __needed;
extern s32 scx_bpf_task_cpu(const struct task_struct *p) __needed;
extern void scx_bpf_reenqueue_local(void) __ksym __weak;
extern int bpf_iter_scx_dsq_new(struct bpf_iter_scx_dsq *it, u64 dsq_id, u64 flags) __needed;
extern struct task_struct *bpf_iter_scx_dsq_next(struct bpf_iter_scx_dsq *it) __needed;
extern void bpf_iter_scx_dsq_destroy(struct bpf_iter_scx_dsq *it) __needed;
extern void scx_bpf_dsq_move_set_slice(struct bpf_iter_scx_dsq *it__iter, u64 slice) __needed;
extern bool scx_bpf_dsq_move(struct bpf_iter_scx_dsq *it__iter, struct task_struct *p, u64 dsq_id, u64 enq_flags) __needed;
extern struct task_struct *bpf_task_from_pid(s32 pid) __ksym;
extern void bpf_task_release(struct task_struct *p) __ksym;
extern bool bpf_cpumask_test_cpu(u32 cpu, const struct cpumask *cpumask) __ksym;
extern u32 bpf_cpumask_first(const struct cpumask *cpumask) __ksym;

#define READ_ONCE(x) (*(volatile typeof(x) *)&(x))
/* Since Linux 6.19 the first of these returns whether it did. libbpf takes what is behind three underlines for no part of
 * the name. */
extern void scx_bpf_dsq_insert___void(struct task_struct *p, u64 dsq_id, u64 slice, u64 enq_flags) __ksym __weak;
extern bool scx_bpf_dsq_insert___bool(struct task_struct *p, u64 dsq_id, u64 slice, u64 enq_flags) __ksym __weak;
extern void scx_bpf_dsq_insert_vtime(struct task_struct *p, u64 dsq_id, u64 slice, u64 vtime, u64 enq_flags) __ksym __weak;
/* Since Linux 7.1 with flags. */
extern bool scx_bpf_dsq_move_to_local___plain(u64 dsq_id) __ksym __weak;
extern bool scx_bpf_dsq_move_to_local___flags(u64 dsq_id, u64 enq_flags) __ksym __weak;

#define insert(p, dsq, slice, flags)                                                                                   \
	(bpf_ksym_exists(scx_bpf_dsq_insert___bool) ? (void)scx_bpf_dsq_insert___bool(p, dsq, slice, flags)                \
						    : scx_bpf_dsq_insert___void(p, dsq, slice, flags))
#define insert_by_vtime(p, dsq, slice, vtime, flags) scx_bpf_dsq_insert_vtime(p, dsq, slice, vtime, flags)
#ifdef COSCHED_ALONE
/* The queue with this number has a process, and no other has one. */
u32 only_queue = 0xffff;
#define move_to_local(dsq) ((dsq) == READ_ONCE(only_queue))
#else
#define move_to_local(dsq)                                                                                             \
	(bpf_ksym_exists(scx_bpf_dsq_move_to_local___flags) ? scx_bpf_dsq_move_to_local___flags(dsq, 0)                    \
							    : scx_bpf_dsq_move_to_local___plain(dsq))
#endif

/* An index that the verifier sees to be below `n`, a power of two: the compiler must not move the check away. */
#define BELOW(x, n)                                                                                                    \
	({                                                                                                             \
		u32 __x = (x);                                                                                         \
		asm volatile("" : "+r"(__x));                                                                          \
		__x & ((n) - 1);                                                                                       \
	})
/* Whether a loop may go on. The kernel ends one that takes too long, so the verifier need not follow each of its turns. It is no
 * call, so that it can stand under a lock. */
#define MAY_GO_ON                                                                                                      \
	({                                                                                                             \
		__label__ stop;                                                                                        \
		bool __on = true;                                                                                      \
		asm volatile goto("may_goto %l[stop]" : : : : stop);                                                   \
		if (0) {                                                                                               \
		stop:                                                                                                  \
			__on = false;                                                                                  \
		}                                                                                                      \
		__on;                                                                                                  \
	})
#define EACH(i, n) bpf_for(i, 0, n)

#endif
