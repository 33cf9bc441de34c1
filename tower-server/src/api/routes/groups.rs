//! How many hosts are how: all of them, and those that have something in common.

use std::{cmp::Reverse, collections::BTreeMap, sync::Arc};

use tower_common::api::{
    fleet::{Fleet, HostCounts, HostGroup, HostGroups, HostState},
    source::Refusal,
};

use crate::{api::told::fleet as words, fleet::Host};

/// How many groups are told of each kind.
const MAX_GROUPS: usize = 200;

/// How many labels are told.
const MAX_LABELS: usize = 20;

type Counted = BTreeMap<String, HostCounts>;

/// How hosts are.
pub(super) fn fleet(hosts: &[Arc<Host>], refused: Vec<Refusal>) -> Fleet {
    let mut all = HostCounts::default();
    let (mut zones, mut workloads) = (Counted::new(), Counted::new());
    let mut labels: BTreeMap<&str, Counted> = BTreeMap::new();
    for host in hosts {
        let state = words::condition(host.condition());
        count(&mut all, state);
        count(zones.entry(host.facts.zone.clone()).or_default(), state);
        for workload in words::workloads(host) {
            count(workloads.entry(workload).or_default(), state);
        }
        for (key, value) in &host.facts.labels {
            if labels.len() < MAX_LABELS || labels.contains_key(key.as_str()) {
                count(labels.entry(key).or_default().entry(value.clone()).or_default(), state);
            }
        }
    }
    Fleet {
        hosts: all,
        zones: groups(zones),
        workloads: groups(workloads),
        labels: labels.into_iter().map(|(key, values)| (key.to_owned(), groups(values))).collect(),
        refused,
    }
}

fn count(counts: &mut HostCounts, state: HostState) {
    counts.total += 1;
    let of_state = match state {
        HostState::OnTarget => &mut counts.on_target,
        HostState::Lagging => &mut counts.lagging,
        HostState::Rejected => &mut counts.rejected,
        HostState::NoEnvoy => &mut counts.no_envoy,
        HostState::Silent => &mut counts.silent,
    };
    *of_state += 1;
}

/// The groups that matter most, by name.
fn groups(counted: Counted) -> HostGroups {
    let left_out = counted.len().saturating_sub(MAX_GROUPS) as u64;
    let mut groups: Vec<_> = counted.into_iter().map(|(name, hosts)| HostGroup { name, hosts }).collect();
    if left_out > 0 {
        groups.sort_by_key(|group| Reverse((group.hosts.rejected > 0, group.hosts.total)));
        groups.truncate(MAX_GROUPS);
        groups.sort_by(|a, b| a.name.cmp(&b.name));
    }
    HostGroups { groups, left_out }
}

#[cfg(test)]
mod tests {
    use tower_proto::v1;

    use super::*;

    fn host(number: usize, zone: &str, rejects: bool) -> Arc<Host> {
        let fleet = crate::fleet::Fleet::default();
        let id = format!("h{number}");
        let workload = v1::Workload { service: "web".into(), cluster: "a".into() };
        let labels = [("rack".to_owned(), format!("r{number:03}"))].into();
        let node = v1::Node {
            id: id.clone(),
            zone: zone.into(),
            labels,
            workloads: vec![workload],
            ..Default::default()
        };
        fleet.connect(&node, 1);
        let state =
            if rejects { v1::held_release::State::Rejected } else { v1::held_release::State::Accepted };
        let held = v1::HeldRelease { service: "web".into(), state: state.into(), ..Default::default() };
        fleet.report(&id, 1, &v1::Report { revision: 1, releases: vec![held], ..Default::default() });
        fleet.host(&id).unwrap()
    }

    #[test]
    fn hosts_are_counted_by_what_they_have_in_common() {
        let hosts = [host(1, "a", false), host(2, "a", true), host(3, "b", false)];
        let told = fleet(&hosts, Vec::new());
        assert_eq!((told.hosts.total, told.hosts.on_target, told.hosts.rejected), (3, 2, 1));
        let zones: Vec<_> = told
            .zones
            .groups
            .iter()
            .map(|zone| (&*zone.name, zone.hosts.total, zone.hosts.rejected))
            .collect();
        assert_eq!(zones, [("a", 2, 1), ("b", 1, 0)]);
        assert_eq!(
            (told.workloads.groups[0].name.as_str(), told.workloads.groups[0].hosts.total),
            ("web/a", 3)
        );
        assert_eq!(told.labels["rack"].groups.len(), 3);
    }

    #[test]
    fn of_many_groups_those_are_told_in_which_something_is_wrong() {
        let hosts: Vec<_> = (0..250).map(|number| host(number, "a", number == 249)).collect();
        let told = fleet(&hosts, Vec::new());
        let racks = &told.labels["rack"];
        assert_eq!((racks.groups.len(), racks.left_out), (200, 50));
        assert!(racks.groups.iter().any(|group| group.name == "r249"));
        assert!(racks.groups.is_sorted_by_key(|group| &group.name));
    }
}
