//! The first token of an admin: made by Tower where the log knows no admin, and kept in its data folder, so that
//! whoever runs Tower can begin.
//!
//! The file is written first. Whatever happens then, a token that is in the log is in a file, and one that is
//! in a file and not in the log is taken at the next start. Of several Towers the log lets one win; the others
//! take their files away again.

use std::{
    io,
    path::{Path, PathBuf},
    time::Duration,
};

use tower_common::{backoff::Backoff, clock, durable};
use tower_proto::v1::{self, TokenIssued};

use super::token::Secret;
use crate::registry::{
    Command, LogState, Registry, Request, SubmitError,
    commands::IssueToken,
    permission::{Role, TOWER, has_admin},
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
    Log(SubmitError),
}

/// Makes the first token as soon as the log has been read, and tries until it is there, or is not needed.
pub async fn see_to(registry: Registry, data_dir: PathBuf) {
    let mut backoff = Backoff::new(Duration::from_millis(200), Duration::from_secs(10));
    let mut status = registry.status();
    while status.wait_for(|status| status.state == LogState::Live).await.is_ok() {
        let Err(error) = ensure(&registry, &data_dir).await else { return };
        tracing::error!(%error, "the first token is not made");
        tokio::time::sleep(backoff.next_wait(&mut rand::rng())).await;
    }
}

/// Makes the first token, if the log knows no admin.
///
/// # Errors
/// If it could not be made; trying again is safe.
pub async fn ensure(registry: &Registry, data_dir: &Path) -> Result<(), FirstTokenError> {
    let path = data_dir.join(FILE);
    let failed = |error| FirstTokenError::File { path: path.clone(), error };
    let kept = read(&path).map_err(failed)?;
    if has_admin(&registry.state(), clock::unix_millis()) {
        return tidy(registry, &path, kept.as_ref()).map_err(failed);
    }
    let secret = match kept {
        // One that is in the log already is of no use: it has ended, or was revoked.
        Some(kept) if !registry.state().mesh().tokens.contains_key(kept.id()) => kept,
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
        session_key: secret.session_key().to_vec().into(),
    };
    let actor = v1::Actor { name: TOWER.to_owned(), credential: TOWER.to_owned(), address: String::new() };
    let reason = "nobody could issue a token".to_owned();
    let request = Request { actor, reason, ..Request::default() };
    match registry.submit(Command::IssueToken(IssueToken { issued }), request).await {
        Ok(_) => tracing::info!(file = %path.display(), "the token of the first admin is in this file"),
        // Another Tower was first.
        Err(_) if has_admin(&registry.state(), clock::unix_millis()) => {
            tidy(registry, &path, Some(&secret)).map_err(failed)?;
        }
        Err(error) => return Err(FirstTokenError::Log(error)),
    }
    Ok(())
}

/// Takes away a token that the log does not know, since there is an admin with another one.
fn tidy(registry: &Registry, path: &Path, kept: Option<&Secret>) -> io::Result<()> {
    match kept {
        Some(kept) if !registry.state().mesh().tokens.contains_key(kept.id()) => std::fs::remove_file(path),
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
    use crate::api::testing;

    async fn registry(folder: &Path) -> Registry {
        let registry = testing::registry(folder).await;
        registry.status().wait_for(|status| status.state == LogState::Live).await.unwrap();
        registry
    }

    fn tokens(registry: &Registry) -> Vec<String> {
        registry.state().mesh().tokens.keys().cloned().collect()
    }

    #[actix::test]
    async fn the_first_start_makes_an_admin_and_the_next_one_none() {
        let folder = tempfile::tempdir().unwrap();
        let registry = registry(folder.path()).await;
        ensure(&registry, folder.path()).await.unwrap();
        let path = folder.path().join(FILE);
        let secret = read(&path).unwrap().unwrap();
        assert_eq!(tokens(&registry), [secret.id()]);
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        ensure(&registry, folder.path()).await.unwrap();
        assert_eq!((tokens(&registry).len(), read(&path).unwrap()), (1, Some(secret)));
    }

    #[actix::test]
    async fn a_token_that_did_not_reach_the_log_is_taken_at_the_next_start() {
        let folder = tempfile::tempdir().unwrap();
        let secret = Secret::generate().unwrap();
        std::fs::write(folder.path().join(FILE), secret.reveal()).unwrap();
        let registry = registry(folder.path()).await;
        ensure(&registry, folder.path()).await.unwrap();
        assert_eq!(tokens(&registry), [secret.id()]);
    }

    #[actix::test]
    async fn of_two_towers_the_one_that_comes_second_keeps_no_file() {
        let (folder, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let registry = registry(folder.path()).await;
        ensure(&registry, folder.path()).await.unwrap();
        // As if it had written its file just before the other one's entry came.
        std::fs::write(other.path().join(FILE), Secret::generate().unwrap().reveal()).unwrap();
        ensure(&registry, other.path()).await.unwrap();
        assert!(!other.path().join(FILE).exists());
        assert_eq!(tokens(&registry).len(), 1);
    }
}
