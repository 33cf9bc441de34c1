//! As much of NATS' protocol as a subscriber and a publisher need.

use std::{
    io::{self, ErrorKind, Read, Write},
    net::SocketAddr,
};

use anyhow::{Context, Result, ensure};
use mio::net::TcpStream;

/// What is published where.
const SUBJECT: &str = "changes";

/// What every client says first.
const CONNECT: &str =
    "CONNECT {\"verbose\":false,\"pedantic\":false,\"lang\":\"bench\",\"version\":\"1\"}\r\n";

const PING: &[u8] = b"PING\r\n";
const PONG: &[u8] = b"PONG\r\n";

/// What a server says.
#[derive(Debug, PartialEq, Eq)]
pub enum Said<'a> {
    /// It answers a ping: what was said before has been heard.
    Pong,
    /// It wants an answer.
    Ping,
    /// Something was published.
    Message(&'a [u8]),
    /// It introduces itself, or agrees.
    Other,
}

/// Cuts the first thing off that is said, if all of it is there.
///
/// # Errors
/// If the server complains, or does not speak NATS.
pub fn cut(input: &[u8]) -> Result<Option<(Said<'_>, usize)>, String> {
    let Some(end) = input.windows(2).position(|pair| pair == b"\r\n") else { return Ok(None) };
    let (line, mut used) = (&input[..end], end + 2);
    let said = match line.split(|byte| *byte == b' ').next().unwrap_or_default() {
        b"MSG" => {
            let length = line.rsplit(|byte| *byte == b' ').next().unwrap_or_default();
            let length = std::str::from_utf8(length).ok().and_then(|digits| digits.parse::<usize>().ok());
            let length = length.ok_or("a message without a length")?;
            let Some(payload) = input.get(used..used + length) else { return Ok(None) };
            used += length + 2;
            if input.len() < used {
                return Ok(None);
            }
            Said::Message(payload)
        }
        b"PING" => Said::Ping,
        b"PONG" => Said::Pong,
        b"-ERR" => return Err(String::from_utf8_lossy(line).into_owned()),
        _ => Said::Other,
    };
    Ok(Some((said, used)))
}

/// A subscriber.
#[derive(Debug)]
pub struct Subscriber {
    /// The socket, to be watched.
    pub tcp: TcpStream,
    out: Vec<u8>,
    written: usize,
    /// What was read, as long as it is not complete.
    partial: Vec<u8>,
}

impl Subscriber {
    /// Begins to connect.
    ///
    /// # Errors
    /// If there is no socket to be had.
    pub fn open(address: SocketAddr) -> io::Result<Self> {
        let tcp = TcpStream::connect(address)?;
        let out = [CONNECT.as_bytes(), format!("SUB {SUBJECT} 1\r\n").as_bytes(), PING].concat();
        Ok(Self { tcp, out, written: 0, partial: Vec::new() })
    }

    /// Takes what was read, and passes on what is said.
    ///
    /// # Errors
    /// If the server complains, or does not speak NATS.
    pub fn take(&mut self, input: &[u8], mut hear: impl FnMut(Said<'_>)) -> Result<(), String> {
        let kept = (!self.partial.is_empty()).then(|| {
            self.partial.extend_from_slice(input);
            std::mem::take(&mut self.partial)
        });
        let mut rest = kept.as_deref().unwrap_or(input);
        while let Some((said, used)) = cut(rest)? {
            if said == Said::Ping {
                self.out.extend_from_slice(PONG);
            }
            hear(said);
            rest = &rest[used..];
        }
        self.partial = rest.to_vec();
        Ok(())
    }

    /// Reads once; nothing if there is nothing now.
    ///
    /// # Errors
    /// If the connection has ended.
    pub fn read(&mut self, buffer: &mut [u8]) -> io::Result<Option<(usize, bool)>> {
        match self.tcp.read(buffer) {
            Ok(0) => Err(ErrorKind::UnexpectedEof.into()),
            Ok(read) => Ok(Some((read, read == buffer.len()))),
            Err(error) if is_not_yet(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Writes what there is to be written, as far as the socket takes it.
    ///
    /// # Errors
    /// If the connection has ended.
    pub fn flush(&mut self) -> io::Result<()> {
        while self.written < self.out.len() {
            match self.tcp.write(&self.out[self.written..]) {
                Ok(written) => self.written += written,
                Err(error) if is_not_yet(&error) => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        self.out.clear();
        self.written = 0;
        Ok(())
    }
}

fn is_not_yet(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::NotConnected | ErrorKind::Interrupted)
}

/// Who publishes.
#[derive(Debug)]
pub struct Publisher {
    tcp: std::net::TcpStream,
    heard: Vec<u8>,
}

impl Publisher {
    /// Connects.
    ///
    /// # Errors
    /// If that fails.
    pub fn connect(address: SocketAddr) -> Result<Self> {
        let mut tcp = std::net::TcpStream::connect(address).context("the publisher is not connected")?;
        tcp.set_nodelay(true)?;
        tcp.write_all(CONNECT.as_bytes())?;
        Ok(Self { tcp, heard: Vec::new() })
    }

    /// Publishes, and returns when the server has it.
    ///
    /// # Errors
    /// If the server does not take it.
    pub fn publish(&mut self, payload: &[u8]) -> Result<()> {
        let head = format!("PUB {SUBJECT} {}\r\n", payload.len());
        self.tcp.write_all(&[head.as_bytes(), payload, b"\r\n", PING].concat())?;
        let mut buffer = [0; 4096];
        loop {
            while let Some((said, used)) = cut(&self.heard).map_err(anyhow::Error::msg)? {
                let (pong, ping) = (said == Said::Pong, said == Said::Ping);
                self.heard.drain(..used);
                if ping {
                    self.tcp.write_all(PONG)?;
                }
                if pong {
                    return Ok(());
                }
            }
            let read = self.tcp.read(&mut buffer)?;
            ensure!(read > 0, "the server has left the publisher");
            self.heard.extend_from_slice(&buffer[..read]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_is_cut_when_it_is_there() {
        let sent = b"INFO {}\r\nMSG changes 1 4\r\na\r\nb\r\nPING\r\n";
        let (mut rest, mut heard) = (&sent[..], Vec::new());
        while let Some((said, used)) = cut(rest).unwrap() {
            heard.push(format!("{said:?}"));
            rest = &rest[used..];
        }
        assert_eq!(heard, ["Other", "Message([97, 13, 10, 98])", "Ping"]);
        for missing in 1..6 {
            assert_eq!(cut(&b"MSG changes 1 4\r\nabcd\r\n"[..23 - missing]).unwrap(), None);
        }
        assert!(cut(b"-ERR 'no'\r\n").is_err());
    }
}
