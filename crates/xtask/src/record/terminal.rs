//! A shell on a terminal of its own, and what is seen there.

use anyhow::{Context as _, bail};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use std::fs::{File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::num::NonZeroU16;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// A piece of a row in which all characters look alike.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Piece {
    pub(super) column: u16,
    pub(super) text: String,
    pub(super) bold: bool,
    pub(super) inverse: bool,
    /// The colour of the terminal's palette; `None` for that of plain text.
    pub(super) colour: Option<u8>,
}

/// What is seen for a while: of each row its pieces.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Frame {
    pub(super) rows: Vec<Vec<Piece>>,
    pub(super) lasts: Duration,
}

/// The prompt. The shell is ready when the cursor stands behind it.
const PROMPT: &str = "$ ";
/// Longest wait for the prompt.
const PATIENCE: Duration = Duration::from_secs(180);
/// Output within this time is one frame.
const MOMENT: Duration = Duration::from_millis(60);
/// Pause between two letters.
const TYPING: Duration = Duration::from_millis(45);

/// A shell on a terminal.
pub(super) struct Shell {
    child: Child,
    input: File,
    output: Receiver<Vec<u8>>,
    screen: vt100::Parser,
    frames: Vec<Frame>,
    since: Instant,
    is_seen: bool,
}

impl Shell {
    /// Starts a shell in a folder.
    pub(super) fn start(
        folder: &Path,
        columns: NonZeroU16,
        rows: NonZeroU16,
    ) -> anyhow::Result<Shell> {
        let (controller, user) = open_terminal(columns, rows)?;
        let child = spawn_bash(folder, user)?;
        let output = read_all(File::from(controller.try_clone()?));
        let mut shell = Shell {
            child,
            input: controller.into(),
            output,
            screen: vt100::Parser::new(rows, columns, 0),
            frames: Vec::new(),
            since: Instant::now(),
            is_seen: false,
        };
        shell.until_ready()?;
        Ok(shell)
    }

    /// Runs a command that is not seen, and clears the screen.
    pub(super) fn run_unseen(&mut self, line: &str) -> anyhow::Result<()> {
        self.is_seen = false;
        self.send(&format!("{line}; clear\n"))?;
        self.until_ready()
    }

    /// Types a command.
    pub(super) fn type_in(&mut self, line: &str) -> anyhow::Result<()> {
        if !self.is_seen {
            (self.is_seen, self.since) = (true, Instant::now());
        }
        for letter in line.chars() {
            self.send(&letter.to_string())?;
            self.watch(TYPING)?;
        }
        self.watch(8 * TYPING)?;
        self.send("\n")
    }

    /// Presses keys after a while.
    pub(super) fn press(&mut self, after: Duration, keys: &str) -> anyhow::Result<()> {
        self.watch(after)?;
        self.send(keys)
    }

    /// What was seen.
    pub(super) fn finish(mut self) -> anyhow::Result<Vec<Frame>> {
        self.keep();
        self.send("exit\n")?;
        drop(self.input);
        self.child.wait()?;
        Ok(self.frames)
    }

    fn send(&mut self, text: &str) -> anyhow::Result<()> {
        Ok(self.input.write_all(text.as_bytes())?)
    }

    /// Looks at the terminal for so long.
    fn watch(&mut self, time: Duration) -> anyhow::Result<()> {
        let end = Instant::now() + time;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            match self.output.recv_timeout(left.min(MOMENT)) {
                Ok(bytes) => {
                    // After a pause this is a new frame.
                    if self.since.elapsed() >= MOMENT {
                        self.keep();
                    }
                    self.screen.process(&bytes);
                }
                Err(RecvTimeoutError::Disconnected) => bail!("the shell has ended"),
                Err(RecvTimeoutError::Timeout) if left.is_zero() => return Ok(()),
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    /// Waits until the shell asks for the next command.
    pub(super) fn until_ready(&mut self) -> anyhow::Result<()> {
        let end = Instant::now() + PATIENCE;
        loop {
            self.watch(MOMENT)?;
            let (row, column) = self.screen.screen().cursor_position();
            let line = self
                .screen
                .screen()
                .rows(0, u16::MAX)
                .nth(row.into())
                .unwrap_or_default();
            if usize::from(column) == PROMPT.len() && line.trim_end() == PROMPT.trim_end() {
                return Ok(());
            }
            if Instant::now() > end {
                bail!(
                    "no prompt after {} s: {}",
                    PATIENCE.as_secs(),
                    self.screen.screen().contents()
                );
            }
        }
    }

    /// Keeps what is seen, and since when.
    fn keep(&mut self) {
        let lasts = self.since.elapsed();
        self.since = Instant::now();
        if !self.is_seen {
            return;
        }
        let rows = rows(self.screen.screen());
        match self.frames.last_mut().filter(|last| last.rows == rows) {
            Some(last) => last.lasts += lasts,
            None => self.frames.push(Frame { rows, lasts }),
        }
    }
}

/// Opens a terminal: the side that controls it, and the side of its user.
fn open_terminal(columns: NonZeroU16, rows: NonZeroU16) -> anyhow::Result<(OwnedFd, OwnedFd)> {
    let controller = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY)?;
    grantpt(&controller)?;
    unlockpt(&controller)?;
    let name = ptsname(&controller, Vec::new())?;
    let name = name.into_string().context("the terminal's name")?;
    let user = OpenOptions::new().read(true).write(true).open(name)?;
    let size = Winsize {
        ws_row: rows.get(),
        ws_col: columns.get(),
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    tcsetwinsize(&user, size)?;
    Ok((controller, user.into()))
}

fn spawn_bash(folder: &Path, user: OwnedFd) -> anyhow::Result<Child> {
    Command::new("setsid")
        .args(["--ctty", "--wait", "bash", "--norc", "--noprofile"])
        .env("PS1", PROMPT)
        .env("TERM", "xterm-256color")
        .env_remove("PROMPT_COMMAND")
        .current_dir(folder)
        .stdin(Stdio::from(user.try_clone()?))
        .stdout(Stdio::from(user.try_clone()?))
        .stderr(Stdio::from(user))
        .spawn()
        .context("setsid and bash")
}

/// Reads the terminal in a thread.
fn read_all(mut terminal: File) -> Receiver<Vec<u8>> {
    let (sender, output) = channel();
    std::thread::spawn(move || {
        let mut bytes = [0; 4096];
        while let Ok(count @ 1..) = terminal.read(&mut bytes) {
            if sender.send(bytes[..count].to_vec()).is_err() {
                break;
            }
        }
    });
    output
}

/// What is on the screen, with the place of the cursor.
fn rows(screen: &vt100::Screen) -> Vec<Vec<Piece>> {
    let (height, _) = screen.size();
    (0..height.get())
        .map(|row| pieces_of(screen, row))
        .collect()
}

fn pieces_of(screen: &vt100::Screen, row: u16) -> Vec<Piece> {
    let (_, width) = screen.size();
    let mut pieces: Vec<Piece> = Vec::new();
    for column in 0..width.get() {
        let Some(letter) = letter_at(screen, row, column) else {
            continue;
        };
        match pieces.last_mut() {
            Some(last) if last.looks_like(&letter) => last.text.push_str(&letter.text),
            None if letter.text == " " && !letter.inverse => {}
            _ => pieces.push(letter),
        }
    }
    for piece in &mut pieces {
        if !piece.inverse {
            piece.text.truncate(piece.text.trim_end().len());
        }
    }
    pieces.retain(|piece| !piece.text.is_empty());
    pieces
}

/// One letter as a piece. The cursor inverts it.
fn letter_at(screen: &vt100::Screen, row: u16, column: u16) -> Option<Piece> {
    let cell = screen.cell(row, column)?;
    let is_cursor = !screen.hide_cursor() && screen.cursor_position() == (row, column);
    let text = if cell.has_contents() {
        cell.contents()
    } else {
        " "
    };
    let colour = match cell.fgcolor() {
        vt100::Color::Idx(colour) => Some(colour),
        _ => None,
    };
    Some(Piece {
        column,
        text: text.to_owned(),
        bold: cell.bold(),
        inverse: cell.inverse() != is_cursor,
        colour,
    })
}

impl Piece {
    fn looks_like(&self, other: &Piece) -> bool {
        (self.bold, self.inverse, self.colour) == (other.bold, other.inverse, other.colour)
    }
}

/// Cuts long stills short, and shows the last frame long enough to read.
pub(super) fn shorten(frames: &mut [Frame], longest: Duration, last: Duration) {
    for frame in frames.iter_mut() {
        frame.lasts = frame.lasts.min(longest);
    }
    if let Some(frame) = frames.last_mut() {
        frame.lasts = last;
    }
}
