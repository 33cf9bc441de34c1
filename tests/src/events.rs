//! Server-sent events, as a page or a tool receives them.

use std::{net::SocketAddr, time::Duration};

use anyhow::{Context, Result, bail, ensure};
use bytes::Bytes;
use http::{Request, header::AUTHORIZATION};
use http_body_util::{BodyExt, Empty};
use hyper::{
    body::Incoming,
    client::conn::http1::{self, SendRequest},
};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::{net::TcpStream, time::timeout};

/// Longer than an event takes to come, also on a busy machine.
const SOON: Duration = Duration::from_secs(15);

/// An open stream.
#[derive(Debug)]
pub struct Events {
    body: Incoming,
    received: String,
    /// The connection ends without it.
    _sender: SendRequest<Empty<Bytes>>,
}

/// One event.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// Its id, which a client that comes back tells.
    pub id: u64,
    /// Its kind.
    pub event: String,
    /// Its data.
    pub data: Value,
}

impl Events {
    /// Asks for a path, as the bearer of this token, after the event with this id if one is given.
    pub async fn open(address: SocketAddr, path: &str, token: &str, last: Option<u64>) -> Result<Self> {
        let stream = TokioIo::new(TcpStream::connect(address).await?);
        let (mut sender, connection) = http1::handshake(stream).await?;
        tokio::spawn(connection);
        let mut request =
            Request::get(path).header("Host", "localhost").header(AUTHORIZATION, format!("Bearer {token}"));
        if let Some(last) = last {
            request = request.header("Last-Event-ID", last);
        }
        let response = timeout(SOON, sender.send_request(request.body(Empty::new())?)).await??;
        ensure!(response.status() == 200, "status {}", response.status());
        Ok(Self { body: response.into_body(), received: String::new(), _sender: sender })
    }

    /// The next event; none if the stream has ended.
    pub async fn next(&mut self) -> Result<Option<Event>> {
        loop {
            while let Some((block, rest)) = self.received.split_once("\n\n") {
                let event = parse(block)?;
                self.received = rest.to_owned();
                if event.is_some() {
                    return Ok(event);
                }
            }
            match timeout(SOON, self.body.frame()).await.context("no event comes, and no end")? {
                // An end in the middle is an end, too: a killed server says no more.
                None | Some(Err(_)) => return Ok(None),
                Some(Ok(frame)) => {
                    let Ok(data) = frame.into_data() else { continue };
                    self.received.push_str(std::str::from_utf8(&data)?);
                }
            }
        }
    }
}

/// An event, unless it is a comment, or says only when to come back.
fn parse(block: &str) -> Result<Option<Event>> {
    let (mut id, mut event, mut data) = (None, None, None);
    for line in block.lines() {
        match line.split_once(": ") {
            Some(("id", value)) => id = Some(value.parse()?),
            Some(("event", value)) => event = Some(value.to_owned()),
            Some(("data", value)) => data = Some(serde_json::from_str(value)?),
            Some(("", _) | ("retry", _)) => {}
            _ => bail!("not a line of an event: {line:?}"),
        }
    }
    match (id, event, data) {
        (None, None, None) => Ok(None),
        (Some(id), Some(event), Some(data)) => Ok(Some(Event { id, event, data })),
        _ => bail!("half an event: {block:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_told_from_comments() {
        assert_eq!(parse(": still here").unwrap(), None);
        assert_eq!(parse("retry: 1000").unwrap(), None);
        let event = parse("id: 7\nevent: entry\ndata: {}").unwrap().unwrap();
        assert_eq!((event.id, event.event.as_str()), (7, "entry"));
        assert!(parse("id: 7").is_err() && parse("{}").is_err());
    }
}
