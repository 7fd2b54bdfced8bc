//! `CACHERAY_OPTIONS`: `key=value`, several joined by `:`. The first two keys are upstream's.
//!
//! | key | value | default |
//! |---|---|---|
//! | `tracefile` | where to write the trace; may be a FIFO, a socket or a device | `cacheray.trace` |
//! | `enabled` | `0` records nothing | `1` |
//! | `fd` | number of an open file descriptor to write to instead | |
//! | `unix` | path of a listening socket to write to instead | |
//! | `tcp` | `HOST,PORT` to write to instead | |
//! | `range` | longest access that `memcpy`, struct copies and the like are split into: 1 to 128 bytes | `16` |
//! | `malloc` | `0` leaves allocations without annotation out | `1` |
//! | `wrapper` | a function that allocates for others: what it returns is named after its callers. May be repeated; `*` ends a name of which more may follow; `%3A` is a colon | |
//! | `wrappers` | `0` names everything after the function that calls the allocator | `1` |
//! | `callers` | callers in the name of an allocation of unknown type, beside its place: 0 to 16 | `0` |
//! | `globals` | `1` records the program's variables and the threads' stacks as regions | `0` |
//! | `strict` | `1` appends each access to the trace at once, at a lock each; `0` lets threads keep plain accesses until another thread may come after them, always | by the libraries that are loaded: see `order` |
//! | `flush` | flush after this many records, for readers that follow; `0`: when the buffer is full | `0` |
//! | `pc` | `1` records where in the program each access is made, in a file beside the trace: `TRACE.pc` | `0` |
//! | `buffer` | bytes of the buffer, 4096 to 1 GiB | `1048576` |

use std::ffi::c_int;

use crate::wrappers::{CALLERS_MAX, Wrappers};

/// Where the trace goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Destination {
    File(Vec<u8>),
    Fd(c_int),
    Unix(Vec<u8>),
    Tcp(Vec<u8>, u16),
}

impl Destination {
    /// Its name, for messages.
    pub(crate) fn place(&self) -> String {
        match self {
            Self::File(path) | Self::Unix(path) => String::from_utf8_lossy(path).into_owned(),
            Self::Fd(fd) => format!("descriptor {fd}"),
            Self::Tcp(host, port) => format!("{} port {port}", String::from_utf8_lossy(host)),
        }
    }
}

/// The settings from the environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Options {
    pub(crate) to: Destination,
    pub(crate) is_enabled: bool,
    /// A power of two from 1 to 128.
    pub(crate) range_bytes: usize,
    pub(crate) is_malloc: bool,
    pub(crate) flush_records: u64,
    pub(crate) buffer_bytes: usize,
    /// Code addresses of accesses, where the trace is a file.
    pub(crate) has_codes: bool,
    /// Functions that allocate for others.
    pub(crate) wrappers: Wrappers,
    /// Callers in names.
    pub(crate) callers: usize,
    /// Variables and stacks.
    pub(crate) has_statics: bool,
    /// Each access is appended at once; `None` where that depends on the libraries.
    pub(crate) is_strict: Option<bool>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            to: Destination::File(b"cacheray.trace".to_vec()),
            is_enabled: true,
            range_bytes: 16,
            is_malloc: true,
            flush_records: 0,
            buffer_bytes: 1 << 20,
            has_codes: false,
            wrappers: Wrappers::default(),
            callers: 0,
            has_statics: false,
            is_strict: None,
        }
    }
}

impl Options {
    /// Reads the variable's text. Calls `complain` for each invalid part, and continues without it.
    pub(crate) fn parse(text: &[u8], mut complain: impl FnMut(&str, &[u8])) -> Self {
        let mut options = Self::default();
        for part in text.split(|byte| *byte == b':').filter(|part| !part.is_empty()) {
            let mut halves = part.splitn(2, |byte| *byte == b'=');
            let (key, value) = (halves.next().unwrap_or(&[]), halves.next());
            match value {
                None => complain("ignoring option without a value: ", part),
                Some(value) => match options.set(key, value) {
                    Some(true) => {}
                    Some(false) => complain("ignoring invalid value: ", part),
                    None => complain("ignoring unknown option: ", key),
                },
            }
        }
        options
    }

    /// Sets one option: true when it made sense, `None` when there is no such key.
    fn set(&mut self, key: &[u8], value: &[u8]) -> Option<bool> {
        let set = match key {
            b"tracefile" => put(&mut self.to, (!value.is_empty()).then(|| Destination::File(value.to_vec()))),
            // Anything but 0 is on, as upstream has it.
            b"enabled" => put(&mut self.is_enabled, Some(value != b"0")),
            b"malloc" => put(&mut self.is_malloc, Some(value != b"0")),
            b"wrapper" => {
                let name = without_escapes(value);
                let is_name = !name.is_empty() && name != b"*";
                self.wrappers.named.extend(is_name.then_some(name));
                is_name
            }
            b"wrappers" => put(&mut self.wrappers.is_on, Some(value != b"0")),
            b"callers" => put(&mut self.callers, number(value).and_then(callers)),
            b"globals" => put(&mut self.has_statics, Some(value != b"0")),
            b"strict" => put(&mut self.is_strict, (value.len() == 1).then(|| value != b"0").map(Some)),
            b"pc" => put(&mut self.has_codes, Some(value != b"0")),
            b"fd" => put(&mut self.to, number(value).and_then(|n| c_int::try_from(n).ok()).map(Destination::Fd)),
            b"unix" => put(&mut self.to, (!value.is_empty()).then(|| Destination::Unix(value.to_vec()))),
            b"tcp" => put(&mut self.to, tcp(value)),
            b"range" => put(&mut self.range_bytes, number(value).and_then(range)),
            b"flush" => put(&mut self.flush_records, number(value)),
            b"buffer" => put(&mut self.buffer_bytes, number(value).and_then(buffer)),
            _ => return None,
        };
        Some(set)
    }
}

/// Puts a value where it belongs, if there is one.
fn put<T>(to: &mut T, value: Option<T>) -> bool {
    let is_some = value.is_some();
    if let Some(value) = value {
        *to = value;
    }
    is_some
}

fn number(value: &[u8]) -> Option<u64> {
    std::str::from_utf8(value).ok()?.parse().ok()
}

/// The comma divides host and port, as the colon divides options; so only a name is possible here, not an IPv6 address.
fn tcp(value: &[u8]) -> Option<Destination> {
    let comma = value.iter().rposition(|byte| *byte == b',')?;
    let (host, port) = value.split_at_checked(comma)?;
    let port = u16::try_from(number(port.get(1..)?)?).ok()?;
    (!host.is_empty() && port != 0).then(|| Destination::Tcp(host.to_vec(), port))
}

/// Pieces are aligned powers of two: other numbers are rounded down to one.
fn range(bytes: u64) -> Option<usize> {
    let bytes = usize::try_from(bytes).ok().filter(|bytes| (1..=128).contains(bytes))?;
    Some(1 << bytes.ilog2())
}

fn callers(n: u64) -> Option<usize> {
    usize::try_from(n).ok().filter(|n| *n <= CALLERS_MAX)
}

/// A name whose colons are written `%3A`, as the colon divides options.
fn without_escapes(value: &[u8]) -> Vec<u8> {
    let mut name = Vec::with_capacity(value.len());
    let mut rest = value;
    while let [first, after @ ..] = rest {
        let is_colon = rest.get(..3).is_some_and(|escape| escape.eq_ignore_ascii_case(b"%3A"));
        name.push(if is_colon { b':' } else { *first });
        rest = if is_colon { rest.get(3..).unwrap_or(&[]) } else { after };
    }
    name
}

fn buffer(bytes: u64) -> Option<usize> {
    usize::try_from(bytes).ok().filter(|bytes| (4096..=1 << 30).contains(bytes))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::testing::Random;

    fn parse(text: &str) -> (Options, Vec<String>) {
        let mut said = Vec::new();
        let options = Options::parse(text.as_bytes(), |what, part| {
            said.push(format!("{what}{}", String::from_utf8_lossy(part)));
        });
        (options, said)
    }

    #[test]
    fn upstreams_two_keys_mean_what_they_mean_there() {
        assert_eq!(parse("").0, Options::default());
        let (options, said) = parse("tracefile=/tmp/a b.trace:enabled=0");
        assert_eq!(options.to, Destination::File(b"/tmp/a b.trace".to_vec()));
        assert!(!options.is_enabled && said.is_empty());
        assert!(parse("enabled=yes").0.is_enabled);
        assert!(parse("enabled=").0.is_enabled);
    }

    #[test]
    fn invalid_parts_are_named_and_skipped() {
        let (options, said) = parse("colour=red:range=0:tcp=nowhere:fd=x:flush:enabled=1:range=20");
        assert_eq!(options.range_bytes, 16);
        assert_eq!(said.len(), 5, "{said:?}");
        assert!(said[0].ends_with("ignoring unknown option: colour"), "{said:?}");
    }

    #[test]
    fn wrappers_are_collected_and_callers_limited() {
        let (options, said) = parse("wrapper=a%3A%3Ab*:wrapper=my_alloc:wrapper=:wrapper=*:callers=16:callers=17");
        assert_eq!(options.wrappers.named, [b"a::b*".to_vec(), b"my_alloc".to_vec()]);
        assert!(options.wrappers.is_on && !parse("wrappers=0").0.wrappers.is_on);
        assert_eq!((options.callers, said.len()), (16, 3));
    }

    #[test]
    fn ranges_are_powers_of_two_and_the_last_destination_counts() {
        assert_eq!(parse("range=128").0.range_bytes, 128);
        assert_eq!(parse("range=127").0.range_bytes, 64);
        assert_eq!(parse("range=129").0.range_bytes, 16);
        assert_eq!(parse("tracefile=a:tcp=localhost,9000").0.to, Destination::Tcp(b"localhost".to_vec(), 9000));
        assert_eq!(parse("unix=/run/x:fd=7").0.to, Destination::Fd(7));
    }

    #[test]
    fn the_last_valid_value_of_each_key_counts_and_each_other_is_named() {
        let mut random = Random(2);
        let mut below = |end: usize| random.below(end as u64) as usize;
        let numbers =
            ["0", "1", "7", "16", "100", "128", "129", "4095", "4096", "1073741824", "1073741825", "-1", "+5", "x"];
        for _ in 0..5000 {
            let (mut expected, mut parts, mut complaints) = (Options::default(), Vec::new(), 0);
            for _ in 0..below(6) {
                let value = numbers[below(numbers.len())];
                let number = value.trim_start_matches('+').parse::<u64>().ok();
                let (key, is_right) = match below(6) {
                    0 => {
                        expected.is_enabled = value != "0";
                        ("enabled", true)
                    }
                    1 => {
                        expected.is_malloc = value != "0";
                        ("malloc", true)
                    }
                    2 => ("flush", number.inspect(|n| expected.flush_records = *n).is_some()),
                    3 => {
                        let bytes = number.filter(|n| *n >= 4096 && *n <= 1 << 30);
                        ("buffer", bytes.inspect(|n| expected.buffer_bytes = *n as usize).is_some())
                    }
                    4 => {
                        let bytes = number.filter(|n| *n >= 1 && *n <= 128);
                        let power = |n: u64| (0..8).map(|bit| 1 << bit).rfind(|power| *power <= n).unwrap();
                        ("range", bytes.inspect(|n| expected.range_bytes = power(*n) as usize).is_some())
                    }
                    _ => ("speed", false),
                };
                complaints += usize::from(!is_right);
                parts.push(format!("{key}={value}"));
            }
            // Nothing between two colons is no option.
            let text = parts.join([":", "::"][below(2)]);
            let (found, said) = parse(&text);
            assert_eq!((found, said.len()), (expected, complaints), "{text}: {said:?}");
        }
    }
}
