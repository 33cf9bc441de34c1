//! Deliveries that follow each other on a stream, as one.

use std::collections::BTreeSet;

use tower_proto::v1;

use super::{Delivery, DeliveryError, Scope};
use crate::{resource::ResourceKey, store::Transaction};

impl Delivery {
    /// Makes one of this delivery and the next one of its stream.
    ///
    /// # Errors
    /// If what the next one is everything of cannot be told together with this. This is as it was then.
    pub fn merge(&mut self, next: Self) -> Result<(), DeliveryError> {
        if let Scope::Sources(read) = &next.scope {
            // What was told of them before is in the next one, or gone.
            match &mut self.scope {
                Scope::Everything => {}
                Scope::Changes => self.scope = Scope::Sources(read.clone()),
                Scope::Sources(sources) => sources.extend(read.iter().cloned()),
                Scope::Buckets { .. } => return Err(DeliveryError::Apart),
            }
            let read_anew = |source: &str| read.iter().any(|read| read == source);
            self.transaction.upserts.retain(|resource| !read_anew(&resource.origin().source));
        }
        match next.scope {
            Scope::Changes | Scope::Sources(_) => {}
            Scope::Buckets { .. } => return Err(DeliveryError::Apart),
            Scope::Everything => {
                *self = next;
                return Ok(());
            }
        }
        let Transaction { upserts, removals, sources } = next.transaction;
        let gone = removals.iter().map(|(key, _)| key);
        let told_anew: BTreeSet<&ResourceKey> =
            gone.chain(upserts.iter().map(|resource| resource.key())).collect();
        self.transaction.upserts.retain(|resource| !told_anew.contains(resource.key()));
        self.transaction.removals.extend(removals);
        self.transaction.upserts.extend(upserts);
        self.move_sources(sources);
        (self.to_revision, self.digest) = (next.to_revision, next.digest);
        Ok(())
    }

    /// Notes where sources are now.
    pub fn move_sources(&mut self, moved: Vec<v1::SourceStatus>) {
        let sources = &mut self.transaction.sources;
        sources.retain(|status| !moved.iter().any(|moved| moved.source == status.source));
        sources.extend(moved);
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::{
        digest::bucket_of,
        resource::{Origin, Resource},
        standing::Standing,
        store::Store,
    };

    fn resource(name: &str) -> Resource {
        let key = ResourceKey::new("", v1::Kind::Endpoint, "web", name);
        Resource::new(key, Origin { source: "zk".into(), index: 1 }, Bytes::new())
    }

    fn transaction(upserts: &[&str], removals: &[&str]) -> Transaction {
        let gone = |name: &&str| (resource(name).key().clone(), resource(name).origin().clone());
        Transaction {
            upserts: upserts.iter().map(|name| resource(name)).collect(),
            removals: removals.iter().map(gone).collect(),
            sources: Vec::new(),
        }
    }

    fn held(names: &[&str]) -> Store {
        let mut store = Store::new();
        store.apply(transaction(names, &[]));
        store
    }

    fn follow(_: &str) -> Standing {
        Standing::Follow
    }

    /// What a store that holds `a` and `b` is after deliveries, applied one by one and as one.
    fn check_merged(deliveries: &[(Scope, &[&str], &[&str])]) -> Result<Vec<String>, DeliveryError> {
        let make = |(scope, upserts, removals): &(Scope, &[&str], &[&str])| Delivery {
            scope: scope.clone(),
            transaction: transaction(upserts, removals),
            ..Delivery::default()
        };
        let (mut one_by_one, mut as_one) = (held(&["a", "b"]), held(&["a", "b"]));
        for delivery in deliveries {
            make(delivery).apply(&mut one_by_one, follow);
        }
        let mut merged = make(&deliveries[0]);
        for next in &deliveries[1..] {
            merged.merge(make(next))?;
        }
        merged.apply(&mut as_one, follow);
        assert_eq!(as_one.digest(), one_by_one.digest(), "{deliveries:?}");
        Ok(as_one.iter().map(|resource| resource.key().name.to_string()).collect())
    }

    #[test]
    fn deliveries_that_follow_each_other_can_be_one() {
        let check = |deliveries: &[(Scope, &[&str], &[&str])], expected: &[&str]| {
            assert_eq!(check_merged(deliveries).unwrap(), expected, "{deliveries:?}");
        };
        let zk = || Scope::Sources(vec!["zk".into()]);
        check(&[(Scope::Changes, &["c"], &["a"]), (Scope::Changes, &["a"], &["c", "b"])], &["a"]);
        check(&[(Scope::Everything, &["c"], &[]), (Scope::Changes, &["d"], &["c"])], &["d"]);
        check(&[(Scope::Changes, &["c"], &[]), (Scope::Everything, &["d"], &[])], &["d"]);
        check(
            &[(Scope::Changes, &["c"], &[]), (zk(), &["b"], &[]), (Scope::Changes, &["d"], &[])],
            &["b", "d"],
        );
        check(&[(Scope::Everything, &["c"], &[]), (zk(), &["d"], &[])], &["d"]);
        let mut numbers: Vec<u32> = ["a", "b"].map(|name| bucket_of(resource(name).key(), 1024)).into();
        numbers.sort_unstable();
        let buckets = || Scope::Buckets { count: 1024, numbers: numbers.clone() };
        check(&[(buckets(), &["b"], &[]), (Scope::Changes, &["c"], &["b"])], &["c"]);
        for apart in [zk(), buckets()] {
            let deliveries: [(Scope, &[&str], &[&str]); 2] = [(buckets(), &["b"], &[]), (apart, &["d"], &[])];
            assert!(check_merged(&deliveries).is_err());
        }
    }

    #[test]
    fn a_merged_delivery_is_of_its_last_moment() {
        let status = |index| v1::SourceStatus {
            source: "zk".into(),
            position: Some(v1::Position { index, ..Default::default() }),
            ..Default::default()
        };
        let at = |revision, index| Delivery {
            to_revision: revision,
            transaction: Transaction { sources: vec![status(index)], ..Default::default() },
            ..Default::default()
        };
        let mut merged = at(1, 5);
        merged.merge(at(2, 6)).unwrap();
        assert_eq!((merged.to_revision, &merged.transaction.sources), (2, &vec![status(6)]));
        merged.move_sources(vec![status(7)]);
        assert_eq!(merged.transaction.sources, [status(7)]);
    }
}
