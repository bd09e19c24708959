//! How a run was started, for its record: everything that tells it from another run of the same jobs.

use super::options::{RunOptions, SoloSource};
use super::platform::{MachineView, Platform};
use super::policy::Choice;
use super::session::Session;
use crate::input::spec::AUTO;
use crate::input::{absolute, path_text, quote};
use crate::sha256::sha256;
use cosched_core::{Absence, Nanos, RunConfig, TimeLimit};
use cosched_linux::Allocation;
use cosched_linux::identity::{host_name, kernel_release};
use cosched_linux::root::Root;
use cosched_report::{
    Absences, AllocationSetting, ParamSetting, RunInput, RunOptions as RecordedOptions, RunSetting,
    SettingFile,
};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

/// Why an option is null.
const NOT_GIVEN: &str = "not given";

/// Where the jobs of a run come from, as it is noted when they are read. A simulation notes no path.
pub(crate) fn input(kind: &str, file: Option<(&Path, &[u8])>, simulated: bool) -> RunInput {
    const NO_FILE: &str = "the jobs were given on the command line";
    let mut absent = Absences::default();
    let mut path = None;
    let why = match file {
        None => NO_FILE,
        Some(_) if simulated => Absence::Simulated.text(),
        Some((name, _)) if name == Path::new("-") => "standard input",
        Some((name, _)) => {
            path = Some(path_text(&absolute(name)));
            ""
        }
    };
    let hash = file.map(|(_, bytes)| sha256(bytes));
    RunInput {
        kind: kind.to_owned(),
        path: absent.note_option("path", path, why),
        sha256: absent.note_option("sha256", hash, NO_FILE),
        absent,
    }
}

/// Where jobs come from while the run goes on.
pub(crate) fn open_input(kind: &str, file: &Path) -> RunInput {
    let mut from = input(kind, Some((file, b"")), false);
    from.sha256 = None;
    from.absent
        .note_option::<()>("sha256", None, "its jobs came while the run went on");
    from
}

/// A file that a run used, by its name as it was given and its content.
pub(crate) fn file(kind: &str, name: &Path, content: &[u8]) -> SettingFile {
    SettingFile {
        kind: kind.to_owned(),
        name: path_text(name),
        sha256: sha256(content),
    }
}

/// How a run with this policy and configuration was started.
pub(crate) fn setting<P: Platform>(
    session: &Session<'_, P>,
    choice: &Choice,
    config: &RunConfig,
) -> RunSetting {
    let view = session.platform.view();
    let mut absent = Absences::default();
    let (process, why) = if view.is_simulated() {
        (Process::default(), Absence::Simulated)
    } else {
        (Process::this(), Absence::NotTold)
    };
    let why = why.text();
    let mut settings = Vec::new();
    for (name, value) in choice.params.iter() {
        let origin = choice.origins.get(name).map_or("default", Into::into);
        settings.push(ParamSetting {
            name: name.to_owned(),
            value: value.clone(),
            origin: origin.to_owned(),
        });
    }
    RunSetting {
        command_line: absent.note_option("command_line", process.command_line, why),
        cwd: absent.note_option("cwd", process.cwd, why),
        input: session.input.clone(),
        files: session.files.to_vec(),
        world: view.world.clone(),
        host: absent.note_option("host", process.host, why),
        kernel: absent.note_option("kernel", process.kernel, why),
        allocation: view.allocation.as_ref().map(allocation),
        params: settings,
        options: recorded_options(session.options, view, choice, config),
        absent,
    }
}

/// What the batch job of this process asked for.
fn allocation(here: &Allocation) -> AllocationSetting {
    const UNTOLD: &str = "Slurm set no variable for it";
    let mut absent = Absences::default();
    let memory = here.memory.map(|(memory, _)| memory);
    AllocationSetting {
        job: here.job.clone(),
        restarts: here.restarts,
        nodes: absent.note_option("nodes", here.nodes, UNTOLD),
        cpus: absent.note_option("cpus", here.cpus_of_all, UNTOLD),
        memory_bytes: absent.note_option("memory_bytes", memory, "no memory was asked for"),
        absent,
    }
}

/// What the record of a run on this machine says of its process.
#[derive(Default)]
struct Process {
    command_line: Option<Vec<String>>,
    cwd: Option<String>,
    host: Option<String>,
    kernel: Option<String>,
}

impl Process {
    fn this() -> Process {
        let root = Root::default();
        let words = std::env::args_os().map(|word| quote(word.as_bytes()));
        Process {
            command_line: Some(words.collect()),
            cwd: std::env::current_dir().ok().as_deref().map(path_text),
            host: host_name(&root),
            kernel: kernel_release(&root),
        }
    }
}

/// The word of an option's value.
fn word(value: impl Into<&'static str>) -> String {
    value.into().to_owned()
}

fn recorded_options(
    options: &RunOptions,
    view: &MachineView,
    choice: &Choice,
    config: &RunConfig,
) -> RecordedOptions {
    let mut absent = Absences::default();
    let timeout = match config.timeout {
        None => None,
        Some(TimeLimit::Fixed(time)) => Some(format!("{}s", time.as_s())),
        Some(TimeLimit::PercentOfMedian(share)) => Some(format!("{share}%")),
    };
    let solo = match options.solo {
        // A simulation always measures them.
        SoloSource::Nothing if !view.is_simulated() => None,
        SoloSource::File(_) => Some("file".to_owned()),
        _ => Some("measure".to_owned()),
    };
    let shell = options.shell.as_ref().map(|shell| quote(shell.as_bytes()));
    let cpus = view.machine.cpus.len();
    let load = options.limits.load.map(|load| load.on(cpus));
    let deadline = options.limits.deadline;
    let mem_keep = options.limits.kept_memory(view.memory);
    let no_memory = if view.is_simulated() {
        Absence::Simulated.text()
    } else {
        Absence::NotTold.text()
    };
    let lacks = choice.lacks.clone();
    let why_nothing = match &options.policy.name {
        None => "nothing is lacking",
        Some(_) => "the policy was named",
    };
    RecordedOptions {
        policy: options.policy.name.clone().unwrap_or(AUTO.to_owned()),
        policy_lacks: absent.note_option("policy_lacks", lacks, why_nothing),
        jobs_at_once: config.jobs,
        order: word(config.order),
        cpus: view.machine.all_cpus().to_string(),
        cpus_per_job: options.machine.cpus_per_job.to_string(),
        threads_env: word(options.machine.threads_env),
        freeze: word(options.machine.freeze),
        actuator: word(options.machine.actuator),
        actuation: word(config.actuation),
        restart: word(config.restart),
        attempts: config.attempts,
        halt: config.halt.to_string(),
        max_pause_s: config.max_pause.as_s(),
        grace_s: config.grace.as_s(),
        delay_s: config.delay.as_s(),
        timeout: absent.note_option("timeout", timeout, NOT_GIVEN),
        deadline_s: absent.note_option("deadline_s", deadline.map(Nanos::as_s), NOT_GIVEN),
        mem_keep_bytes: absent.note_option("mem_keep_bytes", mem_keep, no_memory),
        load: absent.note_option("load", load, NOT_GIVEN),
        solo: absent.note_option("solo", solo, NOT_GIVEN),
        shell: absent.note_option("shell", shell, NOT_GIVEN),
        events: options.machine.events.clone(),
        absent,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_that_of_sha256sum() {
        let input = |path: &str| input("list", Some((Path::new(path), b"abc")), false);
        let from_file = input("/a/b");
        let hash = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(
            (from_file.path.as_deref(), from_file.sha256.as_deref()),
            (Some("/a/b"), Some(hash))
        );
        assert_eq!(input("-").absent.why("path"), Some("standard input"));
        assert_eq!(
            super::input("mix", Some((Path::new("/a"), b"")), true).path,
            None,
            "no path in a simulation"
        );
    }
}
