//! Resources that run out: disk, memory, and what a thousand jobs could leak.

use super::seen::with_zombies;
use super::support::{MixBuilder, TestRun, counting, freezers, is_complete, until};
use std::path::{Path, PathBuf};
use std::process::Command;

const LINES: u32 = 20;

/// A small file system, unmounted when this value is dropped.
struct Tiny(PathBuf);

impl Tiny {
    fn mount(at: &Path) -> Result<Tiny, String> {
        std::fs::create_dir_all(at).unwrap();
        let mount = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "mode=0755,size=64k", "tmpfs"])
            .arg(at)
            .output();
        match mount {
            Ok(output) if output.status.success() => Ok(Tiny(at.to_owned())),
            Ok(output) => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
            Err(error) => Err(error.to_string()),
        }
    }
}

impl Drop for Tiny {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[test]
fn full_disk_under_the_logs() {
    for freeze in freezers() {
        let dir = tempfile::tempdir().unwrap();
        let tiny = match Tiny::mount(&dir.path().join("logs")) {
            Ok(tiny) => tiny,
            Err(why) => {
                return drop(std::io::Write::write_fmt(
                    &mut std::io::stderr(),
                    format_args!("skipped, because no small file system can be mounted: {why}\n"),
                ));
            }
        };
        let flood = "head -c 400000 /dev/zero; true";
        let elsewhere = format!("sleep 0.1; ({}) > elsewhere", counting(LINES));
        let mix = MixBuilder::default().shell("flood", flood).copies(
            "quiet",
            3,
            &elsewhere.replace("elsewhere", "elsewhere-$$"),
        );
        let mut run = TestRun::start_in(dir, mix, freeze, &["--jobs", "4"]);
        // No job failed, but there is no record of that.
        assert_eq!(run.code(), Some(1), "{}", run.stderr());
        assert!(run.stderr().contains("No space left"), "{}", run.stderr());
        let shown = format!("{}{}", run.stdout(), run.stderr());
        assert!(
            shown.contains("4 succeeded in "),
            "a summary all the same: {shown}"
        );
        run.nothing_left();
        let files = std::fs::read_dir(run.dir.path())
            .unwrap()
            .map(|entry| entry.unwrap().path());
        let written: Vec<PathBuf> = files
            .filter(|path| path.to_str().unwrap().contains("elsewhere-"))
            .collect();
        assert_eq!(written.len(), 3);
        for path in written {
            assert!(
                is_complete(&std::fs::read_to_string(&path).unwrap(), LINES),
                "{}",
                path.display()
            );
        }
        drop(tiny);
    }
}

/// A group of the v1 memory controller with little memory, removed when this value is dropped.
struct Cramped(PathBuf);

impl Cramped {
    fn make() -> Result<Cramped, String> {
        let dir = Path::new("/sys/fs/cgroup/memory").join(format!("faults-{}", std::process::id()));
        std::fs::create_dir(&dir).map_err(|error| format!("{}: {error}", dir.display()))?;
        let cramped = Cramped(dir);
        let limit = cramped.0.join("memory.limit_in_bytes");
        std::fs::write(&limit, "16M").map_err(|error| format!("{}: {error}", limit.display()))?;
        // This file exists only where swap is accounted.
        let _ = std::fs::write(cramped.0.join("memory.memsw.limit_in_bytes"), "16M");
        Ok(cramped)
    }
}

impl Drop for Cramped {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(&self.0);
    }
}

#[test]
fn killed_for_want_of_memory() {
    let cramped = match Cramped::make() {
        Ok(cramped) => cramped,
        Err(why) => {
            return drop(std::io::Write::write_fmt(
                &mut std::io::stderr(),
                format_args!("skipped, because no v1 memory group can be made: {why}\n"),
            ));
        }
    };
    for freeze in freezers() {
        // Reads a line that never ends into its memory.
        let hungry = format!(
            "echo $$ > {}/cgroup.procs && exec tail /dev/zero",
            cramped.0.display()
        );
        let mix = MixBuilder::default()
            .shell("hungry", &hungry)
            .counting(3, LINES);
        let mut run = TestRun::start(mix, freeze, &["--jobs", "4"]);
        assert_eq!(run.code(), Some(1), "{}", run.stderr());
        let told = run.stderr() + &run.stdout();
        assert!(told.contains("memory"), "says why: {told}");
        run.nothing_left();
        run.logs_complete(3, LINES, true);
    }
}

/// Few descriptors: jobs beyond what they allow are not counted, and run all the same.
#[test]
fn jobs_without_descriptors_for_counters_run() {
    for freeze in freezers() {
        let by = "ulimit -Sn 100; ulimit -Hn 256; exec \"$0\" \"$@\"";
        let job = "ulimit -Sn; touch here-$$; while [ ! -e go ]; do sleep 0.5; done";
        let mix = MixBuilder::default().copies("brief", 200, job);
        let more = ["--jobs", "200", "--policy", "linux"];
        let mut run = TestRun::start_by(
            &["sh", "-c", by],
            tempfile::tempdir().unwrap(),
            mix,
            freeze,
            &more,
        );
        let here = |run: &TestRun| {
            let files = std::fs::read_dir(run.dir.path())
                .unwrap()
                .filter_map(Result::ok);
            files
                .filter(|file| file.file_name().to_string_lossy().starts_with("here-"))
                .count()
        };
        until("all have been started", || {
            run.has_ended() || here(&run) == 200
        });
        std::fs::write(run.dir.path().join("go"), "").unwrap();
        assert_eq!(run.code(), Some(0), "{}", run.stderr());
        assert!(
            (1..=200).all(|n| run.output(&format!("brief-{n}")) == "100\n"),
            "the caller's limit"
        );
        assert!(
            run.stderr().contains("too many files were open"),
            "{}",
            run.stderr()
        );
        run.nothing_left();
    }
}

#[test]
fn hundreds_of_jobs_leak_nothing() {
    for freeze in freezers() {
        for policy in ["fifo", "round-robin"] {
            let mix = MixBuilder::default().copies("brief", 500, "exit 0");
            let mut run = TestRun::start(mix, freeze, &["--policy", policy, "-q"]);
            let (mut most_files, mut most_zombies) = (0, 0);
            while !run.has_ended() {
                let files = std::fs::read_dir(format!("/proc/{}/fd", run.pid))
                    .map_or(0, |files| files.count());
                let zombies = with_zombies()
                    .iter()
                    .filter(|p| p.parent == run.pid && p.state == 'Z')
                    .count();
                most_files = most_files.max(files);
                most_zombies = most_zombies.max(zombies);
                std::thread::sleep(std::time::Duration::from_millis(50));
            }
            assert_eq!(run.code(), Some(0), "{}", run.stderr());
            // A few for each live job. Between two checks of the run only a few jobs end.
            let cpus = std::thread::available_parallelism().unwrap().get();
            assert!(
                most_files < 50 + 24 * cpus,
                "{most_files} files were open at once"
            );
            assert!(most_zombies <= 8 * cpus, "{most_zombies} zombies at once");
            let record = std::fs::read_to_string(run.dir.path().join("logs/run.json")).unwrap();
            let record: serde_json::Value = serde_json::from_str(&record).unwrap();
            let jobs = record["jobs"].as_array().unwrap();
            assert_eq!(jobs.len(), 500);
            run.nothing_left();
        }
    }
}
