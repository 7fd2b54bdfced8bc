//! Pictures: after which calls, in which form, and where they go.

use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, mpsc};
use std::thread::JoinHandle;

use anytrace_apitrace::tools::callset::CallSet;
use anytrace_apitrace::tools::program::Moment;
use anytrace_core::Error;

use crate::framebuffer::Part;
use crate::pixels::Image;
use crate::sums::Sum;

/// How a picture is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PictureFormat {
    /// PNG.
    #[default]
    Png,
    /// Portable anymap of a byte each, with the call's number as a comment.
    Pnm,
    /// The pixels alone.
    Rgb,
    /// The MD5 sum of the pixels: a line.
    Md5,
}

impl PictureFormat {
    /// What file names end with.
    fn extension(self) -> &'static str {
        match self {
            Self::Png => "png",
            Self::Pnm => "pnm",
            Self::Rgb => "rgb",
            Self::Md5 => "md5",
        }
    }
}

/// Which pictures are taken, and where they go.
#[derive(Debug, Clone)]
pub struct Pictures {
    /// After these calls; before those that end frames.
    pub calls: CallSet,
    /// Of these frames only; `None`: of all.
    pub frames: Option<CallSet>,
    /// Keep the first picture whose sum is not among these, in order of calls and parts.
    pub expected: Option<Vec<Sum>>,
    /// Their form.
    pub format: PictureFormat,
    /// What file names begin with; the number and the extension follow. `None`: standard output.
    pub prefix: Option<PathBuf>,
    /// Write files at all; without, there are only sums.
    pub writes: bool,
    /// Compute the sums, which takes about as long as everything else about a picture that is only written.
    pub has_sums: bool,
    /// Files are named by calls, not by the pictures' own numbers.
    pub by_call: bool,
    /// Keep alpha.
    pub has_alpha: bool,
    /// Only every n-th picture is taken; 0: all.
    pub interval: u64,
    /// The drawable of a context, even while a framebuffer object is drawn to.
    pub is_window: bool,
    /// All color buffers that are drawn to, depth and stencil: a picture each.
    pub has_parts: bool,
    /// Threads that compress.
    pub jobs: usize,
    /// Replace files.
    pub force: bool,
}

impl Default for Pictures {
    fn default() -> Self {
        Self {
            calls: crate::every_frame(),
            frames: None,
            expected: None,
            format: PictureFormat::Png,
            prefix: None,
            writes: false,
            has_sums: true,
            by_call: true,
            has_alpha: false,
            interval: 0,
            is_window: false,
            has_parts: false,
            jobs: 1,
            force: false,
        }
    }
}

/// Writes an image.
pub(crate) fn write(out: &mut dyn Write, format: PictureFormat, call: u64, image: &Image) -> io::Result<()> {
    match format {
        PictureFormat::Png => {
            let mut encoder = png::Encoder::new(out, image.width, image.height);
            encoder.set_color(match image.channels {
                1 => png::ColorType::Grayscale,
                4 => png::ColorType::Rgba,
                _ => png::ColorType::Rgb,
            });
            encoder.set_depth(png::BitDepth::Eight);
            encoder.set_compression(png::Compression::Fast);
            let mut writer = encoder.write_header()?;
            writer.write_image_data(&image.pixels)?;
            Ok(writer.finish()?)
        }
        PictureFormat::Pnm => {
            let (width, height) = (image.width, image.height);
            if image.channels == 4 {
                write!(out, "P7\n#{call}\nWIDTH {width}\nHEIGHT {height}\nDEPTH 4\nMAXVAL 255\n")?;
                write!(out, "TUPLTYPE RGB_ALPHA\nENDHDR\n")?;
            } else {
                let kind = if image.channels == 1 { 5 } else { 6 };
                write!(out, "P{kind}\n#{call}\n{width} {height}\n255\n")?;
            }
            out.write_all(&image.pixels)
        }
        PictureFormat::Rgb => out.write_all(&image.pixels),
        PictureFormat::Md5 => writeln!(out, "{}", image.sum()),
    }
}

/// Takes pictures to where they go.
pub(crate) struct Gallery {
    how: Pictures,
    seen: u64,
    taken: u64,
    sums: Vec<Sum>,
    /// The first picture that is not as expected.
    other: Option<(Sum, Image)>,
    queue: Option<mpsc::SyncSender<Job>>,
    workers: Vec<JoinHandle<()>>,
    failure: Arc<Mutex<Option<Error>>>,
}

struct Job {
    path: PathBuf,
    format: PictureFormat,
    call: u64,
    image: Image,
    force: bool,
}

impl Job {
    /// The file appears when all of it is written.
    fn write(&self) -> Result<(), Error> {
        let failed = |error: io::Error| Error::io(format!("cannot write {}", self.path.display()), error);
        let folder = self.path.parent().filter(|path| !path.as_os_str().is_empty()).unwrap_or(".".as_ref());
        let mut builder = tempfile::Builder::new();
        builder.prefix(".anytrace-").suffix(".tmp");
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
        let file = builder.tempfile_in(folder).map_err(failed)?;
        let mut out = io::BufWriter::with_capacity(1 << 16, file);
        write(&mut out, self.format, self.call, &self.image).map_err(failed)?;
        let file = out.into_inner().map_err(|error| failed(error.into_error()))?;
        if self.force {
            file.persist(&self.path).map_err(|error| failed(error.error))?;
            return Ok(());
        }
        file.persist_noclobber(&self.path).map_err(|error| match error.error.kind() {
            io::ErrorKind::AlreadyExists => {
                Error::usage(format!("{} exists; --force replaces it", self.path.display()))
            }
            _ => failed(error.error),
        })?;
        Ok(())
    }
}

impl Gallery {
    pub(crate) fn new(how: Pictures) -> Self {
        let mut this = Self {
            seen: 0,
            taken: 0,
            sums: Vec::new(),
            other: None,
            queue: None,
            workers: Vec::new(),
            failure: Arc::default(),
            how,
        };
        if this.how.writes && this.how.prefix.is_some() {
            let jobs = this.how.jobs.clamp(1, 64);
            let (sender, receiver) = mpsc::sync_channel::<Job>(jobs * 2);
            let receiver = Arc::new(Mutex::new(receiver));
            for _ in 0..jobs {
                let (receiver, failure) = (Arc::clone(&receiver), Arc::clone(&this.failure));
                this.workers.push(std::thread::spawn(move || work(&receiver, &failure)));
            }
            this.queue = Some(sender);
        }
        this
    }

    /// True when a picture belongs to the call.
    pub(crate) fn wants(&mut self, moment: &Moment) -> bool {
        let is_frame = self.how.frames.as_ref().is_none_or(|frames| frames.has(moment.frame, moment.flags));
        if !is_frame || !self.how.calls.has(moment.number, moment.flags) {
            return false;
        }
        let number = self.seen;
        self.seen += 1;
        self.how.interval == 0 || number.is_multiple_of(self.how.interval)
    }

    pub(crate) fn how(&self) -> &Pictures {
        &self.how
    }

    /// True when pictures of a context must have alpha: where it is kept, and for OpenGL ES where apitrace's players
    /// write pixels or their sums, and keep it.
    pub(crate) fn needs_alpha(&self, is_es: bool) -> bool {
        let is_raw = matches!(self.how.format, PictureFormat::Rgb | PictureFormat::Md5);
        self.how.has_alpha || is_es && is_raw && self.how.writes && self.how.prefix.is_none()
    }

    /// Takes a picture. `out`: for those that go to no file.
    pub(crate) fn take(&mut self, moment: &Moment, part: Part, image: Image, out: &mut dyn Write) -> Result<(), Error> {
        if let Some(error) = self.failure.lock().ok().and_then(|mut failure| failure.take()) {
            return Err(error);
        }
        self.taken += 1;
        if self.how.has_sums {
            self.add_sum(moment, part, &image);
        }
        if !self.how.writes {
            return Ok(());
        }
        let Some(prefix) = &self.how.prefix else {
            let wrote = write(out, self.how.format, moment.number, &image).and_then(|()| out.flush());
            return wrote.map_err(|error| Error::io("standard output", error));
        };
        let number = if self.how.by_call { moment.number } else { self.seen - 1 };
        let mut path = prefix.as_os_str().to_owned();
        let part = part.name().map_or(String::new(), |name| format!("-{name}"));
        path.push(format!("{number:010}{part}.{}", self.how.format.extension()));
        let job = Job { path: path.into(), format: self.how.format, call: moment.number, image, force: self.how.force };
        if let Some(queue) = &self.queue {
            // It is closed only when all workers ended.
            let _ = queue.send(job);
        }
        Ok(())
    }

    fn add_sum(&mut self, moment: &Moment, part: Part, image: &Image) {
        let md5 = if self.how.has_alpha { image.sum() } else { image.sum_without_alpha() };
        let (width, height) = (image.width, image.height);
        let sum = Sum { call: moment.number, part, frame: moment.frame, width, height, md5 };
        if self.other.is_none()
            && let Some(expected) = &self.how.expected
            && let Ok(at) = expected.binary_search_by_key(&(sum.call, part), |sum| (sum.call, sum.part))
            && expected.get(at).is_some_and(|expected| !expected.is_same(&sum))
        {
            self.other = Some((sum.clone(), image.clone()));
        }
        self.sums.push(sum);
    }

    /// How many pictures were taken.
    pub(crate) fn taken(&self) -> u64 {
        self.taken
    }

    /// The first picture that is not as expected, as PNG.
    pub(crate) fn other(&mut self) -> Option<(Sum, Vec<u8>)> {
        let (sum, image) = self.other.take()?;
        let mut bytes = Vec::new();
        write(&mut bytes, PictureFormat::Png, sum.call, &image).ok()?;
        Some((sum, bytes))
    }

    /// Waits until all pictures are written. Returns their sums.
    pub(crate) fn finish(&mut self) -> Result<Vec<Sum>, Error> {
        self.queue = None;
        for worker in self.workers.drain(..) {
            let _ = worker.join();
        }
        match self.failure.lock().ok().and_then(|mut failure| failure.take()) {
            Some(error) => Err(error),
            None => Ok(std::mem::take(&mut self.sums)),
        }
    }
}

fn work(receiver: &Mutex<mpsc::Receiver<Job>>, failure: &Mutex<Option<Error>>) {
    loop {
        let Ok(Ok(job)) = receiver.lock().map(|receiver| receiver.recv()) else { return };
        if let Err(error) = job.write()
            && let Ok(mut place) = failure.lock()
        {
            place.get_or_insert(error);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]
    use super::*;

    fn image() -> Image {
        Image { width: 2, height: 1, channels: 3, pixels: b"abcdef".to_vec() }
    }

    fn written(format: PictureFormat) -> Vec<u8> {
        let mut out = Vec::new();
        write(&mut out, format, 39, &image()).unwrap();
        out
    }

    #[test]
    fn each_format_has_the_pixels() {
        assert_eq!(written(PictureFormat::Pnm), b"P6\n#39\n2 1\n255\nabcdef");
        assert_eq!(written(PictureFormat::Rgb), b"abcdef");
        // md5sum of "abcdef".
        assert_eq!(written(PictureFormat::Md5), b"E80B5017098950FC58AAD83C8C14978E\n");
        let bytes = written(PictureFormat::Png);
        let mut reader = png::Decoder::new(io::Cursor::new(bytes)).read_info().unwrap();
        let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
        reader.next_frame(&mut pixels).unwrap();
        assert_eq!(pixels, b"abcdef");
    }

    #[test]
    fn files_are_named_by_calls_and_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let how = Pictures { prefix: Some(folder.path().join("f-")), writes: true, ..Pictures::default() };
        let moment = Moment { number: 39, flags: Default::default(), frame: 2, extent: (0, 0) };
        let mut out = Vec::new();
        let mut gallery = Gallery::new(how.clone());
        gallery.take(&moment, Part::Drawn, image(), &mut out).unwrap();
        let sums = gallery.finish().unwrap();
        assert_eq!((sums.len(), sums.first().map(|sum| (sum.call, sum.frame))), (1, Some((39, 2))));
        assert!(folder.path().join("f-0000000039.png").exists());
        let mut gallery = Gallery::new(how);
        gallery.take(&moment, Part::Drawn, image(), &mut out).unwrap();
        assert!(gallery.finish().unwrap_err().to_string().contains("--force replaces it"));
    }
}
