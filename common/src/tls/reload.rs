//! Keeps what was made of files in step with them.

use std::{
    fmt,
    sync::{Arc, Weak},
    thread,
    time::Duration,
};

use parking_lot::RwLock;
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric},
    metrics::{counter::ConstCounter, gauge::ConstGauge},
    registry::Unit,
};
use serde::Serialize;
use tracing::{error, info};

use super::files::{TlsError, TlsFile};
use crate::clock;

/// How often the files are looked at. Reading a few kilobytes is cheaper than being wrong about how
/// they are replaced: by a rename, in place, or by a link that moves, as Kubernetes does.
const INTERVAL: Duration = Duration::from_secs(2);

/// Files, and what is made of them.
pub trait TlsFiles: fmt::Debug + Send + Sync + 'static {
    /// What is made of them.
    type Made: Send + Sync + 'static;

    /// The files.
    fn files(&self) -> Vec<&TlsFile>;

    /// Reads them.
    ///
    /// # Errors
    /// What is wrong with which.
    fn load(&self) -> Result<Self::Made, TlsError>;

    /// When the first certificate of the chain ends, in seconds since the Unix epoch.
    fn not_after_unix(made: &Self::Made) -> Option<i64>;
}

/// What was last made of files that could be used. Cheap to clone.
pub struct Reloading<F: TlsFiles> {
    shared: Arc<Shared<F>>,
}

/// How it stands, for people.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct TlsStatus {
    /// When the certificate in use ends, in seconds since the Unix epoch.
    pub not_after_unix: Option<i64>,
    /// What is wrong with the files as they are now; what was made before stays in use.
    pub fault: Option<String>,
    /// How often files that had changed were taken.
    pub reloads: u64,
    /// How often files that had changed could not be used.
    pub reload_errors: u64,
}

impl fmt::Display for TlsStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.not_after_unix {
            Some(end) => {
                let days = (end - i64::try_from(clock::unix_millis() / 1000).unwrap_or(i64::MAX)) / 86_400;
                write!(f, "the certificate ends in {days} days")?;
            }
            None => f.write_str("no certificate in use")?,
        }
        self.fault.iter().try_for_each(|fault| write!(f, "; the files CANNOT BE USED: {fault}"))
    }
}

struct Shared<F: TlsFiles> {
    files: F,
    state: RwLock<State<F::Made>>,
}

struct State<M> {
    current: Option<Arc<M>>,
    seen: blake3::Hash,
    status: TlsStatus,
}

impl<F: TlsFiles> Reloading<F> {
    /// Reads the files. Whether they could be used is what [`Reloading::current`] says.
    pub fn new(files: F) -> Self {
        let seen = content_hash(&files);
        let state = State { current: None, seen, status: TlsStatus::default() };
        let shared = Shared { files, state: RwLock::new(state) };
        shared.take(seen);
        Self { shared: Arc::new(shared) }
    }

    /// Looks at the files from now on, as long as somebody holds this, on a thread of its own: reading
    /// files blocks.
    ///
    /// # Errors
    /// If there can be no more threads.
    pub fn watch(&self) -> std::io::Result<()> {
        let weak: Weak<Shared<F>> = Arc::downgrade(&self.shared);
        let look = move || {
            loop {
                thread::sleep(INTERVAL);
                let Some(shared) = weak.upgrade() else { return };
                shared.look();
            }
        };
        thread::Builder::new().name("tls-files".to_owned()).spawn(look).map(drop)
    }

    /// What was last made of files that could be used.
    ///
    /// # Errors
    /// What is wrong with them, if they never could be used.
    pub fn current(&self) -> Result<Arc<F::Made>, String> {
        let state = self.shared.state.read();
        state.current.clone().ok_or_else(|| state.status.fault.clone().unwrap_or_default())
    }

    /// How it stands.
    pub fn status(&self) -> TlsStatus {
        self.shared.state.read().status.clone()
    }

    /// Its metrics, with names that begin with this.
    pub fn collector(&self, prefix: &'static str) -> Box<dyn Collector> {
        Box::new(TlsCollector { prefix, tls: self.clone() })
    }
}

impl<F: TlsFiles> Shared<F> {
    fn look(&self) {
        let seen = content_hash(&self.files);
        if seen != self.state.read().seen {
            self.take(seen);
        }
    }

    /// Loads the files, whose content had this hash. Content that changes between the two is met again
    /// at the next look.
    fn take(&self, seen: blake3::Hash) {
        let loaded = self.files.load();
        let mut state = self.state.write();
        let first = state.current.is_none();
        state.seen = seen;
        match loaded {
            Ok(made) => {
                let not_after_unix = F::not_after_unix(&made);
                state.current = Some(Arc::new(made));
                state.status.fault = None;
                state.status.not_after_unix = not_after_unix;
                state.status.reloads += u64::from(!first);
                info!(not_after_unix, first, "TLS files are in use");
            }
            Err(fault) => {
                error!(%fault, first, "TLS files cannot be used; what was read before stays");
                state.status.fault = Some(fault.to_string());
                state.status.reload_errors += u64::from(!first);
            }
        }
    }
}

fn content_hash(files: &impl TlsFiles) -> blake3::Hash {
    let mut hasher = blake3::Hasher::new();
    for file in files.files() {
        // A file that cannot be read is a content like another: it is said once.
        match file.read() {
            Ok(content) => hasher.update(blake3::hash(&content).as_bytes()),
            Err(error) => hasher.update(error.to_string().as_bytes()),
        };
    }
    hasher.finalize()
}

impl<F: TlsFiles> Clone for Reloading<F> {
    fn clone(&self) -> Self {
        Self { shared: self.shared.clone() }
    }
}

impl<F: TlsFiles> fmt::Debug for Reloading<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reloading").field("status", &self.status()).finish()
    }
}

#[derive(Debug)]
struct TlsCollector<F: TlsFiles> {
    prefix: &'static str,
    tls: Reloading<F>,
}

impl<F: TlsFiles> Collector for TlsCollector<F> {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let status = self.tls.status();
        let name = |rest: &str| format!("{}_tls_{rest}", self.prefix);
        if let Some(end) = status.not_after_unix {
            let gauge = ConstGauge::new(end);
            gauge.encode(encoder.encode_descriptor(
                &name("certificate_expiry_timestamp"),
                "When the certificate in use, or one of its chain, ends",
                Some(&Unit::Seconds),
                gauge.metric_type(),
            )?)?;
        }
        let faulty = ConstGauge::new(i64::from(status.fault.is_some()));
        faulty.encode(encoder.encode_descriptor(
            &name("files_faulty"),
            "1 if the files cannot be used as they are now",
            None,
            faulty.metric_type(),
        )?)?;
        let mut counter = |rest: &str, help: &str, value: u64| {
            let counter = ConstCounter::new(value);
            counter.encode(encoder.encode_descriptor(&name(rest), help, None, counter.metric_type())?)
        };
        counter("reloads", "Times that changed files were taken", status.reloads)?;
        counter("reload_errors", "Times that changed files could not be used", status.reload_errors)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        telemetry,
        tls::testing::{Authority, Folder},
    };

    #[test]
    fn a_bad_new_file_keeps_the_old_one() {
        let folder = Folder::new();
        let authority = Authority::new("ca");
        let (first, second) = (authority.issue(&["a"]), authority.issue(&["b"]));
        folder.write("ca", &authority.cert);
        folder.write("cert", &first.cert);
        folder.write("key", &first.key);
        let tls = Reloading::new(folder.server());
        let in_use = tls.current().unwrap();
        tls.shared.look();
        assert!(Arc::ptr_eq(&in_use, &tls.current().unwrap()), "nothing changed");

        folder.write("cert", &second.cert);
        tls.shared.look();
        tls.shared.look();
        assert!(Arc::ptr_eq(&in_use, &tls.current().unwrap()), "certificate and key do not match");
        let status = tls.status();
        assert!(status.fault.unwrap().contains("--tls-key"));
        assert_eq!((status.reloads, status.reload_errors), (0, 1), "counted once");

        folder.write("key", &second.key);
        tls.shared.look();
        assert!(!Arc::ptr_eq(&in_use, &tls.current().unwrap()));
        assert_eq!((tls.status().reloads, tls.status().fault), (1, None));
    }

    #[test]
    fn files_may_come_later() {
        let folder = Folder::new();
        let tls = Reloading::new(folder.client(false));
        assert!(tls.current().unwrap_err().contains("cannot be read"));
        folder.write("ca", &Authority::new("ca").cert);
        tls.shared.look();
        assert!(tls.current().is_ok());
    }

    #[test]
    fn metrics_have_these_names() {
        let folder = Folder::new();
        let authority = Authority::new("ca");
        let pair = authority.issue(&["a"]);
        for (name, content) in [("ca", &authority.cert), ("cert", &pair.cert), ("key", &pair.key)] {
            folder.write(name, content);
        }
        let mut registry = telemetry::registry("1");
        registry.register_collector(Reloading::new(folder.server()).collector("tower"));
        let text = telemetry::encode(&registry);
        for name in [
            "\ntower_tls_certificate_expiry_timestamp_seconds ",
            "\ntower_tls_files_faulty 0",
            "\ntower_tls_reloads_total 0",
            "\ntower_tls_reload_errors_total 0",
        ] {
            assert!(text.contains(name), "{name:?} is not in {text}");
        }
    }
}
