//! The registry without log, documents and clock: commands and what they come to.

mod cases;
mod hand_written;
mod random;
mod rights;

use tower_proto::v1;

use super::{
    Command, Context, Decision, Prepared, Refusal, State,
    commands::{self, Activate, IssueToken, Plan, PreparedDocument, RollBack, Upload},
    fold::versions::release_name,
    permission::TOWER,
};

/// A registry, and what goes into each command unless a test says otherwise.
pub(super) struct World {
    pub(super) state: State,
    entries: Vec<v1::LogEntry>,
    now_ms: u64,
    host: Option<String>,
}

/// Bytes that stand for a hash.
fn hash(of: &str) -> Vec<u8> {
    let mut hash = [0; 32];
    for (place, byte) in of.bytes().enumerate() {
        hash[place % 32] ^= byte.rotate_left(u32::try_from(place / 32).unwrap()).wrapping_mul(31);
        hash[31 - place % 32] = hash[31 - place % 32].wrapping_add(byte);
    }
    hash.to_vec()
}

impl World {
    pub(super) fn new() -> Self {
        let state = State::default();
        let mut world = Self { state, entries: Vec::new(), now_ms: 1_000, host: Some("host-1".into()) };
        for (id, role, services) in [
            ("admin", "admin", ""),
            ("ann", "owner", "web"),
            ("bob", "owner", "ads"),
            ("pat", "platform", ""),
            ("sue", "security", ""),
            ("vic", "viewer", ""),
        ] {
            let services = services.split(' ').filter(|name| !name.is_empty()).map(str::to_owned);
            let issued = v1::TokenIssued {
                id: id.into(),
                name: id.into(),
                hash: hash(id).into(),
                roles: vec![role.into()],
                services: services.collect(),
                expires_ms: 0,
                ..Default::default()
            };
            let by = if id == "admin" { TOWER } else { "admin" };
            world.run(by, Command::IssueToken(IssueToken { issued })).unwrap();
        }
        world
    }

    fn context(&self, by: &str) -> Context {
        Context {
            actor: v1::Actor { name: by.into(), credential: by.into(), address: String::new() },
            now_ms: self.now_ms,
            command_id: format!("c-{}", self.entries.len()),
            reason: "because".into(),
            if_match: None,
            prepared: Prepared { first_host: self.host.clone(), ..Prepared::default() },
        }
    }

    /// What the compiler would say: the bytes depend on the document and the parts.
    fn prepare(&self, command: &Command, context: &mut Context) {
        let document = |service: &str, text: &str| PreparedDocument {
            hash: hash(&format!("{service} {text}")),
            body: hash(&format!("body {service} {text}")),
            owner: format!("team-{service}"),
        };
        let latest = |owner, service: Option<&str>| {
            self.state.part(owner, service).map_or(0, |part| part.revisions.len() as u64)
        };
        let release = |service: &str, content: &[u8]| {
            let (platform, security) = (v1::part_edited::Owner::Platform, v1::part_edited::Owner::Security);
            let parts = [
                latest(platform, None),
                latest(platform, Some(service)),
                latest(security, None),
                latest(security, Some(service)),
            ];
            let bundle = hash(&format!("bundle {content:?} {parts:?}"));
            v1::ReleaseMade {
                release: release_name(&bundle),
                platform: parts[0],
                platform_for_service: parts[1],
                security: parts[2],
                security_for_service: parts[3],
                level: 1,
                bundle: bundle.into(),
                ..Default::default()
            }
        };
        let of_version = |service: &str, number: u64| {
            let version = self.state.service(service)?.version(number)?.uploaded.as_ref()?;
            Some(release(service, &version.hash))
        };
        let prepared = &mut context.prepared;
        match command {
            Command::Upload(Upload { service, text, .. }) => {
                prepared.document = Some(document(service, text));
            }
            Command::EditPart(edit) => {
                prepared.document = edit.text.as_ref().map(|text| document("part", text));
            }
            Command::Activate(activate) => {
                prepared.release = of_version(&activate.service, activate.version);
            }
            Command::RollBack(RollBack { service, to }) => {
                let held = self.state.service(service);
                if let Some(Ok(commands::Target::Version(version))) =
                    held.map(|held| commands::target(service, held, *to))
                {
                    prepared.release = of_version(service, version);
                }
            }
            Command::Traffic(traffic) => {
                let document = document(&traffic.service, &format!("weights {:?}", traffic.weights));
                prepared.release = Some(release(&traffic.service, &document.hash));
                prepared.document = Some(document);
            }
            _ => {}
        }
    }

    fn run_with(&mut self, context: &Context, command: &Command) -> Result<Decision, Refusal> {
        let decision = commands::handle(&self.state, command, context)?;
        if !decision.events.is_empty() {
            let entry = commands::entry(&self.state, command, context, decision.events.clone());
            self.state.apply(&entry).unwrap_or_else(|error| panic!("{command:?}: {error}"));
            self.entries.push(entry);
        }
        Ok(decision)
    }

    #[allow(clippy::needless_pass_by_value, reason = "commands are written where they are run")]
    fn run(&mut self, by: &str, command: Command) -> Result<Decision, Refusal> {
        self.now_ms += 1;
        let mut context = self.context(by);
        self.prepare(&command, &mut context);
        self.run_with(&context, &command)
    }

    pub(super) fn upload(&mut self, service: &str, text: &str) -> u64 {
        let upload = Upload { service: service.into(), file: "web.yaml".into(), text: text.into() };
        self.run("admin", Command::Upload(upload)).unwrap().version.unwrap()
    }

    pub(super) fn activate(&mut self, service: &str, version: u64, at_once: bool) -> String {
        let plan = Plan { at_once, ..Plan::default() };
        let activate = Activate { service: service.into(), version, plan, ..Default::default() };
        self.run("admin", Command::Activate(activate)).unwrap().activation.unwrap()
    }

    pub(super) fn roll_back(&mut self, service: &str, to: Option<u64>) -> Result<Decision, Refusal> {
        self.run("admin", Command::RollBack(RollBack { service: service.into(), to }))
    }

    fn end(&mut self, id: &str, outcome: v1::activation_ended::Outcome) -> Result<Decision, Refusal> {
        let service = id.rsplit_once('-').unwrap().0.to_owned();
        let ended = v1::ActivationEnded {
            activation: id.into(),
            outcome: outcome.into(),
            rejection: (outcome == v1::activation_ended::Outcome::Rejected).then(|| v1::Rejection {
                host: "host-1".into(),
                error: "no".into(),
                ..Default::default()
            }),
            detail: String::new(),
        };
        self.run(TOWER, Command::End(commands::End { service, ended }))
    }

    pub(super) fn step(&mut self, id: &str, step: u32) -> Result<Decision, Refusal> {
        let service = id.rsplit_once('-').unwrap().0.to_owned();
        self.run(TOWER, Command::Step(commands::Step { service, activation: id.into(), step }))
    }

    /// Activated for all, and succeeded.
    pub(super) fn stand(&mut self, service: &str, text: &str) -> u64 {
        let version = self.upload(service, text);
        let id = self.activate(service, version, true);
        self.end(&id, v1::activation_ended::Outcome::Succeeded).unwrap();
        version
    }

    /// The versions of the rules and of the default, 0 for none.
    fn assigned(&self, service: &str) -> Vec<u64> {
        let service = self.state.service(service).unwrap();
        let rules = service.assignment.rules.iter().map(|rule| &rule.release);
        let releases = rules.chain([&service.assignment.default_release]);
        releases.map(|release| service.version_of(release).unwrap_or(0)).collect()
    }
}

#[track_caller]
fn refused(result: Result<Decision, Refusal>, code: &str) -> Refusal {
    let refusal = result.unwrap_err();
    assert_eq!(refusal.code, code, "{refusal}");
    refusal
}
