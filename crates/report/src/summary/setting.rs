//! The setting of a run, and how to repeat it.

use crate::record::RunRecord;
use crate::source::BackendKind;
use crate::table::{Table, TableColumn};
use crate::text::{bytes, count, seconds};

/// Return the command that repeats a run. A simulation has no command line, so it is put together.
pub fn command_again(record: &RunRecord) -> String {
    let setting = &record.setting;
    if let Some(words) = &setting.command_line {
        let words = words.join(" ");
        return match &setting.cwd {
            Some(cwd) => format!("cd {cwd}\n{words}"),
            None => words,
        };
    }
    let mut params = String::new();
    for param in &setting.params {
        if param.origin == "param" {
            params.push_str(&format!(" --param {}={}", param.name, param.value));
        }
    }
    let on = match &setting.world {
        Some(world) => format!(" --on '{}'", world.replace('\'', r"'\''")),
        None if record.backend == BackendKind::Sim => format!(" --on '{}'", record.machine),
        None => String::new(),
    };
    format!(
        "cosched run MIX{on} --policy {}{params} --seed {}",
        record.policy, record.seed
    )
}

/// A row of the table: a name, and a value if the record has it.
type SettingRow = (&'static str, fn(&RunRecord) -> Option<String>);

const ROWS: [SettingRow; 17] = [
    ("machine", |record| Some(record.machine.clone())),
    ("has", |record| Some(topology(record))),
    ("core types", core_types),
    ("host", |record| record.setting.host.clone()),
    ("kernel", |record| record.setting.kernel.clone()),
    ("CPUs of the run", |record| {
        let cpus = record.setting.options.cpus.clone();
        Some(cpus).filter(|cpus| !cpus.is_empty())
    }),
    ("counters", counters),
    ("freezing", |record| record.freezing.clone()),
    ("policy", |record| Some(policy(record))),
    ("parameters", parameters),
    ("seed", |record| Some(record.seed.to_string())),
    ("started", |record| record.started_at.clone()),
    ("jobs from", |record| record.setting.input.path.clone()),
    ("their SHA-256", |record| {
        record.setting.input.sha256.clone()
    }),
    ("cosched itself", |record| Some(overhead(record))),
    ("the CPUs' time", lost_time),
    ("cosched", |record| Some(record.cosched_version.clone())),
];

fn topology(record: &RunRecord) -> String {
    let machine = &record.machine_details;
    let size = match machine.llc_bytes {
        Some(size) => format!(" of {}", bytes(size as f64)),
        None => String::new(),
    };
    format!(
        "{}, {}, {}{size}, {}",
        count(machine.cpus as u64, "CPU"),
        count(machine.cores as u64, "core"),
        count(machine.llcs as u64, "last-level cache"),
        count(machine.memory_domains as u64, "memory domain")
    )
}

fn core_types(record: &RunRecord) -> Option<String> {
    let types = &record.machine_details.core_types;
    (types.len() > 1).then(|| types.join(", "))
}

fn counters(record: &RunRecord) -> Option<String> {
    let why = record.absent.why("counters");
    let none = why.map(|why| format!("none: {why}"));
    record.counters.clone().or(none)
}

fn policy(record: &RunRecord) -> String {
    let lacks = match &record.setting.options.policy_lacks {
        Some(why) => format!(" (auto: {why})"),
        None => String::new(),
    };
    let quantum = seconds(record.quantum_s);
    format!("{}{lacks}, quantum {quantum}", record.policy)
}

fn parameters(record: &RunRecord) -> Option<String> {
    let mut texts = Vec::new();
    for param in &record.setting.params {
        texts.push(format!("{}={} ({})", param.name, param.value, param.origin));
    }
    (!texts.is_empty()).then(|| texts.join(", "))
}

fn overhead(record: &RunRecord) -> String {
    let overhead = &record.overhead;
    let share = match overhead.cpu_share {
        Some(share) => format!(", {:.2} % of one CPU", 100.0 * share),
        None => String::new(),
    };
    let decisions = count(overhead.decisions, "decision");
    format!("{decisions}, {} quanta{share}", overhead.quanta)
}

/// Return the shares of the CPUs' time that others used.
fn lost_time(record: &RunRecord) -> Option<String> {
    let load = &record.machine_load;
    let mut texts = Vec::new();
    if let Some(share) = load.steal_share {
        texts.push(format!("{:.1} % taken by the hypervisor", 100.0 * share));
    }
    if let Some(share) = load.foreign_share {
        texts.push(format!("{:.1} % used by other programs", 100.0 * share));
    }
    (!texts.is_empty()).then(|| texts.join(", "))
}

/// Return the table of the machine, the policy and the setting of a run.
pub fn setting_table(record: &RunRecord) -> Table {
    let mut rows = Vec::new();
    for (name, value) in ROWS {
        rows.extend(value(record).map(|value| (name, value)));
    }
    let columns = vec![
        TableColumn::text("what", 0, &rows, |(name, _)| *name),
        TableColumn::text("value", 0, &rows, |(_, value)| value.clone()),
    ];
    Table { columns }
}
