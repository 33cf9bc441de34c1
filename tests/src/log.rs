//! The log of one process: a file that survives its restarts, and is shown when a test fails.

use std::{
    fs::File,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};

/// Enough to see what led to the failure, without burying the failure itself.
const TAIL_LINES: usize = 40;

/// The file that a process appends its output to.
///
/// Dropped while a test panics, it prints its last lines.
#[derive(Debug)]
pub struct Log {
    name: String,
    path: PathBuf,
}

impl Log {
    /// A log for the process called `name`, in `folder`.
    pub fn new(name: &str, folder: &Path) -> Self {
        Self { name: name.to_owned(), path: folder.join(format!("{name}.log")) }
    }

    /// The name of the process.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The file, open for appending.
    pub fn open(&self) -> Result<File> {
        File::options()
            .create(true)
            .append(true)
            .open(&self.path)
            .with_context(|| format!("cannot open {}", self.path.display()))
    }

    /// How long it is now: a mark for [`Log::text_after`].
    pub fn mark(&self) -> u64 {
        std::fs::metadata(&self.path).map_or(0, |metadata| metadata.len())
    }

    /// All that the process has written.
    pub fn text(&self) -> String {
        self.text_after(0)
    }

    /// What the process has written after a mark.
    pub fn text_after(&self, mark: u64) -> String {
        let bytes = std::fs::read(&self.path).unwrap_or_default();
        let start = usize::try_from(mark).unwrap_or(usize::MAX).min(bytes.len());
        String::from_utf8_lossy(&bytes[start..]).into_owned()
    }

    /// The last lines, with a headline, as part of an error.
    pub fn tail(&self) -> String {
        let text = self.text();
        let lines: Vec<&str> = text.lines().collect();
        let lines = &lines[lines.len().saturating_sub(TAIL_LINES)..];
        format!("--- the last lines of {}'s log ---\n{}\n---", self.name, lines.join("\n"))
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}", self.tail());
        }
    }
}
