//! Where the programs are that the harness starts.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

/// The variable that names the Envoy to use.
const ENVOY: &str = "TOWER_ENVOY";

/// A program of this workspace, built beside the one that is running.
pub fn ours(name: &str) -> Result<PathBuf> {
    let mut folder = std::env::current_exe().context("cannot tell where this program is")?;
    folder.pop();
    // Tests are in target/debug/deps, programs in target/debug.
    if folder.ends_with("deps") {
        folder.pop();
    }
    let program = folder.join(name);
    if !program.is_file() {
        bail!("{} does not exist: run `make build` first", program.display());
    }
    Ok(program)
}

/// Envoy: what `TOWER_ENVOY` names, or what `scripts/setup` has installed.
pub fn envoy() -> Result<PathBuf> {
    if let Some(program) = std::env::var_os(ENVOY) {
        return Ok(program.into());
    }
    let program = workspace().join(".tools/venv/bin/envoy");
    if !program.is_file() {
        bail!("{} does not exist: run `scripts/setup envoy` first", program.display());
    }
    Ok(program)
}

/// A Python with grpcio, which `scripts/setup` has installed.
pub fn python() -> Result<PathBuf> {
    let program = workspace().join(".tools/venv/bin/python");
    if !program.is_file() {
        bail!("{} does not exist: run `scripts/setup grpc` first", program.display());
    }
    Ok(program)
}

/// Schemathesis, which `scripts/setup` has installed.
pub fn schemathesis() -> Result<PathBuf> {
    let program = workspace().join(".tools/venv/bin/schemathesis");
    if !program.is_file() {
        bail!("{} does not exist: run `scripts/setup schemathesis` first", program.display());
    }
    Ok(program)
}

/// The variables that would act as flags of our programs, were a developer to have them set.
pub fn variables_to_hide() -> impl Iterator<Item = String> {
    // Tests name all flags that matter to them. Which Envoy to use is not a flag.
    std::env::vars()
        .map(|(name, _)| name)
        .filter(|name| name.starts_with("TOWER_") || name.starts_with("BEACON_"))
        .filter(|name| name != ENVOY)
}

/// The class path of the ZooKeeper that Debian's package `zookeeper` installs.
pub fn zookeeper_class_path() -> Result<String> {
    const FOLDER: &str = "/usr/share/java";
    const EXACTLY: [&str; 7] = [
        "zookeeper.jar",
        "zookeeper-jute.jar",
        "slf4j-api.jar",
        "slf4j-simple.jar",
        "metrics-core.jar",
        "snappy-java.jar",
        "commons-cli.jar",
    ];
    if !Path::new(FOLDER).join(EXACTLY[0]).exists() {
        bail!("there is no {FOLDER}/zookeeper.jar: run `scripts/setup zookeeper` first");
    }
    let mut jars: Vec<PathBuf> = EXACTLY.iter().map(|jar| Path::new(FOLDER).join(jar)).collect();
    for entry in std::fs::read_dir(FOLDER).with_context(|| format!("cannot read {FOLDER}"))? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with("netty-") && name.ends_with(".jar") {
            jars.push(path);
        }
    }
    let jars: Vec<String> = jars.iter().map(|jar| jar.to_string_lossy().into_owned()).collect();
    Ok(jars.join(":"))
}

fn workspace() -> &'static Path {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.parent().unwrap_or(package)
}
