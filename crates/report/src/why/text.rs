//! The answer in words.

use super::{LatestTurn, PreferredJob, SeriesEnd, WhyAnswer, WhyChange, WhyState, WhyStep};
use crate::reason::{trigger_text, wait_text_naming};
use crate::series::CpuMode;
use crate::text::{count, seconds, visible, wrap};
use cosched_core::{CpuSet, Nanos, Purpose, node_of};
use std::fmt::Write as _;

/// Maximum number of other jobs named in one line.
const MAX_NAMED: usize = 8;
/// Maximum number of triggers named for a decision.
const MAX_TRIGGERS: usize = 4;

/// Render the answer for people, in lines of at most `width` characters.
pub fn why_text(why: &WhyAnswer, width: usize) -> String {
    let mut out = String::new();
    let title = format!(
        "{} at {}: {}",
        visible(&why.job),
        at(why.at),
        why.state_text()
    );
    write_wrapped(&mut out, 0, width, &title);
    let lines = [
        why.end_text(),
        why.reason_text(),
        why.weight.map(|weight| format!("weight: {weight}")),
        why.preferred_text(),
        why.at_once.as_deref().map(visible),
        why.latest_text(),
        why.next_text(),
    ];
    let warnings = why.warnings.iter();
    let warnings = warnings.map(|text| format!("warning: {}", visible(text)));
    for line in lines.into_iter().flatten().chain(warnings) {
        write_wrapped(&mut out, 2, width, &line);
    }
    if !why.steps.is_empty() {
        write_wrapped(&mut out, 0, width, "the last decisions about it:");
    }
    for step in &why.steps {
        write_wrapped(&mut out, 2, width, &why.step_text(step));
    }
    out
}

/// Write a text whose further lines are indented by two more characters.
fn write_wrapped(out: &mut String, indent: usize, width: usize, text: &str) {
    let room = width.saturating_sub(indent + 2).max(20);
    let mut indent = indent;
    for (ix, line) in wrap(text, room).iter().enumerate() {
        indent += if ix == 1 { 2 } else { 0 };
        let _ = writeln!(out, "{:indent$}{line}", "");
    }
}

impl WhyAnswer {
    fn name(&self, task: u32) -> String {
        match self.names.get(task as usize) {
            Some(name) => visible(name),
            None => format!("job {task}"),
        }
    }

    fn since(&self, time: Nanos) -> String {
        format!(
            "since {}, for {}",
            at(time),
            seconds((self.at - time).as_s())
        )
    }

    fn has_no_cpu(&self) -> bool {
        matches!(self.state, WhyState::Waits { .. } | WhyState::Queued { .. })
    }

    fn state_text(&self) -> String {
        match &self.state {
            WhyState::NotArrived { arrival } => format!("arrives at {}", at(*arrival)),
            WhyState::Queued { since } => format!("is in the queue, {}", self.since(*since)),
            WhyState::Runs {
                since,
                cpus,
                mode,
                purpose,
            } => {
                let (mode, purpose) = (self.mode_text(*mode), purpose_text(*purpose));
                let since = self.since(*since);
                let place = self.place(cpus);
                format!("runs on {place}{mode}{purpose}, {since}")
            }
            WhyState::Waits { since } => format!("waits, {}", self.since(*since)),
            WhyState::Ended { ended, exit } => {
                format!("ended at {} ({})", at(*ended), visible(exit))
            }
        }
    }

    fn place(&self, cpus: &CpuSet) -> String {
        match node_of(&self.nodes, cpus) {
            Some(node) => format!("node {}", visible(&node.name)),
            None => format!("CPU {cpus}"),
        }
    }

    fn mode_text(&self, mode: CpuMode) -> &'static str {
        match mode {
            CpuMode::Exclusive => "",
            CpuMode::WholeCore => ", with its whole core",
            CpuMode::Shared if self.nodes.is_empty() => ", shared by the kernel",
            // The node has a run of its own.
            CpuMode::Shared => "",
        }
    }

    fn end_text(&self) -> Option<String> {
        if self.series_end != Some(SeriesEnd::Over) {
            return None;
        }
        match &self.state {
            WhyState::Waits { .. } | WhyState::Runs { .. } => {
                Some("its series ends here: its run was killed, or could not write".to_owned())
            }
            WhyState::Queued { .. } | WhyState::NotArrived { .. } => {
                Some("its series ends here, and it never started".to_owned())
            }
            WhyState::Ended { .. } => None,
        }
    }

    /// Return the last reason to wait.
    fn reason_text(&self) -> Option<String> {
        if !self.has_no_cpu() {
            return None;
        }
        self.steps.iter().rev().find_map(|step| match &step.did {
            WhyChange::Waits { reason } => Some(format!(
                "why: {} (as decided at {})",
                wait_text_naming(reason, |task| self.name(task.0)),
                at(step.at)
            )),
            _ => None,
        })
    }

    fn preferred_text(&self) -> Option<String> {
        if self.preferred.is_empty() {
            return None;
        }
        let mut texts = Vec::new();
        for PreferredJob {
            task,
            cpus,
            since,
            purpose,
        } in self.preferred.iter().take(MAX_NAMED)
        {
            let (name, since) = (self.name(*task), at(*since));
            let purpose = purpose_text(*purpose);
            let place = self.place(cpus);
            texts.push(format!("{name} on {place} since {since}{purpose}"));
        }
        let more = match self.preferred.len().saturating_sub(MAX_NAMED) {
            0 => String::new(),
            more => format!(" and {}", count(more as u64, "other")),
        };
        Some(format!("instead: {}{more}", texts.join("; ")))
    }

    fn latest_text(&self) -> Option<String> {
        Some(match self.latest.as_ref()? {
            LatestTurn::Pause {
                overdue,
                at: latest,
                max_pause,
            } => format!(
                "latest: {}: at {} it has waited for {} (--max-pause) and comes before others",
                at(*latest),
                at(*overdue),
                seconds(max_pause.as_s())
            ),
            LatestTurn::Order => "latest: no bound: it starts in the policy's order".to_owned(),
            LatestTurn::Queue { live: 0, .. } => {
                "latest: no bound: it starts once it has been let in".to_owned()
            }
            LatestTurn::Queue { live, order } => {
                let live = count(*live as u64, "live job");
                let rule = if order == "auto" {
                    " (while more may come, short jobs pass long ones; in a batch on few CPUs, those that fit better beside the running ones may pass)"
                } else {
                    ""
                };
                format!(
                    "latest: no bound: it is let in when one of {live} ends and it is next by --order {order}{rule}"
                )
            }
        })
    }

    fn next_text(&self) -> Option<String> {
        let (policy, next) = (visible(&self.policy), at(self.next_decision?));
        Some(format!(
            "next: {policy} decides again at {next} at the latest"
        ))
    }

    /// Return a decision with its triggers.
    fn step_text(&self, step: &WhyStep) -> String {
        let mut triggers = Vec::new();
        for trigger in step.triggers.iter().take(MAX_TRIGGERS) {
            triggers.push(trigger_text(trigger, |task| self.name(task.0)));
        }
        if let more @ 1.. = step.triggers.len().saturating_sub(MAX_TRIGGERS) {
            triggers.push(format!("and {more} more"));
        }
        let mut text = format!("{}  {}", at(step.at), self.did_text(&step.did));
        if !triggers.is_empty() {
            let _ = write!(text, " [{}]", triggers.join(", "));
        }
        if step.stood_in {
            text.push_str(" [round-robin stood in for the policy]");
        }
        text
    }

    fn did_text(&self, did: &WhyChange) -> String {
        match did {
            WhyChange::Placed {
                cpus,
                mode,
                purpose,
                waited,
            } => {
                let after = match waited {
                    Some(waited) => format!(" after {}", seconds(waited.as_s())),
                    None => String::new(),
                };
                let (mode, purpose) = (self.mode_text(*mode), purpose_text(*purpose));
                let place = self.place(cpus);
                format!("placed on {place}{after}{mode}{purpose}")
            }
            WhyChange::Stopped => "stopped".to_owned(),
            WhyChange::Waits { reason } => {
                let reason = wait_text_naming(reason, |task| self.name(task.0));
                format!("waits: {reason}")
            }
        }
    }
}

fn purpose_text(purpose: Purpose) -> &'static str {
    match purpose {
        Purpose::Run => "",
        Purpose::MeasureAlone => ", to be measured alone",
        Purpose::LowContention => ", in low contention, beside a measurement",
        Purpose::WarmUp => ", to warm up for a measurement",
    }
}

fn at(time: Nanos) -> String {
    format!("{:.3} s", time.as_s())
}
