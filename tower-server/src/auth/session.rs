//! Sessions: what a browser gets in exchange for a token, so that the token need not stay in it.
//!
//! A session is a statement, `ID.UNTIL.SIGNATURE`: the bearer of the token with this id may act until then. It is
//! signed with a key that is made of the token's secret, when that is presented; the public key is in the log,
//! with the token. So every Tower of a log knows a session, after a restart, too, none has a table of them, and
//! whoever reads the log can make none. A session ends with its token, or when its time is over.

use std::{fmt, time::Duration};

use actix_web::cookie::{Cookie, SameSite, time};
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use ring::signature::{ED25519, UnparsedPublicKey};
use tower_common::api::access::SESSION_COOKIE;

use super::token::{Secret, is_id};

/// How long a session lasts, if its token does.
pub const LIFETIME: Duration = Duration::from_secs(12 * 3600);

/// What is signed begins with this: the key signs nothing else.
const PURPOSE: &str = "tower session 1";

/// What the value against requests of other sites is made for.
const CSRF_PURPOSE: &str = "tower 2026-12-01 csrf value of a session";

/// Bytes of a signature.
const SIGNATURE_BYTES: usize = 64;

/// A session as it is presented: whether it is one is known when its signature has been checked.
#[derive(Clone, PartialEq, Eq)]
pub struct Session {
    token: String,
    until_ms: u64,
    signature: [u8; SIGNATURE_BYTES],
}

impl Session {
    /// One for the bearer of this token, from now on, in milliseconds since 1970; not beyond the token's own end.
    pub fn open(secret: &Secret, now_ms: u64, token_ends_ms: Option<u64>) -> Self {
        let lifetime_ms = u64::try_from(LIFETIME.as_millis()).unwrap_or(u64::MAX);
        let until_ms = now_ms.saturating_add(lifetime_ms).min(token_ends_ms.unwrap_or(u64::MAX));
        let token = secret.id().to_owned();
        let signature = secret.sign(statement(&token, until_ms).as_bytes());
        Self { token, until_ms, signature }
    }

    /// Reads the value of a cookie; nothing, if it does not look like a session.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('.');
        let (token, until, signature) = (parts.next()?, parts.next()?, parts.next()?);
        let until_ms: u64 = until.parse().ok()?;
        // One session is written in one way.
        if parts.next().is_some() || !is_id(token) || until != until_ms.to_string() {
            return None;
        }
        let signature = BASE64_URL_SAFE_NO_PAD.decode(signature).ok()?.try_into().ok()?;
        Some(Self { token: token.to_owned(), until_ms, signature })
    }

    /// The value of its cookie.
    pub fn value(&self) -> String {
        format!("{}.{}.{}", self.token, self.until_ms, BASE64_URL_SAFE_NO_PAD.encode(self.signature))
    }

    /// The id of its token.
    pub fn token(&self) -> &str {
        &self.token
    }

    /// When it ends, in milliseconds since 1970.
    pub fn until_ms(&self) -> u64 {
        self.until_ms
    }

    /// Whether it was signed for the token that has this public key.
    pub fn is_signed_for(&self, key: &[u8]) -> bool {
        let key = UnparsedPublicKey::new(&ED25519, key);
        key.verify(statement(&self.token, self.until_ms).as_bytes(), &self.signature).is_ok()
    }

    /// What its requests carry, and those of another site in the same browser do not: it can be had from the
    /// session, which no script can read, and the session not from it.
    pub fn csrf(&self) -> String {
        self.csrf_hash().to_hex().to_string()
    }

    /// Whether a request carries it. Takes as long, whichever characters differ.
    pub fn has_csrf(&self, carried: &str) -> bool {
        // The comparison of hashes is constant in time.
        blake3::Hash::from_hex(carried).is_ok_and(|carried| carried == self.csrf_hash())
    }

    fn csrf_hash(&self) -> blake3::Hash {
        blake3::Hash::from_bytes(blake3::derive_key(CSRF_PURPOSE, self.value().as_bytes()))
    }

    /// Its cookie, for TLS alone if it came by TLS.
    pub fn cookie(&self, now_ms: u64, tls: bool) -> Cookie<'static> {
        let left = Duration::from_millis(self.until_ms.saturating_sub(now_ms));
        let mut cookie = cookie(self.value());
        cookie.set_max_age(time::Duration::seconds(i64::try_from(left.as_secs()).unwrap_or(i64::MAX)));
        cookie.set_secure(tls);
        cookie
    }
}

/// The cookie that takes a session's place when it is over, and goes at once.
pub fn no_cookie() -> Cookie<'static> {
    let mut cookie = cookie(String::new());
    cookie.set_max_age(time::Duration::ZERO);
    cookie
}

fn cookie(value: String) -> Cookie<'static> {
    Cookie::build(SESSION_COOKIE, value).path("/").http_only(true).same_site(SameSite::Strict).finish()
}

fn statement(token: &str, until_ms: u64) -> String {
    format!("{PURPOSE}\n{token}\n{until_ms}")
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("token", &self.token)
            .field("until_ms", &self.until_ms)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_read_as_it_was_written_and_signed_for_its_own_token_and_time() {
        let (secret, other) = (Secret::generate().unwrap(), Secret::generate().unwrap());
        let session = Session::open(&secret, 1_000, None);
        assert_eq!(session.until_ms(), 1_000 + 12 * 3_600_000);
        assert_eq!(Session::open(&secret, 1_000, Some(5_000)).until_ms(), 5_000);
        assert_eq!(Session::parse(&session.value()), Some(session.clone()));
        assert!(session.is_signed_for(&secret.session_key()));
        for key in [&other.session_key()[..], &secret.hash(), &[], &[0; 32]] {
            assert!(!session.is_signed_for(key));
        }
        let later = Session { until_ms: session.until_ms + 1, ..session.clone() };
        let others = Session { token: other.id().to_owned(), ..session };
        assert!(!later.is_signed_for(&secret.session_key()) && !others.is_signed_for(&secret.session_key()));
    }

    #[test]
    fn what_does_not_look_like_a_session_is_none() {
        let session = Session::open(&Secret::generate().unwrap(), 1_000, None);
        let value = session.value();
        let until = format!(".{}.", session.until_ms());
        for wrong in [
            "",
            "..",
            &value[1..],
            &value[..value.len() - 1],
            &format!("{value}.x"),
            &format!("{value}="),
            &value.replace(&until, &format!(".0{}.", session.until_ms())),
            &value.replace(&until, &format!(".+{}.", session.until_ms())),
            &value.replace(&until, ".99999999999999999999."),
        ] {
            assert_eq!(Session::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn the_value_against_other_sites_is_that_of_one_session() {
        let secret = Secret::generate().unwrap();
        let (one, other) = (Session::open(&secret, 1, None), Session::open(&secret, 2, None));
        assert!(one.has_csrf(&one.csrf()));
        for wrong in ["", "0", &other.csrf(), &one.csrf()[1..], &one.value()] {
            assert!(!one.has_csrf(wrong), "{wrong}");
        }
    }

    #[test]
    fn no_script_and_no_other_site_gets_the_cookie() {
        let session = Session::open(&Secret::generate().unwrap(), 1_000, None);
        let cookie = session.cookie(2_000, true).to_string();
        let expected = format!(
            "tower_session={}; HttpOnly; SameSite=Strict; Secure; Path=/; Max-Age=43199",
            session.value()
        );
        assert_eq!(cookie, expected);
        assert!(!session.cookie(2_000, false).to_string().contains("Secure"));
        assert_eq!(no_cookie().to_string(), "tower_session=; HttpOnly; SameSite=Strict; Path=/; Max-Age=0");
        assert!(!format!("{session:?}").contains(&BASE64_URL_SAFE_NO_PAD.encode(session.signature)));
    }

    #[test]
    fn whatever_is_presented_it_is_a_session_or_none() {
        let secret = Secret::generate().unwrap();
        let seed = Session::open(&secret, 1_000, None).value();
        tower_fuzz::fuzz("session", &[seed.as_bytes()], &[".", "=", "-", "_"], |input| {
            let text = String::from_utf8_lossy(input).into_owned();
            match Session::parse(&text) {
                Some(session) if session.value() != text => panic!("{text:?} is another session"),
                Some(session) if text != seed && session.is_signed_for(&secret.session_key()) => {
                    panic!("{text:?} was never signed")
                }
                Some(_) => Ok(()),
                None => Err("no session"),
            }
        });
    }
}
