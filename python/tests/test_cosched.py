import os
import signal
import threading
import time
from concurrent import futures

import cosched
import pytest


def until(holds):
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_batch_ends_in_the_order_of_its_jobs(folder):
    ends = cosched.run(
        [
            "sleep 0.1; echo a > a",
            ["touch", "b c"],
            {"command": "echo $WORD > d; pwd >> d", "env": {"WORD": "x"}, "cwd": folder, "name": "mine", "id": "last"},
            "exit 3",
        ],
        no_logs=True,
    )
    assert [end["exit"] for end in ends] == [0, 0, 0, 3]
    assert [end["id"] for end in ends] == ["1", "2", "last", "4"]
    assert ends[2]["name"] == "mine" and ends[0]["end_s"] > ends[0]["start_s"]
    assert (folder / "b c").exists() and (folder / "d").read_text() == f"x\n{folder}\n"


def test_a_job_that_was_not_started_says_why():
    first, *rest = cosched.run(["exit 1", "true", "true"], jobs=1, order="given", halt="soon,fail=1", no_logs=True)
    assert first["exit"] == 1
    assert all("not started: the run ended" in end["exit_text"] for end in rest)


@pytest.mark.parametrize("job, options", [("true", {"policy": "nope"}), ({"comand": "true"}, {})])
def test_what_cosched_refuses_is_an_error_with_its_words(job, options):
    with pytest.raises(cosched.Error, match="exit code 2(?s:.*)(nope|comand)"):
        cosched.run([job], **options)
    with pytest.raises(cosched.Error, match="nope"), cosched.Session(policy="nope") as session:
        session.add("true")
        list(session.ends())


@pytest.mark.parametrize("look", [True, False])
def test_why_nothing_was_started_is_shown_once(look, capsys):
    said = ""
    try:
        with cosched.Session(policy="nope") as session:
            session.add("true")
            if look:
                list(session.ends())
    except cosched.Error as error:
        said = str(error)
    assert look == ("nope" in said)
    assert (said + capsys.readouterr().err).count("no policy `nope`") == 1


@pytest.mark.parametrize("job", [["echo", "\udcff"], {"command": "true", "weight": float("nan")}])
def test_what_no_line_can_carry_is_refused(job):
    with pytest.raises(ValueError), cosched.Executor(no_logs=True) as executor:
        executor.submit(job)


def test_an_interrupt_ends_the_batch(folder):
    # It is ignored in what a shell starts in the background.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    threading.Thread(target=lambda: (until((folder / "begun").exists), os.kill(os.getpid(), signal.SIGINT))).start()
    with pytest.raises(KeyboardInterrupt):
        cosched.run(["touch begun; while test -e begun; do sleep 0.05; done; touch over"], no_logs=True)
    (folder / "begun").unlink()
    time.sleep(0.2)
    assert not (folder / "over").exists()


def test_a_record_is_a_dictionary():
    cosched.run(["true"], logs="logs", param=["quantum_s=0.1"], policy="round-robin")
    for path in ("logs", "logs/run.json"):
        job, = cosched.record(path)["jobs"]
        assert job["exit_text"] == "exit 0"


def test_the_record_of_a_folder_of_runs_is_that_of_the_last(folder):
    for name in ("b", "a"):
        cosched.run([{"command": "true", "name": name}], logs=f"runs/{name}")
    job, = cosched.record("runs")["jobs"]
    assert job["name"] == "a"
    (folder / "empty").mkdir()
    with pytest.raises(FileNotFoundError, match="empty: no run has ended"):
        cosched.record("empty")


def test_a_session_yields_ends_as_they_come():
    with cosched.Session(no_logs=True) as session:
        slow, fast = session.add("sleep 60"), session.add(["true"], cpus=1, expected_s=0.1)
        names = []
        for end in session.ends():
            names.append(end["id"])
            if end["id"] == fast:
                session.add("exit 4", id="more")
            elif end["id"] == "more":
                session.cancel(slow)
        assert names == [fast, "more", slow]
        with pytest.raises(ValueError, match="more already"):
            session.add("true", id="more")
    assert session.close() == 1
    with pytest.raises(cosched.Error, match="closed"):
        session.add("true")


def test_an_id_may_be_a_number():
    with cosched.Session(no_logs=True) as session:
        session.add("sleep 60", id=7)
        session.cancel(7)
        end, = session.ends()
    assert end["id"] == "7" and end["signal"]


def test_an_end_without_an_id_is_passed_on():
    with cosched.Session(no_logs=True) as session:
        session._write(b'{"cancel": 1}\n')
        until(lambda: not session._ends.empty())
        session.add("true")
        refused, ended = session.ends()
    assert "id" not in refused and refused["exit"] == 127 and ended["exit"] == 0


def test_a_reader_that_fails_fails_the_session(folder):
    with cosched.Session(no_logs=True) as session:
        keep = session._watch
        session._watch = lambda event: 1 / 0 if event else keep(event)
        session.add("sleep 60; touch wrong")
        with pytest.raises(cosched.Died) as died:
            list(session.ends())
    assert isinstance(died.value.__cause__, ZeroDivisionError)
    assert not (folder / "wrong").exists()


def test_an_error_in_a_session_ends_its_jobs(folder):
    with pytest.raises(ZeroDivisionError), cosched.Session(no_logs=True) as session:
        session.add("touch begun; sleep 60; touch wrong")
        until((folder / "begun").exists)
        1 / 0
    assert not (folder / "wrong").exists()


def test_an_executor_runs_commands(folder):
    with cosched.Executor(no_logs=True) as executor:
        assert executor.submit("exit 5").result()["exit"] == 5
        ends = list(executor.map("touch", [f"file {i}" for i in range(100)]))
        several = [executor.submit("true"), executor.submit("sleep", 0.1)]
        assert len(list(futures.as_completed(several))) == 2
    assert len(ends) == len(list(folder.glob("file *"))) == 100


def test_a_future_is_cancelled_before_and_after_its_start(folder):
    with cosched.Executor(no_logs=True, jobs=1) as executor:
        running = executor.submit("touch begun; sleep 60; touch wrong")
        queued = executor.submit("touch wrong")
        until((folder / "begun").exists)
        until(running.running)
        assert queued.cancel() and queued.cancel() and queued.cancelled()
        assert executor.submit("true").cancelled() is False
        executor.shutdown(wait=False)
        assert running.cancel() and not running.running()
        with pytest.raises(futures.CancelledError):
            running.result()
        futures.wait([running, queued])
    assert not (folder / "wrong").exists()


def test_a_shutdown_can_cancel_what_is_queued(folder):
    executor = cosched.Executor(no_logs=True, jobs=1)
    running = executor.submit("touch begun; until test -e go; do sleep 0.05; done")
    queued = [executor.submit("touch wrong") for _ in range(5)]
    until(running.running)
    executor.shutdown(wait=False, cancel_futures=True)
    (folder / "go").touch()
    assert running.result()["exit"] == 0 and all(future.cancelled() for future in queued)
    executor.shutdown()
    assert not (folder / "wrong").exists()


def test_futures_fail_when_cosched_is_killed(folder):
    executor = cosched.Executor(no_logs=True, jobs=1)
    running = executor.submit("touch begun; until test -e go; do sleep 0.05; done; touch ended")
    queued = executor.submit("true")
    until((folder / "begun").exists)
    os.kill(executor.pid, signal.SIGKILL)
    # The job outlives cosched, so nothing waits for it.
    for future in (running, queued):
        with pytest.raises(cosched.Died, match=r"signal 9 ended cosched; 2 job\(s\)(?s:.*)thaw"):
            future.result(timeout=60)
    with pytest.raises(futures.BrokenExecutor):
        executor.submit("true")
    executor.shutdown()
    (folder / "go").touch()
    until((folder / "ended").exists)


def test_the_binary_is_found_or_the_error_says_what_to_do(folder, monkeypatch):
    real = os.environ["COSCHED"]
    assert cosched.binary() == real
    monkeypatch.setenv("COSCHED", "/no/such/file")
    with pytest.raises(cosched.Missing, match="/no/such/file, which is no program; set it"):
        cosched.binary()
    monkeypatch.delenv("COSCHED")
    monkeypatch.setenv("PATH", str(folder))
    with pytest.raises(cosched.Missing, match="cargo install(.*)COSCHED"):
        cosched.run(["true"])
    (folder / "cosched").symlink_to(real)
    assert cosched.binary() == str(folder / "cosched")
