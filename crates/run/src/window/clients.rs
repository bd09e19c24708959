//! Those who look at a run, each on a connection that never makes anybody wait: what they ask for, what they are still to
//! be sent, and when they are given up.

use super::answer::{Piece, refusal};
use super::http::{self, Parsed};
use cosched_report::MetricsFormat;
use rustix::event::PollFlags;
use serde::{Deserialize, Serialize};
use std::io::{self, Read, Write};
use std::time::{Duration, Instant};

/// Bytes of a request on a line at most.
const MOST_LINE: usize = 4096;
/// Somebody who takes nothing for so long of what was asked for is given up, and who asks nothing by HTTP.
const STALL: Duration = Duration::from_secs(10);

/// A request on the socket: one JSON object on a line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "kebab-case")]
pub enum Request {
    /// The state of the run.
    Status,
    /// The end of a job that has begun.
    End {
        /// Its number.
        job: u32,
        /// Its name. Another one of that number is not meant.
        name: String,
    },
}

/// How requests are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Manner {
    /// One on each line.
    Lines,
    /// One by HTTP.
    Http,
}

/// What somebody wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    /// Something on a line.
    Line(Request),
    /// The state as metrics, by HTTP.
    Metrics(MetricsFormat),
}

/// A connection.
pub(super) struct Client<S> {
    pub(super) stream: S,
    pub(super) manner: Manner,
    heard: Vec<u8>,
    /// What is left to be sent: pieces, and how much of the first was sent.
    left: Vec<Piece>,
    sent: usize,
    /// What it waits for, and since when.
    pub(super) asked: Option<(Instant, Wanted)>,
    /// When something last moved.
    moved: Instant,
    /// It sends nothing more, or is sent nothing more after what is left.
    closing: bool,
    gone: bool,
}

impl<S: Read + Write> Client<S> {
    /// A connection that never blocks.
    pub(super) fn new(stream: S, manner: Manner, now: Instant) -> Client<S> {
        Client {
            stream,
            manner,
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

    /// Reads what has come. Returns what it wants, once a request is whole; or how it is refused.
    pub(super) fn read(&mut self, now: Instant) -> Option<Result<Wanted, Vec<u8>>> {
        let mut piece = [0; 4096];
        loop {
            let request = match self.manner {
                Manner::Lines => self.line(),
                Manner::Http => self.http(),
            };
            if request.is_some() {
                self.moved = now;
                return request;
            }
            match self.stream.read(&mut piece) {
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

    fn line(&mut self) -> Option<Result<Wanted, Vec<u8>>> {
        let Some(end) = self
            .heard
            .iter()
            .position(|&byte| byte == b'\n')
            .filter(|&end| end < MOST_LINE)
        else {
            let why = format!("a request is a line of at most {MOST_LINE} bytes");
            return (self.heard.len() >= MOST_LINE).then(|| Err(refusal(&why)));
        };
        let rest = self.heard.split_off(end + 1);
        let line = std::mem::replace(&mut self.heard, rest);
        Some(match serde_json::from_slice(&line) {
            Ok(request) => Ok(Wanted::Line(request)),
            Err(error) => Err(refusal(&format!("this is no request: {error}"))),
        })
    }

    fn http(&mut self) -> Option<Result<Wanted, Vec<u8>>> {
        match http::parse(&self.heard) {
            Parsed::Part => None,
            Parsed::Metrics(format) => Some(Ok(Wanted::Metrics(format))),
            Parsed::Refused(status, why) => Some(Err(http::refusal(status, why))),
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
        self.gone || (self.closing && is_served) || self.gives_up().is_some_and(|end| now >= end)
    }

    /// When it is given up if it goes on to take nothing, or to ask nothing.
    pub(super) fn gives_up(&self) -> Option<Instant> {
        let is_asking = self.manner == Manner::Http && self.asked.is_none();
        (is_asking || !self.left.is_empty()).then(|| self.moved + STALL)
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
    use std::rc::Rc;

    fn pair() -> (Client<UnixStream>, UnixStream) {
        let (ours, theirs) = UnixStream::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        (Client::new(ours, Manner::Lines, Instant::now()), theirs)
    }

    #[test]
    fn requests_are_read_in_whatever_pieces_they_come() {
        let (mut client, mut peer) = pair();
        let now = Instant::now();
        assert_eq!(client.read(now), None);
        peer.write_all(b"{\"ask\":").unwrap();
        assert_eq!(client.read(now), None);
        peer.write_all(b"\"status\"}\n{\"ask\":\"status\"}\nx\n")
            .unwrap();
        assert_eq!(client.read(now), Some(Ok(Wanted::Line(Request::Status))));
        assert_eq!(client.read(now), Some(Ok(Wanted::Line(Request::Status))));
        assert!(client.read(now).is_some_and(|request| request.is_err()));
        drop(peer);
        assert_eq!(client.read(now), None);
        assert!(client.is_over(now));
    }

    #[test]
    fn a_line_without_an_end_is_refused() {
        let (mut client, mut peer) = pair();
        let now = Instant::now();
        peer.write_all(&[b'x'; 3 * MOST_LINE]).unwrap();
        assert!(client.read(now).is_some_and(|request| request.is_err()));
        client.dismiss([Rc::from(&b"no"[..])], now);
        assert!(client.is_over(now));
    }

    #[test]
    fn who_takes_nothing_is_given_up_and_asked_for_nothing_meanwhile() {
        let (mut client, mut peer) = pair();
        let began = Instant::now();
        let much: Piece = vec![b'x'; 8 << 20].into();
        client.asked = Some((began, Wanted::Line(Request::Status)));
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

    #[test]
    fn by_http_there_is_one_request_in_a_limited_time() {
        let (mut client, mut peer) = pair();
        client.manner = Manner::Http;
        let now = Instant::now();
        peer.write_all(b"GET /metrics HTTP/1.1\r\n").unwrap();
        assert_eq!(client.read(now), None);
        assert!(
            !client.is_over(now) && client.is_over(now + STALL),
            "who goes on for ever is given up"
        );
        peer.write_all(b"\r\n").unwrap();
        assert_eq!(
            client.read(now),
            Some(Ok(Wanted::Metrics(MetricsFormat::Plain)))
        );
        let (mut other, mut peer) = pair();
        other.manner = Manner::Http;
        peer.write_all(&[b'x'; 100_000]).unwrap();
        let refused = other.read(now).unwrap().unwrap_err();
        assert!(refused.starts_with(b"HTTP/1.1 431") && other.heard.len() < 20_000);
    }

    /// Whoever has closed its own half still gets what it has asked for.
    #[test]
    fn who_sends_nothing_more_may_still_read() {
        let (mut client, mut peer) = pair();
        let now = Instant::now();
        peer.write_all(b"{\"ask\":\"status\"}\n").unwrap();
        peer.shutdown(std::net::Shutdown::Write).unwrap();
        assert_eq!(client.read(now), Some(Ok(Wanted::Line(Request::Status))));
        client.asked = Some((now, Wanted::Line(Request::Status)));
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
