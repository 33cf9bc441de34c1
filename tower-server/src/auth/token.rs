//! Tokens: `tower_ID_SECRET`. The id is public; of the secret, 32 random bytes, only the hash is kept.

use std::fmt;

use rand::{TryRngCore, rngs::OsRng};
use ring::signature::{Ed25519KeyPair, KeyPair};

/// How a token begins.
const PREFIX: &str = "tower_";

/// Bytes of an id, in hexadecimal in the token.
const ID_BYTES: usize = 8;

/// Bytes of a secret, in hexadecimal in the token.
const SECRET_BYTES: usize = 32;

/// What the key that signs sessions is made for.
const SIGNING: &str = "tower 2026-12-01 signing key of a token";

/// A token in full. Shown once, to whoever asked for it; never logged.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret {
    id: String,
    secret: [u8; SECRET_BYTES],
}

impl Secret {
    /// A new one.
    ///
    /// # Errors
    /// If the system has no randomness to give.
    pub fn generate() -> Result<Self, rand::rand_core::OsError> {
        let (mut id, mut secret) = ([0; ID_BYTES], [0; SECRET_BYTES]);
        OsRng.try_fill_bytes(&mut id)?;
        OsRng.try_fill_bytes(&mut secret)?;
        Ok(Self { id: hex(&id), secret })
    }

    /// Reads a token; nothing, if it does not look like one.
    pub fn parse(text: &str) -> Option<Self> {
        let (id, secret) = text.strip_prefix(PREFIX)?.split_once('_')?;
        let id = is_id(id).then(|| id.to_owned())?;
        let secret = blake3::Hash::from_hex(Some(secret).filter(|text| text.bytes().all(is_hex))?).ok()?;
        Some(Self { id, secret: *secret.as_bytes() })
    }

    /// Its id.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// What is kept of its secret.
    pub fn hash(&self) -> [u8; 32] {
        *blake3::hash(&self.secret).as_bytes()
    }

    /// Whether this is the hash of its secret. Takes as long, whichever bytes differ; `None` is a token that
    /// there is not, and takes as long, too.
    pub fn has_hash(&self, hash: Option<&[u8]>) -> bool {
        let known = hash.and_then(|hash| <[u8; 32]>::try_from(hash).ok());
        // The comparison of hashes is constant in time.
        let equal = blake3::hash(&self.secret) == blake3::Hash::from_bytes(known.unwrap_or_default());
        equal & known.is_some()
    }

    /// The public key with which what it signs is checked.
    pub fn session_key(&self) -> [u8; 32] {
        self.signer().public_key().as_ref().try_into().expect("Ed25519 has keys of 32 bytes")
    }

    /// The signature of this message.
    pub fn sign(&self, message: &[u8]) -> [u8; 64] {
        self.signer().sign(message).as_ref().try_into().expect("Ed25519 has signatures of 64 bytes")
    }

    /// Made of the secret, and telling nothing about it.
    fn signer(&self) -> Ed25519KeyPair {
        let seed = blake3::derive_key(SIGNING, &self.secret);
        Ed25519KeyPair::from_seed_unchecked(&seed).expect("any 32 bytes are a seed")
    }

    /// The token, for its bearer.
    pub fn reveal(&self) -> String {
        format!("{PREFIX}{}_{}", self.id, hex(&self.secret))
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Secret").field("id", &self.id).finish_non_exhaustive()
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Whether this looks like the id of a token.
pub fn is_id(text: &str) -> bool {
    text.len() == 2 * ID_BYTES && text.bytes().all(is_hex)
}

fn is_hex(byte: u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'a'..=b'f')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_read_as_it_was_written_and_differs_from_the_next() {
        let (one, other) = (Secret::generate().unwrap(), Secret::generate().unwrap());
        assert_eq!(Secret::parse(&one.reveal()), Some(one.clone()));
        assert_ne!(one.id(), other.id());
        assert!(one.has_hash(Some(&one.hash())));
        for wrong in [None, Some(&[] as &[u8]), Some(&one.hash()[1..]), Some(&other.hash()), Some(&[0; 32])] {
            assert!(!one.has_hash(wrong), "{wrong:?}");
        }
    }

    #[test]
    fn what_does_not_look_like_a_token_is_none() {
        let token = Secret::generate().unwrap().reveal();
        for wrong in [
            "",
            "tower_",
            "tower__",
            &token[1..],
            &token[..token.len() - 1],
            &format!("{token}0"),
            &token.to_uppercase(),
            &token.replace("tower_", "tower_0"),
        ] {
            assert_eq!(Secret::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_secret_is_not_shown_by_accident() {
        let token = Secret::generate().unwrap();
        let shown = format!("{token:?}");
        assert!(shown.contains(token.id()) && !shown.contains(&hex(&token.secret)), "{shown}");
    }

    #[test]
    fn whatever_is_presented_it_is_a_token_or_none() {
        let seed = Secret::generate().unwrap().reveal();
        tower_fuzz::fuzz("token", &[seed.as_bytes()], &["tower_", "_"], |input| {
            let text = String::from_utf8_lossy(input).into_owned();
            match Secret::parse(&text) {
                Some(secret) if secret.reveal() != text => panic!("{text:?} is another token"),
                Some(_) => Ok(()),
                None => Err("no token"),
            }
        });
    }
}
