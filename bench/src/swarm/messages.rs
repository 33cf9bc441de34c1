//! gRPC's messages in a stream of bytes (gRPC over HTTP/2, "Length-Prefixed Message").

/// Tower cuts far below this.
const MAX_MESSAGE: usize = 4 << 20;

const PREFIX: usize = 5;

/// Puts messages together. One that comes in one piece is not copied.
#[derive(Debug, Default)]
pub struct Messages {
    /// The prefix and the message, as far as they are there.
    partial: Vec<u8>,
}

impl Messages {
    /// Takes a part of the stream, and passes on what is complete.
    ///
    /// # Errors
    /// If a message is compressed, or too large; or the error of who hears it.
    pub fn take(
        &mut self,
        mut input: &[u8],
        mut hear: impl FnMut(&[u8]) -> Result<(), String>,
    ) -> Result<(), String> {
        while !input.is_empty() {
            if self.partial.is_empty()
                && let Some(length) = length(input)?
                && let Some(message) = input.get(PREFIX..PREFIX + length)
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
                hear(&std::mem::take(&mut self.partial)[PREFIX..])?;
            }
        }
        Ok(())
    }
}

/// The length of the message that begins here, if so much is known.
fn length(prefix: &[u8]) -> Result<Option<usize>, String> {
    let Some(&[compressed, a, b, c, d]) = prefix.first_chunk::<PREFIX>() else { return Ok(None) };
    let length = u32::from_be_bytes([a, b, c, d]) as usize;
    if compressed != 0 || length > MAX_MESSAGE {
        return Err(format!("a message of {length} bytes, compressed: {compressed}"));
    }
    Ok(Some(length))
}

/// Appends a message with its prefix.
pub fn framed(message: &impl prost::Message) -> Vec<u8> {
    let body = message.encode_to_vec();
    let mut out = vec![0];
    out.extend_from_slice(&u32::try_from(body.len()).unwrap_or(u32::MAX).to_be_bytes());
    out.extend_from_slice(&body);
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
                    heard.push(message.to_vec());
                    Ok(())
                };
                messages.take(part, hear).unwrap();
            }
            assert_eq!(heard, [&b"one"[..], b"", b"three"], "in steps of {step}");
        }
    }

    #[test]
    fn what_is_compressed_or_too_large_is_refused() {
        for prefix in [[1, 0, 0, 0, 0], [0, 1, 0, 0, 0]] {
            assert!(Messages::default().take(&prefix, |_| Ok(())).is_err());
        }
    }
}
