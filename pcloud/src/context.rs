//! Which Tower is meant, and who asks: flags before the environment before the context in use.
//!
//! Contexts are in `pcloud/config.toml` of the user's configuration folder, which only the user may read, as
//! tokens are in it.

use std::{
    collections::BTreeMap,
    fs,
    io::Write,
    os::unix::fs::{OpenOptionsExt, PermissionsExt},
    path::PathBuf,
};

use clap::Args;
use etcetera::BaseStrategy;
use serde::{Deserialize, Serialize};

use crate::failure::{Exit, Failure};

/// Where Tower is, unless something else is said.
const DEFAULT_TOWER: &str = "http://127.0.0.1:5871";

/// Whom to ask, and as whom.
#[derive(Debug, Clone, Args)]
pub(crate) struct Target {
    /// Tower's address
    #[arg(long, env = "PCLOUD_TOWER", value_name = "URL", global = true, hide_env_values = true)]
    pub(crate) tower: Option<String>,

    /// The context to use instead of the current one
    #[arg(long, env = "PCLOUD_CONTEXT", value_name = "NAME", global = true)]
    pub(crate) context: Option<String>,

    /// The token to sign in with; better in the environment than on the command line
    #[arg(long, env = "PCLOUD_TOKEN", value_name = "TOKEN", global = true, hide_env_values = true)]
    pub(crate) token: Option<String>,

    /// A file with the token, such as `admin.token` in the data folder of a Tower on this host
    #[arg(long, env = "PCLOUD_TOKEN_FILE", value_name = "FILE", global = true, conflicts_with = "token")]
    pub(crate) token_file: Option<PathBuf>,

    /// A PEM file with the CAs of Tower's certificate; the system's otherwise
    #[arg(long, env = "PCLOUD_TLS_CA", value_name = "FILE", global = true)]
    pub(crate) tls_ca: Option<PathBuf>,

    /// A PEM file with a client certificate and its key, to sign in with
    #[arg(long, env = "PCLOUD_TLS_IDENTITY", value_name = "FILE", global = true)]
    pub(crate) tls_identity: Option<PathBuf>,
}

/// One place to ask.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct Context {
    /// Tower's address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tower: Option<String>,
    /// The token that `auth login` stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) token: Option<String>,
    /// See [`Target`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tls_ca: Option<PathBuf>,
    /// See [`Target`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tls_identity: Option<PathBuf>,
}

/// All contexts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct Contexts {
    /// The name of the one in use; without it everything comes from flags and the environment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) current: Option<String>,
    /// By name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) contexts: BTreeMap<String, Context>,
}

/// What flags, environment and context come to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Resolved {
    /// The name of the context, if one is in use.
    pub(crate) context: Option<String>,
    /// Tower's address, without a slash at the end.
    pub(crate) tower: String,
    /// The token.
    pub(crate) token: Option<String>,
    /// Where the token is from, for people.
    pub(crate) token_from: &'static str,
    /// CAs.
    pub(crate) tls_ca: Option<PathBuf>,
    /// Client certificate and key.
    pub(crate) tls_identity: Option<PathBuf>,
}

impl Contexts {
    /// Reads the file; there may be none.
    pub(crate) fn load() -> Result<Self, Failure> {
        let path = path()?;
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => return Err(Failure::usage(format!("{}: {error}", path.display()))),
        };
        toml::from_str(&text).map_err(|error| Failure::usage(format!("{}: {error}", path.display())))
    }

    /// Writes the file, whole or not at all, readable by its user alone.
    pub(crate) fn store(&self) -> Result<(), Failure> {
        let path = path()?;
        let failed =
            |error: std::io::Error| Failure::new(Exit::Failed, format!("{}: {error}", path.display()));
        let folder = path.parent().map(PathBuf::from).unwrap_or_default();
        fs::create_dir_all(&folder).map_err(failed)?;
        let text = toml::to_string_pretty(self).map_err(|error| Failure::new(Exit::Failed, error))?;
        let next = path.with_extension("toml.next");
        let mut file = fs::OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&next)
            .map_err(failed)?;
        file.set_permissions(fs::Permissions::from_mode(0o600)).map_err(failed)?;
        file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(failed)?;
        fs::rename(&next, &path).map_err(failed)
    }

    /// The context of this name.
    pub(crate) fn get(&self, name: &str) -> Result<&Context, Failure> {
        self.contexts.get(name).ok_or_else(|| {
            let known: Vec<&str> = self.contexts.keys().map(String::as_str).collect();
            let next = if known.is_empty() {
                format!("pcloud context set {name} --tower URL")
            } else {
                format!("use one of: {}", known.join(", "))
            };
            Failure::usage(format!("there is no context {name:?}")).next(next)
        })
    }

    /// What is meant.
    pub(crate) fn resolve(&self, target: &Target) -> Result<Resolved, Failure> {
        let name = target.context.clone().or_else(|| self.current.clone());
        let context = match &name {
            Some(name) => self.get(name)?.clone(),
            None => Context::default(),
        };
        let file = target.token_file.as_ref().map(|file| {
            fs::read_to_string(file)
                .map(|text| text.trim().to_owned())
                .map_err(|error| Failure::usage(format!("--token-file {}: {error}", file.display())))
        });
        let (token, token_from) = match (&target.token, file, &context.token) {
            (Some(token), _, _) => (Some(token.clone()), "--token or PCLOUD_TOKEN"),
            (None, Some(token), _) => (Some(token?), "--token-file or PCLOUD_TOKEN_FILE"),
            (None, None, Some(token)) => (Some(token.clone()), "the context, by auth login"),
            (None, None, None) => (None, "nowhere"),
        };
        let tower = target.tower.clone().or(context.tower).unwrap_or_else(|| DEFAULT_TOWER.to_owned());
        Ok(Resolved {
            context: name,
            tower: tower.trim_end_matches('/').to_owned(),
            token,
            token_from,
            tls_ca: target.tls_ca.clone().or(context.tls_ca),
            tls_identity: target.tls_identity.clone().or(context.tls_identity),
        })
    }
}

fn path() -> Result<PathBuf, Failure> {
    let base = etcetera::choose_base_strategy().map_err(Failure::usage)?;
    Ok(base.config_dir().join("pcloud").join("config.toml"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nothing() -> Target {
        Target { tower: None, context: None, token: None, token_file: None, tls_ca: None, tls_identity: None }
    }

    fn contexts() -> Contexts {
        toml::from_str(
            "current = \"prod\"\n[contexts.prod]\ntower = \"https://prod:5871/\"\ntoken = \"stored\"\n\
             [contexts.test]\ntower = \"https://test:5871\"\n",
        )
        .unwrap()
    }

    #[test]
    fn flags_come_before_the_context_in_use() {
        let resolved = contexts().resolve(&nothing()).unwrap();
        assert_eq!(
            (resolved.tower.as_str(), resolved.token.as_deref()),
            ("https://prod:5871", Some("stored"))
        );
        let target = Target { tower: Some("http://here".into()), token: Some("mine".into()), ..nothing() };
        let resolved = contexts().resolve(&target).unwrap();
        assert_eq!((resolved.tower.as_str(), resolved.token.as_deref()), ("http://here", Some("mine")));
        let resolved = contexts().resolve(&Target { context: Some("test".into()), ..nothing() }).unwrap();
        assert_eq!((resolved.tower.as_str(), resolved.token), ("https://test:5871", None));
    }

    #[test]
    fn without_contexts_tower_is_on_this_host() {
        assert_eq!(Contexts::default().resolve(&nothing()).unwrap().tower, DEFAULT_TOWER);
    }

    #[test]
    fn an_unknown_context_is_named_with_those_there_are() {
        let failure = contexts().resolve(&Target { context: Some("prd".into()), ..nothing() }).unwrap_err();
        assert_eq!(failure.exit, Exit::Usage);
        assert_eq!(failure.to_string(), "error: there is no context \"prd\"\n  next: use one of: prod, test");
    }

    #[test]
    fn a_token_file_is_read_and_named_if_it_cannot_be() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("admin.token");
        let target = Target { token_file: Some(file.clone()), ..nothing() };
        assert!(contexts().resolve(&target).unwrap_err().message.contains("admin.token"));
        fs::write(&file, "secret\n").unwrap();
        assert_eq!(contexts().resolve(&target).unwrap().token.as_deref(), Some("secret"));
    }
}
