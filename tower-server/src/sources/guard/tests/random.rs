//! Whatever happens, in whatever order.

use proptest::prelude::*;

use super::*;

/// What may happen.
#[derive(Debug, Clone, Copy)]
enum Step {
    Tell { service: u8, host: u8, registered: Registered },
    Wait { millis: u64 },
    Freeze,
    Reconnect,
    Release,
}

fn step() -> impl Strategy<Value = Step> {
    let registered = prop_oneof![
        4 => Just(Registered::No),
        1 => Just(Registered::OutOfService),
        5 => Just(Registered::InService),
    ];
    prop_oneof![
        20 => (0..3_u8, 0..12_u8, registered)
            .prop_map(|(service, host, registered)| Step::Tell { service, host, registered }),
        4 => (0..40_000_u64).prop_map(|millis| Step::Wait { millis }),
        2 => (0..700_u64).prop_map(|millis| Step::Wait { millis }),
        1 => Just(Step::Freeze),
        1 => Just(Step::Reconnect),
        1 => Just(Step::Release),
    ]
}

impl Fixture {
    fn take(&mut self, step: Step) {
        match step {
            Step::Tell { service, host, registered } => {
                // A service has addresses of its own, but for the last ones.
                let host = if host < 10 { host + 20 * service } else { 200 + host };
                self.tell(&key(&format!("s{service}"), host), registered);
                self.leave();
            }
            Step::Wait { millis } => self.wait(Duration::from_millis(millis)),
            Step::Freeze => self.frozen = true,
            Step::Reconnect => {
                if std::mem::take(&mut self.frozen) {
                    self.guard.reconnected(self.now);
                }
                self.leave();
            }
            Step::Release => {
                if let Some(id) = self.guard.holds.keys().next().copied() {
                    self.guard.release(id);
                }
                self.leave();
            }
        }
    }

    fn is_registered(&self, key: &EndpointKey) -> bool {
        self.registered.get(key).is_some_and(|registered| *registered != Registered::No)
    }
}

proptest! {
    #[test]
    fn what_is_published_is_registered_held_or_about_to_be_judged(
        steps in prop::collection::vec(step(), 0..120),
    ) {
        let mut fixture = Fixture::new(POLICY);
        for step in steps {
            let (held_before, ever_held) = (fixture.guard.holds.len(), fixture.guard.counters().held);
            let before = fixture.published.clone();
            fixture.take(step);
            for key in &fixture.published {
                let missing = fixture.guard.missing.contains_key(key);
                prop_assert_ne!(missing, fixture.is_registered(key), "{}/{}", key.service, key);
            }
            for hold in fixture.guard.holds.values() {
                for key in hold.endpoints.keys() {
                    prop_assert!(fixture.published.contains(key), "nothing held is unpublished");
                }
                let shrink = Shrink { largest: hold.largest, left: hold.left };
                prop_assert!(shrink.is_beyond_limit(), "no hold without a shrink: {:?}", shrink);
            }
            if fixture.frozen && matches!(step, Step::Wait { .. }) {
                prop_assert_eq!(&before, &fixture.published, "nothing leaves by time");
                prop_assert_eq!(ever_held, fixture.guard.counters().held);
            }
            if let Step::Tell { registered: Registered::InService | Registered::OutOfService, .. } = step {
                prop_assert!(fixture.guard.holds.len() <= held_before, "no hold begins by an addition");
            }
            prop_assert_eq!(fixture.guard.holding.len(), fixture.guard.holds.len());
            let addresses: usize = fixture.guard.addresses.values().map(BTreeSet::len).sum();
            prop_assert_eq!(addresses, fixture.guard.missing.len());
        }
        fixture.take(Step::Reconnect);
        fixture.wait(HOLD.max(POLICY.window) + SETTLE);
        let registered: BTreeSet<EndpointKey> =
            fixture.registered.keys().filter(|key| fixture.is_registered(key)).cloned().collect();
        prop_assert_eq!(&fixture.published, &registered, "in the end it is what is registered");
        prop_assert_eq!(fixture.held(), (0, 0));
        fixture.wait(POLICY.window * 2);
        let in_service =
            |key: &EndpointKey| fixture.registered[key] == Registered::InService;
        for service in fixture.guard.services.keys().cloned().collect::<Vec<_>>() {
            let left = registered.iter().filter(|key| key.service == service && in_service(key)).count();
            let shrink = fixture.guard.shrink(&Scope::Service(service), fixture.now);
            prop_assert_eq!(shrink, Shrink { largest: left as u64, left: left as u64 });
        }
        fixture.guard.tidy(fixture.now);
        for service in fixture.guard.services.keys() {
            prop_assert!(registered.iter().any(|key| key.service == *service));
        }
    }

    #[test]
    fn what_was_announced_leaves_at_once(total in 1..30_u8, announced in 1..30_u8) {
        let announced = announced.min(total);
        let mut fixture = Fixture::with(total);
        fixture.announce("web", 0..announced);
        fixture.deregister("web", 0..announced);
        prop_assert_eq!(fixture.published("web"), usize::from(total - announced));
        prop_assert_eq!(fixture.guard.counters(), Counters::default());
    }
}
