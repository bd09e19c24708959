//! The jobs of a run over nodes: their lines, where each is, and what it used.

use cosched_core::{Absence, DeviceTime, Event, Exit, JobEnd, Reading, Resources, TaskId, Usage};
use std::collections::BTreeMap;
use std::time::Instant;

/// A job as the backend gets it.
#[derive(Clone, Debug)]
pub struct NodeJob {
    /// Its name.
    pub name: String,
    /// Its [line](crate::protocol::NodeOrder::Job), without `id`: a JSON object.
    pub line: String,
}

/// A job moves at most this often: it may not begin because all nodes are short of memory.
const MOST_MOVES: u32 = 8;

/// All jobs that the loop may still name.
#[derive(Default)]
pub(crate) struct ClusterJobs(BTreeMap<TaskId, Job>);

struct Job {
    /// Or why it can't be started.
    job: Result<NodeJob, String>,
    /// The node that has it.
    node: Option<usize>,
    /// When it was sent there.
    sent: Instant,
    /// It has begun there.
    has_begun: bool,
    /// The node was asked to end it, or to give it back.
    is_withdrawn: bool,
    /// How often that was asked.
    withdrawals: u32,
    /// How many nodes have died under it.
    losses: u32,
    /// How it ended.
    end: Option<JobEnd>,
}

impl ClusterJobs {
    pub(crate) fn add(&mut self, task: TaskId, job: Result<NodeJob, String>) {
        let job = Job {
            job,
            node: None,
            sent: Instant::now(),
            has_begun: false,
            is_withdrawn: false,
            withdrawals: 0,
            losses: 0,
            end: None,
        };
        self.0.insert(task, job);
    }

    pub(crate) fn forget(&mut self, task: TaskId) {
        self.0.remove(&task);
    }

    /// The node that has a job.
    pub(crate) fn node(&self, task: TaskId) -> Option<usize> {
        self.0.get(&task)?.node
    }

    pub(crate) fn name(&self, task: TaskId) -> &str {
        match self.0.get(&task).map(|job| &job.job) {
            Some(Ok(job)) => &job.name,
            _ => "?",
        }
    }

    /// Gives a job to a node, and returns its line. One that has a node already stays there.
    ///
    /// # Errors
    /// Why it can't be started.
    pub(crate) fn give(&mut self, task: TaskId, node: usize) -> Result<Option<Vec<u8>>, String> {
        let Some(entry) = self.0.get_mut(&task).filter(|job| job.node.is_none()) else {
            return Ok(None);
        };
        let job = entry.job.as_ref().map_err(String::clone)?;
        entry.node = Some(node);
        entry.sent = Instant::now();
        entry.has_begun = false;
        entry.is_withdrawn = false;
        entry.end = None;
        let rest = job.line.strip_prefix('{').unwrap_or_default();
        Ok(Some(
            format!("{{\"id\":\"{}\",{rest}\n", task.0).into_bytes(),
        ))
    }

    /// Notes that a job has begun.
    pub(crate) fn begin(&mut self, task: TaskId) {
        if let Some(job) = self.0.get_mut(&task) {
            job.has_begun = true;
        }
    }

    /// Notes that a job's node is asked to end it or to give it back, and returns the node.
    pub(crate) fn withdraw(&mut self, task: TaskId) -> Option<usize> {
        let job = self.0.get_mut(&task)?;
        job.is_withdrawn = true;
        job.withdrawals += 1;
        job.node
    }

    /// Notes the end of a job on its node. One that was withdrawn before it began is lost instead.
    pub(crate) fn end(&mut self, task: TaskId, end: JobEnd) -> Option<Event> {
        let job = self.0.get_mut(&task)?;
        job.node = None;
        if job.is_withdrawn && !job.has_begun {
            return Some(Event::Lost(task));
        }
        let exit = end.exit();
        job.end = Some(end);
        Some(Event::Ended { task, exit })
    }

    /// For each node the number of its jobs, and those that were sent before this, have not begun and may move.
    pub(crate) fn by_node(&self, nodes: usize, before: Instant) -> Vec<(usize, Vec<TaskId>)> {
        let mut all = vec![(0, Vec::new()); nodes];
        for (&task, job) in &self.0 {
            let Some(node) = job.node else { continue };
            let (count, stuck) = &mut all[node];
            *count += 1;
            let is_settled = job.has_begun || job.is_withdrawn || job.withdrawals >= MOST_MOVES;
            if !is_settled && job.sent <= before {
                stuck.push(task);
            }
        }
        all
    }

    /// Takes all jobs of a node that is gone. They start on others, unless more nodes than `most` have died under them.
    pub(crate) fn lose(&mut self, node: usize, most: u32) -> Vec<Event> {
        let mut lost = Vec::new();
        for (&task, job) in &mut self.0 {
            if job.node != Some(node) {
                continue;
            }
            job.node = None;
            job.losses += u32::from(job.has_begun);
            lost.push(if job.losses > most {
                let exit = Exit::NotStarted(format!("its node was lost; losses: {}", job.losses));
                Event::Ended { task, exit }
            } else {
                Event::Lost(task)
            });
        }
        lost
    }

    /// What a job has used. It is known once it has ended.
    pub(crate) fn usage(&self, task: TaskId) -> Usage {
        let (end, why) = self.used(task);
        Usage {
            task,
            cpu_time: end.cpu_time(why),
            counts: end.counts(|_| why),
            multiplexed: end.multiplexed,
            residency: Reading::Absent(Absence::NotOffered),
            device_time: DeviceTime::from_fn(|_| Reading::Absent(Absence::NotOffered)),
        }
    }

    pub(crate) fn resources(&self, task: TaskId) -> Resources {
        let (end, why) = self.used(task);
        end.resources(|_| why)
    }

    /// What is known of a job, and why the rest is not.
    fn used(&self, task: TaskId) -> (JobEnd, Absence) {
        match self.0.get(&task).and_then(|job| job.end.as_ref()) {
            Some(end) => (end.clone(), Absence::NotTold),
            None => (JobEnd::default(), Absence::NotEnded),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use cosched_core::Nanos;

    const TASK: TaskId = TaskId(3);

    fn jobs() -> ClusterJobs {
        let mut jobs = ClusterJobs::default();
        let job = NodeJob {
            name: "a#4".to_owned(),
            line: r#"{"argv":["a"]}"#.to_owned(),
        };
        jobs.add(TASK, Ok(job));
        jobs
    }

    #[test]
    fn a_job_is_sent_once_until_its_node_is_gone() {
        let mut jobs = jobs();
        let line = jobs.give(TASK, 0).unwrap().unwrap();
        assert_eq!(line, b"{\"id\":\"3\",\"argv\":[\"a\"]}\n");
        assert!(jobs.give(TASK, 1).unwrap().is_none(), "it stays");
        assert!(jobs.lose(1, 1).is_empty());
        jobs.begin(TASK);
        assert_eq!(jobs.lose(0, 1), [Event::Lost(TASK)]);
        assert!(jobs.give(TASK, 1).unwrap().is_some());
        assert_eq!(jobs.lose(1, 1), [Event::Lost(TASK)], "it had not begun");
        assert!(jobs.give(TASK, 1).unwrap().is_some());
        jobs.begin(TASK);
        let exit = Exit::NotStarted("its node was lost; losses: 2".to_owned());
        assert_eq!(jobs.lose(1, 1), [Event::Ended { task: TASK, exit }]);
    }

    #[test]
    fn what_a_job_used_is_known_at_its_end() {
        let mut jobs = jobs();
        jobs.give(TASK, 0).unwrap();
        assert!(jobs.usage(TASK).cpu_time.absence().is_some());
        let end = JobEnd {
            cpu_s: Some(0.5),
            ..JobEnd::default()
        };
        assert!(jobs.end(TASK, end).is_some());
        assert_eq!(
            jobs.usage(TASK).cpu_time,
            Reading::Value(Nanos::from_ms(500))
        );
        assert!(jobs.resources(TASK).max_rss.absence().is_some());
    }

    #[test]
    fn a_job_that_is_withdrawn_before_it_begins_is_lost() {
        let mut jobs = jobs();
        let end = || JobEnd {
            exit: Some(0),
            exit_text: "exit 0".to_owned(),
            ..JobEnd::default()
        };
        let ended = Event::Ended {
            task: TASK,
            exit: Exit::Code(0),
        };
        let stuck = |jobs: &ClusterJobs| jobs.by_node(2, Instant::now());
        jobs.give(TASK, 0).unwrap();
        assert_eq!(stuck(&jobs), [(1, vec![TASK]), (0, vec![])]);
        assert_eq!(jobs.withdraw(TASK), Some(0));
        assert_eq!(stuck(&jobs), [(1, vec![]), (0, vec![])]);
        assert_eq!(jobs.end(TASK, end()), Some(Event::Lost(TASK)));
        jobs.give(TASK, 1).unwrap();
        assert_eq!(stuck(&jobs), [(0, vec![]), (1, vec![TASK])]);
        assert_eq!(jobs.end(TASK, end()), Some(ended.clone()));
        jobs.give(TASK, 0).unwrap();
        jobs.withdraw(TASK);
        jobs.begin(TASK);
        assert_eq!(jobs.end(TASK, end()), Some(ended), "it had begun");
    }
}
