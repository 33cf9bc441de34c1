use tower_common::{resource::Version, view::Part};

use super::*;
use crate::xds::standing::Trouble;

const KINDS: [PartKind; 3] = [PartKind::Cluster, PartKind::Piece, PartKind::Listener];

fn held() -> Arc<Held> {
    let part = |kind| Part { kind, name: "web".into(), version: Version::default() };
    Arc::new(Held {
        assigned: Some("r1".into()),
        served: "r1".into(),
        parts: KINDS.map(part).into(),
        ..Held::default()
    })
}

/// Parts by their places in the list.
fn parts(indexes: &[usize]) -> Parts {
    (0..3).filter(|index| !indexes.contains(index)).fold(Parts::first(3), Parts::without)
}

fn standing(asked: &[usize], accepted: &[usize]) -> Standing {
    let (asked, accepted) = (parts(asked), parts(accepted));
    Standing { held: held(), asked, accepted, exempt: parts(&[]), trouble: None }
}

fn trouble(reason: Reason) -> Option<Trouble> {
    let (name, message) = ("web".into(), "no".into());
    Some(Trouble { reason, kind: ResourceType::Cluster, name, message })
}

/// The state of the service, with streams of (node, is gRPC, types, standing).
fn state(streams: &[(&str, bool, &[ResourceType], Option<Standing>)]) -> (ReleaseState, String) {
    let clients = Clients::new();
    clients.shared.change_standings(|all| {
        for (number, (node, is_grpc, types, standing)) in (0..).zip(streams) {
            let mut stream = StreamStandings::new(node, *is_grpc);
            stream.types.extend(*types);
            stream.change(vec![("web".into(), standing.clone())]);
            all.insert(number, stream);
        }
    });
    let held = [("web".into(), held())].into();
    let status = clients.releases(&held).remove(0);
    (status.state, status.trouble.map(|trouble| trouble.client).unwrap_or_default())
}

fn plain(state: ReleaseState) -> (ReleaseState, String) {
    (state, String::new())
}

use ReleaseState::{Accepted, Applied, Host, Pending, Rejected, Unknown};
use ResourceType::{Cluster, Listener, Route};

const ALL: &[ResourceType] = &[Cluster, Listener, Route];

#[test]
fn it_is_accepted_when_every_envoy_has_accepted_all_of_it() {
    let (done, open) = (standing(&[0, 1, 2], &[0, 1, 2]), standing(&[0, 1, 2], &[0, 1]));
    assert_eq!(state(&[]), plain(Applied));
    assert_eq!(state(&[("a", false, ALL, Some(done.clone()))]), plain(Accepted));
    assert_eq!(state(&[("a", false, ALL, Some(open.clone()))]), plain(Pending));
    assert_eq!(
        state(&[("a", false, ALL, Some(done.clone())), ("b", false, ALL, Some(open))]),
        plain(Pending)
    );
    assert_eq!(state(&[("a", false, ALL, Some(done)), ("b", false, ALL, None)]), plain(Pending), "new");
}

#[test]
fn an_envoy_that_has_just_begun_has_accepted_nothing() {
    assert_eq!(state(&[("a", false, &[], Some(standing(&[], &[])))]), plain(Pending));
    assert_eq!(state(&[("a", false, &[Cluster], Some(standing(&[0], &[0])))]), plain(Pending));
    // One that takes no listeners from here need not take this one.
    assert_eq!(state(&[("a", false, &[Cluster, Route], Some(standing(&[0, 1], &[0, 1])))]), plain(Accepted));
    let exempt = Standing { exempt: parts(&[2]), ..standing(&[0, 1], &[0, 1]) };
    assert_eq!(state(&[("a", false, ALL, Some(exempt))]), plain(Accepted));
}

#[test]
fn the_streams_of_a_client_are_put_together() {
    let per_type: [(&str, bool, &[ResourceType], Option<Standing>); 3] = [
        ("a", false, &[Cluster], Some(standing(&[0], &[0]))),
        ("a", false, &[Route], Some(standing(&[1], &[1]))),
        ("a", false, &[Listener], Some(standing(&[2], &[2]))),
    ];
    assert_eq!(state(&per_type), plain(Accepted));
    assert_eq!(state(&per_type[..1]), plain(Pending));
    assert_eq!(state(&per_type[..2]), plain(Accepted));
}

#[test]
fn grpc_has_to_accept_what_it_asks_for() {
    assert_eq!(state(&[("g", true, &[Listener], Some(standing(&[], &[])))]), plain(Applied));
    assert_eq!(state(&[("g", true, ALL, Some(standing(&[0, 1], &[0])))]), plain(Pending));
    assert_eq!(state(&[("g", true, ALL, Some(standing(&[0, 1], &[0, 1])))]), plain(Accepted));
}

#[test]
fn the_worst_is_told_and_whose_it_is() {
    let with = |reason| Some(Standing { trouble: trouble(reason), ..standing(&[0, 1, 2], &[1, 2]) });
    let open = Some(standing(&[0, 1, 2], &[]));
    let (host, content) = (with(Reason::Host), with(Reason::Content));
    assert_eq!(
        state(&[("a", false, ALL, open.clone()), ("b", false, ALL, host.clone())]),
        (Host, "b".into())
    );
    let all = [("a", false, ALL, host), ("b", false, ALL, content.clone()), ("c", false, ALL, open)];
    assert_eq!(state(&all), (Rejected, "b".into()));
    // On whichever of its streams it is.
    assert_eq!(
        state(&[("a", false, &[Cluster], content), ("a", false, &[Route], None)]),
        (Rejected, "a".into())
    );
}

#[test]
fn what_a_stream_says_of_an_older_release_does_not_count() {
    let older = Arc::new(Held { served: "r0".into(), ..(*held()).clone() });
    let standing = Standing { held: older, trouble: trouble(Reason::Content), ..standing(&[0], &[0]) };
    assert_eq!(state(&[("a", false, ALL, Some(standing))]), plain(Pending));
}

#[test]
fn what_cannot_be_composed_is_told_with_its_reason() {
    let problem = Held { problem: Some("no part".into()), assigned: None, ..(*held()).clone() };
    let status = Clients::new().releases(&[("web".into(), Arc::new(problem))].into()).remove(0);
    assert_eq!((status.state, status.release.as_deref(), status.served.as_str()), (Unknown, None, "r1"));
    let reported = status.to_proto();
    assert_eq!((reported.error.as_str(), reported.release.as_str()), ("no part", ""));
    assert_eq!(reported.state(), v1::held_release::State::Unknown);
}
