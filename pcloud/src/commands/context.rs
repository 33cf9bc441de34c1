//! `context`: Towers by name.

use serde_json::json;

use crate::{
    cli,
    context::{Contexts, Target},
    failure::Failure,
    output::{self, Cell, Output, Table},
};

pub(super) fn run(command: &cli::Context, target: &Target, output: &Output) -> Result<(), Failure> {
    let mut contexts = Contexts::load()?;
    match command {
        cli::Context::List => {
            let current = |name: &String| contexts.current.as_ref() == Some(name);
            let data: Vec<_> = contexts
                .contexts
                .iter()
                .map(
                    |(name, context)| json!({"name": name, "tower": context.tower, "current": current(name)}),
                )
                .collect();
            return output.print(
                &json!({ "contexts": data }),
                |_| {
                    let mut table = Table::new(&["CURRENT", "CONTEXT", "TOWER", "SIGNED IN"]);
                    for (name, context) in &contexts.contexts {
                        table.row([
                            Cell::from(if current(name) { "*" } else { "" }),
                            name.as_str().into(),
                            context.tower.as_deref().unwrap_or("-").into(),
                            if context.token.is_some() { "yes" } else { "no" }.into(),
                        ]);
                    }
                    table
                },
                || contexts.contexts.keys().cloned().collect(),
            );
        }
        cli::Context::Use { name } => {
            contexts.get(name)?;
            contexts.current = Some(name.clone());
        }
        cli::Context::Set { name } => {
            let context = contexts.contexts.entry(name.clone()).or_default();
            if let Some(tower) = &target.tower {
                context.tower = Some(tower.trim_end_matches('/').to_owned());
            }
            context.tls_ca = target.tls_ca.clone().or(context.tls_ca.take());
            context.tls_identity = target.tls_identity.clone().or(context.tls_identity.take());
            contexts.current.get_or_insert_with(|| name.clone());
        }
        cli::Context::Delete { name } => {
            contexts.get(name)?;
            contexts.contexts.remove(name);
            contexts.current.take_if(|current| current == name);
        }
    }
    contexts.store()?;
    output::note("done");
    Ok(())
}
