//! What the machine shows of its work: pictures, the film strip.

use anytrace_apitrace::tools::flags::CallFlags;
use anytrace_apitrace::tools::program::Moment;
use anytrace_core::Error;

use super::{Driver, PEER_SMALLEST, error_name};
use crate::Sizes;
use crate::framebuffer::{NoImage, Part, Reading, Source};

impl Driver<'_> {
    /// What is read of the current context; `None` where nothing can be.
    fn source(&self, moment: &Moment) -> Option<Source> {
        let (number, drawable) = self.current?;
        let context = self.contexts.get(number as usize).filter(|context| !context.is_inside)?;
        let known = self.sizes.get(drawable).copied().unwrap_or_default();
        Some(Source {
            is_es: context.asked.is_es,
            major: context.asked.version.0,
            window_buffer: context.window_buffer,
            size: match self.options.sizes {
                Sizes::Right => known.size(),
                Sizes::Peer => (moment.extent.0.max(PEER_SMALLEST), moment.extent.1.max(PEER_SMALLEST)),
            },
            is_window: false,
            has_alpha: false,
        })
    }

    /// Shows what is wanted of a moment.
    pub(super) fn look(&mut self, moment: &Moment) -> Result<(), Error> {
        if self.gallery.is_some() {
            self.picture(moment)?;
        }
        if self.film.is_some() {
            self.film(moment);
        }
        if self.window.is_some() && moment.flags.has(CallFlags::END_FRAME) {
            self.show(moment)?;
        }
        if self.options.state_at == Some(moment.number) {
            self.read_state(moment);
        }
        Ok(())
    }

    /// Takes the pictures of a moment that are wanted.
    fn picture(&mut self, moment: &Moment) -> Result<(), Error> {
        let Some(source) = self.source(moment) else { return Ok(()) };
        let (Some(gallery), Some(gl)) = (&mut self.gallery, &self.gl) else { return Ok(()) };
        if !gallery.wants(moment) {
            return Ok(());
        }
        self.watch.at(moment.number, "(the picture)");
        let (is_window, has_parts) = (gallery.how().is_window, gallery.how().has_parts);
        let reading = Reading::begin(gl, Source { is_window, has_alpha: gallery.needs_alpha(source.is_es), ..source });
        let parts = if has_parts { reading.parts() } else { vec![Part::Drawn] };
        let mut missing = Vec::new();
        for part in parts {
            match reading.part(part) {
                Ok(image) => gallery.take(moment, part, image, &mut *self.out)?,
                Err(why) => missing.push((part, why)),
            }
        }
        reading.end();
        for (part, why) in missing {
            let why = match why {
                NoImage::NoSize => "nothing of a known size is attached".to_owned(),
                NoImage::Refused(code) => format!("the framebuffer cannot be read: {}", error_name(code)),
            };
            let of = part.name().map_or(String::new(), |name| format!(" of {name}"));
            self.note(format!("call {}: no picture{of}: {why}", moment.number));
        }
        Ok(())
    }

    /// Adds a moment to the film strip.
    fn film(&mut self, moment: &Moment) {
        let source = self.source(moment);
        let Some(film) = &mut self.film else { return };
        let ends = moment.flags.has(CallFlags::END_FRAME);
        if let (Some(gl), Some(_), true) = (&self.gl, self.current, ends) {
            // Until the device has drawn it, the frame is not done.
            gl.finish();
        }
        if film.add(moment)
            && let (Some(source), Some(gl)) = (source, &self.gl)
        {
            self.watch.at(moment.number, "(the picture)");
            let reading = Reading::begin(gl, Source { is_window: true, ..source });
            let image = reading.part(Part::Drawn);
            reading.end();
            if let Ok(image) = image {
                film.picture(&image);
            }
        }
        if ends {
            film.begin();
        }
    }

    /// Shows the frame in the window.
    fn show(&mut self, moment: &Moment) -> Result<(), Error> {
        let source = self.source(moment);
        let (Some(window), Some(source), Some(gl)) = (&mut self.window, source, &self.gl) else { return Ok(()) };
        self.watch.at(moment.number, "(the picture)");
        let reading = Reading::begin(gl, Source { is_window: true, ..source });
        let image = reading.part(Part::Drawn);
        reading.end();
        if let Ok(image) = image {
            window.show(image)?;
        }
        Ok(())
    }

    /// Reads the driver's state.
    fn read_state(&mut self, moment: &Moment) {
        let Some(source) = self.source(moment) else {
            self.note(format!("call {}: no state: no context is current, or glBegin was not ended", moment.number));
            return;
        };
        let Some(gl) = &self.gl else { return };
        self.watch.at(moment.number, "(the state)");
        self.state = Some(crate::state::dump(&self.screen, gl, source));
    }
}
