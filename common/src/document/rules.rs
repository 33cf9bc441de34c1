//! Every rule that a finding can name. Codes are for ever: a rule that goes leaves its code unused.

use super::Severity;

/// A rule of the checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rule {
    /// Such as `TW301`.
    pub code: &'static str,
    /// What breaking it means.
    pub severity: Severity,
    /// What it is about, for lists.
    pub title: &'static str,
}

macro_rules! rules {
    ($($name:ident $code:literal $severity:ident $title:literal)*) => {
        $(pub(super) const $name: Rule = Rule { code: $code, severity: Severity::$severity, title: $title };)*

        /// All rules, by code.
        pub const RULES: &[Rule] = &[$($name),*];
    };
}

rules! {
    // Reading.
    TOO_LARGE "TW001" Error "the document is too large"
    SYNTAX "TW002" Error "the text is no YAML, or it expands beyond bounds"
    UNKNOWN_FIELD "TW003" Error "a field that does not exist"
    FOREIGN_FIELD "TW004" Error "a field that belongs to another owner"
    WRONG_TYPE "TW005" Error "a value of another type than the field's"
    UNKNOWN_WORD "TW006" Error "a value that is none of those that the field knows"
    MISSING_FIELD "TW007" Error "a field that is needed is missing"
    BAD_SCALAR "TW008" Error "a time, percentage or number out of bounds"
    OLD_FORMAT "TW009" Info "the document is in an older format, and was upgraded"
    WRONG_SERVICE "TW010" Error "a part about another service"
    // Names and references.
    BAD_NAME "TW101" Error "a name that cannot be one"
    DUPLICATE "TW102" Error "a name that is there twice"
    NO_SUCH_SUBSET "TW103" Error "a subset that the document does not define"
    NO_SUCH_PORT "TW104" Error "a port that the document does not define"
    NO_SUCH_SERVICE "TW105" Error "a service that nobody knows"
    NO_SUCH_WEIGHT "TW106" Error "weights that no route has"
    EMPTY_SUBSET "TW107" Warning "a subset without endpoints"
    BAD_LABEL "TW108" Error "a label or an identity that cannot be one"
    // Routes.
    BAD_PATH "TW201" Error "a path that Envoy refuses"
    BAD_PATTERN "TW202" Error "a regular expression that Envoy refuses"
    BAD_HEADER "TW203" Error "a header that Envoy refuses"
    SHADOWED "TW204" Warning "a route that no request reaches"
    ALL_ZERO "TW205" Error "weights that are all 0"
    TWO_ACTIONS "TW206" Error "more than one answer to the same request"
    WRONG_SIDE "TW207" Error "a field that does nothing on this side"
    BAD_ACTION "TW208" Error "an answer that Envoy refuses"
    NO_ROUTES "TW209" Error "routes where there are no requests"
    BAD_WEIGHT "TW210" Error "a weight out of bounds"
    // Patience.
    LONGER_THAN_ALL "TW301" Error "a try may take longer than all of them"
    NO_TIMEOUT "TW302" Info "requests without a timeout"
    BAD_RETRY "TW303" Error "a retry that Envoy refuses"
    RETRY_NOTHING "TW304" Warning "retries that never happen"
    BUDGETS_DIFFER "TW305" Error "different retry budgets of one service"
    // Endpoints.
    BAD_BALANCER "TW401" Error "a load balancer that Envoy refuses"
    UNUSED_BALANCER_FIELD "TW402" Warning "a field of another load balancer"
    BAD_HEALTH "TW403" Error "a health check that Envoy refuses"
    BAD_OUTLIER "TW404" Error "outlier detection that Envoy refuses"
    BAD_LIMIT "TW405" Error "a rate limit that Envoy refuses"
    BAD_TIME "TW406" Error "a time out of bounds"
    BAD_PERCENT "TW407" Error "a percentage out of bounds"
    // Hosts.
    BAD_ADDRESS "TW501" Error "an address or a port that cannot be one"
    TLS_INCOMPLETE "TW502" Error "TLS without what it needs"
    BAD_FILE "TW503" Error "a file's path that cannot be one"
    IDENTITY_WITHOUT_TLS "TW504" Error "callers by certificate, without one to show"
    NOBODY_MAY_CALL "TW505" Warning "a list of callers without one"
    NEEDS_LISTEN "TW506" Error "a TCP service without a local port"
    // gRPC without a proxy.
    GRPC_IGNORES "TW601" Info "what gRPC without a proxy does not heed"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_unique_and_in_order() {
        let codes: Vec<_> = RULES.iter().map(|rule| rule.code).collect();
        let mut sorted = codes.clone();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(codes, sorted);
    }
}
