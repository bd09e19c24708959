//! The file: an SQLite database with a row for each command.
//!
//! It uses a rollback journal and no write-ahead log. A write-ahead log needs shared memory, which file systems over a
//! network do not have, and home folders are often on these. A transaction is short: a run reads once before it begins,
//! and writes every half a minute and at its end.

use crate::error::{HistoryError, HistoryProblem};
use crate::key::{CommandKey, Numbers};
use crate::past::Past;
use crate::remembered::{
    RecalledCommand, RememberedCommand, RememberedEnd, RememberedRun, expected,
};
use cosched_core::{EarlierPhases, Expected, ExpectedFrom, RateAt};
use rusqlite::{
    Connection, OpenFlags, OptionalExtension as _, Row, Statement, Transaction,
    TransactionBehavior, params,
};
use rustix::process::geteuid;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs::{DirBuilder, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Maximum number of commands kept. When there are more, the tenth of them goes that was not seen for longest.
const MOST_COMMANDS: u64 = 20_000;

/// Maximum number of commands of a program from whose runs the time of another one is expected.
const MOST_ALIKE: usize = 64;

/// `cosc`: SQLite keeps this number to tell whose file it is.
const APPLICATION: i64 = 0x636f_7363;

/// The version of the tables.
const FORMAT: i64 = 2;

/// `known` is a [`RememberedCommand`] as JSON; the numbers before it are those by which it is found.
const TABLES: &str = "
    CREATE TABLE command (
        exact INTEGER PRIMARY KEY,
        line INTEGER NOT NULL,
        program INTEGER NOT NULL,
        seen INTEGER NOT NULL,
        known TEXT NOT NULL
    ) STRICT;
    CREATE INDEX by_line ON command (line, seen);
    CREATE INDEX by_program ON command (program, seen);
    CREATE INDEX by_seen ON command (seen);
";

/// How long to wait while others use the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockPatience {
    /// Not at all, and what is written need not survive a loss of power: jobs run meanwhile, and wait for decisions. So
    /// nothing is computed of who disturbs whom.
    None,
    /// A few seconds, until it is on the disk.
    Some,
}

/// What is to be forgotten.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Forget {
    /// Everything.
    All,
    /// Commands, programs and folders that contain this text.
    Matching(String),
    /// Commands that were last seen before this, in milliseconds since 1970.
    OlderThan(u64),
}

/// An open store.
#[derive(Debug)]
pub struct HistoryStore {
    database: Connection,
    path: PathBuf,
    patience: LockPatience,
}

impl HistoryStore {
    /// Opens a store that is there; `None` if there is none. Nothing is made or changed, unless a write was interrupted
    /// before: that is then undone.
    ///
    /// # Errors
    /// It can't be read, and why.
    pub fn open_existing(
        path: &Path,
        patience: LockPatience,
    ) -> Result<Option<HistoryStore>, HistoryError> {
        check_owner(path).map_err(|problem| problem.at(path))?;
        match path.symlink_metadata() {
            Err(error)
                if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) =>
            {
                return Ok(None);
            }
            Err(error) => return Err(HistoryProblem::from(error).at(path)),
            Ok(_) => {}
        }
        let store = HistoryStore::connect(path, patience).map_err(|problem| problem.at(path))?;
        let is_empty = store.is_empty().map_err(|problem| problem.at(path))?;
        Ok((!is_empty).then_some(store))
    }

    /// Opens a store, and makes it if there is none, for its owner alone. The folder that it is in is made as well, but
    /// for its parents only those of a data folder (`.local/share`).
    ///
    /// # Errors
    /// It can't be read or made, and why.
    pub fn open(path: &Path, patience: LockPatience) -> Result<HistoryStore, HistoryError> {
        HistoryStore::opened(path, patience).map_err(|problem| problem.at(path))
    }

    fn opened(path: &Path, patience: LockPatience) -> Result<HistoryStore, HistoryProblem> {
        check_owner(path)?;
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
        let mut store = HistoryStore::connect(path, patience)?;
        store.make_tables()?;
        Ok(store)
    }

    fn connect(path: &Path, patience: LockPatience) -> Result<HistoryStore, HistoryProblem> {
        let found = path.symlink_metadata()?;
        if !found.is_file() {
            return Err(HistoryProblem::Unsafe(
                "it is not a regular file".to_owned(),
            ));
        }
        if found.uid() != geteuid().as_raw() {
            return Err(HistoryProblem::Unsafe(format!(
                "it belongs to another user (number {})",
                found.uid()
            )));
        }
        if found.mode() & 0o022 != 0 {
            return Err(HistoryProblem::Unsafe(format!(
                "others may write to it (mode {:o})",
                found.mode() & 0o7777
            )));
        }
        // Links in the folder's name are the user's own business. The caller checks whether others could change it.
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
            LockPatience::None => (Duration::ZERO, "OFF"),
            LockPatience::Some => (Duration::from_secs(3), "NORMAL"),
        };
        database.busy_timeout(wait)?;
        database.pragma_update(None, "synchronous", synchronous)?;
        // What is forgotten is not to be found in the file.
        database.pragma_update(None, "secure_delete", "ON")?;
        database.pragma_update(None, "trusted_schema", "OFF")?;
        let store = HistoryStore {
            database,
            path: path.to_owned(),
            patience,
        };
        if !store.is_empty()? {
            if store.number("application_id")? != APPLICATION {
                return Err(HistoryProblem::Foreign);
            }
            let format = store.number("user_version")?;
            if format != FORMAT {
                return Err(HistoryProblem::Format(format, FORMAT));
            }
        }
        Ok(store)
    }

    /// Whether nothing was ever written to it.
    fn is_empty(&self) -> Result<bool, HistoryProblem> {
        Ok(self.number("page_count")? == 0)
    }

    fn number(&self, pragma: &str) -> Result<i64, HistoryProblem> {
        Ok(self
            .database
            .pragma_query_value(None, pragma, |row| row.get(0))?)
    }

    fn make_tables(&mut self) -> Result<(), HistoryProblem> {
        if !self.is_empty()? {
            return Ok(());
        }
        let change = self.begin_change()?;
        // Another run may have been faster.
        let format: i64 = change.pragma_query_value(None, "user_version", |row| row.get(0))?;
        if format == 0 {
            change.pragma_update(None, "application_id", APPLICATION)?;
            change.pragma_update(None, "user_version", FORMAT)?;
            change.execute_batch(TABLES)?;
        }
        Ok(change.commit()?)
    }

    fn begin_change(&mut self) -> Result<Transaction<'_>, HistoryProblem> {
        Ok(self
            .database
            .transaction_with_behavior(TransactionBehavior::Immediate)?)
    }

    fn at(&self, problem: impl Into<HistoryProblem>) -> HistoryError {
        problem.into().at(&self.path)
    }

    /// Looks up these commands. The time is expected after a command's own runs; else after those of the same command
    /// with another program file or in another folder; else after those of other commands with its program.
    ///
    /// # Errors
    /// The store can't be read.
    pub fn recall(
        &self,
        keys: &[Option<CommandKey>],
    ) -> Result<Vec<RecalledCommand>, HistoryError> {
        self.recall_all(keys).map_err(|problem| self.at(problem))
    }

    fn recall_all(
        &self,
        keys: &[Option<CommandKey>],
    ) -> Result<Vec<RecalledCommand>, HistoryProblem> {
        // One transaction, so that the file is locked once and all commands are read as of one moment.
        let _moment = self.database.unchecked_transaction()?;
        let mut lookup = Lookup::new(&self.database)?;
        let mut found = Vec::with_capacity(keys.len());
        let commands = keys.iter().map(|key| key.as_ref().map(CommandKey::numbers));
        let commands: Vec<Option<Numbers>> = commands.collect();
        for command in &commands {
            found.push(match command {
                Some(numbers) => lookup.recall(*numbers)?,
                None => RecalledCommand::default(),
            });
        }
        if self.patience == LockPatience::Some {
            lookup.past.tell(&commands, &mut found);
        }
        Ok(found)
    }

    /// Notes how commands ended, all or none of them.
    ///
    /// # Errors
    /// The store can't be written to. With [`LockPatience::None`] that is [`HistoryProblem::Busy`] while another run writes.
    pub fn note(&mut self, ends: &[RememberedEnd]) -> Result<(), HistoryError> {
        self.note_all(ends)
            .map_err(|problem| problem.at(&self.path))
    }

    /// The rates of ends with different numbers of jobs of a template at once; none if they can't be read.
    pub fn rates(&self, template: &CommandKey) -> Vec<RateAt> {
        let found = of_number(&self.database, template.numbers().exact);
        found.ok().flatten().map_or(Vec::new(), |known| known.rates)
    }

    /// Notes such rates in place of those that were known.
    ///
    /// # Errors
    /// As [`HistoryStore::note`].
    pub fn note_rates(
        &mut self,
        template: &CommandKey,
        rates: &[RateAt],
        at: u64,
    ) -> Result<(), HistoryError> {
        let numbers = template.numbers();
        let written = of_number(&self.database, numbers.exact).and_then(|known| {
            let mut known = known.unwrap_or_else(|| RememberedCommand::new(template));
            known.rates = rates.to_vec();
            known.seen = at;
            write(&self.database, [(numbers, known)].into_iter())
        });
        written.map_err(|problem| self.at(problem))
    }

    fn note_all(&mut self, ends: &[RememberedEnd]) -> Result<(), HistoryProblem> {
        let change = self.begin_change()?;
        // A batch can be one short command many thousand times.
        let mut changed: BTreeMap<i64, (Numbers, RememberedCommand)> = BTreeMap::new();
        for end in ends {
            let numbers = end.key.numbers();
            let (_, command) = match changed.entry(numbers.exact) {
                Entry::Occupied(found) => found.into_mut(),
                Entry::Vacant(place) => {
                    let found = of_number(&change, numbers.exact)?;
                    place.insert((
                        numbers,
                        found.unwrap_or_else(|| RememberedCommand::new(&end.key)),
                    ))
                }
            };
            command.note(end);
        }
        write(&change, changed.into_values())?;
        delete_oldest(&change)?;
        Ok(change.commit()?)
    }

    /// Every command that contains this text, or all, the last seen first. Its program and its folder count as well.
    ///
    /// # Errors
    /// The store can't be read.
    pub fn list(&self, text: Option<&str>) -> Result<Vec<RememberedCommand>, HistoryError> {
        let all = self.all().map_err(|problem| self.at(problem))?;
        let mut commands: Vec<RememberedCommand> =
            all.into_iter().map(|(_, command)| command).collect();
        commands.retain(|command| text.is_none_or(|text| command.contains(text)));
        Ok(commands)
    }

    /// All commands, each with the number of its row, the last seen first.
    fn all(&self) -> Result<Vec<(i64, RememberedCommand)>, HistoryProblem> {
        let sql = "SELECT known, exact FROM command ORDER BY seen DESC, exact";
        let mut statement = self.database.prepare(sql)?;
        let mut rows = statement.query([])?;
        let mut all = Vec::new();
        while let Some(row) = rows.next()? {
            if let Some(known) = known(row) {
                all.push((row.get(1)?, known));
            }
        }
        Ok(all)
    }

    /// Forgets commands, and returns how many. They can't be found in the file any more.
    ///
    /// # Errors
    /// The store can't be written to.
    pub fn forget(&mut self, what: &Forget) -> Result<u64, HistoryError> {
        self.delete(what).map_err(|problem| problem.at(&self.path))
    }

    fn delete(&mut self, what: &Forget) -> Result<u64, HistoryProblem> {
        // Pages that became free are used again. To give them back would need room for a copy.
        let deleted = match what {
            Forget::All => self.database.execute("DELETE FROM command", [])?,
            Forget::OlderThan(seen) => {
                let sql = "DELETE FROM command WHERE seen < ?1";
                self.database.execute(sql, [seen])?
            }
            Forget::Matching(text) => {
                let change = self.database.unchecked_transaction()?;
                let mut deleted = 0;
                for (exact, _) in self.all()?.iter().filter(|(_, known)| known.contains(text)) {
                    deleted += change.execute("DELETE FROM command WHERE exact = ?1", [exact])?;
                }
                change.commit()?;
                deleted
            }
        };
        Ok(deleted as u64)
    }
}

/// The queries of a look-up.
struct Lookup<'a> {
    by_exact: Statement<'a>,
    by_line: Statement<'a>,
    by_program: Statement<'a>,
    /// Expectations by program, since a batch can have many commands of one program.
    programs: BTreeMap<i64, Option<Expected>>,
    past: Past,
}

impl<'a> Lookup<'a> {
    fn new(database: &'a Connection) -> Result<Lookup<'a>, HistoryProblem> {
        let query = "SELECT known FROM command WHERE";
        let order = "ORDER BY seen DESC";
        Ok(Lookup {
            by_exact: database.prepare(&format!("{query} exact = ?1"))?,
            by_line: database.prepare(&format!("{query} line = ?1 {order}"))?,
            by_program: database.prepare(&format!("{query} program = ?1 {order}"))?,
            programs: BTreeMap::new(),
            past: Past::default(),
        })
    }

    fn recall(&mut self, numbers: Numbers) -> Result<RecalledCommand, HistoryProblem> {
        if let Some(own) = successful(&mut self.by_exact, numbers.exact, 1)?.pop() {
            self.past.add(numbers, &own.runs);
            return Ok(RecalledCommand {
                expected: expected(&own.runs, ExpectedFrom::Same),
                learnt: own.learnt.map(Arc::new),
                interference: None,
            });
        }
        let same_line = successful(&mut self.by_line, numbers.line, 1)?.pop();
        let changed = same_line.and_then(|one| expected(&one.runs, ExpectedFrom::Changed));
        let expected = match changed {
            Some(changed) => Some(changed),
            None => self.expected_of_program(numbers.program)?,
        };
        Ok(RecalledCommand {
            expected,
            ..RecalledCommand::default()
        })
    }

    /// The time that other commands with this program took at last, one run each, so that no command counts for more than
    /// another.
    fn expected_of_program(&mut self, program: i64) -> Result<Option<Expected>, HistoryProblem> {
        if let Some(&expected) = self.programs.get(&program) {
            return Ok(expected);
        }
        let alike = successful(&mut self.by_program, program, MOST_ALIKE)?;
        let last: Vec<RememberedRun> = alike
            .iter()
            .map(|command| command.runs[0].clone())
            .collect();
        let expected = expected(&last, ExpectedFrom::Program);
        self.programs.insert(program, expected);
        Ok(expected)
    }
}

/// The first commands with this number of which some run succeeded.
fn successful(
    query: &mut Statement<'_>,
    number: i64,
    most: usize,
) -> Result<Vec<RememberedCommand>, HistoryProblem> {
    let mut rows = query.query([number])?;
    let mut found = Vec::new();
    while found.len() < most
        && let Some(row) = rows.next()?
    {
        found.extend(known(row).filter(|command| !command.runs.is_empty()));
    }
    Ok(found)
}

/// What is kept in the row with this number.
fn of_number(
    database: &Connection,
    number: i64,
) -> Result<Option<RememberedCommand>, HistoryProblem> {
    let sql = "SELECT known FROM command WHERE exact = ?1";
    let found = database.query_row(sql, [number], |row| Ok(known(row)));
    Ok(found.optional()?.flatten())
}

/// The first column of a row; `None` if it can't be read, so that one bad row does not hide the others.
fn known(row: &Row<'_>) -> Option<RememberedCommand> {
    let text: String = row.get(0).ok()?;
    let mut known: RememberedCommand = serde_json::from_str(&text).ok()?;
    known.learnt = known.learnt.filter(EarlierPhases::is_sound);
    Some(known)
}

fn write(
    database: &Connection,
    commands: impl Iterator<Item = (Numbers, RememberedCommand)>,
) -> Result<(), HistoryProblem> {
    let sql = "INSERT OR REPLACE INTO command VALUES (?1, ?2, ?3, ?4, ?5)";
    let mut insert = database.prepare(sql)?;
    for (numbers, command) in commands {
        let known = serde_json::to_string(&command).unwrap_or_default();
        let seen = i64::try_from(command.seen).unwrap_or(i64::MAX);
        insert.execute(params![
            numbers.exact,
            numbers.line,
            numbers.program,
            seen,
            known
        ])?;
    }
    Ok(())
}

/// Checks that root makes no file in the home folder of a user, who could not use it.
fn check_owner(path: &Path) -> Result<(), HistoryProblem> {
    let mut folders = path.ancestors().skip(1);
    let folder = folders.find_map(|folder| folder.metadata().ok());
    let owner = folder.map_or(0, |folder| folder.uid());
    if geteuid().is_root() && owner != 0 {
        let why = format!("its folder belongs to another user (number {owner})");
        return Err(HistoryProblem::Unsafe(why));
    }
    Ok(())
}

/// Deletes the oldest commands if there are too many.
fn delete_oldest(database: &Connection) -> Result<(), HistoryProblem> {
    let count: u64 = database.query_row("SELECT count(*) FROM command", [], |row| row.get(0))?;
    if count > MOST_COMMANDS {
        database.execute(
            "DELETE FROM command WHERE exact IN (SELECT exact FROM command ORDER BY seen, exact LIMIT ?1)",
            [count - MOST_COMMANDS + MOST_COMMANDS / 10],
        )?;
    }
    Ok(())
}
