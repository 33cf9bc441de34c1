//! What is wrong with a source's contents, by path.

use std::{collections::BTreeMap, sync::Arc};

use super::endpoint::EndpointKey;

/// Something that cannot be used, for people to find and mend.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Problem {
    /// Where: a znode, or a file.
    pub path: Arc<str>,
    /// What is wrong with it.
    pub reason: String,
}

/// What about a path: several things may be wrong with it at once, and are mended one by one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Subject {
    /// The znode or file itself.
    Contents,
    /// A host name in it.
    Name(Arc<str>),
    /// An endpoint of it, which another path has too.
    Clash(EndpointKey),
}

/// The present problems.
#[derive(Debug, Default)]
pub(super) struct Problems(BTreeMap<(Arc<str>, Subject), String>);

impl Problems {
    /// Returns whether that is news.
    pub(super) fn set(&mut self, path: &Arc<str>, subject: Subject, reason: String) -> bool {
        let key = (path.clone(), subject);
        let news = self.0.get(&key) != Some(&reason);
        self.0.insert(key, reason);
        news
    }

    pub(super) fn clear(&mut self, path: &Arc<str>, subject: Subject) {
        // Nearly always there is no problem at all, and then no key needs to be made.
        if !self.0.is_empty() {
            self.0.remove(&(path.clone(), subject));
        }
    }

    /// Forgets what is wrong with the contents of paths that do not satisfy the condition.
    pub(super) fn retain_contents(&mut self, keep: impl Fn(&str) -> bool) {
        self.0.retain(|(path, subject), _| *subject != Subject::Contents || keep(path));
    }

    pub(super) fn iter(&self) -> impl ExactSizeIterator<Item = Problem> {
        self.0.iter().map(|((path, _), reason)| Problem { path: path.clone(), reason: reason.clone() })
    }
}
