//! The first token of an admin: made by Tower where the log knows no admin, and kept in its data folder, so that
//! whoever runs Tower can begin.
//!
//! The file is written first. Whatever happens then, a token that is in the log is in a file, and one that is
//! in a file and not in the log is taken at the next start. Of several Towers the log lets one win; the others
//! take their files away again.

use std::{
    io,
    path::{Path, PathBuf},
};

use tower_common::{clock, durable};
use tower_proto::v1::TokenIssued;

use super::token::Secret;
use crate::{
    api::ledger::{Caller, Ledger},
    registry::{
        Command,
        commands::IssueToken,
        permission::{Role, has_admin},
    },
};

/// The file, in the data folder.
const FILE: &str = "admin.token";

/// The name of the token.
const NAME: &str = "admin";

/// Why no first token could be made.
#[derive(Debug, thiserror::Error)]
pub enum FirstTokenError {
    /// The system has no randomness to give.
    #[error("no token can be made: {0}")]
    Randomness(#[from] rand::rand_core::OsError),
    /// The disk.
    #[error("{} cannot be written: {error}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the disk says.
        error: io::Error,
    },
    /// The log did not take it.
    #[error("the token of the first admin is not in the log: {0}")]
    Log(String),
}

/// Makes the first token, if the log knows no admin.
///
/// # Errors
/// If it could not be made; trying again is safe.
pub async fn ensure(ledger: &Ledger, data_dir: &Path) -> Result<(), FirstTokenError> {
    let path = data_dir.join(FILE);
    let failed = |error| FirstTokenError::File { path: path.clone(), error };
    let kept = read(&path).map_err(failed)?;
    if has_admin(&ledger.state(), clock::unix_millis()) {
        return tidy(ledger, &path, kept.as_ref()).map_err(failed);
    }
    let secret = match kept {
        // One that is in the log already is of no use: it has ended, or was revoked.
        Some(kept) if !ledger.state().mesh().tokens.contains_key(kept.id()) => kept,
        _ => Secret::generate()?,
    };
    durable::replace_private(&path, format!("{}\n", secret.reveal()).as_bytes()).map_err(failed)?;
    let issued = TokenIssued {
        id: secret.id().to_owned(),
        name: NAME.to_owned(),
        hash: secret.hash().to_vec().into(),
        roles: vec![Role::Admin.as_str().to_owned()],
        services: Vec::new(),
        expires_ms: 0,
    };
    let reason = "nobody could issue a token".to_owned();
    let done = ledger.decide(&Caller::tower(), reason, Command::IssueToken(IssueToken { issued })).await;
    match done {
        Ok(_) => tracing::info!(file = %path.display(), "the token of the first admin is in this file"),
        // Another Tower was first.
        Err(_) if has_admin(&ledger.state(), clock::unix_millis()) => {
            tidy(ledger, &path, Some(&secret)).map_err(failed)?;
        }
        Err(refused) => return Err(FirstTokenError::Log(refused.to_string())),
    }
    Ok(())
}

/// Takes away a token that the log does not know, since there is an admin with another one.
fn tidy(ledger: &Ledger, path: &Path, kept: Option<&Secret>) -> io::Result<()> {
    match kept {
        Some(kept) if !ledger.state().mesh().tokens.contains_key(kept.id()) => std::fs::remove_file(path),
        _ => Ok(()),
    }
}

/// The token in the file. Whatever else is in it is left alone until a token has to be made.
fn read(path: &Path) -> io::Result<Option<Secret>> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Secret::parse(text.trim())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) if error.kind() == io::ErrorKind::InvalidData => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::event_log::{EventLog, Options, Target};

    async fn ledger(folder: &Path) -> Ledger {
        let log = EventLog::open(&Target::Embedded, folder, Options::default()).await.unwrap();
        let ledger = Ledger::new(log);
        ledger.catch_up().await.unwrap();
        ledger
    }

    fn tokens(ledger: &Ledger) -> Vec<String> {
        ledger.state().mesh().tokens.keys().cloned().collect()
    }

    #[tokio::test]
    async fn the_first_start_makes_an_admin_and_the_next_one_none() {
        let folder = tempfile::tempdir().unwrap();
        let ledger = ledger(folder.path()).await;
        ensure(&ledger, folder.path()).await.unwrap();
        let path = folder.path().join(FILE);
        let secret = read(&path).unwrap().unwrap();
        assert_eq!(tokens(&ledger), [secret.id()]);
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        ensure(&ledger, folder.path()).await.unwrap();
        assert_eq!((tokens(&ledger).len(), read(&path).unwrap()), (1, Some(secret)));
    }

    #[tokio::test]
    async fn a_token_that_did_not_reach_the_log_is_taken_at_the_next_start() {
        let folder = tempfile::tempdir().unwrap();
        let secret = Secret::generate().unwrap();
        std::fs::write(folder.path().join(FILE), secret.reveal()).unwrap();
        let ledger = ledger(folder.path()).await;
        ensure(&ledger, folder.path()).await.unwrap();
        assert_eq!(tokens(&ledger), [secret.id()]);
    }

    #[tokio::test]
    async fn of_two_towers_the_one_that_comes_second_keeps_no_file() {
        let (folder, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let ledger = ledger(folder.path()).await;
        ensure(&ledger, folder.path()).await.unwrap();
        // As if it had written its file just before the other one's entry came.
        std::fs::write(other.path().join(FILE), Secret::generate().unwrap().reveal()).unwrap();
        ensure(&ledger, other.path()).await.unwrap();
        assert!(!other.path().join(FILE).exists());
        assert_eq!(tokens(&ledger).len(), 1);
    }
}
