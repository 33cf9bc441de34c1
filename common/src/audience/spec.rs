//! Audiences as people write them: `zone=us-east-1a,us-east-1b&10%`.
//!
//! A text says less than an audience: a percentage has no salt yet, and a tier stands for workloads that
//! the service's document names. Both are filled in when it is [resolved](AudienceSpec::resolve).

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};
use tower_proto::v1::{
    self,
    audience::{Label, Names, Percent, Workloads, term::Term},
};

use super::{UnknownTerm, WHOLE, Workload};

/// What an audience's text may have, in bytes: room for some thousand host names.
const MAX_BYTES: usize = 64 << 10;

/// An audience as it is written. Without terms it is everyone.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct AudienceSpec {
    /// A host has to fit all of them.
    pub terms: Vec<TermSpec>,
}

/// One term.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TermSpec {
    /// `host=a,b`
    Hosts(Vec<String>),
    /// `zone=us-east-1a,us-east-1b`
    Zones(Vec<String>),
    /// `label:team=ads,ml`
    Label {
        /// The label.
        key: String,
        /// Its value is any of these.
        values: Vec<String>,
    },
    /// `workload=ads/canary,web`
    Workloads(Vec<Workload>),
    /// `tier=canary`: the clusters of the service that its document groups under these names.
    Tiers(Vec<String>),
    /// `10%`, in basis points.
    Percent(u32),
}

/// Why a text is no audience, or cannot be resolved.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AudienceError {
    /// Too long.
    #[error("an audience has at most {MAX_BYTES} bytes, and this has {0}; use labels instead of host names")]
    Long(usize),
    /// Not a term.
    #[error(
        "{0:?} is no term of an audience; a term is everyone, host=NAME,…, zone=NAME,…, label:KEY=VALUE,…, \
         workload=SERVICE[/CLUSTER],…, tier=NAME,… or a percentage such as 10%, and terms are joined with &"
    )]
    Term(String),
    /// A name is missing, or holds what separates names.
    #[error("{term:?}: {name:?} is no name; names are not empty, and have no spaces, ',', '&' or '='")]
    Name {
        /// The term.
        term: String,
        /// What is no name.
        name: String,
    },
    /// A percentage is none.
    #[error("{0:?} is no percentage; write more than 0 and at most 100, with at most two decimals")]
    Percent(String),
    /// The service's document has no such tier.
    #[error("the service has no tier {0:?}; its document names them under spec.tiers")]
    Tier(String),
}

impl AudienceSpec {
    /// Everyone.
    pub fn everyone() -> Self {
        Self::default()
    }

    /// Those who are in both.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.terms.extend(other.terms);
        self
    }

    /// The audience. `salt` is for percentages: the id of an activation or rollout. `tier` gives the
    /// workloads of a tier.
    ///
    /// # Errors
    /// If there is no such tier.
    pub fn resolve(
        &self,
        salt: &str,
        tier: impl Fn(&str) -> Option<Vec<Workload>>,
    ) -> Result<v1::Audience, AudienceError> {
        let names = |names: &[String]| Names { names: names.to_vec() };
        let term = |term: &TermSpec| {
            Ok(match term {
                TermSpec::Hosts(hosts) => Term::Hosts(names(hosts)),
                TermSpec::Zones(zones) => Term::Zones(names(zones)),
                TermSpec::Label { key, values } => {
                    Term::Label(Label { key: key.clone(), values: values.clone() })
                }
                TermSpec::Workloads(all) => Term::Workloads(workloads(all)),
                TermSpec::Tiers(tiers) => {
                    let mut all = Vec::new();
                    for name in tiers {
                        all.extend(tier(name).ok_or_else(|| AudienceError::Tier(name.clone()))?);
                    }
                    Term::Workloads(workloads(&all))
                }
                TermSpec::Percent(basis_points) => {
                    Term::Percent(Percent { basis_points: *basis_points, salt: salt.to_owned() })
                }
            })
        };
        let term = |spec| term(spec).map(|term| v1::audience::Term { term: Some(term) });
        Ok(v1::Audience { terms: self.terms.iter().map(term).collect::<Result<_, _>>()? })
    }

    /// An audience in words. Tiers have become workloads, and salts are left out.
    ///
    /// # Errors
    /// If it has a term that this build does not know.
    pub fn of(audience: &v1::Audience) -> Result<Self, UnknownTerm> {
        let term = |term: &v1::audience::Term| {
            Ok(match term.term.as_ref().ok_or(UnknownTerm)? {
                Term::Hosts(hosts) => TermSpec::Hosts(hosts.names.clone()),
                Term::Zones(zones) => TermSpec::Zones(zones.names.clone()),
                Term::Label(Label { key, values }) => {
                    TermSpec::Label { key: key.clone(), values: values.clone() }
                }
                Term::Workloads(all) => TermSpec::Workloads(
                    all.workloads
                        .iter()
                        .map(|w| Workload { service: w.service.clone(), cluster: w.cluster.clone() })
                        .collect(),
                ),
                Term::Percent(percent) => TermSpec::Percent(percent.basis_points),
            })
        };
        Ok(Self { terms: audience.terms.iter().map(term).collect::<Result<_, _>>()? })
    }
}

fn workloads(all: &[Workload]) -> Workloads {
    let name =
        |w: &Workload| v1::audience::WorkloadName { service: w.service.clone(), cluster: w.cluster.clone() };
    Workloads { workloads: all.iter().map(name).collect() }
}

impl FromStr for AudienceSpec {
    type Err = AudienceError;

    fn from_str(text: &str) -> Result<Self, AudienceError> {
        if text.len() > MAX_BYTES {
            return Err(AudienceError::Long(text.len()));
        }
        let terms = text.split('&').map(str::trim).filter(|term| *term != "everyone");
        Ok(Self { terms: terms.map(str::parse).collect::<Result<_, _>>()? })
    }
}

impl FromStr for TermSpec {
    type Err = AudienceError;

    fn from_str(text: &str) -> Result<Self, AudienceError> {
        if let Some(number) = text.strip_suffix('%') {
            let basis_points = basis_points(number.trim_end());
            return basis_points.map(Self::Percent).ok_or_else(|| AudienceError::Percent(text.to_owned()));
        }
        let unknown = || AudienceError::Term(text.to_owned());
        let (what, value) = text.split_once('=').ok_or_else(unknown)?;
        let bad = |name: &str| AudienceError::Name { term: text.to_owned(), name: name.to_owned() };
        let name = |name: &str| if is_name(name) { Ok(name.to_owned()) } else { Err(bad(name)) };
        let names = || value.split(',').map(|n| name(n.trim())).collect::<Result<Vec<_>, _>>();
        Ok(match what.trim() {
            "host" => Self::Hosts(names()?),
            "zone" => Self::Zones(names()?),
            "tier" => Self::Tiers(names()?),
            "workload" => {
                let workload = |text: String| {
                    let Some((service, cluster)) = text.split_once('/') else {
                        return Ok(Workload { service: text, cluster: String::new() });
                    };
                    if service.is_empty() || cluster.is_empty() || cluster.contains('/') {
                        return Err(bad(&text));
                    }
                    Ok(Workload { service: service.to_owned(), cluster: cluster.to_owned() })
                };
                Self::Workloads(names()?.into_iter().map(workload).collect::<Result<_, _>>()?)
            }
            other => match other.strip_prefix("label:") {
                Some(key) => Self::Label { key: name(key)?, values: names()? },
                None => return Err(unknown()),
            },
        })
    }
}

/// Names of hosts, zones and labels are what operators like, as long as they can be told apart in a text.
fn is_name(name: &str) -> bool {
    !name.is_empty() && !name.contains([',', '&', '=']) && !name.chars().any(char::is_whitespace)
}

fn basis_points(text: &str) -> Option<u32> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let digits =
        |text: &str, most| (1..=most).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole, 3) || !digits(fraction, 2) {
        return None;
    }
    let hundredths = fraction.parse::<u32>().ok()? * if fraction.len() == 1 { 10 } else { 1 };
    let basis_points = whole.parse::<u32>().ok()? * 100 + hundredths;
    (1..=WHOLE).contains(&basis_points).then_some(basis_points)
}

impl fmt::Display for AudienceSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut terms = self.terms.iter();
        let Some(first) = terms.next() else { return f.write_str("everyone") };
        first.fmt(f)?;
        terms.try_for_each(|term| write!(f, "&{term}"))
    }
}

impl fmt::Display for TermSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Hosts(hosts) => write!(f, "host={}", hosts.join(",")),
            Self::Zones(zones) => write!(f, "zone={}", zones.join(",")),
            Self::Label { key, values } => write!(f, "label:{key}={}", values.join(",")),
            Self::Workloads(all) => {
                let names: Vec<String> = all.iter().map(ToString::to_string).collect();
                write!(f, "workload={}", names.join(","))
            }
            Self::Tiers(tiers) => write!(f, "tier={}", tiers.join(",")),
            Self::Percent(basis_points) => match (basis_points / 100, basis_points % 100) {
                (whole, 0) => write!(f, "{whole}%"),
                (whole, hundredths) if hundredths % 10 == 0 => write!(f, "{whole}.{}%", hundredths / 10),
                (whole, hundredths) => write!(f, "{whole}.{hundredths:02}%"),
            },
        }
    }
}

impl fmt::Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.service)?;
        if self.cluster.is_empty() { Ok(()) } else { write!(f, "/{}", self.cluster) }
    }
}

impl TryFrom<String> for AudienceSpec {
    type Error = AudienceError;

    fn try_from(text: String) -> Result<Self, AudienceError> {
        text.parse()
    }
}

impl From<AudienceSpec> for String {
    fn from(spec: AudienceSpec) -> Self {
        spec.to_string()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parse(text: &str) -> Result<AudienceSpec, AudienceError> {
        text.parse()
    }

    #[test]
    fn texts_are_read_and_written() {
        let check = |text: &str, written: &str| assert_eq!(parse(text).unwrap().to_string(), written);
        check("everyone", "everyone");
        check("host=a", "host=a");
        check(" zone = a, b & 10 % ", "zone=a,b&10%");
        check("label:team=ads,ml", "label:team=ads,ml");
        check("workload=ads/canary,ads", "workload=ads/canary,ads");
        check("tier=canary&everyone&0.5%", "tier=canary&0.5%");
        check("12.34%&0.01%&100.00%&1.50%", "12.34%&0.01%&100%&1.5%");
        let both = parse("zone=a").unwrap().and(parse("10%").unwrap());
        assert_eq!(both.to_string(), "zone=a&10%");
    }

    #[test]
    fn what_is_no_audience_is_refused_with_its_reason() {
        let check = |text: &str, message: &str| {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.contains(message), "{text:?}: {error}");
        };
        for text in ["", "all", "hosts=a", "zone=a&", "label=a", "=a", "host"] {
            check(text, "is no term of an audience");
        }
        for text in ["host=", "host=a,", "host=a b", "label:=x", "label:a=", "host=a=b"] {
            check(text, "is no name");
        }
        for text in ["workload=/a", "workload=a/", "workload=a/b/c", "workload=/"] {
            check(text, "is no name");
        }
        for text in ["%", "0%", "101%", "100.01%", "-1%", "1.234%", "1.%", ".5%", "1e1%", "x%", "+1%"] {
            check(text, "is no percentage");
        }
        check(&"a".repeat(MAX_BYTES + 1), "at most 65536 bytes");
    }

    #[test]
    fn resolving_fills_in_tiers_and_salts() {
        let canary = Workload { service: "ads".into(), cluster: "ads-canary".into() };
        let tier = |name: &str| (name == "canary").then(|| vec![canary.clone()]);
        let audience = parse("tier=canary&10%").unwrap().resolve("act-1", tier).unwrap();
        assert_eq!(AudienceSpec::of(&audience).unwrap().to_string(), "workload=ads/ads-canary&10%");
        let Some(Term::Percent(percent)) = &audience.terms[1].term else { panic!("{audience:?}") };
        assert_eq!((percent.basis_points, percent.salt.as_str()), (1000, "act-1"));
        let error = parse("tier=main").unwrap().resolve("", tier).unwrap_err();
        assert_eq!(error, AudienceError::Tier("main".into()));
        let unknown = v1::Audience { terms: vec![v1::audience::Term { term: None }] };
        assert_eq!(AudienceSpec::of(&unknown), Err(UnknownTerm));
    }

    #[test]
    fn in_a_file_it_is_a_string() {
        let spec: AudienceSpec =
            toml::from_str::<std::collections::BTreeMap<String, AudienceSpec>>("audience = 'zone=a&10%'")
                .unwrap()
                .remove("audience")
                .unwrap();
        assert_eq!(String::from(spec), "zone=a&10%");
    }

    fn term() -> impl Strategy<Value = TermSpec> {
        let name = "[a-z0-9._-]{1,6}";
        let names = || prop::collection::vec(name, 1..4);
        let workload = (name, prop_oneof![Just(String::new()), name.prop_map(String::from)])
            .prop_map(|(service, cluster)| Workload { service, cluster });
        prop_oneof![
            names().prop_map(TermSpec::Hosts),
            names().prop_map(TermSpec::Zones),
            (name, names()).prop_map(|(key, values)| TermSpec::Label { key, values }),
            prop::collection::vec(workload, 1..4).prop_map(TermSpec::Workloads),
            names().prop_map(TermSpec::Tiers),
            (1..=WHOLE).prop_map(TermSpec::Percent),
        ]
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(terms in prop::collection::vec(term(), 0..4)) {
            let spec = AudienceSpec { terms };
            prop_assert_eq!(parse(&spec.to_string()).unwrap(), spec);
        }

        #[test]
        fn no_text_is_a_panic(text in ".{0,60}") {
            let _ = parse(&text);
        }
    }
}
