//! Batched reads with a time limit. What a server says of one znode is part of the answer; all else means
//! that the connection is in doubt, and nothing may be concluded from it.

use std::time::Duration;

use tokio::time::timeout;
use zookeeper_client::{Client, Error, MultiReadResult, Stat};

/// The client has no time limit of its own: requests that are made while it is away wait.
pub(super) const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// A request with many more paths could exceed the megabyte that servers accept.
const MAX_PATHS: usize = 500;
const MAX_PATH_BYTES: usize = 256 << 10;

/// Reads znodes through one client.
pub(super) struct Reader<'a>(pub(super) &'a Client);

/// What a server says of a path.
#[derive(Debug)]
pub(super) enum Found<T> {
    There(T),
    Missing,
    /// There, perhaps, but not for us.
    Denied,
}

/// The data of a znode.
#[derive(Debug)]
pub(super) struct Znode {
    pub(super) data: Vec<u8>,
    pub(super) stat: Stat,
}

/// The connection is in doubt.
#[derive(Debug, thiserror::Error)]
pub(super) enum ReadError {
    #[error("no answer to {request} within {REQUEST_TIMEOUT:?}")]
    Timeout { request: &'static str },
    #[error("{request}: {error}")]
    Client { request: &'static str, error: Error },
    #[error("{request}: the answer is not one to this question")]
    Mismatch { request: &'static str },
    /// The server does not let us read what all else depends on.
    #[error("not authorized to read {path}")]
    Denied { path: String },
}

impl Reader<'_> {
    /// Waits until the server has caught up with its leader.
    pub(super) async fn sync(&self, path: &str) -> Result<(), ReadError> {
        answered("sync", self.0.sync(path)).await
    }

    /// The data of each path.
    pub(super) async fn data(&self, paths: &[&str]) -> Result<Vec<Found<Znode>>, ReadError> {
        const REQUEST: &str = "a read of data";
        let mut all = Vec::with_capacity(paths.len());
        for batch in batches(paths) {
            let mut request = self.0.new_multi_reader();
            for path in batch {
                request.add_get_data(path).map_err(|error| ReadError::Client { request: REQUEST, error })?;
            }
            let results = answered(REQUEST, request.commit()).await?;
            if results.len() != batch.len() {
                return Err(ReadError::Mismatch { request: REQUEST });
            }
            for result in results {
                all.push(found(result, REQUEST, data)?);
            }
        }
        Ok(all)
    }

    /// Stat and children of each path, both of the same moment.
    pub(super) async fn children(
        &self,
        paths: &[&str],
    ) -> Result<Vec<Found<(Stat, Vec<String>)>>, ReadError> {
        const REQUEST: &str = "a read of children";
        let mut all = Vec::with_capacity(paths.len());
        for batch in batches(paths) {
            let mut request = self.0.new_multi_reader();
            for path in batch {
                request
                    .add_get_data(path)
                    .and_then(|()| request.add_get_children(path))
                    .map_err(|error| ReadError::Client { request: REQUEST, error })?;
            }
            let mut results = answered(REQUEST, request.commit()).await?.into_iter();
            for _ in batch {
                let (Some(first), Some(second)) = (results.next(), results.next()) else {
                    return Err(ReadError::Mismatch { request: REQUEST });
                };
                let stat = found(first, REQUEST, data)?;
                let children = found(second, REQUEST, |result| match result {
                    MultiReadResult::Children { children } => Some(children),
                    _ => None,
                })?;
                all.push(match (stat, children) {
                    (Found::There(Znode { stat, .. }), Found::There(children)) => {
                        Found::There((stat, children))
                    }
                    (Found::Missing, _) | (_, Found::Missing) => Found::Missing,
                    (Found::Denied, _) | (_, Found::Denied) => Found::Denied,
                });
            }
        }
        Ok(all)
    }
}

fn data(result: MultiReadResult) -> Option<Znode> {
    match result {
        MultiReadResult::Data { data, stat } => Some(Znode { data, stat }),
        _ => None,
    }
}

fn found<T>(
    result: MultiReadResult,
    request: &'static str,
    take: impl FnOnce(MultiReadResult) -> Option<T>,
) -> Result<Found<T>, ReadError> {
    match result {
        MultiReadResult::Error { err: Error::NoNode } => Ok(Found::Missing),
        MultiReadResult::Error { err: Error::NoAuth } => Ok(Found::Denied),
        MultiReadResult::Error { err: error } => Err(ReadError::Client { request, error }),
        other => take(other).map(Found::There).ok_or(ReadError::Mismatch { request }),
    }
}

pub(super) async fn answered<T>(
    request: &'static str,
    answer: impl Future<Output = Result<T, Error>>,
) -> Result<T, ReadError> {
    match timeout(REQUEST_TIMEOUT, answer).await {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => Err(ReadError::Client { request, error }),
        Err(_) => Err(ReadError::Timeout { request }),
    }
}

/// Splits paths so that each part fits into one request.
fn batches<'a, 'p>(paths: &'a [&'p str]) -> impl Iterator<Item = &'a [&'p str]> {
    let mut rest = paths;
    std::iter::from_fn(move || {
        let mut bytes = 0;
        let fitting = rest.iter().take(MAX_PATHS).take_while(|path| {
            bytes += path.len();
            bytes <= MAX_PATH_BYTES
        });
        // A single path always fits, so that there is an end.
        let count = fitting.count().max(1).min(rest.len());
        let (batch, tail) = rest.split_at(count);
        rest = tail;
        (!batch.is_empty()).then_some(batch)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_are_bounded_in_paths_and_bytes() {
        let sizes = |paths: &[String]| {
            let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
            let sizes: Vec<usize> = batches(&paths).map(<[&str]>::len).collect();
            assert_eq!(sizes.iter().sum::<usize>(), paths.len());
            sizes
        };
        assert_eq!(sizes(&[]), [0_usize; 0]);
        assert_eq!(sizes(&vec!["/a".to_owned(); 1001]), [500, 500, 1]);
        assert_eq!(sizes(&vec!["x".repeat(100 << 10); 3]), [2, 1]);
        assert_eq!(sizes(&vec!["x".repeat(1 << 20); 2]), [1, 1]);
    }
}
