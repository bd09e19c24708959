//! The line between a run and its window: messages that arrive whole or not at all, each with descriptors if need be.
//! Neither end ever waits for the other.

use rustix::cmsg_space;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};
use serde::{Deserialize, Serialize};
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;

/// Descriptors that one message may carry.
const MOST_FDS: usize = 2;
/// Bytes of one message; none comes near that.
const MOST_BYTES: usize = 4096;

/// From the run to its window.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Told {
    /// Where others connect; the first message.
    Serve(Vec<Door>),
    /// The state of the run, in a file in memory that comes with it.
    Status,
}

/// A socket on which others connect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Door {
    /// That of `cosched status` and `cosched top`.
    Window,
    /// That of `--metrics`, on TCP.
    MetricsTcp,
    /// That of `--metrics`, in the file system.
    MetricsUnix,
}

/// From the window to its run.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Wish {
    /// Somebody wants the state.
    Status,
    /// A job is to end.
    End {
        /// Its number.
        job: u32,
        /// Its name.
        name: String,
    },
    /// Nobody looks any more, and the window ends.
    Leaving,
}

/// An end of the line.
#[derive(Debug)]
pub(super) struct Line {
    fd: OwnedFd,
}

/// What came on a line.
#[derive(Debug)]
pub(super) enum Came<T> {
    /// A message, with its descriptors.
    Message(T, Vec<OwnedFd>),
    /// Something that is no message.
    Nonsense,
    /// Nothing now.
    Nothing,
    /// The other end has been closed.
    End,
}

impl AsFd for Line {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Line {
    /// A line: this process's end, and that of another one.
    pub(super) fn pair() -> io::Result<(Line, OwnedFd)> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
        Ok((Line { fd: ours }, theirs))
    }

    pub(super) fn on(fd: OwnedFd) -> Line {
        Line { fd }
    }

    /// Sends a message.
    ///
    /// # Errors
    /// `WouldBlock` if the other end has not taken what was sent before; others if there is none.
    pub(super) fn send<T: Serialize>(&self, message: &T, fds: &[BorrowedFd<'_>]) -> io::Result<()> {
        let bytes = serde_json::to_vec(message)?;
        let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(MOST_FDS))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !fds.is_empty() && !control.push(SendAncillaryMessage::ScmRights(fds)) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        sendmsg(&self.fd, &[IoSlice::new(&bytes)], &mut control, flags)?;
        Ok(())
    }

    /// Takes the next message. Does not wait.
    pub(super) fn take<T: for<'de> Deserialize<'de>>(&self) -> Came<T> {
        let mut bytes = [0; MOST_BYTES];
        let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(MOST_FDS))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
        let got = loop {
            match recvmsg(
                &self.fd,
                &mut [IoSliceMut::new(&mut bytes)],
                &mut control,
                flags,
            ) {
                Ok(got) => break got.bytes,
                Err(rustix::io::Errno::INTR) => {}
                Err(rustix::io::Errno::AGAIN) => return Came::Nothing,
                Err(_) => return Came::End,
            }
        };
        let mut fds = Vec::new();
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(received) = message {
                fds.extend(received);
            }
        }
        if got == 0 {
            return Came::End;
        }
        serde_json::from_slice(&bytes[..got])
            .map_or(Came::Nonsense, |message| Came::Message(message, fds))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read as _, Seek as _, Write as _};

    #[test]
    fn messages_come_whole_with_their_descriptors_until_the_end() {
        let (ours, theirs) = Line::pair().unwrap();
        let theirs = Line::on(theirs);
        assert!(matches!(theirs.take::<Told>(), Came::Nothing));
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"state").unwrap();
        ours.send(&Told::Serve(vec![Door::Window]), &[]).unwrap();
        ours.send(&Told::Status, &[file.as_fd()]).unwrap();
        let Came::Message(Told::Serve(doors), none) = theirs.take() else {
            panic!("a message")
        };
        assert!(doors == [Door::Window] && none.is_empty());
        let Came::Message(Told::Status, mut fds) = theirs.take() else {
            panic!("a message")
        };
        let mut file = std::fs::File::from(fds.pop().unwrap());
        file.rewind().unwrap();
        let mut text = String::new();
        file.read_to_string(&mut text).unwrap();
        assert_eq!(text, "state");
        theirs.send(&"garbage", &[]).unwrap();
        assert!(matches!(ours.take::<Wish>(), Came::Nonsense));
        drop(ours);
        assert!(matches!(theirs.take::<Told>(), Came::End));
        assert!(theirs.send(&Wish::Status, &[]).is_err());
    }

    #[test]
    fn an_end_that_takes_nothing_never_makes_the_other_wait() {
        let (ours, theirs) = Line::pair().unwrap();
        let sent = (0..100_000)
            .take_while(|_| ours.send(&Told::Status, &[]).is_ok())
            .count();
        assert!(sent > 0 && sent < 100_000, "{sent}");
        drop(theirs);
    }
}
