//! Jobs that come while the run goes on, as the loop takes them.

use super::context::RunContext;
use super::memory::Known;
use super::platform::{Arrivals, Platform};
use super::prepare::{Prepared, Preparer};
use super::source::OpenInput;
use crate::input::{Arrived, Job, JobInput, Withdrawal, base};
use cosched_core::{Backend as _, ByTask, Event, Intake, Nanos, TaskId, TaskSpec};
use cosched_memory::LockPatience;
use cosched_report::{JobInfos, RunWarning};
use std::cell::RefCell;
use std::rc::Rc;

/// What earlier runs know of each job, shared with who reports its end.
pub(crate) type AllKnown = Rc<RefCell<ByTask<Known>>>;

/// Takes jobs in, and makes them ready.
pub(crate) struct JobStream<'a, P> {
    pub(crate) open: OpenInput,
    pub(crate) preparer: Preparer<'a, P>,
    pub(crate) run: &'a RunContext<'a, P>,
    pub(crate) infos: JobInfos,
    pub(crate) known: AllKnown,
    /// The number of jobs so far.
    pub(crate) count: u32,
    /// More jobs are there than were taken.
    pub(crate) is_ready: bool,
}

/// Why a job can't be started, without its name: who tells it names the job.
fn without_name(job: &Job, why: String) -> String {
    let name = format!("{}: job `{}`: ", job.input.place, job.name);
    match why.strip_prefix(&name) {
        Some(rest) => rest.to_owned(),
        None => why,
    }
}

/// A job of the input. One that can't be started has no program; it fails when its turn comes.
struct Next<P: Platform> {
    job: Job,
    prepared: Result<Prepared<P>, String>,
}

impl<P: Platform> JobStream<'_, P> {
    /// Makes an arrived job ready. In an open list each name gets its number: it is not known which are unique.
    /// A job with a reaper has the key that a queue gave it.
    fn next(&mut self, arrived: Arrived) -> Next<P> {
        let id = self.count;
        self.count += 1;
        let Arrived {
            place,
            id: told,
            job,
        } = arrived;
        let input = job.and_then(|mut input| {
            self.open.defaults.apply(&mut input)?;
            Ok(input)
        });
        let (input, why) = match input {
            Ok(input) => (input, None),
            Err(why) => (
                JobInput {
                    id: told,
                    ..JobInput::none(place)
                },
                Some(why),
            ),
        };
        let number = match &input.id {
            Some(key) if self.preparer.options.machine.reaper.is_some() => key.clone(),
            // The number of the task at its coordinator, which names it by the number of the job.
            Some(key) if self.preparer.options.machine.is_worker => key
                .parse()
                .map_or_else(|_| key.clone(), |task: u64| (task + 1).to_string()),
            _ => (id + 1).to_string(),
        };
        let name = format!("{}#{number}", base(&input));
        let job = Job { name, input };
        if let Some(policy) = self.preparer.without_weights()
            && job.input.weight.is_some()
        {
            let warning = RunWarning::WeightsUnused { policy };
            self.run.screen.warn(warning);
        }
        let prepared = match why {
            Some(why) => Err(why),
            None => self.preparer.prepare(id as usize, &job),
        };
        let prepared = prepared.and_then(|prepared| {
            if self.preparer.platform.view().has_job_files()
                && let Some(folder) = &mut *self.run.folder.borrow_mut()
            {
                folder.add(&job.name)?;
            }
            Ok(prepared)
        });
        let prepared = prepared.map_err(|why| without_name(&job, format!("{why:#}")));
        Next { job, prepared }
    }

    /// Lets jobs begin with what earlier runs know of them.
    fn recall(&self, first: u32, next: &mut [Next<P>]) {
        let mut ids = Vec::new();
        let mut jobs = Vec::new();
        for (id, Next { job, prepared }) in (first..).zip(next) {
            if let Ok(prepared) = prepared {
                ids.push(TaskId(id));
                jobs.push((&*job, prepared));
            }
        }
        let mut memory = self.run.memory.borrow_mut();
        let (known, warning) = self
            .preparer
            .recall(&mut memory, LockPatience::None, &mut jobs);
        if let Some(warning) = warning {
            self.run.screen.warn(warning);
        }
        for (id, known) in ids.into_iter().zip(known) {
            if let Some(known) = known {
                self.known.borrow_mut().insert(id, known);
            }
        }
    }

    /// Withdraws the last job with this id, if there is one.
    fn withdraw(&self, arrivals: &mut dyn Arrivals<P::Job>, withdrawal: &Withdrawal) {
        let (Withdrawal::Cancel(id) | Withdrawal::GiveBack(id)) = withdrawal;
        let infos = self.infos.borrow();
        let jobs = infos.values();
        let Some(job) = jobs.filter(|job| job.id.as_ref() == Some(id)).last() else {
            return;
        };
        let task = TaskId(job.seq as u32 - 1);
        let name = job.name.clone();
        arrivals.post(match withdrawal {
            Withdrawal::Cancel(_) => Event::EndTask { task, name },
            Withdrawal::GiveBack(_) => Event::GiveBack(task),
        });
    }

    /// Hands a job that came `now` to the backend, and returns its task.
    fn hand_over(
        &self,
        arrivals: &mut dyn Arrivals<P::Job>,
        now: Nanos,
        id: u32,
        next: Next<P>,
    ) -> TaskSpec {
        let Next { job, prepared } = next;
        let (spec, task) = match prepared {
            Ok(Prepared { spec, task }) => (spec, Ok(task)),
            Err(why) => (TaskSpec::new(id, &job.name), Err(why)),
        };
        let spec = TaskSpec {
            arrives: now,
            ..spec
        };
        let info = self.preparer.info(u64::from(id) + 1, &job, &spec);
        self.infos.borrow_mut().insert(TaskId(id), info);
        arrivals.add(TaskId(id), task);
        spec
    }
}

impl<P: Platform> Intake<P::Backend> for JobStream<'_, P> {
    fn take(&mut self, backend: &mut P::Backend, room: usize, out: &mut Vec<TaskSpec>) {
        let first = self.count;
        let mut all = Vec::new();
        self.preparer.platform.look_anew();
        self.open.arriving.begin_turn();
        while all.len() < room {
            let Some(arrived) = self.open.arriving.next() else {
                break;
            };
            all.push(self.next(arrived));
        }
        if !all.is_empty() {
            self.recall(first, &mut all);
        }
        let now = backend.now();
        let Some(arrivals) = P::arrivals(backend) else {
            return;
        };
        for (id, next) in (first..).zip(all) {
            out.push(self.hand_over(arrivals, now, id, next));
        }
        for withdrawal in self.open.arriving.withdrawn() {
            self.withdraw(arrivals, &withdrawal);
        }
        self.is_ready = !self.has_ended() && (out.len() >= room || self.open.arriving.was_cut());
        arrivals.wake_at_input();
    }

    fn is_ready(&self) -> bool {
        self.is_ready
    }

    fn has_ended(&self) -> bool {
        self.open.arriving.has_ended()
    }
}
