//! The file: an SQLite database with a row for each command.
//!
//! It uses a rollback journal and no write-ahead log, since that needs memory shared between all who use the file, which
//! file systems over a network do not have, and home folders are often on these. A transaction is short: a run reads once
//! before it begins, and writes every half a minute and at its end.

use crate::error::{Error, Problem};
use crate::export::Exported;
use crate::key::{Key, Numbers};
use crate::remembered::{MOST_RUNS, Recalled, Remembered, Run, expected};
use cosched_core::{Earlier, Expected, ExpectedFrom};
use rusqlite::types::ValueRef;
use rusqlite::{
    Connection, OpenFlags, OptionalExtension as _, Row, Statement, TransactionBehavior, params,
};
use rustix::process::geteuid;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs::{DirBuilder, OpenOptions};
use std::io::{ErrorKind, Read as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// As many commands are kept. When there are more, a tenth of them goes, those first that have not been seen for longest.
pub const MOST_COMMANDS: u64 = 20_000;

/// A longer command, or another longer text, is cut off. The numbers by which it is found are of all of it.
const LONGEST: usize = 1_000;

/// As many commands of a program are looked at to know what to expect of another one.
const MOST_ALIKE: i64 = 64;

/// What was learnt of a command takes no more than this as text.
const LONGEST_LEARNT: usize = 4_096;

/// No count and no time is as great: whoever reads the export can take it for a double.
const MOST_NUMBER: u64 = 1 << 53;

/// `cosc`, where SQLite keeps a number that tells whose file it is.
const APPLICATION: i64 = 0x636f_7363;

/// The version of the tables.
const FORMAT: i64 = 1;

const TABLES: &str = "
    CREATE TABLE command (
        exact INTEGER PRIMARY KEY,
        line INTEGER NOT NULL,
        program INTEGER NOT NULL,
        machine TEXT NOT NULL,
        program_text TEXT NOT NULL,
        command TEXT NOT NULL,
        folder TEXT NOT NULL,
        identity TEXT NOT NULL,
        seen INTEGER NOT NULL,
        ends INTEGER NOT NULL,
        failures INTEGER NOT NULL,
        last_exit TEXT NOT NULL,
        runs TEXT NOT NULL,
        learnt TEXT
    );
    CREATE INDEX by_line ON command (line, seen);
    CREATE INDEX by_program ON command (program, seen);
    CREATE INDEX by_seen ON command (seen);
";

/// How long others may keep the file from us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Patience {
    /// Not at all, and what is written need not survive a loss of power: jobs run meanwhile, and wait for decisions.
    None,
    /// A few seconds, until it is on the disk.
    Some,
}

/// How a command ended.
#[derive(Clone, Debug)]
pub struct Ended {
    /// Which command.
    pub key: Key,
    /// When, in milliseconds since 1970.
    pub at: u64,
    /// How, in words.
    pub exit: String,
    /// What its run was like; `None` if it did not end well, so that its figures say nothing.
    pub run: Option<Run>,
    /// What was learnt of what it asks of caches and memory; `None` if nothing was, so that what was known of it stays.
    pub learnt: Option<Arc<Earlier>>,
}

/// What is to be forgotten.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Forget {
    /// Everything.
    All,
    /// Commands, programs and folders that hold this text.
    Matching(String),
    /// What was seen last before this, in milliseconds since 1970.
    OlderThan(u64),
}

/// An open store.
#[derive(Debug)]
pub struct Store {
    database: Connection,
    path: PathBuf,
    most: u64,
}

impl Store {
    /// Opens a store that is there; `None` if there is none. Nothing is made or changed, unless a write was interrupted
    /// before: that is then undone.
    ///
    /// # Errors
    /// It can't be read, and why.
    pub fn open_existing(path: &Path, patience: Patience) -> Result<Option<Store>, Error> {
        match path.symlink_metadata() {
            Err(error)
                if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) =>
            {
                return Ok(None);
            }
            Err(error) => return Err(Problem::from(error).at(path)),
            Ok(_) => {}
        }
        let store = Store::connect(path, patience).map_err(|problem| problem.at(path))?;
        let is_empty = store.is_empty().map_err(|problem| problem.at(path))?;
        Ok((!is_empty).then_some(store))
    }

    /// Opens a store, and makes it if there is none, for its owner alone. The folder that it is in is made as well, but
    /// for its parents only those of a data folder (`.local/share`).
    ///
    /// # Errors
    /// It can't be read or made, and why.
    pub fn open(path: &Path, patience: Patience) -> Result<Store, Error> {
        Store::opened(path, patience).map_err(|problem| problem.at(path))
    }

    fn opened(path: &Path, patience: Patience) -> Result<Store, Problem> {
        if let Some(folder) = path
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty())
        {
            DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(folder)?;
        }
        // Made here, and not by the database, so that it never belongs to more than its owner.
        match OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(path)
        {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error.into()),
            _ => {}
        }
        let mut store = Store::connect(path, patience)?;
        store.make_tables()?;
        Ok(store)
    }

    /// Bounds the number of commands otherwise than by [`MOST_COMMANDS`]; for tests.
    pub fn with_most(self, most: u64) -> Store {
        Store { most, ..self }
    }

    fn connect(path: &Path, patience: Patience) -> Result<Store, Problem> {
        let found = path.symlink_metadata()?;
        if !found.is_file() {
            return Err(Problem::Unsafe("it is not a regular file".to_owned()));
        }
        if found.uid() != geteuid().as_raw() {
            return Err(Problem::Unsafe(format!(
                "it belongs to another user (number {})",
                found.uid()
            )));
        }
        if found.mode() & 0o022 != 0 {
            return Err(Problem::Unsafe(format!(
                "others may write to it (mode {:o})",
                found.mode() & 0o7777
            )));
        }
        // Links in the folder's name are the user's own business; whether others could change it is looked at by whoever
        // names the file.
        let place = match (path.parent(), path.file_name()) {
            (Some(folder), Some(name)) if !folder.as_os_str().is_empty() => {
                folder.canonicalize()?.join(name)
            }
            _ => path.to_owned(),
        };
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX
            | OpenFlags::SQLITE_OPEN_NOFOLLOW
            | OpenFlags::SQLITE_OPEN_EXRESCODE;
        let database = Connection::open_with_flags(place, flags)?;
        let (wait, synchronous) = match patience {
            Patience::None => (Duration::ZERO, "OFF"),
            Patience::Some => (Duration::from_secs(3), "NORMAL"),
        };
        database.busy_timeout(wait)?;
        database.pragma_update(None, "synchronous", synchronous)?;
        // What is forgotten is not to be found in the file.
        database.pragma_update(None, "secure_delete", "ON")?;
        database.pragma_update(None, "trusted_schema", "OFF")?;
        let store = Store {
            database,
            path: path.to_owned(),
            most: MOST_COMMANDS,
        };
        if !store.is_empty()? {
            let (application, format) = store.versions()?;
            if application != APPLICATION {
                return Err(Problem::Foreign);
            }
            if format > FORMAT {
                return Err(Problem::Newer(format, FORMAT));
            }
        }
        Ok(store)
    }

    /// Whether nothing was ever written to it.
    fn is_empty(&self) -> Result<bool, Problem> {
        let pages: i64 = self
            .database
            .pragma_query_value(None, "page_count", |row| row.get(0))?;
        Ok(pages == 0)
    }

    fn versions(&self) -> Result<(i64, i64), Problem> {
        let application = self
            .database
            .pragma_query_value(None, "application_id", |row| row.get(0))?;
        let format = self
            .database
            .pragma_query_value(None, "user_version", |row| row.get(0))?;
        Ok((application, format))
    }

    fn make_tables(&mut self) -> Result<(), Problem> {
        if !self.is_empty()? {
            return Ok(());
        }
        let change = self
            .database
            .transaction_with_behavior(TransactionBehavior::Immediate)?;
        // Another run may have been faster.
        let format: i64 = change.pragma_query_value(None, "user_version", |row| row.get(0))?;
        if format == 0 {
            change.pragma_update(None, "application_id", APPLICATION)?;
            change.pragma_update(None, "user_version", FORMAT)?;
            change.execute_batch(TABLES)?;
        }
        Ok(change.commit()?)
    }

    fn at(&self, problem: impl Into<Problem>) -> Error {
        problem.into().at(&self.path)
    }

    /// What is known of each of these commands. The time is expected after its own runs; else after those of the same
    /// command with another program file or in another folder; else after those of other commands with its program.
    ///
    /// # Errors
    /// The store can't be read.
    pub fn recall(&self, keys: &[Option<Key>]) -> Result<Vec<Recalled>, Error> {
        self.recalled(keys).map_err(|problem| self.at(problem))
    }

    fn recalled(&self, keys: &[Option<Key>]) -> Result<Vec<Recalled>, Problem> {
        // All commands are seen as they are at one moment, and the file is locked once.
        let _moment = self.database.unchecked_transaction()?;
        let mut by_exact = self
            .database
            .prepare("SELECT runs, learnt FROM command WHERE exact = ?1")?;
        let mut by_line = self.database.prepare(
            "SELECT runs FROM command WHERE line = ?1 AND runs <> '[]' ORDER BY seen DESC LIMIT 1",
        )?;
        let mut by_program = self
            .database
            .prepare("SELECT runs FROM command WHERE program = ?1 AND runs <> '[]' ORDER BY seen DESC LIMIT ?2")?;
        let mut programs: BTreeMap<i64, Option<Expected>> = BTreeMap::new();
        let mut found = Vec::with_capacity(keys.len());
        for key in keys {
            let Some(key) = key else {
                found.push(Recalled::default());
                continue;
            };
            let Numbers {
                exact,
                line,
                program,
            } = key.numbers();
            let own = by_exact
                .query_row([exact], |row| Ok((runs(row, 0), learnt(row, 1))))
                .optional()?;
            let (own, learnt) = own.unwrap_or_default();
            let mut one = expected(&own, ExpectedFrom::Same);
            if one.is_none() {
                let other = by_line
                    .query_row([line], |row| Ok(runs(row, 0)))
                    .optional()?;
                one = other.and_then(|runs| expected(&runs, ExpectedFrom::Changed));
            }
            if one.is_none() {
                if let Entry::Vacant(entry) = programs.entry(program) {
                    entry.insert(expected_of_program(&mut by_program, program)?);
                }
                one = programs[&program];
            }
            found.push(Recalled {
                expected: one,
                learnt: learnt.map(Arc::new),
            });
        }
        Ok(found)
    }

    /// Notes how commands ended, all or none of them.
    ///
    /// # Errors
    /// The store can't be written to. With [`Patience::None`] that is [`Problem::Busy`] while another run writes.
    pub fn note(&mut self, ends: &[Ended]) -> Result<(), Error> {
        self.noted(ends).map_err(|problem| problem.at(&self.path))
    }

    fn noted(&mut self, ends: &[Ended]) -> Result<(), Problem> {
        let change = self
            .database
            .transaction_with_behavior(TransactionBehavior::Immediate)?;
        // A batch can be one short command many thousand times.
        let mut changed: BTreeMap<i64, (&Key, Remembered)> = BTreeMap::new();
        {
            let mut known = change
                .prepare("SELECT runs, ends, failures, learnt FROM command WHERE exact = ?1")?;
            for end in ends {
                let exact = end.key.numbers().exact;
                let (_, command) = match changed.entry(exact) {
                    Entry::Occupied(found) => found.into_mut(),
                    Entry::Vacant(place) => {
                        let found = known.query_row([exact], remembered).optional()?;
                        place.insert((&end.key, found.unwrap_or_default()))
                    }
                };
                command.note(end);
            }
        }
        write(&change, changed.into_values())?;
        delete_oldest(&change, self.most)?;
        Ok(change.commit()?)
    }

    /// Every command that holds this text, or all, the last seen first. Its program and its folder count as well.
    ///
    /// # Errors
    /// The store can't be read.
    pub fn list(&self, pattern: Option<&str>) -> Result<Vec<Exported>, Error> {
        self.listed(pattern).map_err(|problem| self.at(problem))
    }

    fn listed(&self, pattern: Option<&str>) -> Result<Vec<Exported>, Problem> {
        let mut all = self.database.prepare(&format!(
            "SELECT command, program_text, folder, machine, identity, ends, failures, last_exit, seen, runs, learnt
             FROM command WHERE ?1 IS NULL OR {MATCHES} ORDER BY seen DESC, command, exact"
        ))?;
        let rows = all.query_map([pattern], |row| {
            let command = text(row, 0).filter(|command| !command.is_empty());
            let runs = runs(row, 9);
            Ok(Exported {
                program: text(row, 1).unwrap_or_default(),
                folder: text(row, 2).filter(|_| command.is_some()),
                machine: text(row, 3).unwrap_or_default(),
                identity: text(row, 4).filter(|_| command.is_some()),
                time_s: Exported::time_of(&runs),
                ends: number(row, 5),
                failures: number(row, 6),
                last_exit: text(row, 7).unwrap_or_default(),
                seen: number(row, 8),
                runs,
                learnt: learnt(row, 10),
                command,
            })
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Forgets commands, and says how many. What is forgotten is not to be found in the file any more.
    ///
    /// # Errors
    /// The store can't be written to.
    pub fn forget(&mut self, what: &Forget) -> Result<u64, Error> {
        self.forgotten(what)
            .map_err(|problem| problem.at(&self.path))
    }

    fn forgotten(&mut self, what: &Forget) -> Result<u64, Problem> {
        let gone = match what {
            Forget::All => self.database.execute("DELETE FROM command", [])?,
            Forget::Matching(text) => self
                .database
                .execute(&format!("DELETE FROM command WHERE {MATCHES}"), [text])?,
            Forget::OlderThan(seen) => self
                .database
                .execute("DELETE FROM command WHERE seen < ?1", [seen])?,
        };
        // Pages that became free are used again. To give them back would need room for a copy.
        Ok(gone as u64)
    }

    /// Removes a store that can't be read any more, and says whether there was one. What never was a store of cosched's
    /// stays.
    ///
    /// # Errors
    /// It is something else, or it can't be removed.
    pub fn remove(path: &Path) -> Result<bool, Error> {
        Store::removed(path).map_err(|problem| problem.at(path))
    }

    fn removed(path: &Path) -> Result<bool, Problem> {
        let mut start = [0; 72];
        let mut file = match OpenOptions::new().read(true).open(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
            file => file?,
        };
        if path.symlink_metadata()?.uid() != geteuid().as_raw() {
            return Err(Problem::Unsafe("it belongs to another user".to_owned()));
        }
        // What a power failure or a full disk left of it: its beginning, or zeros.
        let read = read_up_to(&mut file, &mut start)?;
        let is_blank = start.iter().all(|&byte| byte == 0) && is_all_zeros(&mut file)?;
        let is_cut =
            read < start.len() && SIGNATURE.starts_with(&start[..read.min(SIGNATURE.len())]);
        if !is_blank && !is_cut && start[68..] != (APPLICATION as u32).to_be_bytes() {
            return Err(Problem::Foreign);
        }
        let mut journal = path.as_os_str().to_owned();
        journal.push("-journal");
        std::fs::remove_file(path)?;
        match std::fs::remove_file(journal) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error.into()),
            _ => Ok(true),
        }
    }
}

/// How a file of SQLite begins.
const SIGNATURE: &[u8] = b"SQLite format 3\0";

/// Whether nothing but zeros is left to be read: other files begin with zeros too.
fn is_all_zeros(file: &mut std::fs::File) -> std::io::Result<bool> {
    let mut block = [0; 65_536];
    loop {
        match read_up_to(file, &mut block)? {
            0 => return Ok(true),
            read if block[..read].iter().any(|&byte| byte != 0) => return Ok(false),
            _ => {}
        }
    }
}

/// Reads until the buffer is full or the file ends; says how much it was.
fn read_up_to(file: &mut std::fs::File, buffer: &mut [u8]) -> std::io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match file.read(&mut buffer[filled..])? {
            0 => break,
            some => filled += some,
        }
    }
    Ok(filled)
}

const MATCHES: &str =
    "(instr(command, ?1) > 0 OR instr(program_text, ?1) > 0 OR instr(folder, ?1) > 0)";

/// What a row of `runs, ends, failures, learnt` holds. What can't be read is counted anew.
fn remembered(row: &Row<'_>) -> rusqlite::Result<Remembered> {
    Ok(Remembered {
        runs: runs(row, 0),
        ends: number(row, 1).unwrap_or(0),
        failures: number(row, 2).unwrap_or(0),
        learnt: learnt(row, 3).map(Arc::new),
        ..Remembered::default()
    })
}

// A file may hold anything, and SQLite keeps any value in any column. What can't be read in one row is unknown, so that it
// does not keep the others from being read.

fn text(row: &Row<'_>, column: usize) -> Option<String> {
    read(row, column, |value| value.as_str().ok().map(str::to_owned))
}

/// A count, or a time in milliseconds.
fn number(row: &Row<'_>, column: usize) -> Option<u64> {
    let number = read(row, column, |value| value.as_i64().ok())?;
    u64::try_from(number)
        .ok()
        .filter(|&number| number <= MOST_NUMBER)
}

fn runs(row: &Row<'_>, column: usize) -> Vec<Run> {
    let parsed = read(row, column, |value| {
        serde_json::from_str::<Vec<Run>>(value.as_str().ok()?).ok()
    });
    let mut runs = parsed.unwrap_or_default();
    runs.truncate(MOST_RUNS);
    runs
}

fn learnt(row: &Row<'_>, column: usize) -> Option<Earlier> {
    let parsed = read(row, column, |value| {
        let text = value
            .as_str()
            .ok()
            .filter(|text| text.len() <= LONGEST_LEARNT)?;
        serde_json::from_str(text).ok()
    });
    parsed.filter(Earlier::is_sound)
}

fn read<T>(row: &Row<'_>, column: usize, parse: impl Fn(ValueRef<'_>) -> Option<T>) -> Option<T> {
    row.get_ref(column).ok().and_then(parse)
}

/// The beginning of a text.
fn cut(text: &str) -> &str {
    let end = (0..=LONGEST.min(text.len()))
        .rev()
        .find(|&end| text.is_char_boundary(end));
    &text[..end.unwrap_or(0)]
}

/// The time that other commands with this program took at last, one run each, so that no command counts for more than
/// another.
fn expected_of_program(
    by_program: &mut Statement<'_>,
    program: i64,
) -> Result<Option<Expected>, Problem> {
    let alike = by_program.query_map(params![program, MOST_ALIKE], |row| Ok(runs(row, 0)))?;
    let mut last = Vec::new();
    for runs in alike {
        last.extend(runs?.first().copied());
    }
    Ok(expected(&last, ExpectedFrom::Program))
}

impl Remembered {
    fn note(&mut self, end: &Ended) {
        self.ends += 1;
        self.failures += u64::from(end.run.is_none());
        // Taken as it is: a clock that was ahead once would otherwise be believed until it is overtaken.
        self.seen = end.at;
        self.last_exit.clone_from(&end.exit);
        if let Some(run) = end.run {
            self.add(run);
        }
        if let Some(learnt) = end.learnt.as_ref().filter(|learnt| learnt.is_sound()) {
            self.learnt = Some(learnt.clone());
        }
    }
}

fn write<'a>(
    database: &Connection,
    commands: impl Iterator<Item = (&'a Key, Remembered)>,
) -> Result<(), Problem> {
    let mut insert = database.prepare(
        "INSERT OR REPLACE INTO command VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)",
    )?;
    for (key, command) in commands {
        let numbers = key.numbers();
        let runs = serde_json::to_string(&command.runs).unwrap_or_default();
        let learnt = command.learnt.as_deref();
        let learnt = learnt.and_then(|learnt| serde_json::to_string(learnt).ok());
        insert.execute(params![
            numbers.exact,
            numbers.line,
            numbers.program,
            cut(&key.machine),
            cut(&key.program),
            cut(&key.command),
            cut(&key.folder),
            cut(&key.identity),
            command.seen.min(MOST_NUMBER),
            command.ends,
            command.failures,
            cut(&command.last_exit),
            runs,
            learnt,
        ])?;
    }
    Ok(())
}

/// Forgets a tenth of `most` and what is beyond, once there are more commands than `most`.
fn delete_oldest(database: &Connection, most: u64) -> Result<(), Problem> {
    let count: u64 = database.query_row("SELECT count(*) FROM command", [], |row| row.get(0))?;
    if count > most {
        database.execute(
            "DELETE FROM command WHERE exact IN (SELECT exact FROM command ORDER BY seen, exact LIMIT ?1)",
            [count - most + most / 10],
        )?;
    }
    Ok(())
}
