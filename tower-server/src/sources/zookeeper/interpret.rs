//! What a znode means. Plain functions of its path, its stat and its data.

use std::sync::Arc;

use zookeeper_client::Stat;

use super::layout::Facts;
use crate::sources::{
    format::Format,
    model::{Entry, MAX_MEMBERS, Place, Problem, check_service_name},
};

/// Directories of directories may be larger than those of members.
pub(super) const MAX_DIRECTORIES: usize = 100_000;

/// The highest position that a directory's stat tells of.
pub(super) fn position(stat: &Stat) -> u64 {
    [stat.czxid, stat.mzxid, stat.pzxid].into_iter().map(zxid).max().unwrap_or_default()
}

pub(super) fn zxid(zxid: i64) -> u64 {
    u64::try_from(zxid).unwrap_or_default()
}

/// Which history an ensemble's positions count in: one that was restored, or set up anew, made its root at
/// another time.
pub(super) fn incarnation(root: &Stat) -> String {
    format!("{:x}-{:x}", root.czxid, root.ctime)
}

/// The directory of a service, if that has a name, and not too many children.
pub(super) fn place(path: &str, facts: &Facts<'_>, stat: &Stat) -> Result<Place, Problem> {
    check_service_name(facts.service).map_err(|error| problem(path, error.to_string()))?;
    check_children(path, stat, MAX_MEMBERS)?;
    Ok(Place {
        path: path.into(),
        service: facts.service.into(),
        created: zxid(stat.czxid),
        changed: zxid(stat.pzxid),
    })
}

/// Whether a directory may be listed.
pub(super) fn check_children(path: &str, stat: &Stat, limit: usize) -> Result<(), Problem> {
    match usize::try_from(stat.num_children) {
        Ok(children) if children > limit => {
            Err(problem(path, format!("{children} children, more than {limit}; what was known before stays")))
        }
        Ok(_) | Err(_) => Ok(()),
    }
}

/// A member.
pub(super) fn member(
    format: Format,
    path: &str,
    (place, name, facts): (&str, &str, &Facts<'_>),
    data: &[u8],
    stat: &Stat,
) -> Result<Entry, Problem> {
    check_service_name(facts.service).map_err(|error| problem(place, error.to_string()))?;
    let mut decoded = format.decode(name, data).map_err(|error| problem(path, error.to_string()))?;
    for registration in &mut decoded.registrations {
        registration.add_labels(facts.labels.iter().copied());
        registration.settle_labels();
    }
    for remark in &decoded.remarks {
        tracing::debug!(path, remark, "oddity in a registration");
    }
    Ok(Entry {
        path: path.into(),
        place: place.into(),
        service: facts.service.into(),
        // Identity is the czxid: of two registrations of one address the one made later is in force.
        rank: zxid(stat.czxid),
        index: zxid(stat.mzxid),
        registrations: decoded.registrations,
        weights: decoded.weights,
        remarks: decoded.remarks.len().try_into().unwrap_or(u64::MAX),
    })
}

/// What cannot be read.
pub(super) fn denied(path: &str) -> Problem {
    problem(path, "not authorized to read it; what was known before stays".to_owned())
}

fn problem(path: &str, reason: String) -> Problem {
    Problem { path: Arc::from(path), reason }
}
