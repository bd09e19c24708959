//! Whether somebody else could redirect what a run writes into a folder or a file: by a right to write to the folder or
//! to one above it, by owning one of them, or by a link on the way.

use crate::input::told;
use std::ffi::OsString;
use std::fs::Metadata;
use std::io;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Component, Path, PathBuf};

/// More links than these lead nowhere, as for the kernel.
pub(crate) const MOST_LINKS: usize = 40;

/// What `statfs` says of `/proc`.
const PROC_SUPER_MAGIC: rustix::fs::FsWord = 0x9fa0;

/// Why somebody else could put links or files into a folder, or another folder in its place; `None` if nobody can. Each
/// folder on the way must belong to the caller or the superuser, and nobody else may write to it. A sticky folder, as
/// `/tmp` is, may lie above: there nobody can rename what is not theirs. What is not there yet is no danger: the caller
/// will make it.
///
/// An ordinary user who works in a folder of a colleague or of a group trusts them: above the folder itself only those
/// count to which everybody may write. The superuser trusts nobody.
///
/// # Errors
/// A folder on the way can't be looked at.
pub(crate) fn danger(path: &Path) -> io::Result<Option<String>> {
    let path = std::path::absolute(path)?;
    Ok(walk(&Caller::look()?, &path, false)?.err())
}

/// Where a file is, after all links that lead to it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) path: PathBuf,
    /// It is a descriptor of a process, as `/dev/stdout` is. Only by following it can it be opened.
    pub(crate) follows: bool,
}

/// As [`danger`], for a file that is to be written. Of the file itself it counts who made it, not who may write to it. A
/// device may belong to anybody: only the superuser makes them.
///
/// # Errors
/// As [`danger`].
pub(crate) fn danger_of_file(path: &Path) -> io::Result<Result<Place, String>> {
    let path = std::path::absolute(path)?;
    walk(&Caller::look()?, &path, true)
}

/// Whether files of this user are none of somebody else.
pub(crate) fn trusts(owner: u32) -> bool {
    Caller::look().is_ok_and(|caller| caller.trusts_maker(owner))
}

fn walk(caller: &Caller, path: &Path, is_file: bool) -> io::Result<Result<Place, String>> {
    let mut at = PathBuf::from("/");
    let mut left = names(path);
    let mut links = 0;
    let called = |folder: &Path| {
        let is_it = folder == path;
        if is_it {
            "it".to_owned()
        } else {
            format!("the folder {} on the way to it", told(folder))
        }
    };
    let safe = |path: PathBuf| {
        Ok(Ok(Place {
            path,
            follows: false,
        }))
    };
    loop {
        let folder = at.metadata()?;
        // The folder itself has this name, whichever links lead to it.
        let what = if left.is_empty() {
            "it".to_owned()
        } else {
            called(&at)
        };
        let is_strict = caller.user == 0 || left.is_empty();
        if is_strict && !caller.trusts(folder.uid()) {
            return Ok(Err(format!(
                "{what} belongs to another user (number {})",
                folder.uid()
            )));
        }
        let open = if is_strict {
            caller.others_may_write(&folder)
        } else {
            folder.mode() & 0o002 != 0
        };
        let open = || {
            open.then(|| {
                format!(
                    "others may write to {what} (mode {:o})",
                    folder.mode() & 0o7777
                )
            })
        };
        let Some(name) = left.pop() else {
            return open().map_or_else(|| safe(at), |why| Ok(Err(why)));
        };
        let is_sticky = folder.mode() & 0o1000 != 0;
        if name == ".." {
            at.pop();
            continue;
        }
        let is_in_proc = is_file
            && rustix::fs::statfs(&at).is_ok_and(|system| system.f_type == PROC_SUPER_MAGIC);
        at.push(name);
        let entry = match at.symlink_metadata() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let why = open().filter(|_| !is_sticky);
                at.extend(left.into_iter().rev());
                return why.map_or_else(|| safe(at), |why| Ok(Err(why)));
            }
            entry => entry?,
        };
        let is_file = is_file && left.is_empty();
        if entry.is_symlink()
            && (is_strict || is_file || open().is_some())
            && !caller.trusts_maker(entry.uid())
        {
            let what = if at == path {
                "it".to_owned()
            } else {
                format!("{} on the way to it", told(&at))
            };
            return Ok(Err(format!("{what} is a link that another user made")));
        }
        if let Some(why) = open() {
            if !is_sticky {
                return Ok(Err(why));
            }
            if !caller.trusts_maker(entry.uid()) && !is_device(&entry) {
                return Ok(Err(format!(
                    "{} belongs to another user (number {})",
                    called(&at),
                    entry.uid()
                )));
            }
        }
        if entry.is_symlink() && is_file && is_in_proc {
            return Ok(Ok(Place {
                path: at,
                follows: true,
            }));
        }
        if entry.is_symlink() {
            links += 1;
            if links > MOST_LINKS {
                return Err(rustix::io::Errno::LOOP.into());
            }
            let target = std::fs::read_link(&at)?;
            at.pop();
            if target.is_absolute() {
                at = PathBuf::from("/");
            }
            left.extend(names(&target));
        } else if is_file {
            if !caller.trusts_maker(entry.uid()) && !is_device(&entry) {
                return Ok(Err(format!(
                    "it belongs to another user (number {})",
                    entry.uid()
                )));
            }
            // Anybody may have given it this name, where the kernel allows that (`fs.protected_hardlinks`).
            if entry.is_file() && entry.nlink() > 1 && open().is_some() {
                let why = "its file has another name as well (a hard link; `ls -l` shows the number of names) that others may \
                           have made";
                return Ok(Err(why.to_owned()));
            }
            return safe(at);
        }
    }
}

fn is_device(entry: &Metadata) -> bool {
    entry.file_type().is_char_device() || entry.file_type().is_block_device()
}

/// The names in a path, the first one last.
fn names(path: &Path) -> Vec<OsString> {
    let name = |component: Component<'_>| match component {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        _ => None,
    };
    path.components().rev().filter_map(name).collect()
}

struct Caller {
    user: u32,
    /// Owns the first folder of all, and so could do anything anyway: the superuser, by whatever number a user namespace
    /// shows it.
    first: u32,
    /// The number of all users that a user namespace does not know.
    strangers: u32,
}

impl Caller {
    fn look() -> io::Result<Caller> {
        let strangers = std::fs::read_to_string("/proc/sys/kernel/overflowuid").ok();
        Ok(Caller {
            user: rustix::process::geteuid().as_raw(),
            first: Path::new("/").metadata()?.uid(),
            strangers: strangers
                .and_then(|number| number.trim().parse().ok())
                .unwrap_or(65_534),
        })
    }

    fn trusts(&self, owner: u32) -> bool {
        owner == self.user || owner == 0 || owner == self.first
    }

    /// As [`Caller::trusts`], of whoever made a link or a file. In a user namespace all users of the world outside have one
    /// number, the superuser too. That the folders above all belong to it says nothing of who made this.
    fn trusts_maker(&self, owner: u32) -> bool {
        owner == self.user || owner == 0 || owner == self.first && self.first != self.strangers
    }

    /// Whether the mode of a folder lets others write to it. The caller's own group is nobody else.
    fn others_may_write(&self, folder: &Metadata) -> bool {
        let read = |file: &str| std::fs::read_to_string(file).unwrap_or_default();
        folder.mode() & 0o002 != 0
            || folder.mode() & 0o020 != 0
                && !is_private(
                    folder.gid(),
                    self.user,
                    &read("/etc/passwd"),
                    &read("/etc/group"),
                )
    }
}

/// Whether only this user is in a group, as far as the files tell: many systems give each user such a group, and let it
/// write to all that the user makes. It has the user's name or number.
fn is_private(group: u32, user: u32, passwd: &str, groups: &str) -> bool {
    let number = |field: Option<&str>| field.and_then(|field| field.parse::<u32>().ok());
    let users: Vec<Vec<&str>> = passwd
        .lines()
        .map(|line| line.split(':').collect())
        .collect();
    let field = |user: &[&str], ix: usize| number(user.get(ix).copied());
    let own = users
        .iter()
        .find(|line| field(line, 2) == Some(user))
        .map_or("", |line| line[0]);
    let shared = users
        .iter()
        .any(|line| field(line, 3) == Some(group) && field(line, 2) != Some(user));
    let line = groups
        .lines()
        .map(|line| line.split(':').collect::<Vec<_>>());
    let line = line.into_iter().find(|line| field(line, 2) == Some(group));
    let (name, members) = line.map_or(("", ""), |line| {
        (line[0], line.get(3).copied().unwrap_or_default())
    });
    let alone = members
        .split(',')
        .all(|member| member.is_empty() || member == own);
    let is_named = !own.is_empty() && name == own;
    group != 0 && !shared && alone && (is_named || group == user)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt as _, chown, symlink};

    fn mode(folder: &Path, mode: u32) {
        std::fs::set_permissions(folder, std::fs::Permissions::from_mode(mode)).unwrap();
    }

    fn why(path: &Path) -> String {
        danger(path).unwrap().unwrap_or_default()
    }

    #[test]
    fn folders_above_must_not_be_open_unless_they_are_sticky() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().canonicalize().unwrap();
        let (open, logs) = (dir.join("open"), dir.join("open/own/logs"));
        std::fs::create_dir_all(&logs).unwrap();
        assert_eq!(danger(&logs).unwrap(), None);
        mode(&open, 0o777);
        let expected = format!(
            "others may write to the folder {} on the way to it (mode 777)",
            open.display()
        );
        assert_eq!(why(&logs), expected);
        assert_eq!(
            why(&open.join("new")),
            expected,
            "what is to be made there could be moved away as well"
        );
        assert_eq!(why(&open.join("own/../own/logs")), expected);
        symlink(&logs, dir.join("link")).unwrap();
        assert_eq!(
            why(&dir.join("link")),
            expected,
            "where a link leads counts"
        );
        mode(&open, 0o1777);
        assert_eq!(
            (danger(&logs).unwrap(), danger(&open.join("new")).unwrap()),
            (None, None)
        );
        assert_eq!(
            why(&open),
            "others may write to it (mode 1777)",
            "to the folder itself, sticky or not"
        );
        symlink("loop", dir.join("loop")).unwrap();
        assert!(danger(&dir.join("loop")).is_err());
        assert!(
            danger(&dir.join("link/../../x")).unwrap().is_none(),
            "what follows a link counts from its target"
        );
    }

    /// Where the kernel lets anybody give other users' files further names.
    #[test]
    fn a_file_with_several_names_is_a_danger_where_others_may_make_them() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().canonicalize().unwrap();
        let (sticky, file) = (dir.join("sticky"), dir.join("file"));
        std::fs::create_dir(&sticky).unwrap();
        mode(&sticky, 0o1777);
        std::fs::write(&file, "precious").unwrap();
        std::fs::hard_link(&file, sticky.join("file")).unwrap();
        assert!(
            danger_of_file(&file).unwrap().is_ok(),
            "nobody else can make names here"
        );
        assert!(
            danger_of_file(&sticky.join("file"))
                .unwrap()
                .unwrap_err()
                .contains("hard link")
        );
        std::fs::remove_file(&file).unwrap();
        assert!(
            danger_of_file(&sticky.join("file")).unwrap().is_ok(),
            "it has this name alone"
        );
    }

    #[test]
    fn folders_and_links_of_others_are_a_danger() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().canonicalize().unwrap();
        let theirs = dir.join("theirs");
        std::fs::create_dir_all(theirs.join("logs")).unwrap();
        if let Err(error) = chown(&theirs, Some(2_000_001), None) {
            return eprintln!("skipped, because only root may give files away: {error}");
        }
        let on_the_way = format!(
            "the folder {} on the way to it belongs to another user (number 2000001)",
            theirs.display()
        );
        assert_eq!(why(&theirs.join("logs")), on_the_way);
        assert_eq!(why(&theirs), "it belongs to another user (number 2000001)");
        let sticky = dir.join("sticky");
        std::fs::create_dir(&sticky).unwrap();
        mode(&sticky, 0o1777);
        std::fs::create_dir_all(dir.join("own/logs")).unwrap();
        symlink(dir.join("own"), sticky.join("link")).unwrap();
        assert_eq!(danger(&sticky.join("link/logs")).unwrap(), None);
        std::os::unix::fs::lchown(sticky.join("link"), Some(2_000_001), None).unwrap();
        assert!(
            why(&sticky.join("link/logs"))
                .ends_with("link on the way to it is a link that another user made")
        );
        assert_eq!(
            why(&sticky.join("link")),
            "it is a link that another user made"
        );
    }

    /// As in the project folder of a group.
    #[test]
    fn ordinary_users_trust_those_in_whose_folders_they_work() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().canonicalize().unwrap();
        let (project, logs) = (dir.join("project"), dir.join("project/cosched-logs"));
        std::fs::create_dir_all(&logs).unwrap();
        mode(&project, 0o2775);
        let user = dir.metadata().unwrap().uid();
        let why = |user: u32, path: &Path| {
            let caller = Caller {
                user,
                ..Caller::look().unwrap()
            };
            walk(&caller, path, false)
                .unwrap()
                .err()
                .unwrap_or_default()
        };
        let ordinary = if user == 0 { 2_000_001 } else { user };
        assert_eq!(why(ordinary, &logs.join("run")), "");
        assert!(!why(0, &logs.join("run")).is_empty());
        mode(&project, 0o777);
        assert!(why(ordinary, &logs.join("run")).contains("others may write to the folder"));
        mode(&logs, 0o775);
        mode(&project, 0o755);
        assert!(
            !why(ordinary, &logs).is_empty(),
            "the folder itself is its own"
        );
    }

    #[test]
    fn the_users_own_group_is_nobody_else() {
        let passwd = "root:x:0:0::/:/bin/sh\nann:x:1000:1000::/:/bin/sh\nbob:x:1001:1005::/:/bin/sh\nc:x:1002:100::/:\n";
        let groups = "root:x:0:\nann:x:1000:\nbob:x:1005:bob\nlab:x:1002:ann,bob\nusers:x:100:\n";
        let private = |group, user| is_private(group, user, passwd, groups);
        assert!(
            private(1000, 1000) && private(1005, 1001),
            "the same number, the same name"
        );
        assert!(private(5000, 5000), "a user whom a server knows");
        assert!(!private(1002, 1002), "others are in it");
        assert!(!private(100, 1002), "a group for all");
        assert!(!private(1000, 1001) && !private(0, 0) && !private(5001, 5000));
        let with_guest = format!("{passwd}guest:x:1003:1000::/:\n");
        assert!(
            !is_private(1000, 1000, &with_guest, groups),
            "it is the group of another user as well"
        );
    }

    /// A user namespace shows all users that it does not know, the superuser too, by one number.
    #[test]
    fn the_superuser_outside_is_trusted_and_those_who_look_alike_are_not() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().canonicalize().unwrap();
        let (link, folder) = (dir.join("link"), dir.join("theirs"));
        std::fs::create_dir(&folder).unwrap();
        symlink(dir.join("precious"), &link).unwrap();
        let stranger = 2_000_001;
        for path in [&link, &folder] {
            if let Err(error) = std::os::unix::fs::lchown(path, Some(stranger), None) {
                return eprintln!("skipped, because only root may give files away: {error}");
            }
        }
        let caller = |strangers| Caller {
            user: 0,
            first: stranger,
            strangers,
        };
        let safe = |strangers, path: &Path| walk(&caller(strangers), path, true).unwrap().is_ok();
        assert!(safe(65_534, &link), "it is the superuser by another number");
        assert!(!safe(stranger, &link), "it can be anybody");
        assert!(
            safe(stranger, &folder.join("out")),
            "the folders above are theirs as well"
        );
    }
}
