// SPDX-License-Identifier: GPL-2.0-only
/* The counters of the memory controller, a PMU named uncore_imc_0, and the energy of the package as RAPL shows it. */
#include <linux/module.h>
#include <linux/perf_event.h>
#include <linux/powercap.h>
#include "law.h"

/* Events and unit masks of the commands that read and write lines. */
#define CAS_READS 0x0304
#define CAS_WRITES 0x0c04

static struct pmu imc;

static int imc_init(struct perf_event *event)
{
	if (event->attr.type != imc.type)
		return -ENOENT;
	if (is_sampling_event(event) || event->cpu < 0)
		return -EINVAL;
	switch (event->attr.config) {
	case CAS_READS:
		event->hw.config = READS;
		break;
	case CAS_WRITES:
		event->hw.config = WRITES;
		break;
	default:
		return -EINVAL;
	}
	event->cpu = 0;
	return 0;
}

static u64 lines(enum event of)
{
	unsigned long flags;
	u64 sum = 0;
	int cpu;

	raw_spin_lock_irqsave(&state_lock, flags);
	advance();
	for (cpu = 0; cpu < MAX_CPUS; cpu++)
		sum += counted(cpu, of);
	raw_spin_unlock_irqrestore(&state_lock, flags);
	return sum;
}

static void imc_read(struct perf_event *event)
{
	u64 now = lines(event->hw.config);

	local64_add(now - local64_xchg(&event->hw.prev_count, now), &event->count);
}

static void imc_start(struct perf_event *event, int flags)
{
	local64_set(&event->hw.prev_count, lines(event->hw.config));
}

static void imc_stop(struct perf_event *event, int flags)
{
	imc_read(event);
}

static int imc_add(struct perf_event *event, int flags)
{
	imc_start(event, flags);
	return 0;
}

PMU_FORMAT_ATTR(event, "config:0-7");
PMU_FORMAT_ATTR(umask, "config:8-15");
static struct attribute *formats[] = { &format_attr_event.attr, &format_attr_umask.attr, NULL };

PMU_EVENT_ATTR_STRING(cas_count_read, reads_attr, "event=0x04,umask=0x03");
PMU_EVENT_ATTR_STRING(cas_count_read.scale, reads_scale_attr, "6.103515625e-5");
PMU_EVENT_ATTR_STRING(cas_count_read.unit, reads_unit_attr, "MiB");
PMU_EVENT_ATTR_STRING(cas_count_write, writes_attr, "event=0x04,umask=0x0c");
PMU_EVENT_ATTR_STRING(cas_count_write.scale, writes_scale_attr, "6.103515625e-5");
PMU_EVENT_ATTR_STRING(cas_count_write.unit, writes_unit_attr, "MiB");
static struct attribute *events[] = {
	&reads_attr.attr.attr,	&reads_scale_attr.attr.attr,  &reads_unit_attr.attr.attr,
	&writes_attr.attr.attr, &writes_scale_attr.attr.attr, &writes_unit_attr.attr.attr,
	NULL,
};

static ssize_t cpumask_show(struct device *device, struct device_attribute *attribute, char *page)
{
	return sysfs_emit(page, "0\n");
}
static DEVICE_ATTR_RO(cpumask);
static struct attribute *masks[] = { &dev_attr_cpumask.attr, NULL };

static const struct attribute_group format_group = { .name = "format", .attrs = formats };
static const struct attribute_group event_group = { .name = "events", .attrs = events };
static const struct attribute_group mask_group = { .attrs = masks };
static const struct attribute_group *imc_groups[] = { &format_group, &event_group, &mask_group, NULL };

static struct pmu imc = {
	.module = THIS_MODULE,
	.task_ctx_nr = perf_invalid_context,
	.attr_groups = imc_groups,
	.capabilities = PERF_PMU_CAP_NO_INTERRUPT | PERF_PMU_CAP_NO_EXCLUDE,
	.event_init = imc_init,
	.add = imc_add,
	.del = imc_stop,
	.start = imc_start,
	.stop = imc_stop,
	.read = imc_read,
};

/* Energy in microjoules, as the registers of RAPL wrap. */
#define LARGEST 262143328850ULL

static struct powercap_control_type *rapl;
static struct powercap_zone package;

static int get_energy(struct powercap_zone *zone, u64 *microjoules)
{
	unsigned long flags;

	raw_spin_lock_irqsave(&state_lock, flags);
	advance();
	*microjoules = div64_u64(energy_nj(), 1000) % LARGEST;
	raw_spin_unlock_irqrestore(&state_lock, flags);
	return 0;
}

static int get_largest(struct powercap_zone *zone, u64 *microjoules)
{
	*microjoules = LARGEST;
	return 0;
}

static int release_zone(struct powercap_zone *zone)
{
	return 0;
}

static const struct powercap_zone_ops zone_ops = {
	.get_energy_uj = get_energy,
	.get_max_energy_range_uj = get_largest,
	.release = release_zone,
};

/* The kernel asks for them although the zone has no limits. */
static int get_limit(struct powercap_zone *zone, int id, u64 *limit)
{
	return -EOPNOTSUPP;
}

static int set_limit(struct powercap_zone *zone, int id, u64 limit)
{
	return -EOPNOTSUPP;
}

static const struct powercap_zone_constraint_ops limit_ops = {
	.set_power_limit_uw = set_limit,
	.get_power_limit_uw = get_limit,
	.set_time_window_us = set_limit,
	.get_time_window_us = get_limit,
};

static int start_energy(void)
{
	struct powercap_zone *zone;

	rapl = powercap_register_control_type(NULL, "intel-rapl", NULL);
	if (IS_ERR(rapl))
		return PTR_ERR(rapl);
	zone = powercap_register_zone(&package, rapl, "package-0", NULL, &zone_ops, 0, &limit_ops);
	if (!IS_ERR(zone))
		return 0;
	powercap_unregister_control_type(rapl);
	return PTR_ERR(zone);
}

static void stop_energy(void)
{
	powercap_unregister_zone(rapl, &package);
	powercap_unregister_control_type(rapl);
}

int start_chip(void)
{
	int error = start_energy();

	if (error)
		return error;
	error = perf_pmu_register(&imc, "uncore_imc_0", -1);
	if (error)
		stop_energy();
	return error;
}

void stop_chip(void)
{
	perf_pmu_unregister(&imc);
	stop_energy();
}
