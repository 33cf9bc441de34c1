//! `zk://h1:2181,h2:2181/tower`: a place in an ensemble that Tower writes to; `zks://` is the same by TLS.

use std::{fmt, time::Duration};

use super::{
    Access, Fault,
    url::{self, Parts},
    zookeeper,
};

/// How long the ensemble keeps a session that it hears nothing of, and so how late a Tower that died is missed.
const DEFAULT_SESSION_TIMEOUT: Duration = Duration::from_secs(10);

/// A place in an ensemble.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ensemble {
    /// The servers, `host:port` each.
    pub hosts: Vec<String>,
    /// An absolute path below which all is.
    pub path: String,
    /// How the servers let Tower in.
    pub access: Access,
    /// Who may touch what Tower writes.
    pub acl: ZnodeAcl,
    /// How long the ensemble keeps a silent session.
    pub session_timeout: Duration,
}

/// Who may touch what Tower writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ZnodeAcl {
    /// Whoever is let in as the same user.
    Creator,
    /// Whoever is let in.
    Open,
}

/// What is wrong with one part of a URL of an ensemble.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{url:?}: {part}: {problem}")]
pub struct EnsembleFault {
    /// The URL, without what should not stand there.
    pub url: String,
    /// The part of it that is wrong, such as `path`.
    pub part: String,
    /// What is wrong, and what would be right.
    pub problem: String,
}

impl Ensemble {
    /// Parses a URL.
    ///
    /// # Errors
    /// If it is none of an ensemble; the error names the part that is wrong.
    pub fn parse(value: &str) -> Result<Self, EnsembleFault> {
        Self::interpret(value).map_err(|Fault { part, problem }| EnsembleFault {
            url: url::shown(value),
            part,
            problem,
        })
    }

    fn interpret(value: &str) -> Result<Self, Fault> {
        let mut parts = Parts::split(value)?;
        let secure = match parts.scheme {
            "zk" => false,
            "zks" => true,
            other => return Err(Fault::new("scheme", format!("{other:?} is unknown; there are zk and zks"))),
        };
        let hosts = zookeeper::hosts(&parts)?;
        let mut path = String::new();
        for segment in url::segments(parts.path)? {
            path.push('/');
            path.push_str(&url::decode_segment(segment)?);
        }
        let session_timeout =
            parts.query.take("session_timeout").map(|text| zookeeper::duration(&text)).transpose()?;
        let acl = parts.query.take("acl");
        let access = Access::interpret(secure, &mut parts.query)?;
        let acl = match (acl.as_deref(), &access.login) {
            (None, Some(_)) => ZnodeAcl::Creator,
            (None, None) | (Some("open"), _) => ZnodeAcl::Open,
            (Some("creator"), Some(_)) => ZnodeAcl::Creator,
            (Some("creator"), None) => {
                let problem = "creator is for a user; give user=USER&password_file=FILE as well";
                return Err(Fault::new("query key \"acl\"", problem));
            }
            (Some(other), _) => {
                return Err(Fault::new(
                    "query key \"acl\"",
                    format!("{other:?} is neither creator nor open"),
                ));
            }
        };
        if let Some(key) = parts.query.first_key() {
            return Err(Fault::new(format!("query key {key:?}"), "unknown for an ensemble"));
        }
        let session_timeout = session_timeout.unwrap_or(DEFAULT_SESSION_TIMEOUT);
        Ok(Self { hosts, path, access, acl, session_timeout })
    }
}

/// Where it is, without how it is reached.
impl fmt::Display for Ensemble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.access.tls.is_some() { "zks" } else { "zk" };
        write!(f, "{scheme}://{}{}", self.hosts.join(","), self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_read_as_discovery_is() {
        let ensemble = Ensemble::parse("zk://h1,H2:2182/my%20mesh/tower").unwrap();
        assert_eq!(ensemble.hosts, ["h1:2181", "h2:2182"]);
        assert_eq!((ensemble.path.as_str(), ensemble.acl), ("/my mesh/tower", ZnodeAcl::Open));
        assert_eq!(ensemble.to_string(), "zk://h1:2181,h2:2182/my mesh/tower");
        let guarded = Ensemble::parse("zks://h/t?ca=/ca&user=u&password_file=/p&session_timeout=5s").unwrap();
        assert_eq!((guarded.acl, guarded.session_timeout), (ZnodeAcl::Creator, Duration::from_secs(5)));
        assert_eq!(guarded.to_string(), "zks://h:2281/t");
        let open = Ensemble::parse("zk://h/t?user=u&password_file=/p&acl=open").unwrap();
        assert_eq!(open.acl, ZnodeAcl::Open);
    }

    #[test]
    fn faults_name_the_part() {
        for (value, part, problem) in [
            ("ftp://h/t", "scheme", "there are zk and zks"),
            ("zk://h", "path", "missing"),
            ("zk://h/", "path", "a segment is empty"),
            ("zk://h/t?acl=creator", "query key \"acl\"", "user=USER"),
            ("zk://h/t?acl=all", "query key \"acl\"", "\"all\" is neither"),
            ("zk://h/t?format=auto", "query key \"format\"", "unknown"),
            ("zk://h/t?session_timeout=1", "query key \"session_timeout\"", "1s to 10m"),
        ] {
            let error = Ensemble::parse(value).expect_err(value);
            assert_eq!(error.part, part, "{error}");
            assert!(error.problem.contains(problem), "{error}");
        }
        let error = Ensemble::parse("zk://me:secret@h/t?password=secret").unwrap_err().to_string();
        assert!(!error.contains("secret"), "{error}");
    }
}
