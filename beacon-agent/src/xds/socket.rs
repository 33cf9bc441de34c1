//! The Unix socket on which xDS is served: made, guarded, and removed again.

use std::{
    ffi::OsString,
    fs, io,
    os::unix::{
        fs::{FileTypeExt, MetadataExt, PermissionsExt, symlink},
        net::{UnixListener, UnixStream},
    },
    path::{Path, PathBuf},
};

use tokio_stream::wrappers::UnixListenerStream;

/// Who may connect: the owner, and the group. An Envoy that runs as another user shares the group.
const MODE: u32 = 0o660;

/// Removes the socket's file when it is dropped, unless it is another's by then.
#[derive(Debug)]
pub struct SocketFile {
    path: PathBuf,
    inode: u64,
}

/// Why there is no socket.
#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    /// Somebody serves there.
    #[error("{0}: another process listens on this socket")]
    InUse(PathBuf),
    /// A file that is not ours to remove.
    #[error("{0} exists, and is not a socket")]
    NotASocket(PathBuf),
    /// The same, where gRPC looks for the socket.
    #[error("{0} exists, and is not a link to a socket")]
    NotALink(PathBuf),
    /// The system says no.
    #[error("{path}: the socket cannot be {step}: {error}")]
    Io {
        /// The socket's path.
        path: PathBuf,
        /// What was tried.
        step: &'static str,
        /// Why not.
        error: io::Error,
    },
}

/// The path by which gRPC is to connect: a link beside the socket, whose name begins with `@`.
///
/// gRPC's C core (Python, C++, …) tells a server the path of its socket as `:authority`, with `%2F` for each
/// slash, and the HTTP/2 of this server refuses a percent sign in a host name. What is before an `@` is no host
/// name but a user's, and may have one.
pub fn grpc_path(path: &Path) -> PathBuf {
    let mut name = OsString::from("@");
    name.push(path.file_name().unwrap_or_default());
    path.with_file_name(name)
}

/// Listens at a path. A file that an earlier process has left there is replaced, but only if nobody
/// listens on it.
///
/// # Errors
/// If somebody listens there, there is something else, or the system refuses.
pub fn bind(path: &Path) -> Result<(UnixListenerStream, SocketFile), SocketError> {
    let failed = |step| move |error| SocketError::Io { path: path.to_owned(), step, error };
    match fs::symlink_metadata(path) {
        Ok(metadata) if !metadata.file_type().is_socket() => {
            return Err(SocketError::NotASocket(path.to_owned()));
        }
        Ok(_) if UnixStream::connect(path).is_ok() => return Err(SocketError::InUse(path.to_owned())),
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(failed("looked at")(error)),
    }
    // Made beside its place and moved there, so that it is never there with another mode, and a stale
    // one is replaced in one step.
    let mut beside = path.as_os_str().to_owned();
    beside.push(format!(".{}", std::process::id()));
    let beside = PathBuf::from(beside);
    let listener = UnixListener::bind(&beside).map_err(failed("made"))?;
    let moved = fs::set_permissions(&beside, fs::Permissions::from_mode(MODE))
        .and_then(|()| fs::symlink_metadata(&beside))
        .and_then(|metadata| fs::rename(&beside, path).map(|()| metadata.ino()));
    let inode = moved.map_err(|error| {
        // It may have been moved already; either way the error to tell is the first.
        let _ = fs::remove_file(&beside);
        failed("put into its place")(error)
    })?;
    let file = SocketFile { path: path.to_owned(), inode };
    link(path)?;
    listener.set_nonblocking(true).map_err(failed("used"))?;
    let listener = tokio::net::UnixListener::from_std(listener).map_err(failed("used"))?;
    Ok((UnixListenerStream::new(listener), file))
}

/// Makes the link for gRPC, if it is not there yet.
fn link(path: &Path) -> Result<(), SocketError> {
    let link = grpc_path(path);
    let Some(name) = path.file_name() else { return Ok(()) };
    match symlink(name, &link) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let ours = fs::read_link(&link).is_ok_and(|target| target == name);
            if ours { Ok(()) } else { Err(SocketError::NotALink(link)) }
        }
        Err(error) => Err(SocketError::Io { path: link, step: "linked", error }),
        Ok(()) => Ok(()),
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        // Another process may have taken the place over, if it found nobody listening.
        if !fs::symlink_metadata(&self.path).is_ok_and(|metadata| metadata.ino() == self.inode) {
            return;
        }
        let link = grpc_path(&self.path);
        if fs::symlink_metadata(&link).is_ok_and(|metadata| metadata.is_symlink()) {
            // A link to nothing does no harm, if it cannot be removed.
            let _ = fs::remove_file(&link);
        }
        if let Err(error) = fs::remove_file(&self.path) {
            tracing::warn!(path = %self.path.display(), %error, "the xDS socket cannot be removed");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn it_has_its_mode_and_goes_with_its_owner() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("xds.sock");
        let (_listener, file) = bind(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, MODE);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
        UnixStream::connect(&path).unwrap();
        UnixStream::connect(folder.path().join("@xds.sock")).unwrap();
        drop(file);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[tokio::test]
    async fn grpcs_link_is_made_once_and_another_file_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("xds.sock");
        symlink("xds.sock", folder.path().join("@xds.sock")).unwrap();
        drop(bind(&path).unwrap());
        let precious = folder.path().join("@xds.sock");
        fs::write(&precious, "precious").unwrap();
        let error = bind(&path).unwrap_err().to_string();
        assert!(error.ends_with("@xds.sock exists, and is not a link to a socket"), "{error}");
        assert_eq!(fs::read_to_string(&precious).unwrap(), "precious");
        assert!(!path.exists());
    }

    #[tokio::test]
    async fn a_stale_one_is_replaced_and_a_living_one_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("xds.sock");
        drop(UnixListener::bind(&path).unwrap());
        let (_listener, file) = bind(&path).unwrap();
        let error = bind(&path).unwrap_err();
        assert!(error.to_string().ends_with("another process listens on this socket"), "{error}");
        drop(file);
    }

    #[tokio::test]
    async fn anothers_file_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("xds.sock");
        fs::write(&path, "precious").unwrap();
        assert!(matches!(bind(&path), Err(SocketError::NotASocket(_))));
        assert_eq!(fs::read_to_string(&path).unwrap(), "precious");

        let path = folder.path().join("other.sock");
        let (_listener, file) = bind(&path).unwrap();
        fs::remove_file(&path).unwrap();
        fs::write(&path, "precious").unwrap();
        drop(file);
        assert_eq!(fs::read_to_string(&path).unwrap(), "precious");
        assert!(bind(&folder.path().join("no/such.sock")).is_err());
    }
}
