//! How an ensemble lets Tower in: the query keys `ca`, `cert`, `key`, `user`, `password_file` and `auth`.
//! They name files. What is in those is read at each connection, and is never part of a URL, which is shown
//! on pages.

use std::path::PathBuf;

use super::{Fault, url::Query};

/// How Tower connects to an ensemble, and as whom.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Access {
    /// TLS, for `zks://`.
    pub tls: Option<TlsFiles>,
    /// A user and a password.
    pub login: Option<Login>,
}

/// The PEM files of a TLS client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFiles {
    /// The CAs that sign the servers' certificates.
    pub ca: PathBuf,
    /// Tower's own certificate and its key.
    pub identity: Option<(PathBuf, PathBuf)>,
}

/// As whom.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Login {
    /// How ZooKeeper is told.
    pub scheme: Scheme,
    /// The user.
    pub user: String,
    /// The file that the password is in.
    pub password_file: PathBuf,
}

/// ZooKeeper's two ways to take a user and a password.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheme {
    /// SASL's DIGEST-MD5: the server knows the users, and refuses others.
    Sasl,
    /// `digest`: the server believes anybody, and compares when a znode's ACL asks for it.
    Digest,
}

impl Access {
    /// Takes its keys out of the query.
    pub(super) fn interpret(secure: bool, query: &mut Query) -> Result<Self, Fault> {
        if query.take("password").is_some() {
            let problem =
                "a password does not belong into a URL; write it into a file, and password_file=FILE";
            return Err(Fault::new("query key \"password\"", problem));
        }
        let ca = file(query, "ca")?;
        let identity = both(("cert", file(query, "cert")?), ("key", file(query, "key")?))?;
        let tls = match (secure, ca) {
            (true, Some(ca)) => Some(TlsFiles { ca, identity }),
            (true, None) => {
                let problem = "missing; zks:// needs a PEM file with the CAs of the servers' certificates";
                return Err(Fault::new("query key \"ca\"", problem));
            }
            (false, None) if identity.is_none() => None,
            (false, ca) => {
                let key = if ca.is_some() { "ca" } else { "cert" };
                return Err(Fault::new(format!("query key {key:?}"), "is for TLS, which is zks://"));
            }
        };
        let scheme = match query.take("auth").as_deref() {
            None => None,
            Some("sasl") => Some(Scheme::Sasl),
            Some("digest") => Some(Scheme::Digest),
            Some(other) => {
                return Err(Fault::new(
                    "query key \"auth\"",
                    format!("{other:?} is neither sasl nor digest"),
                ));
            }
        };
        let user = query.take("user");
        // Of a digest's `user:password` the first colon parts the two.
        if user.as_ref().is_some_and(|user| user.is_empty() || user.contains(':')) {
            return Err(Fault::new("query key \"user\"", "is empty, or has a colon in it"));
        }
        let login = both(("user", user), ("password_file", file(query, "password_file")?))?;
        if login.is_none() && scheme.is_some() {
            return Err(Fault::new("query key \"user\"", "missing, beside auth"));
        }
        let login = login.map(|(user, password_file)| Login {
            scheme: scheme.unwrap_or(Scheme::Sasl),
            user,
            password_file,
        });
        Ok(Self { tls, login })
    }
}

fn file(query: &mut Query, key: &str) -> Result<Option<PathBuf>, Fault> {
    match query.take(key) {
        Some(path) if !path.starts_with('/') => Err(Fault::new(
            format!("query key {key:?}"),
            format!("{path:?} is not an absolute path of a file"),
        )),
        path => Ok(path.map(PathBuf::from)),
    }
}

/// Both, or none.
fn both<A, B>((key_a, a): (&str, Option<A>), (key_b, b): (&str, Option<B>)) -> Result<Option<(A, B)>, Fault> {
    let missing = |key: &str, beside: &str| {
        Err(Fault::new(format!("query key {key:?}"), format!("missing, beside {beside}")))
    };
    match (a, b) {
        (Some(a), Some(b)) => Ok(Some((a, b))),
        (None, None) => Ok(None),
        (Some(_), None) => missing(key_b, key_a),
        (None, Some(_)) => missing(key_a, key_b),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{SourceKind, parse};
    use super::*;

    fn access(value: &str) -> Access {
        match parse(value).expect(value).kind {
            SourceKind::ZooKeeper(spec) => spec.access,
            SourceKind::Files(spec) => panic!("{spec:?}"),
        }
    }

    #[test]
    fn tls_and_logins() {
        assert_eq!(access("zk://h/d/{service}"), Access::default());
        let tls = access("zks://h/d/{service}?ca=/etc/ca.pem").tls.unwrap();
        assert_eq!(tls, TlsFiles { ca: "/etc/ca.pem".into(), identity: None });
        let tls = access("zks://h/d/{service}?ca=/ca&cert=/my%20cert&key=/key").tls.unwrap();
        assert_eq!(tls.identity, Some(("/my cert".into(), "/key".into())));
        for (auth, scheme) in
            [("", Scheme::Sasl), ("&auth=sasl", Scheme::Sasl), ("&auth=digest", Scheme::Digest)]
        {
            let login = access(&format!("zk://h/d/{{service}}?user=tower&password_file=/run/pw{auth}")).login;
            let expected = Login { scheme, user: "tower".to_owned(), password_file: "/run/pw".into() };
            assert_eq!(login, Some(expected));
        }
    }

    #[test]
    fn how_it_is_read_makes_no_other_source() {
        let id = |value: &str| parse(value).expect(value).id;
        let plain = id("zk://h:2281/d/{service}");
        assert_eq!(plain, id("zks://h/d/{service}?ca=/ca&user=u&password_file=/pw"));
    }

    #[test]
    fn faults_name_the_key_and_show_no_password() {
        for (value, part, problem) in [
            ("zks://h/d/{service}", "query key \"ca\"", "missing; zks://"),
            ("zks://h/d/{service}?ca=ca.pem", "query key \"ca\"", "\"ca.pem\" is not an absolute path"),
            ("zk://h/d/{service}?ca=/ca", "query key \"ca\"", "zks://"),
            ("zk://h/d/{service}?cert=/c&key=/k", "query key \"cert\"", "zks://"),
            ("zks://h/d/{service}?ca=/ca&cert=/c", "query key \"key\"", "missing, beside cert"),
            ("zks://h/d/{service}?ca=/ca&key=/c", "query key \"cert\"", "missing, beside key"),
            ("zk://h/d/{service}?user=u", "query key \"password_file\"", "missing, beside user"),
            ("zk://h/d/{service}?password_file=/u", "query key \"user\"", "missing, beside password_file"),
            ("zk://h/d/{service}?auth=sasl", "query key \"user\"", "missing, beside auth"),
            ("zk://h/d/{service}?auth=x", "query key \"auth\"", "\"x\" is neither"),
            ("zk://h/d/{service}?user=a:b&password_file=/p", "query key \"user\"", "colon"),
            ("zk://h/d/{service}?user=u&password=s3cret", "query key \"password\"", "password_file=FILE"),
            ("zk://u:s3cret@h/d/{service}", "hosts", "password_file=FILE"),
            ("zk://u:s3cret@h/d/{service}?color=red", "hosts", "password_file=FILE"),
            ("zk://h/d/{service}?color=red&password=s3cret&x", "query key \"x\"", "no value"),
            ("file://u:s3cret@h/d", "path", "where a host would"),
        ] {
            let error = parse(value).expect_err(value);
            assert_eq!(error.part, part, "{error}");
            assert!(error.problem.contains(problem), "{error} does not contain {problem:?}");
            assert!(!error.to_string().contains("s3cret"), "{error}");
        }
    }
}
