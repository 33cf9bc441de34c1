//! How a stream's messages are encoded: as they are, or packed with Zstandard. Each is packed once, for all
//! streams that take it so.

use bytes::{BufMut, Bytes, BytesMut};
use http::{HeaderMap, HeaderValue};
use tracing::error;

/// What gRPC puts before a message.
const PREFIX: usize = 5;

/// Smaller messages are left as they are: there is little to gain, and Beacons need not unpack them.
const WORTH_PACKING: usize = 512;

/// More gains little with such messages, and takes longer.
const LEVEL: i32 = 1;

/// An encoding of messages (gRPC over HTTP/2, "Message-Encoding").
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Encoding {
    /// As they are.
    #[default]
    Plain,
    /// The large ones packed.
    Zstd,
}

impl Encoding {
    /// The best that the sender of these headers takes.
    pub fn accepted(headers: &HeaderMap) -> Self {
        let accepted = headers.get_all("grpc-accept-encoding").iter();
        let mut words = accepted.filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(','));
        if words.any(|word| word.trim() == "zstd") { Self::Zstd } else { Self::Plain }
    }

    /// Announces it.
    pub fn announce(self, headers: &mut HeaderMap) {
        match self {
            Self::Plain => {}
            Self::Zstd => {
                headers.insert("grpc-encoding", HeaderValue::from_static("zstd"));
            }
        }
    }
}

/// A framed message in its packed form, or as it is if that is not smaller.
pub fn packed(frame: &Bytes) -> Bytes {
    if frame.len() < WORTH_PACKING {
        return frame.clone();
    }
    let packed = match zstd::bulk::compress(&frame[PREFIX..], LEVEL) {
        Ok(packed) if PREFIX + packed.len() < frame.len() => packed,
        Ok(_) => return frame.clone(),
        Err(failure) => {
            error!(%failure, "a message cannot be packed, and is sent as it is");
            return frame.clone();
        }
    };
    let mut framed = BytesMut::with_capacity(PREFIX + packed.len());
    framed.put_u8(1);
    framed.put_u32(u32::try_from(packed.len()).expect("messages are cut long before 4 GiB"));
    framed.put_slice(&packed);
    framed.freeze()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_client_takes_is_found_among_all_that_it_names() {
        let mut headers = HeaderMap::new();
        assert_eq!(Encoding::accepted(&headers), Encoding::Plain);
        headers.insert("grpc-accept-encoding", HeaderValue::from_static("identity,deflate"));
        assert_eq!(Encoding::accepted(&headers), Encoding::Plain);
        headers.append("grpc-accept-encoding", HeaderValue::from_static("gzip, zstd"));
        assert_eq!(Encoding::accepted(&headers), Encoding::Zstd);
    }

    #[test]
    fn only_what_gets_smaller_is_packed() {
        let framed = |body: &[u8]| {
            let mut frame = BytesMut::new();
            frame.put_u8(0);
            frame.put_u32(body.len().try_into().unwrap());
            frame.put_slice(body);
            frame.freeze()
        };
        let small = framed(&[7; 100]);
        assert_eq!(packed(&small), small);
        // BLAKE3's output cannot be made smaller.
        let mut noise = vec![0; 4096];
        blake3::Hasher::new().finalize_xof().fill(&mut noise);
        assert_eq!(packed(&framed(&noise)), framed(&noise));
        let large = packed(&framed(&[7; 4096]));
        assert!(large.len() < 100, "{} bytes", large.len());
        assert_eq!(large[0], 1);
        assert_eq!(u32::from_be_bytes(large[1..5].try_into().unwrap()) as usize, large.len() - 5);
        assert_eq!(zstd::bulk::decompress(&large[5..], 4096).unwrap(), [7; 4096]);
    }
}
