//! The inputs that are worth mutating.

use std::collections::HashSet;

use rand::{Rng, rngs::StdRng};

use crate::mutate::mutate;

/// More are not kept: the first ones with an outcome are the simplest.
const MAX_INPUTS: usize = 2048;

/// Inputs, and the outcomes seen so far.
#[derive(Debug)]
pub(crate) struct Corpus {
    inputs: Vec<Vec<u8>>,
    seeds: usize,
    /// How many of the seeds have been handed out as they are.
    tried: usize,
    outcomes: HashSet<String>,
}

impl Corpus {
    pub(crate) fn new(seeds: &[&[u8]]) -> Self {
        let mut inputs: Vec<Vec<u8>> = seeds.iter().map(|seed| seed.to_vec()).collect();
        if inputs.is_empty() {
            inputs.push(Vec::new());
        }
        Self { seeds: inputs.len(), inputs, tried: 0, outcomes: HashSet::new() }
    }

    /// The next input: first the seeds as they are, then mutations.
    pub(crate) fn next(&mut self, words: &[&str], rng: &mut StdRng) -> Vec<u8> {
        if self.tried < self.seeds {
            self.tried += 1;
            return self.inputs[self.tried - 1].clone();
        }
        // Whatever is learned, what is well-formed stays the best place to begin at.
        let first = if rng.random_ratio(1, 4) { self.seeds } else { self.inputs.len() };
        let mut input = self.inputs[rng.random_range(0..first)].clone();
        let other = &self.inputs[rng.random_range(0..self.inputs.len())];
        for _ in 0..rng.random_range(1..=6) {
            mutate(&mut input, other, words, rng);
        }
        input
    }

    /// What came of an input.
    pub(crate) fn learn(&mut self, input: &[u8], outcome: &str) {
        if self.inputs.len() < MAX_INPUTS && self.outcomes.insert(kind(outcome)) {
            self.inputs.push(input.to_vec());
        }
    }

    pub(crate) fn outcomes(&self) -> usize {
        self.outcomes.len()
    }
}

/// An outcome without what is taken from the input: numbers, and what is quoted. The name of a field is quoted
/// as well, and tells how far the input came.
fn kind(outcome: &str) -> String {
    let mut kind = String::new();
    let mut rest = outcome;
    while let Some(start) = rest.find('"') {
        let (before, quoted) = rest.split_at(start);
        kind.push_str(before);
        let end = closing_quote(quoted);
        if before.ends_with("field ") {
            kind.push_str(&quoted[..end]);
        }
        rest = &quoted[end..];
    }
    kind.push_str(rest);
    kind.retain(|c| !c.is_ascii_digit());
    kind
}

/// Where a text that begins with a quote has the end of what is quoted.
fn closing_quote(text: &str) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        if c == '"' && !escaped {
            return at + 1;
        }
        escaped = c == '\\' && !escaped;
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outcome_is_of_a_kind() {
        for (outcome, expected) in [
            ("field \"endpoints[7].port\": \"80x\" is no port", "field \"endpoints[].port\":  is no port"),
            ("at 12: \"a \\\" b\" is bad", "at :  is bad"),
            ("made Some(\"", "made Some("),
            ("made (3, [])", "made (, [])"),
        ] {
            assert_eq!(kind(outcome), expected);
        }
    }
}
