//! Regular expressions: RE2's syntax, within Envoy's bounds.
//!
//! Envoy refuses a program of more than 100 instructions (`re2.max_program_size.error_level`), and RE2 a
//! repetition above 1000. What RE2 compiles to is counted here from above, so that nothing gets through which
//! Envoy refuses; a few that it would take are refused as well.

use regex_syntax::hir::{Class, Hir, HirKind, Look};

/// Instructions that Envoy allows by default.
const MAX_PROGRAM: usize = 100;

/// What RE2 adds around a pattern: the jump to unanchored matching, match and failure.
const AROUND: usize = 6;

/// RE2's limit of counted repetitions.
const MAX_REPEAT: u32 = 1000;

/// Why Envoy would refuse a regular expression.
pub(super) fn fault(pattern: &str) -> Option<String> {
    if pattern.is_empty() {
        return Some("it is empty".to_owned());
    }
    // What this parser knows and RE2 does not.
    if let Some(flags) = foreign(pattern) {
        return Some(format!("RE2 does not know {flags}"));
    }
    let parsed = regex_syntax::ParserBuilder::new().nest_limit(50).build().parse(pattern);
    let hir = match parsed {
        Ok(hir) => hir,
        Err(error) => return Some(error.to_string().lines().last().unwrap_or_default().to_owned()),
    };
    match size(&hir) {
        None => Some(format!("a repetition of more than {MAX_REPEAT}")),
        Some(size) if size + AROUND > MAX_PROGRAM => {
            Some(format!("it is too complex: about {} instructions of {MAX_PROGRAM}", size + AROUND))
        }
        Some(_) => None,
    }
}

/// Syntax of this parser that RE2 lacks: flags but for `imsU`, `\<`-like assertions, set operations in classes.
fn foreign(pattern: &str) -> Option<&'static str> {
    let mut rest = pattern;
    while let Some(at) = rest.find("(?") {
        let flags = &rest[at + 2..];
        if !flags.starts_with('P') && !flags.starts_with('<') {
            let end = flags.find([':', ')']).unwrap_or(flags.len());
            if !flags[..end].chars().all(|flag| "imsU-".contains(flag)) {
                return Some("one of the flags");
            }
        }
        rest = flags;
    }
    let unknown = ["\\<", "\\>", "\\b{", "\\u", "\\U", "&&", "--", "~~", "\\x{1"];
    unknown.iter().any(|syntax| pattern.contains(syntax)).then_some("one of the escapes or class operators")
}

/// Instructions, counted from above; `None` for a repetition that RE2 refuses.
fn size(hir: &Hir) -> Option<usize> {
    Some(match hir.kind() {
        HirKind::Empty => 1,
        // A character beyond ASCII is up to 4 bytes, and one without case two ranges.
        HirKind::Literal(literal) => literal.0.len() * 2,
        HirKind::Class(Class::Bytes(class)) => class.ranges().len() * 2,
        HirKind::Class(Class::Unicode(class)) => {
            let bytes = |last: char| if last.is_ascii() { 1 } else { 12 };
            class.ranges().iter().map(|range| bytes(range.end())).sum::<usize>().max(1)
        }
        HirKind::Look(Look::Start | Look::End | Look::StartLF | Look::EndLF) => 1,
        HirKind::Look(_) => 2,
        HirKind::Capture(capture) => size(&capture.sub)? + 2,
        HirKind::Repetition(repetition) => {
            let times = repetition.max.unwrap_or(repetition.min).max(repetition.min).max(1);
            if times > MAX_REPEAT {
                return None;
            }
            let copies = times as usize + usize::from(repetition.max.is_none());
            (size(&repetition.sub)? + 1).saturating_mul(copies)
        }
        HirKind::Concat(parts) => parts.iter().map(size).try_fold(0, |sum, size| Some(sum + size?))?,
        HirKind::Alternation(parts) => {
            parts.iter().map(size).try_fold(0, |sum, size| Some(sum + size? + 1))?
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_envoy_refuses_is_refused() {
        for pattern in
            ["", "/[a-z0-9]{1,200}", "a{1001}", "(?x)a b", "(", "a**(?=b)", "(?=a)", "\\1", "[a&&b]"]
        {
            assert!(fault(pattern).is_some(), "{pattern}");
        }
    }

    #[test]
    fn what_people_write_is_taken() {
        for pattern in
            ["/rank/[0-9]+", "^/v[12]/.*$", "/users/[^/]+/cart", "a{1,8}", "(?i)yes|no", "/(a|b|c)/.*"]
        {
            assert_eq!(fault(pattern), None, "{pattern}");
        }
    }
}
