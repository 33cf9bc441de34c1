//! What a name that does not exist was meant to be.

/// Names that other systems use for what has another name here.
const ELSEWHERE: &[(&str, &str)] = &[
    ("backends", "backendRefs"),
    (
        "filters",
        "rewrite, redirect, directResponse, requestHeaders or responseHeaders, directly in the route",
    ),
    ("forwardTo", "backendRefs"),
    ("hostRewrite", "rewrite.host"),
    ("loadBalancing", "loadBalancer"),
    ("match", "matches"),
    ("numRetries", "retry.attempts"),
    ("perTryTimeout", "timeouts.backendRequest"),
    ("prefixRewrite", "rewrite.prefix"),
    ("requestHeaderModifier", "requestHeaders"),
    ("requestMirror", "mirror"),
    ("requestRedirect", "redirect"),
    ("requestTimeout", "timeouts.request"),
    ("responseHeaderModifier", "responseHeaders"),
    ("retries", "retry"),
    ("route", "backendRefs"),
    ("timeout", "timeouts.request"),
    ("tries", "attempts, which does not count the first try"),
    ("urlRewrite", "rewrite"),
];

/// How alike a name must be to be meant.
const ALIKE: f64 = 0.75;

/// What to write instead, of these names.
pub(super) fn suggest<'a>(name: &str, known: impl Iterator<Item = &'a str> + Clone) -> String {
    if let Some((_, here)) = ELSEWHERE.iter().find(|(there, _)| there.eq_ignore_ascii_case(name)) {
        return format!("here it is {here}");
    }
    let folded = name.replace(['_', '-'], "").to_ascii_lowercase();
    let best = known
        .clone()
        .map(|known| (strsim::jaro_winkler(&folded, &known.to_ascii_lowercase()), known))
        .max_by(|one, other| one.0.total_cmp(&other.0));
    match best {
        Some((alike, known)) if alike >= ALIKE => format!("did you mean {known}?"),
        _ => {
            let names: Vec<_> = known.collect();
            if names.is_empty() {
                "leave it out".to_owned()
            } else {
                format!("known here: {}", names.join(", "))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_nearby_and_elsewhere_are_suggested() {
        let known = ["attempts", "retryOn", "budgetPercent", "backoff"].into_iter();
        for (name, suggestion) in [
            ("attempt", "did you mean attempts?"),
            ("retry_on", "did you mean retryOn?"),
            ("budgetPercentage", "did you mean budgetPercent?"),
            ("numRetries", "here it is retry.attempts"),
            ("zzz", "known here: attempts, retryOn, budgetPercent, backoff"),
        ] {
            assert_eq!(suggest(name, known.clone()), suggestion);
        }
        assert_eq!(suggest("a", [].into_iter()), "leave it out");
    }
}
