//! What an entry says of the weights of others in the same directory.

use std::sync::Arc;

use super::Registration;
use crate::sources::address::Host;

/// A change of weight for the endpoints that are selected.
#[derive(Debug, Clone, PartialEq)]
pub struct WeightRule {
    /// Which endpoints.
    pub select: Select,
    /// How their weight changes.
    pub factor: Factor,
}

/// Selects endpoints of a directory.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Select {
    /// All of the member with this name.
    Member(Arc<str>),
    /// Those at this address.
    Address(Host, u16),
    /// All of members with this shard.
    Shard(i64),
}

/// How a weight changes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Factor {
    /// Multiplied by this, which is finite and not negative.
    Times(f64),
    /// No traffic at all.
    Excluded,
}

impl Factor {
    /// Of two that apply.
    pub fn and(self, other: Self) -> Self {
        match (self, other) {
            // Out of bounds is still a number.
            (Self::Times(one), Self::Times(other)) => Self::Times((one * other).min(f64::MAX)),
            (Self::Excluded, _) | (_, Self::Excluded) => Self::Excluded,
        }
    }
}

impl Registration {
    /// The shard that it says to be.
    pub fn shard(&self) -> Option<i64> {
        self.labels.get(super::SHARD)?.parse().ok()
    }
}
