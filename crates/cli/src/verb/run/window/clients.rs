//! Those who look at a run, each on a connection that never makes anybody wait: what they ask for, what they are still to
//! be sent, and when they are given up.

use rustix::event::PollFlags;
use serde::{Deserialize, Serialize};
use std::io::{self, Read, Write};
use std::rc::Rc;
use std::time::{Duration, Instant};

/// Bytes of a request at most.
const MOST_REQUEST: usize = 4096;
/// Somebody who takes nothing for so long of what was asked for is given up.
const STALL: Duration = Duration::from_secs(10);

/// A request: one JSON object on a line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "kebab-case")]
pub(crate) enum Request {
    /// The state of the run.
    Status,
}

/// A connection.
pub(super) struct Client<S> {
    pub(super) stream: S,
    heard: Vec<u8>,
    /// What is left to be sent: pieces, and how much of the first was sent.
    left: Vec<Piece>,
    sent: usize,
    /// Since when it has waited for an answer.
    pub(super) asked: Option<Instant>,
    /// When something last moved.
    moved: Instant,
    /// It sends nothing more, or is sent nothing more after what is left.
    closing: bool,
    gone: bool,
}

/// A piece of an answer; several connections can share one.
pub(super) type Piece = Rc<[u8]>;

impl<S: Read + Write> Client<S> {
    /// A connection that never blocks.
    pub(super) fn new(stream: S, now: Instant) -> Client<S> {
        Client {
            stream,
            heard: Vec::new(),
            left: Vec::new(),
            sent: 0,
            asked: None,
            moved: now,
            closing: false,
            gone: false,
        }
    }

    /// What to watch it for. While it has an answer to take, no further request is read.
    pub(super) fn interest(&self) -> PollFlags {
        match (self.left.is_empty(), self.asked.is_some() || self.closing) {
            (false, _) => PollFlags::OUT,
            (true, true) => PollFlags::empty(),
            (true, false) => PollFlags::IN,
        }
    }

    /// Reads what has come; a whole request, if there is one.
    pub(super) fn read(&mut self, now: Instant) -> Option<Result<Request, String>> {
        let mut piece = [0; MOST_REQUEST];
        loop {
            if let Some(end) = self.heard.iter().position(|&byte| byte == b'\n') {
                let rest = self.heard.split_off(end + 1);
                let line = std::mem::replace(&mut self.heard, rest);
                self.moved = now;
                let request = serde_json::from_slice(&line);
                return Some(request.map_err(|error| format!("this is no request: {error}")));
            }
            if self.heard.len() >= MOST_REQUEST {
                return Some(Err(format!("a request is a line of at most {MOST_REQUEST} bytes")));
            }
            let room = MOST_REQUEST - self.heard.len();
            match self.stream.read(&mut piece[..room]) {
                Ok(0) => {
                    // It may still read.
                    self.closing = true;
                    return None;
                }
                Ok(got) => self.heard.extend_from_slice(&piece[..got]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return None,
                Err(_) => {
                    self.gone = true;
                    return None;
                }
            }
        }
    }

    /// Sends an answer, as far as it is taken now.
    pub(super) fn answer(&mut self, pieces: impl IntoIterator<Item = Piece>, now: Instant) {
        self.asked = None;
        if self.left.is_empty() {
            self.moved = now;
        }
        self.left.extend(pieces);
        self.write(now);
    }

    /// Sends an answer after which the connection ends.
    pub(super) fn dismiss(&mut self, pieces: impl IntoIterator<Item = Piece>, now: Instant) {
        self.closing = true;
        self.answer(pieces, now);
    }

    /// Sends what is left, as far as it is taken now.
    pub(super) fn write(&mut self, now: Instant) {
        while let Some(first) = self.left.first() {
            match self.stream.write(&first[self.sent..]) {
                Ok(0) => self.gone = true,
                Ok(written) => {
                    self.moved = now;
                    self.sent += written;
                    if self.sent == first.len() {
                        self.sent = 0;
                        self.left.remove(0);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(_) => self.gone = true,
            }
            if self.gone {
                return;
            }
        }
    }

    /// The other end is closed or broken.
    pub(super) fn lose(&mut self) {
        self.gone = true;
    }

    /// Whether there is nothing more to do for it.
    pub(super) fn is_over(&self, now: Instant) -> bool {
        let is_served = self.left.is_empty() && self.asked.is_none();
        let stalls = !self.left.is_empty() && now - self.moved >= STALL;
        self.gone || stalls || (self.closing && is_served)
    }

    /// When it is given up if it goes on to take nothing.
    pub(super) fn gives_up(&self) -> Option<Instant> {
        (!self.left.is_empty()).then(|| self.moved + STALL)
    }

    /// Since when it has neither asked for anything nor been sent anything; `None` while it is.
    pub(super) fn idle_since(&self) -> Option<Instant> {
        (self.left.is_empty() && self.asked.is_none()).then_some(self.moved)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;

    fn pair() -> (Client<UnixStream>, UnixStream) {
        let (ours, theirs) = UnixStream::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        (Client::new(ours, Instant::now()), theirs)
    }

    #[test]
    fn requests_are_read_in_whatever_pieces_they_come() {
        let (mut client, mut peer) = pair();
        let now = Instant::now();
        assert_eq!(client.read(now), None);
        peer.write_all(b"{\"ask\":").unwrap();
        assert_eq!(client.read(now), None);
        peer.write_all(b"\"status\"}\n{\"ask\":\"status\"}\nx\n").unwrap();
        assert_eq!(client.read(now), Some(Ok(Request::Status)));
        assert_eq!(client.read(now), Some(Ok(Request::Status)));
        assert!(client.read(now).is_some_and(|request| request.is_err()));
        drop(peer);
        assert_eq!(client.read(now), None);
        assert!(client.is_over(now));
    }

    #[test]
    fn a_line_without_an_end_is_refused() {
        let (mut client, mut peer) = pair();
        let now = Instant::now();
        peer.write_all(&[b'x'; 3 * MOST_REQUEST]).unwrap();
        assert!(client.read(now).is_some_and(|request| request.is_err()));
        client.dismiss([Rc::from(&b"no"[..])], now);
        assert!(client.is_over(now));
    }

    #[test]
    fn who_takes_nothing_is_given_up_and_asked_for_nothing_meanwhile() {
        let (mut client, mut peer) = pair();
        let began = Instant::now();
        let much: Piece = vec![b'x'; 8 << 20].into();
        client.asked = Some(began);
        client.answer([much.clone(), Rc::from(&b"\n"[..])], began);
        assert_eq!(client.interest(), PollFlags::OUT);
        assert!(!client.is_over(began) && client.gives_up().is_some_and(|at| at == began + STALL));
        assert!(client.is_over(began + STALL));
        let reader = std::thread::spawn(move || {
            let mut all = Vec::new();
            let got = peer.read_to_end(&mut all);
            (got.is_ok(), all.len())
        });
        let end = Instant::now() + Duration::from_secs(60);
        while client.interest() == PollFlags::OUT && Instant::now() < end {
            client.write(began);
        }
        assert_eq!(client.interest(), PollFlags::IN, "it may ask again");
        drop(client);
        assert_eq!(reader.join().unwrap(), (true, (8 << 20) + 1));
    }

    /// Whoever has closed its own half still gets what it has asked for.
    #[test]
    fn who_sends_nothing_more_may_still_read() {
        let (mut client, mut peer) = pair();
        let now = Instant::now();
        peer.write_all(b"{\"ask\":\"status\"}\n").unwrap();
        peer.shutdown(std::net::Shutdown::Write).unwrap();
        assert_eq!(client.read(now), Some(Ok(Request::Status)));
        client.asked = Some(now);
        assert_eq!(client.read(now), None);
        assert!(!client.is_over(now));
        client.answer([Rc::from(&b"state\n"[..])], now);
        assert!(client.is_over(now));
        drop(client);
        let mut text = String::new();
        peer.read_to_string(&mut text).unwrap();
        assert_eq!(text, "state\n");
    }
}
