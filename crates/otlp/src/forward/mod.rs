//! Sends the spans of a collection on, by gRPC, as they are collected.
//!
//! The files of the collection are the queue: they are read no faster than the spans are taken, and what waits takes no
//! memory.

mod files;
mod ids;
mod sender;
mod spans;
mod values;

use std::time::{Duration, Instant};

use anytrace_core::Error;
use tokio::io::AsyncReadExt;
use tokio::sync::watch;
use tokio::time::sleep;

use crate::request::Forward;
use crate::voice;
use files::Files;
use sender::Sender;
use spans::Converter;

/// How often files are looked at, and how often what was sent is said.
const GLANCE: Duration = Duration::from_millis(100);
const SAY_EVERY: Duration = Duration::from_millis(500);

/// Sends until standard input is closed, and then what is left.
pub(crate) async fn run(task: Forward) -> Result<(), Error> {
    let (mut files, mut converter) = (Files::new(&task.folder, task.earlier), Converter::default());
    let mut sender = Sender::new(&task.to)?;
    voice::ready(&task.to);
    let (closes, closed) = watch::channel(false);
    tokio::spawn(async move {
        let (mut stdin, mut rest) = (tokio::io::stdin(), [0; 64]);
        while stdin.read(&mut rest).await.is_ok_and(|read| read > 0) {}
        closes.send_replace(true);
    });
    let mut said_at = Instant::now();
    loop {
        // Looked at before the files: what they have by then is all.
        let is_last = *closed.borrow();
        let has_more = files.read(&mut converter)?;
        sender.events = converter.events;
        if is_last && !has_more {
            converter.end_all();
        }
        let is_idle = !has_more && converter.is_empty();
        if !converter.is_empty() && (converter.has_enough() || !has_more) {
            sender.send(converter.take()).await;
        }
        if is_last && is_idle {
            break;
        }
        if said_at.elapsed() >= SAY_EVERY {
            said_at = Instant::now();
            sender.say();
        }
        if is_idle {
            sleep(GLANCE).await;
        }
    }
    sender.finish().await;
    sender.say();
    Ok(())
}
