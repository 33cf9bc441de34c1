//! jq filters, without jq.

use jaq_core::{
    Compiler, Ctx, Vars, data,
    load::{Arena, File, Loader},
    unwrap_valr,
};
use jaq_json::{Val, read};
use serde_json::Value;

use crate::failure::{Exit, Failure};

/// What a filter makes of a value, each as it is to be printed: strings without quotes, all else as JSON.
pub(super) fn run(filter: &str, value: &Value) -> Result<Vec<String>, Failure> {
    let wrong = |what: String| Failure::usage(format!("--jq {filter}: {what}"));
    let input = read::parse_single(value.to_string().as_bytes())
        .map_err(|error| Failure::new(Exit::Failed, error))?;
    let definitions = jaq_core::defs().chain(jaq_std::defs()).chain(jaq_json::defs());
    let functions = jaq_core::funs().chain(jaq_std::funs()).chain(jaq_json::funs());
    let arena = Arena::default();
    let modules = Loader::new(definitions)
        .load(&arena, File { code: filter, path: () })
        .map_err(|_| wrong("this is no jq filter".to_owned()))?;
    let filter = Compiler::default()
        .with_funs(functions)
        .compile(modules)
        .map_err(|errors| wrong(format!("not known: {}", unknown(&errors))))?;
    let context = Ctx::<data::JustLut<Val>>::new(&filter.lut, Vars::new([]));
    filter
        .id
        .run((context, input))
        .map(|result| match unwrap_valr(result) {
            Ok(Val::TStr(text)) => Ok(String::from_utf8_lossy(&text).into_owned()),
            Ok(value) => Ok(value.to_string()),
            Err(error) => Err(wrong(error.to_string())),
        })
        .collect()
}

fn unknown<P>(errors: &jaq_core::compile::Errors<&str, P>) -> String {
    let names = errors.iter().flat_map(|(_, undefined)| undefined.iter().map(|(name, _)| *name));
    names.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn strings_are_printed_bare_and_all_else_as_json() {
        let data = json!({"services": [{"name": "web", "n": 1}, {"name": "ads", "n": 2}]});
        assert_eq!(run(".services[].name", &data).unwrap(), ["web", "ads"]);
        assert_eq!(run(".services | map(.n) | add", &data).unwrap(), ["3"]);
        assert_eq!(run(".services[0]", &data).unwrap(), [r#"{"n":1,"name":"web"}"#]);
    }

    #[test]
    fn a_wrong_filter_is_wrong_usage() {
        for filter in [".[", "nonsense", ".services.name"] {
            let failure = run(filter, &json!({"services": []})).unwrap_err();
            assert_eq!(failure.exit, Exit::Usage);
            assert!(failure.message.contains(filter), "{}", failure.message);
        }
    }
}
