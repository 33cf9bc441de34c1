//! Thrift's binary protocol, as far as registrations need it: structures, field by field, in which what is
//! not known is skipped. Nothing is believed but the bytes that are there: a size only says how far to read,
//! each element costs at least a byte, and nesting has a limit.

use super::DecodeError;

/// What is skipped may be nested so deep.
const MAX_DEPTH: usize = 16;

/// The type of a field or an element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Bool,
    Byte,
    Double,
    I16,
    I32,
    I64,
    Text,
    Struct,
    Map,
    Set,
    List,
}

/// Reads from the front.
#[derive(Debug)]
pub(super) struct Reader<'a> {
    data: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    pub(super) fn new(data: &'a [u8]) -> Self {
        Self { data, at: 0 }
    }

    /// The next field of a structure, its type and number; none at the end of the structure.
    pub(super) fn field(&mut self) -> Result<Option<(Kind, i16)>, DecodeError> {
        const STOP: u8 = 0;
        let kind = match self.byte()? {
            STOP => return Ok(None),
            code => self.kind(code)?,
        };
        Ok(Some((kind, i16::from_be_bytes(self.bytes()?))))
    }

    /// A map's types of keys and values, and how many there are.
    pub(super) fn map(&mut self) -> Result<(Kind, Kind, u32), DecodeError> {
        let (key, value) = (self.byte()?, self.byte()?);
        let size = self.size()?;
        // Some writers leave the types out when there is nothing of them.
        if size == 0 {
            return Ok((Kind::Text, Kind::Struct, 0));
        }
        Ok((self.kind(key)?, self.kind(value)?, size))
    }

    pub(super) fn i32(&mut self) -> Result<i32, DecodeError> {
        self.bytes().map(i32::from_be_bytes)
    }

    pub(super) fn text(&mut self) -> Result<&'a str, DecodeError> {
        let size = self.size()?;
        let at = self.at;
        let bytes = self.take(size as usize)?;
        std::str::from_utf8(bytes).map_err(|_| error(at, "a text that is not UTF-8"))
    }

    /// Goes past a value.
    pub(super) fn skip(&mut self, kind: Kind) -> Result<(), DecodeError> {
        self.skip_nested(kind, 0)
    }

    /// How many bytes are left.
    pub(super) fn rest(&self) -> usize {
        self.data.len() - self.at
    }

    fn skip_nested(&mut self, kind: Kind, depth: usize) -> Result<(), DecodeError> {
        if depth == MAX_DEPTH {
            return Err(error(self.at, "nested too deep"));
        }
        match kind {
            Kind::Bool | Kind::Byte => self.take(1).map(drop),
            Kind::I16 => self.take(2).map(drop),
            Kind::I32 => self.take(4).map(drop),
            Kind::I64 | Kind::Double => self.take(8).map(drop),
            Kind::Text => {
                let size = self.size()?;
                self.take(size as usize).map(drop)
            }
            Kind::Struct => {
                while let Some((kind, _)) = self.field()? {
                    self.skip_nested(kind, depth + 1)?;
                }
                Ok(())
            }
            Kind::Map => {
                let (key, value, size) = self.map()?;
                for _ in 0..size {
                    self.skip_nested(key, depth + 1)?;
                    self.skip_nested(value, depth + 1)?;
                }
                Ok(())
            }
            Kind::Set | Kind::List => {
                let element = self.byte()?;
                let size = self.size()?;
                for _ in 0..size {
                    let element = self.kind(element)?;
                    self.skip_nested(element, depth + 1)?;
                }
                Ok(())
            }
        }
    }

    fn kind(&self, code: u8) -> Result<Kind, DecodeError> {
        Ok(match code {
            2 => Kind::Bool,
            3 => Kind::Byte,
            4 => Kind::Double,
            6 => Kind::I16,
            8 => Kind::I32,
            10 => Kind::I64,
            11 => Kind::Text,
            12 => Kind::Struct,
            13 => Kind::Map,
            14 => Kind::Set,
            15 => Kind::List,
            other => return Err(error(self.at, &format!("type {other} is unknown"))),
        })
    }

    fn size(&mut self) -> Result<u32, DecodeError> {
        let at = self.at;
        u32::try_from(self.i32()?).map_err(|_| error(at, "a negative size"))
    }

    fn byte(&mut self) -> Result<u8, DecodeError> {
        self.bytes().map(|[byte]: [u8; 1]| byte)
    }

    fn bytes<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let at = self.at;
        self.take(N)?.try_into().map_err(|_| error(at, ENDS))
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8], DecodeError> {
        let end = self.at.checked_add(count).filter(|end| *end <= self.data.len());
        let taken = end.and_then(|end| self.data.get(self.at..end)).ok_or_else(|| error(self.at, ENDS))?;
        self.at += count;
        Ok(taken)
    }
}

const ENDS: &str = "the data end here";

fn error(at: usize, problem: &str) -> DecodeError {
    DecodeError::NotThrift { at, problem: problem.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn skip(kind: Kind, data: &[u8]) -> Result<usize, String> {
        let mut reader = Reader::new(data);
        reader.skip(kind).map(|()| reader.rest()).map_err(|error| error.to_string())
    }

    #[test]
    fn everything_can_be_skipped() {
        for (kind, data) in [
            (Kind::Bool, &[1][..]),
            (Kind::I16, &[0, 1]),
            (Kind::Double, &[0; 8]),
            (Kind::Text, &[0, 0, 0, 2, b'h', 0xff]),
            (Kind::Struct, &[8, 0, 9, 0, 0, 0, 1, 12, 0, 1, 0, 0]),
            (Kind::Map, &[0, 0, 0, 0, 0, 0]),
            (Kind::Map, &[11, 3, 0, 0, 0, 1, 0, 0, 0, 1, b'k', 7]),
            (Kind::List, &[6, 0, 0, 0, 2, 0, 1, 0, 2]),
            (Kind::Set, &[0, 0, 0, 0, 0]),
        ] {
            assert_eq!(skip(kind, &[data, &[9, 9]].concat()), Ok(2), "{kind:?} {data:?}");
            assert!(skip(kind, &data[..data.len() - 1]).unwrap_err().contains("the data end here"));
        }
    }

    #[test]
    fn sizes_and_depth_are_not_believed() {
        for (kind, data, problem) in [
            (Kind::Text, &[0x7f, 0xff, 0xff, 0xff, 1][..], "byte 4: the data end here"),
            (Kind::Text, &[0xff, 0xff, 0xff, 0xff], "byte 0: a negative size"),
            (Kind::List, &[3, 0x7f, 0xff, 0xff, 0xff, 1], "byte 6: the data end here"),
            (Kind::List, &[1, 0, 0, 0, 1], "type 1 is unknown"),
            (Kind::Struct, &[99, 0, 1], "type 99 is unknown"),
            (Kind::Struct, &[12, 0, 1].repeat(20), "byte 48: nested too deep"),
        ] {
            let error = skip(kind, data).unwrap_err();
            assert!(error.contains(problem), "{kind:?}: {error:?} does not contain {problem:?}");
        }
    }
}
