//! The programs in Go: finding the toolchain, building them, running one.

use std::{
    io::{BufRead, BufReader, Write},
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

use anyhow::{Context, Result, bail, ensure};

use crate::machine::Process;

/// Where Go is when it is not in the `PATH`: its own place.
const USUAL_PLACE: &str = "/usr/local/go/bin/go";

/// The programs, built.
#[derive(Debug)]
pub struct Programs(PathBuf);

impl Programs {
    /// Builds them, beside this program. Modules are downloaded if they are not there.
    ///
    /// # Errors
    /// If there is no Go, or a module is out of reach.
    pub fn build() -> Result<Self> {
        let go = find_go().context(
            "the peers are Go programs, and there is no Go here: not in the PATH, and not in its usual place. \
             Nothing else of tower-bench needs it",
        )?;
        let own = std::env::current_exe()?;
        let folder = own.parent().unwrap_or(Path::new(".")).join("peers");
        std::fs::create_dir_all(&folder).with_context(|| format!("{} cannot be made", folder.display()))?;
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers");
        let built = Command::new(&go)
            .args(["build", "-trimpath", "-o"])
            .arg(&folder)
            .arg("./...")
            .current_dir(&sources)
            .output()
            .with_context(|| format!("{} cannot be started in {}", go.display(), sources.display()))?;
        if !built.status.success() {
            let why = String::from_utf8_lossy(&built.stderr);
            bail!("the peers in {} cannot be built:\n{}", sources.display(), why.trim());
        }
        Ok(Self(folder))
    }

    /// Starts one of them.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn start(&self, name: &str, arguments: &[&str]) -> Result<Program> {
        let mut child = Command::new(self.0.join(name))
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("{name} cannot be started"))?;
        let orders = child.stdin.take();
        let stdout = child.stdout.take().context("it has no output")?;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        Ok(Program { name: name.to_owned(), child, orders, answers: BufReader::new(stdout), address })
    }
}

fn find_go() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut places: Vec<PathBuf> = std::env::split_paths(&path).map(|folder| folder.join("go")).collect();
    places.push(USUAL_PLACE.into());
    places.into_iter().find(|place| place.is_file())
}

/// One that runs. It ends when this is dropped, or this process ends.
#[derive(Debug)]
pub struct Program {
    name: String,
    child: Child,
    orders: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
    /// Where it listens.
    pub address: SocketAddr,
}

impl Program {
    /// Tells it something that it does not answer.
    ///
    /// # Errors
    /// If it has ended.
    pub fn tell(&mut self, order: &str) -> Result<()> {
        let orders = self.orders.as_mut().with_context(|| format!("{} has ended", self.name))?;
        writeln!(orders, "{order}").with_context(|| format!("{} has ended", self.name))
    }

    /// Lets it listen.
    ///
    /// # Errors
    /// If it does not.
    pub fn serve(&mut self) -> Result<()> {
        self.tell("serve")?;
        let answer = self.answer()?;
        self.address = answer.parse().with_context(|| format!("{} listens on {answer:?}", self.name))?;
        Ok(())
    }

    /// Registers one more endpoint; returns when it is registered.
    ///
    /// # Errors
    /// If it is not.
    pub fn set(&mut self, service: &str, address: &str) -> Result<()> {
        self.tell(&format!("set {service} {address}"))?;
        let answer = self.answer()?;
        ensure!(answer == "set", "{} says {answer:?}", self.name);
        Ok(())
    }

    /// Its process.
    pub fn process(&self) -> Process {
        Process::of(self.child.id())
    }

    fn answer(&mut self) -> Result<String> {
        let mut line = String::new();
        self.answers.read_line(&mut line)?;
        Ok(line.trim().to_owned())
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        drop(self.orders.take());
        let _ = self.child.wait();
    }
}
