//! The jobs' output on the terminal, read from the files that the jobs write to. Nothing of it is kept in memory beyond
//! one piece, however much a job writes.

use super::super::args::Show;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

/// Bytes that are read at once. A longer line is shown in several.
const PIECE: usize = 64 << 10;

/// Pieces of one file that are shown before others have their turn.
const TURN: usize = 16;

/// Where the jobs' output is shown.
pub(super) struct Target<'a> {
    /// The jobs' standard output.
    pub(super) out: &'a mut dyn Write,
    /// Their standard error.
    pub(super) err: &'a mut dyn Write,
}

/// Follows the output of all jobs.
pub(super) struct Output {
    how: Show,
    /// Show whole jobs in the order of their numbers.
    keep_order: bool,
    /// Of each file, show no more than this.
    limit: u64,
    /// Jobs that have started and are not wholly shown.
    jobs: BTreeMap<u32, Followed>,
    /// The next job to be shown, if their order is kept.
    next: u32,
    /// Jobs that ended without having started.
    never_started: BTreeSet<u32>,
    piece: Vec<u8>,
}

struct Followed {
    tag: String,
    files: [FollowedFile; 2],
    ended: bool,
}

/// One file of a job.
struct FollowedFile {
    path: PathBuf,
    file: Option<File>,
    position: u64,
    limit: u64,
}

impl Output {
    pub(super) fn new(how: Show, keep_order: bool, limit: Option<u64>) -> Output {
        Output {
            how,
            keep_order,
            limit: limit.unwrap_or(u64::MAX),
            jobs: BTreeMap::new(),
            next: 0,
            never_started: BTreeSet::new(),
            piece: vec![0; PIECE],
        }
    }

    /// A job was started: from now on its output is shown.
    pub(super) fn started(&mut self, job: u32, tag: String, files: [PathBuf; 2]) {
        let file = |path| FollowedFile { path, file: None, position: 0, limit: self.limit };
        let files = files.map(file);
        self.jobs.insert(job, Followed { tag, files, ended: false });
    }

    /// Whether there are jobs whose lines are shown as they come.
    pub(super) fn is_following(&self) -> bool {
        self.how != Show::Group && !self.jobs.is_empty()
    }

    /// Shows what jobs have written since the last call. Lines that are not complete yet are left for later.
    ///
    /// # Errors
    /// The target takes nothing more.
    pub(super) fn follow(&mut self, to: &mut Target<'_>) -> io::Result<()> {
        if self.how == Show::Group {
            return Ok(());
        }
        for job in self.jobs.values_mut() {
            job.show(self.how, TURN, &mut self.piece, to)?;
        }
        Ok(())
    }

    /// A job ended: shows the rest of its output, or all of it.
    ///
    /// # Errors
    /// The target takes nothing more.
    pub(super) fn ended(&mut self, job: u32, to: &mut Target<'_>) -> io::Result<()> {
        let has_order = self.keep_order && self.how == Show::Group;
        match self.jobs.get_mut(&job) {
            Some(followed) => followed.ended = true,
            None if has_order => drop(self.never_started.insert(job)),
            None => {}
        }
        if !has_order {
            return self.finish(job, to);
        }
        let is_over = |output: &mut Output| {
            let next = output.next;
            output.never_started.remove(&next) || output.jobs.get(&next).is_some_and(|followed| followed.ended)
        };
        while is_over(self) {
            self.finish(self.next, to)?;
            self.next += 1;
        }
        Ok(())
    }

    /// Shows what was held back for the sake of the order: jobs before it never ended.
    ///
    /// # Errors
    /// The target takes nothing more.
    pub(super) fn finish_all(&mut self, to: &mut Target<'_>) -> io::Result<()> {
        let left: Vec<u32> = self.jobs.iter().filter(|(_, job)| job.ended).map(|(number, _)| *number).collect();
        left.into_iter().try_for_each(|job| self.finish(job, to))
    }

    fn finish(&mut self, job: u32, to: &mut Target<'_>) -> io::Result<()> {
        let Some(mut followed) = self.jobs.remove(&job) else { return Ok(()) };
        followed.show(self.how, usize::MAX, &mut self.piece, to)
    }
}

impl Followed {
    /// Shows at most so many pieces of each file.
    fn show(&mut self, how: Show, pieces: usize, piece: &mut [u8], to: &mut Target<'_>) -> io::Result<()> {
        for (number, file) in self.files.iter_mut().enumerate() {
            let to: &mut dyn Write = if number == 0 { to.out } else { to.err };
            for _ in 0..pieces {
                if !file.show(how, self.ended, &self.tag, piece, to)? {
                    break;
                }
            }
        }
        Ok(())
    }
}

impl FollowedFile {
    /// Shows the next piece; returns whether there may be more.
    fn show(&mut self, how: Show, all: bool, tag: &str, piece: &mut [u8], to: &mut dyn Write) -> io::Result<bool> {
        if self.file.is_none() {
            self.file = File::open(&self.path).ok();
        }
        let Some(file) = &self.file else { return Ok(false) };
        let left = usize::try_from(self.limit - self.position).unwrap_or(usize::MAX);
        let most = piece.len().min(left);
        let piece = &mut piece[..most];
        // A file that can't be read is shown as far as it could be.
        let Ok(got) = file.read_at(piece, self.position) else { return Ok(false) };
        let bytes = &piece[..got];
        let shown = match bytes.iter().rposition(|&byte| byte == b'\n') {
            _ if how == Show::Group || got == piece.len() && !bytes.contains(&b'\n') => got,
            Some(last) => last + 1,
            // An unfinished line waits for its end, or the end of the job.
            None if !all => 0,
            None => got,
        };
        self.position += shown as u64;
        let bytes = &bytes[..shown];
        if bytes.is_empty() {
            return Ok(false);
        }
        match how {
            Show::Group | Show::Live => to.write_all(bytes)?,
            Show::Tag => self.tagged(tag, bytes, to)?,
        }
        to.flush()?;
        Ok(got == piece.len() || all)
    }

    /// Writes each line with the job's tag before it. A part of a line gets a line end.
    fn tagged(&self, tag: &str, bytes: &[u8], to: &mut dyn Write) -> io::Result<()> {
        let mut text = Vec::with_capacity(bytes.len() + 64);
        for line in bytes.split_inclusive(|&byte| byte == b'\n') {
            text.extend_from_slice(tag.as_bytes());
            text.push(b'\t');
            text.extend_from_slice(line);
            if !line.ends_with(b"\n") {
                text.push(b'\n');
            }
        }
        to.write_all(&text)
    }
}

/// The last line of a file that holds more than blanks, at most `most` characters of it.
pub(super) fn last_line(path: &std::path::Path, most: usize) -> Option<String> {
    let file = File::open(path).ok()?;
    let length = file.metadata().ok()?.len();
    let mut end = vec![0; PIECE.min(usize::try_from(length).unwrap_or(PIECE))];
    let from = length - end.len() as u64;
    file.read_exact_at(&mut end, from).ok()?;
    let text = String::from_utf8_lossy(&end);
    let line = text.lines().rev().find(|line| !line.trim().is_empty())?;
    Some(line.chars().take(most).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Seek as _;

    struct Shown {
        dir: tempfile::TempDir,
        output: Output,
        out: Vec<u8>,
        err: Vec<u8>,
    }

    impl Shown {
        fn new(how: Show, keep_order: bool) -> Shown {
            Shown {
                dir: tempfile::tempdir().unwrap(),
                output: Output::new(how, keep_order, Some(1 << 30)),
                out: Vec::new(),
                err: Vec::new(),
            }
        }

        fn write(&self, file: &str, text: &[u8]) {
            let path = self.dir.path().join(file);
            File::options().append(true).create(true).open(path).unwrap().write_all(text).unwrap();
        }

        fn start(&mut self, job: u32) {
            let files = ["out", "err"].map(|of| self.dir.path().join(format!("{job}.{of}")));
            self.output.started(job, format!("job{job}"), files);
        }

        /// What is shown by a call, on standard output and standard error.
        fn shows(&mut self, call: impl FnOnce(&mut Output, &mut Target<'_>) -> io::Result<()>) -> [String; 2] {
            call(&mut self.output, &mut Target { out: &mut self.out, err: &mut self.err }).unwrap();
            [&mut self.out, &mut self.err].map(|shown| String::from_utf8(std::mem::take(shown)).unwrap())
        }
    }

    #[test]
    fn lines_are_shown_as_they_come_and_unfinished_ones_when_the_job_ends() {
        let mut shown = Shown::new(Show::Tag, false);
        shown.start(1);
        assert_eq!(shown.shows(Output::follow), ["", ""]);
        shown.write("1.out", b"x\n\ny");
        shown.write("1.err", b"e\n");
        assert_eq!(shown.shows(Output::follow), ["job1\tx\njob1\t\n", "job1\te\n"]);
        shown.write("1.out", b"z");
        assert_eq!(shown.shows(Output::follow), ["", ""]);
        assert!(shown.output.is_following());
        assert_eq!(shown.shows(|output, to| output.ended(1, to)), ["job1\tyz\n", ""]);
        assert!(!shown.output.is_following());
        assert_eq!(shown.shows(|output, to| output.ended(1, to)), ["", ""]);
    }

    #[test]
    fn a_line_longer_than_a_piece_is_shown_in_parts_and_nothing_is_lost() {
        for how in [Show::Live, Show::Group, Show::Tag] {
            let mut shown = Shown::new(how, false);
            shown.start(1);
            let long = vec![b'a'; 2 * PIECE + 10];
            shown.write("1.out", &long);
            let mut all = shown.shows(Output::follow)[0].clone();
            shown.write("1.out", b"b\nc");
            all += &shown.shows(|output, to| output.ended(1, to))[0];
            let letters: String = all.replace("job1\t", "").replace('\n', "");
            assert_eq!(letters.len(), long.len() + 2, "{how:?}");
            assert!(letters.ends_with("abc"), "{how:?}");
        }
    }

    #[test]
    fn a_fast_writer_leaves_room_for_the_others() {
        let mut shown = Shown::new(Show::Live, false);
        (1..=2).for_each(|job| shown.start(job));
        shown.write("1.out", &b"y\n".repeat(PIECE));
        shown.write("1.out", &b"y\n".repeat(PIECE * TURN));
        shown.write("2.out", b"other\n");
        let [first, _] = shown.shows(Output::follow);
        assert!(first.len() <= PIECE * TURN + 6 && first.ends_with("other\n"));
    }

    #[test]
    fn nothing_is_shown_beyond_the_limit() {
        for how in [Show::Live, Show::Group, Show::Tag] {
            let mut shown = Shown::new(how, false);
            shown.output.limit = 6;
            shown.start(1);
            shown.write("1.out", b"abc\nde");
            let mut all = shown.shows(Output::follow)[0].clone();
            shown.write("1.out", b"fgh\n");
            all += &shown.shows(Output::follow)[0];
            all += &shown.shows(|output, to| output.ended(1, to))[0];
            assert_eq!(all.replace("job1\t", "").trim_end(), "abc\nde", "{how:?}");
        }
    }

    #[test]
    fn whole_jobs_come_in_their_order_if_that_is_kept() {
        let mut shown = Shown::new(Show::Group, true);
        for job in 0..4 {
            shown.start(job);
            shown.write(&format!("{job}.out"), format!("{job}\n").as_bytes());
        }
        assert_eq!(shown.shows(Output::follow)[0], "");
        assert_eq!(shown.shows(|output, to| output.ended(1, to))[0], "");
        assert_eq!(shown.shows(|output, to| output.ended(0, to))[0], "0\n1\n");
        assert_eq!(shown.shows(|output, to| output.ended(3, to))[0], "");
        assert_eq!(shown.shows(|output, to| output.ended(4, to))[0], "", "it never started");
        assert_eq!(shown.shows(|output, to| output.ended(2, to))[0], "2\n3\n");
        shown.start(6);
        shown.write("6.out", b"6\n");
        assert_eq!(shown.shows(|output, to| output.ended(6, to))[0], "");
        assert_eq!(shown.shows(Output::finish_all)[0], "6\n");
    }

    #[test]
    fn of_a_huge_file_only_the_end_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("err");
        let mut file = File::create(&path).unwrap();
        file.set_len(1 << 40).unwrap();
        file.seek(io::SeekFrom::End(0)).unwrap();
        file.write_all("\nwhy \u{416}\n  \n".as_bytes()).unwrap();
        assert_eq!(last_line(&path, 200).as_deref(), Some("why \u{416}"));
        assert_eq!(last_line(&path, 2).as_deref(), Some("wh"));
        std::fs::write(&path, "").unwrap();
        assert_eq!(last_line(&path, 200), None);
        assert_eq!(last_line(&dir.path().join("none"), 200), None);
    }
}
