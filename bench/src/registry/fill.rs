//! A log that people and Towers have written: each version of each service was uploaded, activated, accepted
//! by a host, and so has succeeded. Decided by the same commands, and appended as Tower appends, by the token
//! of the admin that a Tower has made; only the Towers between are left out.

use std::path::Path;

use anyhow::{Context as _, Result, anyhow, ensure};
use bytes::Bytes;
use tower_common::clock;
use tower_proto::v1::{self, activation_ended::Outcome};
use tower_server::{
    event_log::{EventLog, Options, Target},
    registry::{
        Command, Context, Prepared, State,
        commands::{self, Activate, End, Plan, PreparedDocument, Report, Upload},
        fold::versions::release_name,
        permission::TOWER,
    },
};
use tower_tests::{EndpointFiles, Tower, TowerOptions};

use super::{
    Size,
    documents::{Compiled, compiled, name, text},
};
use crate::mesh::until;

/// The release that a build of this level makes.
const LEVEL: u32 = 1;

/// Fills the log in this data folder, unless there is one.
pub(super) async fn fill(data_dir: &Path, size: Size) -> Result<()> {
    if data_dir.join("log").exists() {
        return Ok(());
    }
    // Its first start makes the admin.
    let nothing = EndpointFiles::new()?;
    let mut tower = Tower::start(TowerOptions {
        data_dir: Some(data_dir.to_owned()),
        discovery: vec![nothing.discovery()],
        ..Default::default()
    })
    .await?;
    until("there is an admin", async || Ok(tower.admin_token().is_some())).await?;
    ensure!(tower.terminate().await?.success(), "Tower did not end in good order");
    let options = Options { run: "bench".to_owned(), ..Options::default() };
    let log = EventLog::open(&Target::Embedded, data_dir, options).await?;
    let mut filling = Filling { admin: String::new(), state: State::default(), log };
    filling.begin().await?;
    for version in 1..=size.versions {
        for service in 0..size.services {
            let name = name(service);
            let document = compiled(&name, text(service, size.services, version))?;
            filling.version(&name, version as u64, document).await?;
        }
    }
    Ok(())
}

struct Filling {
    log: EventLog,
    state: State,
    /// The id of the admin's token.
    admin: String,
}

impl Filling {
    async fn begin(&mut self) -> Result<()> {
        for entry in self.log.read(1, usize::MAX).await? {
            self.state.apply(&entry)?;
        }
        let admin = self.state.mesh().tokens.keys().next().context("there is no token")?;
        self.admin = admin.clone();
        Ok(())
    }

    async fn version(&mut self, name: &str, number: u64, compiled: Compiled) -> Result<()> {
        let service = name.to_owned();
        let (text, bundle) = (Bytes::from(compiled.text), Bytes::from(compiled.bundle));
        let document = PreparedDocument {
            hash: compiled.hash.to_vec(),
            body: blake3::hash(&text).as_bytes().to_vec(),
            owner: compiled.owner,
        };
        let upload = Upload { service: service.clone(), file: String::new(), text: String::new() };
        let prepared = Prepared { document: Some(document), ..Prepared::default() };
        let admin = self.admin.clone();
        self.append(&admin, Command::Upload(upload), prepared, &[text]).await?;

        let hash = blake3::hash(&bundle);
        let release = v1::ReleaseMade {
            release: release_name(hash.as_bytes()),
            level: LEVEL,
            bundle: hash.as_bytes().to_vec().into(),
            ..Default::default()
        };
        let prepared = Prepared { release: Some(release), ..Prepared::default() };
        let plan = Plan { at_once: true, ..Plan::default() };
        let activate = Activate { service: service.clone(), version: number, plan, again: false };
        let activate = Command::Activate(activate);
        let activation = self.append(&admin, activate, prepared, &[bundle]).await?;
        let activation = activation.context("nothing was to be done")?;

        let reported = v1::ActivationReported {
            activation: activation.clone(),
            tower: "bench".to_owned(),
            hosts: 1,
            accepted: 1,
            ..Default::default()
        };
        let report = Command::Report(Report { service: service.clone(), reported });
        self.append(TOWER, report, Prepared::default(), &[]).await?;
        let outcome = Outcome::Succeeded.into();
        let ended = v1::ActivationEnded { activation, outcome, ..Default::default() };
        self.append(TOWER, Command::End(End { service, ended }), Prepared::default(), &[]).await?;
        Ok(())
    }

    /// Returns the id of the activation that the command is about.
    async fn append(
        &mut self,
        by: &str,
        command: Command,
        prepared: Prepared,
        bodies: &[Bytes],
    ) -> Result<Option<String>> {
        let context = Context {
            actor: v1::Actor { name: by.to_owned(), credential: by.to_owned(), address: String::new() },
            now_ms: clock::unix_millis(),
            command_id: format!("bench-{}", self.state.index()),
            reason: "to have something to measure".to_owned(),
            prepared,
            ..Context::default()
        };
        let decision =
            commands::handle(&self.state, &command, &context).map_err(|refusal| anyhow!("{refusal}"))?;
        let entry = commands::entry(&self.state, &command, &context, decision.events);
        self.state.apply(&entry)?;
        self.log.append(entry.index - 1, entry, bodies).await?;
        Ok(decision.activation)
    }
}
