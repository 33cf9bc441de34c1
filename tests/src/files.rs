//! A folder of endpoint lists, as Tower's file source reads it.

use std::{
    collections::BTreeMap,
    fmt::{self, Display, Write},
    net::SocketAddr,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use tempfile::TempDir;

/// One endpoint of a service, as a line of its file.
#[derive(Clone, Debug)]
pub struct Endpoint {
    /// Where it is.
    pub address: SocketAddr,
    /// Its zone, if it has one.
    pub zone: Option<String>,
    /// Its weight, if it has one.
    pub weight: Option<u32>,
    /// Its state, if it has one.
    pub state: Option<String>,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
}

impl From<SocketAddr> for Endpoint {
    fn from(address: SocketAddr) -> Self {
        Self { address, zone: None, weight: None, state: None, labels: BTreeMap::new() }
    }
}

impl Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{{address: \"{}\", port: {}", self.address.ip(), self.address.port())?;
        if let Some(zone) = &self.zone {
            write!(f, ", zone: {zone}")?;
        }
        if let Some(weight) = self.weight {
            write!(f, ", weight: {weight}")?;
        }
        if let Some(state) = &self.state {
            write!(f, ", state: {state}")?;
        }
        if !self.labels.is_empty() {
            let labels = self.labels.iter().map(|(key, value)| format!("{key}: {value}"));
            write!(f, ", labels: {{{}}}", labels.collect::<Vec<_>>().join(", "))?;
        }
        f.write_char('}')
    }
}

/// The folder, removed when this is dropped.
#[derive(Debug)]
pub struct EndpointFiles {
    folder: TempDir,
}

impl EndpointFiles {
    /// An empty folder.
    pub fn new() -> Result<Self> {
        let folder = tempfile::Builder::new().prefix("tower-endpoints-").tempdir();
        Ok(Self { folder: folder.context("cannot make a folder for endpoint files")? })
    }

    /// The value of Tower's `--discovery` for this folder.
    pub fn discovery(&self) -> String {
        format!("file://{}", self.folder.path().display())
    }

    /// The file of a service.
    pub fn path(&self, service: &str) -> PathBuf {
        self.folder.path().join(format!("{service}.yaml"))
    }

    /// Writes the endpoints of a service.
    pub fn write(&self, service: &str, endpoints: &[Endpoint]) -> Result<()> {
        let mut text = format!("service: {service}\nendpoints:");
        if endpoints.is_empty() {
            text.push_str(" []");
        }
        for endpoint in endpoints {
            write!(text, "\n- {endpoint}")?;
        }
        text.push('\n');
        self.write_text(service, &text)
    }

    /// Writes the file of a service as it is given, right or wrong.
    pub fn write_text(&self, service: &str, text: &str) -> Result<()> {
        replace(&self.path(service), text)
    }

    /// Removes the file of a service.
    pub fn remove(&self, service: &str) -> Result<()> {
        let path = self.path(service);
        std::fs::remove_file(&path).with_context(|| format!("cannot remove {}", path.display()))
    }
}

/// A reader sees the old text or the new one, never a part. The temporary file is beside the real
/// one, where the rename is atomic, and hidden, so that it is nobody's endpoint list.
fn replace(path: &Path, text: &str) -> Result<()> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let temporary = path.with_file_name(format!(".{name}.tmp"));
    std::fs::write(&temporary, text)
        .and_then(|()| std::fs::rename(&temporary, path))
        .with_context(|| format!("cannot write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_is_what_the_documentation_shows() -> Result<()> {
        let files = EndpointFiles::new()?;
        let plain = Endpoint::from(SocketAddr::from(([10, 0, 0, 2], 8080)));
        let full = Endpoint {
            address: ([10, 0, 0, 1], 8080).into(),
            zone: Some("us-east-1a".to_owned()),
            weight: Some(1),
            state: Some("draining".to_owned()),
            labels: [("release".to_owned(), "stable".to_owned())].into(),
        };
        files.write("web", &[full, plain])?;
        let expected = "service: web\n\
            endpoints:\n\
            - {address: \"10.0.0.1\", port: 8080, zone: us-east-1a, weight: 1, state: draining, \
            labels: {release: stable}}\n\
            - {address: \"10.0.0.2\", port: 8080}\n";
        assert_eq!(std::fs::read_to_string(files.path("web"))?, expected);
        files.write("web", &[])?;
        assert_eq!(std::fs::read_to_string(files.path("web"))?, "service: web\nendpoints: []\n");
        Ok(())
    }
}
