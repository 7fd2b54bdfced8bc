//! A window of an X server that shows the frames. What is drawn stays where it is without a window; the server gets copies.

use std::borrow::Cow;
use std::io;

use anytrace_core::Error;
use x11rb::connection::Connection;
use x11rb::image::{BitsPerPixel, Image as Pixmap, ImageOrder, ScanlinePad};
use x11rb::protocol::Event;
use x11rb::protocol::xproto::{
    AtomEnum, ConfigureWindowAux, ConnectionExt, CreateGCAux, CreateWindowAux, EventMask, Gcontext, PropMode, Screen,
    WindowClass,
};
use x11rb::rust_connection::RustConnection;
use x11rb::wrapper::ConnectionExt as _;

use crate::pixels::Image;

/// Shows pictures.
pub(crate) struct Window {
    connection: RustConnection,
    window: u32,
    context: Gcontext,
    depth: u8,
    size: (u16, u16),
    /// What the window manager sends when the user closes the window.
    close: u32,
    is_closed: bool,
    /// The frame that is shown.
    shown: Option<Image>,
}

fn failed(error: impl std::fmt::Display) -> Error {
    Error::io("--window", io::Error::other(format!("the X server (DISPLAY): {error}")))
}

impl Window {
    /// Opens a window on the display that `DISPLAY` names.
    ///
    /// # Errors
    /// There is none, or it has no 24-bit colors.
    pub(crate) fn open(title: &str) -> Result<Self, Error> {
        let (connection, number) = RustConnection::connect(None).map_err(failed)?;
        let screen: &Screen = connection.setup().roots.get(number).ok_or_else(|| failed("it has no screen"))?;
        let (root, depth, visual) = (screen.root, screen.root_depth, screen.root_visual);
        if !matches!(depth, 24 | 32) {
            return Err(failed(format_args!("its screen has {depth} bits a pixel, not 24")));
        }
        let window = connection.generate_id().map_err(failed)?;
        let context = connection.generate_id().map_err(failed)?;
        let how = CreateWindowAux::new().event_mask(EventMask::EXPOSURE | EventMask::KEY_PRESS);
        connection
            .create_window(depth, window, root, 0, 0, 1, 1, 0, WindowClass::INPUT_OUTPUT, visual, &how)
            .map_err(failed)?;
        connection.create_gc(context, window, &CreateGCAux::new()).map_err(failed)?;
        let [protocols, close] = [&b"WM_PROTOCOLS"[..], b"WM_DELETE_WINDOW"].map(|name| {
            let cookie = connection.intern_atom(false, name).map_err(failed)?;
            Ok::<_, Error>(cookie.reply().map_err(failed)?.atom)
        });
        let (protocols, close) = (protocols?, close?);
        connection.change_property32(PropMode::REPLACE, window, protocols, AtomEnum::ATOM, &[close]).map_err(failed)?;
        connection
            .change_property8(PropMode::REPLACE, window, AtomEnum::WM_NAME, AtomEnum::STRING, title.as_bytes())
            .map_err(failed)?;
        let (size, is_closed, shown) = ((1, 1), false, None);
        Ok(Self { connection, window, context, depth, size, close, is_closed, shown })
    }

    /// Shows a picture; the window gets its size.
    pub(crate) fn show(&mut self, image: Image) -> Result<(), Error> {
        let side = |length: u32| u16::try_from(length).unwrap_or(u16::MAX).max(1);
        let size = (side(image.width), side(image.height));
        if self.size != size {
            let how = ConfigureWindowAux::new().width(u32::from(size.0)).height(u32::from(size.1));
            self.connection.configure_window(self.window, &how).map_err(failed)?;
            if self.shown.is_none() {
                self.connection.map_window(self.window).map_err(failed)?;
            }
            self.size = size;
        }
        self.shown = Some(image);
        self.put()?;
        self.look()
    }

    /// Waits until the user closes the window, or presses Escape or q.
    pub(crate) fn wait(&mut self) -> Result<(), Error> {
        while !self.is_closed && self.shown.is_some() {
            let event = self.connection.wait_for_event().map_err(failed)?;
            self.take(&event)?;
        }
        Ok(())
    }

    /// Whether the user closed it.
    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Takes what happened meanwhile.
    fn look(&mut self) -> Result<(), Error> {
        while let Some(event) = self.connection.poll_for_event().map_err(failed)? {
            self.take(&event)?;
        }
        Ok(())
    }

    fn take(&mut self, event: &Event) -> Result<(), Error> {
        match event {
            Event::Expose(expose) if expose.count == 0 => self.put()?,
            Event::ClientMessage(message) if message.data.as_data32().first() == Some(&self.close) => {
                self.is_closed = true;
            }
            // Escape and q, where keyboards of PCs have them.
            Event::KeyPress(key) if matches!(key.detail, 9 | 24) => self.is_closed = true,
            Event::DestroyNotify(_) => self.is_closed = true,
            _ => {}
        }
        Ok(())
    }

    /// Copies the picture to the server.
    fn put(&self) -> Result<(), Error> {
        let Some(image) = &self.shown else { return Ok(()) };
        let bytes = of_server(image);
        let (width, height) = self.size;
        let about = (ScanlinePad::Pad32, self.depth, BitsPerPixel::B32, ImageOrder::LsbFirst);
        let pixmap =
            Pixmap::new(width, height, about.0, about.1, about.2, about.3, Cow::Owned(bytes)).map_err(failed)?;
        let pixmap = pixmap.native(self.connection.setup()).map_err(failed)?;
        pixmap.put(&self.connection, self.window, self.context, 0, 0).map_err(failed)?;
        self.connection.flush().map_err(failed)
    }
}

/// Pixels as the servers of today have them: blue, green, red and nothing.
fn of_server(image: &Image) -> Vec<u8> {
    let pixel = |pixel: &[u8]| match *pixel {
        [red, green, blue, ..] => [blue, green, red, 0],
        [gray] => [gray, gray, gray, 0],
        _ => [0; 4],
    };
    image.pixels.chunks_exact(image.channels.max(1)).flat_map(pixel).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pixels_have_the_order_of_the_server() {
        let image = |channels, pixels: &[u8]| Image { width: 1, height: 2, channels, pixels: pixels.to_vec() };
        assert_eq!(of_server(&image(3, &[1, 2, 3, 4, 5, 6])), [3, 2, 1, 0, 6, 5, 4, 0]);
        assert_eq!(of_server(&image(4, &[1, 2, 3, 9, 4, 5, 6, 9])), [3, 2, 1, 0, 6, 5, 4, 0]);
        assert_eq!(of_server(&image(1, &[7, 8])), [7, 7, 7, 0, 8, 8, 8, 0]);
    }
}
