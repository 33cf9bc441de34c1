//! The activity log: pages of it, one entry with what was before, and a stream that goes on.

use actix_web::{HttpRequest, HttpResponse, get, http::header, web};
use serde::Deserialize;
use tower_common::api::activity::{Activity, Entry, Order};
use tower_proto::v1::LogEntry;
use utoipa::IntoParams;

use crate::{
    api::{
        AppState,
        caller::{self, unreadable},
        error::Refused,
        extract::{MAX_INTEGER, Path, Query, bounded},
        history,
        page::{Page, decode, encode},
        stream, told,
    },
    auth::identity::Principal,
};

/// Entries that are looked at for a page; what is beyond is on the next.
const MAX_LOOKED_AT: u64 = 10_000;

/// Entries that are read at once.
const CHUNK: u64 = 500;

/// Which entries, in which order.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ActivityQuery {
    /// About this service.
    service: Option<String>,
    /// By whom.
    author: Option<String>,
    /// By this command, such as `activate`.
    command: Option<String>,
    /// After this index.
    after: Option<u64>,
    /// Before this index.
    before: Option<u64>,
    /// The order.
    #[serde(default)]
    #[param(inline)]
    order: Order,
    /// With what was otherwise before.
    #[param(inline)]
    include: Option<Include>,
    /// The `next` of the page before.
    cursor: Option<String>,
    /// How many at most.
    #[param(minimum = 1, maximum = 1000, default = 100)]
    limit: Option<usize>,
}

/// What else is told of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Include {
    /// What was otherwise before.
    Changes,
}

/// Which entries of the stream.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct StreamQuery {
    /// About this service.
    service: Option<String>,
    /// By whom.
    author: Option<String>,
    /// After this index; `Last-Event-ID` goes before it. New ones alone, if neither is there.
    after: Option<u64>,
}

/// An entry in the path.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub struct OfEntry {
    /// The index of the entry.
    index: u64,
}

/// Who did what, when, why and from where
#[utoipa::path(tag = "activity", responses((status = 200, body = Activity)), params(ActivityQuery))]
#[get("/api/v1/activity")]
pub(crate) async fn list_activity(
    state: web::Data<AppState>,
    Query(query): Query<ActivityQuery>,
) -> Result<HttpResponse, Refused> {
    bounded("after", query.after, 0..=MAX_INTEGER)?;
    bounded("before", query.before, 0..=MAX_INTEGER)?;
    let limit = Page { cursor: None, limit: query.limit }.limit()?;
    let filter = stream::Filter { service: query.service, author: query.author, command: query.command };
    let cursor: Option<u64> = query.cursor.as_deref().map(decode).transpose()?;
    let newest = *state.registry.applied().borrow();
    let (mut low, mut high) = (query.after.unwrap_or(0), query.before.unwrap_or(u64::MAX).min(newest + 1));
    match query.order {
        Order::Oldest => low = low.max(cursor.unwrap_or(0)),
        Order::Newest => high = high.min(cursor.unwrap_or(u64::MAX)),
    }
    let mut found: Vec<LogEntry> = Vec::new();
    let mut looked_at = 0;
    // Indexes between `low` and `high`, both of them excluded, are still to be looked at.
    while high.saturating_sub(low) > 1 && found.len() < limit && looked_at < MAX_LOOKED_AT {
        let count = (high - low - 1).min(CHUNK);
        let from = match query.order {
            Order::Oldest => low + 1,
            Order::Newest => high - count,
        };
        let mut entries = read(&state, from, count).await?;
        if query.order == Order::Newest {
            entries.reverse();
        }
        for entry in entries {
            match query.order {
                Order::Oldest => low = entry.index,
                Order::Newest => high = entry.index,
            }
            looked_at += 1;
            if filter.takes(&entry) {
                found.push(entry);
                if found.len() == limit {
                    break;
                }
            }
        }
    }
    let place = if query.order == Order::Oldest { low } else { high };
    let next = (high.saturating_sub(low) > 1).then(|| encode(&place));
    let mut entries = Vec::with_capacity(found.len());
    for entry in &found {
        entries.push(match query.include {
            Some(Include::Changes) => history::with_changes(&state.registry, entry).await?,
            None => told::activity::entry(entry),
        });
    }
    Ok(HttpResponse::Ok().json(Activity { entries, next }))
}

/// One entry, with what was otherwise before
#[utoipa::path(tag = "activity", responses((status = 200, body = Entry)), params(OfEntry))]
#[get("/api/v1/activity/{index}")]
pub(crate) async fn get_activity(
    state: web::Data<AppState>,
    Path(path): Path<OfEntry>,
) -> Result<HttpResponse, Refused> {
    let entry = caller::entry(&state.registry, path.index).await?;
    Ok(HttpResponse::Ok().json(history::with_changes(&state.registry, &entry).await?))
}

/// Entries as they come, as server-sent events
#[utoipa::path(
    tag = "activity",
    params(StreamQuery, ("Last-Event-ID" = Option<u64>, Header, description = "The index of the last entry that was received")),
    responses((
        status = 200, content_type = "text/event-stream", body = String,
        description = "Events \"entry\", with the index as id and an Entry as data; comments in between",
    )),
)]
#[get("/api/v1/activity/stream")]
pub(crate) async fn stream_activity(
    state: web::Data<AppState>,
    credentials: web::Data<crate::auth::gate::Credentials>,
    principal: Principal,
    request: HttpRequest,
    Query(query): Query<StreamQuery>,
) -> Result<HttpResponse, Refused> {
    let last = request.headers().get("Last-Event-ID").map(|value| {
        let index = value.to_str().ok().and_then(|text| text.trim().parse().ok());
        index.ok_or_else(|| Refused::malformed("Last-Event-ID", "it is the index of an entry"))
    });
    let newest = *state.registry.applied().borrow();
    let after = last.transpose()?.or(query.after).unwrap_or(newest);
    let filter = stream::Filter { service: query.service, author: query.author, command: None };
    let place = state.streams.enter()?;
    let still_known = move || credentials.still(&principal);
    let events = stream::events(state.registry.clone(), after, filter, still_known, place);
    Ok(HttpResponse::Ok()
        .content_type("text/event-stream")
        .insert_header((header::CACHE_CONTROL, "no-store"))
        .streaming(events))
}

async fn read(state: &AppState, from: u64, count: u64) -> Result<Vec<LogEntry>, Refused> {
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    let mut entries: Vec<LogEntry> = Vec::with_capacity(count.min(1000));
    while entries.len() < count {
        let next = from + entries.len() as u64;
        let more =
            state.registry.entries(next, count - entries.len()).await.map_err(|error| unreadable(&error))?;
        if more.is_empty() {
            return Err(Refused::silent("event log"));
        }
        entries.extend(more);
    }
    Ok(entries)
}
