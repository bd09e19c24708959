// SPDX-License-Identifier: GPL-2.0-only
/* The module's start, and the parameters that change what it does while it runs. */
#include <linux/module.h>
#include <linux/string.h>
#include "law.h"

static const char *const names[LAWS] = { "bus", "cache", "smt" };

static int set_law(const char *text, const struct kernel_param *param)
{
	int which = __sysfs_match_string(names, LAWS, text);
	unsigned long flags;

	if (which < 0)
		return which;
	raw_spin_lock_irqsave(&state_lock, flags);
	freeze_sums();
	law = which;
	changed_rules();
	raw_spin_unlock_irqrestore(&state_lock, flags);
	return 0;
}

static int get_law(char *page, const struct kernel_param *param)
{
	return sysfs_emit(page, "%s\n", names[law]);
}

static const struct kernel_param_ops law_ops = { .set = set_law, .get = get_law };
module_param_cb(law, &law_ops, NULL, 0644);
MODULE_PARM_DESC(law, "bus, cache or smt");

/* A fault begins at the moment when it is set. */
static int set_fault(const char *text, const struct kernel_param *param)
{
	unsigned long flags;
	int value, error;

	error = kstrtoint(text, 0, &value);
	if (error)
		return error;
	raw_spin_lock_irqsave(&state_lock, flags);
	freeze_sums();
	*(int *)param->arg = value;
	raw_spin_unlock_irqrestore(&state_lock, flags);
	return 0;
}

static const struct kernel_param_ops fault_ops = { .set = set_fault, .get = param_get_int };
module_param_cb(counters, &fault_ops, &counters, 0644);
MODULE_PARM_DESC(counters, "counters of each CPU");
module_param_cb(zeros, &fault_ops, &zeros, 0644);
MODULE_PARM_DESC(zeros, "bits of events whose counts stand still");
module_param_cb(dead, &fault_ops, &dead, 0644);
MODULE_PARM_DESC(dead, "1: no event is scheduled any more; 2: they are, but all counts stand still");

static int __init start(void)
{
	int error = start_state();

	if (!error)
		error = start_core_pmu();
	if (error)
		return error;
	error = start_chip();
	if (error)
		goto no_chip;
	error = start_jobs();
	if (error)
		goto no_jobs;
	return 0;
no_jobs:
	stop_chip();
no_chip:
	stop_core_pmu();
	return error;
}

static void __exit stop(void)
{
	stop_jobs();
	stop_chip();
	stop_core_pmu();
}

module_init(start);
module_exit(stop);
MODULE_DESCRIPTION("Programs, counters and energy by a law of contention");
MODULE_LICENSE("GPL");
