//! `--data-dir`: a cluster that is still there after a restart, or after the process was killed.
//!
//! One file holds it all, in a store of its own that survives a crash at any moment (redb). The API server keeps its
//! objects in memory as always; a thread of ours writes what happened, as much as came together while it wrote the
//! last time, so that many writers share one wait for the disk. A request is answered when what it wrote is safe.
//!
//! Beside the objects the file holds what makes a kubeconfig valid (see [`Data::keep`]).

mod writer;

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use futures::future::BoxFuture;
use jiff::Timestamp;
use kruise_apiserver::clock::Clock;
use kruise_apiserver::store::{Event, EventKind, Journal, Saved};
use redb::{
    Database, DatabaseError, ReadableDatabase as _, ReadableTable as _, StorageError, TableDefinition,
};

use writer::Writer;

/// Table, namespace and name of an object, and its JSON.
const OBJECTS: TableDefinition<'static, (&str, &str, &str), &[u8]> = TableDefinition::new("objects");
/// What the file is and how far it goes.
const ABOUT: TableDefinition<'static, &str, &str> = TableDefinition::new("about");
/// What identifies the cluster to its users.
const KEPT: TableDefinition<'static, &str, &[u8]> = TableDefinition::new("kept");

const FILE: &str = "cluster.redb";
/// Changes with every change of what the tables mean.
const FORMAT: &str = "1";
/// How much of the file redb keeps in memory: the objects are there already.
const CACHE: usize = 16 << 20;

/// Why a data folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Another process has it.
    #[error("the data folder {} is in use by another process; end that one, or name another folder with --data-dir", folder.display())]
    InUse {
        /// The folder.
        folder: PathBuf,
    },
    /// Another build wrote it.
    #[error(
        "the data folder {} has format {found}, and this build reads format {FORMAT}; start the build that wrote it, \
         or name an empty folder with --data-dir",
        folder.display()
    )]
    Format {
        /// The folder.
        folder: PathBuf,
        /// Its format.
        found: String,
    },
    /// Not ours, or damaged by somebody else.
    #[error(
        "{} is no data of a local cluster, or is damaged; name an empty folder with --data-dir", file.display()
    )]
    NotOurs {
        /// The file.
        file: PathBuf,
        /// What redb says.
        #[source]
        source: Box<redb::Error>,
    },
    /// The system does not let us.
    #[error("cannot use the data folder {}; name another with --data-dir", folder.display())]
    Folder {
        /// The folder.
        folder: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file cannot be read or written.
    #[error("cannot keep data in {}", file.display())]
    Storage {
        /// The file.
        file: PathBuf,
        /// Why.
        #[source]
        source: Box<redb::Error>,
    },
}

/// An open data folder.
#[derive(Debug)]
pub struct Data {
    file: PathBuf,
    database: Arc<Database>,
    saved: Mutex<Saved>,
    version: u64,
    time: Option<Timestamp>,
    writer: Writer,
}

impl Data {
    /// Opens a folder, or makes one. Nobody else can open it until [`Self::close`] or the end of the process.
    pub fn open(folder: &Path) -> Result<Self, Error> {
        let in_folder = |source| Error::Folder { folder: folder.to_owned(), source };
        fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(in_folder)?;
        let file = folder.join(FILE);
        let mut options = fs::OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(0o600);
        let opened = options.open(&file).map_err(in_folder)?;
        let database = Database::builder().set_cache_size(CACHE).create_file(opened);
        let database = database.map_err(|error| match error {
            DatabaseError::DatabaseAlreadyOpen => Error::InUse { folder: folder.to_owned() },
            DatabaseError::UpgradeRequired(found) => {
                Error::Format { folder: folder.to_owned(), found: format!("redb {found}") }
            }
            DatabaseError::Storage(StorageError::Io(source))
                if source.kind() != io::ErrorKind::InvalidData =>
            {
                Error::Folder { folder: folder.to_owned(), source }
            }
            other => Error::NotOurs { file: file.clone(), source: Box::new(other.into()) },
        })?;
        let broken = |source: redb::Error| Error::Storage { file: file.clone(), source: Box::new(source) };
        let begun = begin(&database).map_err(broken)?;
        if begun.format != FORMAT {
            return Err(Error::Format { folder: folder.to_owned(), found: begun.format });
        }
        let objects = read(&database).map_err(broken)?;
        let database = Arc::new(database);
        // Versions that were told but not yet safe when the last process ended are not used again.
        let version = if begun.version == 0 { 0 } else { begun.version + writer::MOST_UNSAFE };
        let writer = Writer::start(database.clone(), version).map_err(in_folder)?;
        let saved = Mutex::new(Saved { version, objects });
        Ok(Self { file, database, saved, version, time: begun.time, writer })
    }

    /// The version that the cluster goes on from; 0 for a new one.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// The cluster's time when something was last kept.
    pub fn time(&self) -> Option<Timestamp> {
        self.time
    }

    /// From now on the cluster's time is kept too.
    pub fn follow(&self, clock: Clock) {
        self.writer.follow(clock);
    }

    /// What is kept under a name.
    pub fn kept(&self, name: &str) -> Result<Option<Vec<u8>>, Error> {
        let read = || -> Result<Option<Vec<u8>>, redb::Error> {
            let table = self.database.begin_read()?.open_table(KEPT)?;
            Ok(table.get(name)?.map(|value| value.value().to_vec()))
        };
        read().map_err(|source| self.broken(source))
    }

    /// Keeps what makes up the identity of the cluster: keys, certificates, tokens. It is safe when this returns.
    pub fn keep(&self, all: &[(&str, Vec<u8>)]) -> Result<(), Error> {
        let write = || -> Result<(), redb::Error> {
            let write = self.database.begin_write()?;
            {
                let mut table = write.open_table(KEPT)?;
                for (name, value) in all {
                    table.insert(name, value.as_slice())?;
                }
            }
            write.commit()?;
            Ok(())
        };
        write().map_err(|source| self.broken(source))
    }

    /// Waits until keeping fails, which it should not, and says why.
    pub async fn failed(&self) -> String {
        self.writer.failed().await
    }

    /// Writes what is left. What happens later is not kept.
    pub fn close(&self) {
        self.writer.close();
    }

    fn broken(&self, source: redb::Error) -> Error {
        Error::Storage { file: self.file.clone(), source: Box::new(source) }
    }
}

impl Journal for Data {
    fn saved(&self) -> Saved {
        std::mem::take(&mut *self.saved.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn note(&self, table: &str, event: &Event) {
        let now = (event.kind != EventKind::Deleted).then(|| event.new.clone());
        self.writer.note(table, &event.new, now);
    }

    fn safe(&self, version: u64) -> BoxFuture<'_, Result<(), String>> {
        Box::pin(self.writer.safe(version))
    }
}

struct Begun {
    format: String,
    version: u64,
    time: Option<Timestamp>,
}

/// Reads what the file is; makes a new one ours.
fn begin(database: &Database) -> Result<Begun, redb::Error> {
    let write = database.begin_write()?;
    let begun = {
        let mut about = write.open_table(ABOUT)?;
        let text =
            |about: &redb::Table<'_, &'static str, &'static str>, key: &str| -> Result<_, redb::Error> {
                Ok(about.get(key)?.map(|value| value.value().to_owned()))
            };
        let format = text(&about, "format")?;
        let version = text(&about, "version")?.and_then(|version| version.parse().ok()).unwrap_or(0);
        let time = text(&about, "time")?.and_then(|time| time.parse().ok());
        if format.is_none() {
            about.insert("format", FORMAT)?;
        }
        write.open_table(OBJECTS)?;
        write.open_table(KEPT)?;
        Begun { format: format.unwrap_or_else(|| FORMAT.to_owned()), version, time }
    };
    if begun.format == FORMAT {
        write.commit()?;
    }
    Ok(begun)
}

fn read(database: &Database) -> Result<Vec<(String, Bytes)>, redb::Error> {
    let table = database.begin_read()?.open_table(OBJECTS)?;
    let mut objects = Vec::new();
    for entry in table.iter()? {
        let (key, value) = entry?;
        objects.push((key.value().0.to_owned(), Bytes::copy_from_slice(value.value())));
    }
    Ok(objects)
}

#[cfg(test)]
mod tests;
