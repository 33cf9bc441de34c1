//! Whether a complete reading may replace what is known.

use super::{Load, Model, Position, quarantine};

/// Whether a complete reading may replace what is known.
pub(super) enum Verdict {
    Continues(Position),
    Quarantined(String),
}

impl Model {
    /// A complete reading of another history, of an earlier time, or of nothing at all, is no continuation:
    /// it would take away what is known, when a folder was deleted by mistake, or an ensemble restored from
    /// a backup.
    pub(super) fn judge(&self, load: &Load) -> Verdict {
        let Some(held) = &self.position else {
            let incarnation = load.incarnation.clone().unwrap_or_default();
            return Verdict::Continues(Position { incarnation, index: load.index });
        };
        let nothing_to_lose = || self.registrations.is_empty();
        let quarantined = |what: String| {
            let found = load.incarnation.as_deref().unwrap_or(quarantine::NOTHING);
            Verdict::Quarantined(format!(
                "{what}; what is known stays; if that is meant, adopt it: \
                 POST /api/v1/sources/{}/adopt {{\"incarnation\": {found:?}}}",
                self.id
            ))
        };
        match &load.incarnation {
            Some(found) if quarantine::same_history(held, found) => {
                match self.went_back(held, load).filter(|_| !nothing_to_lose()) {
                    Some(what) => quarantined(what),
                    None => Verdict::Continues(Position {
                        index: held.index.max(load.index),
                        incarnation: held.incarnation.clone(),
                    }),
                }
            }
            Some(found) if nothing_to_lose() => {
                Verdict::Continues(Position { incarnation: found.clone(), index: load.index })
            }
            Some(found) => quarantined(format!(
                "incarnation {found:?} was found where {:?} was read before",
                held.incarnation
            )),
            // The position stays, so that nothing that was said before counts for less.
            None if nothing_to_lose() => Verdict::Continues(held.clone()),
            None => {
                quarantined(load.warning.clone().unwrap_or_else(|| "what was read before is gone".to_owned()))
            }
        }
    }

    /// How a reading shows an earlier time of the same history, if it does.
    fn went_back(&self, held: &Position, load: &Load) -> Option<String> {
        if let Some(path) = self.registrations.went_back(&load.places, &load.entries) {
            return Some(format!(
                "{path} is older than it was: incarnation {:?} went back, from position {} to {}",
                held.incarnation, held.index, load.index
            ));
        }
        (load.index < held.index && !load.partial).then(|| {
            format!(
                "position {} was found where {} was read before, of incarnation {:?}",
                load.index, held.index, held.incarnation
            )
        })
    }
}
