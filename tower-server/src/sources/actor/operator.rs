//! What an operator may decide: that a hold goes, and that what was found in quarantine is true. Either is
//! on disk before it is acknowledged.

use actix::prelude::*;
use tokio::sync::oneshot;

use super::{SourceActor, keeping::Kept};
use crate::sources::model::{AdoptError, Position};

/// Why an operator's word did not come true, or not for good.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OperatorError {
    /// There is no such hold.
    #[error("there is no hold {0:?}; it may have ended")]
    NoSuchHold(String),
    /// What is to be adopted is not there.
    #[error(transparent)]
    Adopt(#[from] AdoptError),
    /// It is so, but a restart would forget it.
    #[error("it is done, but not on disk, and a restart of Tower would forget it: {0}")]
    NotKept(String),
    /// The source has been stopped.
    #[error("the source has been stopped")]
    Stopped,
}

/// Lets go what a hold holds. The answer is how many endpoints those are.
#[derive(Message)]
#[rtype(result = "Result<usize, OperatorError>")]
pub(in crate::sources) struct Release {
    pub(in crate::sources) hold: String,
    pub(in crate::sources) reason: String,
    pub(in crate::sources) from: String,
}

/// Believes what was found in quarantine, if it has this incarnation.
#[derive(Message)]
#[rtype(result = "Result<Position, OperatorError>")]
pub(in crate::sources) struct Adopt {
    pub(in crate::sources) incarnation: String,
    pub(in crate::sources) reason: String,
    pub(in crate::sources) from: String,
}

impl Handler<Release> for SourceActor {
    type Result = ResponseActFuture<Self, Result<usize, OperatorError>>;

    fn handle(&mut self, Release { hold, reason, from }: Release, ctx: &mut Self::Context) -> Self::Result {
        let id = self.spec.id.clone();
        let guard = self.model.guard();
        let Some(endpoints) = guard.id_of(&id, &hold).and_then(|number| guard.release(number)) else {
            return Box::pin(fut::err(OperatorError::NoSuchHold(hold)));
        };
        tracing::warn!(source = %id, hold, endpoints, from, reason, "an operator released a hold");
        let kept = self.keeping.wait_for_holds();
        self.follow_up(ctx, false);
        Box::pin(answered(endpoints, kept).into_actor(self))
    }
}

impl Handler<Adopt> for SourceActor {
    type Result = ResponseActFuture<Self, Result<Position, OperatorError>>;

    fn handle(&mut self, message: Adopt, ctx: &mut Self::Context) -> Self::Result {
        let Adopt { incarnation, reason, from } = message;
        let before = self.model.position().cloned();
        let position = match self.model.adopt(&incarnation) {
            Ok(position) => position,
            Err(error) => return Box::pin(fut::err(error.into())),
        };
        tracing::warn!(
            source = %self.spec.id, ?before, adopted = ?position, from, reason,
            "an operator adopted what a source had in quarantine"
        );
        // The differences are taken first: what is then published is what is kept.
        self.follow_up(ctx, false);
        let kept = self.keeping.wait_for_snapshot();
        self.keep(ctx);
        Box::pin(answered(position, kept).into_actor(self))
    }
}

async fn answered<T>(answer: T, kept: oneshot::Receiver<Kept>) -> Result<T, OperatorError> {
    match kept.await {
        Ok(Ok(())) => Ok(answer),
        Ok(Err(failure)) => Err(OperatorError::NotKept(failure)),
        Err(_) => Err(OperatorError::Stopped),
    }
}
