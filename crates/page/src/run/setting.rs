//! What ran where, and how to repeat it.

use crate::html::{Cell, Table, esc_lines, list};
use cosched_core::ParamValue;
use cosched_report::{BackendKind, Record, count, seconds};

fn word(value: &ParamValue) -> String {
    match value {
        ParamValue::Number(number) => number.to_string(),
        ParamValue::Word(word) => word.clone(),
    }
}

/// The command that does the same again. A simulation notes no command line, so it is put together.
fn command(record: &Record) -> String {
    let setting = &record.setting;
    if let Some(words) = &setting.command_line {
        let cd = setting
            .cwd
            .as_ref()
            .map(|cwd| format!("cd {cwd}\n"))
            .unwrap_or_default();
        return format!("{cd}{}", words.join(" "));
    }
    let params = setting
        .params
        .iter()
        .filter(|param| param.origin == "param");
    let params: String = params
        .map(|param| format!(" --param {}={}", param.name, word(&param.value)))
        .collect();
    let on = if record.backend == BackendKind::Sim {
        format!(" --on '{}'", record.machine)
    } else {
        String::new()
    };
    format!(
        "cosched run MIX{on} --policy {}{params} --seed {}",
        record.policy, record.seed
    )
}

/// Of the machine, the policy and the run itself.
pub(crate) fn machine(record: &Record) -> String {
    let (machine, setting) = (&record.machine_details, &record.setting);
    let mut rows: Vec<(String, String)> = Vec::new();
    let mut add = |name: &str, value: Option<String>| {
        rows.extend(value.map(|value| (name.to_owned(), value)))
    };
    add("machine", Some(record.machine.clone()));
    let llc = machine
        .llc_bytes
        .map(|bytes| format!(" of {:.1} MiB", bytes as f64 / 1_048_576.0))
        .unwrap_or_default();
    add(
        "has",
        Some(format!(
            "{}, {}, {}{llc}, {}",
            count(machine.cpus as u64, "CPU"),
            count(machine.cores as u64, "core"),
            count(machine.llcs as u64, "last-level cache"),
            count(machine.memory_domains as u64, "memory domain")
        )),
    );
    add(
        "core types",
        (machine.core_types.len() > 1).then(|| machine.core_types.join(", ")),
    );
    add("host", setting.host.clone());
    add("kernel", setting.kernel.clone());
    add(
        "CPUs of the run",
        Some(setting.options.cpus.clone()).filter(|cpus| !cpus.is_empty()),
    );
    add(
        "counters",
        record.counters.clone().or_else(|| {
            record
                .absent
                .why("counters")
                .map(|why| format!("none: {why}"))
        }),
    );
    add("freezing", record.freezing.clone());
    let lacks = setting
        .options
        .policy_lacks
        .as_ref()
        .map(|why| format!(" (auto: {why})"))
        .unwrap_or_default();
    add(
        "policy",
        Some(format!(
            "{}{lacks}, quantum {}",
            record.policy,
            seconds(record.quantum_s)
        )),
    );
    let params: Vec<String> = setting
        .params
        .iter()
        .map(|param| format!("{}={} ({})", param.name, word(&param.value), param.origin))
        .collect();
    add(
        "parameters",
        (!params.is_empty()).then(|| params.join(", ")),
    );
    add("seed", Some(record.seed.to_string()));
    add("started", record.started_at.clone());
    add("jobs from", setting.input.path.clone());
    add("their SHA-256", setting.input.sha256.clone());
    let overhead = &record.overhead;
    let share = overhead
        .cpu_share
        .map(|share| format!(", {:.2} % of one CPU", 100.0 * share))
        .unwrap_or_default();
    add(
        "cosched itself",
        Some(format!(
            "{}, {} quanta{share}",
            count(overhead.decisions, "decision"),
            overhead.quanta
        )),
    );
    let load = &record.machine_load;
    let shares = [
        (load.steal_share, "taken by the hypervisor"),
        (load.foreign_share, "used by other programs"),
    ];
    let shares = shares
        .iter()
        .filter_map(|(share, what)| Some(format!("{:.1} % {what}", 100.0 * (*share)?)));
    let shares: Vec<String> = shares.collect();
    add(
        "the CPUs' time",
        (!shares.is_empty()).then(|| shares.join(", ")),
    );
    let heat = load.throttle_events.map(|events| {
        let long = load
            .throttled_s
            .map(|time| format!(", {} in all", seconds(time)))
            .unwrap_or_default();
        format!("slowed a core down {}{long}", count(events, "time"))
    });
    add("heat", heat.filter(|_| load.throttle_events != Some(0)));
    add("cosched", Some(record.cosched_version.clone()));
    let rows = rows
        .into_iter()
        .map(|(name, value)| vec![Cell::Text(name), Cell::Text(value)])
        .collect();
    let table = Table {
        id: None,
        caption: "",
        columns: vec!["what".to_owned(), "value".to_owned()],
        rows,
    };
    let again = format!(
        "<h3>The same again</h3>\n<pre>{}</pre>\n",
        esc_lines(&command(record))
    );
    format!("{}{again}{}", table.html(), missing(record))
}

/// What was off, and why.
fn missing(record: &Record) -> String {
    let all: Vec<String> = record
        .missing
        .iter()
        .map(|missing| format!("{}: {}", missing.what, missing.why))
        .collect();
    if all.is_empty() {
        String::new()
    } else {
        format!("<h3>What this run did not have</h3>\n{}", list(&all))
    }
}

/// What the user was warned of.
pub(crate) fn warnings(record: &Record) -> String {
    list(
        &record
            .warnings
            .iter()
            .map(|warning| warning.text.clone())
            .collect::<Vec<_>>(),
    )
}
