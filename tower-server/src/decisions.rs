//! What operators decide about sources, carried out: a decision is an entry of the event log, and every Tower that
//! reads it does to its own sources what it says.
//!
//! A hold has another id on each Tower, because each sees a shrink at its own moment. What is in the log is what
//! shrank and when: a release lets go what is held of that since then, and nothing that is held since later
//! than the release, so no old entry ever touches a new loss.

use std::{
    collections::VecDeque,
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::sync::watch;
use tower_common::clock;
use tower_proto::v1::{self, event::Event};

use crate::{
    escape::{escape, unescape},
    registry::{LogState, Registry},
    sources::{SourceHandle, report::HoldReport},
};

/// Towers see a shrink, or another history, at different moments, and their clocks differ.
const SKEW: Duration = Duration::from_secs(30);

/// How often a decision is tried again that does not apply here, or not yet.
const AGAIN: Duration = Duration::from_millis(500);

/// Entries that are read at once.
const BATCH: usize = 500;

/// Stands for the whole source, where else a service is named.
const WHOLE: &str = "*";

/// What is to be done to a source.
#[derive(Debug, Clone, PartialEq, Eq)]
enum What {
    /// Let go what is held of this service, or of the whole source, since this time at the latest.
    Release { service: Option<String>, until_unix_ms: u64 },
    /// Believe this history.
    Adopt { incarnation: String },
}

/// A decision, by whom and why.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Decision {
    source: String,
    what: What,
    from: String,
    reason: String,
}

/// How a hold is called in the log: by what shrank, and when this Tower saw it.
pub fn id_in_log(hold: &HoldReport) -> String {
    let service = hold.service.as_deref().map_or_else(|| WHOLE.to_owned(), escape);
    format!("{}:{service}@{}", escape(&hold.source), hold.since_unix_ms)
}

/// Up to which entry decisions have been carried out here, if they apply here.
#[derive(Debug, Clone)]
pub struct CarriedOut(watch::Receiver<u64>);

impl CarriedOut {
    /// Waits until the entry with this index is.
    pub async fn wait_for(&mut self, index: u64) {
        // An error says that Tower is stopping; what is in the log is done at the next start.
        let _ = self.0.wait_for(|done| *done >= index).await;
    }
}

/// Carries out decisions about these sources from now on: first those of which a restart may have got in the
/// way, then what comes.
pub fn follow(registry: Registry, sources: Arc<Vec<SourceHandle>>) -> CarriedOut {
    let (done, carried_out) = watch::channel(0);
    actix::spawn(run(registry, sources, done));
    CarriedOut(carried_out)
}

async fn run(registry: Registry, sources: Arc<Vec<SourceHandle>>, done: watch::Sender<u64>) {
    let mut status = registry.status();
    if status.wait_for(|status| status.state == LogState::Live).await.is_err() {
        return;
    }
    let state = registry.state();
    for (id, record) in &state.mesh().holds {
        if let Some(decision) = record.released.as_ref().and_then(|stamp| release(&record.source, id, stamp))
        {
            carry_out(&sources, &decision).await;
        }
    }
    let mut at = state.index();
    drop(state);
    done.send_replace(at);
    let mut applied = registry.applied();
    // Decisions that did not apply here when they came, and until when they may yet.
    let mut pending: VecDeque<(Decision, Instant)> = VecDeque::new();
    loop {
        tokio::select! {
            changed = applied.wait_for(|applied| *applied > at) => if changed.is_err() { return },
            () = tokio::time::sleep(AGAIN), if !pending.is_empty() => {
                let now = clock::monotonic();
                for _ in 0..pending.len() {
                    let Some((decision, until)) = pending.pop_front() else { break };
                    if !carry_out(&sources, &decision).await && until > now {
                        pending.push_back((decision, until));
                    }
                }
                continue;
            }
        }
        let entries = match registry.entries(at + 1, BATCH).await {
            Ok(entries) => entries,
            Err(error) => {
                tracing::error!(%error, "decisions about sources cannot be read");
                tokio::time::sleep(AGAIN).await;
                continue;
            }
        };
        for entry in entries {
            for decision in decisions(&entry) {
                if !carry_out(&sources, &decision).await {
                    pending.push_back((decision, clock::monotonic() + SKEW));
                }
            }
            at = entry.index;
            done.send_replace(at);
        }
    }
}

/// The decisions about sources in an entry.
fn decisions(entry: &v1::LogEntry) -> impl Iterator<Item = Decision> {
    let stamp = v1::Stamp {
        index: entry.index,
        time_ms: entry.time_ms,
        actor: entry.actor.clone(),
        reason: entry.reason.clone(),
    };
    entry.events.iter().filter_map(move |event| match event.event.as_ref()? {
        Event::HoldReleased(it) => release(&it.source, &it.hold, &stamp),
        Event::SourceAdopted(it) => Some(Decision {
            source: it.source.clone(),
            what: What::Adopt { incarnation: it.incarnation.clone() },
            from: from(&stamp),
            reason: stamp.reason.clone(),
        }),
        _ => None,
    })
}

fn release(source: &str, hold: &str, stamp: &v1::Stamp) -> Option<Decision> {
    let (service, since) = hold.strip_prefix(&format!("{}:", escape(source)))?.rsplit_once('@')?;
    let service = if service == WHOLE { None } else { Some(unescape(service)?) };
    let since: u64 = since.parse().ok()?;
    let skew = u64::try_from(SKEW.as_millis()).unwrap_or(u64::MAX);
    // Another Tower may have seen the same loss a little later.
    let until_unix_ms = since.saturating_add(skew).min(stamp.time_ms);
    Some(Decision {
        source: source.to_owned(),
        what: What::Release { service, until_unix_ms },
        from: from(stamp),
        reason: stamp.reason.clone(),
    })
}

fn from(stamp: &v1::Stamp) -> String {
    let actor = stamp.actor.clone().unwrap_or_default();
    format!("{} ({})", actor.name, actor.address)
}

/// Returns whether there was something to do, and it is done.
async fn carry_out(sources: &[SourceHandle], decision: &Decision) -> bool {
    let Decision { source, what, from, reason } = decision;
    let Some(source) = sources.iter().find(|handle| handle.id() == source) else { return false };
    match what {
        What::Release { service, until_unix_ms } => {
            let holds = source.describe().await.holds;
            let meant = |hold: &&HoldReport| hold.service == *service && hold.since_unix_ms <= *until_unix_ms;
            let mut released = false;
            for hold in holds.iter().filter(meant) {
                match source.release(&hold.id, from, reason).await {
                    Ok(_) => released = true,
                    Err(error) => tracing::warn!(source = source.id(), %error, "a hold is not released"),
                }
            }
            released
        }
        What::Adopt { incarnation } => match source.adopt(incarnation, from, reason).await {
            Ok(_) => true,
            Err(error) => {
                tracing::debug!(source = source.id(), %error, "nothing is adopted here");
                false
            }
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hold(service: Option<&str>) -> HoldReport {
        HoldReport {
            id: "zk-1".into(),
            source: "zk".into(),
            service: service.map(str::to_owned),
            since_unix_ms: 1000,
            ends_unix_ms: 61_000,
            largest: 20,
            left: 2,
            endpoint_count: 18,
            endpoints: Vec::new(),
        }
    }

    #[test]
    fn a_release_names_what_shrank_and_touches_nothing_that_is_held_later() {
        let stamp = v1::Stamp { time_ms: 5000, ..Default::default() };
        let late = v1::Stamp { time_ms: 500_000, ..Default::default() };
        for service in [None, Some("web"), Some("a@b"), Some("a: b/c")] {
            let decision = release("zk", &id_in_log(&hold(service)), &stamp).unwrap();
            let What::Release { service: found, until_unix_ms } = decision.what else { panic!("a release") };
            assert_eq!(
                (found.as_deref(), until_unix_ms),
                (service, 5000),
                "not what is held after the release"
            );
            let decision = release("zk", &id_in_log(&hold(service)), &late).unwrap();
            let What::Release { until_unix_ms, .. } = decision.what else { panic!("a release") };
            assert_eq!(until_unix_ms, 31_000, "nor what is held since long after that hold");
        }
        assert_eq!(release("zk", "zk-1", &stamp), None);
    }

    #[test]
    fn decisions_are_read_from_entries_with_who_and_why() {
        let event = |event| v1::Event { service: String::new(), event: Some(event) };
        let entry = v1::LogEntry {
            index: 7,
            time_ms: 5000,
            reason: "they are gone".into(),
            actor: Some(v1::Actor { name: "ann".into(), address: "10.0.0.1:9".into(), ..Default::default() }),
            events: vec![
                event(Event::HoldReleased(v1::HoldReleased {
                    source: "zk".into(),
                    hold: "zk:web@1000".into(),
                })),
                event(Event::TokenRevoked(v1::TokenRevoked { id: "t".into() })),
                event(Event::SourceAdopted(v1::SourceAdopted {
                    source: "zk".into(),
                    incarnation: "c-1".into(),
                })),
            ],
            ..Default::default()
        };
        let found: Vec<_> = decisions(&entry).collect();
        assert_eq!(found.len(), 2);
        assert_eq!((&*found[0].from, &*found[0].reason), ("ann (10.0.0.1:9)", "they are gone"));
        assert_eq!(found[1].what, What::Adopt { incarnation: "c-1".into() });
    }
}
