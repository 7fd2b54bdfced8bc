//! The lines that Valgrind itself writes between the records: they begin with the process id between two marks.
//!
//! `==PID== text` is for people, `--PID-- text` comes with `-v`, `--PID:LEVEL:MODULE text` with `-d`, `**PID** text`
//! from `VALGRIND_PRINTF`; with `--time-stamp=yes` the process id follows a time (sample `stamped.lackey`).

/// How far into a line the process id may reach.
const HEAD_BYTES_MAX: usize = 48;

/// One of Valgrind's lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Message<'a> {
    /// The process that wrote it.
    pub(crate) process: u64,
    /// Its text, without surrounding blanks.
    pub(crate) text: &'a [u8],
}

/// Reads a message from its line, with or without the line end.
pub(crate) fn message(line: &[u8]) -> Option<Message<'_>> {
    let mark = line.first_chunk::<2>()?;
    if !matches!(mark, b"==" | b"--" | b"**") || !line.get(2)?.is_ascii_digit() {
        return None;
    }
    let rest = line.get(2..)?;
    let head = &rest[..rest.len().min(HEAD_BYTES_MAX)];
    let (head, text) = match head.windows(2).position(|pair| pair == mark) {
        Some(end) => (&rest[..end], &rest[end + 2..]),
        None if mark == b"--" => rest.split_at(head.iter().position(|byte| *byte == b':')?),
        None => return None,
    };
    // The time, if there is one, precedes the process id.
    let digits = head.rsplit(|byte| *byte == b' ').next()?;
    let process = std::str::from_utf8(digits).ok()?.parse().ok()?;
    Some(Message { process, text: text.trim_ascii() })
}

/// What a message states about the entire run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fact<'a> {
    /// The tool and its description, on the first line.
    Tool(&'a [u8]),
    /// Valgrind's version.
    Version(&'a [u8]),
    /// The command that was traced.
    Command(&'a [u8]),
    /// Instructions executed, counted at the end.
    Instructions(u64),
    /// Superblocks entered, counted at the end.
    Blocks(u64),
    /// The program's exit code; the last line.
    ExitCode(i64),
}

impl<'a> Message<'a> {
    /// What it states about the entire run, if anything.
    pub(crate) fn fact(&self) -> Option<Fact<'a>> {
        let after = |start: &[u8]| self.text.strip_prefix(start).map(<[u8]>::trim_ascii);
        if let Some(rest) = after(b"Using Valgrind-") {
            let end = rest.iter().position(|byte| *byte == b' ').unwrap_or(rest.len());
            return Some(Fact::Version(&rest[..end]));
        }
        if self.text.starts_with(b"Lackey, ") {
            return Some(Fact::Tool(self.text));
        }
        if let Some(rest) = after(b"Command: ") {
            return Some(Fact::Command(rest));
        }
        let counted = |start: &[u8]| after(start).and_then(grouped);
        counted(b"guest instrs:")
            .map(Fact::Instructions)
            .or_else(|| counted(b"SBs entered:").map(Fact::Blocks))
            .or_else(|| std::str::from_utf8(after(b"Exit code:")?).ok()?.parse().ok().map(Fact::ExitCode))
    }
}

/// A number with or without commas between its thousands.
fn grouped(text: &[u8]) -> Option<u64> {
    let digits: String = text.iter().filter(|byte| **byte != b',').map(|byte| char::from(*byte)).collect();
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(line: &str) -> Option<(u64, &str)> {
        message(line.as_bytes()).map(|message| (message.process, std::str::from_utf8(message.text).unwrap_or("?")))
    }

    #[test]
    fn each_form_of_a_message_is_known() {
        assert_eq!(text("==3606== Lackey, an example\n"), Some((3606, "Lackey, an example")));
        assert_eq!(text("==3606== \r\n"), Some((3606, "")));
        assert_eq!(text("==3606=="), Some((3606, "")));
        assert_eq!(text("==00:00:00:00.000 9987== Command: ./a"), Some((9987, "Command: ./a")));
        assert_eq!(text("--4095--   Considering x .."), Some((4095, "Considering x ..")));
        assert_eq!(text("--4095:1:gdbsrv   stopped"), Some((4095, ":1:gdbsrv   stopped")));
        assert_eq!(text("**7** said by the program"), Some((7, "said by the program")));
        for line in
            ["", "==", "==x==", "== 1==", "==1 text", "==1--", "--1", "-- 1 --", "1== x", "==99999999999999999999== x"]
        {
            assert_eq!(text(line), None, "{line:?}");
        }
    }

    #[test]
    fn facts_are_read_from_their_lines() {
        let fact = |line: &'static str| message(line.as_bytes()).and_then(|message| message.fact());
        assert_eq!(fact("==1== Using Valgrind-3.19.0 and LibVEX; rerun"), Some(Fact::Version(b"3.19.0")));
        assert_eq!(fact("==1== Command: ./a b"), Some(Fact::Command(b"./a b")));
        assert_eq!(fact("==1==   guest instrs:  1,585,411"), Some(Fact::Instructions(1_585_411)));
        assert_eq!(fact("==1==   SBs entered:   26,854"), Some(Fact::Blocks(26_854)));
        assert_eq!(fact("==1== Exit code:       -3"), Some(Fact::ExitCode(-3)));
        assert_eq!(fact("==1==   guest instrs : SB entered  = 48 : 10"), None);
        assert_eq!(fact("==1==   guest instrs:  many"), None);
    }
}
