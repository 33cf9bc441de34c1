//! The actor of a source: a thin shell around its model. It takes in what the source's reader feeds it, has
//! names looked up, and publishes what differs, one transaction at a time. While one is on its way, what
//! else changes accumulates in the model, and goes out as one. When the guard is to judge something it is
//! woken for that.

mod keeping;
mod operator;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use actix::prelude::*;
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::DropGuard;
use tower_common::clock;
use tower_proto::v1;

use self::keeping::Keeping;
pub use self::operator::OperatorError;
pub(super) use self::operator::{Adopt, Release};
use super::{
    disk::Disk,
    guard::Now,
    metrics::{Metrics, Reading},
    model::{Input, Model},
    report::{MAX_LISTED, SourceReport},
    resolver::{ASK_AGAIN, Resolver},
    spec::SourceSpec,
};
use crate::store_actor::Publish;

/// How often time itself may change the state, or a position that moved alone is published.
const TICK: Duration = Duration::from_secs(1);

/// Messages that may wait; more make their senders wait.
pub(super) const MAILBOX: usize = 16;

pub(super) struct SourceActor {
    spec: SourceSpec,
    model: Model,
    resolver: Resolver,
    store: Recipient<Publish>,
    metrics: Metrics,
    input: Option<ReceiverStream<Input>>,
    /// Whether a transaction is on its way to the store.
    publishing: bool,
    stopping: bool,
    state: v1::SourceState,
    since_unix_ms: u64,
    keeping: Keeping,
    /// When the guard is to judge next, and what wakes us then.
    wake: Option<(Instant, SpawnHandle)>,
    /// Ends the reader when the actor does.
    _reader: DropGuard,
}

/// Asks a source for its [`SourceReport`].
#[derive(Message)]
#[rtype(result = "SourceReport")]
pub(super) struct Describe;

/// Ends a source. What it published stays, and is on disk as far as the disk allows.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct Stop;

impl SourceActor {
    pub(super) fn new(
        spec: SourceSpec,
        model: Model,
        input: ReceiverStream<Input>,
        store: Recipient<Publish>,
        metrics: Metrics,
        disk: Disk,
        reader: DropGuard,
    ) -> Self {
        Self {
            spec,
            model,
            resolver: Resolver::new(),
            store,
            metrics,
            input: Some(input),
            publishing: false,
            stopping: false,
            state: v1::SourceState::Loading,
            since_unix_ms: clock::unix_millis(),
            keeping: Keeping::new(disk),
            wake: None,
            _reader: reader,
        }
    }

    /// Does all that follows from a change of the model, or of the time.
    fn follow_up(&mut self, ctx: &mut Context<Self>, position_alone: bool) {
        for name in self.model.take_new_names() {
            self.look_up(&name, ctx);
        }
        self.publish(ctx, position_alone);
        self.keep(ctx);
        self.wake_for_judgement(ctx);
        let (state, reason) = self.model.state(clock::monotonic());
        if state != self.state {
            self.state = state;
            self.since_unix_ms = clock::unix_millis();
            tracing::info!(source = %self.spec.id, state = state.as_str_name(), reason, "the state of a source changed");
        }
        let (services, endpoints) = self.model.sizes();
        let index = self.model.position().map_or(0, |position| position.index);
        let (problems, counters) = (self.model.problems().len(), self.model.counters());
        let guard = self.model.guard();
        let ((holds, held_endpoints), guarded) = (guard.sizes(), guard.counters());
        let quarantined = self.model.is_quarantined();
        self.metrics.show(
            &self.spec.id,
            &Reading {
                state,
                services,
                endpoints,
                problems,
                index,
                counters,
                holds,
                held_endpoints,
                guarded,
                quarantined,
            },
        );
    }

    fn publish(&mut self, ctx: &mut Context<Self>, position_alone: bool) {
        if self.publishing {
            return;
        }
        let Some(transaction) = self.model.take_transaction(clock::monotonic(), position_alone) else {
            return;
        };
        self.publishing = true;
        if !transaction.upserts.is_empty() || !transaction.removals.is_empty() {
            self.keeping.snapshot_is_old();
        }
        let delivery = self.store.send(Publish(transaction)).into_actor(self);
        ctx.spawn(delivery.map(|delivered, actor, ctx| {
            actor.publishing = false;
            match delivered {
                Ok(()) => actor.follow_up(ctx, false),
                Err(error) => {
                    tracing::error!(source = %actor.spec.id, %error, "the store is gone; the source ends");
                    ctx.stop();
                }
            }
        }));
    }

    fn wake_for_judgement(&mut self, ctx: &mut Context<Self>) {
        // While a transaction is on its way nothing is judged; when it has arrived this is asked again.
        let at = self.model.next_judgement().filter(|_| !self.publishing);
        if self.wake.as_ref().map(|(at, _)| *at) == at {
            return;
        }
        if let Some((_, timer)) = self.wake.take() {
            ctx.cancel_future(timer);
        }
        self.wake = at.map(|at| {
            let wait = at.saturating_duration_since(clock::monotonic());
            let timer = ctx.run_later(wait, |actor, ctx| {
                actor.wake = None;
                actor.follow_up(ctx, false);
            });
            (at, timer)
        });
    }

    fn look_up(&mut self, name: &Arc<str>, ctx: &mut Context<Self>) {
        if let Some(look_up) = self.resolver.ask(name) {
            ctx.spawn(look_up.into_actor(self).map(|(name, addresses), actor, ctx| {
                actor.resolver.answered(&name);
                actor.model.handle(Input::Resolved { name, addresses }, clock::monotonic());
                actor.follow_up(ctx, false);
            }));
        }
    }

    fn report(&mut self) -> SourceReport {
        let id = self.spec.id.clone();
        let guard = self.model.guard();
        let (holds, guarded) = (guard.holds(&id, Now::read()), guard.counters());
        let (_, reason) = self.model.state(clock::monotonic());
        let (services, endpoints) = self.model.sizes();
        let problems = self.model.problems();
        SourceReport {
            id: self.spec.id.to_string(),
            url: self.spec.url.clone(),
            optional: self.spec.optional,
            state: self.state.into(),
            reason: reason.map(str::to_owned),
            since_unix_ms: self.since_unix_ms,
            position: self.model.position().cloned(),
            services,
            endpoints,
            problem_count: problems.len(),
            problems: problems.take(MAX_LISTED).collect(),
            counters: self.model.counters(),
            holds,
            guard: guarded,
            quarantine: self.model.quarantine(),
        }
    }
}

impl Actor for SourceActor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        if let Some(input) = self.input.take() {
            ctx.add_stream(input);
        }
        ctx.run_interval(TICK, |actor, ctx| actor.follow_up(ctx, true));
        ctx.run_interval(ASK_AGAIN, |actor, ctx| {
            let names: Vec<Arc<str>> = actor.model.names().cloned().collect();
            for name in names {
                actor.look_up(&name, ctx);
            }
        });
        // The store learns at once that there is such a source, and that it is loading.
        self.follow_up(ctx, false);
    }
}

impl StreamHandler<Input> for SourceActor {
    fn handle(&mut self, input: Input, ctx: &mut Self::Context) {
        match input {
            Input::Loaded(_) | Input::Changed { .. } => {
                self.metrics.heard(&self.spec.id, clock::unix_millis());
            }
            Input::OutOfTouch { .. } | Input::Resolved { .. } => {}
        }
        self.model.handle(input, clock::monotonic());
        self.follow_up(ctx, false);
    }
}

impl Handler<Describe> for SourceActor {
    type Result = MessageResult<Describe>;

    fn handle(&mut self, _: Describe, _: &mut Self::Context) -> Self::Result {
        MessageResult(self.report())
    }
}

impl Handler<Stop> for SourceActor {
    type Result = ResponseActFuture<Self, ()>;

    fn handle(&mut self, _: Stop, ctx: &mut Self::Context) -> Self::Result {
        self.stopping = true;
        let known = self.model.position().is_some();
        let kept = self.keeping.wait_for_snapshot();
        self.keep(ctx);
        let kept = async move {
            if known {
                // That the disk refuses is in the log.
                let _ = kept.await;
            }
        };
        Box::pin(kept.into_actor(self).map(|(), _, ctx: &mut Self::Context| ctx.stop()))
    }
}
