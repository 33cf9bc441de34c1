//! What is wrong with options, and with what they name, found without running. Each fault names the flag.

use std::{fs, net::SocketAddr, path::Path};

use crate::{clock, tls::TlsFiles};

/// Addresses that other hosts can reach.
pub fn beyond_loopback(listeners: &[(&str, SocketAddr)], instead: &str) -> Vec<String> {
    let open = listeners.iter().filter(|(_, address)| !address.ip().is_loopback());
    open.map(|(flag, address)| {
        format!("{flag} {address} can be reached by other hosts, and is without TLS; {instead}")
    })
    .collect()
}

/// Addresses that are given to more than one listener. Port 0 is a different one each time.
pub fn same_address(listeners: &[(&str, SocketAddr)]) -> Vec<String> {
    let mut faults = Vec::new();
    for (at, (flag, address)) in listeners.iter().enumerate() {
        if let Some((other, _)) = listeners[..at].iter().find(|(_, taken)| taken == address)
            && address.port() != 0
        {
            faults.push(format!("{flag} {address} is the address of {other} as well"));
        }
    }
    faults
}

/// A folder for data that can be neither written to nor made.
pub fn data_dir(flag: &str, dir: &Path) -> Option<String> {
    let absolute = std::path::absolute(dir).ok()?;
    let exists = |path: &&Path| path.exists();
    let nearest = absolute.ancestors().find(exists)?;
    // Permissions are not all there is: a file system may be full, or mounted read-only.
    let probe = nearest.join(format!(".check-config-{}", std::process::id()));
    match fs::create_dir(&probe).and_then(|()| fs::remove_dir(&probe)) {
        Ok(()) => None,
        Err(reason) if nearest == absolute => {
            Some(format!("{flag} {} cannot be written to: {reason}", dir.display()))
        }
        Err(reason) => {
            let (dir, parent) = (dir.display(), nearest.display());
            Some(format!("{flag} {dir} is not there and cannot be made in {parent}: {reason}"))
        }
    }
}

/// Files for TLS that cannot be used, or no longer.
///
/// # Errors
/// The fault.
pub fn tls<F: TlsFiles>(files: &F) -> Result<F::Made, String> {
    let made = files.load().map_err(|fault| fault.to_string())?;
    let now = i64::try_from(clock::unix_millis() / 1000).unwrap_or(i64::MAX);
    match F::not_after_unix(&made) {
        Some(end) if end < now => {
            Err(format!("--tls-cert has a certificate that ended {} days ago", (now - end) / 86_400))
        }
        _ => Ok(made),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listeners_need_addresses_of_their_own() {
        let address = |text: &str| text.parse::<SocketAddr>().unwrap();
        let listeners = [
            ("--a", address("127.0.0.1:1")),
            ("--b", address("127.0.0.1:1")),
            ("--c", address("127.0.0.1:0")),
            ("--d", address("127.0.0.1:0")),
        ];
        assert_eq!(same_address(&listeners), ["--b 127.0.0.1:1 is the address of --a as well"]);
        assert!(beyond_loopback(&listeners, "").is_empty());
        let open = [("--a", address("[::]:1"))];
        assert!(beyond_loopback(&open, "do that")[0].ends_with("; do that"));
    }

    #[test]
    fn a_folder_is_there_or_can_be_made() {
        let dir = tempfile::tempdir().unwrap();
        let check = |path: &Path| data_dir("--data-dir", path);
        assert_eq!(check(dir.path()), None);
        assert_eq!(check(&dir.path().join("not/yet")), None);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0, "nothing is left behind");
        let file = dir.path().join("file");
        fs::write(&file, "").unwrap();
        let fault = check(&file.join("below")).unwrap();
        assert!(fault.starts_with("--data-dir ") && fault.contains("cannot be made in"), "{fault}");
        assert!(check(&file).unwrap().contains("cannot be written to"));
    }
}
