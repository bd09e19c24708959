"""The code on `docs/research.md` does what the page says."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import cosched
import pytest
from test_simulate import refusal

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/research.md").read_text()


@pytest.fixture
def files(folder):
    """The files of the page, and the mixes that it names."""
    for name, text in re.findall(r"```python\n# (\S+)\n(.*?)```", PAGE, re.DOTALL):
        (folder / name).write_text(text)
    (folder / "mixes").symlink_to(ROOT / "mixes")
    if "there is no policy" in (refusal("run", "--no-logs", "--on=i5-2500", f"--policy=cmd:{sys.executable} mine.py") or ""):
        pytest.skip("this cosched takes no command for a policy")
    return folder


def test_the_policy_has_the_stated_figures(files):
    mix = "mixes/perf-fair/mix09.toml"
    record = cosched.simulate(mix, "xeon-e5645-1ch", f"cmd:{sys.executable} mine.py")
    known = cosched.simulate(mix, "xeon-e5645-1ch", "perf-fair")
    assert record["policy"] == "level" and not record["warnings"]
    assert record["metrics"]["turnaround_s"] == pytest.approx(450, abs=4)
    assert known["metrics"]["turnaround_s"] == pytest.approx(462, abs=1)
    assert 1.4 <= round(record["metrics"]["unfairness"], 1) <= 1.7


def test_the_plot_is_drawn(files):
    pytest.importorskip("matplotlib", reason="the plot needs matplotlib")
    subprocess.run([sys.executable, "plot.py"], check=True, env={**os.environ, "MPLBACKEND": "Agg"})
    assert (files / "plot.png").stat().st_size > 10_000


def test_recorded_decisions_are_tried_again(files):
    command = f"cmd:{sys.executable} mine.py"
    record = cosched.simulate("mixes/efs/four-mcf.toml", "i5-2500", command, extra=["--events=events.jsonl"])
    again = subprocess.run([sys.executable, "again.py"], check=True, capture_output=True, text=True).stdout
    assert len(again.splitlines()) == record["overhead"]["decisions"]


def test_a_recorded_snapshot_can_be_answered_again(files, monkeypatch):
    cosched.simulate("mixes/efs/four-mcf.toml", "i5-2500", f"cmd:{sys.executable} mine.py", extra=["--events=events.jsonl"])
    monkeypatch.syspath_prepend(str(files))
    monkeypatch.delitem(sys.modules, "mine", raising=False)
    from mine import level

    session = level.begin(window=6)
    with open("events.jsonl") as lines:
        for line in lines:
            event = json.loads(line)
            again = session.answer(event["snapshot"])
            assert again["next_wake"] == event["decision"]["next_wake"]
            assert len(again["changes"]) == len(event["decision"]["changes"])
