//! `zk://h1:2181,h2:2181/discovery/{service}/prod?format=kingpin`: registrations in an ensemble; `zks://` is
//! the same by TLS.

use std::{net::Ipv6Addr, time::Duration};

use super::{
    Access, Fault,
    url::{self, Parts},
};
use crate::sources::{
    format::{Format, UnknownFormat},
    zookeeper::layout::Layout,
};

/// How long the ensemble keeps a session that it hears nothing of. Tower's session owns nothing, so this
/// only decides how soon a source out of touch is called lost.
const DEFAULT_SESSION_TIMEOUT: Duration = Duration::from_secs(30);

const DEFAULT_PORT: u16 = 2181;
const DEFAULT_TLS_PORT: u16 = 2281;

/// Registrations below a path of an ensemble.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ZooKeeperSpec {
    /// The servers, `host:port` each, in the order of the flag.
    pub hosts: Vec<String>,
    /// Where services and members are.
    pub layout: Layout,
    /// How members are written.
    pub format: Format,
    /// How the servers let Tower in.
    pub access: Access,
    /// How long the ensemble keeps a silent session.
    pub session_timeout: Duration,
}

impl ZooKeeperSpec {
    pub(super) fn interpret(parts: &mut Parts<'_>) -> Result<Self, Fault> {
        let secure = parts.scheme == "zks";
        let hosts = hosts(parts)?;
        let mut segments = Vec::new();
        for segment in url::segments(parts.path)? {
            // Braces are looked for before decoding, so that %7B and %7D stand for themselves.
            let placeholder = segment.starts_with('{') && segment.ends_with('}');
            if !placeholder && segment.contains(['{', '}']) {
                let problem = format!("{segment:?}: a placeholder is a whole segment, such as {{service}}");
                return Err(Fault::new("path", problem));
            }
            segments.push(if placeholder {
                Err(segment[1..segment.len() - 1].to_owned())
            } else {
                Ok(url::decode_segment(segment)?)
            });
        }
        let layout = Layout::new(segments).map_err(|error| Fault::new("path", error.to_string()))?;
        let format = match parts.query.take("format") {
            Some(word) => word
                .parse()
                .map_err(|error: UnknownFormat| Fault::new("query key \"format\"", error.to_string()))?,
            None => Format::default(),
        };
        let session_timeout = match parts.query.take("session_timeout") {
            Some(text) => duration(&text)?,
            None => DEFAULT_SESSION_TIMEOUT,
        };
        let access = Access::interpret(secure, &mut parts.query)?;
        Ok(Self { hosts, layout, format, access, session_timeout })
    }

    /// What makes it a source of its own: neither the order of the hosts, nor how they are talked to, nor how
    /// it is watched.
    pub(super) fn identity(&self) -> String {
        let mut hosts = self.hosts.clone();
        hosts.sort_unstable();
        hosts.dedup();
        format!("zk://{}{}?format={}", hosts.join(","), self.layout, self.format)
    }
}

/// The servers of an ensemble, `host:port` each.
pub(super) fn hosts(parts: &Parts<'_>) -> Result<Vec<String>, Fault> {
    let default_port = if parts.scheme == "zks" { DEFAULT_TLS_PORT } else { DEFAULT_PORT };
    parts.authority.split(',').map(|text| host(text, default_port)).collect()
}

/// `host`, `host:port`, `[v6]`, `[v6]:port`.
fn host(text: &str, default_port: u16) -> Result<String, Fault> {
    let fault = |problem: String| Fault::new("hosts", problem);
    if text.contains('@') {
        // Which are not repeated.
        let problem = "credentials do not belong into a URL; write user=USER&password_file=FILE";
        return Err(fault(problem.to_owned()));
    }
    let (name, port) = match text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((name, rest)) => {
            name.parse::<Ipv6Addr>()
                .map_err(|_| fault(format!("{text:?}: [{name}] is not an IPv6 address")))?;
            (format!("[{name}]"), rest)
        }
        None => {
            let (name, _) = text.split_once(':').unwrap_or((text, ""));
            let allowed = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
            if name.is_empty() || !name.chars().all(allowed) {
                return Err(fault(format!("{text:?}: {name:?} is not a host name or address")));
            }
            (name.to_owned(), &text[name.len()..])
        }
    };
    let port = match port.strip_prefix(':') {
        None if port.is_empty() => default_port,
        None => return Err(fault(format!("{text:?}: {port:?} after the address is not a port"))),
        Some(port) => port
            .parse()
            .ok()
            .filter(|port| *port != 0)
            .ok_or_else(|| fault(format!("{text:?}: port {port:?} is not 1 to 65535")))?,
    };
    Ok(format!("{}:{port}", name.to_ascii_lowercase()))
}

/// A number with `ms`, `s` or `m`.
pub(super) fn duration(text: &str) -> Result<Duration, Fault> {
    let fault = || {
        let problem = format!("{text:?} is not a time from 1s to 10m, such as 30s");
        Fault::new("query key \"session_timeout\"", problem)
    };
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let number: u64 = text[..digits].parse().map_err(|_| fault())?;
    let unit = match &text[digits..] {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        _ => return Err(fault()),
    };
    let time = Duration::from_millis(number.saturating_mul(unit));
    if time < Duration::from_secs(1) || time > Duration::from_secs(600) { Err(fault()) } else { Ok(time) }
}

#[cfg(test)]
mod tests {
    use super::super::{SourceKind, parse};
    use super::*;

    fn zookeeper(value: &str) -> ZooKeeperSpec {
        match parse(value).expect(value).kind {
            SourceKind::ZooKeeper(spec) => spec,
            SourceKind::Files(spec) => panic!("{spec:?}"),
        }
    }

    #[test]
    fn hosts_get_their_default_port() {
        let spec = zookeeper("zk://h1:2182,H2.example,[::1],[2001:db8::1]:99/d/{service}?format=serverset");
        assert_eq!(spec.hosts, ["h1:2182", "h2.example:2181", "[::1]:2181", "[2001:db8::1]:99"]);
        let secure = zookeeper("zks://h1,h2:2182/d/{service}?ca=/ca.pem");
        assert_eq!(secure.hosts, ["h1:2281", "h2:2182"]);
        assert_eq!(spec.format, Format::Serverset);
        assert_eq!(spec.session_timeout, DEFAULT_SESSION_TIMEOUT);
        assert_eq!(spec.layout.to_string(), "/d/{service}");
    }

    #[test]
    fn the_format_is_found_out_unless_it_is_said() {
        assert_eq!(zookeeper("zk://h/d/{service}").format, Format::Auto);
        assert_eq!(zookeeper("zk://h/d/{service}?format=auto"), zookeeper("zk://h/d/{service}"));
    }

    #[test]
    fn the_session_timeout_can_be_set() {
        let timeout = |text: &str| {
            zookeeper(&format!("zk://h/d/{{service}}?format=hostport&session_timeout={text}")).session_timeout
        };
        assert_eq!(timeout("4s"), Duration::from_secs(4));
        assert_eq!(timeout("1500ms"), Duration::from_millis(1500));
        assert_eq!(timeout("2m"), Duration::from_secs(120));
    }

    #[test]
    fn faults_name_the_part() {
        for (value, part, problem) in [
            ("zk:///d/{service}?format=kingpin", "hosts", "\"\" is not a host"),
            ("zk://a,,b/d/{service}?format=kingpin", "hosts", "\"\" is not a host"),
            ("zk://a:0/d/{service}?format=kingpin", "hosts", "port \"0\""),
            ("zk://a:65536/d/{service}?format=kingpin", "hosts", "port \"65536\""),
            ("zk://a:/d/{service}?format=kingpin", "hosts", "port \"\""),
            ("zk://[::1]x/d/{service}?format=kingpin", "hosts", "\"x\" after the address"),
            ("zk://[zz]:1/d/{service}?format=kingpin", "hosts", "[zz] is not an IPv6"),
            ("zk://me:pw@a/d/{service}?format=kingpin", "hosts", "credentials"),
            ("zk://a?format=kingpin", "path", "missing"),
            ("zk://a/d/{service}/?format=kingpin", "path", "a segment is empty"),
            ("zk://a/d//{service}?format=kingpin", "path", "a segment is empty"),
            ("zk://a/d/x-{service}?format=kingpin", "path", "a whole segment"),
            ("zk://a/d/prod?format=kingpin", "path", "{service}"),
            ("zk://a/d/{service}?format=", "query key \"format\"", "kingpin, serverset, curator, hostport"),
            ("zk://a/d/{service}?format=nerve", "query key \"format\"", "\"nerve\""),
            ("zk://a/d/{service}?format=kingpin&session_timeout=4", "query key \"session_timeout\"", "\"4\""),
            (
                "zk://a/d/{service}?format=kingpin&session_timeout=1ms",
                "query key \"session_timeout\"",
                "1s to 10m",
            ),
        ] {
            let error = parse(value).expect_err(value);
            assert_eq!(error.part, part, "{error}");
            assert!(error.problem.contains(problem), "{error} does not contain {problem:?}");
        }
    }
}
