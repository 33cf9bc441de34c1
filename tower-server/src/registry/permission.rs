//! Who may do what. Nobody may anything unless a rule here says so.

use std::{fmt, str::FromStr};

use tower_proto::v1;

use super::{
    refusal::{Refusal, RefusalKind},
    state::State,
};

/// The credential of Tower itself.
pub const TOWER: &str = "tower";

/// How the credential of a client certificate begins; its name follows. What it may is said by a token with
/// this id, and without a secret.
pub const CERTIFICATE: &str = "cert:";

/// What a credential stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// May look.
    Viewer,
    /// Owns named services.
    Owner,
    /// Owns the platform's parts.
    Platform,
    /// Owns security's parts.
    Security,
    /// May everything that people may.
    Admin,
}

/// What somebody wants to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Look at anything.
    Read,
    /// Upload a version of a service.
    Upload,
    /// Approve a version.
    Approve,
    /// Retire a version.
    Retire,
    /// Give hosts a release.
    Activate,
    /// Give hosts another release of a version that is in use: with other parts of platform and security.
    Rerelease,
    /// Give the service back to its defaults.
    Deactivate,
    /// Take an activation back.
    Abort,
    /// Send an activation to its next step.
    Step,
    /// Say what a Tower's Beacons made of a step.
    Report,
    /// Edit a part of the platform.
    EditPlatform,
    /// Edit a part of security.
    EditSecurity,
    /// Say what the guard holds.
    RecordHold,
    /// Let go what the guard holds.
    ReleaseHold,
    /// Believe another history of a source.
    Adopt,
    /// Issue and revoke tokens.
    ManageTokens,
    /// Raise the feature level.
    RaiseLevel,
}

impl Role {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Viewer, Self::Owner, Self::Platform, Self::Security, Self::Admin];

    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Owner => "owner",
            Self::Platform => "platform",
            Self::Security => "security",
            Self::Admin => "admin",
        }
    }

    /// Whether somebody with this role may do this, if a service is concerned to one that is `owned` or not.
    fn may(self, action: Action, owned: bool) -> bool {
        match action {
            Action::Read => true,
            Action::Upload | Action::Approve | Action::Retire | Action::Activate | Action::Deactivate => {
                self == Self::Admin || (self == Self::Owner && owned)
            }
            Action::Step => self == Self::Admin || (self == Self::Owner && owned),
            Action::Rerelease | Action::Abort => match self {
                Self::Viewer => false,
                Self::Owner => owned,
                Self::Platform | Self::Security | Self::Admin => true,
            },
            Action::EditPlatform | Action::ReleaseHold | Action::Adopt => {
                matches!(self, Self::Platform | Self::Admin)
            }
            Action::EditSecurity => matches!(self, Self::Security | Self::Admin),
            Action::ManageTokens | Action::RaiseLevel => self == Self::Admin,
            Action::Report | Action::RecordHold => false,
        }
    }
}

impl FromStr for Role {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let named = Self::ALL.into_iter().find(|role| role.as_str() == text);
        named.ok_or_else(|| {
            let all = Self::ALL.map(Self::as_str).join(", ");
            format!("there is no role {text:?}; there are {all}")
        })
    }
}

impl Action {
    /// What it is, after "may not".
    fn describe(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Upload => "upload a version",
            Self::Approve => "approve a version",
            Self::Retire => "retire a version",
            Self::Activate => "activate a version",
            Self::Rerelease => "release a version again",
            Self::Deactivate => "deactivate the service",
            Self::Abort => "abort an activation",
            Self::Step => "send an activation to its next step",
            Self::Report => "report for a Tower",
            Self::EditPlatform => "edit the platform's part",
            Self::EditSecurity => "edit security's part",
            Self::RecordHold => "record what the guard holds",
            Self::ReleaseHold => "release what the guard holds",
            Self::Adopt => "adopt a source",
            Self::ManageTokens => "manage tokens",
            Self::RaiseLevel => "raise the feature level",
        }
    }

    /// Whether Tower does it by itself.
    fn is_towers(self) -> bool {
        matches!(
            self,
            Self::Read | Self::Step | Self::Report | Self::Abort | Self::RecordHold | Self::RaiseLevel
        )
    }
}

/// The token of a credential, if it can be used now.
///
/// # Errors
/// If there is none, or if it is revoked or has expired.
pub fn token<'a>(state: &'a State, credential: &str, now_ms: u64) -> Result<&'a v1::TokenIssued, Refusal> {
    let refuse = |code, message: &str| {
        Refusal::new(RefusalKind::Forbidden, code, format!("credential {credential}"), message)
            .next("use another token, or have one issued by an admin")
    };
    let record = state.mesh().tokens.get(credential);
    let Some((record, issued)) = record.and_then(|record| Some((record, record.issued.as_ref()?))) else {
        return Err(refuse("unknown-credential", "nobody has issued it"));
    };
    if record.revoked.is_some() {
        return Err(refuse("revoked-credential", "it was revoked"));
    }
    if issued.expires_ms != 0 && issued.expires_ms <= now_ms {
        return Err(refuse("expired-credential", "it has expired"));
    }
    Ok(issued)
}

/// Whether a credential (the id of a token, [`CERTIFICATE`] with a name, or [`TOWER`]) may do this at this
/// time (milliseconds since 1970) to this service, or to what belongs to none.
///
/// # Errors
/// If it may not. The refusal names the owner of the service.
pub fn may(
    state: &State,
    credential: &str,
    action: Action,
    service: Option<&str>,
    now_ms: u64,
) -> Result<(), Refusal> {
    let object = service.map_or_else(|| "the mesh".to_owned(), |service| format!("service {service}"));
    let allowed = if credential == TOWER {
        action.is_towers()
    } else {
        let issued = token(state, credential, now_ms)?;
        let owned = service.is_some_and(|service| issued.services.iter().any(|owned| owned == service));
        let mut roles = issued.roles.iter().filter_map(|role| role.parse::<Role>().ok());
        roles.any(|role| role.may(action, owned))
    };
    if allowed {
        return Ok(());
    }
    let owner = match action {
        Action::EditPlatform => "platform",
        Action::EditSecurity => "security",
        Action::Read
        | Action::Upload
        | Action::Approve
        | Action::Retire
        | Action::Activate
        | Action::Rerelease
        | Action::Deactivate
        | Action::Abort
        | Action::Step
        | Action::Report
        | Action::RecordHold
        | Action::ReleaseHold
        | Action::Adopt
        | Action::ManageTokens
        | Action::RaiseLevel => service.and_then(|name| Some(state.service(name)?.owner())).unwrap_or(""),
    };
    let message = format!("credential {credential} may not {}", action.describe());
    let mut refusal = Refusal::new(RefusalKind::Forbidden, "forbidden", object, message);
    if owner.is_empty() {
        refusal = refusal.next("ask an admin");
    } else {
        refusal = refusal.owner(owner).next(format!("ask {owner}"));
    }
    Err(refusal)
}

/// Whether there is a credential at this time (milliseconds since 1970) that may everything.
pub fn has_admin(state: &State, now_ms: u64) -> bool {
    admins(state, now_ms).next().is_some()
}

/// The ids of the tokens that may everything at this time (milliseconds since 1970).
pub fn admins(state: &State, now_ms: u64) -> impl Iterator<Item = &str> {
    let ids = state.mesh().tokens.keys();
    ids.filter(move |id| {
        let live = token(state, id, now_ms);
        live.is_ok_and(|issued| issued.roles.iter().any(|role| role == Role::Admin.as_str()))
    })
    .map(String::as_str)
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
