//! HTTP, for people, tools and probes.
//!
//! - [`openapi`]: the list of routes, and their description; [`fallback`]: everything else
//! - [`routes`]: the handlers
//! - [`error`], [`extract`], [`conditions`], [`page`]: what all of them need
//! - [`told`]: from Tower's parts to the words of the API, which are in [`tower_common::api`]
//! - [`ui`]: the web UI; [`headers`]: what browsers are told with every answer
//! - `front`: the page for a first look; `serving`: which services Beacons are sent
//!
//! Who may do what is not decided here: see [`auth`](crate::auth).

pub mod caller;
pub mod changes;
pub mod conditions;
pub mod documents;
pub mod effective;
pub mod error;
pub mod extract;
pub mod fallback;
mod front;
pub mod headers;
pub mod history;
pub mod openapi;
pub mod page;
pub mod planning;
pub mod routes;
mod serving;
pub mod stream;
pub mod suspects;
pub mod told;
pub mod ui;

use std::{sync::Arc, time::Duration};

use actix::{
    Addr, Handler, Message,
    dev::{MessageResponse, ToEnvelope},
};
use actix_web::{middleware::from_fn, web};
use prometheus_client::registry::Registry as Metrics;
use tower_common::{
    served::Served,
    tls::{Reloading, ServerFiles},
};

use self::{error::Refused, serving::Serving, stream::Streams};
use crate::{
    auth::gate,
    decisions::CarriedOut,
    fanout::beacons::Beacons,
    registry::Registry,
    sources::{SourceHandle, SourceReport},
    store_actor::{Describe, ListServices, StoreActor, StoreSummary},
};

/// An actor that takes longer to answer is as good as dead.
pub(crate) const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);

/// What answers are made of.
#[derive(Clone)]
pub struct AppState {
    /// What was decided, and the way to decide.
    pub registry: Registry,
    /// Where the event log is.
    pub log_target: String,
    /// Who follows the activity log.
    pub streams: Streams,
    /// The store.
    pub store: Addr<StoreActor>,
    /// How far decisions about sources are carried out.
    pub carried_out: CarriedOut,
    /// The sources.
    pub sources: Arc<Vec<SourceHandle>>,
    /// Who is connected.
    pub beacons: Arc<Beacons>,
    /// The certificate, if there is one.
    pub tls: Option<Reloading<ServerFiles>>,
    /// The mesh or region.
    pub scope: String,
    /// Whoever asks for what takes much of Tower: one at a time.
    pub costly: Arc<tokio::sync::Mutex<()>>,
    /// Which services Beacons are sent.
    pub served: Served,
    /// Beyond so many of them the page warns.
    pub warn_services: usize,
    /// All metrics.
    pub metrics: Arc<Metrics>,
}

/// Adds all routes, behind the gate.
pub fn configure(config: &mut web::ServiceConfig) {
    config.service(
        web::scope("")
            .wrap(from_fn(gate::pass))
            .wrap(from_fn(headers::pass))
            .configure(openapi::register)
            .default_service(web::to(fallback::nothing_here)),
    );
}

impl AppState {
    /// Asks the store.
    ///
    /// # Errors
    /// If it does not answer in time.
    pub async fn ask_store<M>(&self, question: M) -> Result<M::Result, Refused>
    where
        M: Message + Send + 'static,
        M::Result: Send,
        StoreActor: Handler<M>,
        <StoreActor as Handler<M>>::Result: MessageResponse<StoreActor, M>,
        <StoreActor as actix::Actor>::Context: ToEnvelope<StoreActor, M>,
    {
        match tokio::time::timeout(ANSWER_TIMEOUT, self.store.send(question)).await {
            Ok(Ok(answer)) => Ok(answer),
            _ => Err(Refused::silent("store")),
        }
    }

    /// The store in numbers.
    ///
    /// # Errors
    /// If it does not answer in time.
    pub async fn describe_store(&self) -> Result<StoreSummary, Refused> {
        self.ask_store(Describe).await
    }

    /// The services that are discovered, and which of them Beacons are sent.
    pub(crate) async fn serving(&self) -> Result<Serving, Refused> {
        Ok(Serving::of(&self.served, self.ask_store(ListServices).await?))
    }

    /// All sources, as they are now.
    pub async fn describe_sources(&self) -> Vec<SourceReport> {
        futures::future::join_all(self.sources.iter().map(SourceHandle::describe)).await
    }
}

#[cfg(test)]
pub mod testing;
#[cfg(test)]
mod tests;
