//! The progress that jobs print, by a pattern of the user's.

use regex_lite::Regex;
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::str::FromStr;

/// Bytes that are read at the end of an output file.
const TAIL_BYTES: usize = 4096;

/// A regular expression of lines that tell the progress of a job. It has one group, the per cent done, or two: what is done,
/// and of how much.
///
/// ```
/// use cosched_linux::ProgressPattern;
/// assert!(r"(\d+)%".parse::<ProgressPattern>().is_ok());
/// assert!(r"step (\d+) of (\d+)".parse::<ProgressPattern>().is_ok());
/// assert!(r"step \d+".parse::<ProgressPattern>().is_err());
/// ```
#[derive(Clone, Debug)]
pub struct ProgressPattern(Regex);

impl FromStr for ProgressPattern {
    type Err = String;

    fn from_str(text: &str) -> Result<ProgressPattern, String> {
        let regex = Regex::new(text).map_err(|error| error.to_string())?;
        let groups = regex.captures_len() - 1;
        if !(1..=2).contains(&groups) {
            return Err(format!(
                r"expected one group, the per cent done, or two, as in `(\d+)/(\d+)`; found {groups}"
            ));
        }
        Ok(ProgressPattern(regex))
    }
}

impl ProgressPattern {
    /// The share done that a job has printed last, to the first of its output files in which it has.
    pub(super) fn share(&self, files: &[&Path]) -> Option<f64> {
        let mut files = files.iter();
        files.find_map(|file| self.share_in(&tail(&File::open(file).ok()?)?))
    }

    fn share_in(&self, text: &str) -> Option<f64> {
        let last = self.0.captures_iter(text).last()?;
        let number = |group: usize| last.get(group)?.as_str().parse::<f64>().ok();
        let whole = if self.0.captures_len() == 3 {
            number(2)?
        } else {
            100.0
        };
        let share = number(1)? / whole;
        share.is_finite().then(|| share.clamp(0.0, 1.0))
    }
}

/// The end of a file; `None` if it cannot be read. A job that has the file open keeps its offset.
pub(super) fn tail(file: &File) -> Option<String> {
    let length = file.metadata().ok()?.len();
    let mut bytes = [0; TAIL_BYTES];
    let start = length.saturating_sub(TAIL_BYTES as u64);
    let read = file.read_at(&mut bytes, start).ok()?;
    Some(String::from_utf8_lossy(&bytes[..read]).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_match_counts() {
        let share = |pattern: &str, text: &str| {
            let pattern: ProgressPattern = pattern.parse().unwrap();
            pattern.share_in(text)
        };
        let bar = " 43%|####      | 43/100\r 44%|####      | 44/100\n";
        assert_eq!(share(r"(\d+)%", bar), Some(0.44));
        assert_eq!(share(r"(\d+)/(\d+)", bar), Some(0.44));
        assert_eq!(
            share(r"t=([\d.]+) of ([\d.]+)", "t=2.5 of 10.0"),
            Some(0.25)
        );
        assert_eq!(share(r"(\d+)/(\d+)", "9/3 0/0"), None, "no number");
        assert_eq!(share(r"(\d+)/(\d+)", "9/3"), Some(1.0));
        assert_eq!(share(r"(\d+)%", "nothing"), None);
    }

    #[test]
    fn only_the_end_of_a_file_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let [full, long] = ["full", "long"].map(|name| dir.path().join(name));
        std::fs::write(&full, "1/4\n2/4\n").unwrap();
        std::fs::write(&long, format!("3/4\n{}", "-".repeat(TAIL_BYTES))).unwrap();
        let pattern: ProgressPattern = r"(\d+)/(\d+)".parse().unwrap();
        let none = dir.path().join("none");
        assert_eq!(pattern.share(&[&none, &long, &full]), Some(0.5));
        assert_eq!(pattern.share(&[&long]), None);
    }
}
