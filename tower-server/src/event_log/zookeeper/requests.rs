//! Requests through whichever session there is. The library has no time limit of its own, and a request that
//! was given up may still be done: so each outcome says whether it can be known.

use std::time::Duration;

use tokio::time::timeout;
use zookeeper_client::{Acls, Client, CreateMode, CreateOptions, Error, MultiReadResult};

use super::{is_answer, parent, shared::Shared};
use crate::{
    event_log::{State, error::BackendError},
    sources::spec::ZnodeAcl,
};

/// A request that takes longer is given up.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a request waits for a session.
const SESSION_PATIENCE: Duration = Duration::from_secs(5);

/// So many paths are read in a request: it has at most a megabyte, and the answer is in memory as a whole.
pub(super) const PATHS: usize = 200;

/// Why a request has no result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(in crate::event_log) enum Failure {
    /// It was never made: there is no session.
    #[error("{0}")]
    NotMade(String),
    /// It was made, and nobody knows whether it was done.
    #[error("{0}")]
    Doubt(String),
    /// A server has said that it was not done.
    #[error("{0}")]
    Answer(String),
}

impl From<Failure> for BackendError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Doubt(why) => Self::Doubt(why),
            Failure::NotMade(why) | Failure::Answer(why) => Self::Failed(why),
        }
    }
}

impl Shared {
    /// Makes a request. What a server says of a znode is part of the result.
    pub(super) async fn request<T, F>(
        &self,
        request: impl FnOnce(Client) -> F,
    ) -> Result<Result<T, Error>, Failure>
    where
        F: Future<Output = Result<T, Error>>,
    {
        let mut clients = self.client.subscribe();
        let there = timeout(SESSION_PATIENCE, clients.wait_for(Option::is_some)).await;
        let client = there.ok().and_then(Result::ok).and_then(|client| client.clone());
        let Some(client) = client else { return Err(Failure::NotMade(self.why())) };
        let answer = tokio::select! {
            answer = timeout(REQUEST_TIMEOUT, request(client)) => answer,
            _ = clients.changed() => return Err(Failure::Doubt("the session ended meanwhile".to_owned())),
        };
        match answer {
            Ok(Ok(value)) => Ok(Ok(value)),
            Ok(Err(error)) if is_answer(&error) => Ok(Err(error)),
            Ok(Err(error)) => Err(Failure::Doubt(error.to_string())),
            Err(_) => Err(Failure::Doubt(format!("no answer within {REQUEST_TIMEOUT:?}"))),
        }
    }

    /// Waits until the server has caught up with its leader.
    pub(super) async fn sync(&self) -> Result<(), Failure> {
        let root = self.ensemble.path.clone();
        let synced = self.request(|client| async move { client.sync(&root).await }).await?;
        synced.map_err(|error| Failure::Answer(error.to_string()))
    }

    /// The data of a znode, if it is there.
    pub(super) async fn data(&self, path: &str) -> Result<Option<Vec<u8>>, Failure> {
        Ok(self.data_and_version(path).await?.map(|(data, _)| data))
    }

    pub(super) async fn data_and_version(&self, path: &str) -> Result<Option<(Vec<u8>, i32)>, Failure> {
        let at = path.to_owned();
        match self.request(|client| async move { client.get_data(&at).await }).await? {
            Ok((data, stat)) => Ok(Some((data, stat.version))),
            Err(Error::NoNode) => Ok(None),
            Err(error) => Err(answer(path, &error)),
        }
    }

    /// The data of these znodes, as of one moment.
    pub(super) async fn read(&self, paths: &[String]) -> Result<Vec<Option<Vec<u8>>>, Failure> {
        let wanted = paths.to_vec();
        let results = self.request(|client| async move {
            let mut reader = client.new_multi_reader();
            for path in &wanted {
                reader.add_get_data(path)?;
            }
            reader.commit().await
        });
        let results = results.await?.map_err(|error| Failure::Answer(error.to_string()))?;
        let each = results.into_iter().zip(paths).map(|(result, path)| match result {
            MultiReadResult::Data { data, .. } => Ok(Some(data)),
            MultiReadResult::Error { err: Error::NoNode } => Ok(None),
            MultiReadResult::Error { err } => Err(answer(path, &err)),
            _ => Err(Failure::Doubt("the answer is not one to this question".to_owned())),
        });
        let each = each.collect::<Result<Vec<_>, _>>()?;
        if each.len() == paths.len() {
            Ok(each)
        } else {
            Err(Failure::Doubt("the answer is not one to this question".to_owned()))
        }
    }

    /// The names below a znode, sorted; none if it is not there.
    pub(super) async fn children(&self, path: &str) -> Result<Vec<String>, Failure> {
        let at = path.to_owned();
        match self.request(|client| async move { client.list_children(&at).await }).await? {
            Ok(mut names) => {
                names.sort_unstable();
                Ok(names)
            }
            Err(Error::NoNode) => Ok(Vec::new()),
            Err(error) => Err(answer(path, &error)),
        }
    }

    /// Creates a znode, and those above it, unless it is there.
    pub(super) async fn create(&self, path: &str, data: Vec<u8>) -> Result<(), Failure> {
        loop {
            let (at, data) = (path.to_owned(), data.clone());
            let options = self.options(CreateMode::Persistent);
            let created = self.request(|client| async move { client.create(&at, &data, &options).await });
            match created.await? {
                Ok(_) | Err(Error::NodeExists) => return Ok(()),
                Err(Error::NoNode) => self.make(&parent(path)).await?,
                Err(error) => return Err(answer(path, &error)),
            }
        }
    }

    /// Creates an empty znode, and those above it, unless they are there.
    pub(super) async fn make(&self, path: &str) -> Result<(), Failure> {
        let at = path.to_owned();
        let options = self.options(CreateMode::Persistent);
        let made = self.request(|client| async move { client.mkdir(&at, &options).await }).await?;
        made.map_err(|error| answer(path, &error))
    }

    /// Sets the data of a znode that has this version; tells whether it had.
    pub(super) async fn set(&self, path: &str, data: Vec<u8>, version: i32) -> Result<bool, Failure> {
        let at = path.to_owned();
        match self.request(|client| async move { client.set_data(&at, &data, Some(version)).await }).await? {
            Ok(_) => Ok(true),
            Err(Error::BadVersion) => Ok(false),
            Err(error) => Err(answer(path, &error)),
        }
    }

    /// Deletes a znode, if it is there.
    pub(super) async fn delete(&self, path: &str) -> Result<(), Failure> {
        let at = path.to_owned();
        match self.request(|client| async move { client.delete(&at, None).await }).await? {
            Ok(()) | Err(Error::NoNode) => Ok(()),
            Err(error) => Err(answer(path, &error)),
        }
    }

    /// How znodes are created.
    pub(super) fn options(&self, mode: CreateMode) -> CreateOptions<'static> {
        mode.with_acls(match self.ensemble.acl {
            ZnodeAcl::Open => Acls::anyone_all(),
            ZnodeAcl::Creator => Acls::creator_all(),
        })
    }

    fn why(&self) -> String {
        match &*self.state.borrow() {
            State::Unreachable { why, .. } | State::Refused { why } => why.clone(),
            State::Live => "the session is not there yet".to_owned(),
        }
    }
}

/// What a server says of a path.
pub(super) fn answer(path: &str, error: &Error) -> Failure {
    Failure::Answer(format!("{path}: {error}"))
}
