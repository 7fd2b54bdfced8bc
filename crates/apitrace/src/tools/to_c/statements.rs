//! The statements of a call: which functions are called, and what is done around the call.

use super::arguments::{Expressions, Unfit, kind_name, split_types};
use crate::lanes::dictionary::Named;
use crate::lanes::flags::CallFlags;
use crate::lanes::packed::{Packed, find};
use crate::lanes::wire::Value;
use crate::tools::gl::kind::Kind;
use crate::tools::gl::lifecycle::{Action, Verb, action, stem};
use crate::tools::gl::references::{Reference, references};
use crate::tools::gl::values::{Values, float};

/// Functions of OpenGL, with a letter for the return type and each parameter; `p` precedes the type that is pointed to.
static TYPES: Packed = include_str!("../../tables/types.txt");

/// Most objects that a call makes.
const MADE_MAX: usize = 1 << 12;

/// What is done around a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Around {
    /// The program calls nothing: the function is not in OpenGL's registry.
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
    /// It changes nothing that is drawn, so its omission is not reported.
    pub(super) is_silent: bool,
    /// Its row in the table of types.
    pub(super) called: Option<(&'static str, &'static str)>,
    around: Around,
    action: Option<Action>,
    references: Vec<Reference>,
    /// Argument that is a uniform's location, and the one with its program if that is not the current one.
    location: Option<(usize, Option<usize>)>,
    /// Argument that is a block's index, in the program of argument 0.
    block: Option<usize>,
    /// Its enumerations may name the window's color buffers.
    names_buffers: bool,
    /// Arguments with the length of data and the data.
    sized: Option<(usize, usize)>,
}

/// Rules of functions by slot.
#[derive(Debug, Default)]
pub(super) struct Rules(Vec<Option<Rule>>, Rule);

impl Default for Rule {
    fn default() -> Self {
        Self {
            name: String::new(),
            stem: "",
            is_silent: true,
            called: None,
            around: Around::Unknown,
            action: None,
            references: Vec::new(),
            location: None,
            block: None,
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
        Self {
            name: name.to_owned(),
            stem,
            is_silent: around == Around::Plain && asks || has("DebugMessageCallback"),
            called: Some((name, types)),
            around,
            action: action(text),
            references,
            location,
            block: (stem == "glUniformBlockBinding").then_some(1),
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
        Self { name: text.iter().take(80).map(letter).collect(), is_silent, ..Self::default() }
    }
}

/// True for functions that only query.
fn is_question(stem: &str) -> bool {
    let rest = stem.strip_prefix("glIs").or_else(|| stem.strip_prefix("glAre"));
    rest.is_some_and(|rest| rest.starts_with(char::is_uppercase)) || stem.starts_with("glCheck")
}

/// A call and everything needed to write it.
pub(super) struct Statement<'s, 'v> {
    pub(super) rule: &'s Rule,
    pub(super) values: &'s Values<'v>,
    pub(super) expressions: &'s mut Expressions,
}

impl Statement<'_, '_> {
    /// The statement, in one line or more.
    pub(super) fn write(mut self) -> Result<String, Unfit> {
        if self.rule.around == Around::Memory {
            return self.memory();
        }
        let Some((name, types)) = self.rule.called else {
            return Err(Unfit::Value("it is not in the Khronos registry"));
        };
        self.check_size()?;
        let mut arguments = Vec::new();
        for (index, types) in split_types(types).skip(1).enumerate() {
            arguments.push(self.argument(index, types)?);
        }
        if let Some(action) = self.rule.action
            && let Some(text) = self.lifecycle(name, action, &mut arguments)?
        {
            return Ok(text);
        }
        let call = format!("{name}({})", arguments.join(", "));
        let number = |index| self.values.name(index).unwrap_or(0);
        let first = arguments.first().map_or("0", String::as_str);
        let returned = self.values.returned_name().unwrap_or(0);
        Ok(match self.rule.around {
            Around::UsesProgram(index) => format!("{call}; used_program({}u);", number(index) as u32),
            Around::FindsLocation if returned as i32 >= 0 => {
                format!("location_is({}u, {}, {call});", number(0) as u32, returned as i32)
            }
            Around::FindsBlock if returned as i32 >= 0 => {
                format!("block_is({}u, {}u, {call});", number(0) as u32, returned as u32)
            }
            Around::FindsLocation | Around::FindsBlock => format!("{call};"),
            Around::DeletesSync => format!("{call}; forget_sync({:#x});", number(0)),
            Around::Maps(length, is_name) => {
                let length = length.and_then(|index| arguments.get(index)).map_or("-1", String::as_str);
                format!("mapped({returned:#x}, {call}, {length}, {first}, {});", u8::from(is_name))
            }
            Around::Unmaps(is_name) => format!("unmapped({first}, {}); {call};", u8::from(is_name)),
            Around::Packs => format!("if (pack_buffer()) {call};"),
            _ => format!("{call};"),
        })
    }

    /// Refuses data that are shorter than the call specifies.
    fn check_size(&self) -> Result<(), Unfit> {
        let Some((size, data)) = self.rule.sized else { return Ok(()) };
        match self.values.argument(data).map(|mut wire| wire.value()) {
            Some(Value::Blob(length, _)) if self.values.name(size).is_none_or(|size| size > length) => {
                Err(Unfit::Value("its data are shorter than declared"))
            }
            Some(Value::Array(_) | Value::Text(_)) => Err(Unfit::Value("its data are not bytes")),
            _ => Ok(()),
        }
    }

    fn argument(&mut self, index: usize, types: &[u8]) -> Result<String, Unfit> {
        let Some(mut wire) = self.values.argument(index) else {
            return Err(Unfit::Value("an argument is missing"));
        };
        let dictionary = self.values.dictionary();
        // Lengths of sources are those of their strings, which end with a null byte.
        if matches!(self.rule.stem, "glShaderSource") && index == 3 {
            return Ok("0".to_owned());
        }
        if let Some((at, program)) = self.rule.location
            && at == index
        {
            let number = self.values.integer(index).unwrap_or(-1) as i32;
            return Ok(match program {
                Some(program) => format!("location_of({}u, {number})", self.values.name(program).unwrap_or(0) as u32),
                None => format!("location({number})"),
            });
        }
        if self.rule.block == Some(index) {
            let (program, block) = (self.values.name(0).unwrap_or(0) as u32, self.values.name(index).unwrap_or(0));
            return Ok(format!("block_of({program}u, {}u)", block as u32));
        }
        let kind = self.rule.references.iter().find(|known| known.argument == index).map(|known| known.kind);
        if self.rule.names_buffers && types == b"pe" && self.values.array(index).count() <= 32 {
            let mut buffers = Vec::new();
            for mut element in self.values.array(index) {
                let value = element.value();
                let number = float(value, dictionary).unwrap_or(0.0) as u32;
                buffers.push(format!("window_buffer({number:#x})"));
            }
            if !buffers.is_empty() {
                return Ok(format!("(const GLenum[]){{{}}}", buffers.join(", ")));
            }
        }
        let text = self.expressions.value(types, kind, wire, dictionary)?;
        let is_window_buffer = self.rule.names_buffers && types == b"e" && matches!(wire.value(), Value::Enum(..));
        Ok(if is_window_buffer { format!("window_buffer({text})") } else { text })
    }

    /// The statement of a call that makes or deletes objects; `None` if nothing is done around the call.
    fn lifecycle(&self, name: &str, action: Action, arguments: &mut [String]) -> Result<Option<String>, Unfit> {
        let kind = kind_name(action.kind);
        let returned = self.values.returned_name().unwrap_or(0);
        let made = |count: usize, names: usize, arguments: &mut [String]| {
            let made: Vec<String> = self.values.integers(names).map(|name| format!("{}u", name as u32)).collect();
            if made.len() > MADE_MAX {
                return Err(Unfit::Value("it creates or deletes too many objects at once"));
            }
            // The actual number of names counts, whatever the call says.
            if let Some(count) = arguments.get_mut(count) {
                *count = made.len().to_string();
            }
            Ok(made)
        };
        Ok(match action.verb {
            Verb::MakeMany { count, names } => {
                let traced = made(count, names, arguments)?;
                if traced.is_empty() {
                    return Err(Unfit::Value("it creates nothing"));
                }
                if let Some(place) = arguments.get_mut(names) {
                    *place = "names".to_owned();
                }
                let (length, arguments, traced) = (traced.len(), arguments.join(", "), traced.join(", "));
                Some(format!(
                    "{{ GLuint names[{length}] = {{0}}; {name}({arguments}); \
                     made_many({kind}, {length}, (const GLuint[]){{{traced}}}, names); }}"
                ))
            }
            Verb::Make if action.kind == Kind::Sync => {
                Some(format!("made_sync({returned:#x}, {name}({}));", arguments.join(", ")))
            }
            Verb::Make => Some(format!("made({kind}, {}u, {name}({}));", returned as u32, arguments.join(", "))),
            Verb::MakeRange { count } => {
                let count = self.values.integer(count).and_then(|count| u32::try_from(count).ok()).unwrap_or(0);
                if count > 1 << 20 {
                    return Err(Unfit::Value("it creates too many objects at once"));
                }
                let call = format!("{name}({})", arguments.join(", "));
                Some(format!("made_range({kind}, {}u, {count}, {call});", returned as u32))
            }
            Verb::DeleteMany { count, names } => {
                if self.values.array(names).count() == 0 && self.values.argument(names).is_some() {
                    return Err(Unfit::Value("it deletes nothing"));
                }
                made(count, names, arguments)?;
                None
            }
            Verb::MakeInto(_) => return Err(Unfit::Value("its objects are not tracked")),
            _ => None,
        })
    }

    /// A change of the program's memory that the tracer recorded.
    fn memory(&mut self) -> Result<String, Unfit> {
        let number = |index| self.values.name(index).unwrap_or(0);
        let returned = self.values.returned_name().unwrap_or(0);
        Ok(match self.rule.name.as_str() {
            "malloc" => format!("allocated({returned:#x}, {:#x});", number(0)),
            "realloc" => format!("released({:#x}); allocated({returned:#x}, {:#x});", number(0), number(1)),
            "free" => format!("released({:#x});", number(0)),
            _ => {
                let Some(mut source) = self.values.argument(1) else {
                    return Err(Unfit::Value("an argument is missing"));
                };
                let Value::Blob(length, Some(bytes)) = source.value() else {
                    return Err(Unfit::Value("its bytes are not in the trace"));
                };
                let offset = self.expressions.data.add(bytes)?;
                format!("copied({:#x}, blob({offset}), {});", number(0), length.min(bytes.len() as u64).min(number(2)))
            }
        })
    }
}
