//! What has to be found out before a command can be decided: what documents say, what they compile to, and
//! which hosts there are.

use std::collections::BTreeMap;

use bytes::Bytes;
use tower_proto::v1;

use super::{
    commands::{Command, Prepared},
    handle::SubmitError,
    refusal::Refusal,
    state::State,
};
use crate::event_log::EventLog;

/// Which hosts there are.
pub trait Hosts: Send + Sync {
    /// A connected host of this audience with an Envoy, to begin with; with another salt another one.
    fn first_of(&self, audience: &v1::Audience, salt: &str) -> Option<String>;
}

/// Which bodies a command takes.
#[derive(Debug, Default)]
pub(super) struct Inputs {
    bodies: Vec<Bytes>,
}

/// Bodies by their hash.
pub(super) type Bodies = BTreeMap<Bytes, Bytes>;

/// What was found out, and what has to be kept with the command.
#[derive(Debug, Default)]
pub(super) struct Ready {
    pub(super) prepared: Prepared,
    pub(super) bodies: Vec<Bytes>,
}

/// Which bodies a command takes.
pub(super) fn inputs(_state: &State, _command: &Command) -> Result<Inputs, Refusal> {
    Ok(Inputs::default())
}

/// Reads them.
pub(super) async fn read(log: &EventLog, inputs: &Inputs) -> Result<Bodies, SubmitError> {
    let mut bodies = Bodies::new();
    for hash in &inputs.bodies {
        let body = log.body(hash).await.map_err(|error| SubmitError::Unavailable(error.to_string()))?;
        bodies.insert(hash.clone(), body);
    }
    Ok(bodies)
}

/// Finds out what the command takes.
pub(super) fn prepare(
    _command: &Command,
    _inputs: &Inputs,
    _read: &Bodies,
    _hosts: &dyn Hosts,
) -> Result<Ready, Refusal> {
    Ok(Ready::default())
}
