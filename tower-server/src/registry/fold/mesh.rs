//! Tokens, what the guard holds, what was adopted, and the feature level.

use tower_common::FEATURE_LEVEL;
use tower_proto::v1::{
    AdoptionRecord, FeatureLevelRaised, HoldRecord, HoldRecorded, HoldReleased, SourceAdopted, TokenIssued,
    TokenRecord, TokenRevoked,
};

use super::{Draft, Misfit, check_hash, check_name};
use crate::registry::{
    permission::{CERTIFICATE, Role, TOWER},
    state::{HOLDS, Mesh},
};

impl Draft<'_> {
    pub(super) fn token_issued(&mut self, event: &TokenIssued) -> Result<(), Misfit> {
        check_name("a token", &event.id)?;
        if event.id == TOWER {
            return Err(format!("{TOWER:?} is Tower itself"));
        }
        if event.id.starts_with(CERTIFICATE) {
            if !event.hash.is_empty() {
                return Err("a certificate has no secret here".into());
            }
        } else {
            check_hash("the hash of the secret", &event.hash)?;
        }
        for role in &event.roles {
            role.parse::<Role>()?;
        }
        let record =
            TokenRecord { issued: Some(event.clone()), stamp: Some(self.stamp.clone()), revoked: None };
        let tokens = &mut self.mesh().tokens;
        // A certificate's name cannot be chosen anew: what it may is replaced.
        let held = tokens.get(&event.id).filter(|held| held.revoked.is_none());
        if held.is_some() && !event.id.starts_with(CERTIFICATE) {
            return Err(format!("token {:?} is there already", event.id));
        }
        tokens.insert(event.id.clone(), record);
        Ok(())
    }

    pub(super) fn token_revoked(&mut self, event: &TokenRevoked) -> Result<(), Misfit> {
        let stamp = self.stamp.clone();
        match self.mesh().tokens.get_mut(&event.id) {
            None => Err(format!("there is no token {:?}", event.id)),
            Some(token) if token.revoked.is_some() => Err(format!("token {:?} is revoked already", event.id)),
            Some(token) => {
                token.revoked = Some(stamp);
                Ok(())
            }
        }
    }

    pub(super) fn hold_recorded(&mut self, event: &HoldRecorded) -> Result<(), Misfit> {
        let stamp = self.stamp.clone();
        let hold = self.hold(&event.source, &event.hold)?;
        hold.endpoints = event.endpoints;
        hold.recorded.get_or_insert(stamp);
        Ok(())
    }

    pub(super) fn hold_released(&mut self, event: &HoldReleased) -> Result<(), Misfit> {
        let stamp = self.stamp.clone();
        let hold = self.hold(&event.source, &event.hold)?;
        if hold.released.is_some() {
            return Err(format!("hold {:?} is released already", event.hold));
        }
        hold.released = Some(stamp);
        Ok(())
    }

    pub(super) fn source_adopted(&mut self, event: &SourceAdopted) -> Result<(), Misfit> {
        check_name("a source", &event.source)?;
        let record =
            AdoptionRecord { incarnation: event.incarnation.clone(), stamp: Some(self.stamp.clone()) };
        self.mesh().adoptions.insert(event.source.clone(), record);
        Ok(())
    }

    pub(super) fn level_raised(&mut self, event: FeatureLevelRaised) -> Result<(), Misfit> {
        let level = self.mesh().feature_level;
        if event.level <= level {
            return Err(format!("it is at {level} already"));
        }
        if event.level > FEATURE_LEVEL {
            return Err(format!(
                "this build knows levels up to {FEATURE_LEVEL}; level {} needs a newer one",
                event.level
            ));
        }
        self.mesh().feature_level = event.level;
        Ok(())
    }

    fn hold(&mut self, source: &str, id: &str) -> Result<&mut HoldRecord, Misfit> {
        check_name("a source", source)?;
        check_name("a hold", id)?;
        let mesh = self.mesh();
        if !mesh.holds.contains_key(id) {
            forget_oldest_hold(mesh);
            mesh.holds.insert(id.to_owned(), HoldRecord { source: source.to_owned(), ..Default::default() });
        }
        match mesh.holds.get_mut(id) {
            Some(hold) if hold.source == source => Ok(hold),
            Some(hold) => Err(format!("hold {id:?} is of source {:?}", hold.source)),
            None => Err(format!("hold {id:?} is gone")),
        }
    }
}

fn forget_oldest_hold(mesh: &mut Mesh) {
    if mesh.holds.len() < HOLDS {
        return;
    }
    let noted = |hold: &HoldRecord| {
        let stamps = [&hold.recorded, &hold.released];
        stamps.into_iter().flatten().map(|stamp| stamp.index).max().unwrap_or(0)
    };
    if let Some(oldest) = mesh.holds.iter().min_by_key(|(_, hold)| noted(hold)).map(|(id, _)| id.clone()) {
        mesh.holds.remove(&oldest);
    }
}
