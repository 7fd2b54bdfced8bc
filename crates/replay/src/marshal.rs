//! Arguments of the trace as arguments of the driver: names that exist here, pointers to memory that lives long enough.

use anytrace_apitrace::tools::gl::kind::Kind;
use anytrace_apitrace::tools::gl::values::float;
use anytrace_apitrace::tools::program::{Argument, Array, GlCall, Scalar, Unfit, split_types};

use crate::arrays;
use crate::bounds::{self, Unpacking};
use crate::client::{Client, words_of};
use crate::gl::Gl;
use crate::invoke::Arguments;
use crate::memory::Memory;
use crate::names::{Names, Of};

/// Words of zeros behind everything that is copied: more than the longest vector of a fixed size, a matrix of 16 doubles.
const PADDING: usize = 32;

/// Blobs up to this size are copied, so that zeros follow them; longer ones are read where they are.
const COPIED_MAX: usize = 1 << 16;

/// Why a call is refused.
const ELSEWHERE: Unfit = Unfit::Value("what its pointer points to is not in the trace");

/// Most bytes of feedback and selection.
const FEEDBACK_MAX: u64 = 1 << 26;

/// Memory for the time of a call. Rooms stay where they are when others are added.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    rooms: Vec<Vec<u64>>,
    used: usize,
}

impl Scratch {
    pub(crate) fn clear(&mut self) {
        self.used = 0;
    }

    /// A copy of the bytes, followed by zeros. Returns its address.
    fn put(&mut self, bytes: &[u8]) -> u64 {
        if self.used == self.rooms.len() {
            self.rooms.push(Vec::new());
        }
        let Some(room) = self.rooms.get_mut(self.used) else { return 0 };
        self.used += 1;
        room.clear();
        room.extend(words_of(bytes));
        room.extend([0; PADDING]);
        // The driver writes there what a call of the trace asks for.
        room.as_mut_ptr() as u64
    }

    /// Room for so many names, which the driver writes.
    fn names(&mut self, count: usize) -> (usize, u64) {
        self.put(&[]);
        let at = self.used - 1;
        let Some(room) = self.rooms.get_mut(at) else { return (at, 0) };
        room.resize(count.div_ceil(2) + PADDING, 0);
        (at, room.as_mut_ptr() as u64)
    }

    /// Names that the driver wrote.
    pub(crate) fn read(&self, room: usize, count: usize) -> impl Iterator<Item = u32> {
        let words = self.rooms.get(room).map_or(&[][..], Vec::as_slice);
        let both = |word: &u64| {
            let [a, b, c, d, e, f, g, h] = word.to_ne_bytes();
            [u32::from_ne_bytes([a, b, c, d]), u32::from_ne_bytes([e, f, g, h])]
        };
        words.iter().flat_map(both).take(count)
    }
}

/// What is checked of a function's calls; found once, for there may be millions of them.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Checks {
    bounds: Option<bounds::Rule>,
    /// The state that has the buffer into which its pointer is an offset.
    buffer: Option<u32>,
    draws: bool,
    keeps: bool,
    is_list_base: bool,
    pub(crate) follows: Follows,
}

/// What of a function's calls is followed besides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Follows {
    #[default]
    Nothing,
    /// `glBegin`.
    Begin,
    /// `glEnd`.
    End,
    /// What selects arrays of the program's memory ([`Client::follow`]).
    Arrays,
}

impl Checks {
    pub(crate) fn of(stem: &str) -> Self {
        Self {
            bounds: bounds::Rule::of(stem),
            buffer: bounds::buffer_of(stem),
            draws: arrays::draws(stem),
            keeps: Client::keeps(stem),
            is_list_base: stem == "glListBase",
            follows: match stem {
                "glBegin" => Follows::Begin,
                "glEnd" => Follows::End,
                stem if Client::follows(stem) => Follows::Arrays,
                _ => Follows::Nothing,
            },
        }
    }
}

/// What arguments depend on.
pub(crate) struct Marshal<'m> {
    pub(crate) names: &'m mut Names,
    pub(crate) memory: &'m mut Memory,
    pub(crate) client: &'m mut Client,
    pub(crate) scratch: &'m mut Scratch,
    pub(crate) gl: &'m Gl,
    pub(crate) of: Of,
    /// The current program, as the trace calls it.
    pub(crate) program: u32,
    /// What the color buffer of a drawable is called here; 0: as in the trace.
    pub(crate) window_buffer: u32,
    /// The state that has the buffer into which the call's pointer is an offset.
    pub(crate) buffer: Option<u32>,
}

impl Marshal<'_> {
    /// Fills in the arguments. Returns the room of new names, if the call makes objects.
    pub(crate) fn fill(
        &mut self,
        call: &GlCall<'_>,
        checks: Checks,
        to: &mut Arguments,
    ) -> Result<Option<usize>, Unfit> {
        if let Some(rule) = checks.bounds {
            bounds::check(rule, call, &|traced| Some(self.memory.address(traced)?.1), &mut || self.unpacking())?;
        }
        if checks.draws {
            self.check_arrays(call)?;
        }
        let keeps = checks.keeps;
        self.buffer = checks.buffer;
        let mut names = None;
        for (at, (types, argument)) in split_types(call.types).skip(1).zip(call.arguments).enumerate() {
            let letter = types.first().copied().unwrap_or(b'v');
            match *argument {
                Argument::Scalar(Scalar::Float(number)) if letter == b'f' => to.single(number as f32),
                Argument::Scalar(Scalar::Float(number)) => to.double(number),
                Argument::Scalar(scalar) => {
                    let number = self.number(scalar);
                    to.integer(if checks.is_list_base { self.list_base(number) } else { number });
                }
                Argument::WindowBuffer(scalar) => {
                    let number = self.number(scalar);
                    to.integer(u64::from(self.window_buffer(number as u32)));
                }
                Argument::WindowBuffers(elements) => {
                    let mut bytes = Vec::new();
                    for mut wire in elements {
                        let number = float(wire.value(), call.dictionary).unwrap_or(0.0) as u32;
                        bytes.extend(self.window_buffer(number).to_ne_bytes());
                    }
                    to.integer(self.scratch.put(&bytes));
                }
                Argument::Location(program, location) => {
                    let program = program.unwrap_or(self.program);
                    to.integer(self.names.location(self.of, program, location) as u64);
                }
                Argument::Block(program, block) => {
                    to.integer(u64::from(self.names.block(self.of, program, block)));
                }
                Argument::NewNames => {
                    let count = call.made();
                    let (room, address) = self.scratch.names(count);
                    names = Some(room);
                    to.integer(address);
                }
                pointer => {
                    let first = if keeps { call.first() } else { 0 };
                    let address = match keeps {
                        true if at > 0 => self.kept(call, first, &pointer)?,
                        _ => self.pointer(call, &pointer)?,
                    };
                    to.integer(address);
                }
            }
        }
        Ok(names)
    }

    /// Refuses a draw that reads behind the end of an array in the program's memory.
    fn check_arrays(&self, call: &GlCall<'_>) -> Result<(), Unfit> {
        // GL_ELEMENT_ARRAY_BUFFER_BINDING.
        if arrays::has_no_indices(call) && self.gl.state(0x8895) == 0 {
            return Err(ELSEWHERE);
        }
        let Some(draw) = arrays::draw(call, None)? else { return Ok(()) };
        let reads_behind = |draw: &arrays::Draw| {
            let mut short = self.client.shorter(draw.most());
            short.any(|(stem, which, has)| {
                arrays::divisor(self.gl, stem, which).is_some_and(|divisor| draw.needs(divisor) > has)
            })
        };
        if !reads_behind(&draw) {
            return Ok(());
        }
        // An index may be none, which only the driver knows.
        let restart = arrays::restart_index(self.gl, call, &draw);
        match arrays::draw(call, restart)? {
            Some(draw) if restart.is_none() || reads_behind(&draw) => Err(arrays::BEHIND),
            _ => Ok(()),
        }
    }

    /// How the driver finds pixels in memory now.
    fn unpacking(&self) -> Unpacking {
        // GL_UNPACK_ALIGNMENT, GL_UNPACK_ROW_LENGTH, GL_UNPACK_IMAGE_HEIGHT, GL_UNPACK_SKIP_PIXELS, _ROWS and _IMAGES. What
        // a version does not have is 0.
        let [alignment, row_length, image_height, pixels, rows, images] =
            [0x0cf5, 0x0cf2, 0x806e, 0x0cf4, 0x0cf3, 0x806d].map(|name| u64::from(self.gl.state(name).max(0) as u32));
        self.gl.clear_errors();
        Unpacking { alignment, row_length, image_height, skipped: (pixels, rows, images) }
    }

    fn number(&mut self, scalar: Scalar<'_>) -> u64 {
        match scalar {
            Scalar::Integer(number) => number as u64,
            Scalar::Enum(number, _) => u64::from(number),
            Scalar::Object(kind, name) => u64::from(self.object(kind, name)),
            Scalar::Sync(traced) => self.names.sync(traced),
            Scalar::Float(number) => number as i64 as u64,
        }
    }

    /// The name here. Programs may bind names that they never asked for: those get names that nothing else has here.
    pub(crate) fn object(&mut self, kind: Kind, traced: u32) -> u32 {
        if let Some(real) = self.names.object(self.of, kind, traced) {
            return real;
        }
        match self.gl.generate(kind) {
            Some(real) => {
                self.names.made(self.of, kind, traced, real);
                real
            }
            None => traced,
        }
    }

    /// Lists are called relative to a base, which is the first of those that were made, or a little before.
    fn list_base(&self, base: u64) -> u64 {
        let base = base as u32;
        match self.names.object(self.of, Kind::List, base) {
            Some(real) => u64::from(real),
            // Fonts have a list for each character, of which the first are often left out.
            None => (1..=128)
                .find_map(|ahead| {
                    let real = self.names.object(self.of, Kind::List, base.checked_add(ahead)?)?;
                    Some(u64::from(real.wrapping_sub(ahead)))
                })
                .unwrap_or(u64::from(base)),
        }
    }

    fn window_buffer(&self, traced: u32) -> u32 {
        // GL_FRONT_LEFT to GL_FRONT_AND_BACK.
        let is_of_window = (0x0400..=0x0408).contains(&traced);
        if is_of_window && self.window_buffer != 0 { self.window_buffer } else { traced }
    }

    /// A pointer that the driver keeps.
    fn kept(&mut self, call: &GlCall<'_>, first: u32, pointer: &Argument<'_>) -> Result<u64, Unfit> {
        if matches!(call.stem, "glFeedbackBuffer" | "glSelectBuffer") {
            // The driver writes there later; four bytes each.
            let bytes = u64::from(first).saturating_mul(4).min(FEEDBACK_MAX);
            return Ok(self.client.keep(call.stem, 0, &vec![0; bytes as usize], None));
        }
        match *pointer {
            Argument::Bytes(bytes) | Argument::Text(bytes) => {
                let vertices = arrays::vertices(call, bytes.len());
                Ok(self.client.keep(call.stem, first, bytes, vertices))
            }
            Argument::Array(array) if array.letter != b'p' => {
                let bytes = self.encoded(call, &array)?;
                let vertices = arrays::vertices(call, bytes.len());
                Ok(self.client.keep(call.stem, first, &bytes, vertices))
            }
            Argument::Address(traced) if let Some((address, bytes)) = self.memory.address(traced) => {
                let vertices = arrays::vertices(call, usize::try_from(bytes).unwrap_or(usize::MAX));
                self.client.keep(call.stem, first, &[], vertices);
                Ok(address)
            }
            _ => {
                let address = self.pointer(call, pointer);
                match address {
                    Ok(_) => self.client.drop(call.stem, first),
                    Err(_) => self.client.lose(call.stem, first),
                }
                address
            }
        }
    }

    fn pointer(&mut self, call: &GlCall<'_>, pointer: &Argument<'_>) -> Result<u64, Unfit> {
        Ok(match *pointer {
            Argument::Null => 0,
            Argument::Address(traced) => match (self.memory.address(traced), self.buffer) {
                (Some((address, _)), _) => address,
                // An offset into the buffer that is bound.
                (None, Some(binding)) if self.gl.state(binding) != 0 => traced,
                _ => return Err(ELSEWHERE),
            },
            Argument::Bytes(bytes) if bytes.len() > COPIED_MAX && (bytes.as_ptr() as usize).is_multiple_of(8) => {
                bytes.as_ptr() as u64
            }
            // The padding is the null character.
            Argument::Bytes(bytes) | Argument::Text(bytes) => self.scratch.put(bytes),
            Argument::Array(array) if array.letter == b'p' => {
                let mut addresses = Vec::new();
                for element in array.arguments(call.dictionary) {
                    let address = self.pointer(call, &element?)?;
                    addresses.extend(address.to_ne_bytes());
                }
                self.scratch.put(&addresses)
            }
            Argument::Array(array) => {
                let bytes = self.encoded(call, &array)?;
                self.scratch.put(&bytes)
            }
            _ => return Err(Unfit::Value("a value is not a pointer")),
        })
    }

    /// The elements of an array in memory.
    fn encoded(&mut self, call: &GlCall<'_>, array: &Array<'_>) -> Result<Vec<u8>, Unfit> {
        let mut bytes = Vec::new();
        for element in array.arguments(call.dictionary) {
            let Argument::Scalar(scalar) = element? else { continue };
            let scalar = match scalar {
                Scalar::Object(kind, name) => Scalar::Integer(i64::from(self.object(kind, name))),
                Scalar::Sync(traced) => Scalar::Integer(self.names.sync(traced) as i64),
                other => other,
            };
            scalar.encode(array.letter, &mut bytes);
        }
        Ok(bytes)
    }
}
