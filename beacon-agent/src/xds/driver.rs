//! One stream of a client, from its first byte to its end.
//!
//! A stream is polled by the connection when there is room for a response, so there is neither a queue
//! that could grow nor a task that could stay behind: whatever ends the stream drops it, and with it all
//! that it holds.

use std::{sync::Arc, time::Instant};

use futures::{Stream, StreamExt, stream};
use tokio::{sync::watch, time};
use tonic::{Status, Streaming};
use tower_common::view::Composition;
use tracing::{debug, info, warn};

use super::{
    clients::{self, Connection, Quarantined},
    dump::{Asked, Contents},
    kind::Scope,
    metrics::OpenStream,
    node::Identity,
    peer::Peer,
    protocol::{Answer, Limits, Protocol, Received, Refusal},
    service::Options,
    session::Session,
};

/// One stream.
struct Driver<P: Protocol> {
    options: Arc<Options>,
    compositions: watch::Receiver<Composition>,
    inbound: Streaming<P::Request>,
    asked: Asked,
    scope: Scope,
    peer: Peer,
    /// `None` before the first request.
    open: Option<Open<P>>,
}

/// What there is of a client that has said who it is.
struct Open<P> {
    session: Session<P>,
    connection: Connection,
    node_id: String,
    quarantined: Vec<Quarantined>,
    counted: OpenStream,
}

/// Why a stream ends.
enum End {
    /// The client has closed it, or is gone.
    ByClient,
    ByServer(Refusal),
}

/// The responses to a client's requests.
pub(super) fn responses<P: Protocol>(
    options: Arc<Options>,
    scope: Scope,
    inbound: Streaming<P::Request>,
    peer: Peer,
) -> impl Stream<Item = Result<P::Response, Status>> + Send + 'static {
    let compositions = options.compositions.clone();
    let asked = options.clients.asking().asked();
    let driver = Driver::<P> { asked, options, compositions, inbound, scope, peer, open: None };
    stream::unfold(Some(driver), |driver| async {
        let mut driver = driver?;
        match driver.next().await {
            Ok(response) => Some((Ok(response), Some(driver))),
            Err(End::ByClient) => None,
            Err(End::ByServer(refusal)) => {
                driver.refused(&refusal);
                Some((Err(refusal.into()), None))
            }
        }
    })
    .fuse()
}

impl<P: Protocol> Driver<P> {
    /// The next response, as soon as there is one.
    async fn next(&mut self) -> Result<P::Response, End> {
        loop {
            // Whatever else is waiting: what is sent is the newest.
            if self.compositions.has_changed().unwrap_or(false) {
                self.update();
            }
            if let Some(open) = &mut self.open
                && let Some(batch) = open.session.next_batch(now())
            {
                open.connection.sent(&batch);
                self.options.metrics.sent(&batch);
                return Ok(P::response(batch, &self.options.identifier));
            }
            let deadline = self.open.as_ref().and_then(|open| open.session.deadline());
            tokio::select! {
                request = self.inbound.message() => match request {
                    Ok(Some(request)) => self.receive(request).map_err(End::ByServer)?,
                    Ok(None) => return Err(End::ByClient),
                    Err(status) => {
                        debug!(%status, "an xDS stream broke");
                        return Err(End::ByClient);
                    }
                },
                changed = self.compositions.changed() => {
                    changed.map_err(|_| End::ByServer(Refusal::ShuttingDown))?;
                    self.update();
                }
                () = at(deadline) => {}
                asked = self.asked.changed() => {
                    if asked.is_ok() {
                        self.tell();
                    }
                }
            }
        }
    }

    fn update(&mut self) {
        let composition = self.compositions.borrow_and_update().clone();
        if let Some(open) = &mut self.open {
            open.session.update(&composition);
            open.note_quarantine();
            open.note_standings();
        }
    }

    /// Tells what the client was sent, to whoever asks.
    fn tell(&mut self) {
        let asked = self.asked.borrow_and_update().clone();
        if let (Some(answers), Some(open)) = (asked, &self.open) {
            let contents = Contents { stream: open.connection.stream(), resources: open.session.contents() };
            // There is room for each stream's answer, and who asks may have lost patience.
            let _ = answers.try_send(contents);
        }
    }

    fn receive(&mut self, mut request: P::Request) -> Result<(), Refusal> {
        // Envoy names its node again when its dynamic context changes; the first one counts.
        let node = P::take_node(&mut request);
        if self.open.is_none() {
            let source = self.scope.config_source(P::MODE);
            let identity = Identity::read(node, self.options.egress, source, self.peer.is_unix())?;
            self.open = Some(self.open(&identity)?);
        }
        let Some(open) = &mut self.open else { return Ok(()) };
        let received = open.session.handle(request)?;
        self.options.metrics.received(&received);
        open.connection.received(&received);
        open.log(&received);
        open.note_quarantine();
        open.note_standings();
        Ok(())
    }

    fn open(&mut self, identity: &Identity) -> Result<Open<P>, Refusal> {
        let Options { clients, metrics, .. } = &*self.options;
        let composition = self.compositions.borrow_and_update().clone();
        if identity.is_grpc() && !composition.complete {
            return Err(Refusal::NotLoaded);
        }
        let connection = clients.connect(identity, P::MODE, self.scope, self.peer);
        info!(
            node = identity.node_id,
            stream = connection.stream(),
            cluster = identity.cluster,
            user_agent = identity.user_agent,
            mode = P::MODE.as_str(),
            scope = self.scope.as_str(),
            peer = %self.peer,
            egress = %identity.view.egress,
            "xDS client connected"
        );
        if let Some(complaint) = &identity.complaint {
            warn!(node = identity.node_id, %complaint, "metadata of an xDS client is ignored");
        }
        let mut session = Session::new(self.scope, &identity.view, Limits::default(), &composition);
        session.recall(connection.recall());
        Ok(Open {
            session,
            connection,
            node_id: identity.node_id.clone(),
            quarantined: Vec::new(),
            counted: metrics.opened(P::MODE),
        })
    }

    fn refused(&self, refusal: &Refusal) {
        self.options.metrics.refused();
        let node = self.open.as_ref().map(|open| open.node_id.as_str());
        warn!(node, peer = %self.peer, reason = %refusal, "xDS stream ended by the server");
    }
}

impl<P: Protocol> Open<P> {
    /// Tells what this client cannot take, if that has changed.
    fn note_quarantine(&mut self) {
        let quarantined = self.session.quarantined();
        if quarantined == self.quarantined {
            return;
        }
        for new in quarantined.iter().filter(|new| !self.quarantined.contains(new)) {
            warn!(
                node = self.node_id,
                r#type = new.r#type.as_str(),
                name = new.name,
                version = new.version,
                message = new.message,
                "xDS client cannot take this content; it keeps what it accepted before"
            );
        }
        self.counted.quarantined(quarantined.len());
        self.connection.quarantined(&quarantined, self.session.memory());
        self.quarantined = quarantined;
    }
}

impl<P: Protocol> Open<P> {
    /// Tells what this client has of the host's releases, if that has changed.
    fn note_standings(&mut self) {
        let changes = self.session.standings();
        if !changes.is_empty() {
            self.connection.standings(changes);
        }
    }
}

impl<P> Open<P> {
    fn log(&self, received: &Received) {
        let node = &self.node_id;
        match received {
            Received::Known { kind, answer: Some(Answer::Nack { nonce, version, status }), .. } => warn!(
                node,
                r#type = kind.as_str(),
                version,
                nonce,
                code = status.code,
                message = clients::shorten(&status.message),
                "xDS client rejected a response"
            ),
            Received::Known { .. } => {}
            Received::UnknownType(url) => {
                debug!(
                    node,
                    type_url = clients::shorten(url),
                    "xDS client asked for a type that is not served"
                );
            }
        }
    }
}

impl<P> Drop for Open<P> {
    fn drop(&mut self) {
        info!(node = self.node_id, stream = self.connection.stream(), "xDS client disconnected");
    }
}

fn now() -> Instant {
    time::Instant::now().into_std()
}

/// Waits until then, or for ever.
async fn at(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => time::sleep_until(deadline.into()).await,
        None => std::future::pending().await,
    }
}
