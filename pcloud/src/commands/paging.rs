//! All pages of a long list, or as many items as are wanted.

use serde::de::DeserializeOwned;
use tower_common::api::MAX_LIMIT;

use crate::{client::Client, failure::Failure};

/// Asks for page after page, and hands each to `take`, which returns its cursor of the next and how many items
/// it had.
pub(super) async fn pages<T: DeserializeOwned>(
    client: &Client,
    path: &str,
    query: &[(&str, String)],
    limit: Option<usize>,
    mut take: impl FnMut(T) -> (Option<String>, usize),
) -> Result<(), Failure> {
    let mut cursor: Option<String> = None;
    let mut left = limit.unwrap_or(usize::MAX);
    while left > 0 {
        let mut query = query.to_vec();
        query.push(("limit", left.min(MAX_LIMIT).to_string()));
        if let Some(cursor) = cursor {
            query.push(("cursor", cursor));
        }
        let (next, items) = take(client.get(path, &query).await?);
        left = left.saturating_sub(items);
        match next {
            Some(next) => cursor = Some(next),
            None => break,
        }
    }
    Ok(())
}
