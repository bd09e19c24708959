//! A list that outlives its writer: a head, and slots of one length behind it, in memory and in a file.

use crate::root::Root;
use crate::runtime::{NoFolder, PrivateFolder};
use rustix::fs::{MemfdFlags, memfd_create};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::FileExt;

/// Size of a slot: numbers and the name of a job, which is also a file name and so has at most 255 bytes, or the path of a
/// group, or three sets of CPUs.
pub(crate) const SLOT_BYTES: usize = 512;

/// Fills a text with blanks up to this length.
///
/// # Errors
/// It is longer. A cut entry would be none.
pub(super) fn padded(mut text: Vec<u8>, length: usize) -> io::Result<Vec<u8>> {
    if text.len() > length {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    text.resize(length, b' ');
    Ok(text)
}

/// A list of slots. When it is dropped, the file is removed.
#[derive(Debug)]
pub(crate) struct Slots {
    memory: File,
    pub(super) kept: Option<Kept>,
    /// Why there is no file, until this was read.
    lost: Option<NoFolder>,
    head_bytes: u64,
    /// Free slots, and the first slot that was never used.
    free: Vec<u64>,
    fresh: u64,
}

#[derive(Debug)]
pub(super) struct Kept {
    folder: PrivateFolder,
    name: String,
    pub(super) file: File,
}

impl Kept {
    fn create(root: &Root, name: String) -> Result<Kept, NoFolder> {
        let folder = PrivateFolder::own(root)?;
        let file = folder.create(&name)?;
        Ok(Kept { folder, name, file })
    }
}

impl Slots {
    /// Starts a list with this head, in a file of this name. The first `reserved` slots have owners already.
    ///
    /// # Errors
    /// Out of memory. A missing file is no error.
    pub(crate) fn begin(
        root: &Root,
        name: String,
        head: &[u8],
        reserved: u64,
    ) -> io::Result<Slots> {
        let memory = File::from(memfd_create("cosched", MemfdFlags::CLOEXEC)?);
        let (kept, lost) = match Kept::create(root, name) {
            Ok(kept) => (Some(kept), None),
            Err(why) => (None, Some(why)),
        };
        let mut slots = Slots {
            memory,
            kept,
            lost,
            head_bytes: head.len() as u64,
            free: Vec::new(),
            fresh: reserved,
        };
        slots.memory.write_all_at(head, 0)?;
        slots.write_kept(head, 0);
        Ok(slots)
    }

    /// Writes a text at once, in the slot that it had or in a free one.
    ///
    /// # Errors
    /// Out of memory, or the text is too long.
    pub(crate) fn write(&mut self, slot: Option<u64>, text: Vec<u8>) -> io::Result<u64> {
        let bytes = padded(text, SLOT_BYTES)?;
        let slot = slot.unwrap_or_else(|| self.take());
        let at = self.head_bytes + slot * SLOT_BYTES as u64;
        self.write_kept(&bytes, at);
        self.memory.write_all_at(&bytes, at)?;
        Ok(slot)
    }

    fn take(&mut self) -> u64 {
        self.free.pop().unwrap_or_else(|| {
            self.fresh += 1;
            self.fresh - 1
        })
    }

    fn write_kept(&mut self, bytes: &[u8], at: u64) {
        // A list with a hole could leave a process stopped for ever, unnoticed. No list is better: the guardian has its
        // own, and later starts look for marked processes.
        let Some(Err(error)) = self
            .kept
            .as_ref()
            .map(|kept| kept.file.write_all_at(bytes, at))
        else {
            return;
        };
        if let Some(kept) = self.kept.take() {
            kept.folder.remove(&kept.name);
            self.lost = Some(kept.folder.problem(&kept.name, error));
        }
    }

    /// Frees a slot.
    pub(crate) fn strike(&mut self, slot: u64) {
        let _ = self.write(Some(slot), Vec::new());
        self.free.push(slot);
    }

    /// The copy in memory.
    pub(crate) fn memory(&self) -> &File {
        &self.memory
    }

    /// Why there is no file; returned once.
    pub(crate) fn take_lost(&mut self) -> Option<NoFolder> {
        self.lost.take()
    }

    /// The descriptors that a guardian must keep.
    pub(crate) fn descriptors(&self) -> Vec<RawFd> {
        let kept = self.kept.as_ref().map(|kept| kept.folder.as_raw_fd());
        kept.into_iter().chain([self.memory.as_raw_fd()]).collect()
    }

    /// Removes the file.
    pub(crate) fn remove_file(&mut self) {
        if let Some(kept) = self.kept.take() {
            kept.folder.remove(&kept.name);
        }
    }
}

impl Drop for Slots {
    fn drop(&mut self) {
        self.remove_file();
    }
}
