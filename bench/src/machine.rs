//! What processes take of the machine, and how much of it there is.

use std::{fs, net::SocketAddr, path::Path, time::Duration};

use anyhow::{Context, Result, ensure};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// File descriptors that a process needs beside its connections.
const OTHER_FILES: u64 = 200;

/// Raises the limit of open files to what this process may have, and with it that of the processes that it
/// starts.
///
/// # Errors
/// If that is too little for so many connections.
pub fn allow_files(connections: usize) -> Result<()> {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    setrlimit(Resource::Nofile, raised).context("the limit of open files cannot be raised")?;
    let wanted = connections as u64 + OTHER_FILES;
    let allowed = limit.maximum.unwrap_or(u64::MAX);
    ensure!(
        wanted <= allowed,
        "{connections} connections do not fit: a process may open {allowed} files here (`ulimit -Hn`), and \
         {wanted} are needed; take fewer --beacons, or raise the limit"
    );
    Ok(())
}

/// A process that is watched.
#[derive(Debug, Clone, Copy)]
pub struct Process(u32);

impl Process {
    /// This one.
    pub fn own() -> Self {
        Self(std::process::id())
    }

    /// One with this id.
    pub fn of(id: u32) -> Self {
        Self(id)
    }

    /// The Tower that serves Beacons at this address.
    ///
    /// # Errors
    /// If there is none.
    pub fn of_tower(grpc: SocketAddr) -> Result<Self> {
        let flag = format!("--grpc-listen={grpc}");
        for entry in fs::read_dir("/proc")?.flatten() {
            let Some(id) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else {
                continue;
            };
            let program = fs::read_link(entry.path().join("exe")).unwrap_or_default();
            let arguments = fs::read(entry.path().join("cmdline")).unwrap_or_default();
            let mut arguments = arguments.split(|byte| *byte == 0);
            // The shell that holds its leash has the same arguments.
            if program.ends_with("tower-server") && arguments.any(|argument| argument == flag.as_bytes()) {
                return Ok(Self(id));
            }
        }
        anyhow::bail!("there is no process tower-server with {flag}")
    }

    /// CPU time of all its threads that live.
    pub fn cpu(self) -> Duration {
        self.cpu_of(|_| true)
    }

    /// CPU time of its threads of this name.
    pub fn cpu_of_thread(self, name: &str) -> Duration {
        self.cpu_of(|task| fs::read_to_string(task.join("comm")).is_ok_and(|comm| comm.trim() == name))
    }

    fn cpu_of(self, wanted: impl Fn(&Path) -> bool) -> Duration {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.0));
        let tasks = tasks.into_iter().flatten().flatten().map(|task| task.path());
        let nanos = tasks.filter(|task| wanted(task)).filter_map(|task| {
            let text = fs::read_to_string(task.join("schedstat")).ok()?;
            text.split_ascii_whitespace().next()?.parse::<u64>().ok()
        });
        Duration::from_nanos(nanos.sum())
    }

    /// Bytes of memory that are resident.
    pub fn resident(self) -> f64 {
        let text = fs::read_to_string(format!("/proc/{}/statm", self.0)).unwrap_or_default();
        let pages = text.split_ascii_whitespace().nth(1).and_then(|pages| pages.parse::<f64>().ok());
        pages.unwrap_or_default() * PAGE_BYTES
    }
}

/// As the kernel counts `statm` and the memory of sockets, on all machines that this runs on.
const PAGE_BYTES: f64 = 4096.0;

/// Bytes of memory in all TCP sockets of the machine.
pub fn socket_memory() -> f64 {
    let text = fs::read_to_string("/proc/net/sockstat").unwrap_or_default();
    let tcp = text.lines().find_map(|line| line.strip_prefix("TCP:")).unwrap_or_default();
    let pages = tcp.split_ascii_whitespace().skip_while(|word| *word != "mem").nth(1);
    pages.and_then(|pages| pages.parse::<f64>().ok()).unwrap_or_default() * PAGE_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_seen() {
        let own = Process::own();
        assert!(own.cpu() > Duration::ZERO && own.resident() > 1e6);
        assert_eq!(own.cpu_of_thread("nobody's name"), Duration::ZERO);
    }

    #[test]
    fn what_does_not_fit_is_said() {
        let error = allow_files(usize::MAX >> 1).unwrap_err().to_string();
        assert!(error.contains("ulimit -Hn"), "{error}");
    }
}
