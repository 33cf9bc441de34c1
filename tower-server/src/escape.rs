//! Any text as a name in the event log, where names have no slashes, spaces or control characters.

use std::fmt::Write;

/// The text with such characters, and `%`, in hexadecimal: `a/b` is `a%2Fb`.
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        if character == '%' || character == '/' || character.is_whitespace() || character.is_control() {
            for byte in character.encode_utf8(&mut [0; 4]).bytes() {
                // A string takes all.
                let _ = write!(escaped, "%{byte:02X}");
            }
        } else {
            escaped.push(character);
        }
    }
    escaped
}

/// The text that was escaped; nothing, if this never was.
pub fn unescape(escaped: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(escaped.len());
    let mut rest = escaped.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        if *first == b'%' {
            let digits = std::str::from_utf8(rest.get(..2)?).ok()?;
            bytes.push(u8::from_str_radix(digits, 16).ok()?);
            rest = &rest[2..];
        } else {
            bytes.push(*first);
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_escaped_comes_back_and_names_stay_as_they_are() {
        for plain in ["web", "spiffe:mesh", "ä@b.c"] {
            assert_eq!(escape(plain), plain);
        }
        for text in ["", "a/b", "100 %", "%2F", "\u{87}\u{2003}\n", "spiffe://mesh/ops"] {
            let escaped = escape(text);
            assert!(!escaped.contains(['/', ' ', '\n', '\u{87}', '\u{2003}']), "{escaped}");
            assert_eq!(unescape(&escaped).as_deref(), Some(text));
        }
        for never in ["%", "%2", "%zz", "%FF"] {
            assert_eq!(unescape(never), None, "{never}");
        }
    }
}
