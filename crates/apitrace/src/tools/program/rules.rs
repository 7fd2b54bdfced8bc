//! What is known about functions, and what their calls mean by it.

use super::call::{Act, Answer, Argument, Around as Done, GlCall, MemoryChange, Scalar, Unfit, pointer};
use crate::lanes::dictionary::Named;
use crate::lanes::flags::CallFlags;
use crate::lanes::packed::{Packed, find};
use crate::lanes::wire::Value;
use crate::tools::gl::contexts::{ContextVerb, System, context_action};
use crate::tools::gl::kind::Kind;
use crate::tools::gl::lifecycle::{Action, Verb, action, stem};
use crate::tools::gl::references::{Reference, references};
use crate::tools::gl::values::Values;
use crate::tools::program::windows::SHOW_SIZES;

/// Functions of OpenGL, with a letter for the return type and each parameter; `p` precedes the type that is pointed to.
static TYPES: Packed = include_str!("../../tables/types.txt");

/// Most objects that a call makes.
const MADE_MAX: usize = 1 << 12;

/// Most parameters of a function: `glTexCoord4fColor4fNormal3fVertex4fSUN` has 15.
pub const ARGUMENTS_MAX: usize = 16;

/// The row of a function in the table of types; `None` for functions that are not in the Khronos registry.
pub fn types_of(name: &str) -> Option<&'static str> {
    find(TYPES, name.as_bytes()).map(|(_, types)| types)
}

/// Splits a row of the table of types: the return type, then each parameter.
pub fn split_types(row: &'static str) -> impl Iterator<Item = &'static [u8]> {
    row.as_bytes().split_inclusive(|letter| *letter != b'p')
}

/// What is done around a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Around {
    /// Nothing is called: the function is not in OpenGL's registry.
    Unknown,
    /// `memcpy` and similar, recorded by the tracer.
    Memory,
    Plain,
    UsesProgram(usize),
    FindsLocation,
    FindsBlock,
    DeletesSync,
    /// Memory is mapped: the argument with its length, and whether the object is given by name instead of target.
    Maps(Option<usize>, bool),
    Unmaps(bool),
    /// Writes pixels to the program's memory, or into a buffer.
    Packs,
}

/// What is known about a function.
#[derive(Debug)]
pub(super) struct Rule {
    /// Its name for messages and comments: only letters and digits.
    pub(super) name: String,
    /// Its name without the suffix of its extension.
    pub(super) stem: &'static str,
    /// It changes nothing, and its answer should be the same wherever it is repeated.
    pub(super) asks: bool,
    /// It changes nothing that is drawn, so its omission is not reported.
    pub(super) is_silent: bool,
    /// What it does to contexts.
    pub(super) context: Option<(System, ContextVerb)>,
    /// It may show how large drawables are.
    pub(super) shows_sizes: bool,
    /// It says which API EGL makes contexts of.
    pub(super) binds_api: bool,
    /// Its row in the table of types.
    called: Option<(&'static str, &'static str)>,
    around: Around,
    action: Option<Action>,
    /// At most [`ARGUMENTS_MAX`]; `None` for a function with more.
    parameters: Option<Vec<Parameter>>,
    /// Its enumerations may name the window's color buffers.
    names_buffers: bool,
    /// Arguments with the length of data and the data.
    sized: Option<(usize, usize)>,
}

/// What is known about a parameter.
#[derive(Debug, Clone, Copy)]
struct Parameter {
    /// Its type, as in the table of types.
    types: &'static [u8],
    /// Its values name objects of this kind.
    kind: Option<Kind>,
    meaning: Meaning,
}

/// What a parameter's value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Meaning {
    /// What its type says.
    Value,
    /// Nothing that is repeated: lengths of sources are those of their strings, which end with a null byte.
    Nothing,
    /// A uniform's location, and the argument with its program if that is not the current one.
    Location(Option<usize>),
    /// A block's index, in the program of argument 0.
    Block,
}

/// Rules of functions by slot.
#[derive(Debug, Default)]
pub(super) struct Rules(Vec<Option<Rule>>, Rule);

impl Default for Rule {
    fn default() -> Self {
        Self {
            name: String::new(),
            stem: "",
            asks: false,
            is_silent: true,
            context: None,
            shows_sizes: true,
            binds_api: false,
            called: None,
            around: Around::Unknown,
            action: None,
            parameters: None,
            names_buffers: false,
            sized: None,
        }
    }
}

impl Rules {
    /// The rule of a function.
    pub(super) fn of(&mut self, slot: u32, function: &Named) -> &Rule {
        let at = slot as usize;
        if self.0.len() <= at {
            self.0.resize_with(at + 1, || None);
        }
        match self.0.get_mut(at) {
            Some(place) => place.get_or_insert_with(|| Rule::new(function)),
            None => &self.1,
        }
    }
}

impl Rule {
    fn new(function: &Named) -> Self {
        let text = function.name();
        let Some((name, types)) = find(TYPES, text) else { return Self::unknown(text) };
        let stem = stem(name);
        let has = |part: &str| stem.contains(part);
        let is_pack = ["glReadPixels", "glReadnPixels", "glGetTexImage", "glGetnTexImage", "glGetCompressedTexImage"]
            .contains(&stem)
            || ["glGetTextureImage", "glGetTextureSubImage", "glGetnCompressedTexImage"].contains(&stem)
            || ["glGetCompressedTextureImage", "glGetCompressedTextureSubImage"].contains(&stem);
        let around = match stem {
            "glUseProgram" | "glUseProgramObject" => Around::UsesProgram(0),
            "glActiveShaderProgram" => Around::UsesProgram(1),
            "glGetUniformLocation" => Around::FindsLocation,
            "glGetUniformBlockIndex" => Around::FindsBlock,
            "glDeleteSync" => Around::DeletesSync,
            "glMapBuffer" => Around::Maps(None, false),
            "glMapBufferRange" => Around::Maps(Some(2), false),
            "glMapNamedBuffer" => Around::Maps(None, true),
            "glMapNamedBufferRange" => Around::Maps(Some(2), true),
            "glUnmapBuffer" => Around::Unmaps(false),
            "glUnmapNamedBuffer" => Around::Unmaps(true),
            _ if is_pack => Around::Packs,
            _ => Around::Plain,
        };
        let asks = function.flags.has(CallFlags::NO_SIDE_EFFECTS) || stem.starts_with("glGet") || is_question(stem);
        let location = match stem {
            _ if has("Subroutine") || asks => None,
            _ if stem.starts_with("glProgramUniform") => Some((1, Some(0))),
            _ if stem.starts_with("glUniform") && !has("Block") => Some((0, None)),
            _ => None,
        };
        let arguments = (0..function.count().min(16)).filter_map(|index| function.get(index));
        let mut references = references(text, arguments);
        if stem == "glCallLists" {
            references.clear();
        }
        let meaning = |index: usize| match location {
            Some((at, program)) if at == index => Meaning::Location(program),
            _ if stem == "glShaderSource" && index == 3 => Meaning::Nothing,
            _ if stem == "glUniformBlockBinding" && index == 1 => Meaning::Block,
            _ => Meaning::Value,
        };
        let kind =
            |index: usize| references.iter().find(|known: &&Reference| known.argument == index).map(|known| known.kind);
        let parameter = |(index, types)| Parameter { types, kind: kind(index), meaning: meaning(index) };
        let parameters: Vec<Parameter> = split_types(types).skip(1).enumerate().map(parameter).collect();
        Self {
            name: name.to_owned(),
            stem,
            asks: ANSWERS.contains(&stem),
            is_silent: around == Around::Plain && asks || has("DebugMessageCallback"),
            context: context_action(text),
            shows_sizes: SHOW_SIZES.contains(&stem),
            binds_api: false,
            called: Some((name, types)),
            around,
            action: action(text),
            parameters: (parameters.len() <= ARGUMENTS_MAX).then_some(parameters),
            names_buffers: has("DrawBuffer") || has("ReadBuffer"),
            sized: match stem {
                "glBufferData" | "glBufferStorage" | "glNamedBufferData" | "glNamedBufferStorage" => Some((1, 2)),
                "glBufferSubData" | "glNamedBufferSubData" => Some((2, 3)),
                _ => None,
            },
        }
    }

    fn unknown(text: &[u8]) -> Self {
        let memory = ["memcpy", "malloc", "free", "realloc"].into_iter().find(|name| name.as_bytes() == text);
        if let Some(name) = memory {
            return Self { name: name.to_owned(), is_silent: false, around: Around::Memory, ..Self::default() };
        }
        // Functions of window systems are omitted, because the program has no windows.
        let is_silent = !text.starts_with(b"gl") || text.starts_with(b"glX");
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        let letter = |byte: &u8| if is_plain(*byte) { char::from(*byte) } else { '?' };
        let (name, context) = (text.iter().take(80).map(letter).collect(), context_action(text));
        Self { name, is_silent, context, binds_api: text == b"eglBindAPI", ..Self::default() }
    }
}

/// Functions whose answers do not depend on the driver.
const ANSWERS: [&str; 8] = [
    "glGetError",
    "glCheckFramebufferStatus",
    "glCheckNamedFramebufferStatus",
    "glGetAttribLocation",
    "glGetFragDataLocation",
    "glGetShaderiv",
    "glGetProgramiv",
    "glGetObjectParameteriv",
];

/// What the call answered; `None` where that depends on the driver.
fn answer(stem: &str, values: &Values<'_>) -> Option<Answer> {
    let returned = || values.returned_name().map(|value| value as u32);
    Some(match stem {
        "glGetError" => Answer::Error(returned()?),
        "glGetShaderiv" | "glGetProgramiv" | "glGetObjectParameteriv" => {
            // GL_COMPILE_STATUS, GL_LINK_STATUS.
            if !matches!(values.integer(1), Some(0x8b81 | 0x8b82)) {
                return None;
            }
            Answer::Stored(values.integers(2).next()? as u32)
        }
        _ => Answer::Returned(returned()?),
    })
}

/// True for functions that only query.
fn is_question(stem: &str) -> bool {
    let rest = stem.strip_prefix("glIs").or_else(|| stem.strip_prefix("glAre"));
    rest.is_some_and(|rest| rest.starts_with(char::is_uppercase)) || stem.starts_with("glCheck")
}

impl Rule {
    /// Says what a call does. Nothing is said of calls that cannot be repeated, and of those that ask for what depends on
    /// the driver.
    pub(super) fn interpret(
        &self,
        values: &Values<'_>,
        number: u64,
        act: &mut dyn FnMut(&Act<'_, '_>) -> Result<(), Unfit>,
    ) -> Result<(), Unfit> {
        if self.around == Around::Memory {
            return act(&Act::Memory(&self.memory(values)?));
        }
        let Some((name, types)) = self.called else {
            return Err(Unfit::Value("it is not in the Khronos registry"));
        };
        self.check_size(values)?;
        let Some(parameters) = &self.parameters else { return Err(Unfit::Value("it has too many parameters")) };
        let mut room = [Argument::Null; ARGUMENTS_MAX];
        for ((index, parameter), place) in parameters.iter().enumerate().zip(&mut room) {
            *place = self.argument(values, index, parameter)?;
        }
        let mut names = Vec::new();
        let arguments = room.get_mut(..parameters.len()).unwrap_or_default();
        let made = match self.action {
            Some(action) => lifecycle(values, action, arguments, &mut names)?,
            None => None,
        };
        let around = match made {
            _ if self.is_silent => match answer(self.stem, values) {
                Some(answer) => Done::Asks(answer),
                None => return Ok(()),
            },
            Some(Made::Many(kind)) => Done::MakesMany { kind, names: &names },
            Some(Made::Other(around)) => around,
            None => self.around(values),
        };
        let dictionary = values.dictionary();
        act(&Act::Call(&GlCall { number, name, stem: self.stem, types, arguments, around, dictionary }))
    }

    /// What is done around calls that neither make nor delete.
    fn around(&self, values: &Values<'_>) -> Done<'static> {
        let number = |index| values.name(index).unwrap_or(0);
        let returned = values.returned_name().unwrap_or(0);
        match self.around {
            Around::UsesProgram(index) => Done::UsesProgram(number(index) as u32),
            Around::FindsLocation if returned as i32 >= 0 => {
                Done::FindsLocation { program: number(0) as u32, location: returned as i32 }
            }
            Around::FindsBlock if returned as i32 >= 0 => {
                Done::FindsBlock { program: number(0) as u32, block: returned as u32 }
            }
            Around::DeletesSync => Done::DeletesSync(number(0)),
            Around::Maps(length, is_name) => Done::Maps { address: returned, length, is_name },
            Around::Unmaps(is_name) => Done::Unmaps { is_name },
            Around::Packs => Done::Packs,
            _ => Done::Nothing,
        }
    }

    /// Refuses data that are shorter than the call specifies.
    fn check_size(&self, values: &Values<'_>) -> Result<(), Unfit> {
        let Some((size, data)) = self.sized else { return Ok(()) };
        match values.argument(data).map(|mut wire| wire.value()) {
            Some(Value::Blob(length, _)) if values.name(size).is_none_or(|size| size > length) => {
                Err(Unfit::Value("its data are shorter than declared"))
            }
            Some(Value::Array(_) | Value::Text(_)) => Err(Unfit::Value("its data are not bytes")),
            _ => Ok(()),
        }
    }

    fn argument<'v>(&self, values: &Values<'v>, index: usize, parameter: &Parameter) -> Result<Argument<'v>, Unfit> {
        let Some(mut wire) = values.argument(index) else {
            return Err(Unfit::Value("an argument is missing"));
        };
        let dictionary = values.dictionary();
        let Parameter { types, kind, meaning } = *parameter;
        match meaning {
            Meaning::Value => {}
            Meaning::Nothing => return Ok(Argument::Null),
            Meaning::Location(program) => {
                let program = program.map(|program| values.name(program).unwrap_or(0) as u32);
                return Ok(Argument::Location(program, values.integer(index).unwrap_or(-1) as i32));
            }
            Meaning::Block => {
                let block = values.name(index).unwrap_or(0) as u32;
                return Ok(Argument::Block(values.name(0).unwrap_or(0) as u32, block));
            }
        }
        if self.names_buffers && types == b"pe" && (1..=32).contains(&values.array(index).count()) {
            return Ok(Argument::WindowBuffers(values.array(index)));
        }
        match types {
            [b'p', to @ ..] => pointer(to, kind, wire, dictionary),
            [letter, ..] => {
                let value = wire.value();
                let scalar = Scalar::new(*letter, kind, value, dictionary)?;
                let is_buffer = self.names_buffers && *letter == b'e' && matches!(value, Value::Enum(..));
                Ok(if is_buffer { Argument::WindowBuffer(scalar) } else { Argument::Scalar(scalar) })
            }
            [] => Err(Unfit::Value("there is no such parameter")),
        }
    }

    /// A change of the program's memory that the tracer recorded.
    fn memory<'v>(&self, values: &Values<'v>) -> Result<MemoryChange<'v>, Unfit> {
        let number = |index| values.name(index).unwrap_or(0);
        let returned = values.returned_name().unwrap_or(0);
        Ok(match self.name.as_str() {
            "malloc" => MemoryChange::Allocated(returned, number(0)),
            "realloc" => MemoryChange::Moved(number(0), returned, number(1)),
            "free" => MemoryChange::Released(number(0)),
            _ => {
                let Some(mut source) = values.argument(1) else {
                    return Err(Unfit::Value("an argument is missing"));
                };
                let Value::Blob(length, Some(bytes)) = source.value() else {
                    return Err(Unfit::Value("its bytes are not in the trace"));
                };
                let length = usize::try_from(length.min(number(2))).unwrap_or(usize::MAX);
                MemoryChange::Copied(number(0), bytes.get(..length).unwrap_or(bytes))
            }
        })
    }
}

/// What a call makes.
enum Made {
    /// Objects of a kind, whose names are elsewhere.
    Many(Kind),
    Other(Done<'static>),
}

/// What a call that makes or deletes objects does around it; `None`: nothing. The number of names in an array counts,
/// whatever the call says.
fn lifecycle(
    values: &Values<'_>,
    action: Action,
    arguments: &mut [Argument<'_>],
    traced: &mut Vec<u32>,
) -> Result<Option<Made>, Unfit> {
    let returned = values.returned_name().unwrap_or(0);
    let mut count_names = |count: usize, names: usize, arguments: &mut [Argument<'_>]| {
        traced.extend(values.integers(names).map(|name| name as u32));
        if traced.len() > MADE_MAX {
            return Err(Unfit::Value("it creates or deletes too many objects at once"));
        }
        if let Some(count) = arguments.get_mut(count) {
            *count = Argument::Scalar(Scalar::Integer(traced.len() as i64));
        }
        Ok(traced.len())
    };
    Ok(match action.verb {
        Verb::MakeMany { count, names } => {
            if count_names(count, names, arguments)? == 0 {
                return Err(Unfit::Value("it creates nothing"));
            }
            if let Some(place) = arguments.get_mut(names) {
                *place = Argument::NewNames;
            }
            Some(Made::Many(action.kind))
        }
        Verb::Make if action.kind == Kind::Sync => Some(Made::Other(Done::MakesSync(returned))),
        Verb::Make => Some(Made::Other(Done::Makes { kind: action.kind, name: returned as u32 })),
        Verb::MakeRange { count } => {
            let count = values.integer(count).and_then(|count| u32::try_from(count).ok()).unwrap_or(0);
            if count > 1 << 20 {
                return Err(Unfit::Value("it creates too many objects at once"));
            }
            Some(Made::Other(Done::MakesRange { kind: action.kind, first: returned as u32, count }))
        }
        Verb::DeleteMany { count, names } => {
            if values.array(names).count() == 0 && values.argument(names).is_some() {
                return Err(Unfit::Value("it deletes nothing"));
            }
            count_names(count, names, arguments)?;
            None
        }
        Verb::MakeInto(_) => return Err(Unfit::Value("its objects are not tracked")),
        _ => None,
    })
}
