//! Limits on the run and its jobs.

use super::super::parse::{duration, time_limit, words};
use clap::Args;
use cosched_core::{Halt, Nanos, Order, TimeLimit};
use cosched_run::{JobLimit, LimitOptions, LoadLimit};

/// Limits on the run and its jobs.
#[derive(Args)]
#[command(next_help_heading = "Limits")]
pub struct LimitArgs {
    /// Limit on live jobs; 0 for all, auto to learn it
    ///
    /// A number; 0 for all; auto to learn the best number; +N or -N relative to the CPUs; or N% of the CPUs. The other jobs wait in a queue [default: number of CPUs for fifo, else twice that]
    #[arg(
        short,
        long,
        value_name = "N",
        env = "COSCHED_JOBS",
        allow_hyphen_values = true
    )]
    #[arg(short_alias = 'P', alias = "max-procs")]
    pub jobs: Option<JobLimit>,

    /// Which jobs start first
    ///
    /// Jobs of equal or unknown length keep the given order.
    #[arg(
        long,
        value_parser = words::<Order>(),
        default_value = "auto",
        value_name = "ORDER",
        hide_short_help = true
    )]
    pub order: Order,

    /// Start no job while less memory than this is available, as in 2G; 0 for no limit
    ///
    /// On the machine or in a cgroup v2. One job runs in any case [default: 5 % of the memory]
    #[arg(
        long,
        alias = "memfree",
        value_name = "SIZE",
        value_parser = crate::size::parse_size,
        hide_short_help = true
    )]
    pub mem_keep: Option<u64>,

    /// Start no job while the load average is above this: a number, or N% of the CPUs
    #[arg(long, value_name = "N", hide_short_help = true)]
    pub load: Option<LoadLimit>,

    /// Time between the starts of two jobs
    #[arg(long, value_name = "DURATION", value_parser = duration, hide_short_help = true)]
    pub delay: Option<Nanos>,

    /// End a job after this time; pauses do not count
    ///
    /// As in 90s. Time in the queue does not count either. 200% is twice the median of the successful jobs.
    #[arg(long, value_name = "DURATION", value_parser = time_limit)]
    pub timeout: Option<TimeLimit>,

    /// End the whole run after this time, as in 8h
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub deadline: Option<Nanos>,

    /// Retry a failed job, up to N attempts in all
    #[arg(
        long,
        value_name = "N",
        value_parser = clap::value_parser!(u32).range(1..),
        default_value_t = 1
    )]
    pub retries: u32,

    /// Time from SIGTERM to SIGKILL
    #[arg(
        long,
        value_name = "DURATION",
        value_parser = duration,
        default_value = "5s",
        hide_short_help = true
    )]
    pub grace: Nanos,

    /// Longest pause of a started job, approximately
    #[arg(
        long,
        value_name = "DURATION",
        value_parser = duration,
        default_value = "30s",
        env = "COSCHED_MAX_PAUSE"
    )]
    #[arg(hide_short_help = true)]
    pub max_pause: Nanos,

    /// When to give up early, as in now,fail=1
    ///
    /// `never`, or `now` or `soon` with fail=N, success=N or done=N; also with N%.
    #[arg(long, value_name = "RULE", default_value = "never")]
    pub halt: Halt,
}

impl LimitArgs {
    pub fn options(self) -> LimitOptions {
        LimitOptions {
            jobs: self.jobs,
            order: self.order,
            mem_keep: self.mem_keep,
            load: self.load,
            delay: self.delay.unwrap_or_default(),
            timeout: self.timeout,
            deadline: self.deadline,
            attempts: self.retries,
            grace: self.grace,
            max_pause: self.max_pause,
            halt: self.halt,
        }
    }
}
