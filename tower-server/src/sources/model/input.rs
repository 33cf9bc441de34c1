//! What is told to a model by whoever reads the source.

use std::{net::IpAddr, sync::Arc};

use super::{
    problems::Problem,
    registrations::{Entry, Place},
};

/// What is told to a source's model.
#[derive(Debug)]
pub(in crate::sources) enum Input {
    /// The source cannot be read at present. What is known stays.
    OutOfTouch {
        /// Why, for people.
        reason: String,
    },
    /// The source was read in full.
    Loaded(Load),
    /// Some of it was read again.
    Changed {
        /// What was found.
        changes: Vec<Change>,
        /// The highest position seen while reading.
        index: u64,
        /// How many events made it read.
        events: u64,
    },
    /// A host name was looked up.
    Resolved {
        /// The name.
        name: Arc<str>,
        /// Its addresses, or why there are none.
        addresses: Result<Vec<IpAddr>, String>,
    },
}

/// A complete reading.
#[derive(Debug, Default)]
pub(in crate::sources) struct Load {
    /// Which history the positions count in. None if what is to be read does not exist.
    pub(in crate::sources) incarnation: Option<String>,
    /// The highest position seen while reading.
    pub(in crate::sources) index: u64,
    /// Whether something with a position could not be read, so that the highest one may be another.
    pub(in crate::sources) partial: bool,
    /// Where services are registered.
    pub(in crate::sources) places: Vec<Place>,
    /// What is registered.
    pub(in crate::sources) entries: Vec<Entry>,
    /// What could not be used. All that is known at these paths and below stays.
    pub(in crate::sources) kept: Vec<Problem>,
    /// What people should know of it all the same.
    pub(in crate::sources) warning: Option<String>,
}

/// A difference to the reading before.
#[derive(Debug)]
pub(in crate::sources) enum Change {
    /// A place is there.
    Place(Place),
    /// An entry is there.
    Entry(Entry),
    /// Something could not be used; what is known at this path stays.
    Kept(Problem),
    /// Nothing is at this path any more.
    Gone {
        /// The path.
        path: Arc<str>,
        /// A position at which it was certainly gone.
        index: u64,
    },
}
