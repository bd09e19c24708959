//! A node of a run, and what its worker says.

use crate::jobs::ClusterJobs;
use crate::link::{LinkError, WorkerLink, WorkerRead};
use crate::machine::slots;
use crate::protocol::{self, FILES, FramePiece, JobName, JobStream, WorkerFrame};
use crate::sink::{OutputPiece, Sink};
use cosched_core::{EarlierPhases, Event, JobEnd, Nanos, TaskId};
use cosched_report::{JobInfos, RunWarning};
use std::io;
use std::sync::Arc;

/// A node.
pub(crate) struct ClusterNode {
    pub(crate) name: String,
    /// `None` once it is gone.
    pub(crate) link: Option<WorkerLink>,
    pub(crate) desk: Desk,
}

/// What is known of a node, and what it is just sending.
pub(crate) struct Desk {
    /// Its place among the nodes.
    index: usize,
    /// Its first frame.
    pub(crate) told: Option<protocol::NodeDescription>,
    /// Where its files go; `None` before the run.
    pub(crate) sink: Option<Sink>,
    coming: Coming,
    /// The start of its clock on this run's, in ns.
    start: Option<i128>,
    /// A file could not be written; told once.
    is_lossy: bool,
}

/// What the raw bytes of the last frame are.
enum Coming {
    Nothing,
    Output(TaskId, JobStream),
    File(String),
}

/// What the frames of one turn mean for the run.
pub(crate) struct FrameNews<'a> {
    pub(crate) jobs: &'a mut ClusterJobs,
    pub(crate) events: &'a mut Vec<Event>,
    /// What is known of the jobs.
    pub(crate) infos: &'a JobInfos,
    pub(crate) warnings: &'a mut Vec<RunWarning>,
    pub(crate) pieces: &'a mut Vec<OutputPiece>,
    pub(crate) now: Nanos,
}

impl ClusterNode {
    pub(crate) fn new(index: usize, name: String, link: WorkerLink) -> ClusterNode {
        ClusterNode {
            name,
            link: Some(link),
            desk: Desk::new(index),
        }
    }

    /// What its worker has said of it, unless it is gone.
    pub(crate) fn answer(&self) -> Option<&protocol::NodeDescription> {
        self.desk.told.as_ref().filter(|_| self.link.is_some())
    }

    /// Whether it takes jobs.
    pub(crate) fn is_up(&self) -> bool {
        self.answer().is_some()
    }

    /// The jobs that it runs at once; none if it is gone.
    pub(crate) fn slots(&self) -> usize {
        self.answer().map_or(0, |told| slots(told) as usize)
    }

    /// Whether its worker has not answered yet.
    pub(crate) fn is_starting(&self) -> bool {
        self.link.is_some() && self.desk.told.is_none()
    }

    /// Collects a worker that has ended in good order.
    pub(crate) fn leave(&mut self) {
        if let Some(mut link) = self.link.take() {
            link.wait();
        }
    }

    /// Reads what the worker has sent.
    ///
    /// # Errors
    /// It sent something else than frames.
    pub(crate) fn read(
        &mut self,
        buffer: &mut Vec<u8>,
        news: &mut FrameNews<'_>,
    ) -> Result<WorkerRead, LinkError> {
        let ClusterNode { name, link, desk } = self;
        let Some(link) = link else {
            return Ok(WorkerRead::Goes);
        };
        link.read(buffer, |piece| {
            if let Err(error) = desk.take(name, piece, news) {
                desk.lose(name, &error, news);
            }
        })
    }
}

impl Desk {
    fn new(index: usize) -> Desk {
        Desk {
            index,
            told: None,
            sink: None,
            coming: Coming::Nothing,
            start: None,
            is_lossy: false,
        }
    }

    fn take(
        &mut self,
        node: &str,
        piece: FramePiece<'_>,
        news: &mut FrameNews<'_>,
    ) -> io::Result<()> {
        match piece {
            FramePiece::Frame(frame) => self.take_frame(node, *frame, news),
            FramePiece::Bytes(bytes) => self.take_bytes(bytes, news),
        }
    }

    fn take_frame(
        &mut self,
        node: &str,
        frame: WorkerFrame,
        news: &mut FrameNews<'_>,
    ) -> io::Result<()> {
        self.coming = Coming::Nothing;
        match frame {
            WorkerFrame::Node(told) => self.told = Some(told),
            WorkerFrame::Start { job, at_s } => {
                let at = self.here(at_s, news.now);
                if let Some(task) = self.own(task_of(&job), news) {
                    news.jobs.begin(task);
                    news.events.push(Event::Began { task, at });
                }
            }
            WorkerFrame::Output { id, stream, bytes } => {
                if let Some(task) = self.own(id.parse().ok().map(TaskId), news) {
                    self.coming = Coming::Output(task, stream);
                    if let Some(sink) = &mut self.sink {
                        sink.begin(news.jobs.name(task), stream, bytes)?;
                    }
                }
            }
            WorkerFrame::End { job, how, learnt } => self.ended(task_of(&job), how, learnt, news),
            WorkerFrame::Warning { text } => news.warnings.push(RunWarning::NodeSays {
                node: node.to_owned(),
                text,
            }),
            WorkerFrame::File { name, .. } => {
                if FILES.contains(&&*name) {
                    self.coming = Coming::File(name);
                }
            }
            WorkerFrame::Retry { .. } | WorkerFrame::Progress(_) | WorkerFrame::Beat => {}
        }
        Ok(())
    }

    /// A time on the node's clock, by this run's. A frame takes a while to come, so the least difference is the best.
    fn here(&mut self, at_s: f64, now: Nanos) -> Nanos {
        let at = Nanos::from_s(at_s);
        let start = self.start.get_or_insert(i128::MAX);
        *start = (*start).min(i128::from(now.0) - i128::from(at.0));
        Nanos((*start + i128::from(at.0)).max(0) as u64)
    }

    /// The task, if this node has it.
    fn own(&self, task: Option<TaskId>, news: &FrameNews<'_>) -> Option<TaskId> {
        task.filter(|&task| news.jobs.node(task) == Some(self.index))
    }

    fn ended(
        &self,
        task: Option<TaskId>,
        how: JobEnd,
        learnt: Option<EarlierPhases>,
        news: &mut FrameNews<'_>,
    ) {
        let Some(task) = self.own(task, news) else {
            return;
        };
        if let Some(info) = news.infos.borrow_mut().get_mut(task) {
            info.learnt = learnt.map(Arc::new);
        }
        news.events.extend(news.jobs.end(task, how));
    }

    fn take_bytes(&mut self, bytes: &[u8], news: &mut FrameNews<'_>) -> io::Result<()> {
        let Some(sink) = &mut self.sink else {
            return Ok(());
        };
        match &self.coming {
            Coming::Nothing => Ok(()),
            Coming::File(name) => sink.keep(name, bytes),
            &Coming::Output(task, stream) => {
                let offset = sink.append(bytes)?;
                news.pieces.push(OutputPiece {
                    task,
                    stream,
                    file: sink.path(),
                    offset,
                    bytes: bytes.len() as u64,
                });
                Ok(())
            }
        }
    }

    /// Tells once that what the node sends can't be kept.
    fn lose(&mut self, node: &str, error: &io::Error, news: &mut FrameNews<'_>) {
        if !std::mem::replace(&mut self.is_lossy, true) {
            news.warnings.push(RunWarning::OutputLost {
                folder: node.to_owned(),
                why: error.to_string(),
            });
        }
    }
}

fn task_of(job: &JobName) -> Option<TaskId> {
    job.id.as_deref()?.parse().ok().map(TaskId)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jobs::NodeJob;
    use cosched_core::{Exit, TaskSpec};
    use cosched_report::JobInfo;

    #[test]
    fn what_a_node_has_learnt_of_a_job_is_noted() {
        let spec = TaskSpec::new(3, "a");
        let (task, infos) = (spec.id, JobInfos::default());
        infos.borrow_mut().insert(task, JobInfo::of(&spec));
        let mut jobs = ClusterJobs::default();
        let (name, line) = ("a#4".to_owned(), "{}".to_owned());
        jobs.add(task, Ok(NodeJob { name, line }));
        jobs.give(task, 0).unwrap();
        let how = JobEnd::of_exit(&Exit::Code(0));
        let learnt = || Some(EarlierPhases::default());
        let (mut events, mut warnings, mut pieces) = (Vec::new(), Vec::new(), Vec::new());
        let mut news = FrameNews {
            jobs: &mut jobs,
            events: &mut events,
            infos: &infos,
            warnings: &mut warnings,
            pieces: &mut pieces,
            now: Nanos::ZERO,
        };
        Desk::new(1).ended(Some(task), how.clone(), learnt(), &mut news);
        assert_eq!(infos.borrow()[task].learnt, None, "it is not on this node");
        Desk::new(0).ended(Some(task), how, learnt(), &mut news);
        assert_eq!(
            infos.borrow()[task].learnt,
            Some(EarlierPhases::default().into())
        );
        let exit = Exit::Code(0);
        assert_eq!(events, [Event::Ended { task, exit }]);
    }
}
