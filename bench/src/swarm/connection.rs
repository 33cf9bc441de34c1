//! One connection: its socket, and the HTTP/2 of its one stream.

use std::{
    io::{self, ErrorKind, Read, Write},
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
};

use mio::net::TcpStream;
use rustls::{ClientConfig, ClientConnection, StreamOwned, pki_types::ServerName};
use socket2::{Domain, Protocol, Type};

use super::{
    http2::{self, FIRST_WINDOW, Frames, Heard},
    messages::Messages,
};

/// What Tower may send that has not been read, as the real Beacon has it.
const WINDOW: u32 = 1 << 20;

/// Linux has about 28,000 ports for connections from one address to one listener, and takes ever longer to find
/// a free one.
const PER_ADDRESS: usize = 10_000;

/// Where to connect, and what to say there.
#[derive(Debug, Clone)]
pub struct Target {
    /// The listener.
    pub address: SocketAddr,
    /// With it by TLS.
    pub tls: Option<Arc<ClientConfig>>,
    /// What there is.
    pub kind: Kind,
}

/// What there is at the other end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A Tower.
    Tower,
    /// A gRPC server of another kind, and the method that is called there.
    Other(&'static str),
    /// What writes frames that were made before, and listens to nothing.
    Floor,
    /// What only makes handshakes, and sends a byte after each.
    Handshake,
}

/// A connection that is up, or on its way to that.
#[derive(Debug)]
pub struct Connection {
    socket: Socket,
    frames: Frames,
    messages: Messages,
    /// To be written, and how much of it has been.
    out: Vec<u8>,
    written: usize,
    /// Nothing is to be said before something was heard: by TLS, the other end may yet refuse.
    mute: bool,
    /// Of the stream; to be sent when there is room.
    waiting: Vec<u8>,
    room: Room,
    /// Read since the other end was told.
    read: u32,
}

/// What may be sent.
#[derive(Debug)]
struct Room {
    connection: i64,
    stream: i64,
    /// What a new stream begins with.
    first: i64,
}

#[derive(Debug)]
enum Socket {
    Plain(TcpStream),
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
}

impl Connection {
    /// Begins to connect, as the so-and-so-many-th of all.
    ///
    /// # Errors
    /// If there is no socket to be had.
    pub fn open(target: &Target, number: usize) -> io::Result<Self> {
        let socket = socket2::Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP))?;
        socket.set_nonblocking(true)?;
        socket.set_tcp_nodelay(true)?;
        if let Ok(more) = u8::try_from(number / PER_ADDRESS)
            && more > 0
        {
            let from = Ipv4Addr::new(127, 0, 0, 1 + more);
            socket.bind(&SocketAddr::from((from, 0)).into())?;
        }
        match socket.connect(&target.address.into()) {
            Ok(()) => {}
            Err(error) if error.raw_os_error() == Some(IN_PROGRESS) => {}
            Err(error) => return Err(error),
        }
        let tcp = TcpStream::from_std(socket.into());
        let socket = match &target.tls {
            None => Socket::Plain(tcp),
            Some(config) => {
                let name = ServerName::from(target.address.ip());
                let tls = ClientConnection::new(config.clone(), name).map_err(io::Error::other)?;
                Socket::Tls(Box::new(StreamOwned::new(tls, tcp)))
            }
        };
        let mut connection = Self {
            mute: matches!(socket, Socket::Tls(_)),
            socket,
            frames: Frames::default(),
            messages: Messages::default(),
            out: Vec::new(),
            written: 0,
            waiting: Vec::new(),
            room: Room { connection: FIRST_WINDOW, stream: FIRST_WINDOW, first: FIRST_WINDOW },
            read: 0,
        };
        let method = match target.kind {
            Kind::Tower => Some("/tower.v1.Sync/Watch"),
            Kind::Other(method) => Some(method),
            Kind::Floor | Kind::Handshake => None,
        };
        if let Some(method) = method {
            http2::open(&mut connection.out, WINDOW);
            http2::call(&mut connection.out, &target.address.to_string(), method);
        }
        Ok(connection)
    }

    /// The socket, to be watched.
    pub fn tcp(&mut self) -> &mut TcpStream {
        match &mut self.socket {
            Socket::Plain(tcp) => tcp,
            Socket::Tls(tls) => &mut tls.sock,
        }
    }

    /// Says something on the stream; [`Connection::flush`] sends it.
    pub fn say(&mut self, bytes: &[u8]) {
        self.waiting.extend_from_slice(bytes);
        self.fill();
    }

    /// Reads once. Nothing if there is nothing now; else how much, and whether there may be more.
    ///
    /// # Errors
    /// If the connection has ended.
    pub fn read(&mut self, buffer: &mut [u8]) -> io::Result<Option<(usize, bool)>> {
        let (read, more) = match &mut self.socket {
            Socket::Plain(tcp) => {
                let read = tcp.read(buffer);
                // A socket that gave less than there is room for is empty.
                let full = read.as_ref().is_ok_and(|read| *read == buffer.len());
                (read, full)
            }
            Socket::Tls(tls) => (tls.read(buffer), true),
        };
        match read {
            Ok(0) => Err(ErrorKind::UnexpectedEof.into()),
            Ok(read) => {
                self.mute = false;
                Ok(Some((read, more)))
            }
            Err(error) if is_not_yet(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Takes what was read, and passes on each message of the stream. What is said in return is sent then.
    ///
    /// # Errors
    /// If it is not what is expected, or the stream has ended; or the error of who hears it.
    pub fn take(
        &mut self,
        input: &[u8],
        mut hear: impl FnMut(&[u8], &mut Vec<u8>) -> Result<(), String>,
    ) -> Result<(), String> {
        let Self { frames, messages, out, room, waiting, read, .. } = self;
        frames.take(input, |heard| {
            match heard {
                Heard::Data(part) => {
                    *read += u32::try_from(part.len()).unwrap_or(u32::MAX);
                    messages.take(part, |message| hear(message, waiting))?;
                }
                Heard::Settings(first) => {
                    if let Some(first) = first {
                        room.stream += i64::from(first) - room.first;
                        room.first = first.into();
                    }
                    http2::settings_ack(out);
                }
                Heard::Ping(payload) => http2::pong(out, payload),
                Heard::Window { stream: 0, more } => room.connection += i64::from(more),
                Heard::Window { more, .. } => room.stream += i64::from(more),
                Heard::Headers { end: false } => {}
                Heard::Headers { end: true } | Heard::End => return Err("the stream has ended".to_owned()),
                Heard::Reset(code) => return Err(format!("the stream was reset, error {code}")),
                Heard::GoAway(code) => return Err(format!("the connection is to end, error {code}")),
            }
            Ok(())
        })?;
        if self.read >= WINDOW / 2 {
            http2::window_update(&mut self.out, 0, self.read);
            http2::window_update(&mut self.out, http2::STREAM, self.read);
            self.read = 0;
        }
        self.fill();
        Ok(())
    }

    /// Writes what there is to be written, as far as the socket takes it.
    ///
    /// # Errors
    /// If the connection has ended.
    pub fn flush(&mut self) -> io::Result<()> {
        if self.mute {
            return Ok(());
        }
        while self.written < self.out.len() {
            let rest = &self.out[self.written..];
            let written = match &mut self.socket {
                Socket::Plain(tcp) => tcp.write(rest),
                Socket::Tls(tls) => tls.write(rest),
            };
            match written {
                Ok(written) => self.written += written,
                Err(error) if is_not_yet(&error) => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        if self.written > 0 {
            self.out = Vec::new();
            self.written = 0;
        }
        if let Socket::Tls(tls) = &mut self.socket {
            match tls.flush() {
                Err(error) if !is_not_yet(&error) => return Err(error),
                Ok(()) | Err(_) => {}
            }
        }
        Ok(())
    }

    /// Puts into frames what the other end has room for.
    fn fill(&mut self) {
        let room = usize::try_from(self.room.connection.min(self.room.stream)).unwrap_or(0);
        let length = room.min(self.waiting.len());
        if length == 0 {
            return;
        }
        http2::data(&mut self.out, &self.waiting[..length]);
        self.waiting.drain(..length);
        self.room.connection -= length as i64;
        self.room.stream -= length as i64;
    }
}

/// `EINPROGRESS` of Linux.
const IN_PROGRESS: i32 = 115;

fn is_not_yet(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::NotConnected | ErrorKind::Interrupted)
}
