//! Takes a URL apart. Not a general URL parser: an authority may list several hosts, and braces are
//! placeholders, which general ones refuse or encode.

use std::collections::BTreeMap;

use super::Fault;

/// The parts of a URL. Authority and path are still percent-encoded.
#[derive(Debug)]
pub(super) struct Parts<'a> {
    pub(super) scheme: &'a str,
    pub(super) authority: &'a str,
    /// Empty, or beginning with a slash.
    pub(super) path: &'a str,
    pub(super) query: Query,
}

/// The keys and values after the question mark, decoded.
#[derive(Debug)]
pub(super) struct Query(BTreeMap<String, String>);

impl<'a> Parts<'a> {
    pub(super) fn split(value: &'a str) -> Result<Self, Fault> {
        let (scheme, rest) = value
            .split_once("://")
            .ok_or_else(|| Fault::new("scheme", "missing; a source is zk://HOSTS/PATH or file:///PATH"))?;
        if rest.contains('#') {
            return Err(Fault::new("path", "a '#' must be written %23"));
        }
        let (location, query) = rest.split_once('?').unwrap_or((rest, ""));
        let slash = location.find('/').unwrap_or(location.len());
        let (authority, path) = location.split_at(slash);
        Ok(Self { scheme, authority, path, query: Query::parse(query)? })
    }
}

impl Query {
    fn parse(query: &str) -> Result<Self, Fault> {
        let mut values = BTreeMap::new();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            let part = format!("query key {key:?}");
            if !pair.contains('=') {
                return Err(Fault::new(part, "no value; write KEY=VALUE"));
            }
            let value = decode(value, &part)?;
            if values.insert(key.to_owned(), value).is_some() {
                return Err(Fault::new(part, "given twice"));
            }
        }
        Ok(Self(values))
    }

    /// The value of a key, which then is accounted for.
    pub(super) fn take(&mut self, key: &str) -> Option<String> {
        self.0.remove(key)
    }

    /// A key that nobody took.
    pub(super) fn first_key(&self) -> Option<&str> {
        self.0.keys().next().map(String::as_str)
    }
}

/// A URL as it may be shown: without credentials, which do not belong there, and which somebody wrote there
/// all the same.
pub(super) fn shown(value: &str) -> String {
    const HIDDEN: &str = "***";
    let (start, query) = value.split_once('?').unwrap_or((value, ""));
    let mut shown = match start.split_once("://") {
        Some((scheme, rest)) => {
            let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
            match authority.rsplit_once('@') {
                Some((_, hosts)) => format!("{scheme}://{HIDDEN}@{hosts}{path}"),
                None => start.to_owned(),
            }
        }
        None => start.to_owned(),
    };
    for (number, pair) in query.split('&').enumerate().filter(|_| value.contains('?')) {
        shown.push(if number == 0 { '?' } else { '&' });
        match pair.split_once('=') {
            Some((key @ "password", _)) => shown.push_str(&format!("{key}={HIDDEN}")),
            _ => shown.push_str(pair),
        }
    }
    shown
}

/// The segments of an absolute path, decoded each by itself, so that an encoded slash is found out.
pub(super) fn segments(path: &str) -> Result<Vec<&str>, Fault> {
    let fault = |problem: &str| Fault::new("path", problem);
    let path = path.strip_prefix('/').ok_or_else(|| fault("missing; it begins with a slash"))?;
    let segments: Vec<&str> = path.split('/').collect();
    if segments.iter().any(|segment| segment.is_empty()) {
        return Err(fault("a segment is empty (a slash at the end, or two in a row)"));
    }
    Ok(segments)
}

/// Undoes percent-encoding.
pub(super) fn decode(text: &str, part: &str) -> Result<String, Fault> {
    let mut decoded = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        rest = tail;
        if *first != b'%' {
            decoded.push(*first);
            continue;
        }
        let byte = tail
            .get(..2)
            .filter(|digits| digits.iter().all(u8::is_ascii_hexdigit))
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        let Some(byte) = byte else {
            let shown = String::from_utf8_lossy(&tail[..tail.len().min(2)]);
            return Err(Fault::new(
                part,
                format!("\"%{shown}\" is not a percent-encoded byte; write %25 for %"),
            ));
        };
        decoded.push(byte);
        rest = &tail[2..];
    }
    String::from_utf8(decoded).map_err(|_| Fault::new(part, "is not UTF-8 once decoded"))
}

/// [`decode`] for a segment of a path: what it decodes to must still be one segment.
pub(super) fn decode_segment(segment: &str) -> Result<String, Fault> {
    let decoded = decode(segment, "path")?;
    if decoded.contains(['/', '\0']) || decoded == "." || decoded == ".." {
        return Err(Fault::new("path", format!("{segment:?} cannot be a segment")));
    }
    Ok(decoded)
}
