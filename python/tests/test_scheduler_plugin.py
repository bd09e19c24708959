"""The choice of the scheduler, on small workflows without Snakemake."""

import logging
from types import SimpleNamespace

import pytest
import snakemake_scheduler_plugin_cosched as plugin
from snakemake_executor_plugin_cosched.rules import Rules
from snakemake_interface_scheduler_plugins.tests import TestSchedulerBase as Interface
from snakemake_scheduler_plugin_cosched.crowding import APART, TOGETHER


@pytest.fixture(autouse=True)
def rules(folder, monkeypatch):
    (folder / ".snakemake").mkdir()
    found = Rules(folder / ".snakemake/rules.json")
    monkeypatch.setattr(plugin, "rules", lambda: found)
    return found


class TestInterface(Interface):
    __test__ = True

    def get_scheduler_cls(self):
        return plugin.Scheduler

    def get_scheduler_settings(self):
        return None


class Workflow:
    """A graph of jobs. `a1` and `a2` are of the rule `a`."""

    def __init__(self, **needs):
        self.jobs = {key: job(key) for key in needs}
        self.needs = needs
        self.over = set()

    def needrun_jobs(self):
        return [job for key, job in self.jobs.items() if key not in self.over]

    def job_dependencies(self, job):
        return [self.jobs[need] for need in self.needs[job.key]]

    def finished(self, job):
        return job.key in self.over

    def select(self, scheduler, *ready, cores=1):
        jobs = [self.jobs[key] for key in ready]
        chosen = scheduler.select_jobs(jobs, self.needrun_jobs(), {"_cores": cores}, {})
        return [job.key for job in chosen]


class job(SimpleNamespace):
    __hash__ = object.__hash__

    def __init__(self, key):
        rule = key.rstrip("0123456789")
        super().__init__(key=key, name=rule, priority=0, input=[], scheduler_resources={"_cores": 1})


def scheduler(workflow):
    return plugin.Scheduler(workflow, None, logging.getLogger())


def compared(rules, apart, together, *names):
    """Let rules have been tried in both ways."""
    for name in names * 9:
        rules.add(name + APART, apart)
        rules.add(name + TOGETHER, together)


def test_the_longest_way_begins_first(rules):
    compared(rules, 1, 1.1, "short", "chain", "next", "last")
    workflow = Workflow(short=[], chain=[], next=["chain"], last=["next", "short"])
    chooser = scheduler(workflow)
    assert workflow.select(chooser, "short", "chain") == ["chain"]
    rules.add("short", 9)
    rules.add("chain", 1)
    rules.add("next", 2)
    assert workflow.select(chooser, "short", "chain") == ["short"]
    assert workflow.select(chooser, "short", "chain", cores=2) == ["short", "chain"]
    workflow.jobs["chain"].priority = 1
    assert workflow.select(chooser, "short", "chain") == ["chain"]


def test_jobs_that_slow_each_other_down_run_beside_others(rules):
    needs = dict.fromkeys(["a1", "a2", "b1", "b2"], [])
    rules.add("a", 2)
    rules.add("b", 1)

    def chosen():
        workflow = Workflow(**needs)
        return workflow.select(scheduler(workflow), "a1", "a2", "b1", "b2", cores=2)

    assert chosen() == ["a2", "b2"], "new rules are tried apart first"
    compared(rules, 1, 1.1, "a", "b")
    assert chosen() == ["a2", "a1"]
    compared(rules, 1, 1.5, "a")
    assert chosen() == ["a2", "b2"]
    needs |= {"after1": ["a1"], "after2": ["a2"]}
    rules.add("after", 5)
    assert chosen() == ["a2", "a1"], "a long way is urgent"


def test_times_beside_their_kind_are_told_from_others(rules):
    workflow = Workflow(a1=[], a2=[], b1=[], a3=[])
    chooser = scheduler(workflow)
    workflow.select(chooser, "a1", "a2", cores=2)
    workflow.over |= {"a1", "a2"}
    workflow.select(chooser, "b1", "a3", cores=2)
    workflow.over |= {"b1", "a3"}
    workflow.select(chooser, cores=2)
    assert [len(rules.times("a" + how)) for how in (APART, TOGETHER)] == [1, 2]


def test_a_job_waits_for_the_memory_that_its_rule_needed(rules):
    rules.add("a", 1, memory=1 << 60)
    rules.add("b", 1, memory=1 << 20)
    workflow = Workflow(a=[], b=[], c=[])
    chooser = scheduler(workflow)
    assert workflow.select(chooser, "b", cores=3) == ["b"]
    assert workflow.select(chooser, "a", "c", cores=2) == ["c"]
    # All cores are free again, so nothing runs: the job is tried.
    assert workflow.select(chooser, "a", cores=3) == ["a"]


def test_times_are_observed_unless_the_executor_reports_them(rules):
    workflow = Workflow(a=[], b=[])
    chooser = scheduler(workflow)
    workflow.select(chooser, "a", cores=2)
    workflow.over.add("a")
    workflow.select(chooser, "b", cores=2)
    assert rules.seconds("a") >= 0
    rules.measured_by_run = True
    workflow.over.add("b")
    workflow.select(chooser, cores=2)
    assert rules.seconds("b") is None


def test_rules_are_kept_for_the_next_run(rules, folder):
    for seconds in (50, 1, 2, 9, 2, 2, 2, 9, 9, 9):
        rules.add("a", seconds, memory=seconds)
    assert rules.seconds("a") == 2
    rules.save()
    again = Rules(folder / ".snakemake/rules.json")
    assert (again.seconds("a"), again.memory("a"), again.seconds("b")) == (2, 50, None)
    (folder / ".snakemake/rules.json").write_text("[1]")
    assert Rules(folder / ".snakemake/rules.json").seconds("a") is None
