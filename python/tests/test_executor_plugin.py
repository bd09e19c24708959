"""Workflows under Snakemake, with the executor of cosched."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import cosched
import pytest

FORTY = """
SAMPLES = range(12)
envvars: "LEFT"
rule all:
    input: expand("c/{s}", s=SAMPLES), "chain/2"
rule a:
    output: "a/{s}"
    shell: "echo {wildcards.s} > {output}; echo said by {wildcards.s}"
rule b:
    input: "a/{s}"
    output: "b/{s}"
    threads: 2
    resources: mem_mb=10
    shell: "cat {input} > {output}; echo $OMP_NUM_THREADS $LEFT >> {output}"
rule c:
    input: "b/{s}"
    output: "c/{s}"
    shell: "cp {input} {output}"
rule start:
    output: "chain/0"
    benchmark: "benchmark"
    shell: "sleep 0.1; touch {output}"
rule script:
    input: "chain/0"
    output: "chain/1"
    run:
        shell("echo run >> {output}")
rule left:
    input: pipe("numbers"), "chain/1"
    output: "chain/2"
    shell: "cat {input[0]} > {output}"
rule right:
    output: pipe("numbers")
    shell: "seq 3 > {output}"
"""


def snakemake(folder: Path, workflow: str, *options: str) -> subprocess.Popen:
    (folder / "Snakefile").write_text(workflow)
    command = [sys.executable, "-m", "snakemake", "--cores", "2", "--executor", "cosched", *options]
    environment = {**os.environ, "LEFT": "x y", "XDG_CACHE_HOME": str(folder / "cache")}
    return subprocess.Popen(command, cwd=folder, env=environment, stdout=-1, stderr=-1, text=True)


def ended(process: subprocess.Popen) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=120)
    return process.returncode, out, err


def jobs_of_run(folder: Path) -> list[str]:
    log, = folder.glob(".snakemake/cosched/*")
    return [re.sub("#.*", "", job["name"]) for job in cosched.record(log)["jobs"]]


def wait_for(file: Path) -> None:
    deadline = time.monotonic() + 60
    while not file.exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def pid_of_run(folder: Path, snakemake: int) -> int:
    """The process of cosched, once the job has begun."""
    wait_for(folder / "begun")
    for pid in Path(f"/proc/{snakemake}/task/{snakemake}/children").read_text().split():
        if Path(f"/proc/{pid}/comm").read_text() == "cosched\n":
            return int(pid)
    raise AssertionError("Snakemake has no child cosched")


@pytest.mark.parametrize("scheduler", ["greedy", "cosched"])
def test_forty_jobs_run_in_one_run(folder, scheduler):
    code, out, err = ended(snakemake(folder, FORTY, "--scheduler", scheduler, "--cosched-options=--policy fifo"))
    assert code == 0, err
    assert "41 of 41 steps" in err
    assert sorted(out.splitlines()) == sorted(f"said by {sample}" for sample in range(12))
    for sample in range(12):
        assert (folder / f"c/{sample}").read_text() == f"{sample}\n2 x y\n"
    assert (folder / "chain/2").read_text() == "1\n2\n3\n" and (folder / "chain/1").read_text() == "run\n"
    # The rules of the pipe run outside, and `all` has no command.
    assert sorted(jobs_of_run(folder)) == sorted(["a", "b", "c"] * 12 + ["start", "script"])
    header, figures = (folder / "benchmark").read_text().splitlines()
    assert header.split("\t")[0] == "s" and float(figures.split("\t")[0]) > 0


def test_a_failed_job_fails_the_workflow(folder):
    workflow = 'rule all:\n    output: "x"\n    shell: "touch {output}; echo why >&2; exit 3"\n'
    code, _, err = ended(snakemake(folder, workflow, "--cosched-options=--no-logs"))
    assert code == 1 and "exit status 3" in err and "why" in err
    assert not (folder / "x").exists() and not (folder / ".snakemake/cosched").exists()


SLOW = 'rule all:\n    output: "x"\n    shell: "touch begun; while test -e begun; do sleep 0.05; done; touch over; exit 1"\n'


def test_the_workflow_fails_when_cosched_is_killed(folder):
    process = snakemake(folder, SLOW)
    os.kill(pid_of_run(folder, process.pid), signal.SIGKILL)
    code, _, err = ended(process)
    (folder / "begun").unlink()
    assert code == 1 and "signal 9 ended cosched" in err and "cosched thaw" in err


def test_an_interrupt_ends_the_jobs(folder):
    process = snakemake(folder, SLOW)
    pid_of_run(folder, process.pid)
    process.send_signal(signal.SIGINT)
    code, _, err = ended(process)
    assert code != 0 and "Terminating processes" in err
    # Had the job not been ended, it would end only now.
    (folder / "begun").unlink()
    time.sleep(0.3)
    assert not (folder / "over").exists()


def test_without_cosched_the_error_says_what_to_do(folder, monkeypatch):
    monkeypatch.setenv("COSCHED", "/no/such/file")
    code, _, err = ended(snakemake(folder, SLOW))
    assert code == 1 and "set it to the path of cosched" in err


def test_jobs_go_to_several_nodes(tmp_path: Path) -> None:
    workflow = """
rule all:
    input: expand("out/{i}", i=range(6))
rule one:
    output: "out/{i}"
    shell: "sleep 0.2; echo {wildcards.i} > {output}"
"""
    code, _, err = ended(snakemake(tmp_path, workflow, "--cosched-options", "--nodes local:2"))
    assert code == 0, err
    log, = tmp_path.glob(".snakemake/cosched/*")
    nodes = {job["node"] for job in cosched.record(log)["jobs"]}
    assert nodes == {"local1", "local2"}
