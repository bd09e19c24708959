//! The window's own process: it serves those who look at a run until the run ends, or until nobody has looked for a while.

use super::answer::{NO_STATE, Piece, done, refusal, status};
use super::clients::{Client, Manner, Request, Wanted};
use super::http;
use super::line::{Came, Door, Line, Told, Wish};
use super::serve::Relay;
use super::stream::{Listener, Stream};
use cosched_report::{MetricsFormat, Status, metrics_text};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, OwnedFd};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::time::{Duration, Instant};

/// As many may look at once, in each manner.
const MOST_CLIENTS: usize = 16;
/// Where all places are taken, one that has asked for nothing for so long makes room.
const IDLE: Duration = Duration::from_secs(5);
/// With nobody there for so long the window ends.
const LONELY: Duration = Duration::from_secs(60);
/// No state is longer.
const MOST_STATE: u64 = 256 << 20;

/// Serves until the run closes the line, which is standard input.
///
/// # Errors
/// The run did not start this process, or the line to it is broken.
pub fn main() -> anyhow::Result<()> {
    // Signals are meant for the run. When it ends, it closes the line.
    cosched_linux::become_helper(c"cosched-window");
    let line = Line::on(io::stdin().as_fd().try_clone_to_owned()?);
    let Came::Message(Told::Serve(doors), fds) = line.take() else {
        anyhow::bail!(
            "this is a part of `cosched run`, which starts it by itself; use `cosched status`"
        );
    };
    let listener = |(door, fd): (Door, OwnedFd)| match door {
        Door::Window => (Manner::Lines, Listener::Unix(fd.into())),
        Door::MetricsUnix => (Manner::Http, Listener::Unix(fd.into())),
        Door::MetricsTcp => (Manner::Http, Listener::Tcp(fd.into())),
    };
    let listeners = doors.into_iter().zip(fds).map(listener).collect();
    let mut server = Server {
        line,
        listeners,
        clients: Vec::new(),
        relay: Relay::default(),
        busy: Instant::now(),
    };
    while server.turn()? {}
    Ok(())
}

struct Server {
    line: Line,
    listeners: Vec<(Manner, Listener)>,
    clients: Vec<Client<Stream>>,
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
        let timeout = Timespec {
            tv_sec: left.as_secs() as i64,
            tv_nsec: left.subsec_nanos().into(),
        };
        let heard: Vec<PollFlags> = {
            let mut fds = vec![PollFd::new(&self.line, PollFlags::IN)];
            fds.extend(
                self.clients
                    .iter()
                    .map(|client| PollFd::new(&client.stream, client.interest())),
            );
            fds.extend(
                self.listeners
                    .iter()
                    .map(|(_, listener)| PollFd::new(listener, PollFlags::IN)),
            );
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
        for (ix, flags) in heard[1 + count..].iter().enumerate() {
            if !flags.is_empty() {
                self.accept(ix, now);
            }
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
        let asked = self.clients.iter().filter_map(|client| {
            client
                .asked
                .as_ref()
                .map(|(asked, _)| self.relay.next(*asked))
        });
        let stalls = self.clients.iter().filter_map(Client::gives_up);
        let lonely = self.clients.is_empty().then(|| self.busy + LONELY);
        asked
            .chain(stalls)
            .chain(lonely)
            .min()
            .unwrap_or(now + LONELY)
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
                Some(Ok(Wanted::Line(Request::End { job, name }))) => {
                    let done = match self.line.send(&Wish::End { job, name }, &[]) {
                        Ok(()) => done("the run was told"),
                        Err(error) => refusal(&format!("the run can't be told now: {error}")),
                    };
                    client.answer([done.into()], now);
                }
                Some(Ok(wanted)) => client.asked = Some((now, wanted)),
                Some(Err(refusal)) => client.dismiss([refusal.into()], now),
                None => {}
            }
        } else if flags.intersects(PollFlags::HUP | PollFlags::ERR) {
            client.lose();
        }
    }

    /// Lets those in who have connected.
    fn accept(&mut self, ix: usize, now: Instant) {
        let Server {
            listeners, clients, ..
        } = self;
        let (manner, listener) = &listeners[ix];
        while let Ok(stream) = listener.accept() {
            if *manner == Manner::Lines && !cosched_linux::may_look(&stream) {
                continue;
            }
            let mut client = Client::new(stream, *manner, now);
            let count = clients
                .iter()
                .filter(|other| other.manner == *manner)
                .count();
            if count >= MOST_CLIENTS && !make_room(clients, *manner, now) {
                let why = format!("{MOST_CLIENTS} others look at this run");
                let answer = match manner {
                    Manner::Lines => refusal(&why),
                    Manner::Http => http::refusal(UNAVAILABLE, &why),
                };
                client.dismiss([answer.into()], now);
                continue;
            }
            clients.push(client);
        }
    }

    /// Answers those who wait, asks the run if need be, and lets those go for whom nothing is left to do.
    fn settle(&mut self, now: Instant) {
        let Server { clients, relay, .. } = self;
        for client in clients.iter_mut() {
            match &client.asked {
                Some((asked, _)) if !relay.is_ready(*asked, now) => {}
                Some((_, Wanted::Metrics(format))) => {
                    let metrics = metrics(relay.state(now), *format);
                    client.dismiss([metrics.into()], now);
                }
                Some((_, Wanted::Line(_))) => client.answer(status(relay.state(now)), now),
                None => {}
            }
        }
        clients.retain(|client| !client.is_over(now));
        if clients.iter().any(|client| client.asked.is_some()) && relay.ask(now) {
            // The run may not have taken the last wish: then it is stopped, and will see that one.
            let _ = self.line.send(&Wish::Status, &[]);
        }
    }
}

const UNAVAILABLE: &str = "503 Service Unavailable";

/// The state as metrics, by HTTP.
fn metrics(state: Option<(f64, &Piece)>, format: MetricsFormat) -> Vec<u8> {
    let Some((age_s, state)) = state else {
        return http::refusal(UNAVAILABLE, NO_STATE);
    };
    match Status::from_json(state) {
        Ok(status) => http::answer(format, &metrics_text(&status, age_s, format)),
        Err(error) => http::refusal(
            UNAVAILABLE,
            &format!("the run's answer can't be read: {error}"),
        ),
    }
}

/// Lets those go who have left, or else the one that has asked for nothing for longest.
fn make_room(clients: &mut Vec<Client<Stream>>, manner: Manner, now: Instant) -> bool {
    let count = |clients: &[Client<Stream>]| {
        clients
            .iter()
            .filter(|client| client.manner == manner)
            .count()
    };
    let before = count(clients);
    clients.retain(|client| {
        let mut looked = [PollFd::new(&client.stream, PollFlags::empty())];
        let is_asked = poll(&mut looked, Some(&Timespec::default())).is_ok();
        !(is_asked
            && looked[0]
                .revents()
                .intersects(PollFlags::HUP | PollFlags::ERR))
    });
    if count(clients) < before {
        return true;
    }
    let idle = |client: &Client<Stream>| {
        let since = client.idle_since().filter(|since| now - *since >= IDLE);
        since.filter(|_| client.manner == manner)
    };
    let first = (0..clients.len())
        .filter_map(|ix| Some((idle(&clients[ix])?, ix)))
        .min();
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
