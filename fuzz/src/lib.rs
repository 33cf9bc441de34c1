//! Fuzzing inside ordinary tests, on a stable compiler: no instrumentation, no tool to install.
//!
//! What an instrumented fuzzer learns from coverage, this one learns from outcomes. A target returns what it made
//! of an input, or the error; an input with an outcome that has not been seen joins the corpus, and is mutated
//! further. So it works its way past one check after another.
//!
//! ```ignore
//! fuzz("format curator", &[br#"{"address":"h","port":1}"#], &["port"], |input| decode(input).map(drop));
//! ```
//!
//! A run takes [`SHORT`], or [`LONG`] with `TOWER_LONG=1`, and begins with the seed 1, or the one that
//! `TOWER_FUZZ_SEED` gives. The same seed makes the same inputs; only how many of them is a matter of time.

mod corpus;
mod mutate;

use std::{
    fmt::{Debug, Display},
    io::Write,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    time::{Duration, Instant},
};

use rand::{SeedableRng, rngs::StdRng};

use self::corpus::Corpus;

/// How long a target is fuzzed in an ordinary run of the tests.
pub const SHORT: Duration = Duration::from_secs(1);

/// How long with `TOWER_LONG=1`.
pub const LONG: Duration = Duration::from_secs(60);

/// An input that takes longer than this is as bad as one that panics: somebody can send many of them. Many
/// times what any takes, as other tests run at the same time.
const SLOW: Duration = Duration::from_secs(5);

/// An input that fails is shown up to here.
const SHOWN: usize = 2048;

/// What a run amounts to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Figures {
    /// How many inputs there were.
    pub inputs: u64,
    /// How many different outcomes.
    pub outcomes: usize,
}

/// Feeds `target` with mutations of `corpus`, into which `words` are put now and then. Figures go to standard
/// error.
///
/// # Panics
/// As the target does, or if it is slow, once seed and input have been shown.
pub fn fuzz<T: Debug, E: Display>(
    name: &str,
    corpus: &[&[u8]],
    words: &[&str],
    target: impl FnMut(&[u8]) -> Result<T, E>,
) -> Figures {
    let long = std::env::var("TOWER_LONG").is_ok_and(|value| !matches!(value.as_str(), "" | "0"));
    let seed = std::env::var("TOWER_FUZZ_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    fuzz_for(if long { LONG } else { SHORT }, seed, name, corpus, words, target)
}

/// As [`fuzz`], for so long, with this seed.
///
/// # Panics
/// As [`fuzz`] does.
#[allow(clippy::disallowed_methods, reason = "how long it takes is what is measured")]
pub fn fuzz_for<T: Debug, E: Display>(
    time: Duration,
    seed: u64,
    name: &str,
    corpus: &[&[u8]],
    words: &[&str],
    mut target: impl FnMut(&[u8]) -> Result<T, E>,
) -> Figures {
    let mut rng = StdRng::seed_from_u64(seed);
    let mut corpus = Corpus::new(corpus);
    let start = Instant::now();
    let mut now = start;
    let mut inputs = 0;
    while now - start < time {
        let input = corpus.next(words, &mut rng);
        let outcome = catch_unwind(AssertUnwindSafe(|| target(&input)));
        let before = std::mem::replace(&mut now, Instant::now());
        let failure = |what: &str| {
            let shown = input[..input.len().min(SHOWN)].escape_ascii();
            say(&format!(
                "fuzz {name}: {what}, input {inputs} of seed {seed}, {} bytes: \"{shown}\"",
                input.len()
            ));
        };
        match outcome {
            Ok(outcome) if now - before < SLOW => match outcome {
                Ok(made) => corpus.learn(&input, &format!("made {made:?}")),
                Err(error) => corpus.learn(&input, &error.to_string()),
            },
            Ok(_) => {
                failure("slow");
                panic!("fuzz {name}: an input took {:?}", now - before);
            }
            Err(panic) => {
                failure("panic");
                resume_unwind(panic);
            }
        }
        inputs += 1;
    }
    let figures = Figures { inputs, outcomes: corpus.outcomes() };
    let seconds = (now - start).as_secs_f64();
    say(&format!(
        "fuzz {name}: {inputs} inputs in {seconds:.1} s ({:.0}/s), {} outcomes",
        inputs as f64 / seconds,
        figures.outcomes
    ));
    figures
}

/// Not by the macros, of which the test harness shows nothing if the test passes.
fn say(line: &str) {
    // Without a place for figures, the test is still good.
    let _ = writeln!(std::io::stderr(), "{line}");
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOMENT: Duration = Duration::from_millis(300);

    /// A decoder with checks behind checks, and a fault behind all of them.
    fn decode(input: &[u8]) -> Result<(), &'static str> {
        let rest = input.strip_prefix(b"TOWR").ok_or("magic")?;
        let (&kind, rest) = rest.split_first().ok_or("kind")?;
        if kind != 7 {
            return Err("another kind");
        }
        let (&size, rest) = rest.split_first().ok_or("size")?;
        if usize::from(size) > rest.len() {
            return Err("short");
        }
        assert!(!rest.starts_with(b"endpoint"), "found");
        Ok(())
    }

    #[test]
    fn it_finds_what_is_behind_checks() {
        let found = catch_unwind(|| {
            fuzz_for(Duration::from_secs(60), 1, "self test", &[b"TOWR\x01\x00abc"], &["endpoint"], decode)
        });
        assert_eq!(found.unwrap_err().downcast_ref::<&str>(), Some(&"found"));
    }

    #[test]
    fn a_seed_makes_the_same_inputs() {
        let inputs = |seed| {
            let mut inputs = Vec::new();
            fuzz_for(MOMENT, seed, "self test", &[b"abc", b""], &["word"], |input| {
                if inputs.len() < 100 {
                    inputs.push(input.to_vec());
                }
                Ok::<_, String>(())
            });
            inputs
        };
        assert_eq!(inputs(5), inputs(5));
        assert_ne!(inputs(5), inputs(6));
    }
}
