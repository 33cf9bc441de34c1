//! What Beacons get of the registry: assignments, and the parts of the releases that they name or may have to
//! go back to. A release is published whole, as the bytes that its hash is of, or not at all; then what was
//! published of its service stays.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use bytes::Bytes;
use prost::Message;
use tower_common::{
    resource::{MAX_RESOURCE_BYTES, Origin, Resource, ResourceKey},
    store::Transaction,
};
use tower_proto::v1;

use super::{service::Service, state::State};

/// The id of the source that the log is.
pub const SOURCE: &str = "log";

/// What has been published.
#[derive(Debug, Default)]
pub struct Publication {
    scope: String,
    services: BTreeMap<Arc<str>, OfService>,
    problems: BTreeMap<String, String>,
}

#[derive(Debug, Default)]
struct OfService {
    assignment: Option<(v1::Assignment, Resource)>,
    /// The parts of each release. Their bytes are those of the store.
    releases: BTreeMap<String, Vec<Resource>>,
}

/// A bundle that is to be published, by the name of its release.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// The release.
    pub release: String,
    /// The hash of the body with its bundle.
    pub bundle: Bytes,
}

/// The bundles of releases by name, or why there is none.
pub type Bundles = BTreeMap<String, Result<Bytes, String>>;

impl Publication {
    /// Nothing is published yet in this scope.
    pub fn new(scope: &str) -> Self {
        Self { scope: scope.to_owned(), ..Self::default() }
    }

    /// Why services are not published as they should be.
    pub fn problems(&self) -> &BTreeMap<String, String> {
        &self.problems
    }

    /// The bundles without which a service cannot be published as it is now.
    pub fn wanted(&self, state: &State, name: &str) -> Vec<Wanted> {
        let Some(service) = state.service(name) else { return Vec::new() };
        let published = self.services.get(name);
        let is_new = |release: &&str| published.is_none_or(|p| !p.releases.contains_key(*release));
        let made =
            service.published().into_iter().filter(is_new).filter_map(|release| service.release(release));
        made.map(|made| Wanted { release: made.release.clone(), bundle: made.bundle.clone() }).collect()
    }

    /// Publishes a service as it is now: adds to a transaction what differs. If a bundle cannot be used, and
    /// the assignment needs it, all stays as it was, and the problem is noted.
    pub fn update(&mut self, state: &State, name: &str, bundles: &Bundles, transaction: &mut Transaction) {
        let gone = Service::default();
        let (name, service) = match state.entry(name) {
            Some((name, service)) => (name.clone(), &**service),
            // Another log does not know it.
            None => (Arc::from(name), &gone),
        };
        let name = &name;
        match self.parts(name, service, bundles) {
            Ok(new) => {
                self.problems.remove(&**name);
                self.replace(state.index(), name, service, new, transaction);
            }
            Err(problem) => {
                tracing::error!(
                    service = &**name,
                    problem,
                    "a service cannot be published, and stays as it was"
                );
                self.problems.insert(name.to_string(), problem);
            }
        }
    }

    /// The parts of the releases that are not published yet. One that is only kept for the way back may lack.
    fn parts(
        &self,
        name: &str,
        service: &Service,
        bundles: &Bundles,
    ) -> Result<BTreeMap<String, Vec<Resource>>, String> {
        let needed: BTreeSet<&str> = super::service::releases_of(&service.assignment).collect();
        let published = self.services.get(name);
        let mut new = BTreeMap::new();
        for release in service.published() {
            if published.is_some_and(|published| published.releases.contains_key(release)) {
                continue;
            }
            let index = service
                .releases
                .iter()
                .find(|record| record.made.as_ref().is_some_and(|made| made.release == release));
            let index = index.and_then(|record| record.stamp.as_ref()).map_or(0, |stamp| stamp.index);
            let parts = match bundles.get(release) {
                Some(Ok(bytes)) => parts(&self.scope, name, release, index, bytes),
                Some(Err(problem)) => Err(problem.clone()),
                None => Err("its bundle was not read".to_owned()),
            };
            match parts {
                Ok(parts) => {
                    new.insert(release.to_owned(), parts);
                }
                Err(problem) if needed.contains(release) => {
                    return Err(format!("release {release} is not published: {problem}"));
                }
                Err(problem) => {
                    tracing::warn!(
                        service = name,
                        release,
                        problem,
                        "a release for the way back is not published"
                    );
                }
            }
        }
        Ok(new)
    }

    fn replace(
        &mut self,
        index: u64,
        name: &Arc<str>,
        service: &Service,
        new: BTreeMap<String, Vec<Resource>>,
        transaction: &mut Transaction,
    ) {
        let held = self.services.entry(name.clone()).or_default();
        let gone = Origin { source: SOURCE.into(), index };
        for (release, parts) in new {
            transaction.upserts.extend(parts.iter().cloned());
            held.releases.insert(release, parts);
        }
        let published = service.published();
        held.releases.retain(|release, parts| {
            let stays = published.contains(release.as_str());
            if !stays {
                let keys = parts.iter().map(|part| part.key().clone());
                transaction.removals.extend(keys.map(|key| (key, gone.clone())));
            }
            stays
        });
        let assignment = Some(&service.assignment).filter(|it| **it != v1::Assignment::default());
        if held.assignment.as_ref().map(|(assignment, _)| assignment) == assignment {
            return;
        }
        let key = ResourceKey::new(&self.scope, v1::Kind::Assignment, name, "");
        held.assignment = assignment.map(|assignment| {
            let resource = assigning(&self.scope, name, service.etag, assignment);
            transaction.upserts.push(resource.clone());
            (assignment.clone(), resource)
        });
        if held.assignment.is_none() {
            transaction.removals.push((key, gone));
        }
    }

    /// The services of which something is, or was, published.
    pub fn services(&self) -> impl Iterator<Item = &str> {
        self.services.keys().map(|name| &**name)
    }

    /// All that is published.
    pub fn resources(&self) -> impl Iterator<Item = &Resource> {
        self.services.values().flat_map(|service| {
            let assignment = service.assignment.iter().map(|(_, resource)| resource);
            service.releases.values().flatten().chain(assignment)
        })
    }

    /// What these resources were published as.
    ///
    /// # Errors
    /// If one of them is none that is published here.
    pub fn of(scope: &str, resources: &[Resource]) -> Result<Self, String> {
        let mut publication = Self::new(scope);
        for resource in resources {
            let key = resource.key();
            let service = publication.services.entry(key.service.clone()).or_default();
            if key.kind == i32::from(v1::Kind::Assignment) {
                let assignment = v1::Assignment::decode(resource.body().clone());
                let assignment = assignment.map_err(|error| format!("{key}: {error}"))?;
                service.assignment = Some((assignment, resource.clone()));
            } else {
                let (release, _) = key.name.split_once('/').ok_or_else(|| format!("{key} is no part"))?;
                service.releases.entry(release.to_owned()).or_default().push(resource.clone());
            }
        }
        Ok(publication)
    }

    /// The assignment of a service, as it is published.
    pub fn assignment(&self, name: &str) -> Option<&v1::Assignment> {
        self.services.get(name)?.assignment.as_ref().map(|(assignment, _)| assignment)
    }
}

/// The parts of a release of a service, as they are published.
///
/// # Errors
/// If these bytes are no bundle, or one whose parts are too large.
pub fn parts(
    scope: &str,
    name: &str,
    release: &str,
    index: u64,
    bundle: &Bytes,
) -> Result<Vec<Resource>, String> {
    let bundle = v1::Bundle::decode(&bundle[..]).map_err(|error| format!("its bundle: {error}"))?;
    let part = |part: v1::bundle::Part| {
        let key = ResourceKey {
            scope: scope.into(),
            kind: part.kind,
            service: name.into(),
            name: format!("{release}/{}", part.name).into(),
        };
        let resource = Resource::new(key, Origin { source: SOURCE.into(), index }, part.body);
        let bytes = resource.encoded().len();
        if bytes > MAX_RESOURCE_BYTES {
            return Err(format!("{} has {bytes} bytes, more than {MAX_RESOURCE_BYTES}", resource.key()));
        }
        Ok(resource)
    };
    bundle.parts.into_iter().map(part).collect()
}

/// An assignment of a service, as it is published.
pub fn assigning(scope: &str, name: &str, index: u64, assignment: &v1::Assignment) -> Resource {
    let key = ResourceKey::new(scope, v1::Kind::Assignment, name, "");
    Resource::new(key, Origin { source: SOURCE.into(), index }, assignment.encode_to_vec().into())
}

#[cfg(test)]
mod tests {
    use tower_common::store::Store;

    use super::*;
    use crate::registry::tests::World;

    fn bundle(release: &str) -> Bytes {
        let part = |name: &str| v1::bundle::Part {
            kind: v1::Kind::Cluster.into(),
            name: name.into(),
            body: release.to_owned().into_bytes().into(),
        };
        v1::Bundle { parts: vec![part("web"), part("web/canary")] }.encode_to_vec().into()
    }

    fn publish(publication: &mut Publication, world: &World, store: &mut Store) -> Transaction {
        let wanted = publication.wanted(&world.state, "web");
        let bundles = wanted.into_iter().map(|wanted| {
            let bundle = Ok(bundle(&wanted.release));
            (wanted.release, bundle)
        });
        let mut transaction = Transaction::default();
        publication.update(&world.state, "web", &bundles.collect(), &mut transaction);
        store.apply(transaction.clone());
        transaction
    }

    fn names(store: &Store) -> Vec<String> {
        store.iter().map(|resource| resource.key().to_string()).collect()
    }

    #[test]
    fn an_upload_is_not_published_an_activation_is_and_a_step_is_the_assignment_alone() {
        let mut world = World::new();
        let (mut publication, mut store) = (Publication::new(""), Store::new());
        world.upload("web", "a");
        assert_eq!(publish(&mut publication, &world, &mut store), Transaction::default());
        let id = world.activate("web", 1, false);
        let first = publish(&mut publication, &world, &mut store);
        let release = world.state.service("web").unwrap().releases[0].made.clone().unwrap().release;
        assert_eq!(
            names(&store),
            [
                format!("CLUSTER web/{release}/web"),
                format!("CLUSTER web/{release}/web/canary"),
                "ASSIGNMENT web/".to_owned()
            ]
        );
        assert_eq!(first.upserts.len(), 3);
        world.step(&id, 1).unwrap();
        let step = publish(&mut publication, &world, &mut store);
        assert_eq!((step.upserts.len(), step.removals.len()), (1, 0));
        let body = store.get(step.upserts[0].key()).unwrap().body().clone();
        assert_eq!(v1::Assignment::decode(body).unwrap(), world.state.service("web").unwrap().assignment);
    }

    #[test]
    fn old_releases_go_and_the_way_back_stays() {
        let mut world = World::new();
        let (mut publication, mut store) = (Publication::new(""), Store::new());
        for text in ["a", "b", "c", "d", "e", "f"] {
            world.stand("web", text);
            publish(&mut publication, &world, &mut store);
        }
        assert_eq!(store.len(), 4 * 2 + 1, "the present release, and three before it");
        world.roll_back("web", None).unwrap();
        let back = publish(&mut publication, &world, &mut store);
        assert_eq!(back.upserts.len(), 1, "a way back needs no payload: {back:?}");
    }

    #[test]
    fn what_was_published_is_known_by_its_resources() {
        let mut world = World::new();
        let (mut publication, mut store) = (Publication::new(""), Store::new());
        for text in ["a", "b"] {
            world.stand("web", text);
            publish(&mut publication, &world, &mut store);
        }
        let resources: Vec<Resource> = publication.resources().cloned().collect();
        assert_eq!(resources.len(), store.len());
        let mut again = Publication::of("", &resources).unwrap();
        assert_eq!(publish(&mut again, &world, &mut store), Transaction::default());
    }

    #[test]
    fn what_cannot_be_read_is_not_published_and_what_was_stays() {
        let mut world = World::new();
        let (mut publication, mut store) = (Publication::new(""), Store::new());
        world.stand("web", "a");
        publish(&mut publication, &world, &mut store);
        world.stand("web", "b");
        let wanted = publication.wanted(&world.state, "web").remove(0).release;
        for bad in [Err("its bytes are not what its hash says".to_owned()), Ok(Bytes::from_static(&[0xff]))] {
            let mut transaction = Transaction::default();
            let bundles = [(wanted.clone(), bad)].into();
            publication.update(&world.state, "web", &bundles, &mut transaction);
            assert_eq!(transaction, Transaction::default());
            assert!(
                publication.problems()["web"].starts_with(&format!("release {wanted} is not published: its"))
            );
        }
        publish(&mut publication, &world, &mut store);
        assert!(publication.problems().is_empty());
        assert_eq!(publication.assignment("web"), Some(&world.state.service("web").unwrap().assignment));
    }
}
