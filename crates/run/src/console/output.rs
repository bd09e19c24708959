//! The jobs' output on the terminal, or in frames, read from where it lies. Nothing of it is kept in memory beyond one piece,
//! however much a job writes.

use super::source::{Pieces, Source};
use crate::options::Show;
use cosched_nodes::protocol::{JobStream, WorkerFrame, write_frame};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;
use std::rc::Rc;
use std::time::SystemTime;

/// Bytes that are read at once.
pub(super) const PIECE: usize = 64 << 10;

/// Pieces of one file that are shown before others have their turn.
const TURN: usize = 16;

/// So many bytes of what was shown last are compared with the file.
const TAIL: usize = 64;

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
    /// Show frames, and remove the files of what is shown.
    framed: bool,
    /// Jobs that have started and are not wholly shown.
    jobs: BTreeMap<u32, Followed>,
    /// The next job to be shown, if their order is kept.
    next: u32,
    /// Jobs that ended without having started.
    never_started: BTreeSet<u32>,
    /// Files whose jobs have cut them off since that was asked for, by job and number.
    rewritten: BTreeSet<(u32, usize)>,
    piece: Vec<u8>,
}

struct Followed {
    tag: String,
    files: [FollowedFile; 2],
    ended: bool,
}

/// How output is shown.
#[derive(Clone, Copy)]
struct How {
    show: Show,
    framed: bool,
}

/// One stream of a job.
struct FollowedFile {
    stream: JobStream,
    source: Source,
    position: u64,
    /// No line ends between the position and this.
    searched: u64,
    /// What was shown last is the beginning of a line.
    in_line: bool,
    /// When the file was changed last, when it was looked at last.
    changed: Option<SystemTime>,
    /// The last bytes before the position.
    tail: Vec<u8>,
}

impl Output {
    pub(super) fn new(how: Show, keep_order: bool) -> Output {
        Output {
            how,
            keep_order,
            framed: false,
            jobs: BTreeMap::new(),
            next: 0,
            never_started: BTreeSet::new(),
            rewritten: BTreeSet::new(),
            piece: vec![0; PIECE],
        }
    }

    /// The same in frames. A line needs no end for them.
    pub(super) fn framed(how: Show) -> Output {
        Output {
            framed: true,
            ..Output::new(how, false)
        }
    }

    /// A job was started: from now on its output is shown.
    pub(super) fn started(&mut self, job: u32, tag: String, files: [PathBuf; 2]) {
        let [out, err] = files;
        let followed = Followed {
            tag,
            files: [
                FollowedFile::new(JobStream::Out, out),
                FollowedFile::new(JobStream::Err, err),
            ],
            ended: false,
        };
        self.jobs.insert(job, followed);
    }

    /// Whether a job was started, and not wholly shown.
    pub(super) fn knows(&self, job: u32) -> bool {
        self.jobs.contains_key(&job)
    }

    /// A piece of a job's output has come.
    pub(super) fn piece(
        &mut self,
        job: u32,
        stream: JobStream,
        file: &Rc<File>,
        offset: u64,
        bytes: u64,
    ) {
        if let Some(followed) = self.jobs.get_mut(&job) {
            let [out, err] = &mut followed.files;
            let to = if stream == JobStream::Out { out } else { err };
            to.source.pieces().add(file, offset, bytes);
        }
    }

    /// A job is started once more: where whole jobs are shown, only its last attempt is, from these lengths of its files.
    pub(super) fn started_again(&mut self, job: u32, lengths: [u64; 2]) {
        if self.shows_whole_jobs()
            && let Some(followed) = self.jobs.get_mut(&job)
        {
            for (file, length) in followed.files.iter_mut().zip(lengths) {
                // Nothing of what failed attempts wrote is shown, so there is nothing to compare the file with.
                file.position = file.source.as_pieces().map_or(length, Pieces::end);
            }
        }
    }

    /// The files that their jobs have cut off since the last call, by job and number: what they had written is gone.
    pub(super) fn rewritten(&mut self) -> impl Iterator<Item = (u32, usize)> {
        std::mem::take(&mut self.rewritten).into_iter()
    }

    /// Whether there are jobs whose lines are shown as they come.
    pub(super) fn is_following(&self) -> bool {
        !self.shows_whole_jobs() && !self.jobs.is_empty()
    }

    /// Shows what jobs have written since the last call. Lines that are not complete yet are left for later.
    ///
    /// # Errors
    /// The target takes nothing more.
    pub(super) fn follow(&mut self, to: &mut Target<'_>) -> io::Result<()> {
        if self.shows_whole_jobs() {
            return Ok(());
        }
        let how = self.how();
        for (&number, job) in &mut self.jobs {
            for file in job.rewritten() {
                self.rewritten.insert((number, file));
            }
            job.show(how, TURN, &mut self.piece, to)?;
        }
        Ok(())
    }

    /// A job ended: shows the rest of its output, or all of it.
    ///
    /// # Errors
    /// The target takes nothing more.
    pub(super) fn ended(&mut self, job: u32, to: &mut Target<'_>) -> io::Result<()> {
        let has_order = self.keep_order;
        match self.jobs.get_mut(&job) {
            Some(followed) => followed.ended = true,
            None if has_order => drop(self.never_started.insert(job)),
            None => {}
        }
        if !has_order {
            return self.finish(job, to);
        }
        while self.next_is_over() {
            self.finish(self.next, to)?;
            self.next += 1;
        }
        Ok(())
    }

    /// Whether the job whose turn it is has ended, or never started.
    fn next_is_over(&mut self) -> bool {
        let next = self.jobs.get(&self.next);
        self.never_started.remove(&self.next) || next.is_some_and(|followed| followed.ended)
    }

    /// Shows what was held back for the sake of the order: jobs before it never ended.
    ///
    /// # Errors
    /// The target takes nothing more.
    pub(super) fn finish_all(&mut self, to: &mut Target<'_>) -> io::Result<()> {
        let numbers: Vec<u32> = self.jobs.keys().copied().collect();
        for job in numbers {
            if self.jobs[&job].ended {
                self.finish(job, to)?;
            }
        }
        Ok(())
    }

    /// Jobs are shown when they have ended. An order can be kept in no other way.
    fn shows_whole_jobs(&self) -> bool {
        self.keep_order || self.how == Show::Group
    }

    fn finish(&mut self, job: u32, to: &mut Target<'_>) -> io::Result<()> {
        let Some(mut followed) = self.jobs.remove(&job) else {
            return Ok(());
        };
        for file in followed.rewritten() {
            self.rewritten.insert((job, file));
        }
        followed.show(self.how(), usize::MAX, &mut self.piece, to)?;
        if self.framed {
            followed.remove_files();
        }
        Ok(())
    }

    fn how(&self) -> How {
        How {
            show: self.how,
            framed: self.framed,
        }
    }
}

impl Followed {
    /// The numbers of the files that the job has cut off since they were shown.
    fn rewritten(&mut self) -> Vec<usize> {
        let mut rewritten = Vec::new();
        for (number, file) in self.files.iter_mut().enumerate() {
            if file.is_rewritten() {
                rewritten.push(number);
            }
        }
        rewritten
    }

    /// Shows at most so many pieces of each file.
    fn show(
        &mut self,
        how: How,
        pieces: usize,
        piece: &mut [u8],
        to: &mut Target<'_>,
    ) -> io::Result<()> {
        for file in &mut self.files {
            let is_out = how.framed || file.stream == JobStream::Out;
            let to: &mut dyn Write = if is_out { to.out } else { to.err };
            for _ in 0..pieces {
                if !file.show(how, self.ended, &self.tag, piece, to)? {
                    break;
                }
            }
        }
        Ok(())
    }

    fn remove_files(&self) {
        for file in &self.files {
            file.source.remove();
        }
    }
}

impl FollowedFile {
    fn new(stream: JobStream, path: PathBuf) -> FollowedFile {
        FollowedFile {
            stream,
            source: Source::new(path),
            position: 0,
            searched: 0,
            in_line: false,
            changed: None,
            tail: Vec::new(),
        }
    }

    /// Whether the job has cut the file off since it was shown, as `> /dev/stderr` does: it opens the file anew. Then it is
    /// shown from its beginning.
    fn is_rewritten(&mut self) -> bool {
        let Some(meta) = self.source.metadata() else {
            return false;
        };
        let changed = meta.modified().ok();
        let before = std::mem::replace(&mut self.changed, changed);
        if before == changed {
            return false;
        }
        let mut tail = [0; TAIL];
        let tail = &mut tail[..self.tail.len()];
        let got = self.source.read(tail, self.position - tail.len() as u64);
        // Whoever only adds to a file leaves what was there.
        let rewritten =
            self.position > 0 && (meta.len() < self.position || tail[..got] != self.tail);
        if rewritten {
            self.position = 0;
            self.searched = 0;
            self.in_line = false;
            self.tail.clear();
        }
        rewritten
    }

    /// Shows the next piece, or a whole line where that is longer; returns whether there may be more.
    fn show(
        &mut self,
        how: How,
        all: bool,
        tag: &str,
        piece: &mut [u8],
        to: &mut dyn Write,
    ) -> io::Result<bool> {
        loop {
            let got = self.source.read(piece, self.position);
            let bytes = &piece[..got];
            let is_full = got > 0 && got == piece.len();
            let shown = match bytes.iter().rposition(|&byte| byte == b'\n') {
                _ if how.framed || how.show == Show::Group => got,
                Some(last) => last + 1,
                None if all || is_full && self.line_ends() => got,
                // An unfinished line waits for its end, or the end of the job.
                None => 0,
            };
            let bytes = &bytes[..shown];
            self.position += shown as u64;
            self.source.forget(self.position);
            if bytes.is_empty() {
                if all && how.show == Show::Tag && std::mem::take(&mut self.in_line) {
                    to.write_all(b"\n")?;
                    to.flush()?;
                }
                return Ok(false);
            }
            match how.show {
                _ if how.framed => self.frame(tag, bytes, to)?,
                Show::Tag => self.tagged(tag, bytes, to)?,
                _ => to.write_all(bytes)?,
            }
            self.in_line = !bytes.ends_with(b"\n");
            self.tail
                .extend_from_slice(&bytes[bytes.len().saturating_sub(TAIL)..]);
            self.tail.drain(..self.tail.len().saturating_sub(TAIL));
            to.flush()?;
            // No other job's output comes between the parts of a line.
            if !self.in_line || how.framed || how.show == Show::Group {
                return Ok(is_full || all);
            }
        }
    }

    /// Whether the line at the position has an end. Nothing of it is kept in memory, however long it is.
    fn line_ends(&mut self) -> bool {
        let mut piece = [0; 16 << 10];
        self.searched = self.searched.max(self.position);
        loop {
            let got = self.source.read(&mut piece, self.searched);
            if got == 0 {
                return false;
            }
            if piece[..got].contains(&b'\n') {
                return true;
            }
            self.searched += got as u64;
        }
    }

    /// Writes a frame of the job with this id.
    fn frame(&self, id: &str, bytes: &[u8], to: &mut dyn Write) -> io::Result<()> {
        let frame = WorkerFrame::Output {
            id: id.to_owned(),
            stream: self.stream,
            bytes: bytes.len() as u64,
        };
        write_frame(to, &frame, bytes)
    }

    /// Writes each line with the job's tag before it.
    fn tagged(&self, tag: &str, bytes: &[u8], to: &mut dyn Write) -> io::Result<()> {
        let mut text = Vec::with_capacity(bytes.len() + 64);
        for (number, line) in bytes.split_inclusive(|&byte| byte == b'\n').enumerate() {
            if number > 0 || !self.in_line {
                text.extend_from_slice(tag.as_bytes());
                text.push(b'\t');
            }
            text.extend_from_slice(line);
        }
        to.write_all(&text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::FileExt as _;

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
                output: Output::new(how, keep_order),
                out: Vec::new(),
                err: Vec::new(),
            }
        }

        fn write(&self, file: &str, text: &[u8]) {
            let path = self.dir.path().join(file);
            File::options()
                .append(true)
                .create(true)
                .open(path)
                .unwrap()
                .write_all(text)
                .unwrap();
        }

        /// A piece comes, in the file that all jobs share.
        fn piece(&mut self, node: &Rc<File>, job: u32, stream: JobStream, text: &str) {
            let offset = node.metadata().unwrap().len() + 2;
            node.write_all_at(b"==", offset - 2).unwrap();
            node.write_all_at(text.as_bytes(), offset).unwrap();
            let bytes = text.len() as u64;
            self.output.piece(job, stream, node, offset, bytes);
        }

        fn node(&self) -> Rc<File> {
            let path = self.dir.path().join("node");
            let mut options = File::options();
            options.read(true).write(true).create_new(true);
            Rc::new(options.open(path).unwrap())
        }

        fn start(&mut self, job: u32) {
            let files = ["out", "err"].map(|of| self.dir.path().join(format!("{job}.{of}")));
            self.output.started(job, format!("job{job}"), files);
        }

        /// What is shown by a call, on standard output and standard error.
        fn shows(
            &mut self,
            call: impl FnOnce(&mut Output, &mut Target<'_>) -> io::Result<()>,
        ) -> [String; 2] {
            call(
                &mut self.output,
                &mut Target {
                    out: &mut self.out,
                    err: &mut self.err,
                },
            )
            .unwrap();
            [&mut self.out, &mut self.err]
                .map(|shown| String::from_utf8(std::mem::take(shown)).unwrap())
        }

        /// What is shown when a job ends.
        fn ends(&mut self, job: u32) -> [String; 2] {
            self.shows(|output, to| output.ended(job, to))
        }
    }

    #[test]
    fn lines_are_shown_as_they_come_and_unfinished_ones_when_the_job_ends() {
        let mut shown = Shown::new(Show::Tag, false);
        shown.start(1);
        assert_eq!(shown.shows(Output::follow), ["", ""]);
        shown.write("1.out", b"x\n\ny");
        shown.write("1.err", b"e\n");
        assert_eq!(
            shown.shows(Output::follow),
            ["job1\tx\njob1\t\n", "job1\te\n"]
        );
        shown.write("1.out", b"z");
        assert_eq!(shown.shows(Output::follow), ["", ""]);
        assert!(shown.output.is_following());
        assert_eq!(shown.ends(1), ["job1\tyz\n", ""]);
        assert!(!shown.output.is_following());
        assert_eq!(shown.ends(1), ["", ""]);
    }

    #[test]
    fn a_line_longer_than_a_piece_stays_one_line() {
        for how in [Show::Live, Show::Group, Show::Tag] {
            let mut shown = Shown::new(how, false);
            (1..=2).for_each(|job| shown.start(job));
            let long = vec![b'a'; (TURN + 3) * PIECE + 10];
            shown.write("1.out", &long);
            let mut all = shown.shows(Output::follow)[0].clone();
            assert_eq!(all, "", "the line has no end yet");
            shown.write("1.out", b"b\nc\n");
            shown.write("2.out", b"other\n");
            all += &shown.shows(Output::follow)[0];
            all += &shown.ends(1)[0];
            all += &shown.ends(2)[0];
            let lines: Vec<&str> = all
                .lines()
                .map(|line| line.rsplit('\t').next().unwrap())
                .collect();
            let first = lines
                .iter()
                .position(|line| line.len() == long.len() + 1)
                .expect("the long line");
            assert!(
                lines[first].ends_with("ab") && lines.contains(&"other"),
                "{how:?}"
            );
            assert!(
                all.contains('c') && all.len() <= long.len() + 10 + 3 * 5,
                "{how:?}: {}",
                all.len() - long.len()
            );
        }
    }

    #[test]
    fn a_long_line_without_an_end_is_shown_when_the_job_ends() {
        for how in [Show::Live, Show::Group, Show::Tag] {
            let mut shown = Shown::new(how, false);
            shown.start(1);
            shown.write("1.out", &vec![b'a'; 2 * PIECE]);
            assert_eq!(shown.shows(Output::follow)[0], "");
            let all = shown.ends(1)[0].clone();
            let text = if how == Show::Tag {
                format!("job1\t{}\n", "a".repeat(2 * PIECE))
            } else {
                "a".repeat(2 * PIECE)
            };
            assert!(all == text, "{how:?}");
        }
    }

    /// `> /dev/stderr` opens the file anew.
    #[test]
    fn what_cuts_its_file_off_is_shown_from_the_beginning() {
        let mut shown = Shown::new(Show::Live, false);
        shown.start(1);
        let mut all = String::new();
        for text in ["first\n", "second\n", "third\n", "3\n"] {
            // Times of files have the grain of the kernel's clock.
            std::thread::sleep(std::time::Duration::from_millis(20));
            std::fs::write(shown.dir.path().join("1.err"), text).unwrap();
            all += &shown.shows(Output::follow)[1];
        }
        assert_eq!(all, "first\nsecond\nthird\n3\n");
        assert_eq!(shown.output.rewritten().collect::<Vec<_>>(), [(1, 1)]);
        assert_eq!(shown.output.rewritten().count(), 0);
        shown.write("1.err", b"more\n");
        assert_eq!(shown.shows(Output::follow)[1], "more\n");
        assert_eq!(shown.ends(1)[1], "");
        assert_eq!(shown.output.rewritten().count(), 0);
    }

    #[test]
    fn of_several_attempts_the_last_is_shown_where_whole_jobs_are() {
        for (how, all) in [(Show::Group, "good\n"), (Show::Live, "bad\ngood\n")] {
            let mut shown = Shown::new(how, false);
            shown.start(1);
            shown.write("1.out", b"bad\n");
            shown.output.started_again(1, [4, 0]);
            shown.write("1.out", b"good\n");
            assert_eq!(shown.ends(1)[0], all);
        }
        // The last attempt opened the file anew.
        let mut shown = Shown::new(Show::Group, false);
        shown.start(1);
        shown.write("1.out", b"a long way\n");
        shown.output.started_again(1, [11, 0]);
        std::fs::write(shown.dir.path().join("1.out"), "good\n").unwrap();
        assert_eq!(shown.ends(1)[0], "good\n");
        assert_eq!(shown.output.rewritten().collect::<Vec<_>>(), [(1, 0)]);
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
    fn whole_jobs_come_in_their_order_if_that_is_kept() {
        let mut shown = Shown::new(Show::Group, true);
        for job in 0..4 {
            shown.start(job);
            shown.write(&format!("{job}.out"), format!("{job}\n").as_bytes());
        }
        assert_eq!(shown.shows(Output::follow)[0], "");
        assert_eq!(shown.ends(1)[0], "");
        assert_eq!(shown.ends(0)[0], "0\n1\n");
        assert_eq!(shown.ends(3)[0], "");
        assert_eq!(shown.ends(4)[0], "", "it never started");
        assert_eq!(shown.ends(2)[0], "2\n3\n");
        shown.start(6);
        shown.write("6.out", b"6\n");
        assert_eq!(shown.ends(6)[0], "");
        assert_eq!(shown.shows(Output::finish_all)[0], "6\n");
    }

    #[test]
    fn whole_jobs_in_their_order_can_have_tags() {
        let mut shown = Shown::new(Show::Tag, true);
        for job in 0..2 {
            shown.start(job);
            shown.write(&format!("{job}.out"), format!("{job}\nx").as_bytes());
        }
        assert_eq!(shown.shows(Output::follow)[0], "");
        assert_eq!(shown.ends(1)[0], "");
        let all = shown.ends(0)[0].clone();
        let (text, _): (Vec<&str>, Vec<&str>) =
            all.lines().filter_map(|line| line.split_once('\t')).unzip();
        assert_eq!(text.len(), 4, "{all}");
        assert!(
            text[0] == text[1] && text[2] == text[3] && text[1] != text[2],
            "{all}"
        );
    }

    #[test]
    fn pieces_of_all_jobs_in_one_file_are_shown_as_files_of_their_own_are() {
        for (how, first, rest) in [
            (Show::Group, "", "one\ntwo\nthree"),
            (Show::Live, "one\n", "two\nthree"),
            (Show::Tag, "job1\tone\n", "job1\ttwo\njob1\tthree\n"),
        ] {
            let mut shown = Shown::new(how, false);
            let node = shown.node();
            (1..=2).for_each(|job| shown.start(job));
            shown.piece(&node, 1, JobStream::Out, "one\ntw");
            shown.piece(&node, 2, JobStream::Err, "other\n");
            shown.piece(&node, 3, JobStream::Out, "of no job\n");
            assert_eq!(shown.shows(Output::follow)[0], first, "{how:?}");
            shown.piece(&node, 1, JobStream::Out, "o\nth");
            shown.piece(&node, 1, JobStream::Out, "ree");
            assert_eq!(shown.ends(1), [rest, ""], "{how:?}");
            assert_eq!(shown.output.rewritten().count(), 0);
        }
    }

    #[test]
    fn pieces_of_earlier_attempts_are_left_out_where_whole_jobs_are_shown() {
        for (how, all) in [(Show::Group, "good\n"), (Show::Live, "bad\ngood\n")] {
            let mut shown = Shown::new(how, false);
            let node = shown.node();
            shown.start(1);
            shown.piece(&node, 1, JobStream::Out, "bad\n");
            shown.output.started_again(1, [0, 0]);
            shown.piece(&node, 1, JobStream::Out, "good\n");
            assert_eq!(shown.ends(1)[0], all);
        }
    }

    #[test]
    fn pieces_keep_the_order_of_the_jobs() {
        let mut shown = Shown::new(Show::Group, true);
        let node = shown.node();
        for job in 0..3 {
            shown.start(job);
            shown.piece(&node, job, JobStream::Out, &format!("{job}\n"));
        }
        assert_eq!(shown.ends(2)[0], "");
        assert_eq!(shown.ends(0)[0], "0\n");
        assert_eq!(shown.ends(1)[0], "1\n2\n");
    }
}
