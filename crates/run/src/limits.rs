//! Limits in the forms of GNU parallel: `-j +2`, `-j 50%`, `--load 80%`, `--timeout 200%`.

use std::str::FromStr;

/// How many jobs may be live at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobLimit {
    /// As many as turn out best, up to the default.
    Auto,
    /// So many.
    Count(u32),
    /// All of them: `0`.
    All,
    /// The number of CPUs and so many more, or fewer: `+N` and `-N`.
    Relative(i32),
    /// So many per cent of the number of CPUs.
    Percent(u32),
}

impl JobLimit {
    /// The number on a machine with so many CPUs; at least 1.
    pub(crate) fn on(self, cpus: usize) -> usize {
        match self {
            JobLimit::Auto => cpus,
            JobLimit::Count(n) => n as usize,
            JobLimit::All => usize::MAX,
            JobLimit::Relative(more) => cpus.saturating_add_signed(more as isize).max(1),
            JobLimit::Percent(share) => (cpus * share as usize / 100).max(1),
        }
    }
}

impl FromStr for JobLimit {
    type Err = String;

    fn from_str(text: &str) -> Result<JobLimit, String> {
        if text == "auto" {
            return Ok(JobLimit::Auto);
        }
        if let Some(share) = text.strip_suffix('%') {
            return match share.parse() {
                Ok(share @ 1..=1_000_000) => Ok(JobLimit::Percent(share)),
                _ => Err(no_job_limit()),
            };
        }
        if text.starts_with(['+', '-']) {
            let more = text.parse().map_err(|_| no_job_limit())?;
            return Ok(JobLimit::Relative(more));
        }
        match text.parse() {
            Ok(0) => Ok(JobLimit::All),
            Ok(n) => Ok(JobLimit::Count(n)),
            Err(_) => Err(no_job_limit()),
        }
    }
}

fn no_job_limit() -> String {
    "expected auto, a number of jobs, 0 for all, +N or -N from the CPUs, or a share of them, as in 8, +2, -1 or 50%".to_owned()
}

/// The load average above which no further job is started.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LoadLimit {
    /// So many processes that run or want to.
    Count(f64),
    /// So many per cent of the number of CPUs.
    Percent(f64),
}

impl LoadLimit {
    /// The load average on a machine with so many CPUs.
    pub(crate) fn on(self, cpus: usize) -> f64 {
        match self {
            LoadLimit::Count(load) => load,
            LoadLimit::Percent(share) => cpus as f64 * share / 100.0,
        }
    }
}

impl FromStr for LoadLimit {
    type Err = String;

    fn from_str(text: &str) -> Result<LoadLimit, String> {
        let share = text.strip_suffix('%');
        match share.unwrap_or(text).parse() {
            Ok(number) if number > 0.0 && number < 1e6 => Ok(match share {
                Some(_) => LoadLimit::Percent(number),
                None => LoadLimit::Count(number),
            }),
            _ => Err(
                "expected a load average above zero, or a share of the CPUs, as in 4 or 80%"
                    .to_owned(),
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// GNU parallel 20221122 on 8 CPUs gives the same numbers.
    #[test]
    fn numbers_of_jobs() {
        let on_8 = |text: &str| text.parse::<JobLimit>().unwrap().on(8);
        assert_eq!(
            ["3", "+2", "-2", "-20", "50%", "1%", "150%"].map(on_8),
            [3, 10, 6, 1, 4, 1, 12]
        );
        assert_eq!((on_8("0"), on_8("auto")), (usize::MAX, 8));
        for text in ["", "x", "0%", "%", "1.5", "--1", "+"] {
            assert!(text.parse::<JobLimit>().is_err(), "{text}");
        }
    }

    #[test]
    fn loads() {
        let on_8 = |text: &str| text.parse::<LoadLimit>().map(|load| load.on(8));
        assert_eq!(
            (on_8("4"), on_8("50%"), on_8("1.5")),
            (Ok(4.0), Ok(4.0), Ok(1.5))
        );
        for text in ["", "0", "-1", "nan", "x%"] {
            assert!(on_8(text).is_err(), "{text}");
        }
    }
}
