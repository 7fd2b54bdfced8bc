//! What needs the program's global subscriber: one test, as a program has but one.

#![allow(missing_docs)]
#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

mod common;

use std::cell::RefCell;
use std::fmt;

use common::{Folder, read_sound};
use tracing::field::Empty;
use tracing::span::EnteredSpan;
use tracing::{info, info_span};
use tracing_heph::HephLayer;
use tracing_subscriber::layer::SubscriberExt;

struct Chatty;

impl fmt::Debug for Chatty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        info_span!("from within").in_scope(|| info!("chatter"));
        f.write_str("chatty")
    }
}

/// Records when it is dropped.
struct Late(Option<EnteredSpan>);

impl Drop for Late {
    fn drop(&mut self) {
        info!("when the thread's storage goes");
        drop(self.0.take());
        info_span!("short").in_scope(|| ());
    }
}

thread_local! {
    static LATE: RefCell<Vec<Late>> = const { RefCell::new(Vec::new()) };
}

#[test]
fn recording_from_within_a_value_and_from_a_dying_thread_does_no_harm() {
    let folder = Folder::new();
    let (layer, guard) = HephLayer::builder().file(folder.path()).build().unwrap();
    tracing::subscriber::set_global_default(tracing_subscriber::registry().with(layer)).unwrap();

    let span = info_span!("span", value = ?Chatty, late = Empty).entered();
    span.record("late", tracing::field::debug(Chatty));
    info!(?Chatty, "point");
    drop(span);

    // Whether the recorder's own storage goes before depends on the order of first use: both are tried.
    for early in [true, false] {
        std::thread::spawn(move || {
            if early {
                info!("first use");
            }
            LATE.with_borrow_mut(|late| late.push(Late(None)));
            info!("in the thread");
        })
        .join()
        .unwrap();
    }
    let stats = guard.close();
    let trace = read_sound(&folder.path());
    let count = |name: &str| trace.named(name).len();
    assert_eq!((count("from within"), count("chatter"), count("point"), count("span")), (3, 3, 1, 1));
    assert_eq!(trace.named("span")[0].get("late"), Some("str chatty"));
    assert_eq!((count("in the thread"), count("when the thread's storage goes")), (2, 2));
    // The two halves of a span that begins and ends without storage cannot be brought together.
    assert_eq!(stats.written, trace.events.len() as u64);
    assert_eq!(stats.dropped, 0);
}
