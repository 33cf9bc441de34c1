//! What a log in ZooKeeper does when the connection, the server, or the history is lost.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use rand::{Rng, SeedableRng, rngs::StdRng};
use tower_common::tls;
use tower_server::event_log::{AppendError, EventLog, OpenError, Options, State};
use tower_tests::{Authority, Fault, Login, Proxy, ZooKeeper, eventually, rounds};

use super::places::{Place, all, entry, url};
use crate::support::{SOON, seed};

/// A log that is reached through a proxy, and the same one without it.
struct Behind {
    proxy: Proxy,
    log: EventLog,
    straight: EventLog,
    _place: Place,
}

impl Behind {
    async fn start() -> Result<Self> {
        let place = Place::zookeeper().await?;
        let registry = &place.shared.as_ref().context("it is in ZooKeeper")?.registry;
        let server = ZooKeeper::shared().await?.connect_string();
        let proxy = Proxy::start(server.parse()?).await?;
        let target = url(&proxy.address().to_string(), registry).parse()?;
        let options = Options { run: "behind".to_owned(), ..Options::default() };
        let log = EventLog::open(&target, place.data_dir(), options).await?;
        let straight = place.open_as("straight").await?;
        Ok(Self { proxy, log, straight, _place: place })
    }

    /// Cuts the connection, once.
    async fn cut(&self) -> Result<()> {
        self.proxy.set(Fault::Cut);
        let mut state = self.log.state();
        tokio::time::timeout(SOON, state.wait_for(|state| *state != State::Live)).await??;
        self.proxy.set(Fault::None);
        Ok(())
    }
}

/// A command id that is kept in the same folder as this one.
fn beside(id: &str) -> String {
    let folder = |id: &str| blake3::hash(id.as_bytes()).as_bytes()[0];
    let mut others = (0..).map(|number: u32| format!("{id}-{number}"));
    others.find(|other| folder(other) == folder(id)).unwrap_or_default()
}

#[tokio::test]
async fn an_answer_that_is_lost_is_found_by_the_command_id() -> Result<()> {
    let behind = Behind::start().await?;
    let Behind { proxy, log, straight, .. } = &behind;
    log.append(0, entry("before"), &[]).await?;
    // No folder has to be made for it first: a single request is all that is needed.
    let id = beside("before");
    proxy.set(Fault::Mute);
    let writer = log.clone();
    let appending = tokio::spawn(async move { writer.append(1, entry(id), &[]).await });
    tokio::time::timeout(SOON, straight.head().wait_for(|head| *head == 2)).await??;
    // By now somebody else has gone on.
    straight.append(2, entry("b"), &[]).await?;
    behind.cut().await?;
    assert_eq!(appending.await?, Ok(2));
    assert_eq!(all(log).await?, all(straight).await?);
    Ok(())
}

#[tokio::test]
async fn a_request_that_is_lost_is_made_again_or_loses() -> Result<()> {
    let behind = Behind::start().await?;
    let Behind { proxy, log, straight, .. } = &behind;
    for (head, others, expected) in [(0, 0, Ok(1)), (1, 1, Err(AppendError::Conflict { head: 2 }))] {
        proxy.set(Fault::Frozen);
        let writer = log.clone();
        let appending =
            tokio::spawn(async move { writer.append(head, entry(format!("a{head}")), &[]).await });
        tokio::time::timeout(SOON, straight.head().wait_for(|known| *known == head)).await??;
        for other in 0..others {
            straight.append(head + other, entry(format!("b{other}")), &[]).await?;
        }
        behind.cut().await?;
        assert_eq!(appending.await?, expected);
        tokio::time::timeout(SOON, log.state().wait_for(|state| *state == State::Live)).await??;
    }
    let ids: Vec<String> = all(log).await?.into_iter().map(|entry| entry.command_id).collect();
    assert_eq!(ids, ["a0", "b0"]);
    Ok(())
}

#[tokio::test]
async fn under_random_cuts_each_command_is_there_once() -> Result<()> {
    let mut random = StdRng::seed_from_u64(seed());
    let Behind { proxy, log, straight, .. } = &Behind::start().await?;
    let faults = async {
        loop {
            tokio::time::sleep(Duration::from_millis(random.random_range(0..40))).await;
            let fault = [Fault::Cut, Fault::Mute, Fault::Frozen][random.random_range(0..3)];
            proxy.set(fault);
            tokio::time::sleep(Duration::from_millis(random.random_range(0..10))).await;
            proxy.set(Fault::Cut);
            // Long enough for the proxy to see it.
            tokio::time::sleep(Duration::from_millis(5)).await;
            proxy.set(Fault::None);
            // Time to reconnect, or nothing would ever be sent.
            tokio::time::sleep(Duration::from_millis(random.random_range(50..300))).await;
        }
    };
    let appends = async {
        for at in 0..rounds(150, 3_000) as u64 {
            let index = loop {
                match log.append(at, entry(format!("c{at}")), &[]).await {
                    Ok(index) => break index,
                    Err(AppendError::Unavailable(_) | AppendError::Unknown(_)) => {}
                    Err(error) => return Err(anyhow::Error::from(error)),
                }
            };
            ensure!(index == at + 1, "command {at} is entry {index}");
        }
        Ok(())
    };
    tokio::select! {
        never = faults => never,
        done = appends => done?,
    }
    assert_eq!(all(straight).await?.len(), rounds(150, 3_000));
    Ok(())
}

#[tokio::test]
async fn without_the_ensemble_nothing_is_appended_and_all_that_is_known_stays() -> Result<()> {
    let Behind { proxy, log, straight, .. } = &Behind::start().await?;
    log.append(0, entry("a"), &[]).await?;
    proxy.set(Fault::Cut);
    let unreachable = log.state().wait_for(|state| matches!(state, State::Unreachable { .. })).await?.clone();
    let error = log.append(1, entry("b"), &[]).await.unwrap_err();
    assert!(matches!(error, AppendError::Unavailable(_) | AppendError::Unknown(_)), "{error}");
    assert_eq!(*log.head().borrow(), 1);
    straight.append(1, entry("c"), &[]).await?;
    proxy.set(Fault::None);
    // What happened meanwhile arrives, and it goes on.
    tokio::time::timeout(SOON, log.head().wait_for(|head| *head == 2)).await??;
    tokio::time::timeout(SOON, log.state().wait_for(|state| *state == State::Live)).await??;
    assert_eq!(log.append(2, entry("d"), &[]).await, Ok(3), "after {unreachable:?}");
    eventually(SOON, "it is a member again", async || {
        ensure!(*straight.members().borrow() == ["behind", "straight"], "{:?}", straight.members().borrow());
        Ok(())
    })
    .await;
    Ok(())
}

#[tokio::test]
async fn a_log_that_was_rolled_back_or_replaced_is_refused() -> Result<()> {
    let folder = tempfile::tempdir()?;
    for (backup, words) in [(Some(folder.path()), "restored from a backup"), (None, "is gone")] {
        let mut server = ZooKeeper::start().await?;
        let place = Place::in_server(&server).await?;
        let log = place.open().await?;
        log.append(0, entry("a"), &[]).await?;
        server.kill();
        if let Some(to) = backup {
            server.back_up(to)?;
        }
        server.restart().await?;
        tokio::time::timeout(SOON, log.state().wait_for(|state| *state == State::Live)).await??;
        eventually(SOON, "it is written to", async || Ok(log.append(1, entry("b"), &[]).await?)).await;
        log.save_checkpoint(2, "folded".into()).await?;
        server.kill();
        server.roll_back(backup)?;
        server.restart().await?;
        let mut state = log.state();
        let refused = state.wait_for(|state| matches!(state, State::Refused { .. }));
        let refused = tokio::time::timeout(SOON, refused).await??.clone();
        assert!(matches!(&refused, State::Refused { why } if why.contains(words)), "{refused:?}");
        let error = log.append(2, entry("c"), &[]).await.unwrap_err();
        assert!(matches!(&error, AppendError::Refused(why) if why.contains(words)), "{error}");
        drop(log);
        // Nor by the next run of the Tower, until somebody says so.
        let error = place.try_open("tower-1", Default::default()).await.err().context("it is opened")?;
        let file = place.data_dir().join("event-log.seen");
        let advice = format!("if that is meant, remove {}", file.display());
        assert!(error.to_string().contains(&advice), "{error}");
        std::fs::remove_file(&file)?;
        place.open().await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_znode_beyond_the_head_is_nobodys_entry() -> Result<()> {
    let place = Place::zookeeper().await?;
    let log = place.open().await?;
    log.append(0, entry("a"), &[]).await?;
    let registry = &place.shared.as_ref().context("it is in ZooKeeper")?.registry;
    registry.create("tower/log/0/2", b"forged").await?;
    let error = log.append(1, entry("b"), &[]).await.unwrap_err();
    assert!(matches!(&error, AppendError::Refused(why) if why.contains("/log/0/2 is there")), "{error}");
    assert_eq!(all(&log).await?.len(), 1);
    Ok(())
}

#[tokio::test]
async fn what_is_written_as_a_user_is_that_users() -> Result<()> {
    let place = Place::zookeeper().await?;
    let registry = &place.shared.as_ref().context("it is in ZooKeeper")?.registry;
    let password = place.data_dir().join("password");
    std::fs::write(&password, "correct-horse-7")?;
    let server = ZooKeeper::shared().await?.connect_string();
    let login = |user: &str| {
        let url = url(&server, registry);
        format!("{url}?user={user}&password_file={}&auth=digest&session_timeout=2s", password.display())
    };
    let log = open_url(&login("tower"), &place).await?;
    log.append(0, entry("a"), &[]).await?;
    for path in ["tower/head", "tower/log/0/1"] {
        assert!(registry.get(path).await.is_err(), "anybody reads {path}");
    }
    let error = open_url(&login("other"), &place).await.err().context("another user gets in")?;
    assert!(error.to_string().contains("not authorized"), "{error}");
    Ok(())
}

async fn open_url(url: &str, place: &Place) -> Result<EventLog> {
    Ok(EventLog::open(&url.parse()?, place.data_dir(), Options::default()).await?)
}

#[tokio::test]
async fn by_tls_and_sasl() -> Result<()> {
    tls::install_provider();
    let authority = Authority::new("the ensemble's CA")?;
    let login = Login { user: "tower".to_owned(), password: "correct-horse-7".to_owned() };
    let (server, port) = ZooKeeper::start_secured(&authority, login).await?;
    let place = Place::in_server(&server).await?;
    let identity = authority.sign(&["tower"])?;
    let file = |name: &str, text: &str| {
        let path = place.data_dir().join(name);
        std::fs::write(&path, text)?;
        anyhow::Ok(path.display().to_string())
    };
    let (ca, cert) = (file("ca", authority.certificate())?, file("cert", &identity.certificate)?);
    let (key, password) = (file("key", &identity.key)?, file("password", "correct-horse-7")?);
    let wrong = file("wrong", "battery-staple-8")?;
    let url = |password: &str| {
        format!(
            "zks://127.0.0.1:{port}/tower?ca={ca}&cert={cert}&key={key}&user=tower&password_file={password}\
             &session_timeout=2s"
        )
    };
    let log = open_url(&url(&password), &place).await?;
    assert_eq!(log.append(0, entry("a"), &[]).await, Ok(1));
    // A server may also end the connection before its refusal is heard. Each attempt tells what it heard last.
    eventually(3 * SOON, "a wrong password is refused", async || {
        let error = open_url(&url(&wrong), &place).await.err().context("a wrong password gets in")?;
        let error = error.downcast::<OpenError>()?;
        let refused =
            |error: &OpenError| matches!(error, OpenError::Unavailable { why, .. } if why.contains("refused user"));
        ensure!(refused(&error), "{error}");
        Ok(())
    })
    .await;
    Ok(())
}
