//! Frames as a film strip: what each costs and how it looks, small.

use std::time::Instant;

use anytrace_apitrace::tools::flags::CallFlags;
use anytrace_apitrace::tools::program::Moment;

use crate::pictures::{PictureFormat, write};
use crate::pixels::Image;

/// How a film strip is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Strip {
    /// Pixels of the longer side of a picture, at most.
    pub side: u32,
    /// Pictures at most: of more frames every second has one, or every fourth, and so on.
    pub most: usize,
}

/// A frame.
#[derive(Debug, Clone, PartialEq)]
pub struct Frame {
    /// Its number, from 0.
    pub number: u64,
    /// Its first call and the one that ends it.
    pub calls: (u64, u64),
    /// How many calls it has.
    pub count: u64,
    /// How many of them draw.
    pub draws: u64,
    /// Seconds until the device had drawn it.
    pub seconds: f64,
    /// Its picture, as PNG, with its size in pixels.
    pub picture: Option<(u32, u32, Vec<u8>)>,
}

/// A film strip that is made.
#[derive(Debug)]
pub(crate) struct Film {
    how: Strip,
    frames: Vec<Frame>,
    /// Every so many frames have a picture.
    stride: u64,
    pictures: usize,
    first: Option<u64>,
    count: u64,
    draws: u64,
    started: Instant,
}

impl Film {
    pub(crate) fn new(how: Strip) -> Self {
        Self {
            how,
            frames: Vec::new(),
            stride: 1,
            pictures: 0,
            first: None,
            count: 0,
            draws: 0,
            started: Instant::now(),
        }
    }

    /// A call was repeated. True when it ends a frame whose picture is wanted.
    pub(crate) fn add(&mut self, moment: &Moment) -> bool {
        self.first.get_or_insert(moment.number);
        self.count += 1;
        self.draws += u64::from(moment.flags.has(CallFlags::RENDER));
        if !moment.flags.has(CallFlags::END_FRAME) {
            return false;
        }
        let first = self.first.take().unwrap_or(moment.number);
        self.frames.push(Frame {
            number: moment.frame,
            calls: (first, moment.number),
            count: std::mem::take(&mut self.count),
            draws: std::mem::take(&mut self.draws),
            seconds: self.started.elapsed().as_secs_f64(),
            picture: None,
        });
        moment.frame.is_multiple_of(self.stride)
    }

    /// The picture of the last frame.
    pub(crate) fn picture(&mut self, image: &Image) {
        let small = image.smaller(self.how.side);
        let mut bytes = Vec::new();
        // Writing to memory does not fail.
        if write(&mut bytes, PictureFormat::Png, 0, &small).is_err() {
            return;
        }
        if self.pictures >= self.how.most.max(1) {
            self.stride *= 2;
            for frame in self.frames.iter_mut().filter(|frame| !frame.number.is_multiple_of(self.stride)) {
                self.pictures -= usize::from(frame.picture.take().is_some());
            }
        }
        let stride = self.stride;
        if let Some(frame) = self.frames.last_mut().filter(|frame| frame.number.is_multiple_of(stride)) {
            frame.picture = Some((small.width, small.height, bytes));
            self.pictures += 1;
        }
    }

    /// The next frame begins.
    pub(crate) fn begin(&mut self) {
        self.started = Instant::now();
    }

    pub(crate) fn finish(self) -> Vec<Frame> {
        self.frames
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]
    use super::*;

    #[test]
    fn of_many_frames_every_second_or_fourth_keeps_its_picture() {
        let mut film = Film::new(Strip { side: 8, most: 4 });
        let image = Image { width: 16, height: 8, channels: 3, pixels: vec![9; 16 * 8 * 3] };
        for frame in 0..9 {
            let moment = |number, flags| Moment { number, flags, frame, extent: (0, 0) };
            assert!(!film.add(&moment(frame * 2, CallFlags::RENDER)));
            if film.add(&moment(frame * 2 + 1, CallFlags::END_FRAME)) {
                film.picture(&image);
            }
            film.begin();
        }
        let frames = film.finish();
        let with: Vec<u64> = frames.iter().filter(|frame| frame.picture.is_some()).map(|frame| frame.number).collect();
        assert_eq!(with, [0, 4, 8]);
        let last = frames.last().unwrap();
        assert_eq!((frames.len(), last.calls, last.count, last.draws), (9, (16, 17), 2, 1));
        assert_eq!(last.picture.as_ref().map(|(width, height, _)| (*width, *height)), Some((8, 4)));
    }
}
