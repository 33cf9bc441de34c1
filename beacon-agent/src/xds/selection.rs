//! What goes into one message.

use std::{cmp::Ordering, collections::BTreeSet, sync::Arc};

use tower_common::{
    resource::Version,
    view::{Layer, XdsResource},
};

use super::{kind::ResourceType, ledger::Nonce};

/// What one message holds at most, unless a single resource is larger. Receivers of gRPC accept 4 MiB by
/// default.
pub(super) const MESSAGE_BYTES: usize = 3 << 20;

/// What is to go into one message.
#[derive(Debug, Default)]
pub(super) struct Selection {
    pub(super) resources: Vec<XdsResource>,
    pub(super) removed: Vec<Arc<str>>,
    /// What did not fit, and goes into the next.
    pub(super) left_over: Vec<Arc<str>>,
    pub(super) whole: bool,
    bytes: usize,
}

/// One message, and what it is for the client.
#[derive(Debug)]
pub(super) struct Batch {
    pub(super) kind: ResourceType,
    pub(super) nonce: Nonce,
    pub(super) version: Version,
    pub(super) resources: Vec<XdsResource>,
    pub(super) removed: Vec<Arc<str>>,
    /// Resources that are new to the client, or perhaps are.
    pub(super) refreshed: BTreeSet<Arc<str>>,
}

impl Selection {
    /// Everything, in one message whatever its size: what is not in it is gone.
    pub(super) fn whole(resources: Vec<XdsResource>) -> Self {
        Self { resources, whole: true, ..Self::default() }
    }

    /// Adds a resource, or the fact that there is none of this name, if there is room.
    pub(super) fn add(&mut self, name: &Arc<str>, resource: Option<&XdsResource>) {
        // Beside the body: the name, and an upper bound for type URL, version and field keys.
        const OVERHEAD: usize = 160;
        let bytes = resource.map_or(0, |resource| resource.body.len() + OVERHEAD) + name.len() + 4;
        let empty = self.resources.is_empty() && self.removed.is_empty();
        if !self.left_over.is_empty() || (!empty && self.bytes + bytes > MESSAGE_BYTES) {
            self.left_over.push(name.clone());
            return;
        }
        self.bytes += bytes;
        match resource {
            Some(resource) => self.resources.push(resource.clone()),
            None => self.removed.push(name.clone()),
        }
    }

    /// `None` if nothing was added.
    pub(super) fn non_empty(self) -> Option<Self> {
        let empty = self.resources.is_empty() && self.removed.is_empty();
        (!empty).then_some(self)
    }
}

/// The names that are in one layer only, or have other content.
pub(super) fn differences<'a>(old: &'a Layer, new: &'a Layer) -> impl Iterator<Item = &'a Arc<str>> {
    let (mut olds, mut news) = (old.iter().peekable(), new.iter().peekable());
    std::iter::from_fn(move || {
        loop {
            let order = match (olds.peek(), news.peek()) {
                (None, None) => return None,
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                // Most names are the very same: a layer is made from the one before.
                (Some((old, _)), Some((new, _))) if Arc::ptr_eq(old, new) => Ordering::Equal,
                (Some((old, _)), Some((new, _))) => old.cmp(new),
            };
            match order {
                Ordering::Less => return olds.next().map(|(name, _)| name),
                Ordering::Greater => return news.next().map(|(name, _)| name),
                Ordering::Equal => {
                    let ((_, old), (name, new)) = (olds.next()?, news.next()?);
                    if old.version != new.version {
                        return Some(name);
                    }
                }
            }
        }
    })
}
