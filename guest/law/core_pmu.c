// SPDX-License-Identifier: GPL-2.0-only
/*
 * The counters of the CPUs: a PMU named `cpu`, with the events of Skylake-SP. Groups, rotation, inheritance and permissions are
 * the kernel's own. Its faults are parameters of the module.
 */
#include <linux/module.h>
#include <linux/perf_event.h>
#include "law.h"

int counters = 8;
unsigned int zeros;
int dead;
/* Bits of events that are refused. */
static unsigned int refused;
module_param(refused, uint, 0644);
/* 0: groups are opened, whether they fit or not; 1: those that do not fit are refused; 2: all are. */
static int groups;
module_param(groups, int, 0644);

static DEFINE_PER_CPU(int, used);

static int event_of_hardware(u64 config)
{
	switch (config) {
	case PERF_COUNT_HW_CPU_CYCLES:
		return CYCLES;
	case PERF_COUNT_HW_INSTRUCTIONS:
		return INSTRUCTIONS;
	case PERF_COUNT_HW_CACHE_REFERENCES:
		return LLC;
	case PERF_COUNT_HW_CACHE_MISSES:
		return READS;
	default:
		return -ENOENT;
	}
}

/* An event and its unit mask. */
static int event_of_code(u64 config)
{
	switch (config) {
	case 0x003c:
		return CYCLES;
	case 0x00c0:
		return INSTRUCTIONS;
	case 0x83d0:
		return L1;
	case 0x4f2e:
		return LLC;
	case 0x01b7:
		return READS;
	case 0x01bb:
		return WRITES;
	default:
		return -EINVAL;
	}
}

static int event_of(const struct perf_event_attr *attr)
{
	switch (attr->type) {
	case PERF_TYPE_HARDWARE:
		return event_of_hardware(attr->config);
	case PERF_TYPE_RAW:
		return event_of_code(attr->config & 0xffff);
	default:
		return -ENOENT;
	}
}

/* Whether there are counters for a group with this event in it. */
static bool group_fits(const struct perf_event *event)
{
	const struct perf_event *leader = event->group_leader, *sibling;
	int needed = 1;

	if (leader == event)
		return true;
	if (groups == 2)
		return false;
	if (leader->pmu == event->pmu)
		needed++;
	for_each_sibling_event(sibling, leader)
		if (sibling->pmu == event->pmu)
			needed++;
	return groups == 0 || needed <= counters;
}

static struct pmu core_pmu;

static int core_init(struct perf_event *event)
{
	int what = event_of(&event->attr);

	if (what < 0)
		return what;
	if (is_sampling_event(event))
		return -EOPNOTSUPP;
	if (refused & (1u << what))
		return -ENOENT;
	/* The kernel sets it only after this call. */
	event->pmu = &core_pmu;
	if (!group_fits(event))
		return -EINVAL;
	event->hw.config = what;
	return 0;
}

static u64 now_shown(const struct perf_event *event)
{
	unsigned long flags;
	u64 count;

	raw_spin_lock_irqsave(&state_lock, flags);
	advance();
	count = shown(raw_smp_processor_id(), event->hw.config);
	raw_spin_unlock_irqrestore(&state_lock, flags);
	return count;
}

static void core_read(struct perf_event *event)
{
	u64 now;

	if (event->hw.state & PERF_HES_STOPPED)
		return;
	now = now_shown(event);
	local64_add(now - local64_xchg(&event->hw.prev_count, now), &event->count);
}

static void core_start(struct perf_event *event, int flags)
{
	event->hw.state = 0;
	local64_set(&event->hw.prev_count, now_shown(event));
}

static void core_stop(struct perf_event *event, int flags)
{
	core_read(event);
	event->hw.state = PERF_HES_STOPPED | PERF_HES_UPTODATE;
}

static int core_add(struct perf_event *event, int flags)
{
	if (dead == 1 || this_cpu_read(used) >= counters)
		return -EAGAIN;
	this_cpu_inc(used);
	event->hw.state = PERF_HES_STOPPED | PERF_HES_UPTODATE;
	if (flags & PERF_EF_START)
		core_start(event, flags);
	return 0;
}

static void core_del(struct perf_event *event, int flags)
{
	core_stop(event, flags);
	this_cpu_dec(used);
}

PMU_FORMAT_ATTR(event, "config:0-7");
PMU_FORMAT_ATTR(umask, "config:8-15");
PMU_FORMAT_ATTR(offcore_rsp, "config1:0-63");

static struct attribute *formats[] = {
	&format_attr_event.attr,
	&format_attr_umask.attr,
	&format_attr_offcore_rsp.attr,
	NULL,
};
static const struct attribute_group format_group = { .name = "format", .attrs = formats };
static const struct attribute_group *core_groups[] = { &format_group, NULL };

static struct pmu core_pmu = {
	.module = THIS_MODULE,
	.task_ctx_nr = perf_hw_context,
	.attr_groups = core_groups,
	.capabilities = PERF_PMU_CAP_NO_INTERRUPT,
	.event_init = core_init,
	.add = core_add,
	.del = core_del,
	.start = core_start,
	.stop = core_stop,
	.read = core_read,
};

int start_core_pmu(void)
{
	return perf_pmu_register(&core_pmu, "cpu", PERF_TYPE_RAW);
}

void stop_core_pmu(void)
{
	perf_pmu_unregister(&core_pmu);
}
