//! Files that are whole after a power cut: the old contents, or the new ones.
//!
//! New contents are written beside the old ones, synced, and renamed; then the folder is synced, because a
//! rename lasts once that is.

use std::{
    ffi::OsString,
    fs::{self, File, OpenOptions},
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

/// Larger files are neither written nor read.
const MAX_BYTES: u64 = 1 << 30;

/// A file of which the contents before are kept too, in case the present ones turn out to be unusable.
#[derive(Debug, Clone)]
pub struct Kept {
    path: PathBuf,
}

/// What was found of a [`Kept`] file.
#[derive(Debug)]
pub struct Found<T, E> {
    /// The newest contents that can be used.
    pub contents: Option<T>,
    /// The files that cannot be used, and why.
    pub rejected: Vec<(PathBuf, E)>,
}

/// Replaces the contents of a file. Two file syncs and a rename.
///
/// # Errors
/// If the disk refuses; then the old contents are still there.
pub fn replace(path: &Path, contents: &[u8]) -> io::Result<()> {
    let temporary = write_beside(path, contents)?;
    fs::rename(temporary, path)?;
    sync_folder(path)
}

/// As [`replace`], for what only the owner of the process may read.
///
/// # Errors
/// If the disk refuses; then the old contents are still there.
pub fn replace_private(path: &Path, contents: &[u8]) -> io::Result<()> {
    let temporary = beside(path, ".tmp");
    // What a crash has left may be readable to others.
    match fs::remove_file(&temporary) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary)?;
    file.write_all(contents)?;
    file.sync_all()?;
    fs::rename(temporary, path)?;
    sync_folder(path)
}

impl Kept {
    /// The file at this path, and its companions beside it, whose names begin with its own.
    pub fn new(path: PathBuf) -> Self {
        Self { path }
    }

    /// The newest contents that `decode` accepts. What it refuses as damaged is set aside; what it refuses for
    /// another reason stays where it is.
    pub fn load<T, E: From<io::Error>>(
        &self,
        decode: impl Fn(&[u8]) -> Result<T, E>,
        is_damaged: impl Fn(&E) -> bool,
    ) -> Found<T, E> {
        let mut rejected = Vec::new();
        for path in [self.path.clone(), beside(&self.path, ".previous")] {
            let read = match read(&path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => Err(error.into()),
                Ok(contents) => decode(&contents),
            };
            match read {
                Ok(contents) => return Found { contents: Some(contents), rejected },
                Err(reason) => {
                    if is_damaged(&reason) {
                        // If it cannot even be renamed it will be met, and named, again.
                        let _ = fs::rename(&path, beside(&path, ".bad"));
                    }
                    rejected.push((path, reason));
                }
            }
        }
        Found { contents: None, rejected }
    }

    /// Sets the newest contents aside, usable or not, and returns where they were. There may be none.
    pub fn set_aside(&self) -> Option<PathBuf> {
        let newest =
            [self.path.clone(), beside(&self.path, ".previous")].into_iter().find(|path| path.exists())?;
        let _ = fs::rename(&newest, beside(&newest, ".bad"));
        Some(newest)
    }

    /// Replaces the contents, and keeps the present ones as those before. Two file syncs and two renames.
    ///
    /// # Errors
    /// If the disk refuses; then the last contents are still there.
    pub fn write(&self, contents: &[u8]) -> io::Result<()> {
        let temporary = write_beside(&self.path, contents)?;
        match fs::rename(&self.path, beside(&self.path, ".previous")) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        fs::rename(temporary, &self.path)?;
        sync_folder(&self.path)
    }
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    check(fs::metadata(path)?.len())?;
    fs::read(path)
}

fn check(bytes: u64) -> io::Result<()> {
    if bytes <= MAX_BYTES {
        return Ok(());
    }
    Err(io::Error::other(format!("it has {bytes} bytes, more than {MAX_BYTES}")))
}

fn write_beside(path: &Path, contents: &[u8]) -> io::Result<PathBuf> {
    check(contents.len() as u64)?;
    fs::create_dir_all(folder(path))?;
    let temporary = beside(path, ".tmp");
    let mut file = File::create(&temporary)?;
    file.write_all(contents)?;
    file.sync_all()?;
    Ok(temporary)
}

/// Makes it last that a file was made, renamed or removed.
///
/// # Errors
/// If the disk refuses.
pub fn sync_folder(path: &Path) -> io::Result<()> {
    File::open(folder(path))?.sync_all()
}

fn folder(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// A name is appended to, never replaced: there may be dots in it.
fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name: OsString = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contents_are_replaced_and_names_with_dots_are_kept_apart() {
        let folder = tempfile::tempdir().unwrap();
        let (one, other) = (folder.path().join("not/yet/there.a"), folder.path().join("not/yet/there.b"));
        replace(&one, b"1").unwrap();
        replace(&other, b"2").unwrap();
        replace(&one, b"3").unwrap();
        assert_eq!((fs::read(&one).unwrap(), fs::read(&other).unwrap()), (b"3".to_vec(), b"2".to_vec()));
        assert!(replace(&one.join("below a file"), b"").is_err());
    }
}
