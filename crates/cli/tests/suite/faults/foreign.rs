//! Groups and processes that are not of dead runs of ours are left alone; those of dead runs are found by their owner.

use super::seen::seen;
use super::support::{
    COSCHED, MixBuilder, TestRun, cosched, freezers, own_group, signal, skipped, until,
};
use rustix::process::Signal;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output};

fn thaw(more: &[&str]) -> Output {
    cosched().arg("thaw").args(more).output().unwrap()
}

/// A group that this test makes, with a sleeping process, frozen. Killed and removed when this value is dropped.
struct Foreign {
    dir: PathBuf,
    child: Child,
}

impl Foreign {
    fn make(name: &str) -> Foreign {
        let dir = own_group().unwrap().join(name);
        std::fs::create_dir(&dir).unwrap();
        let child = Command::new("sleep").arg("600").spawn().unwrap();
        std::fs::write(dir.join("cgroup.procs"), child.id().to_string()).unwrap();
        std::fs::write(dir.join("cgroup.freeze"), "1").unwrap();
        Foreign { dir, child }
    }

    fn is_untouched(&self) -> bool {
        let read = |file: &str| std::fs::read_to_string(self.dir.join(file)).unwrap_or_default();
        read("cgroup.freeze").trim() == "1"
            && read("cgroup.procs").trim() == self.child.id().to_string()
    }
}

impl Drop for Foreign {
    fn drop(&mut self) {
        let _ = std::fs::write(self.dir.join("cgroup.freeze"), "0");
        let _ = self.child.kill();
        let _ = self.child.wait();
        until("the group is gone", || {
            std::fs::remove_dir(&self.dir).is_ok() || !self.dir.exists()
        });
    }
}

#[test]
fn groups_that_no_run_made_are_left_alone() {
    if !freezers().contains(&"cgroup") {
        return;
    }
    let own = std::process::id();
    let names = [
        format!("cosched-nightly-{own}"),
        format!("cosched-{own}-0"),
        format!("cosched-{own}-0-0.scope"),
    ];
    let foreign: Vec<Foreign> = names.iter().map(|name| Foreign::make(name)).collect();
    thaw(&[]);
    let dir = tempfile::tempdir().unwrap();
    let next = cosched()
        .args(["run", "-q", "--", "true"])
        .current_dir(dir.path())
        .output()
        .unwrap();
    assert!(next.status.success(), "{next:?}");
    for group in &foreign {
        assert!(group.is_untouched(), "{}", group.dir.display());
    }
}

/// Whether programs can be started in a PID namespace of their own.
fn has_namespaces() -> bool {
    let works = Command::new("unshare")
        .args(["-p", "-f", "--mount-proc", "true"])
        .output();
    let works = works.is_ok_and(|output| output.status.success());
    if !works {
        skipped("no PID namespace can be made");
    }
    works
}

fn is_ours(group: &Path, count: usize) -> bool {
    let entries = std::fs::read_dir(group)
        .into_iter()
        .flatten()
        .filter_map(Result::ok);
    entries.filter(|entry| entry.path().is_dir()).count() == count
}

#[test]
fn runs_in_other_pid_namespaces_are_left_alone() {
    if !freezers().contains(&"cgroup") || !has_namespaces() {
        return;
    }
    // A run in a namespace of its own, looked at from outside.
    let by = ["unshare", "-p", "-f", "--kill-child", "--mount-proc"];
    let endless = "while :; do :; done";
    let dir = tempfile::tempdir().unwrap();
    let mut inner = TestRun::start_by(
        &by,
        dir,
        MixBuilder::default().copies("endless", 4, endless),
        "cgroup",
        &["--jobs", "4"],
    );
    until("the inner run", || {
        self::inner(&inner).is_some() && inner.in_folder().len() >= 6
    });
    let namespace =
        std::fs::read_link(format!("/proc/{}/ns/pid", self::inner(&inner).unwrap())).unwrap();
    let number: String = namespace
        .to_str()
        .unwrap()
        .chars()
        .filter(char::is_ascii_digit)
        .collect();
    let entries = || {
        std::fs::read_dir(own_group().unwrap())
            .unwrap()
            .filter_map(|entry| Some(entry.ok()?.path()))
    };
    let group = || {
        entries().find(|path| {
            path.to_str()
                .is_some_and(|path| path.ends_with(&format!("-{number}")))
        })
    };
    until("its groups", || {
        group().is_some_and(|group| is_ours(&group, 4))
    });
    thaw(&[]);
    assert!(group().is_some_and(|group| is_ours(&group, 4)));

    // A run of this namespace, looked at from another one.
    let outer = TestRun::start(
        MixBuilder::default().copies("endless", 4, endless),
        "cgroup",
        &["--jobs", "4"],
    );
    outer.until_marked(4);
    let thawed = Command::new("unshare")
        .args(["-p", "-f", "--mount-proc", COSCHED, "thaw"])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&thawed.stdout).into_owned();
    assert!(
        text.contains("can't be seen from here") && text.contains(&outer.token),
        "{thawed:?}"
    );
    assert!(outer.group().is_some_and(|group| is_ours(&group, 4)));
    drop(outer);

    signal(self::inner(&inner).unwrap(), Signal::INT);
    inner.code();
    inner.all_ended();
    until("its group is gone", || {
        thaw(&[]);
        group().is_none()
    });
}

/// The process of a run that was started by another program.
fn inner(run: &TestRun) -> Option<i32> {
    run.named("cosched").into_iter().find(|&pid| pid != run.pid)
}

#[test]
fn what_is_frozen_out_of_sight_is_not_passed_over() {
    if !freezers().contains(&"cgroup") || !has_namespaces() {
        return;
    }
    let from_elsewhere = |run: &TestRun| {
        let by = [
            "-p",
            "-f",
            "--mount-proc",
            COSCHED,
            "thaw",
            "--run",
            &run.token,
        ];
        let output = Command::new("unshare").args(by).output().unwrap();
        (
            output.status.code(),
            String::from_utf8_lossy(&output.stdout).into_owned(),
        )
    };
    let run = TestRun::start(
        MixBuilder::default().copies("endless", 4, "while :; do :; done"),
        "cgroup",
        &["--jobs", "4"],
    );
    run.until_marked(4);
    until("something is frozen", || {
        run.send(Signal::CONT);
        std::thread::sleep(std::time::Duration::from_millis(20));
        run.send(Signal::STOP);
        until("it stands still", || {
            seen(run.pid).is_some_and(|run| run.state == 'T')
        });
        run.has_frozen_group()
    });
    let (code, text) = from_elsewhere(&run);
    assert!(
        text.contains("frozen, and left alone, since its run can't be seen from here"),
        "{text}"
    );
    assert_eq!(code, Some(0), "{text}");
    run.send(Signal::CONT);
}

/// A program that an ordinary user may execute.
struct ForAll(tempfile::TempDir);

impl ForAll {
    fn make() -> ForAll {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        std::fs::copy(COSCHED, dir.path().join("cosched")).unwrap();
        ForAll(dir)
    }

    fn thaw(&self) -> Option<Output> {
        let by = Command::new("setpriv")
            .args(["--reuid", "65534", "--regid", "65534", "--clear-groups"])
            .arg(self.0.path().join("cosched"))
            .arg("thaw")
            .current_dir("/")
            .output();
        // A shell's code for a program that can't be started.
        by.ok()
            .filter(|output| !matches!(output.status.code(), Some(126 | 127)))
    }
}

#[test]
fn another_user_is_told_of_what_it_may_not_thaw() {
    if !freezers().contains(&"cgroup") || !rustix::process::geteuid().is_root() {
        return skipped("this needs cgroups and root");
    }
    let program = ForAll::make();
    // Other runs start at the same time, and each of them frees what dead runs left.
    for _ in 0..50 {
        let mix = MixBuilder::default().copies("endless", 4, "while :; do :; done");
        let mut run = TestRun::start(mix, "cgroup", &["--jobs", "4"]);
        run.until_marked(4);
        until("something is frozen", || run.has_frozen_group());
        run.send(Signal::STOP);
        signal(run.guardian().unwrap(), Signal::KILL);
        run.send(Signal::KILL);
        run.code();
        let Some(output) = program.thaw() else {
            return skipped("setpriv can't start the program");
        };
        if !run.has_frozen_group() {
            continue;
        }
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(output.status.code(), Some(4), "{output:?}");
        assert!(
            text.contains("may not be thawed by this user") && text.contains(&run.token),
            "{text}"
        );
        assert!(thaw(&["--run", &run.token]).status.success());
        until("nothing is frozen", || !run.has_frozen_group());
        return;
    }
    panic!("somebody else freed every run");
}

#[test]
fn a_live_run_is_not_ended_by_thaw() {
    let mut run = TestRun::start(MixBuilder::default().counting(1, 1), "signals", &[]);
    run.until_marked(1);
    let asked = cosched()
        .args(["thaw", "--kill", "--run", &run.token])
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&asked.stderr);
    assert_eq!(asked.status.code(), Some(2), "{told}");
    assert!(
        told.contains("is live") && told.contains("nothing was ended"),
        "{told}"
    );
    assert_eq!(run.code(), Some(0));
}

/// Somebody else has made the user's folder first, as anybody can in `/tmp`.
#[test]
fn a_run_whose_folder_is_somebody_else_s_says_so() {
    let user = rustix::process::geteuid().as_raw();
    if user != 0 {
        return skipped("only root may give folders away");
    }
    let dir = tempfile::tempdir().unwrap();
    let own = dir.path().join("cosched-0");
    std::fs::create_dir(&own).unwrap();
    std::os::unix::fs::chown(&own, Some(12345), None).unwrap();
    let call = |words: &[&str]| {
        let mut command = cosched();
        command.args(words).current_dir(dir.path());
        command
            .env("COSCHED_RUNS_DIR", dir.path())
            .output()
            .unwrap()
    };
    let output = call(&["run", "-q", "--logs", "logs", "--", "true"]);
    assert!(output.status.success(), "{output:?}");
    let record = std::fs::read_to_string(dir.path().join("logs/run.json")).unwrap();
    let record: serde_json::Value = serde_json::from_str(&record).unwrap();
    let warning = record["warnings"]
        .as_array()
        .unwrap()
        .iter()
        .find(|warning| warning["code"] == "no-list");
    let text = warning.unwrap_or_else(|| panic!("{}", record["warnings"]))["text"]
        .as_str()
        .unwrap()
        .to_owned();
    let why = format!("{} belongs to user 12345", own.display());
    assert!(text.contains(&why), "{text}");
    let doctor = String::from_utf8_lossy(&call(&["doctor"]).stdout).into_owned();
    assert!(
        doctor.contains("list of a run's processes") && doctor.contains(&why),
        "{doctor}"
    );
}
