//! What is kept of a guard on disk, and how another process begins with it.

use std::collections::BTreeSet;

use super::hold::{Hold, Now, Record};
use super::{Guard, Missing, Policy, Registered};
use crate::sources::model::EndpointKey;

impl Guard {
    /// Begins where another run of Tower has stopped: the holds of the record, of what is `published`.
    /// Returns the endpoints that are held, and so are not registered. A deadline is one of the wall clock,
    /// so that it goes on while Tower does not run, and one that restarts for ever holds nothing for ever;
    /// no clock that is set makes a hold longer than a new one.
    pub(in crate::sources) fn restore(
        &mut self,
        record: &Record,
        published: &BTreeSet<EndpointKey>,
        now: Now,
    ) -> BTreeSet<EndpointKey> {
        let Policy { hold: longest, window, .. } = self.policy;
        let longest = if longest.is_zero() { longest } else { longest.max(window) };
        self.next_id = self.next_id.max(record.next_id);
        let mut held = BTreeSet::new();
        for recorded in &record.holds {
            let hold = Hold::from_record(recorded, published, longest, now);
            for (key, until) in &hold.endpoints {
                self.told(key, Registered::InService, Registered::No, now.at);
                self.missing.insert(key.clone(), Missing::Held { hold: recorded.id });
                self.judge_at(*until);
                held.insert(key.clone());
            }
            if !hold.endpoints.is_empty() {
                self.holding.insert(hold.scope.clone(), recorded.id);
                self.holds.insert(recorded.id, hold);
            }
        }
        self.left = record.left.iter().map(EndpointKey::from).collect();
        held
    }

    /// Whether what is to be kept on disk has changed since it was last taken.
    pub(in crate::sources) fn is_record_old(&self) -> bool {
        self.dirty
    }

    /// What is to be kept on disk.
    pub(in crate::sources) fn record(&mut self, now: Now) -> Record {
        self.dirty = false;
        Record {
            next_id: self.next_id,
            holds: self.holds.iter().map(|(id, hold)| hold.to_record(*id, now)).collect(),
            left: self.left.iter().chain(&self.left_before).map(Into::into).collect(),
        }
    }

    /// A snapshot of what is published was taken, and is being written.
    pub(in crate::sources) fn snapshot_taken(&mut self) {
        self.left_before.append(&mut self.left);
    }

    /// The snapshot was written, or could not be.
    pub(in crate::sources) fn snapshot_written(&mut self, written: bool) {
        if written {
            self.dirty |= !self.left_before.is_empty();
            self.left_before.clear();
        } else {
            self.left.append(&mut self.left_before);
        }
    }
}
