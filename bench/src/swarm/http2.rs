//! As much of HTTP/2 (RFC 9113) and of HPACK (RFC 7541) as a client needs that has one stream on each
//! connection. Written by hand, because what the receiving end costs is taken from the sender's two cores.

/// What a client says first (RFC 9113, 3.4).
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// The stream that a client opens first.
pub const STREAM: u32 = 1;

/// The largest frame that every receiver takes (RFC 9113, 4.2).
const MAX_FRAME: usize = 16 << 10;

/// What may be sent on a stream, and on a connection, before the other end has said more (RFC 9113, 6.9.2).
pub const FIRST_WINDOW: i64 = 65_535;

const HEADER: usize = 9;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;

const END_STREAM: u8 = 1;
const ACK: u8 = 1;
const END_HEADERS: u8 = 4;
const PADDED: u8 = 8;

const INITIAL_WINDOW_SIZE: u16 = 4;

/// What the other end says.
#[derive(Debug, PartialEq, Eq)]
pub enum Heard<'a> {
    /// A part of the stream.
    Data(&'a [u8]),
    /// Headers, or trailers if the stream has ended.
    Headers {
        /// Nothing follows.
        end: bool,
    },
    /// The stream has ended, with data.
    End,
    /// To be acknowledged; what may be sent on a new stream, if it says so.
    Settings(Option<u32>),
    /// To be answered.
    Ping([u8; 8]),
    /// More may be sent: on the connection, or on the stream.
    Window {
        /// Zero is the connection.
        stream: u32,
        /// Bytes.
        more: u32,
    },
    /// The stream was reset, with this error code.
    Reset(u32),
    /// The connection is about to end, with this error code.
    GoAway(u32),
}

/// Cuts what is received into frames. What is in a DATA frame is passed on as it comes.
#[derive(Debug, Default)]
pub struct Frames {
    header: [u8; HEADER],
    have: usize,
    /// Of the payload of this frame.
    left: usize,
    /// The payload of a frame that is not DATA.
    control: Vec<u8>,
}

impl Frames {
    /// Takes what was received, and passes on what it amounts to.
    ///
    /// # Errors
    /// If it is not HTTP/2, or more of it than this client knows.
    pub fn take(
        &mut self,
        mut input: &[u8],
        mut hear: impl FnMut(Heard<'_>) -> Result<(), String>,
    ) -> Result<(), String> {
        loop {
            if self.have < HEADER {
                let taken = input.len().min(HEADER - self.have);
                self.header[self.have..self.have + taken].copy_from_slice(&input[..taken]);
                self.have += taken;
                input = &input[taken..];
                if self.have < HEADER {
                    return Ok(());
                }
                let [a, b, c, ..] = self.header;
                self.left = u32::from_be_bytes([0, a, b, c]) as usize;
                if self.left > MAX_FRAME {
                    return Err(format!("a frame of {} bytes, which was not asked for", self.left));
                }
                self.control.clear();
            }
            let (payload, rest) = input.split_at(input.len().min(self.left));
            input = rest;
            self.left -= payload.len();
            let [_, _, _, kind, flags, stream @ ..] = self.header;
            let ends = self.left == 0;
            match kind {
                DATA => {
                    if flags & PADDED != 0 {
                        return Err("a padded frame".to_owned());
                    }
                    if !payload.is_empty() {
                        hear(Heard::Data(payload))?;
                    }
                    if ends && flags & END_STREAM != 0 {
                        hear(Heard::End)?;
                    }
                }
                _ if ends && self.control.is_empty() => {
                    control(kind, flags, u32::from_be_bytes(stream), payload, &mut hear)?;
                }
                _ => {
                    self.control.extend_from_slice(payload);
                    if ends {
                        control(kind, flags, u32::from_be_bytes(stream), &self.control, &mut hear)?;
                    }
                }
            }
            if !ends {
                return Ok(());
            }
            self.have = 0;
        }
    }
}

fn control(
    kind: u8,
    flags: u8,
    stream: u32,
    payload: &[u8],
    hear: &mut impl FnMut(Heard<'_>) -> Result<(), String>,
) -> Result<(), String> {
    let word = |at: usize| {
        let bytes = payload.get(at..at + 4).and_then(|bytes| bytes.first_chunk::<4>());
        bytes.map(|bytes| u32::from_be_bytes(*bytes)).ok_or_else(|| format!("a short frame of type {kind}"))
    };
    match kind {
        HEADERS => hear(Heard::Headers { end: flags & END_STREAM != 0 }),
        RST_STREAM => hear(Heard::Reset(word(0)?)),
        SETTINGS if flags & ACK == 0 => {
            let (settings, _) = payload.as_chunks::<6>();
            let window =
                settings.iter().rev().find(|setting| setting[..2] == INITIAL_WINDOW_SIZE.to_be_bytes());
            let value = window.map(|&[_, _, a, b, c, d]| u32::from_be_bytes([a, b, c, d]));
            hear(Heard::Settings(value))
        }
        PING if flags & ACK == 0 => {
            let payload = payload.first_chunk::<8>().ok_or("a short ping")?;
            hear(Heard::Ping(*payload))
        }
        GOAWAY => hear(Heard::GoAway(word(4)?)),
        WINDOW_UPDATE => hear(Heard::Window { stream, more: word(0)? & !(1 << 31) }),
        // Acknowledgements, priorities, continued headers, and what is unknown, which is to be ignored.
        _ => Ok(()),
    }
}

/// The start of a connection: up to `window` bytes may be sent to us, on the connection and its stream.
pub fn open(out: &mut Vec<u8>, window: u32) {
    out.extend_from_slice(PREFACE);
    header(out, 6, SETTINGS, 0, 0);
    out.extend_from_slice(&INITIAL_WINDOW_SIZE.to_be_bytes());
    out.extend_from_slice(&window.to_be_bytes());
    let more = i64::from(window) - FIRST_WINDOW;
    window_update(out, 0, u32::try_from(more).unwrap_or(0));
}

/// The headers of a call of this method of gRPC (gRPC over HTTP/2, "Requests").
pub fn call(out: &mut Vec<u8>, authority: &str, path: &str) {
    // From HPACK's static table: `:method: POST`, `:scheme: http`.
    let mut block = vec![0x83, 0x86];
    // Literals that nobody is to remember; the names of the first two are in the static table.
    let mut literal = |name: &str, index: u8, value: &str| {
        block.push(index);
        if index == 0 {
            string(&mut block, name);
        }
        string(&mut block, value);
    };
    literal(":path", 4, path);
    literal(":authority", 1, authority);
    literal("content-type", 0, "application/grpc");
    literal("te", 0, "trailers");
    literal("grpc-accept-encoding", 0, "zstd");
    header(out, block.len(), HEADERS, END_HEADERS, STREAM);
    out.extend_from_slice(&block);
}

/// A string of HPACK that is not compressed, of less than 127 bytes.
fn string(block: &mut Vec<u8>, text: &str) {
    block.push(u8::try_from(text.len()).map_or(0, |length| length & 0x7f));
    block.extend_from_slice(text.as_bytes());
}

/// A part of the stream, in as many frames as it takes.
pub fn data(out: &mut Vec<u8>, payload: &[u8]) {
    for part in payload.chunks(MAX_FRAME) {
        header(out, part.len(), DATA, 0, STREAM);
        out.extend_from_slice(part);
    }
}

/// Accepts settings.
pub fn settings_ack(out: &mut Vec<u8>) {
    header(out, 0, SETTINGS, ACK, 0);
}

/// Answers a ping.
pub fn pong(out: &mut Vec<u8>, payload: [u8; 8]) {
    header(out, payload.len(), PING, ACK, 0);
    out.extend_from_slice(&payload);
}

/// Lets the other end send more, on the connection (0) or the stream.
pub fn window_update(out: &mut Vec<u8>, stream: u32, more: u32) {
    if more > 0 {
        header(out, 4, WINDOW_UPDATE, 0, stream);
        out.extend_from_slice(&more.to_be_bytes());
    }
}

fn header(out: &mut Vec<u8>, length: usize, kind: u8, flags: u8, stream: u32) {
    let length = u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes();
    out.extend_from_slice(&length[1..]);
    out.extend_from_slice(&[kind, flags]);
    out.extend_from_slice(&stream.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_the_same_however_they_are_cut() {
        let mut sent = Vec::new();
        data(&mut sent, &[7; 20_000]);
        header(&mut sent, 6, SETTINGS, 0, 0);
        sent.extend_from_slice(&[0, 4, 0, 1, 0, 0]);
        pong(&mut sent, [1; 8]);
        window_update(&mut sent, STREAM, 5);
        header(&mut sent, 0, HEADERS, END_STREAM, STREAM);
        for step in [1, 7, 4096, sent.len()] {
            let (mut frames, mut bytes, mut heard) = (Frames::default(), 0, Vec::new());
            for part in sent.chunks(step) {
                let take = |what: Heard<'_>| {
                    match what {
                        Heard::Data(part) => bytes += part.len(),
                        other => heard.push(format!("{other:?}")),
                    }
                    Ok(())
                };
                frames.take(part, take).unwrap();
            }
            let expected =
                ["Settings(Some(65536))", "Window { stream: 1, more: 5 }", "Headers { end: true }"];
            assert_eq!((bytes, heard), (20_000, expected.map(str::to_owned).to_vec()), "in steps of {step}");
        }
    }

    #[test]
    fn a_frame_that_is_larger_than_allowed_is_refused() {
        let mut sent = Vec::new();
        header(&mut sent, MAX_FRAME + 1, DATA, 0, STREAM);
        assert!(Frames::default().take(&sent, |_| Ok(())).is_err());
    }
}
