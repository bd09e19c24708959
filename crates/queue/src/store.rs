//! The database: a row for each job.
//!
//! It has a write-ahead log, and what is committed survives a loss of power. Only the service opens it, so it needs no
//! shared memory, which file systems over a network do not have.

use crate::error::{QueueError, database_text, unusable};
use crate::job::QueuedJob;
use rusqlite::{Connection, OpenFlags, OptionalExtension as _, Params, Row, params};
use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// `cosq`: SQLite keeps this number to tell whose file it is.
const APPLICATION: i64 = 0x636f_7371;

/// The version of the tables.
const FORMAT: i64 = 2;

/// `name` is random: no other database has it. `common` and `line` are what the client submitted; `job` is a [`QueuedJob`] as
/// JSON. The request lasts as long as its jobs.
const TABLES: &str = "
    CREATE TABLE identity (name TEXT NOT NULL) STRICT;
    INSERT INTO identity VALUES (lower(hex(randomblob(8))));
    CREATE TABLE request (
        id INTEGER PRIMARY KEY,
        token TEXT UNIQUE,
        common TEXT NOT NULL
    ) STRICT;
    CREATE TABLE job (
        id INTEGER PRIMARY KEY,
        request INTEGER NOT NULL REFERENCES request,
        is_over INTEGER NOT NULL,
        line TEXT NOT NULL,
        job TEXT NOT NULL
    ) STRICT;
    CREATE INDEX live ON job (id) WHERE NOT is_over;
    CREATE INDEX of_request ON job (request);
";

/// An open database.
#[derive(Debug)]
pub(crate) struct QueueStore {
    database: Connection,
    path: PathBuf,
    /// Device and inode of its file.
    file: (u64, u64),
    /// Its name, which no other database has.
    pub(crate) name: String,
}

impl QueueStore {
    /// Opens the database; makes it if there is no file.
    ///
    /// # Errors
    /// It can't be used.
    pub(crate) fn open(path: &Path) -> Result<QueueStore, QueueError> {
        let path = canonical(path);
        let wrong = |why| QueueError::Database {
            path: path.clone(),
            why,
        };
        if is_missing(&path)? {
            let log = path.with_extension("db-wal");
            if log.metadata().is_ok_and(|log| log.len() > 0) {
                return Err(wrong(unusable(
                    &path,
                    "it is missing, and its log queue.db-wal, which has the last jobs, is there",
                )));
            }
            make(&path)?;
        }
        let file = path
            .metadata()
            .map_err(|error| QueueError::at(&path, error))?;
        if file.len() == 0 {
            return Err(wrong(unusable(&path, "it is empty")));
        }
        match QueueStore::opened(&path) {
            Ok(Some(store)) => Ok(store),
            Ok(None) => Err(wrong(unusable(
                &path,
                "another program or version wrote it",
            ))),
            Err(error) => Err(wrong(database_text(&path, &error))),
        }
    }

    fn opened(path: &Path) -> rusqlite::Result<Option<QueueStore>> {
        let database = Connection::open_with_flags(path, FLAGS)?;
        database.pragma_update(None, "locking_mode", "EXCLUSIVE")?;
        database.pragma_update(None, "journal_mode", "WAL")?;
        database.pragma_update(None, "synchronous", "FULL")?;
        let number = |pragma| database.pragma_query_value(None, pragma, |row| row.get(0));
        let (application, format): (i64, i64) =
            (number("application_id")?, number("user_version")?);
        if (application, format) != (APPLICATION, FORMAT) {
            return Ok(None);
        }
        let name = database.query_row("SELECT name FROM identity", [], |row| row.get(0))?;
        Ok(Some(QueueStore {
            database,
            file: file_id(path).unwrap_or_default(),
            path: path.to_owned(),
            name,
        }))
    }

    fn text(&self, error: &rusqlite::Error) -> String {
        let why = database_text(&self.path, error);
        format!("{}: {why}", self.path.display())
    }

    /// Adds the jobs of a request with their lines, all or none, and gives them their numbers.
    ///
    /// # Errors
    /// What is wrong, and what to do.
    pub(crate) fn add(
        &self,
        token: Option<&str>,
        common: &str,
        jobs: &mut [(QueuedJob, String)],
    ) -> Result<(), String> {
        // SQLite would go on writing into the file that has no name any more.
        if file_id(&self.path) != Some(self.file) {
            return Err(format!(
                "{}: somebody moved or removed it while the service had it open; stop the service and start it again",
                self.path.display()
            ));
        }
        let added = self.add_all(token, common, jobs);
        added.map_err(|error| self.text(&error))
    }

    fn add_all(
        &self,
        token: Option<&str>,
        common: &str,
        jobs: &mut [(QueuedJob, String)],
    ) -> rusqlite::Result<()> {
        let change = self.database.unchecked_transaction()?;
        let sql = "INSERT INTO request (token, common) VALUES (?1, ?2)";
        change.execute(sql, params![token, common])?;
        let request = change.last_insert_rowid();
        let sql = "SELECT coalesce(max(id), 0) FROM job";
        let last: u64 = change.query_row(sql, [], |row| row.get(0))?;
        let mut insert = change.prepare("INSERT INTO job VALUES (?1, ?2, 0, ?3, ?4)")?;
        for (id, (job, line)) in (last + 1..).zip(jobs) {
            job.id = id;
            insert.execute(params![id, request, &*line, json(job)])?;
        }
        drop(insert);
        change.commit()
    }

    /// The jobs that a request with this token has added; `None` if there was no such request.
    ///
    /// # Errors
    /// What is wrong, and what to do.
    pub(crate) fn added(&self, token: &str) -> Result<Option<Vec<u64>>, String> {
        let added = self.added_by(token);
        added.map_err(|error| self.text(&error))
    }

    fn added_by(&self, token: &str) -> rusqlite::Result<Option<Vec<u64>>> {
        let sql = "SELECT id FROM request WHERE token = ?1";
        let request = self.database.query_row(sql, [token], |row| row.get(0));
        let request: Option<i64> = request.optional()?;
        let Some(request) = request else {
            return Ok(None);
        };
        let sql = "SELECT id FROM job WHERE request = ?1 ORDER BY id";
        let mut query = self.database.prepare(sql)?;
        let ids = query.query_map([request], |row| row.get(0))?;
        ids.collect::<rusqlite::Result<_>>().map(Some)
    }

    /// Writes what became of a job.
    ///
    /// # Errors
    /// What is wrong, and what to do.
    pub(crate) fn update(&self, job: &QueuedJob) -> Result<(), String> {
        let sql = "UPDATE job SET is_over = ?2, job = ?3 WHERE id = ?1";
        let row = params![job.id, job.state.is_over(), json(job)];
        let changed = self.database.execute(sql, row);
        changed.map(drop).map_err(|error| self.text(&error))
    }

    /// What its request says of all its jobs, and the line of a job.
    ///
    /// # Errors
    /// What is wrong, and what to do.
    pub(crate) fn lines(&self, id: u64) -> Result<(String, String), String> {
        let sql =
            "SELECT common, line FROM job JOIN request ON request.id = request WHERE job.id = ?1";
        let both = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?));
        let lines = self.database.query_row(sql, [id], both);
        lines.map_err(|error| self.text(&error))
    }

    /// A job; `None` if there is no such number.
    ///
    /// # Errors
    /// What is wrong, and what to do.
    pub(crate) fn job(&self, id: u64) -> Result<Option<QueuedJob>, String> {
        let sql = "SELECT job FROM job WHERE id = ?1";
        let found = self.database.query_row(sql, [id], parsed).optional();
        found.map_err(|error| self.text(&error))
    }

    /// The jobs that are not over, in the order of their numbers.
    ///
    /// # Errors
    /// What is wrong, and what to do.
    pub(crate) fn live(&self) -> Result<Vec<QueuedJob>, String> {
        self.jobs("SELECT job FROM job WHERE NOT is_over ORDER BY id", [])
    }

    /// All jobs, in the order of their numbers.
    ///
    /// # Errors
    /// What is wrong, and what to do.
    pub(crate) fn all(&self) -> Result<Vec<QueuedJob>, String> {
        self.jobs("SELECT job FROM job ORDER BY id", [])
    }

    /// The jobs that ended before a moment, in seconds since 1970. The newest job is never among them: it keeps its number
    /// from being used again.
    ///
    /// # Errors
    /// What is wrong, and what to do.
    pub(crate) fn ended_before(&self, at: f64) -> Result<Vec<QueuedJob>, String> {
        let sql = "SELECT job FROM job WHERE is_over AND job ->> 'ended_at' < ?1
            AND id < (SELECT max(id) FROM job)";
        self.jobs(sql, [at])
    }

    /// Forgets a job, and its request with the last one.
    ///
    /// # Errors
    /// What is wrong, and what to do.
    pub(crate) fn forget(&self, id: u64) -> Result<(), String> {
        let deleted = self.forget_both(id);
        deleted.map_err(|error| self.text(&error))
    }

    fn forget_both(&self, id: u64) -> rusqlite::Result<()> {
        let change = self.database.unchecked_transaction()?;
        let sql = "DELETE FROM job WHERE id = ?1 RETURNING request";
        let request: i64 = change.query_row(sql, [id], |row| row.get(0))?;
        let sql = "DELETE FROM request WHERE id = ?1
            AND NOT EXISTS (SELECT 1 FROM job WHERE request = ?1)";
        change.execute(sql, [request])?;
        change.commit()
    }

    fn jobs(&self, sql: &str, params: impl Params) -> Result<Vec<QueuedJob>, String> {
        let query = self.database.prepare(sql);
        let jobs = query.and_then(|mut query| query.query_map(params, parsed)?.collect());
        jobs.map_err(|error| self.text(&error))
    }
}

const FLAGS: OpenFlags = OpenFlags::SQLITE_OPEN_READ_WRITE
    .union(OpenFlags::SQLITE_OPEN_NO_MUTEX)
    .union(OpenFlags::SQLITE_OPEN_NOFOLLOW);

fn is_missing(path: &Path) -> Result<bool, QueueError> {
    match path.symlink_metadata() {
        Ok(_) => Ok(false),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(true),
        Err(error) => Err(QueueError::at(path, error)),
    }
}

/// Makes a database. It gets its name when it is whole: a killed service leaves no empty one.
fn make(path: &Path) -> Result<(), QueueError> {
    let unfinished = path.with_extension("new");
    // What was left by a killed service. The log of a database that was moved away would change the new one.
    for left in ["new", "new-journal", "db-wal"] {
        let left = path.with_extension(left);
        match std::fs::remove_file(&left) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(QueueError::at(&left, error));
            }
            _ => {}
        }
    }
    fill(&unfinished).map_err(|error| QueueError::Database {
        path: unfinished.clone(),
        why: database_text(path, &error),
    })?;
    let renamed = std::fs::rename(&unfinished, path).and_then(|()| {
        let folder = path.parent().unwrap_or(path);
        File::open(folder)?.sync_all()
    });
    renamed.map_err(|error| QueueError::at(path, error))
}

/// Makes the tables of a database.
fn fill(path: &Path) -> rusqlite::Result<()> {
    let flags = FLAGS | OpenFlags::SQLITE_OPEN_CREATE;
    let database = Connection::open_with_flags(path, flags)?;
    database.pragma_update(None, "synchronous", "FULL")?;
    let change = database.unchecked_transaction()?;
    change.execute_batch(TABLES)?;
    change.pragma_update(None, "application_id", APPLICATION)?;
    change.pragma_update(None, "user_version", FORMAT)?;
    change.commit()
}

/// Device and inode of a file.
fn file_id(path: &Path) -> Option<(u64, u64)> {
    let file = path.metadata().ok()?;
    Some((file.dev(), file.ino()))
}

/// A path without links in its folder: SQLite follows none.
fn canonical(path: &Path) -> PathBuf {
    let folder = path.parent().and_then(|folder| folder.canonicalize().ok());
    match (folder, path.file_name()) {
        (Some(folder), Some(name)) => folder.join(name),
        _ => path.to_owned(),
    }
}

fn json(job: &QueuedJob) -> String {
    // Plain data: it can't fail to serialise, as long as the paths of the folder are UTF-8.
    serde_json::to_string(job).unwrap_or_default()
}

fn parsed(row: &Row<'_>) -> rusqlite::Result<QueuedJob> {
    let text: String = row.get(0)?;
    serde_json::from_str(&text).map_err(|error| {
        rusqlite::Error::FromSqlConversionFailure(0, rusqlite::types::Type::Text, error.into())
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::job::QueuedJobState;
    use crate::job::tests::job;

    impl QueueStore {
        /// Pretends that the disk is full, or has room again.
        pub(crate) fn fill_disk(&self, is_full: bool) {
            let pages: i64 = self
                .database
                .pragma_query_value(None, "page_count", |row| row.get(0))
                .unwrap();
            let most = if is_full { pages } else { 1 << 30 };
            let set = format!("PRAGMA max_page_count = {most}");
            self.database.query_row(&set, [], |_| Ok(())).unwrap();
        }
    }

    #[test]
    fn jobs_are_kept() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("queue.db");
        let store = QueueStore::open(&path).unwrap();
        let mut jobs = [(job(0), "a".to_owned()), (job(0), "b".to_owned())];
        store.add(Some("t"), "c", &mut jobs).unwrap();
        let [(first, _), (second, _)] = jobs;
        assert_eq!((first.id, second.id), (1, 2));
        let over = QueuedJob {
            state: QueuedJobState::Ended,
            ..first
        };
        store.update(&over).unwrap();
        drop(store);
        let store = QueueStore::open(&path).unwrap();
        assert_eq!(store.live().unwrap(), [second]);
        assert_eq!(store.all().unwrap().len(), 2);
        assert_eq!(store.job(1).unwrap(), Some(over));
        assert_eq!(store.job(3).unwrap(), None);
        assert_eq!(store.lines(2).unwrap(), ("c".to_owned(), "b".to_owned()));
        store.forget(1).unwrap();
        assert_eq!(store.added("t").unwrap(), Some(vec![2]));
        store.forget(2).unwrap();
        assert_eq!(store.added("t").unwrap(), None);
    }

    #[test]
    fn a_full_disk_is_told_and_adds_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let store = QueueStore::open(&dir.path().join("queue.db")).unwrap();
        store.fill_disk(true);
        let long = "x".repeat(1 << 16);
        let why = store
            .add(None, "", &mut [(job(0), long.clone())])
            .unwrap_err();
        assert!(why.contains("the disk is full"), "{why}");
        assert!(store.all().unwrap().is_empty());
        store.fill_disk(false);
        store.add(None, "", &mut [(job(0), long)]).unwrap();
    }

    #[test]
    fn a_file_that_was_removed_takes_no_jobs() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("queue.db");
        let store = QueueStore::open(&path).unwrap();
        let mut jobs = [(job(0), "a".to_owned())];
        store.add(None, "{}", &mut jobs).unwrap();
        std::fs::remove_file(&path).unwrap();
        let why = store.add(None, "{}", &mut jobs).unwrap_err();
        assert!(why.contains("moved or removed"), "{why}");
        let log = QueueStore::open(&path).unwrap_err().to_string();
        assert!(
            log.contains("queue.db-wal") && log.contains(" && mv "),
            "{log}"
        );
    }

    #[test]
    fn foreign_files_are_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("queue.db");
        std::fs::write(&path, "x".repeat(5_000)).unwrap();
        let why = QueueStore::open(&path).unwrap_err().to_string();
        assert!(why.contains("it is damaged"), "{why}");
        std::fs::write(&path, "").unwrap();
        let why = QueueStore::open(&path).unwrap_err().to_string();
        assert!(why.contains("it is empty"), "{why}");
        std::fs::remove_file(&path).unwrap();
        let other = Connection::open(&path).unwrap();
        other.execute_batch("CREATE TABLE t (a)").unwrap();
        drop(other);
        let why = QueueStore::open(&path).unwrap_err().to_string();
        assert!(why.contains("another program"), "{why}");
    }
}
