//! Output by a thread of its own: a reader that is slow, a terminal that is stopped (Ctrl-S), must not keep the collector
//! from collecting.

use std::io;
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long the end may take where what is left is not worth more.
const PATIENCE: Duration = Duration::from_secs(2);

/// The way to such a thread.
pub(super) struct Beside<T> {
    items: Option<SyncSender<T>>,
    thread: Option<JoinHandle<io::Result<()>>>,
    /// Items that were left out since the last that was taken.
    pub(super) skipped: u64,
}

impl<T: Send + 'static> Beside<T> {
    /// Starts it; so many items may wait.
    pub(super) fn start(
        waiting: usize,
        mut show: impl FnMut(T) -> io::Result<()> + Send + 'static,
    ) -> io::Result<Self> {
        let (items, taken) = sync_channel(waiting);
        let run = move || taken.into_iter().try_for_each(&mut show);
        let thread = std::thread::Builder::new().name("output".to_owned()).spawn(run)?;
        Ok(Self { items: Some(items), thread: Some(thread), skipped: 0 })
    }

    /// Shows an item, or leaves it out and counts it if those before are not shown yet.
    ///
    /// # Errors
    /// What ended the thread.
    pub(super) fn offer(&mut self, item: T) -> io::Result<()> {
        match self.items.as_ref().map(|items| items.try_send(item)) {
            Some(Ok(())) => self.skipped = 0,
            Some(Err(TrySendError::Full(_))) => self.skipped += 1,
            Some(Err(TrySendError::Disconnected(_))) | None => return self.end(),
        }
        Ok(())
    }

    /// Shows an item, whatever time that takes.
    ///
    /// # Errors
    /// As above.
    pub(super) fn show(&mut self, item: T) -> io::Result<()> {
        match self.items.as_ref().map(|items| items.send(item)) {
            Some(Ok(())) => Ok(()),
            Some(Err(_)) | None => self.end(),
        }
    }

    /// Waits until all is shown.
    ///
    /// # Errors
    /// What ended the thread before.
    pub(super) fn end(&mut self) -> io::Result<()> {
        self.items = None;
        let shown = self.thread.take().map(JoinHandle::join);
        shown.unwrap_or(Ok(Ok(()))).unwrap_or_else(|_| Err(io::Error::other("the thread for output has ended")))
    }

    /// Waits for that, but not for long.
    pub(super) fn end_soon(&mut self) {
        self.items = None;
        let deadline = Instant::now() + PATIENCE;
        while self.thread.as_ref().is_some_and(|thread| !thread.is_finished()) && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn who_offers_never_waits_and_who_shows_loses_nothing() {
        let (go, goes) = channel::<()>();
        let (shows, shown) = channel();
        let show = move |item: u32| {
            goes.recv().unwrap();
            shows.send(item).unwrap();
            Ok(())
        };
        let mut beside = Beside::start(2, show).unwrap();
        let begun = Instant::now();
        (0..1000).for_each(|item| beside.offer(item).unwrap());
        assert!(begun.elapsed() < Duration::from_secs(5) && beside.skipped >= 997, "{}", beside.skipped);
        for _ in 0..1000 {
            let _ = go.send(());
        }
        beside.show(7).unwrap();
        beside.end().unwrap();
        let all: Vec<u32> = shown.iter().collect();
        assert_eq!((all[0], all.last()), (0, Some(&7)));
    }

    #[test]
    fn an_error_is_returned_by_the_next_offer() {
        let mut beside = Beside::start(1, |_: u8| Err(io::ErrorKind::BrokenPipe.into())).unwrap();
        let error = (0..1000).find_map(|_| {
            std::thread::sleep(Duration::from_millis(1));
            beside.offer(1).err()
        });
        assert_eq!(error.map(|error| error.kind()), Some(io::ErrorKind::BrokenPipe));
    }
}
