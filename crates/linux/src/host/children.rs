//! The children of this process, read again only when there is news.

use crate::process;
use crate::root::Root;
use crate::sys::RawPid;
use std::fs::File;

/// The kernel's list of this process's children, and the list as it was at the last look.
///
/// An orphan becomes a child of this process without any signal, so only the list tells of it.
pub(crate) struct OwnChildren {
    /// Open all the time, which saves finding it at every look.
    list: Option<File>,
    now: Vec<u8>,
    seen: Vec<u8>,
}

/// Rereads of a list that changes while it is read.
const LOOKS: u32 = 8;

impl OwnChildren {
    /// This process has a single thread, so one list holds all its children.
    pub(crate) fn of_this_process(root: &Root) -> OwnChildren {
        let pid = std::process::id();
        let list = File::open(root.path(&format!("/proc/{pid}/task/{pid}/children"))).ok();
        OwnChildren {
            list,
            now: Vec::new(),
            seen: Vec::new(),
        }
    }

    /// All children, if the list is another than at the last look; `None` if it is the same, or can't be read.
    pub(crate) fn news(&mut self) -> Option<Vec<RawPid>> {
        let list = self.list.as_ref()?;
        self.now.clear();
        process::read_all(list, &mut self.now).ok()?;
        // The kernel may leave out a child when another one ends meanwhile. Then a second look differs.
        for _ in 0..LOOKS {
            if self.now == self.seen {
                break;
            }
            let mut again = Vec::new();
            process::read_all(list, &mut again).ok()?;
            if std::mem::replace(&mut self.now, again) == self.now {
                break;
            }
        }
        if self.now == self.seen {
            return None;
        }
        std::mem::swap(&mut self.now, &mut self.seen);
        Some(process::numbers(&self.seen))
    }

    /// Makes the next look count as news whatever it shows: a number in the list may stand for another process now, or
    /// an orphan must be looked at again.
    pub(crate) fn forget(&mut self) {
        self.seen.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_news_when_it_changed_or_was_forgotten() {
        let dir = tempfile::tempdir().unwrap();
        let pid = std::process::id();
        let task = dir.path().join(format!("proc/{pid}/task/{pid}"));
        std::fs::create_dir_all(&task).unwrap();
        let write = |text: &str| std::fs::write(task.join("children"), text).unwrap();
        write("11 12 ");
        let mut children = OwnChildren::of_this_process(&Root::new(dir.path()));
        assert_eq!(children.news(), Some(vec![11, 12]));
        assert_eq!(children.news(), None);
        write("11 12 13 ");
        assert_eq!(children.news(), Some(vec![11, 12, 13]));
        assert_eq!(children.news(), None);
        children.forget();
        assert_eq!(children.news(), Some(vec![11, 12, 13]));
        let many: Vec<RawPid> = (100_000..103_000).collect();
        write(&many.iter().map(|pid| format!("{pid} ")).collect::<String>());
        assert_eq!(children.news(), Some(many));
    }
}
