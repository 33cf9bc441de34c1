//! gRPC's messages in a stream of bytes (gRPC over HTTP/2, "Length-Prefixed Message").

use std::borrow::Cow;

/// Tower cuts far below this.
const MAX_MESSAGE: usize = 4 << 20;

/// Whether the message is packed, and its length.
pub const PREFIX: usize = 5;

/// Puts messages together, each with its prefix. One that comes in one piece is not copied.
#[derive(Debug, Default)]
pub struct Messages {
    /// The prefix and the message, as far as they are there.
    partial: Vec<u8>,
}

impl Messages {
    /// Takes a part of the stream, and passes on what is complete.
    ///
    /// # Errors
    /// If a message is too large; or the error of who hears it.
    pub fn take(
        &mut self,
        mut input: &[u8],
        mut hear: impl FnMut(&[u8]) -> Result<(), String>,
    ) -> Result<(), String> {
        while !input.is_empty() {
            if self.partial.is_empty()
                && let Some(length) = length(input)?
                && let Some(message) = input.get(..PREFIX + length)
            {
                hear(message)?;
                input = &input[PREFIX + length..];
                continue;
            }
            let wanted = match length(&self.partial)? {
                Some(length) => PREFIX + length,
                None => PREFIX,
            };
            let (taken, rest) = input.split_at(input.len().min(wanted - self.partial.len()));
            self.partial.extend_from_slice(taken);
            input = rest;
            if let Some(length) = length(&self.partial)?
                && self.partial.len() == PREFIX + length
            {
                // What was large once need not be kept for the next small one.
                hear(&std::mem::take(&mut self.partial))?;
            }
        }
        Ok(())
    }
}

/// What is in a message that has its prefix.
///
/// # Errors
/// If it cannot be unpacked.
pub fn body(framed: &[u8]) -> Result<Cow<'_, [u8]>, String> {
    let (prefix, body) = framed.split_at_checked(PREFIX).ok_or("a message without its prefix")?;
    if prefix[0] == 0 {
        return Ok(body.into());
    }
    let unpacked = zstd::bulk::decompress(body, MAX_MESSAGE);
    Ok(unpacked.map_err(|error| format!("a message that cannot be unpacked: {error}"))?.into())
}

/// The length of the message that begins here, if so much is known.
fn length(prefix: &[u8]) -> Result<Option<usize>, String> {
    let Some(&[packed, a, b, c, d]) = prefix.first_chunk::<PREFIX>() else { return Ok(None) };
    let length = u32::from_be_bytes([a, b, c, d]) as usize;
    if packed > 1 || length > MAX_MESSAGE {
        return Err(format!("a message of {length} bytes, packed: {packed}"));
    }
    Ok(Some(length))
}

/// A message with its prefix.
pub fn framed(message: &impl prost::Message) -> Vec<u8> {
    joined(&[&message.encode_to_vec()])
}

/// A message of these parts with its prefix. Protobuf makes one of them: each adds fields to it.
pub fn joined(parts: &[&[u8]]) -> Vec<u8> {
    let length: usize = parts.iter().map(|part| part.len()).sum();
    let mut out = Vec::with_capacity(PREFIX + length);
    out.push(0);
    out.extend_from_slice(&u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes());
    parts.iter().for_each(|part| out.extend_from_slice(part));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_the_same_however_they_are_cut() {
        let sent = [&[0, 0, 0, 0, 3][..], b"one", &[0, 0, 0, 0, 0], &[0, 0, 0, 0, 5], b"three"].concat();
        for step in 1..=sent.len() {
            let (mut messages, mut heard) = (Messages::default(), Vec::new());
            for part in sent.chunks(step) {
                let hear = |message: &[u8]| {
                    heard.push(message[PREFIX..].to_vec());
                    Ok(())
                };
                messages.take(part, hear).unwrap();
            }
            assert_eq!(heard, [&b"one"[..], b"", b"three"], "in steps of {step}");
        }
    }

    #[test]
    fn what_is_too_large_or_packed_in_an_unknown_way_is_refused() {
        for prefix in [[2, 0, 0, 0, 0], [0, 1, 0, 0, 0]] {
            assert!(Messages::default().take(&prefix, |_| Ok(())).is_err());
        }
    }
}
