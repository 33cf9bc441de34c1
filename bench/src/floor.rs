//! The floor: what must be paid for a delivery, or a handshake, by whoever makes it. A process of its own, so
//! that its CPU time is told apart; it writes frames that were made before straight to the sockets, or makes
//! handshakes with a TLS configuration like Tower's and nothing after them.

use std::{
    io::{BufRead, BufReader, Write},
    net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream},
    path::PathBuf,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

use anyhow::{Context, Result, ensure};
use clap::Args;
use tokio::{io::AsyncWriteExt, net::TcpSocket};
use tokio_rustls::TlsAcceptor;
use tower_common::tls::{Reloading, ServerFiles, TlsFile};

use crate::{machine::Process, swarm::http2};

/// As Tower's.
const BACKLOG: u32 = 4096;

/// How the process is started.
#[derive(Debug, Clone, Args)]
pub struct Options {
    /// Accept so many connections before anything is written; without TLS
    #[arg(long, default_value_t = 0)]
    connections: usize,
    /// Make handshakes with the files of this folder: `cert.pem`, `key.pem`, `ca.pem`
    #[arg(long)]
    handshakes: Option<PathBuf>,
}

/// The process, as who started it sees it. It ends when this is dropped.
#[derive(Debug)]
pub struct Floor {
    child: Child,
    orders: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
    /// Where it listens.
    pub address: SocketAddr,
}

impl Floor {
    /// One that writes to so many connections.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn frames(connections: usize) -> Result<Self> {
        Self::start(&["--connections".to_owned(), connections.to_string()])
    }

    /// One that makes handshakes with these files.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn handshakes(files: &std::path::Path) -> Result<Self> {
        Self::start(&["--handshakes".to_owned(), files.display().to_string()])
    }

    fn start(arguments: &[String]) -> Result<Self> {
        let mut child = Command::new(std::env::current_exe()?)
            .arg("floor")
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("the floor cannot be started")?;
        let orders = child.stdin.take();
        let stdout = child.stdout.take().context("the floor has no output")?;
        let mut floor = Self {
            child,
            orders,
            answers: BufReader::new(stdout),
            address: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
        };
        floor.address = floor.answer()?.parse().context("the floor does not listen")?;
        Ok(floor)
    }

    /// The process, to be measured.
    pub fn process(&self) -> Process {
        Process::of(self.child.id())
    }

    /// Waits until all connections have been accepted.
    ///
    /// # Errors
    /// If it has ended.
    pub fn accepted(&mut self) -> Result<()> {
        ensure!(self.answer()? == "accepted", "the floor does not accept all");
        Ok(())
    }

    /// Writes a message, framed for gRPC, to all connections, and returns when it is written.
    ///
    /// # Errors
    /// If it has ended.
    pub fn write(&mut self, message: &[u8]) -> Result<()> {
        let digits: String = message.iter().map(|byte| format!("{byte:02x}")).collect();
        let orders = self.orders.as_mut().context("the floor has ended")?;
        writeln!(orders, "{digits}").context("the floor has ended")?;
        ensure!(self.answer()? == "written", "the floor cannot write");
        Ok(())
    }

    fn answer(&mut self) -> Result<String> {
        let mut line = String::new();
        self.answers.read_line(&mut line)?;
        Ok(line.trim().to_owned())
    }
}

impl Drop for Floor {
    fn drop(&mut self) {
        drop(self.orders.take());
        let _ = self.child.wait();
    }
}

/// What the process does, until its standard input ends.
///
/// # Errors
/// If a socket fails.
pub async fn run(options: &Options) -> Result<()> {
    match &options.handshakes {
        Some(folder) => {
            let serving = serve_handshakes(folder).await?;
            tokio::task::spawn_blocking(|| std::io::stdin().lines().for_each(drop)).await?;
            serving.abort();
            Ok(())
        }
        None => {
            let connections = options.connections;
            tokio::task::spawn_blocking(move || write_frames(connections)).await?
        }
    }
}

#[allow(clippy::print_stdout, reason = "it answers on its standard output")]
fn tell(what: impl std::fmt::Display) {
    println!("{what}");
}

fn listener() -> Result<tokio::net::TcpListener> {
    let socket = TcpSocket::new_v4()?;
    socket.bind((Ipv4Addr::LOCALHOST, 0).into())?;
    Ok(socket.listen(BACKLOG)?)
}

fn write_frames(connections: usize) -> Result<()> {
    let listener: TcpListener = listener()?.into_std()?;
    listener.set_nonblocking(false)?;
    tell(listener.local_addr()?);
    let mut sockets: Vec<TcpStream> = Vec::with_capacity(connections);
    while sockets.len() < connections {
        let (socket, _) = listener.accept()?;
        socket.set_nodelay(true)?;
        sockets.push(socket);
    }
    tell("accepted");
    for line in std::io::stdin().lines() {
        let line = line?;
        let (digits, _) = line.as_bytes().as_chunks::<2>();
        let mut message = Vec::with_capacity(digits.len());
        for pair in digits {
            message.push(u8::from_str_radix(std::str::from_utf8(pair)?, 16)?);
        }
        let mut frames = Vec::new();
        http2::data(&mut frames, &message);
        for socket in &mut sockets {
            socket.write_all(&frames)?;
        }
        tell("written");
    }
    Ok(())
}

async fn serve_handshakes(folder: &std::path::Path) -> Result<tokio::task::JoinHandle<()>> {
    let file = |flag: &'static str, name: &str| TlsFile::new(flag, folder.join(name));
    let files = ServerFiles {
        cert: file("cert", "cert.pem"),
        key: file("key", "key.pem"),
        client_ca: Some(file("ca", "ca.pem")),
    };
    let tls = Reloading::new(files).current().map_err(anyhow::Error::msg)?;
    let acceptor = TlsAcceptor::from(tls.grpc.clone());
    let listener = listener()?;
    tell(listener.local_addr()?);
    Ok(tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                let _ = socket.set_nodelay(true);
                let Ok(mut stream) = acceptor.accept(socket).await else { return };
                if stream.write_all(&[0]).await.is_ok() {
                    let _ = stream.flush().await;
                    // Until the other end has gone.
                    let _ = tokio::io::AsyncReadExt::read(&mut stream, &mut [0; 64]).await;
                }
            });
        }
    }))
}
