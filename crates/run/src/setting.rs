//! How a run was started, for its record: everything that tells it from another run of the same jobs.

use super::context::RunContext;
use super::options::{RunOptions, SoloTimes};
use super::platform::{MachineView, Platform};
use super::policy::PolicyChoice;
use crate::input::spec::AUTO;
use crate::input::{path_text, quote};
use cosched_core::{Absence, Nanos, RunConfig, TimeLimit};
use cosched_linux::Allocation;
use cosched_linux::identity::{host_name, kernel_release};
use cosched_linux::root::Root;
use cosched_report::{
    Absences, AllocationSetting, ParamSetting, RunOptions as RecordedOptions, RunSetting,
};
use std::os::unix::ffi::OsStrExt as _;

/// Why an option is null.
const NOT_GIVEN: &str = "not given";

/// How a run with this policy and configuration was started.
pub(crate) fn setting<P: Platform>(
    run: &RunContext<'_, P>,
    choice: &PolicyChoice,
    config: &RunConfig,
) -> RunSetting {
    let view = run.platform.view();
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
        input: run.input.clone(),
        files: run.files.to_vec(),
        world: view.world.clone(),
        host: absent.note_option("host", process.host, why),
        kernel: absent.note_option("kernel", process.kernel, why),
        allocation: view.allocation.as_ref().map(allocation),
        params: settings,
        options: recorded_options(run.options, view, choice, config),
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
    choice: &PolicyChoice,
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
        SoloTimes::Nothing if !view.is_simulated() => None,
        SoloTimes::File(_) => Some("file".to_owned()),
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
