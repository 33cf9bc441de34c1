//! One small change to an input.

use rand::{Rng, rngs::StdRng};

/// Inputs do not grow beyond this, which is more than any decoder takes of what a client sends.
const MAX_BYTES: usize = 80 << 10;

/// Where decoders tend to err: the ends of ranges, as bytes, sizes and numbers.
const BYTES: [u8; 10] = [0, 1, 0x0a, b' ', b'"', b'\\', 0x7f, 0x80, 0xc3, 0xff];
const SIZES: [u32; 8] = [0, 1, 0xff, 0x7fff, 0x1_0000, 0x7fff_ffff, 0x8000_0000, u32::MAX];
const NUMBERS: [&str; 10] =
    ["0", "-1", "65535", "65536", "4294967296", "1e308", "1e999", "-0.0", "9223372036854775808", "0x10"];

/// Changes the input a little; `other` is another one to take a piece of.
pub(crate) fn mutate(input: &mut Vec<u8>, other: &[u8], words: &[&str], rng: &mut StdRng) {
    let at = rng.random_range(0..=input.len());
    let end = at + rng.random_range(0..=16).min(input.len() - at);
    match rng.random_range(0..11) {
        0 if at < input.len() => input[at] ^= 1 << rng.random_range(0..8),
        1 if at < input.len() => input[at] = pick(&BYTES, rng),
        2 if at < input.len() => input[at] = rng.random(),
        3 => drop(input.drain(at..end)),
        4 => input.truncate(at),
        5 => insert(input, at, &[pick(&BYTES, rng)]),
        6 => {
            let size = pick(&SIZES, rng);
            let bytes = if rng.random() { size.to_be_bytes() } else { size.to_le_bytes() };
            if end - at >= 4 {
                input[at..at + 4].copy_from_slice(&bytes);
            } else {
                insert(input, at, &bytes);
            }
        }
        7 if !words.is_empty() => insert(input, at, pick(words, rng).as_bytes()),
        8 => {
            // In place of the digits that stand here, if any do.
            let digits = input[at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
            input.splice(at..at + digits, pick(&NUMBERS, rng).bytes());
        }
        9 if !other.is_empty() => {
            let from = rng.random_range(0..other.len());
            let to = rng.random_range(from..=other.len());
            insert(input, at, &other[from..to]);
        }
        _ => {
            // The same again, a few times: nesting, and many of a kind.
            let piece = input[at..end].to_vec();
            insert(input, at, &piece.repeat(pick(&[1, 2, 50, 1000], rng)));
        }
    }
    input.truncate(MAX_BYTES);
}

fn pick<T: Copy>(from: &[T], rng: &mut StdRng) -> T {
    from[rng.random_range(0..from.len())]
}

fn insert(input: &mut Vec<u8>, at: usize, bytes: &[u8]) {
    input.splice(at..at, bytes.iter().copied());
}
