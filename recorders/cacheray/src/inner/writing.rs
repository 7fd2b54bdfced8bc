//! Writing the buffer, and the code addresses beside it.

use std::ptr::null_mut;

use super::{Inner, Phase};
use crate::hot::{self, HOT};
use crate::target::{Fault, Target};
use crate::{loss, record, sys};

impl Inner {
    /// Writes the buffer.
    pub(crate) fn flush(&mut self) {
        self.kept = 0;
        if self.phase != Phase::Running || self.used() == 0 {
            return;
        }
        let mut before = sys::sigset_t::NONE;
        // SAFETY: both sets live during the call. The C library keeps its own signals out of it.
        unsafe { sys::pthread_sigmask(sys::SIG_SETMASK, &sys::sigset_t::ALL, &mut before) };
        let sent = self.open_late().and_then(|()| self.send(&before));
        match sent {
            Ok(()) => self.send_codes(&before, false),
            Err(fault) => self.give_up(fault),
        }
        self.swallow_signals();
        // SAFETY: as above.
        unsafe { sys::pthread_sigmask(sys::SIG_SETMASK, &before, null_mut()) };
    }

    /// Opens the target of a process that shares its parent's options.
    fn open_late(&mut self) -> Result<(), Fault> {
        if self.target.is_none() {
            let to = self.options.as_ref().map(|options| &options.to).ok_or(Fault::Closed)?;
            self.target = Some(Target::open_child(to)?);
        }
        Ok(())
    }

    /// Hands the buffer to the target. `sent` is right whenever a signal can come.
    fn send(&mut self, mask: &sys::sigset_t) -> Result<(), Fault> {
        let used = self.used();
        let target = self.target.as_mut().ok_or(Fault::Closed)?;
        while self.sent < used {
            // SAFETY: the first `used` bytes of the buffer were written, and nobody writes to them while the log is
            // held; they do not overlap `self`.
            let bytes = unsafe { std::slice::from_raw_parts(self.buffer, used) };
            self.sent += target.write_some(bytes.get(self.sent..).unwrap_or(&[]), mask)?;
        }
        self.sent = 0;
        hot::set_head(self.buffer);
        Ok(())
    }

    /// Writes the code addresses of what was sent. Where they cannot be written the trace goes on without them.
    pub(super) fn send_codes(&mut self, mask: &sys::sigset_t, is_last: bool) {
        let Some(codes) = hot::codes() else { return };
        if self.codes_target.is_none() {
            let opened = self.target.as_ref().and_then(Target::beside);
            match opened {
                Some(Ok(target)) => self.codes_target = Some(target),
                Some(Err(fault)) => return self.give_up_codes(fault),
                None => return HOT.codes.set(null_mut()),
            }
        }
        let Some(target) = &mut self.codes_target else { return };
        let mut result = target.write_all(codes.take_magic(), mask);
        codes.modules(is_last, |block| {
            if result.is_ok() {
                result = target.write_all(block, mask);
            }
        });
        if result.is_ok() {
            result = target.write_all(codes.take(), mask);
        }
        if let Err(fault) = result {
            self.give_up_codes(fault);
        }
    }

    #[cold]
    fn give_up_codes(&mut self, fault: Fault) {
        HOT.codes.set(null_mut());
        let text = match fault {
            Fault::Closed => "the file descriptor was closed".to_owned(),
            Fault::Errno(number) => std::io::Error::from_raw_os_error(number).to_string(),
        };
        loss::note(&[b"cannot write the code addresses: ", text.as_bytes(), b"; the rest of them is not recorded"]);
    }

    /// Reports why writing is no longer possible. An incomplete record at the end of a file is cut off again.
    #[cold]
    fn give_up(&mut self, fault: Fault) {
        // SAFETY: as in `send`.
        let bytes = unsafe { std::slice::from_raw_parts(self.buffer, self.used()) };
        if let Some(target) = &self.target {
            target.cut(self.sent - record::complete_bytes(bytes, self.sent));
        }
        match fault {
            Fault::Closed => loss::note(&[b"the trace's file descriptor was closed; the rest is not recorded"]),
            Fault::Errno(number) => {
                let place = self.options.as_ref().map_or_else(String::new, |options| options.to.place());
                let text = std::io::Error::from_raw_os_error(number).to_string();
                loss::note(&[
                    b"cannot write the trace to ",
                    place.as_bytes(),
                    b": ",
                    text.as_bytes(),
                    b"; the rest is not recorded",
                ]);
            }
        }
        self.stop();
    }

    /// Consumes the signals sent to a process that writes to a pipe without a reader, or to a file beyond the limit:
    /// problems of the trace are not the program's fault.
    fn swallow_signals(&self) {
        if self.phase == Phase::Running {
            return;
        }
        let mut set = sys::sigset_t::NONE;
        set.0[0] = 1 << (sys::SIGPIPE - 1) | 1 << (sys::SIGXFSZ - 1);
        let now = sys::timespec { sec: 0, nsec: 0 };
        // SAFETY: both structures live during the call; null is allowed for the second.
        unsafe { sys::sigtimedwait(&set, null_mut(), &now) };
    }
}
