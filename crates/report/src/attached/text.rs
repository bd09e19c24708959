//! An interval of attached programs in words.

use super::now::{AttachedNow, SubjectNow, SubjectState};
use crate::table::{NONE, Table, TableColumn};
use crate::text::{bytes, clip, count, grouped, seconds, visible, wrap};
use cosched_core::{CpuSet, CpuShare, CpuUsed, Nanos};
use std::collections::BTreeMap;

/// Maximum number of subjects shown.
const MAX_ROWS: usize = 40;
/// Maximum number of disturbances shown.
const MAX_DISTURBANCES: usize = 12;
/// CPU time below this share of the interval is not shown as a place where a subject ran.
const LEAST_SHARE: f64 = 0.01;
/// Figures whose reasons of absence are shown below the table, with their titles.
const EXPLAINED: [(&str, &str); 6] = [
    ("waited_s", "WAITED"),
    ("ipc", "IPC"),
    ("read_bytes_per_s", "GB/s"),
    ("cpu_pressure_percent", "PSI of CPUs"),
    ("memory_pressure_percent", "PSI of memory"),
    ("io_pressure_percent", "PSI of disks"),
];

/// Render the subjects, why figures are missing, and who probably disturbs whom, in at most `height` lines if there are
/// subjects that can be left out.
pub fn attached_text(now: &AttachedNow, width: usize, height: usize) -> String {
    let rows = now.subjects.len().min(MAX_ROWS);
    let text = text_of(now, width, rows);
    match text.lines().count().saturating_sub(height) {
        0 => text,
        excess => text_of(now, width, rows.saturating_sub(excess + 1)),
    }
}

/// Render everything with so many subjects.
fn text_of(now: &AttachedNow, width: usize, rows: usize) -> String {
    let mut text = vec![headline(now)];
    let shown = by_use(now);
    let left = shown.len() - rows;
    let shown = &shown[..rows];
    text.extend(subject_table(shown, now.interval_s).lines(width));
    if left > 0 {
        text.push(format!("and {left} more, which used less"));
    }
    text.extend(left_out(now));
    for (why, titles) in reasons(shown) {
        text.extend(wrap(&format!("{}: {why}", titles.join(", ")), width));
    }
    if shown.iter().any(|subject| subject.pressure_of_machine) {
        text.push("PSI of a subject without a cgroup of its own: that of the machine".to_owned());
    }
    text.push(String::new());
    text.extend(disturbance_lines(now, width));
    let mut text = text.join("\n");
    text.push('\n');
    text
}

fn headline(now: &AttachedNow) -> String {
    let live = now
        .subjects
        .iter()
        .filter(|subject| subject.state == SubjectState::Live);
    let processes: u32 = now.subjects.iter().map(|subject| subject.processes).sum();
    let mut parts = vec![
        visible(&now.selected.join(" ")),
        count(live.count() as u64, "subject"),
        process_count(processes as usize),
        format!("in {}", seconds(now.interval_s)),
    ];
    match &now.cpus {
        Some(cpus) => {
            let all = now.interval_s * cpus.len() as f64;
            parts.push(format!("CPUs busy {}", percent(cpus, |cpu| cpu.busy, all)));
            parts.push(format!("steal {}", percent(cpus, |cpu| cpu.stolen, all)));
        }
        None => parts.extend(now.absent.why("cpus").map(|why| format!("CPUs: {why}"))),
    }
    parts.join(", ")
}

fn process_count(n: usize) -> String {
    match n {
        1 => "1 process".to_owned(),
        n => format!("{} processes", grouped(n as u64)),
    }
}

/// The share of one kind of time in the time of all CPUs, in seconds.
fn percent(cpus: &[CpuUsed], kind: fn(&CpuUsed) -> Nanos, all_s: f64) -> String {
    let time_s: f64 = cpus.iter().map(|cpu| kind(cpu).as_s()).sum();
    let share = if all_s > 0.0 { time_s / all_s } else { 0.0 };
    format!("{:.0} %", 100.0 * share)
}

/// The subjects, those first that used or waited most, and last those that have ended.
fn by_use(now: &AttachedNow) -> Vec<&SubjectNow> {
    let mut all: Vec<&SubjectNow> = now.subjects.iter().collect();
    all.sort_by(|one, other| {
        let ended = |subject: &SubjectNow| subject.state == SubjectState::Ended;
        let order = ended(one).cmp(&ended(other));
        order.then(weight(other, now.interval_s).total_cmp(&weight(one, now.interval_s)))
    });
    all
}

/// The CPUs that a subject used and waited for.
fn weight(subject: &SubjectNow, interval_s: f64) -> f64 {
    let used = subject.figures.get("cpus_used").unwrap_or(&0.0);
    let waited = subject.figures.get("waited_s").unwrap_or(&0.0);
    used + waited / interval_s.max(f64::MIN_POSITIVE)
}

fn subject_table(shown: &[&SubjectNow], interval_s: f64) -> Table {
    let all = shown;
    let mut columns = vec![
        TableColumn::text("NAME", 0, all, |subject| visible(&subject.name)),
        TableColumn::text("ON", 0, all, |subject| on_text(subject, interval_s)),
        TableColumn::number("CPU", 0, all, |subject| {
            figure(subject, "cpus_used", |used| {
                format!("{:.0} %", 100.0 * used)
            })
        }),
        TableColumn::number("WAITED", 0, all, |subject| {
            figure(subject, "waited_s", seconds)
        }),
        TableColumn::number("WANTS", 1, all, |subject| live(subject, subject.wants)),
        TableColumn::number("THREADS", 8, all, |subject| live(subject, subject.threads)),
        TableColumn::number("IPC", 5, all, |subject| {
            figure(subject, "ipc", |ipc| format!("{ipc:.2}"))
        }),
        TableColumn::number("GB/s", 4, all, |subject| bandwidth(subject)),
        TableColumn::number("MEMORY", 3, all, |subject| {
            figure(subject, "resident_bytes", bytes)
        }),
        TableColumn::number("PSI cpu/mem/io", 2, all, pressures),
        TableColumn::text("COMMAND", 7, all, |subject| command(subject)),
    ];
    columns.retain(|column| all.is_empty() || column.has_values());
    Table { columns }
}

/// Longest command that is shown.
const COMMAND: usize = 40;

fn command(subject: &SubjectNow) -> Option<String> {
    let command = subject.command.as_deref();
    command.map(|command| clip(&visible(command), COMMAND))
}

/// The CPUs where it ran, or that it has ended.
fn on_text(subject: &SubjectNow, interval_s: f64) -> Option<String> {
    if subject.state == SubjectState::Ended {
        return Some("ended".to_owned());
    }
    let least = Nanos::from_s(LEAST_SHARE * interval_s);
    let is_used = |on: &&CpuShare| on.used + on.waited >= least;
    let used = subject.on.iter().filter(is_used);
    let cpus: CpuSet = used.map(|on| on.cpu).collect();
    (!cpus.is_empty()).then(|| cpus.to_string())
}

fn live(subject: &SubjectNow, number: u32) -> Option<String> {
    (subject.state == SubjectState::Live).then(|| number.to_string())
}

fn figure(subject: &SubjectNow, name: &str, show: impl Fn(f64) -> String) -> Option<String> {
    subject.figures.get(name).map(|value| show(*value))
}

fn bandwidth(subject: &SubjectNow) -> Option<String> {
    let read = subject.figures.get("read_bytes_per_s")?;
    let written = subject.figures.get("written_bytes_per_s").unwrap_or(&0.0);
    Some(format!("{:.2}", (read + written) / 1e9))
}

fn pressures(subject: &&SubjectNow) -> Option<String> {
    let names = [
        "cpu_pressure_percent",
        "memory_pressure_percent",
        "io_pressure_percent",
    ];
    let each = names.map(|name| figure(subject, name, |percent| format!("{percent:.0}")));
    if each.iter().all(Option::is_none) {
        return None;
    }
    Some(
        each.map(|text| text.unwrap_or_else(|| NONE.to_owned()))
            .join("/"),
    )
}

/// Why figures are missing: each reason with the titles that it explains.
fn reasons(shown: &[&SubjectNow]) -> BTreeMap<String, Vec<&'static str>> {
    let mut reasons: BTreeMap<String, Vec<&'static str>> = BTreeMap::new();
    for (name, title) in EXPLAINED {
        for subject in shown {
            if let Some(why) = subject.figures.why(name) {
                let titles = reasons.entry(why.to_owned()).or_default();
                if !titles.contains(&title) {
                    titles.push(title);
                }
            }
        }
    }
    reasons
}

fn left_out(now: &AttachedNow) -> Option<String> {
    let left = now.left_out;
    let mut parts = Vec::new();
    if left.processes > 0 {
        parts.push(process_count(left.processes));
    }
    if left.threads > 0 {
        parts.push(count(left.threads as u64, "thread"));
    }
    let parts = parts.join(" and ");
    (!parts.is_empty()).then(|| format!("not read, because there are too many: {parts}"))
}

fn disturbance_lines(now: &AttachedNow, width: usize) -> Vec<String> {
    if now.disturbances.is_empty() {
        return vec!["nothing measured here shows that one disturbs another".to_owned()];
    }
    let mut text = Vec::new();
    for disturbance in now.disturbances.iter().take(MAX_DISTURBANCES) {
        text.extend(wrap(&visible(&disturbance.text), width));
    }
    let left = now.disturbances.len().saturating_sub(MAX_DISTURBANCES);
    if left > 0 {
        text.push(format!("and {left} more; --format json has all"));
    }
    text
}
