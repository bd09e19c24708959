//! The terminal, as long as the screen is ours: it sends keys as they are pressed, and is left as it was, whatever happens.

use ratatui::backend::{Backend as _, CrosstermBackend};
use ratatui::buffer::Buffer;
use ratatui::crossterm::cursor::{Hide, Show};
use ratatui::crossterm::queue;
use ratatui::crossterm::style::{Attribute, SetAttribute};
use ratatui::crossterm::terminal::{
    DisableLineWrap, EnableLineWrap, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode,
    enable_raw_mode, is_raw_mode_enabled,
};
use ratatui::layout::Rect;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, BorrowedFd};
use rustix::fs::{Mode, OFlags};
use rustix::termios::tcgetwinsize;
use std::fs::File;
use std::io::{self, Read, Write};

/// A terminal that takes nothing for so long is left as it is.
const PATIENCE: Timespec = Timespec {
    tv_sec: 1,
    tv_nsec: 0,
};
/// The size where none is told.
const USUAL: (u16, u16) = (80, 24);
/// No screen is larger.
const LARGEST: u16 = 1_000;

/// The terminal. It is left as it was when this is dropped.
pub struct TopTerminal {
    tty: File,
    /// What it shows; `None` if that is not known.
    shown: Option<Buffer>,
    /// What it is still to be sent. A terminal can stand still, and must not keep us from hearing signals.
    left: Vec<u8>,
}

impl TopTerminal {
    /// Takes the terminal of this process.
    ///
    /// # Errors
    /// There is none.
    pub fn take() -> io::Result<TopTerminal> {
        let mut screen = TopTerminal {
            tty: open_terminal()?,
            shown: None,
            left: Vec::new(),
        };
        let hook = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            give_back();
            hook(panic);
        }));
        screen.enter()?;
        Ok(screen)
    }

    /// Makes the screen ours, at first and after this process was stopped.
    pub fn enter(&mut self) -> io::Result<()> {
        // A shell may have set its own mode while this process was stopped; the library believes that raw mode goes on.
        disable_raw_mode()?;
        enable_raw_mode()?;
        self.left.clear();
        queue!(self.left, EnterAlternateScreen, Hide, DisableLineWrap)?;
        self.shown = None;
        Ok(())
    }

    /// Leaves the terminal as it was.
    pub fn leave(&mut self) {
        self.left.clear();
        give_back();
    }

    /// Its size, in columns and lines.
    pub fn size(&self) -> (u16, u16) {
        let size = tcgetwinsize(&self.tty).map_or(USUAL, |size| (size.ws_col, size.ws_row));
        let size = if size.0 == 0 || size.1 == 0 {
            USUAL
        } else {
            size
        };
        (size.0.min(LARGEST), size.1.min(LARGEST))
    }

    /// Whether it still has to take something. A new screen is not worth making then.
    pub fn is_behind(&self) -> bool {
        !self.left.is_empty()
    }

    /// What it shows is not known any more.
    pub fn forget(&mut self) {
        self.shown = None;
    }

    /// Shows a screen, as far as the terminal takes it now.
    ///
    /// # Errors
    /// The terminal has gone.
    pub fn show(&mut self, draw: impl FnOnce(&mut Buffer)) -> io::Result<()> {
        let (width, height) = self.size();
        let mut buffer = Buffer::empty(Rect::new(0, 0, width, height));
        draw(&mut buffer);
        let mut backend = CrosstermBackend::new(&mut self.left);
        let before = match self.shown.take() {
            Some(shown) if shown.area == buffer.area => shown,
            _ => {
                backend.clear()?;
                Buffer::empty(buffer.area)
            }
        };
        backend.draw(before.diff(&buffer).into_iter())?;
        self.shown = Some(buffer);
        self.send()
    }

    /// Sends what is left, as far as the terminal takes it now.
    ///
    /// # Errors
    /// The terminal has gone.
    pub fn send(&mut self) -> io::Result<()> {
        while !self.left.is_empty() {
            match self.tty.write(&self.left) {
                Ok(written) => drop(self.left.drain(..written)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// What was pressed since the last call.
    ///
    /// # Errors
    /// The terminal has gone.
    pub fn pressed(&mut self) -> io::Result<Vec<u8>> {
        let mut bytes = [0; 256];
        match self.tty.read(&mut bytes) {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(got) => Ok(bytes[..got].to_vec()),
            Err(error)
                if [io::ErrorKind::WouldBlock, io::ErrorKind::Interrupted]
                    .contains(&error.kind()) =>
            {
                Ok(Vec::new())
            }
            Err(error) => Err(error),
        }
    }
}

impl AsFd for TopTerminal {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.tty.as_fd()
    }
}

impl Drop for TopTerminal {
    fn drop(&mut self) {
        self.leave();
    }
}

/// Opens the terminal anew, so that nobody else's reads and writes become ones that do not wait.
fn open_terminal() -> io::Result<File> {
    let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    Ok(File::from(rustix::fs::open(
        "/dev/tty",
        flags,
        Mode::empty(),
    )?))
}

/// Leaves the terminal as it was, if it is ours. It may be a panic that calls this.
fn give_back() {
    if !is_raw_mode_enabled().unwrap_or(false) {
        return;
    }
    if let Ok(mut tty) = open_terminal() {
        let _ = leave(&mut tty);
    }
    let _ = disable_raw_mode();
}

/// Leaves the screen, unless the terminal takes nothing.
fn leave(tty: &mut File) -> io::Result<()> {
    let mut bytes = Vec::new();
    queue!(
        bytes,
        SetAttribute(Attribute::Reset),
        EnableLineWrap,
        Show,
        LeaveAlternateScreen
    )?;
    let mut left = &bytes[..];
    while !left.is_empty() {
        match tty.write(left) {
            Ok(written) => left = &left[written..],
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                let mut fds = [PollFd::new(&*tty, PollFlags::OUT)];
                if poll(&mut fds, Some(&PATIENCE))? == 0 {
                    break;
                }
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
