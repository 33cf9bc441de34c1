//! Believe another history of a source.

use tower_proto::v1::{SourceAdopted, event::Event};

use super::{Context, Decision, event};
use crate::registry::{permission::Action, refusal::Refusal, state::State};

/// Believe another history of a source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Adopt {
    /// The source.
    pub source: String,
    /// Which history.
    pub incarnation: String,
}

pub(super) fn handle(state: &State, command: &Adopt, context: &Context) -> Result<Decision, Refusal> {
    context.may(state, Action::Adopt, None)?;
    // The same history may be found again in an earlier state, and that is to be believed anew.
    let adopted = SourceAdopted { source: command.source.clone(), incarnation: command.incarnation.clone() };
    Ok(Decision::of(vec![event("", Event::SourceAdopted(adopted))]))
}
