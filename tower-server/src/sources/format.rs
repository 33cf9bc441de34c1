//! What registrations look like. Each format is a pure function from a member's name and data, in a file of
//! its own. Another one (Nerve's and Dubbo's are not here yet) is another file with its `decode`, a variant
//! and a word here, and, if its data can be told from all others, a line in [`auto`].

mod auto;
mod curator;
mod hostport;
mod json;
mod kingpin;
mod metadata;
mod serverset;
mod thrift;
mod weights;

use std::{collections::BTreeMap, fmt, str::FromStr};

use tower_proto::v1::endpoint::State;

pub use self::weights::{Factor, Select, WeightRule};
use super::address::{Host, NotAnAddress};

/// Larger data is refused before it is parsed.
pub const MAX_DATA_BYTES: usize = 64 << 10;

/// The label of a member's number among its likes.
const SHARD: &str = "shard";

/// How members are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Format {
    /// Each child as what it looks like.
    #[default]
    Auto,
    /// Pinterest KingPin: the name ends in `host:port`.
    Kingpin,
    /// Twitter ServerSets, in JSON or Thrift, with vectors of weights.
    Serverset,
    /// Apache Curator's x-discovery, and Spring Cloud Zookeeper.
    Curator,
    /// `host:port`, in the data or as the name.
    Hostport,
}

/// Not the word of a format.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is unknown; it is one of {list}", list = Format::WORDS.join(", "))]
pub struct UnknownFormat(String);

/// One endpoint, as it was registered.
#[derive(Debug, Clone, PartialEq)]
pub struct Registration {
    /// An address, or a name to be resolved.
    pub host: Host,
    /// 1 to 65535.
    pub port: u16,
    /// Empty for the main port.
    pub port_name: String,
    /// Relative to the others; absent means 1.
    pub weight: Option<f64>,
    /// Whether it wants traffic.
    pub state: State,
    /// Where it is.
    pub zone: String,
    /// Where that is.
    pub region: String,
    /// A part of the zone.
    pub sub_zone: String,
    /// All else that it says.
    pub labels: BTreeMap<String, String>,
}

/// What a member registers.
#[derive(Debug, Clone, PartialEq)]
pub struct Decoded {
    /// The endpoints, the main one first.
    pub registrations: Vec<Registration>,
    /// What it says of the weights of all members of its directory.
    pub weights: Vec<WeightRule>,
    /// What was odd, but did not hinder.
    pub remarks: Vec<String>,
}

/// Why a member is malformed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// More data than [`MAX_DATA_BYTES`].
    #[error("{0} bytes of data, more than {MAX_DATA_BYTES}")]
    TooLarge(usize),
    /// No data, in a format that needs some.
    #[error("no data")]
    Empty,
    /// Data that is not JSON.
    #[error("not JSON: {0}")]
    NotJson(String),
    /// Data that begin as Thrift's binary form, and are not.
    #[error("not Thrift: byte {at}: {problem}")]
    NotThrift {
        /// Where.
        at: usize,
        /// What is wrong.
        problem: String,
    },
    /// An object with none of the keys by which formats are told apart.
    #[error("JSON of no known format: it has none of \"serviceEndpoint\", \"vector\", \"address\"")]
    UnknownJson,
    /// A field that is missing, or not what it should be.
    #[error("field {field:?}: {problem}")]
    Field {
        /// The path of the field.
        field: String,
        /// What is wrong.
        problem: String,
    },
    /// Neither name nor data is an address.
    #[error("name {name:?}: {by_name}; data {data:?}: {by_data}")]
    NoAddress {
        /// The part of the name that should be an address.
        name: String,
        /// Why it is none.
        by_name: NotAnAddress,
        /// The beginning of the data.
        data: String,
        /// Why it is none.
        by_data: NotAnAddress,
    },
}

impl Format {
    /// The words of all formats.
    pub const WORDS: [&str; 5] = ["auto", "kingpin", "serverset", "curator", "hostport"];

    /// Whether a child of a service's directory with this name is a member.
    pub fn is_member(self, name: &str) -> bool {
        match self {
            Self::Auto => auto::is_member(name),
            Self::Kingpin | Self::Curator | Self::Hostport => true,
            Self::Serverset => serverset::is_member(name),
        }
    }

    /// What a member registers.
    ///
    /// # Errors
    /// If the member is malformed.
    pub fn decode(self, name: &str, data: &[u8]) -> Result<Decoded, DecodeError> {
        if data.len() > MAX_DATA_BYTES {
            return Err(DecodeError::TooLarge(data.len()));
        }
        match self {
            Self::Auto => auto::decode(name, data),
            Self::Kingpin => kingpin::decode(name, data),
            Self::Serverset => serverset::decode(name, data),
            Self::Curator => curator::decode(data),
            Self::Hostport => hostport::decode(name, data),
        }
    }
}

impl FromStr for Format {
    type Err = UnknownFormat;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        match word {
            "auto" => Ok(Self::Auto),
            "kingpin" => Ok(Self::Kingpin),
            "serverset" => Ok(Self::Serverset),
            "curator" => Ok(Self::Curator),
            "hostport" => Ok(Self::Hostport),
            other => Err(UnknownFormat(other.to_owned())),
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Auto => "auto",
            Self::Kingpin => "kingpin",
            Self::Serverset => "serverset",
            Self::Curator => "curator",
            Self::Hostport => "hostport",
        })
    }
}

impl Registration {
    /// An endpoint that says nothing but its address.
    pub fn new(host: Host, port: u16) -> Self {
        Self {
            host,
            port,
            port_name: String::new(),
            weight: None,
            state: State::Up,
            zone: String::new(),
            region: String::new(),
            sub_zone: String::new(),
            labels: BTreeMap::new(),
        }
    }

    /// Adds what the path of the registration says. It is the operator's word, so it wins over the
    /// registration's own.
    pub fn add_labels<'a>(&mut self, labels: impl IntoIterator<Item = (&'a str, &'a str)>) {
        self.labels.extend(labels.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())));
    }

    /// Labels that have a field of their own move there: `zone`, or else `az`, to the zone.
    pub fn settle_labels(&mut self) {
        let az = self.labels.remove("az");
        if let Some(zone) = self.labels.remove("zone").or(az) {
            self.zone = zone;
        }
    }
}

impl Decoded {
    /// Endpoints, and nothing odd.
    fn of(registrations: Vec<Registration>) -> Self {
        Self { registrations, weights: Vec::new(), remarks: Vec::new() }
    }
}

/// The text of some data, without what writers leave around it.
fn text(data: &[u8]) -> Option<&str> {
    std::str::from_utf8(data).ok().map(|text| text.trim_matches(|c: char| c.is_whitespace() || c == '\0'))
}

/// The beginning of some data, to be shown.
fn excerpt(data: &[u8]) -> String {
    const SHOWN: usize = 60;
    String::from_utf8_lossy(&data[..data.len().min(SHOWN)]).into_owned()
}

#[cfg(test)]
mod tests;
