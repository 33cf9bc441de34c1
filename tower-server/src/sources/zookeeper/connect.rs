//! A session with an ensemble, or why there is none.

use std::time::Duration;

use tokio::{task::spawn_blocking, time::timeout};
use zookeeper_client::{Client, Error};

use super::{access::Credentials, diagnose::diagnose};
use crate::sources::spec::{Access, Login};

/// How soon a server that says nothing is given up.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(3);

/// Opens a session. The files that `access` names are read for it.
///
/// # Errors
/// What each server, or a file, says; nothing of a file's contents.
pub(crate) async fn connect(
    hosts: &[String],
    access: &Access,
    session_timeout: Duration,
) -> Result<Client, String> {
    let files = access.clone();
    // Secrets may be on a mount that hangs, and this thread may be that of others, too.
    let credentials = spawn_blocking(move || Credentials::read(&files)).await;
    let credentials = credentials.map_err(|error| error.to_string())?.map_err(|error| error.to_string())?;
    let connector = Client::connector()
        .with_session_timeout(session_timeout)
        // Beyond three fifths the library ignores it.
        .with_connection_timeout(CONNECTION_TIMEOUT.min(session_timeout / 2))
        .with_fail_eagerly();
    let connector = credentials.apply(connector).map_err(|error| error.to_string())?;
    let all = hosts.join(",");
    let connecting = async {
        match &access.tls {
            Some(_) => connector.secure_connect(&all).await,
            None => connector.connect(&all).await,
        }
    };
    match timeout(session_timeout, connecting).await {
        Ok(Ok(client)) => Ok(client),
        Ok(Err(Error::AuthFailed)) => Err(refused(access, &all)),
        Ok(Err(error)) => {
            let tls = credentials.tls_config().map_err(|error| error.to_string())?;
            let findings = diagnose(hosts, tls.as_ref()).await;
            Err(format!("no session with {all}: {error}: {findings}"))
        }
        Err(_) => Err(format!("no server of {all} answered within {session_timeout:?}")),
    }
}

fn refused(access: &Access, hosts: &str) -> String {
    match &access.login {
        Some(Login { user, password_file, .. }) => format!(
            "{hosts} refused user {user:?} with the password in {}: one of the two is wrong there",
            password_file.display()
        ),
        None => format!("{hosts} requires a login; give user=USER&password_file=FILE"),
    }
}
