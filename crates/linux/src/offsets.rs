//! Offsets in the files that a process reads, from `/proc/PID/fd` and `/proc/PID/fdinfo`.

use crate::process::numbers_in;
use crate::root::Root;
use crate::sys::RawPid;
use std::os::unix::fs::MetadataExt;

/// Least size of a file in bytes. Programs read smaller ones in a few pieces, so the offset says little.
const LEAST_BYTES: u64 = 1 << 20;
/// Maximum number of descriptors looked at, per process.
const MOST_DESCRIPTORS: usize = 64;

/// The offset in a regular file that is open for reading only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Offset {
    /// Device and inode.
    pub file: (u64, u64),
    /// The offset: the bytes that were read, or skipped.
    pub read: u64,
    /// Size of the file in bytes, at least [`LEAST_BYTES`].
    pub size: u64,
}

/// The offsets in the large files that a process reads; none if it is gone, or belongs to another user.
pub(crate) fn offsets(root: &Root, pid: RawPid) -> Vec<Offset> {
    let mut descriptors = numbers_in(root, &format!("/proc/{pid}/fd"));
    descriptors.truncate(MOST_DESCRIPTORS);
    let offsets = descriptors.into_iter();
    offsets
        .filter_map(|descriptor| offset(root, pid, descriptor))
        .collect()
}

fn offset(root: &Root, pid: RawPid, descriptor: i32) -> Option<Offset> {
    let file = std::fs::metadata(root.path(&format!("/proc/{pid}/fd/{descriptor}"))).ok()?;
    if !file.is_file() || file.size() < LEAST_BYTES {
        return None;
    }
    let info = root.path(&format!("/proc/{pid}/fdinfo/{descriptor}"));
    let info = std::fs::read_to_string(info).ok()?;
    Some(Offset {
        file: (file.dev(), file.ino()),
        read: offset_if_read_only(&info)?,
        size: file.size(),
    })
}

/// The offset that a text of `fdinfo` tells, if the descriptor is for reading only. proc_pid_fdinfo(5).
fn offset_if_read_only(info: &str) -> Option<u64> {
    let value = |name: &str| {
        let mut lines = info.lines();
        lines.find_map(|line| Some(line.strip_prefix(name)?.trim()))
    };
    let flags = i32::from_str_radix(value("flags:")?, 8).ok()?;
    if flags & libc::O_ACCMODE != libc::O_RDONLY {
        return None;
    }
    value("pos:")?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::os::unix::fs::symlink;

    #[test]
    fn only_large_files_that_are_read_are_found() {
        let dir = tempfile::tempdir().unwrap();
        let proc = dir.path().join("proc/5");
        for folder in ["fd", "fdinfo"] {
            std::fs::create_dir_all(proc.join(folder)).unwrap();
        }
        let open = |descriptor: &str, size: u64, info: &str| {
            let path = dir.path().join(format!("file-{descriptor}"));
            let file = File::create(&path).unwrap();
            file.set_len(size).unwrap();
            symlink(&path, proc.join("fd").join(descriptor)).unwrap();
            std::fs::write(proc.join("fdinfo").join(descriptor), info).unwrap();
            file.metadata().unwrap()
        };
        let read_only = "pos:\t4096\nflags:\t0100000\nmnt_id:\t29\nino:\t7\n";
        open("0", LEAST_BYTES - 1, read_only);
        open("1", LEAST_BYTES, "pos:\t9\nflags:\t0102001\n");
        open("2", LEAST_BYTES, "pos:\t9\nflags:\t0100002\n");
        symlink("pipe:[7]", proc.join("fd/3")).unwrap();
        symlink(dir.path(), proc.join("fd/4")).unwrap();
        let input = open("17", LEAST_BYTES, read_only);
        let expected = Offset {
            file: (input.dev(), input.ino()),
            read: 4096,
            size: LEAST_BYTES,
        };
        let root = Root::new(dir.path());
        assert_eq!(offsets(&root, 5), [expected]);
        assert_eq!(offsets(&root, 6), []);
    }
}
