//! A line as `perf script` prints it (`perf_sample__fprintf_start` and `sample__fprintf_callchain` of Linux,
//! `tools/perf`).
//!
//! A sample is a line `COMM PID/TID [CPU] SECONDS: PERIOD EVENT: …`, of which some fields may be missing, then a line for
//! each function on the stack, innermost first, and an empty line. Records that are no samples have lines of the same
//! form with `PERF_RECORD_…` for the event.

/// A line without its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Line<'a> {
    /// The line.
    pub text: &'a [u8],
    /// What is on it.
    pub content: Content<'a>,
}

/// What is on a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Content<'a> {
    /// The first line of a sample, or a record that is no sample.
    Head(Head<'a>),
    /// A function on the stack of the sample above.
    Frame(Frame<'a>),
    /// A line that begins with `#`.
    Comment,
    /// The end of a sample.
    Blank,
    /// Another indented line of the sample above: a place in source code, registers.
    Detail,
}

/// The first line of a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head<'a> {
    /// The name of the thread.
    pub comm: &'a [u8],
    /// Process id; `None` where only one number is printed, which is the thread's.
    pub process: Option<u64>,
    /// Thread id; 4294967295 for -1.
    pub thread: u64,
    /// Processor.
    pub cpu: Option<u32>,
    /// Time, in nanoseconds.
    pub time_ns: Option<u64>,
    /// How many events the sample represents.
    pub period: Option<u64>,
    /// The event, without its colon; empty where it is not printed.
    pub event: &'a [u8],
    /// What follows the event.
    pub rest: &'a [u8],
}

impl Head<'_> {
    /// True for a record that is no sample.
    pub fn is_side_band(&self) -> bool {
        self.event.starts_with(b"PERF_RECORD_")
    }
}

/// A function on a stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame<'a> {
    /// The address, as it is printed.
    pub address: u64,
    /// The function; empty where only the address is printed.
    pub symbol: &'a [u8],
    /// Bytes from the start of the function.
    pub offset: Option<u64>,
    /// The file; empty where it is not printed, `inlined` for an inlined function.
    pub file: &'a [u8],
}

impl Line<'_> {
    /// What it is, in one word.
    pub fn kind_name(&self) -> &'static str {
        match &self.content {
            Content::Head(head) => side_band(head.event).unwrap_or("sample"),
            Content::Frame(_) => "frame",
            Content::Comment => "comment",
            Content::Blank => "blank",
            Content::Detail => "detail",
        }
    }
}

/// The word for a record that is no sample; they are those of binary records.
fn side_band(event: &[u8]) -> Option<&'static str> {
    let name = event.strip_prefix(b"PERF_RECORD_")?;
    let same = |known: &&&'static str| known.as_bytes().eq_ignore_ascii_case(name);
    let known = ["mmap", "mmap2", "lost", "comm", "exit", "throttle", "unthrottle", "fork", "lost_samples", "switch"];
    Some(known.iter().find(same).copied().unwrap_or("record"))
}

/// Reads a line; `None` if it is nothing that `perf script` prints.
pub(crate) fn read(text: &[u8]) -> Option<Line<'_>> {
    let own = text.strip_suffix(b"\r").unwrap_or(text);
    let is_indented = own.first().is_some_and(u8::is_ascii_whitespace);
    let content = if own.trim_ascii().is_empty() {
        Content::Blank
    } else if own.starts_with(b"#") {
        Content::Comment
    } else if own.first() == Some(&b'\t')
        && let Some(frame) = frame(own)
    {
        Content::Frame(frame)
    } else if let Some(head) = head(own) {
        Content::Head(head)
    } else if !is_indented {
        return None;
    } else {
        frame(own).map_or(Content::Detail, Content::Frame)
    };
    Some(Line { text, content })
}

/// The next word and what follows it.
fn word(text: &[u8]) -> (&[u8], &[u8]) {
    let text = text.trim_ascii_start();
    let end = text.iter().position(u8::is_ascii_whitespace).unwrap_or(text.len());
    text.split_at(end)
}

fn number(digits: &[u8]) -> Option<u64> {
    let is_number = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    if is_number { std::str::from_utf8(digits).ok()?.parse().ok() } else { None }
}

fn head(text: &[u8]) -> Option<Head<'_>> {
    let mut rest = text;
    // The name of a thread may have blanks: the first number that the rest fits ends it.
    loop {
        let (own, after) = word(rest);
        if own.is_empty() {
            return None;
        }
        if let Some((process, thread)) = ids(own) {
            let comm = text.get(..text.len() - rest.trim_ascii_start().len()).unwrap_or_default();
            let found = fields(after, Head { comm: comm.trim_ascii(), process, thread, ..EMPTY });
            if found.is_some() {
                return found;
            }
        }
        rest = after;
    }
}

const EMPTY: Head<'_> =
    Head { comm: b"", process: None, thread: 0, cpu: None, time_ns: None, period: None, event: b"", rest: b"" };

/// `PID/TID` or `TID`.
fn ids(text: &[u8]) -> Option<(Option<u64>, u64)> {
    let id = |text: &[u8]| if text == b"-1" { Some(u64::from(u32::MAX)) } else { number(text) };
    match text.iter().position(|byte| *byte == b'/') {
        Some(at) => Some((Some(id(text.get(..at)?)?), id(text.get(at + 1..)?)?)),
        None => Some((None, id(text)?)),
    }
}

/// What follows the ids.
fn fields<'a>(text: &'a [u8], mut head: Head<'a>) -> Option<Head<'a>> {
    let (mut own, mut rest) = word(text);
    if let Some(cpu) = own.strip_prefix(b"[").and_then(|own| own.strip_suffix(b"]")) {
        head.cpu = Some(u32::try_from(number(cpu)?).ok()?);
        (own, rest) = word(rest);
    }
    if let Some(ns) = own.strip_suffix(b":").and_then(time) {
        head.time_ns = Some(ns);
        (own, rest) = word(rest);
    }
    if let Some(period) = number(own) {
        head.period = Some(period);
        (own, rest) = word(rest);
    }
    match own.strip_suffix(b":") {
        Some(event) if event.first().is_some_and(|first| !first.is_ascii_digit()) => head.event = event,
        None if own.starts_with(b"PERF_RECORD_") => head.event = own,
        _ if own.is_empty() && head.time_ns.is_some() => {}
        _ => return None,
    }
    head.rest = rest;
    Some(head)
}

/// Nanoseconds of `SECONDS.FRACTION`.
fn time(text: &[u8]) -> Option<u64> {
    let dot = text.iter().position(|byte| *byte == b'.')?;
    let (seconds, fraction) = (text.get(..dot)?, text.get(dot + 1..)?);
    let scale = 10_u64.checked_pow(u32::try_from(9_usize.checked_sub(fraction.len())?).ok()?)?;
    number(seconds)?.checked_mul(1_000_000_000)?.checked_add(number(fraction)? * scale)
}

/// `ADDRESS SYMBOL+OFFSET (FILE)`, of which only the address is always there.
pub(crate) fn frame(text: &[u8]) -> Option<Frame<'_>> {
    let (digits, rest) = word(text);
    let address = hex(digits)?;
    let rest = rest.trim_ascii();
    let open = memchr::memmem::rfind(rest, b" (").map(|at| (at, at + 2)).or(rest.starts_with(b"(").then_some((0, 1)));
    let (symbol, file) = match (open, rest.strip_suffix(b")")) {
        (Some((end, start)), Some(inside)) => (rest.get(..end)?, inside.get(start..)?),
        _ => (rest, &b""[..]),
    };
    let plus = memchr::memmem::rfind(symbol, b"+0x");
    let offset = plus.and_then(|at| hex(symbol.get(at + 3..)?)).filter(|_| address != 0 || file != b"[unknown]");
    let symbol = if offset.is_some() { symbol.get(..plus?)? } else { symbol };
    Some(Frame { address, symbol: symbol.trim_ascii(), offset, file })
}

fn hex(digits: &[u8]) -> Option<u64> {
    let is_hex = !digits.is_empty() && digits.iter().all(u8::is_ascii_hexdigit);
    if is_hex { u64::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok() } else { None }
}

/// What a function without a name is called: the file in brackets.
pub(crate) fn push_frame_name(out: &mut Vec<u8>, frame: &Frame<'_>) {
    if !frame.symbol.is_empty() && frame.symbol != b"[unknown]" {
        out.extend_from_slice(frame.symbol);
        return;
    }
    push_file_name(out, frame.file);
}

/// The last part of a path in brackets; `[unknown]` without one.
pub(crate) fn push_file_name(out: &mut Vec<u8>, path: &[u8]) {
    let base = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    match base {
        b"" => out.extend_from_slice(b"[unknown]"),
        _ if base.starts_with(b"[") => out.extend_from_slice(base),
        _ => {
            out.push(b'[');
            out.extend_from_slice(base);
            out.push(b']');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head_of(text: &str) -> Option<Head<'_>> {
        match read(text.as_bytes())?.content {
            Content::Head(head) => Some(head),
            _ => None,
        }
    }

    #[test]
    fn every_usual_set_of_fields_is_read() {
        let full = Head {
            comm: b"my prog 2x",
            process: Some(7),
            thread: 8,
            cpu: Some(3),
            time_ns: Some(28_736_556_672_000),
            period: Some(1_003_009),
            event: b"cpu-clock",
            rest: b" ",
        };
        assert_eq!(head_of("   my prog 2x     7/8     [003] 28736.556672:    1003009 cpu-clock: "), Some(full));
        let head = head_of("t 32446 28736.556672: sched:sched_switch: prev_comm=t prev_pid=1").unwrap();
        assert_eq!((head.thread, head.process, head.event), (32_446, None, &b"sched:sched_switch"[..]));
        assert_eq!(head.rest, b" prev_comm=t prev_pid=1");
        let head = head_of("t 5 1.000000007: ").unwrap();
        assert_eq!((head.time_ns, head.event), (Some(1_000_000_007), &b""[..]));
        let head = head_of("t 5/6 cycles:u: ").unwrap();
        assert_eq!((head.time_ns, head.event, head.process), (None, &b"cycles:u"[..], Some(5)));
        let head = head_of("t 5 1.5: PERF_RECORD_COMM exec: t:5/5").unwrap();
        assert_eq!((head.event, head.is_side_band()), (&b"PERF_RECORD_COMM"[..], true));
        assert_eq!(head_of(":-1 -1 [000] 0.000000: 1 cycles: ").map(|head| head.thread), Some(4_294_967_295));
        for text in ["t", "t 5", "t 5 [x] 1.5: a:", "t 5 1.: a:", "t 5 1.0000000001: a:", "a b c: d", "t 5 noun"] {
            assert_eq!(head_of(text), None, "{text}");
        }
    }

    #[test]
    fn frames_have_what_is_printed_of_them() {
        let frame = |text: &'static str| {
            let frame = super::frame(text.as_bytes()).unwrap();
            (frame.address, frame.symbol, frame.offset, frame.file)
        };
        assert_eq!(frame("\t 117b leaf+0x42 (/tmp/a b/t)"), (0x117b, &b"leaf"[..], Some(0x42), &b"/tmp/a b/t"[..]));
        assert_eq!(frame("\tff A::operator()(int) (x)"), (0xff, &b"A::operator()(int)"[..], None, &b"x"[..]));
        assert_eq!(frame("\t1 f (inlined)").3, b"inlined");
        assert_eq!(frame("\t1 f+0x3"), (1, &b"f"[..], Some(3), &b""[..]));
        assert_eq!(frame("\t1"), (1, &b""[..], None, &b""[..]));
        assert_eq!(frame("\t0 f+0x3 ([unknown])").1, b"f+0x3", "a name of a converted trace");
        assert_eq!(super::frame(b"\tnoun"), None);
        let name = |text: &str| {
            let mut out = Vec::new();
            push_frame_name(&mut out, &super::frame(text.as_bytes()).unwrap());
            String::from_utf8(out).unwrap()
        };
        assert_eq!(name("1 f (x)"), "f");
        assert_eq!(name("1 [unknown] (/lib/x.so)"), "[x.so]");
        assert_eq!(name("1 [unknown] ([vdso])"), "[vdso]");
        assert_eq!(name("1 [unknown] ([unknown])"), "[unknown]");
        assert_eq!(name("1"), "[unknown]");
    }

    #[test]
    fn other_lines_are_what_their_first_byte_says() {
        let kind = |text: &str| read(text.as_bytes()).map(|line| line.kind_name());
        assert_eq!(kind("# cmdline"), Some("comment"));
        assert_eq!(kind(" \r"), Some("blank"));
        assert_eq!(kind("  t.c:12"), Some("detail"));
        assert_eq!(kind("    7f00 f (x)"), Some("frame"));
        assert_eq!(kind("text"), None);
        assert_eq!(kind("t 1 1.0: PERF_RECORD_LOST lost 4"), Some("lost"));
    }
}
