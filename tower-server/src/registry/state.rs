//! What the log comes to. Read here; changed by [`State::apply`] alone, in [`super::fold`].

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use prost::Message;
use tower_proto::v1;

use super::service::Service;

/// How many command ids are remembered: a command that comes again later than this is another one.
pub(super) const COMMANDS: usize = 10_000;

/// How many holds are remembered; the oldest go.
pub(super) const HOLDS: usize = 10_000;

/// The fold of the log's entries. Two Towers that have folded the same entries have equal states, to the
/// byte of their checkpoints.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct State {
    pub(super) index: u64,
    pub(super) time_ms: u64,
    pub(super) services: BTreeMap<Arc<str>, Arc<Service>>,
    pub(super) mesh: Arc<Mesh>,
    pub(super) commands: Commands,
}

/// What belongs to no service.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Mesh {
    /// Platform's part for all services.
    pub platform: v1::PartRecord,
    /// Security's part for all services.
    pub security: v1::PartRecord,
    /// Tokens by id.
    pub tokens: BTreeMap<String, v1::TokenRecord>,
    /// The guard's holds by id.
    pub holds: BTreeMap<String, v1::HoldRecord>,
    /// What was adopted, by source.
    pub adoptions: BTreeMap<String, v1::AdoptionRecord>,
    /// The feature level in force; 0 until one was raised.
    pub feature_level: u32,
}

/// The newest command ids.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Commands {
    order: std::collections::VecDeque<Arc<str>>,
    index: HashMap<Arc<str>, u64>,
}

impl Commands {
    pub(super) fn record(&mut self, id: &str, index: u64) {
        let id: Arc<str> = id.into();
        self.order.push_back(id.clone());
        self.index.insert(id, index);
        if self.order.len() > COMMANDS
            && let Some(oldest) = self.order.pop_front()
        {
            self.index.remove(&oldest);
        }
    }

    fn records(&self) -> impl Iterator<Item = v1::CommandRecord> {
        self.order.iter().map(|id| v1::CommandRecord { id: id.to_string(), index: self.index[id] })
    }
}

impl State {
    /// The entry up to which the log is folded; 0 before the first.
    pub fn index(&self) -> u64 {
        self.index
    }

    /// The time of that entry, in milliseconds since 1970.
    pub fn time_ms(&self) -> u64 {
        self.time_ms
    }

    /// All services that the log says anything about, by name.
    pub fn services(&self) -> impl Iterator<Item = (&str, &Arc<Service>)> {
        self.services.iter().map(|(name, service)| (&**name, service))
    }

    /// One service.
    pub fn service(&self, name: &str) -> Option<&Arc<Service>> {
        self.services.get(name)
    }

    /// One service, with its name.
    pub(super) fn entry(&self, name: &str) -> Option<(&Arc<str>, &Arc<Service>)> {
        self.services.get_key_value(name)
    }

    /// What belongs to no service.
    pub fn mesh(&self) -> &Mesh {
        &self.mesh
    }

    /// The entry of a command, if its id is among the newest.
    pub fn entry_of_command(&self, id: &str) -> Option<u64> {
        self.commands.index.get(id).copied()
    }

    /// A part of the document that belongs to platform or security: of a service, or for all.
    pub fn part(&self, owner: v1::part_edited::Owner, service: Option<&str>) -> Option<&v1::PartRecord> {
        let of_service = |service: &str| self.services.get(service).map(|service| &**service);
        match (owner, service) {
            (v1::part_edited::Owner::Unspecified, _) => None,
            (v1::part_edited::Owner::Platform, None) => Some(&self.mesh.platform),
            (v1::part_edited::Owner::Security, None) => Some(&self.mesh.security),
            (v1::part_edited::Owner::Platform, Some(service)) => of_service(service).map(|s| &s.platform),
            (v1::part_edited::Owner::Security, Some(service)) => of_service(service).map(|s| &s.security),
        }
    }

    /// An activation of any service, with the name of that service.
    pub fn activation(&self, id: &str) -> Option<(&str, &v1::ActivationRecord)> {
        let (service, _) = id.rsplit_once('-')?;
        let (name, service) = self.services.get_key_value(service)?;
        Some((name, service.activation(id)?))
    }

    /// The state as bytes: the same for equal states.
    pub fn to_checkpoint(&self) -> Vec<u8> {
        let mesh = &*self.mesh;
        let services = self.services.iter().map(|(name, service)| (name.to_string(), service.to_record()));
        v1::Registry {
            index: self.index,
            time_ms: self.time_ms,
            services: services.collect(),
            platform: Some(mesh.platform.clone()),
            security: Some(mesh.security.clone()),
            tokens: mesh.tokens.clone(),
            holds: mesh.holds.clone(),
            adoptions: mesh.adoptions.clone(),
            feature_level: mesh.feature_level,
            commands: self.commands.records().collect(),
        }
        .encode_to_vec()
    }

    /// The state that a checkpoint holds.
    ///
    /// # Errors
    /// If the bytes are not a checkpoint.
    pub fn from_checkpoint(bytes: &[u8]) -> Result<Self, prost::DecodeError> {
        let record = v1::Registry::decode(bytes)?;
        let mut commands = Commands::default();
        for command in record.commands {
            commands.record(&command.id, command.index);
        }
        let service = |(name, record): (String, v1::ServiceRecord)| {
            (Arc::from(name), Arc::new(Service::from_record(record)))
        };
        Ok(Self {
            index: record.index,
            time_ms: record.time_ms,
            services: record.services.into_iter().map(service).collect(),
            mesh: Arc::new(Mesh {
                platform: record.platform.unwrap_or_default(),
                security: record.security.unwrap_or_default(),
                tokens: record.tokens,
                holds: record.holds,
                adoptions: record.adoptions,
                feature_level: record.feature_level,
            }),
            commands,
        })
    }
}
