"""Every test runs the real binary, in a folder of its own."""

import os
from pathlib import Path

import pytest

BUILT = Path(__file__).parents[2] / "target/debug/cosched"


@pytest.fixture(autouse=True)
def folder(tmp_path, tmp_path_factory, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COSCHED", os.environ.get("COSCHED", str(BUILT)))
    monkeypatch.setenv("COSCHED_HISTORY", "off")
    # Apart from the other runs on the machine.
    monkeypatch.setenv("COSCHED_RUNS_DIR", str(tmp_path_factory.mktemp("runs")))
    return tmp_path
