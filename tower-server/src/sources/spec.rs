//! What `--discovery URL` says, typed: which source, where, and how its facts are to be read.
//!
//! The parts of a URL are taken apart in [`url`]; what they mean for ZooKeeper and for files is in
//! [`zookeeper`], with [`access`] to it, and [`files`]. Nothing here opens anything.

mod access;
mod ensemble;
mod files;
mod url;
mod zookeeper;

use std::{collections::BTreeSet, sync::Arc};

use tower_common::resource::Version;

use self::url::Parts;
pub use self::{
    access::{Access, Login, Scheme, TlsFiles},
    ensemble::{Ensemble, EnsembleFault, ZnodeAcl},
    files::FilesSpec,
    zookeeper::ZooKeeperSpec,
};
pub use super::zookeeper::layout::Layout;

/// Longer ids are refused: they are labels of metrics, and names of files.
const MAX_ID_BYTES: usize = 64;

/// One source, as configured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceSpec {
    /// Unique among the sources of a Tower, and the same on every Tower with the same flag.
    pub id: Arc<str>,
    /// The flag's value, to be shown.
    pub url: String,
    /// Nothing waits for this source.
    pub optional: bool,
    /// What kind of source it is.
    pub kind: SourceKind,
}

/// The kinds of sources.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SourceKind {
    /// Registrations below a path of a ZooKeeper ensemble.
    ZooKeeper(ZooKeeperSpec),
    /// A folder of endpoint lists.
    Files(FilesSpec),
}

/// Why a `--discovery` flag cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("--discovery {url:?}: {part}: {problem}")]
pub struct SpecError {
    /// The flag's value, without what should not stand there.
    pub url: String,
    /// The part of it that is wrong, such as `path` or `query key "format"`.
    pub part: String,
    /// What is wrong, and what would be right.
    pub problem: String,
}

/// What is wrong with one part; the caller adds the flag's value.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Fault {
    part: String,
    problem: String,
}

impl Fault {
    fn new(part: impl Into<String>, problem: impl Into<String>) -> Self {
        Self { part: part.into(), problem: problem.into() }
    }
}

/// Parses the value of one flag.
///
/// # Errors
/// If the value is not the URL of a source; the error names the part that is wrong.
pub fn parse(value: &str) -> Result<SourceSpec, SpecError> {
    interpret(value).map_err(|Fault { part, problem }| SpecError { url: url::shown(value), part, problem })
}

/// Parses the values of all flags, whose ids must differ.
///
/// # Errors
/// If a value is not the URL of a source, or two have the same id.
pub fn parse_all<S: AsRef<str>>(values: &[S]) -> Result<Vec<SourceSpec>, SpecError> {
    let mut ids = BTreeSet::new();
    values
        .iter()
        .map(|value| {
            let spec = parse(value.as_ref())?;
            if ids.insert(spec.id.clone()) {
                return Ok(spec);
            }
            Err(SpecError {
                url: spec.url,
                part: "id".to_owned(),
                problem: format!(
                    "{:?} is the id of another source too; remove one, or name them with id=",
                    spec.id
                ),
            })
        })
        .collect()
}

fn interpret(value: &str) -> Result<SourceSpec, Fault> {
    let mut parts = Parts::split(value)?;
    let id = parts.query.take("id");
    let optional = match parts.query.take("optional").as_deref() {
        None | Some("false") => false,
        Some("true") => true,
        Some(other) => {
            return Err(Fault::new("query key \"optional\"", format!("{other:?} is neither true nor false")));
        }
    };
    let (prefix, identity, kind) = match parts.scheme {
        "zk" | "zks" => {
            let spec = ZooKeeperSpec::interpret(&mut parts)?;
            ("zk", spec.identity(), SourceKind::ZooKeeper(spec))
        }
        "file" => {
            let spec = FilesSpec::interpret(&parts)?;
            ("file", spec.identity(), SourceKind::Files(spec))
        }
        other => {
            return Err(Fault::new("scheme", format!("{other:?} is unknown; there are zk, zks and file")));
        }
    };
    if let Some(key) = parts.query.first_key() {
        return Err(Fault::new(format!("query key {key:?}"), format!("unknown for a {prefix} source")));
    }
    let id = match id {
        Some(id) => checked_id(id)?,
        None => format!("{prefix}-{}", &Version::of(identity.as_bytes()).to_string()[..8]),
    };
    Ok(SourceSpec { id: id.into(), url: value.to_owned(), optional, kind })
}

fn checked_id(id: String) -> Result<String, Fault> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    if id.is_empty() || id.len() > MAX_ID_BYTES || !id.chars().all(allowed) {
        let problem =
            format!("{id:?} is not 1 to {MAX_ID_BYTES} of the characters A-Z, a-z, 0-9, '.', '_', '-'");
        return Err(Fault::new("query key \"id\"", problem));
    }
    Ok(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fails(value: &str, part: &str, problem: &str) {
        let error = parse(value).expect_err(value);
        assert_eq!(error.url, value);
        assert_eq!(error.part, part, "{error}");
        assert!(error.problem.contains(problem), "{error} does not contain {problem:?}");
    }

    #[test]
    fn default_ids_depend_on_what_is_read_and_nothing_else() {
        let id = |value: &str| parse(value).expect(value).id.to_string();
        let first = id("zk://a:2181,b:2181/discovery/{service}/prod?format=kingpin");
        assert!(first.starts_with("zk-") && first.len() == 11, "{first}");
        for same in [
            "zk://b:2181,a:2181/discovery/{service}/prod?format=kingpin",
            "zk://B,a/discovery/{service}/%70rod?optional=true&format=kingpin&session_timeout=4s",
        ] {
            assert_eq!(id(same), first, "{same}");
        }
        for other in [
            "zk://a:2181/discovery/{service}/prod?format=kingpin",
            "zk://a:2181,b:2181/discovery/{service}/prod?format=hostport",
            "zk://a:2181,b:2181/discovery/{service}/test?format=kingpin",
        ] {
            assert_ne!(id(other), first, "{other}");
        }
        assert_eq!(id("file:///etc/tower"), id("file:///etc/tower/?optional=true"));
        assert!(id("file:///etc/tower").starts_with("file-"));
    }

    #[test]
    fn ids_are_checked_and_unique() {
        let spec = parse("file:///a?id=my.files_1-x&optional=true").unwrap();
        assert_eq!((&*spec.id, spec.optional), ("my.files_1-x", true));
        fails("file:///a?id=", "query key \"id\"", "\"\" is not 1 to 64");
        fails("file:///a?id=a%20b", "query key \"id\"", "\"a b\" is not");
        let error = parse_all(&["file:///a?id=x", "file:///b?id=x"]).unwrap_err();
        assert!(error.to_string().starts_with("--discovery \"file:///b?id=x\": id: \"x\""), "{error}");
        assert!(parse_all(&["file:///a", "file:///a/"]).is_err());
        assert_eq!(parse_all(&["file:///a", "file:///b"]).unwrap().len(), 2);
    }

    #[test]
    fn what_is_not_understood_is_named() {
        fails("/etc/tower", "scheme", "missing");
        fails("http://x/y", "scheme", "\"http\" is unknown");
        fails("file:///a?color=red", "query key \"color\"", "unknown for a file source");
        fails("file:///a?format=kingpin", "query key \"format\"", "unknown for a file source");
        fails("file:///a?optional=maybe", "query key \"optional\"", "\"maybe\" is neither");
        fails("file:///a?id=x&id=y", "query key \"id\"", "given twice");
        fails("file:///a?id", "query key \"id\"", "no value");
        fails("file:///a%zz", "path", "\"%zz\"");
        fails("file:///a#b", "path", "%23");
        fails("file:///a?id=%ff", "query key \"id\"", "UTF-8");
    }

    #[test]
    fn whatever_a_flag_says_it_is_a_source_or_refused() {
        let seeds: [&[u8]; 3] = [
            b"zk://h1:2181,[::1]:2182/d/{az}/{service}/prod?format=auto&id=x&session_timeout=5s&optional=true",
            b"zks://h/d/{service}?ca=/ca&cert=/c&key=/k&user=u&password_file=/p&auth=digest",
            b"file:///etc/tower/%65ndpoints?id=x",
        ];
        let words = ["://", "{service}", "%", "?", "&", "password=", "@", "format=", "session_timeout=", "["];
        tower_fuzz::fuzz("discovery URL", &seeds, &words, |input| {
            let value = String::from_utf8_lossy(input);
            parse(&value).map(drop)
        });
    }
}
