//! Pages of what may be long. A cursor is where the page before ended, so it stays right while things come
//! and go. Nobody should look into one.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use serde::{Serialize, de::DeserializeOwned};
use tower_common::api::{Code, DEFAULT_LIMIT, MAX_LIMIT, Problem};

use super::error::Refused;

/// Longer cursors are not ours.
const MAX_CURSOR_BYTES: usize = 2048;

/// Which page.
#[derive(Debug, Clone, Copy, Default)]
pub struct Page<'a> {
    /// The `next` of the page before.
    pub cursor: Option<&'a str>,
    /// How much is wanted at most.
    pub limit: Option<usize>,
}

impl Page<'_> {
    /// Of what is sorted by this key, this page, and the cursor of the next one.
    ///
    /// # Errors
    /// If the cursor or the limit is not what it should be.
    pub fn of<T, K>(
        &self,
        sorted: impl Iterator<Item = T>,
        key: impl Fn(&T) -> K,
    ) -> Result<(Vec<T>, Option<String>), Refused>
    where
        K: Ord + Serialize + DeserializeOwned,
    {
        let limit = self.limit()?;
        let after: Option<K> = self.cursor.map(decode).transpose()?;
        let mut rest = sorted.skip_while(|item| after.as_ref().is_some_and(|after| key(item) <= *after));
        let items: Vec<T> = rest.by_ref().take(limit).collect();
        let next = match (rest.next(), items.last()) {
            (Some(_), Some(last)) => Some(encode(&key(last))),
            _ => None,
        };
        Ok((items, next))
    }

    /// How much is wanted at most.
    ///
    /// # Errors
    /// If that is nothing, or too much.
    pub fn limit(&self) -> Result<usize, Refused> {
        match self.limit.unwrap_or(DEFAULT_LIMIT) {
            limit @ 1..=MAX_LIMIT => Ok(limit),
            other => Err(Refused::malformed("limit", format!("it is from 1 to {MAX_LIMIT}, not {other}"))),
        }
    }
}

/// A cursor that points behind this key.
pub fn encode(key: &impl Serialize) -> String {
    // Keys are numbers and texts, which JSON has.
    URL_SAFE_NO_PAD.encode(serde_json::to_vec(key).unwrap_or_default())
}

/// The key that a cursor points behind.
///
/// # Errors
/// If it is not a cursor of such a list.
pub fn decode<K: DeserializeOwned>(cursor: &str) -> Result<K, Refused> {
    let read = || {
        let bytes =
            URL_SAFE_NO_PAD.decode(Some(cursor).filter(|cursor| cursor.len() <= MAX_CURSOR_BYTES)?).ok()?;
        serde_json::from_slice(&bytes).ok()
    };
    let refuse =
        || Problem::new(Code::Invalid, "it is not the \"next\" of a page of this list").field("cursor");
    read().ok_or_else(|| refuse().into())
}

#[cfg(test)]
mod tests {
    use std::cmp::Reverse;

    use super::*;

    fn pages(limit: usize, all: &[u32]) -> Vec<Vec<u32>> {
        let mut cursor = None;
        let mut pages = Vec::new();
        loop {
            let page = Page { cursor: cursor.as_deref(), limit: Some(limit) };
            let (items, next) = page.of(all.iter().copied(), |number| Reverse(*number)).unwrap();
            pages.push(items);
            if next.is_none() {
                return pages;
            }
            cursor = next;
        }
    }

    #[test]
    fn pages_follow_each_other_without_gap_or_repetition() {
        assert_eq!(pages(2, &[9, 7, 5, 3, 1]), [vec![9, 7], vec![5, 3], vec![1]]);
        assert_eq!(pages(5, &[9, 7, 5, 3, 1]), [vec![9, 7, 5, 3, 1]]);
        assert_eq!(pages(1, &[]), [Vec::<u32>::new()]);
    }

    #[test]
    fn a_page_begins_where_the_one_before_ended_whatever_came_and_went() {
        let page = Page { cursor: Some(&encode(&"d")), limit: None };
        let (items, next) = page.of(["a", "c", "e", "f"].into_iter(), |name| (*name).to_owned()).unwrap();
        assert_eq!((items, next), (vec!["e", "f"], None));
    }

    #[test]
    fn foreign_cursors_and_limits_are_refused_by_name() {
        let field = |cursor: Option<&str>, limit| {
            let page = Page { cursor, limit };
            let refused = page.of([1_u32].into_iter(), |number| *number).unwrap_err();
            refused.problem().field.clone().unwrap()
        };
        for cursor in ["", "*", "bm90IEpTT04", &encode(&"text"), &"A".repeat(MAX_CURSOR_BYTES + 1)] {
            assert_eq!(field(Some(cursor), None), "cursor", "{cursor:.20}");
        }
        assert_eq!(field(None, Some(0)), "limit");
        assert_eq!(field(None, Some(MAX_LIMIT + 1)), "limit");
    }
}
