//! What has changed from one interval to the next, in words: for the log of a service.

use cosched_report::{AttachedNow, SubjectState, visible};
use std::collections::{BTreeMap, BTreeSet};

/// Intervals without a disturbance until it is over, so that one that comes and goes is logged once.
const CALM: u32 = 5;

/// What was logged.
#[derive(Default)]
pub struct Changes {
    live: BTreeSet<String>,
    /// Disturbances, each with the intervals since it was found last.
    disturbed: BTreeMap<Pair, u32>,
}

/// Who disturbs, whom, and by which kind of evidence.
type Pair = [String; 3];

impl Changes {
    /// A line for each change.
    pub fn lines(&mut self, now: &AttachedNow) -> String {
        let mut text = String::new();
        let live = now
            .subjects
            .iter()
            .filter(|subject| subject.state == SubjectState::Live);
        let live: BTreeSet<String> = live.map(|subject| visible(&subject.name)).collect();
        for name in live.difference(&self.live) {
            text += &format!("{name}: attached\n");
        }
        for name in self.live.difference(&live) {
            text += &format!("{name}: ended\n");
        }
        self.live = live;
        for since in self.disturbed.values_mut() {
            *since += 1;
        }
        for found in &now.disturbances {
            let by = found.by.as_deref().or(found.absent.why("by"));
            let kind = found.evidence["kind"].as_str();
            let pair =
                [by, Some(&found.slows), kind].map(|word| word.unwrap_or_default().to_owned());
            if self.disturbed.insert(pair, 0).is_none() {
                text += &format!("{}\n", visible(&found.text));
            }
        }
        text + &self.over()
    }

    /// The disturbances that are over.
    fn over(&mut self) -> String {
        let mut text = String::new();
        self.disturbed.retain(|[by, slows, _], since| {
            let is_over = *since >= CALM;
            if is_over {
                text += &format!("{} no longer slows {}\n", visible(by), visible(slows));
            }
            !is_over
        });
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cosched_report::{Absences, DisturbanceNow, LeftOutNow, SubjectNow};

    fn interval(names: &[&str], is_disturbed: bool) -> AttachedNow {
        let subjects = names.iter().map(|name| SubjectNow {
            state: SubjectState::Live,
            ..SubjectNow::ended(name)
        });
        let disturbance = DisturbanceNow {
            by: Some("a".to_owned()),
            slows: "b".to_owned(),
            evidence: serde_json::json!({"kind": "same-cpu"}),
            text: "a probably slows b".to_owned(),
            absent: Absences::default(),
        };
        AttachedNow {
            schema: String::new(),
            cosched_version: String::new(),
            pid: 1,
            selected: Vec::new(),
            interval_s: 2.0,
            subjects: subjects.collect(),
            disturbances: is_disturbed.then_some(disturbance).into_iter().collect(),
            cpus: None,
            left_out: LeftOutNow::default(),
            absent: Absences::default(),
        }
    }

    #[test]
    fn each_change_is_logged_once() {
        let mut changes = Changes::default();
        let begun = "a: attached\nb: attached\na probably slows b\n";
        assert_eq!(changes.lines(&interval(&["a", "b"], true)), begun);
        for is_disturbed in [true, false, true, false, false, false, false] {
            assert_eq!(changes.lines(&interval(&["a", "b"], is_disturbed)), "");
        }
        let over = "b: ended\na no longer slows b\n";
        assert_eq!(changes.lines(&interval(&["a"], false)), over);
        assert_eq!(changes.lines(&interval(&["a"], false)), "");
    }
}
