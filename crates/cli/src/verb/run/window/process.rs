//! The window's own process: it serves those who look at a run until the run ends, or until nobody has looked for a while.

use super::clients::{Client, Request};
use super::line::{Came, Door, Line, Told, Wish};
use super::serve::{Relay, refusal};
use clap::Args;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, OwnedFd};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// As many may look at once.
const MOST_CLIENTS: usize = 16;
/// Where all places are taken, one that has asked for nothing for so long makes room.
const IDLE: Duration = Duration::from_secs(5);
/// With nobody there for so long the window ends.
const LONELY: Duration = Duration::from_secs(60);
/// No state is longer.
const MOST_STATE: u64 = 256 << 20;

/// Serves those who look at a run; started by `cosched run` for itself
#[derive(Args, Debug)]
pub(crate) struct WindowArgs {}

/// Serves until the run closes the line, which is standard input.
pub(crate) fn main(_args: WindowArgs) -> anyhow::Result<ExitCode> {
    // Signals are meant for the run. When it ends, it closes the line.
    cosched_linux::become_window();
    let line = Line::on(io::stdin().as_fd().try_clone_to_owned()?);
    let Came::Message(Told::Serve(doors), fds) = line.take() else {
        anyhow::bail!("this is a part of `cosched run`, which starts it by itself; use `cosched status`");
    };
    let mut server =
        Server { line, listener: None, clients: Vec::new(), relay: Relay::default(), busy: Instant::now() };
    for (door, fd) in doors.into_iter().zip(fds) {
        match door {
            Door::Window => server.listener = Some(UnixListener::from(fd)),
        }
    }
    while server.turn()? {}
    Ok(ExitCode::SUCCESS)
}

struct Server {
    line: Line,
    listener: Option<UnixListener>,
    clients: Vec<Client<UnixStream>>,
    relay: Relay,
    /// When somebody was there for the last time.
    busy: Instant,
}

impl Server {
    /// Waits for something to happen and deals with it. Returns whether to go on.
    fn turn(&mut self) -> io::Result<bool> {
        let now = Instant::now();
        let until = self.next(now);
        let left = until.saturating_duration_since(now) + Duration::from_millis(1);
        let timeout = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() };
        let heard: Vec<PollFlags> = {
            let mut fds = vec![PollFd::new(&self.line, PollFlags::IN)];
            fds.extend(self.clients.iter().map(|client| PollFd::new(&client.stream, client.interest())));
            fds.extend(self.listener.as_ref().map(|listener| PollFd::new(listener, PollFlags::IN)));
            match poll(&mut fds, Some(&timeout)) {
                Ok(_) => {}
                Err(rustix::io::Errno::INTR) => return Ok(true),
                Err(error) => return Err(error.into()),
            }
            fds.iter().map(PollFd::revents).collect()
        };
        let now = Instant::now();
        if !heard[0].is_empty() && !self.hear_run(now) {
            return Ok(false);
        }
        let count = self.clients.len();
        for (ix, flags) in heard[1..=count].iter().enumerate() {
            self.serve(ix, *flags, now);
        }
        if heard.get(1 + count).is_some_and(|flags| !flags.is_empty()) {
            self.accept(now);
        }
        self.settle(now);
        if !self.clients.is_empty() {
            self.busy = now;
        } else if now - self.busy >= LONELY {
            // Who connects from now on waits in the socket for the next window.
            let _ = self.line.send(&Wish::Leaving, &[]);
            return Ok(false);
        }
        Ok(true)
    }

    /// When something is to be done even if nothing happens.
    fn next(&self, now: Instant) -> Instant {
        let asked = self.clients.iter().filter_map(|client| client.asked.map(|asked| self.relay.next(asked)));
        let stalls = self.clients.iter().filter_map(Client::gives_up);
        let lonely = self.clients.is_empty().then(|| self.busy + LONELY);
        asked.chain(stalls).chain(lonely).min().unwrap_or(now + LONELY)
    }

    /// Takes what the run says; `false` when it has closed the line.
    fn hear_run(&mut self, now: Instant) -> bool {
        loop {
            match self.line.take() {
                Came::Message(Told::Status, mut fds) => {
                    if let Some(Ok(state)) = fds.pop().map(content) {
                        self.relay.answered(state, now);
                    }
                }
                Came::Message(Told::Serve(_), _) | Came::Nonsense => {}
                Came::Nothing => return true,
                Came::End => return false,
            }
        }
    }

    /// Deals with one who looks.
    fn serve(&mut self, ix: usize, flags: PollFlags, now: Instant) {
        let client = &mut self.clients[ix];
        if flags.contains(PollFlags::OUT) {
            client.write(now);
        }
        if flags.contains(PollFlags::IN) {
            match client.read(now) {
                Some(Ok(Request::Status)) => client.asked = Some(now),
                Some(Err(why)) => client.dismiss(refusal(&why), now),
                None => {}
            }
        } else if flags.intersects(PollFlags::HUP | PollFlags::ERR) {
            client.lose();
        }
    }

    fn accept(&mut self, now: Instant) {
        let Some(listener) = &self.listener else { return };
        while let Ok((stream, _)) = listener.accept() {
            if stream.set_nonblocking(true).is_err() || !cosched_linux::may_look(&stream) {
                continue;
            }
            let mut client = Client::new(stream, now);
            if self.clients.len() >= MOST_CLIENTS && !make_room(&mut self.clients, now) {
                client.dismiss(refusal(&format!("{MOST_CLIENTS} others look at this run")), now);
                continue;
            }
            self.clients.push(client);
        }
    }

    /// Answers those who wait, asks the run if need be, and lets those go for whom nothing is left to do.
    fn settle(&mut self, now: Instant) {
        for client in &mut self.clients {
            if client.asked.is_some_and(|asked| self.relay.is_ready(asked, now)) {
                client.answer(self.relay.answer(now), now);
            }
        }
        self.clients.retain(|client| !client.is_over(now));
        if self.clients.iter().any(|client| client.asked.is_some()) && self.relay.ask(now) {
            // The run may not have taken the last wish: then it is stopped, and will see that one.
            let _ = self.line.send(&Wish::Status, &[]);
        }
    }
}

/// Lets those go who have left, or else the one that has asked for nothing for longest.
fn make_room(clients: &mut Vec<Client<UnixStream>>, now: Instant) -> bool {
    let before = clients.len();
    clients.retain(|client| {
        let mut looked = [PollFd::new(&client.stream, PollFlags::empty())];
        let is_asked = poll(&mut looked, Some(&Timespec::default())).is_ok();
        !(is_asked && looked[0].revents().intersects(PollFlags::HUP | PollFlags::ERR))
    });
    if clients.len() < before {
        return true;
    }
    let idle = |client: &Client<UnixStream>| client.idle_since().filter(|since| now - *since >= IDLE);
    let first = (0..clients.len()).filter_map(|ix| Some((idle(&clients[ix])?, ix))).min();
    first.is_some_and(|(_, ix)| {
        clients.remove(ix);
        true
    })
}

/// What a file in memory holds.
fn content(fd: OwnedFd) -> io::Result<Vec<u8>> {
    let file = File::from(fd);
    let length = file.metadata()?.len();
    if length > MOST_STATE {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    let mut bytes = vec![0; length as usize];
    file.read_exact_at(&mut bytes, 0)?;
    Ok(bytes)
}
