//! From what a request presents to who it is. Pure: tokens and time are arguments.

use actix_web::{HttpRequest, http::header};
use tower_common::api::{
    Code, Problem,
    access::{Role, SESSION_COOKIE},
};
use tower_proto::v1;

use super::{connection::CertificateNames, session::Session, token::Secret};
use crate::{api::error::Refused, escape::escape, registry::permission::CERTIFICATE};

/// What to do about a missing or bad credential.
const HOW: &str = "sign in, or send \"Authorization: Bearer TOKEN\"; an admin issues tokens, and the first one of a new log is \
                   in admin.token in a Tower's data folder";

/// Somebody who was let in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Principal {
    /// Who, by the token's name or the certificate's.
    pub name: String,
    /// The id of the token, or [`CERTIFICATE`] and a name.
    pub credential: String,
    /// What they may do.
    pub roles: Vec<Role>,
    /// What an owner owns.
    pub services: Vec<String>,
    /// When that ends, in milliseconds since 1970.
    pub expires_ms: Option<u64>,
    /// From where.
    pub address: String,
    /// The session in which they are, if they are in one.
    pub session: Option<Session>,
}

/// What a request presents.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Presented {
    /// A token, or something else in its place.
    pub bearer: Option<Result<Secret, &'static str>>,
    /// A session, or something else in its place.
    pub session: Option<Result<Session, &'static str>>,
    /// Names in the client certificate.
    pub certificate: Vec<String>,
    /// From where.
    pub address: String,
}

/// A credential in the log.
#[derive(Debug, Clone)]
pub struct Known {
    /// As it was issued.
    pub issued: v1::TokenIssued,
    /// It was taken back.
    pub revoked: bool,
}

/// The credential of whoever has a client certificate with this name.
pub fn of_certificate(name: &str) -> String {
    format!("{CERTIFICATE}{}", escape(name))
}

impl Principal {
    /// As the author of an entry of the log.
    pub fn actor(&self) -> v1::Actor {
        v1::Actor {
            name: self.name.clone(),
            credential: self.credential.clone(),
            address: self.address.clone(),
        }
    }
}

impl Presented {
    /// Of a request.
    pub fn by(request: &HttpRequest) -> Self {
        let bearer = request.headers().get(header::AUTHORIZATION).map(|value| {
            let words = value.to_str().ok().and_then(|value| value.split_once(' '));
            match words {
                Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") => {
                    Secret::parse(token.trim()).ok_or("what comes after \"Bearer\" is not a token of Tower")
                }
                _ => Err("it has to be \"Bearer\" and a token"),
            }
        });
        let session = request
            .cookie(SESSION_COOKIE)
            .map(|cookie| Session::parse(cookie.value()).ok_or("the cookie of the session is none of Tower"));
        let certificate = request.conn_data::<CertificateNames>().map(|names| names.0.clone());
        let address = request.peer_addr().map_or_else(|| "unknown".to_owned(), |address| address.to_string());
        Self { bearer, session, certificate: certificate.unwrap_or_default(), address }
    }

    /// Who it is, at this time in milliseconds since 1970. A token goes before a session, and that before a
    /// certificate: who presents one that is not good is refused, whatever else there is.
    ///
    /// # Errors
    /// If it is nobody.
    pub fn identify(
        &self,
        known: impl Fn(&str) -> Result<Option<Known>, Refused>,
        now_ms: u64,
    ) -> Result<Principal, Refused> {
        let refuse = |detail: String| -> Refused {
            Problem::new(Code::Unauthenticated, detail).field("Authorization").next(HOW).into()
        };
        let over = |detail: String| refuse(detail).ending_session();
        let session = self.session.as_ref().filter(|_| self.bearer.is_none());
        let (credential, issued) = match (&self.bearer, session) {
            (Some(Err(fault)), _) => return Err(refuse((*fault).to_owned())),
            (Some(Ok(secret)), _) => {
                let found = known(secret.id())?;
                let hash = found.as_ref().map(|found: &Known| &found.issued.hash[..]);
                let good = secret.has_hash(hash);
                let Some(found) = found.filter(|_| good) else {
                    return Err(refuse("there is no such token".to_owned()));
                };
                (secret.id().to_owned(), usable(found, now_ms).map_err(refuse)?)
            }
            (None, Some(Err(fault))) => return Err(over((*fault).to_owned())),
            (None, Some(Ok(session))) => {
                let found = known(session.token())?;
                let Some(found) = found.filter(|found| session.is_signed_for(&found.issued.session_key))
                else {
                    return Err(over("there is no such session".to_owned()));
                };
                if session.until_ms() <= now_ms {
                    return Err(over("the session is over".to_owned()));
                }
                (session.token().to_owned(), usable(found, now_ms).map_err(over)?)
            }
            (None, None) if self.certificate.is_empty() => {
                return Err(refuse("there is no credential".to_owned()));
            }
            (None, None) => {
                let mut faults = Vec::new();
                let mut found = None;
                for name in &self.certificate {
                    let credential = of_certificate(name);
                    match known(&credential)?.map(|found| usable(found, now_ms)) {
                        Some(Ok(issued)) => {
                            found = Some((credential, issued));
                            break;
                        }
                        Some(Err(fault)) => faults.push(format!("{name}: {fault}")),
                        None => faults.push(format!("{name}: it has no role")),
                    }
                }
                let detail = || format!("the client certificate does not count: {}", faults.join("; "));
                found.ok_or_else(|| refuse(detail()))?
            }
        };
        let session = session.and_then(|session| session.clone().ok());
        let until_ms = session.as_ref().map(Session::until_ms);
        let expires_ms = Some(issued.expires_ms).filter(|expires| *expires != 0);
        Ok(Principal {
            // A role of a newer Tower is nothing here.
            roles: issued.roles.iter().filter_map(|role| role.parse().ok()).collect(),
            name: issued.name,
            credential,
            services: issued.services,
            expires_ms: expires_ms.into_iter().chain(until_ms).min(),
            address: self.address.clone(),
            session,
        })
    }
}

/// Whether it can be used at this time.
///
/// # Errors
/// If not, and why.
pub fn usable(found: Known, now_ms: u64) -> Result<v1::TokenIssued, String> {
    let Known { issued, revoked } = found;
    if revoked {
        return Err(format!("the credential {} was revoked", issued.id));
    }
    if issued.expires_ms != 0 && issued.expires_ms <= now_ms {
        return Err(format!("the credential {} has expired", issued.id));
    }
    Ok(issued)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use actix_web::test::TestRequest;

    use super::*;

    #[derive(Default)]
    struct Log(BTreeMap<String, (v1::TokenIssued, bool)>);

    impl Log {
        fn issue(&mut self, id: &str, hash: &[u8], expires_ms: u64, revoked: bool) {
            let issued = v1::TokenIssued {
                id: id.to_owned(),
                name: format!("name of {id}"),
                hash: hash.to_vec().into(),
                roles: vec!["owner".to_owned(), "emperor".to_owned()],
                services: vec!["web".to_owned()],
                expires_ms,
                ..Default::default()
            };
            self.0.insert(id.to_owned(), (issued, revoked));
        }

        fn identify(&self, presented: &Presented, now_ms: u64) -> Result<Principal, String> {
            let known = |id: &str| {
                let found = self.0.get(id);
                Ok(found.map(|(issued, revoked)| Known { issued: issued.clone(), revoked: *revoked }))
            };
            presented.identify(known, now_ms).map_err(|refused| {
                assert_eq!(refused.problem().code, Code::Unauthenticated);
                refused.problem().detail.clone()
            })
        }
    }

    fn in_session(session: &Session) -> Presented {
        Presented { session: Some(Ok(session.clone())), ..Default::default() }
    }

    fn bearer(secret: &Secret) -> Presented {
        Presented { bearer: Some(Ok(secret.clone())), ..Default::default() }
    }

    fn certificate(names: &[&str]) -> Presented {
        let certificate = names.iter().map(|name| (*name).to_owned()).collect();
        Presented { certificate, ..Default::default() }
    }

    #[test]
    fn a_token_is_who_it_was_issued_to_until_it_ends() {
        let (secret, other) = (Secret::generate().unwrap(), Secret::generate().unwrap());
        let mut log = Log::default();
        assert!(log.identify(&bearer(&secret), 1).unwrap_err().contains("no such token"));
        log.issue(secret.id(), &secret.hash(), 100, false);
        let principal = log.identify(&bearer(&secret), 99).unwrap();
        assert_eq!(principal.credential, secret.id());
        assert_eq!((principal.roles, principal.services), (vec![Role::Owner], vec!["web".to_owned()]));
        assert!(log.identify(&bearer(&secret), 100).unwrap_err().contains("expired"));
        log.issue(secret.id(), &other.hash(), 0, false);
        assert!(log.identify(&bearer(&secret), 1).unwrap_err().contains("no such token"));
        log.issue(secret.id(), &secret.hash(), 0, true);
        assert!(log.identify(&bearer(&secret), 1).unwrap_err().contains("revoked"));
    }

    #[test]
    fn a_session_is_its_token_s_bearer_until_it_or_the_token_ends() {
        let (secret, other) = (Secret::generate().unwrap(), Secret::generate().unwrap());
        let mut log = Log::default();
        let issue = |log: &mut Log, key: &Secret, expires_ms, revoked| {
            log.issue(secret.id(), &secret.hash(), expires_ms, revoked);
            log.0.get_mut(secret.id()).unwrap().0.session_key = key.session_key().to_vec().into();
        };
        let session = Session::open(&secret, 0, None);
        let until = session.until_ms();
        assert!(log.identify(&in_session(&session), 1).unwrap_err().contains("no such session"));
        issue(&mut log, &secret, 0, false);
        let principal = log.identify(&in_session(&session), until - 1).unwrap();
        assert_eq!((&*principal.credential, principal.expires_ms), (secret.id(), Some(until)));
        assert_eq!(principal.session, Some(session.clone()));
        assert!(log.identify(&in_session(&session), until).unwrap_err().contains("session is over"));
        // Whoever presents a token is its bearer, in a session or not.
        let both = Presented { session: Some(Ok(session.clone())), ..bearer(&secret) };
        assert_eq!(log.identify(&both, until).unwrap().session, None);
        issue(&mut log, &secret, 100, false);
        assert_eq!(log.identify(&in_session(&session), 99).unwrap().expires_ms, Some(100));
        assert!(log.identify(&in_session(&session), 100).unwrap_err().contains("expired"));
        issue(&mut log, &secret, 0, true);
        assert!(log.identify(&in_session(&session), 1).unwrap_err().contains("revoked"));
        issue(&mut log, &other, 0, false);
        assert!(log.identify(&in_session(&session), 1).unwrap_err().contains("no such session"));
    }

    #[test]
    fn a_certificate_counts_by_the_first_of_its_names_that_has_a_role() {
        let mut log = Log::default();
        assert!(log.identify(&Presented::default(), 1).unwrap_err().contains("no credential"));
        let refused = log.identify(&certificate(&["a", "b"]), 1).unwrap_err();
        assert!(refused.contains("a: it has no role; b: it has no role"), "{refused}");
        log.issue("cert:a", &[], 0, true);
        log.issue("cert:b", &[], 0, false);
        assert_eq!(log.identify(&certificate(&["a", "b"]), 1).unwrap().credential, "cert:b");
    }

    #[test]
    fn a_bad_token_is_not_made_good_by_a_certificate_nor_a_certificate_s_entry_by_a_token() {
        let mut log = Log::default();
        log.issue("cert:a", &[], 0, false);
        let bad = Presented { bearer: Some(Ok(Secret::generate().unwrap())), ..certificate(&["a"]) };
        assert!(log.identify(&bad, 1).is_err());
        let secret = Secret::generate().unwrap();
        log.issue(secret.id(), &[], 0, false);
        assert!(log.identify(&bearer(&secret), 1).is_err(), "an entry without a hash has no secret");
    }

    #[test]
    fn what_is_presented_is_read_from_the_header() {
        let presented = |value: &str| {
            let request = TestRequest::get().insert_header((header::AUTHORIZATION, value)).to_http_request();
            Presented::by(&request).bearer
        };
        let secret = Secret::generate().unwrap();
        assert_eq!(presented(&format!("Bearer {}", secret.reveal())), Some(Ok(secret.clone())));
        assert_eq!(presented(&format!("bearer  {}", secret.reveal())), Some(Ok(secret.clone())));
        for wrong in ["", "Bearer", "Bearer x", "Basic eDp5", &secret.reveal()] {
            assert!(matches!(presented(wrong), Some(Err(_))), "{wrong}");
        }
        assert_eq!(Presented::by(&TestRequest::get().to_http_request()).bearer, None);
    }
}
