//! What Tower has been told of releases, and what is news.

use std::collections::BTreeMap;

use prost::Message;
use tower_proto::v1::{self, held_release::State};

use super::ONE_ERROR_BYTES;
use crate::xds::clients::ReleaseStatus;

/// What a report says of releases, at most, in bytes. What does not fit is in the next.
pub(super) const BYTES: usize = 96 << 10;

/// What has been reported on a stream, and what is to be.
#[derive(Debug, Default)]
pub(super) struct Releases {
    reported: BTreeMap<String, v1::HeldRelease>,
    now: BTreeMap<String, v1::HeldRelease>,
    /// There was more than fitted.
    more: bool,
}

impl Releases {
    /// Takes in how releases are now. Of a service without an assignment any more it is reported that it has no
    /// state, if it had one.
    pub(super) fn update(&mut self, now: &[ReleaseStatus]) {
        let mut gone = BTreeMap::new();
        let reported = now.iter().map(|status| {
            let mut held = status.to_proto();
            held.error.truncate(held.error.floor_char_boundary(ONE_ERROR_BYTES));
            (held.service.clone(), held)
        });
        self.now = reported.collect();
        for service in self.reported.keys().filter(|service| !self.now.contains_key(*service)) {
            gone.insert(service.clone(), v1::HeldRelease { service: service.clone(), ..Default::default() });
        }
        self.now.extend(gone);
    }

    /// What differs from what was reported, as far as it fits into a report.
    pub(super) fn news(&mut self) -> Vec<v1::HeldRelease> {
        let mut left = BYTES;
        let mut news = Vec::new();
        self.more = false;
        for held in self.now.values().filter(|held| self.reported.get(&held.service) != Some(held)) {
            // With its key and length.
            let bytes = held.encoded_len() + 8;
            if bytes > left {
                self.more = true;
                break;
            }
            left -= bytes;
            news.push(held.clone());
        }
        news
    }

    /// Whether there was more than fitted into the last report.
    pub(super) fn has_more(&self) -> bool {
        self.more
    }

    /// Notes what was reported.
    pub(super) fn sent(&mut self, news: Vec<v1::HeldRelease>) {
        for held in news {
            if held.state() == State::Unspecified {
                self.now.remove(&held.service);
                self.reported.remove(&held.service);
            } else {
                self.reported.insert(held.service.clone(), held);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::xds::clients::{ReleaseState, ReleaseTrouble};

    fn status(service: &str, state: ReleaseState, error: &str) -> ReleaseStatus {
        ReleaseStatus {
            service: service.to_owned(),
            release: Some("r1".to_owned()),
            served: "r1".to_owned(),
            state,
            trouble: Some(ReleaseTrouble { error: error.to_owned(), ..ReleaseTrouble::default() }),
            notes: Vec::new(),
        }
    }

    #[test]
    fn everything_is_told_once_and_then_what_changes() {
        let mut releases = Releases::default();
        let both = ["a", "b"].map(|service| status(service, ReleaseState::Pending, ""));
        releases.update(&both);
        let news = releases.news();
        assert_eq!(news.len(), 2);
        assert_eq!(releases.news(), news, "it was not sent");
        releases.sent(news);
        assert!(releases.news().is_empty());
        releases.update(&[status("a", ReleaseState::Accepted, ""), both[1].clone()]);
        let news = releases.news();
        assert_eq!((news.len(), news[0].service.as_str()), (1, "a"));
        assert_eq!(news[0].state(), State::Accepted);
        releases.sent(news);
        // One that is gone is news, once, and so is one that comes back as it was.
        releases.update(&both[1..]);
        let news = releases.news();
        assert_eq!((news.len(), news[0].service.as_str(), news[0].state()), (1, "a", State::Unspecified));
        releases.sent(news);
        assert!(releases.news().is_empty());
        releases.update(&[status("a", ReleaseState::Accepted, ""), both[1].clone()]);
        assert_eq!(releases.news().len(), 1);
    }

    #[test]
    fn what_does_not_fit_is_in_the_next() {
        let mut releases = Releases::default();
        let all: Vec<ReleaseStatus> = (0..2000)
            .map(|number| status(&format!("s{number:04}"), ReleaseState::Rejected, &"ü".repeat(4000)))
            .collect();
        releases.update(&all);
        let mut told = 0;
        for reports in 1.. {
            let news = releases.news();
            let report = v1::Report { releases: news.clone(), ..Default::default() };
            assert!(report.encoded_len() <= BYTES, "{}", report.encoded_len());
            told += news.len();
            releases.sent(news);
            if !releases.has_more() {
                assert_eq!(told, 2000);
                assert!((20..25).contains(&reports), "{reports}");
                return;
            }
        }
    }
}
