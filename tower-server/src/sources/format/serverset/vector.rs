//! A vector: `{"vector": [{"select": "member=member_0000000007", "weight": 1.5}, …]}`. Where a rule is not
//! understood, Finagle goes on without it, and so does this reader; but it tells.

use serde_json::{Map, Value};

use crate::sources::{
    address::HostPort,
    format::{DecodeError, Decoded, Factor, Select, WeightRule, json},
};

pub(super) fn decode(data: &[u8]) -> Result<Decoded, DecodeError> {
    let mut remarks = Vec::new();
    let object = json::object(data, &mut remarks)?;
    let Value::Array(items) = json::required(&object, "vector", "vector")? else {
        return Err(json::field("vector", "not a list"));
    };
    let mut weights = Vec::new();
    for (number, item) in items.iter().enumerate() {
        let field = format!("vector[{number}]");
        let Value::Object(item) = item else { return Err(json::field(&field, "not an object")) };
        let factor = factor(item, &field)?;
        let select_field = format!("{field}.select");
        let select = json::required(item, "select", &select_field)?;
        let select = select.as_str().ok_or_else(|| json::field(&select_field, "not a string"))?;
        match parse_select(select) {
            Some(select) => weights.push(WeightRule { select, factor }),
            None => remarks.push(format!("field {select_field:?}: {select:?} selects nothing known")),
        }
    }
    Ok(Decoded { weights, remarks, ..Decoded::of(Vec::new()) })
}

/// An integer or a double: Finagle reads doubles only, and its writers know no other kind.
fn factor(item: &Map<String, Value>, field: &str) -> Result<Factor, DecodeError> {
    match item.get("weight") {
        None | Some(Value::Null) => Ok(Factor::Times(1.0)),
        Some(value) => match value.as_f64() {
            Some(-1.0) => Ok(Factor::Excluded),
            Some(weight) if weight >= 0.0 => Ok(Factor::Times(weight)),
            _ => Err(json::field(
                &format!("{field}.weight"),
                format!("{value} is neither a weight nor -1, which excludes"),
            )),
        },
    }
}

fn parse_select(text: &str) -> Option<Select> {
    match text.split_once('=')? {
        ("member", name) => Some(Select::Member(name.into())),
        ("inet", address) => {
            HostPort::parse(address).ok().map(|HostPort { host, port, .. }| Select::Address(host, port))
        }
        ("shard", number) => number.parse().ok().map(Select::Shard),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sources::address::Host;

    #[test]
    fn selectors_and_weights() {
        let decoded = decode(
            br#"{"vector":[{"select":"member=member_0000000007","weight":1.5,"priority":1},
                {"select":"inet=10.0.0.3:31623","weight":2},{"select":"shard=7","weight":-1.0},
                {"select":"shard=8","weight":-1},{"select":"shard=9"},{"select":"shard=10","weight":0}]}"#,
        )
        .unwrap();
        let rule = |select, factor| WeightRule { select, factor };
        let shard = Select::Shard;
        assert_eq!(
            decoded.weights,
            [
                rule(Select::Member("member_0000000007".into()), Factor::Times(1.5)),
                rule(Select::Address(Host::Ip("10.0.0.3".parse().unwrap()), 31623), Factor::Times(2.0)),
                rule(shard(7), Factor::Excluded),
                rule(shard(8), Factor::Excluded),
                rule(shard(9), Factor::Times(1.0)),
                rule(shard(10), Factor::Times(0.0)),
            ]
        );
        assert!(decoded.registrations.is_empty() && decoded.remarks.is_empty());
    }

    #[test]
    fn selectors_of_other_kinds_are_remarked() {
        let decoded = decode(
            br#"{"vector":[{"select":"rack=7","weight":2.0},{"select":"shard=x","weight":2.0},
                {"select":"inet=:80","weight":2.0},{"select":"x"}]}"#,
        )
        .unwrap();
        assert_eq!((decoded.weights.len(), decoded.remarks.len()), (0, 4), "{decoded:?}");
    }

    #[test]
    fn errors_name_the_field() {
        for (data, message) in [
            ("", "no data"),
            ("[]", "not JSON: not an object"),
            ("{}", "field \"vector\": missing"),
            (r#"{"vector":{}}"#, "field \"vector\": not a list"),
            (r#"{"vector":[7]}"#, "field \"vector[0]\": not an object"),
            (r#"{"vector":[{"weight":1}]}"#, "field \"vector[0].select\": missing"),
            (r#"{"vector":[{"select":7}]}"#, "field \"vector[0].select\": not a string"),
            (r#"{"vector":[{"select":"shard=1","weight":"2"}]}"#, "field \"vector[0].weight\": \"2\""),
            (r#"{"vector":[{"select":"shard=1","weight":-0.5}]}"#, "field \"vector[0].weight\": -0.5"),
        ] {
            let error = decode(data.as_bytes()).expect_err(data).to_string();
            assert!(error.contains(message), "{data}: {error:?} does not contain {message:?}");
        }
    }
}
