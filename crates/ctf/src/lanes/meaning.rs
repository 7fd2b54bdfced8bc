//! What events mean, by their names: begins and ends of spans, switches between threads.

use super::names::{NameNumber, Names};

/// What an event does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meaning {
    Begin(NameNumber),
    End(NameNumber),
    /// The function whose address is in the field `addr` is entered, or left.
    Enter,
    Leave,
    /// Another thread runs.
    Switch,
    Instant(NameNumber),
    Own(Own),
}

/// Events that `anytrace convert --to ctf` writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Own {
    Track,
    Begin,
    End,
    Instant,
    Counter,
    FlowOut,
    FlowIn,
}

/// Endings of names, and in what pair they are.
const ENDINGS: [(&str, &str); 3] = [("_entry", "_exit"), ("_begin", "_end"), (":entry", ":exit")];

/// The meaning of an event of this name.
pub(super) fn meaning(name: &str, is_own: bool, names: &mut Names) -> Meaning {
    if is_own && let Some(own) = own(name) {
        return Meaning::Own(own);
    }
    match name {
        "lttng_ust_cyg_profile:func_entry" | "lttng_ust_cyg_profile_fast:func_entry" => return Meaning::Enter,
        "lttng_ust_cyg_profile:func_exit" => return Meaning::Leave,
        // The fast form does not say what is left.
        "lttng_ust_cyg_profile_fast:func_exit" => return Meaning::End(super::names::UNNAMED),
        "sched_switch" => return Meaning::Switch,
        _ => {}
    }
    for (begin, end) in [("syscall_entry_", "syscall_exit_"), ("compat_syscall_entry_", "compat_syscall_exit_")] {
        if let Some(call) = name.strip_prefix(begin) {
            return Meaning::Begin(names.number(call.as_bytes()));
        }
        if let Some(call) = name.strip_prefix(end) {
            return Meaning::End(names.number(call.as_bytes()));
        }
    }
    for (begin, end) in ENDINGS {
        if let Some(base) = name.strip_suffix(begin).filter(|base| !base.is_empty()) {
            return Meaning::Begin(names.number(base.as_bytes()));
        }
        if let Some(base) = name.strip_suffix(end).filter(|base| !base.is_empty()) {
            return Meaning::End(names.number(base.as_bytes()));
        }
    }
    Meaning::Instant(names.number(name.as_bytes()))
}

fn own(name: &str) -> Option<Own> {
    Some(match name {
        "track" => Own::Track,
        "span_begin" => Own::Begin,
        "span_end" => Own::End,
        "instant" => Own::Instant,
        "counter" => Own::Counter,
        "flow_out" => Own::FlowOut,
        "flow_in" => Own::FlowIn,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_decide() {
        let mut names = Names::default();
        let mut of = |name: &str| match meaning(name, false, &mut names) {
            Meaning::Begin(number) => format!("begin {}", String::from_utf8_lossy(names.get(number))),
            Meaning::End(number) => format!("end {}", String::from_utf8_lossy(names.get(number))),
            Meaning::Instant(number) => format!("at {}", String::from_utf8_lossy(names.get(number))),
            other => format!("{other:?}"),
        };
        for (name, expected) in [
            ("app:work_begin", "begin app:work"),
            ("app:work_end", "end app:work"),
            ("irq_handler_entry", "begin irq_handler"),
            ("irq_handler_exit", "end irq_handler"),
            ("f:entry", "begin f"),
            ("syscall_entry_read", "begin read"),
            ("syscall_exit_read", "end read"),
            ("_entry", "at _entry"),
            ("lttng_ust_cyg_profile:func_entry", "Enter"),
            ("sched_switch", "Switch"),
            ("span_begin", "begin span"),
            ("weekend", "at weekend"),
        ] {
            assert_eq!(of(name), expected, "{name}");
        }
        assert_eq!(meaning("span_begin", true, &mut names), Meaning::Own(Own::Begin));
    }
}
