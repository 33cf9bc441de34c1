//! Why no session could be had. The library only says that it found no host; so each is asked once more, as far
//! as TCP and TLS go, and what that says is worth telling.

use std::{io, sync::Arc, time::Duration};

use futures::future::join_all;
use rustls::{ClientConfig, pki_types::ServerName};
use tokio::{io::AsyncReadExt, net::TcpStream, time::timeout};
use tokio_rustls::TlsConnector;

/// Longer than a server takes that will do it.
const ATTEMPT: Duration = Duration::from_secs(2);

/// A server that refuses a client's certificate does so at once. One that does not waits for a request.
const REFUSAL: Duration = Duration::from_millis(300);

/// What each server does when it is connected to.
pub(super) async fn diagnose(hosts: &[String], tls: Option<&Arc<ClientConfig>>) -> String {
    let findings = hosts.iter().map(async |host| {
        let finding = timeout(ATTEMPT, examine(host, tls)).await;
        let finding = finding.unwrap_or_else(|_| Err(format!("no answer within {ATTEMPT:?}")));
        let finding = finding.err().unwrap_or_else(|| {
            "it can be connected to, and gives no session".to_owned()
                + if tls.is_some() { "" } else { " (a port for TLS needs zks://)" }
        });
        format!("{host}: {finding}")
    });
    join_all(findings).await.join("; ")
}

async fn examine(host: &str, tls: Option<&Arc<ClientConfig>>) -> Result<(), String> {
    let stream = TcpStream::connect(host).await.map_err(|error| error.to_string())?;
    let Some(config) = tls else { return Ok(()) };
    let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
    let name = name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(name);
    let name = ServerName::try_from(name.to_owned())
        .map_err(|_| format!("{name:?} is not a name that a certificate could have"))?;
    let connector = TlsConnector::from(config.clone());
    let mut stream = connector.connect(name, stream).await.map_err(|error| tls_fault(&error))?;
    match timeout(REFUSAL, stream.read_u8()).await {
        Ok(Err(error)) => Err(tls_fault(&error)),
        Ok(Ok(_)) | Err(_) => Ok(()),
    }
}

fn tls_fault(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => "TLS: the server ended the connection".to_owned(),
        _ => format!("TLS: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn each_host_is_spoken_of() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let open = listener.local_addr().unwrap().to_string();
        let closed = {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            listener.local_addr().unwrap().to_string()
        };
        let reason = diagnose(&[open.clone(), closed.clone()], None).await;
        let (first, second) = reason.split_once("; ").unwrap();
        assert!(first.starts_with(&format!("{open}: it can be connected to")), "{first}");
        assert!(second.starts_with(&format!("{closed}: Connection refused")), "{second}");
    }
}
