//! A payload in an envelope that tells whether it is whole: a magic number, a format number, the payload's
//! length, its BLAKE3 hash, and the payload.

const HEADER_BYTES: usize = 8 + 4 + 8 + 32;

/// What is in an envelope.
#[derive(Debug, Clone, Copy)]
pub struct Kind {
    /// How it begins.
    pub magic: &'static [u8; 8],
    /// The format of the payload.
    pub format: u32,
}

/// Why bytes are not a whole envelope of some kind.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SealError {
    /// It is something else.
    #[error("it is something else: it does not start with {:?}", str::from_utf8(*.0).unwrap_or_default())]
    Magic(&'static [u8; 8]),
    /// Another build wrote it.
    #[error("it has format {actual}, and this build reads format {expected}")]
    Format {
        /// What this build reads.
        expected: u32,
        /// What it has.
        actual: u32,
    },
    /// Its end is missing, or there is something behind it.
    #[error("it has {actual} bytes where {expected} are announced")]
    Length {
        /// Bytes that its header announces.
        expected: usize,
        /// Bytes that are there.
        actual: usize,
    },
    /// Its content changed after it was written.
    #[error("its checksum is wrong")]
    Checksum,
}

impl Kind {
    /// The envelope around what `write` appends.
    pub fn seal(&self, write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
        let mut file = vec![0; HEADER_BYTES];
        write(&mut file);
        let (header, payload) = file.split_at_mut(HEADER_BYTES);
        let hash = blake3::hash(payload);
        header[..8].copy_from_slice(self.magic);
        header[8..12].copy_from_slice(&self.format.to_le_bytes());
        header[12..20].copy_from_slice(&(payload.len() as u64).to_le_bytes());
        header[20..].copy_from_slice(hash.as_bytes());
        file
    }

    /// The payload.
    ///
    /// # Errors
    /// If it is not whole, or not of this kind.
    pub fn open<'f>(&self, file: &'f [u8]) -> Result<&'f [u8], SealError> {
        if !file.starts_with(self.magic) {
            return Err(SealError::Magic(self.magic));
        }
        let Some((header, payload)) = file.split_at_checked(HEADER_BYTES) else {
            return Err(SealError::Length { expected: HEADER_BYTES, actual: file.len() });
        };
        let format = u32::from_le_bytes(field(header, 8));
        if format != self.format {
            return Err(SealError::Format { expected: self.format, actual: format });
        }
        let expected = usize::try_from(u64::from_le_bytes(field(header, 12))).unwrap_or(usize::MAX);
        if payload.len() != expected {
            return Err(SealError::Length { expected, actual: payload.len() });
        }
        if blake3::hash(payload) != blake3::Hash::from_bytes(field(header, 20)) {
            return Err(SealError::Checksum);
        }
        Ok(payload)
    }
}

fn field<const N: usize>(header: &[u8], at: usize) -> [u8; N] {
    let mut bytes = [0; N];
    bytes.copy_from_slice(&header[at..at + N]);
    bytes
}
