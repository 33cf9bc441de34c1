//! Taking the last good state out, to be kept on disk, and putting it in again.

use std::collections::{BTreeMap, BTreeSet};

use prost::Message;
use tower_proto::v1;

use super::{Held, Registrations};
use crate::sources::{
    guard::{Guard, Now, Record, Registered},
    model::{
        Position,
        endpoint::{EndpointKey, takes_traffic},
        endpoints::Claim,
        registrations::Entry,
        saved::{Saved, SavedEndpoint, SavedEntry},
    },
};

impl Registrations {
    /// All that is known and published, as of `position`.
    pub(in crate::sources::model) fn save(&self, position: Position) -> Saved {
        let entries = self.entries.values().map(|held| SavedEntry {
            path: held.entry.path.clone(),
            place: held.entry.place.clone(),
            service: held.entry.service.clone(),
            rank: held.entry.rank,
            index: held.entry.index,
            claimed: held.claimed.clone(),
        });
        Saved {
            position,
            places: self.places.values().cloned().collect(),
            entries: entries.collect(),
            endpoints: self.endpoints.published().collect(),
            services: self.services.published().cloned().collect(),
            names: self.names.addressed().collect(),
        }
    }

    /// Begins with what was saved, but for what the record says has left since. All of it is published by
    /// the next differences. What an entry says is not known, so that the next complete reading tells.
    pub(in crate::sources::model) fn restore(
        &mut self,
        saved: Saved,
        guard: &mut Guard,
        record: &Record,
        now: Now,
    ) {
        let endpoints: BTreeMap<EndpointKey, SavedEndpoint> = saved
            .endpoints
            .into_iter()
            .filter(|endpoint| !record.has_left(&endpoint.key))
            .map(|endpoint| (endpoint.key.clone(), endpoint))
            .collect();
        let mut in_service = BTreeSet::new();
        for (key, endpoint) in &endpoints {
            let state = registered(endpoint);
            guard.told(key, Registered::No, state, now.at);
            if state == Registered::InService {
                in_service.insert(key.clone());
            }
            self.endpoints.restore(endpoint.clone(), state);
        }
        for key in guard.restore(record, &in_service, now) {
            self.endpoints.restored_as_held(&key);
        }
        for name in saved.services {
            self.services.restore(name);
        }
        for (name, addresses) in saved.names {
            self.names.remember(name, addresses);
        }
        saved.places.into_iter().for_each(|place| self.put_place(place));
        for entry in saved.entries {
            self.restore_entry(entry, &endpoints);
        }
    }

    fn restore_entry(&mut self, saved: SavedEntry, endpoints: &BTreeMap<EndpointKey, SavedEndpoint>) {
        let SavedEntry { path, place, service, rank, index, claimed } = saved;
        let claimed: Vec<EndpointKey> =
            claimed.into_iter().filter(|key| self.endpoints.was_registered(key)).collect();
        for key in &claimed {
            let Some(endpoint) = endpoints.get(key) else { continue };
            let in_service = registered(endpoint) == Registered::InService;
            let claim = Claim { rank, path: path.clone(), in_service, body: endpoint.body.clone() };
            self.endpoints.claim(key.clone(), claim, index, &mut self.problems);
        }
        *self.members.entry(place.clone()).or_default() += 1;
        let entry = Entry {
            path: path.clone(),
            place,
            service,
            rank,
            index,
            registrations: Vec::new(),
            weights: Vec::new(),
            remarks: 0,
        };
        self.entries.insert(path, Held { entry, claimed });
    }
}

fn registered(endpoint: &SavedEndpoint) -> Registered {
    // What does not decode was published by a build that knew more: that it took traffic is the safe guess.
    let takes_traffic = v1::Endpoint::decode(endpoint.body.clone())
        .map_or(true, |endpoint| takes_traffic(endpoint.state(), endpoint.weight));
    if takes_traffic { Registered::InService } else { Registered::OutOfService }
}
