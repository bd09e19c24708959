//! Groups and processes that are not of dead runs of ours are left alone; those of dead runs are found by their owner.

use crate::support::{COSCHED, Mix, Run, freezers, own_group, signal, skipped, until};
use rustix::process::Signal;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output};

fn thaw(more: &[&str]) -> Output {
    Command::new(COSCHED).arg("thaw").args(more).output().unwrap()
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
        read("cgroup.freeze").trim() == "1" && read("cgroup.procs").trim() == self.child.id().to_string()
    }
}

impl Drop for Foreign {
    fn drop(&mut self) {
        let _ = std::fs::write(self.dir.join("cgroup.freeze"), "0");
        let _ = self.child.kill();
        let _ = self.child.wait();
        until("the group is gone", || std::fs::remove_dir(&self.dir).is_ok() || !self.dir.exists());
    }
}

#[test]
fn groups_that_no_run_made_are_left_alone() {
    if !freezers().contains(&"cgroup") {
        return;
    }
    let own = std::process::id();
    let names = [format!("cosched-nightly-{own}"), format!("cosched-{own}-0"), format!("cosched-{own}-0-0.scope")];
    let foreign: Vec<Foreign> = names.iter().map(|name| Foreign::make(name)).collect();
    thaw(&[]);
    let dir = tempfile::tempdir().unwrap();
    let next = Command::new(COSCHED).args(["run", "-q", "--", "true"]).current_dir(dir.path()).output().unwrap();
    assert!(next.status.success(), "{next:?}");
    for group in &foreign {
        assert!(group.is_untouched(), "{}", group.dir.display());
    }
}

/// Whether programs can be started in a PID namespace of their own.
fn has_namespaces() -> bool {
    let works = Command::new("unshare").args(["-p", "-f", "--mount-proc", "true"]).output();
    let works = works.is_ok_and(|output| output.status.success());
    if !works {
        skipped("no PID namespace can be made");
    }
    works
}

fn is_ours(group: &Path, count: usize) -> bool {
    let entries = std::fs::read_dir(group).into_iter().flatten().filter_map(Result::ok);
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
    let mut inner = Run::start_by(&by, dir, Mix::default().copies("endless", 4, endless), "cgroup", &["--jobs", "4"]);
    let pid_of = |run: &Run| run.named("cosched").into_iter().find(|&pid| pid != run.pid);
    until("the inner run", || pid_of(&inner).is_some() && inner.in_folder().len() >= 6);
    let namespace = std::fs::read_link(format!("/proc/{}/ns/pid", pid_of(&inner).unwrap())).unwrap();
    let number: String = namespace.to_str().unwrap().chars().filter(char::is_ascii_digit).collect();
    let entries = || std::fs::read_dir(own_group().unwrap()).unwrap().filter_map(|entry| Some(entry.ok()?.path()));
    let group = || entries().find(|path| path.to_str().is_some_and(|path| path.ends_with(&format!("-{number}"))));
    until("its groups", || group().is_some_and(|group| is_ours(&group, 4)));
    assert!(!String::from_utf8_lossy(&thaw(&[]).stdout).contains(&number));
    assert!(group().is_some_and(|group| is_ours(&group, 4)));

    // A run of this namespace, looked at from another one.
    let outer = Run::start(Mix::default().copies("endless", 4, endless), "cgroup", &["--jobs", "4"]);
    outer.until_marked(4);
    let thawed = Command::new("unshare").args(["-p", "-f", "--mount-proc", COSCHED, "thaw"]).output().unwrap();
    let text = String::from_utf8_lossy(&thawed.stdout).into_owned();
    assert!(text.contains("can't be seen from here") && text.contains(&outer.token), "{thawed:?}");
    assert!(outer.group().is_some_and(|group| is_ours(&group, 4)));
    drop(outer);

    signal(pid_of(&inner).unwrap(), Signal::INT);
    inner.code();
    inner.all_ended();
    until("its group is gone", || {
        thaw(&[]);
        group().is_none()
    });
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
        by.ok().filter(|output| !matches!(output.status.code(), Some(126 | 127)))
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
        let mix = Mix::default().copies("endless", 4, "while :; do :; done");
        let mut run = Run::start(mix, "cgroup", &["--jobs", "4"]);
        run.until_marked(4);
        until("something is frozen", || run.has_frozen_group());
        run.send(Signal::STOP);
        signal(run.guardian().unwrap(), Signal::KILL);
        run.send(Signal::KILL);
        run.code();
        let Some(output) = program.thaw() else { return skipped("setpriv can't start the program") };
        if !run.has_frozen_group() {
            continue;
        }
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(output.status.code(), Some(4), "{output:?}");
        assert!(text.contains("may not be thawed by this user") && text.contains(&run.token), "{text}");
        assert!(thaw(&["--run", &run.token]).status.success());
        until("nothing is frozen", || !run.has_frozen_group());
        return;
    }
    panic!("somebody else freed every run");
}
