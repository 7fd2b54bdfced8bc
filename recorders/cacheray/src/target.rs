//! Where the bytes go: a file, a descriptor that was handed down, a FIFO, a socket.

use std::ffi::{CString, c_int, c_long};
use std::fs::FileType;
use std::net::TcpStream;
use std::os::fd::IntoRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixStream;

use crate::options::Destination;
use crate::sys;

/// An open target.
#[derive(Debug)]
pub(crate) struct Target {
    fd: c_int,
    kind: TargetKind,
    /// The identity of the descriptor when it was opened: programs close unknown descriptors, and get the number again
    /// for a file of their own.
    dev: u64,
    ino: u64,
    /// Where a file can be opened again.
    path: Option<CString>,
}

/// How to write to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TargetKind {
    File,
    Pipe,
    Socket,
    Other,
}

/// Why writing is no longer possible.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The descriptor is closed or is something else by now.
    Closed,
    /// The system's error number.
    Errno(c_int),
}

impl Target {
    /// Opens what the options name. A FIFO waits for its reader; a file that is a socket is connected to.
    pub(crate) fn open(to: &Destination) -> Result<Self, Fault> {
        match to {
            Destination::File(path) if is_socket(path) => Self::open(&Destination::Unix(path.clone())),
            Destination::File(path) => {
                Self::file(CString::new(absolute(path)).map_err(|_| Fault::Errno(sys::EINVAL))?, sys::O_TRUNC)
            }
            Destination::Fd(fd) => Self::of(*fd, None),
            Destination::Unix(path) => {
                let path = std::path::Path::new(std::ffi::OsStr::from_bytes(path));
                Self::of(out_of_the_way(UnixStream::connect(path).map_err(fault)?.into_raw_fd()), None)
            }
            Destination::Tcp(host, port) => {
                let host = std::str::from_utf8(host).map_err(|_| Fault::Errno(sys::EINVAL))?;
                Self::of(out_of_the_way(TcpStream::connect((host, *port)).map_err(fault)?.into_raw_fd()), None)
            }
        }
    }

    /// Opens it when the recording begins; `None` where it waits for the first record. A child is a process whose parent
    /// is recorded too.
    pub(crate) fn open_first(to: &Destination, is_child: bool) -> Result<Option<Self>, Fault> {
        match to {
            _ if !is_child => Self::open(to).map(Some),
            Destination::File(_) if may_open_again(to) => Self::open(to).map(Some),
            Destination::File(path) if is_stream(path) => Err(Fault::Closed),
            Destination::File(_) => Ok(None),
            Destination::Fd(_) => Err(Fault::Closed),
            Destination::Unix(_) | Destination::Tcp(..) => Self::open(to).map(Some),
        }
    }

    /// Opens that of a process whose parent is recorded too.
    pub(crate) fn open_child(to: &Destination) -> Result<Self, Fault> {
        match to {
            Destination::File(path) if !may_open_again(to) => {
                // SAFETY: asks for a number.
                Self::open_beside(path, unsafe { sys::getpid() })
            }
            _ => Self::open(to),
        }
    }

    /// Opens a file that must not exist yet: `PATH.PID`, or with a further number where that is taken.
    fn open_beside(path: &[u8], pid: c_int) -> Result<Self, Fault> {
        const EEXIST: c_int = 17;
        let base = absolute(path);
        for n in 0..10_000 {
            let mut name = base.clone();
            name.extend_from_slice(format!(".{pid}").as_bytes());
            if n > 0 {
                name.extend_from_slice(format!(".{n}").as_bytes());
            }
            match Self::file(CString::new(name).map_err(|_| Fault::Errno(sys::EINVAL))?, sys::O_EXCL) {
                Err(Fault::Errno(EEXIST)) => {}
                other => return other,
            }
        }
        Err(Fault::Errno(EEXIST))
    }

    fn file(path: CString, how: c_int) -> Result<Self, Fault> {
        let flags = sys::O_WRONLY | sys::O_CREAT | sys::O_CLOEXEC | how;
        // SAFETY: the path ends in a zero byte and lives during the call.
        let fd = unsafe { sys::open(path.as_ptr(), flags, 0o666) };
        if fd < 0 { Err(Fault::Errno(sys::errno())) } else { Self::of(out_of_the_way(fd), Some(path)) }
    }

    fn of(fd: c_int, path: Option<CString>) -> Result<Self, Fault> {
        let found = stat(fd)?;
        let kind = match found.mode & sys::S_IFMT {
            sys::S_IFREG => TargetKind::File,
            sys::S_IFIFO => TargetKind::Pipe,
            sys::S_IFSOCK => TargetKind::Socket,
            _ => TargetKind::Other,
        };
        Ok(Self { fd, kind, dev: found.dev, ino: found.ino, path })
    }

    /// Opens a file with the code addresses of the accesses, `PATH.pc`; `None` where the target is no file with a name.
    pub(crate) fn beside(&self) -> Option<Result<Self, Fault>> {
        let path = self.path.as_ref().filter(|_| self.is_file())?;
        let name = [path.to_bytes(), b".pc"].concat();
        Some(CString::new(name).map_err(|_| Fault::Errno(sys::EINVAL)).and_then(|path| Self::file(path, sys::O_TRUNC)))
    }

    /// True where another process can have a file of its own beside this one.
    pub(crate) fn is_file(&self) -> bool {
        self.kind == TargetKind::File
    }

    /// True where writing may take as long as the reader likes.
    fn is_slow(&self) -> bool {
        matches!(self.kind, TargetKind::Pipe | TargetKind::Socket)
    }

    /// Leaves the descriptor to the process that opened it. Called in the child of a fork.
    pub(crate) fn leave(self) {
        if self.path.is_some() {
            // SAFETY: the descriptor is this process's copy, and `self` ends here.
            unsafe { sys::close(self.fd) };
        }
    }

    /// Writes some of the bytes and says how many. Signals are blocked by the caller; while a slow target is
    /// waited for, those outside `mask` come through.
    pub(crate) fn write_some(&mut self, bytes: &[u8], mask: &sys::sigset_t) -> Result<usize, Fault> {
        self.look()?;
        if self.is_slow() {
            self.wait(mask)?;
        }
        let n = match self.kind {
            // SAFETY: `bytes` lives during the call; a raw call, as the C library's is a cancellation point, and a
            // thread cancelled here would hold the log for ever.
            TargetKind::Socket => unsafe {
                let flags = sys::MSG_DONTWAIT | sys::MSG_NOSIGNAL;
                sys::syscall(
                    SYS_SENDTO,
                    self.fd as c_long,
                    bytes.as_ptr(),
                    bytes.len(),
                    flags as c_long,
                    0_usize,
                    0_usize,
                )
            },
            // SAFETY: as above. A pipe that can be written to takes 4,096 bytes without waiting.
            TargetKind::Pipe => unsafe {
                sys::syscall(sys::SYS_WRITE, self.fd as c_long, bytes.as_ptr(), bytes.len().min(4096))
            },
            // SAFETY: as above.
            TargetKind::File | TargetKind::Other => unsafe {
                sys::syscall(sys::SYS_WRITE, self.fd as c_long, bytes.as_ptr(), bytes.len())
            },
        };
        match usize::try_from(n) {
            Ok(n) => Ok(n),
            Err(_) => match sys::errno() {
                sys::EINTR | sys::EAGAIN => Ok(0),
                other => Err(Fault::Errno(other)),
            },
        }
    }

    /// Writes all of the bytes to a file.
    pub(crate) fn write_all(&mut self, bytes: &[u8], mask: &sys::sigset_t) -> Result<(), Fault> {
        let mut sent = 0;
        while let Some(rest) = bytes.get(sent..).filter(|rest| !rest.is_empty()) {
            sent += self.write_some(rest, mask)?;
        }
        Ok(())
    }

    /// Waits until the target takes bytes.
    fn wait(&self, mask: &sys::sigset_t) -> Result<(), Fault> {
        let mut poll = sys::pollfd { fd: self.fd, events: sys::POLLOUT, revents: 0 };
        // The kernel's signal sets have 8 bytes.
        // SAFETY: both structures live during the call, and the lengths given are theirs.
        let n = unsafe { sys::syscall(SYS_PPOLL, &raw mut poll, 1_usize, 0_usize, std::ptr::from_ref(mask), 8_usize) };
        if n < 0 && sys::errno() != sys::EINTR { Err(Fault::Errno(sys::errno())) } else { Ok(()) }
    }

    /// Sees whether the descriptor is still the one that was opened; a file is opened again where it is not.
    fn look(&mut self) -> Result<(), Fault> {
        if stat(self.fd).is_ok_and(|now| (now.dev, now.ino) == (self.dev, self.ino)) {
            return Ok(());
        }
        let path = self.path.take().filter(|_| self.kind == TargetKind::File).ok_or(Fault::Closed)?;
        // SAFETY: the path ends in a zero byte and lives during the call.
        let fd = unsafe { sys::open(path.as_ptr(), sys::O_WRONLY | sys::O_APPEND | sys::O_CLOEXEC) };
        let again = Self::of(fd, Some(path)).map_err(|_| Fault::Closed)?;
        if (again.dev, again.ino) != (self.dev, self.ino) {
            again.leave();
            return Err(Fault::Closed);
        }
        *self = again;
        Ok(())
    }

    /// Cuts the last `bytes` off a file: the part of a record that could not be finished.
    pub(crate) fn cut(&self, bytes: usize) {
        const SEEK_END: c_long = 2;
        if self.kind != TargetKind::File || bytes == 0 {
            return;
        }
        // SAFETY: works on numbers only; the descriptor was looked at before this write.
        let end = unsafe { sys::syscall(SYS_LSEEK, self.fd as c_long, 0_usize, SEEK_END) };
        if let Some(len) = end.checked_sub_unsigned(bytes as u64).filter(|len| *len >= 0) {
            // SAFETY: as above.
            unsafe { sys::ftruncate(self.fd, len) };
        }
    }
}

const SYS_LSEEK: c_long = 8;
const SYS_SENDTO: c_long = 44;
const SYS_PPOLL: c_long = 271;

/// Moves a descriptor of ours to a high number, as programs expect theirs to begin at 3.
fn out_of_the_way(fd: c_int) -> c_int {
    // SAFETY: works on numbers only.
    let high = unsafe { sys::fcntl(fd, sys::F_DUPFD_CLOEXEC, 600) };
    if high < 0 {
        return fd;
    }
    // SAFETY: `fd` was opened by the caller, who continues with the number that is returned.
    unsafe { sys::close(fd) };
    high
}

/// True for what several processes can write to without harm: devices, and sockets, to which each connects separately.
pub(crate) fn may_open_again(to: &Destination) -> bool {
    match to {
        Destination::File(path) => is_a(path, |kind| kind.is_char_device() || kind.is_socket()),
        Destination::Unix(_) | Destination::Tcp(..) => true,
        Destination::Fd(_) => false,
    }
}

/// True for the name of a socket, which cannot be opened as a file.
fn is_socket(path: &[u8]) -> bool {
    is_a(path, FileTypeExt::is_socket)
}

fn is_stream(path: &[u8]) -> bool {
    is_a(path, FileTypeExt::is_fifo)
}

fn is_a(path: &[u8], of_kind: impl FnOnce(&FileType) -> bool) -> bool {
    let path = std::ffi::OsStr::from_bytes(path);
    std::fs::metadata(path).is_ok_and(|meta| of_kind(&meta.file_type()))
}

fn stat(fd: c_int) -> Result<sys::stat_t, Fault> {
    let mut found = sys::stat_t::EMPTY;
    // SAFETY: `found` has at least the size of the C library's structure.
    if unsafe { sys::fstat(fd, &mut found) } != 0 { Err(Fault::Errno(sys::errno())) } else { Ok(found) }
}

fn fault(error: std::io::Error) -> Fault {
    Fault::Errno(error.raw_os_error().unwrap_or(sys::EINVAL))
}

/// The path made absolute: the program may change its directory before it forks.
fn absolute(path: &[u8]) -> Vec<u8> {
    let path = std::path::Path::new(std::ffi::OsStr::from_bytes(path));
    let full = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    full.into_os_string().into_encoded_bytes()
}
