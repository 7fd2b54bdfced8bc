//! The state as text and as JSON, and the sources of shaders as files.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::rc::Rc;

use anytrace_core::Error;
use serde_json::{Map, Value as Json, json};

use crate::tools::gl::contexts::Context;
use crate::tools::gl::kind::{Kind, Scope};
use crate::tools::state::model::{
    Attribute, Binding, ContextState, Detail, Key, Program, Setting, Source, VertexArray,
};
use crate::tools::state::parameters::{INITIAL, Initial};
use crate::tools::state::value::Val;
use crate::tools::state::{Named, StateAtCall};

/// Lines of initial values are about as long.
const LINE_BYTES_MAX: usize = 110;

fn key_text((name, index): &Key) -> String {
    index.map_or_else(|| name.to_string(), |index| format!("{name}[{index}]"))
}

/// Parameters that were set, and initial values of those that were not, where the context's making is known.
fn parameters(context: &Context, state: &ContextState) -> BTreeMap<String, Setting> {
    let mut all: BTreeMap<String, Setting> = BTreeMap::new();
    if context.created.is_some() {
        all.extend(INITIAL.iter().map(|(name, value)| {
            let list = |values: Vec<Val>| Val::List(values);
            let value = match value {
                Initial::Name(name) => Val::name(name),
                Initial::Names(name, count) => list(vec![Val::name(name); *count]),
                Initial::Number(number) => Val::Float(*number as f32),
                Initial::Numbers(numbers) => list(numbers.iter().map(|number| Val::Float(*number as f32)).collect()),
            };
            ((*name).to_owned(), Setting { value, call: None })
        }));
    }
    all.extend(state.parameters.iter().map(|(key, setting)| (key_text(key), setting.clone())));
    all
}

/// Writes the state as one JSON object. `lost` is the number of places where the trace lost something.
///
/// # Errors
/// I/O.
pub fn write_json(out: &mut dyn Write, file: &str, state: &StateAtCall, lost: u64) -> Result<(), Error> {
    let contexts = state.contexts.iter().enumerate().filter(|(at, _)| is_shown(state, *at));
    let contexts: Vec<Json> = contexts.map(|(at, (context, known))| context_json(state, at, context, known)).collect();
    let head = json!({ "version": 1, "file": file, "call": state.call, "function": state.function,
                       "thread": state.thread, "context": state.current, "read": state.totals.extent(), "lost": lost });
    let head = head.to_string();
    // Objects may be many: they are written one by one.
    write!(out, "{},\"contexts\":{},\"objects\":[", head.trim_end_matches('}'), Json::from(contexts))?;
    for (at, object) in state.objects.iter().enumerate() {
        write!(out, "{}\n  {}", if at == 0 { "" } else { "," }, object_json(object))?;
    }
    Ok(writeln!(out, "]}}")?)
}

/// The first represents calls without a context. It is shown if it contains anything.
fn is_shown(state: &StateAtCall, at: usize) -> bool {
    let Some((context, known)) = state.contexts.get(at) else { return false };
    let is_empty = known.parameters.is_empty() && known.bindings.is_empty() && known.matrices.is_empty();
    !context.has_ended && (at != 0 || state.current == 0 || !is_empty)
}

fn setting_json(setting: &Setting) -> Json {
    json!({ "value": setting.value.to_json(), "call": setting.call })
}

fn settings_json<'a, K: ToString>(all: impl Iterator<Item = (K, &'a Setting)>) -> Json {
    all.map(|(key, setting)| (key.to_string(), setting_json(setting))).collect::<Map<String, Json>>().into()
}

fn values_json<'a>(all: impl Iterator<Item = (&'a Rc<str>, &'a Val)>) -> Map<String, Json> {
    all.map(|(name, value)| (name.to_string(), value.to_json())).collect()
}

fn pairs_json(all: &[(Rc<str>, Val)]) -> Map<String, Json> {
    values_json(all.iter().map(|(name, value)| (name, value)))
}

fn context_json(state: &StateAtCall, at: usize, context: &Context, known: &ContextState) -> Json {
    let parameters = parameters(context, known);
    let matrices: Map<String, Json> = known
        .matrices
        .iter()
        .map(|(key, stack)| {
            (key_text(key), json!({ "value": stack.top.as_slice(), "depth": stack.depth(), "call": stack.call }))
        })
        .collect();
    let system = context.system.map(|system| format!("{system:?}").to_lowercase());
    json!({
        "number": at,
        "is_current": at == state.current as usize,
        "system": system,
        "handle": context.system.map(|_| format!("{:#x}", context.handle)),
        "group": context.group,
        "created": context.created,
        "destroyed": context.destroyed,
        "parameters": settings_json(parameters.iter()),
        "bindings": known.bindings.iter().map(|(key, one)| binding_json(key, one)).collect::<Vec<_>>(),
        "vertex_array": array_json(&known.vertex_array),
        "matrices": matrices,
        "unknown": known.unknown,
    })
}

fn binding_json((target, index): &Key, binding: &Binding) -> Json {
    let mut row = pairs_json(&binding.more);
    row.insert("target".to_owned(), target.as_ref().into());
    row.insert("index".to_owned(), json!(index));
    row.insert("kind".to_owned(), binding.kind.name().into());
    row.insert("name".to_owned(), binding.name.into());
    row.insert("call".to_owned(), binding.call.into());
    row.into()
}

fn array_json(array: &VertexArray) -> Json {
    let attribute = |(key, one): (&Key, &Attribute)| {
        let mut row = values_json(one.format.iter());
        row.insert(
            "attribute".to_owned(),
            key.1.filter(|_| &*key.0 == "attribute").map_or_else(|| key_text(key).into(), Json::from),
        );
        row.insert("enabled".to_owned(), one.enabled.as_ref().map_or(Json::Null, setting_json));
        row.insert("call".to_owned(), json!(one.call));
        Json::from(row)
    };
    let buffers =
        array.buffers.iter().map(|(point, one)| json!({ "point": point, "settings": settings_json(one.iter()) }));
    json!({
        "attributes": array.attributes.iter().map(attribute).collect::<Vec<_>>(),
        "buffers": buffers.collect::<Vec<_>>(),
        "elements": array.elements.as_ref().map(setting_json),
    })
}

fn object_json(named: &Named) -> Json {
    let object = &named.object;
    let mut row = json!({
        "kind": object.kind.name(),
        "name": named.name,
        "call": object.call,
        "function": &*object.function,
    });
    let more = |row: &mut Json, name: &str, value: Json| {
        if let Some(row) = row.as_object_mut() {
            row.insert(name.to_owned(), value);
        }
    };
    more(&mut row, if named.scope == Scope::Group { "group" } else { "context" }, named.owner.into());
    if named.count > 1 {
        more(&mut row, "count", named.count.into());
    }
    if let Some(label) = &object.label {
        more(&mut row, "label", label.to_json());
    }
    if let Some(deleted) = object.deleted {
        more(&mut row, "deleted", deleted.into());
    }
    if !object.properties.is_empty() {
        more(&mut row, "properties", settings_json(object.properties.iter()));
    }
    match &object.detail {
        Detail::None => {}
        Detail::Texture(levels) => {
            let levels = levels.iter().map(|((target, level), one)| {
                let mut row = values_json(one.format.iter());
                row.insert("target".to_owned(), target.as_ref().into());
                row.insert("level".to_owned(), (*level).into());
                row.insert("call".to_owned(), one.call.into());
                row.insert("changed".to_owned(), json!(one.changed));
                row.insert("given_bytes".to_owned(), one.given_bytes.into());
                Json::from(row)
            });
            more(&mut row, "levels", levels.collect());
        }
        Detail::Framebuffer(attachments) => {
            let attachments = attachments.iter().map(|(point, one)| {
                let mut row = pairs_json(&one.more);
                row.insert("point".to_owned(), point.as_ref().into());
                row.insert("kind".to_owned(), one.kind.name().into());
                row.insert("name".to_owned(), one.name.into());
                row.insert("call".to_owned(), one.call.into());
                Json::from(row)
            });
            more(&mut row, "attachments", attachments.collect());
        }
        Detail::Shader(source) => more(&mut row, "source", source_json(source)),
        Detail::Program(program) => more(&mut row, "program", program_json(program)),
        Detail::VertexArray(array) => more(&mut row, "vertex_array", array_json(array)),
        Detail::List(list) => more(&mut row, "kept_calls", list.count().into()),
    }
    row
}

fn source_json(source: &Source) -> Json {
    let text = source.text.as_ref().map(|text| String::from_utf8_lossy(text.bytes()).into_owned());
    json!({ "text": text, "call": source.call, "left_out_bytes": source.left_out_bytes })
}

fn program_json(program: &Program) -> Json {
    let linked = program
        .linked
        .iter()
        .map(|one| json!({ "shader": one.name, "type": one.kind.to_json(), "source": source_json(&one.source) }));
    let uniforms = program.uniforms.iter().map(|(location, setting)| {
        json!({ "location": location, "name": uniform_name(program, *location),
                "value": setting.value.to_json(), "call": setting.call })
    });
    let blocks = program.blocks.iter().map(|(index, setting)| {
        let name = program.block_names.get(index).map(|name| name.to_string());
        json!({ "index": index, "name": name, "binding": setting.value.to_json(), "call": setting.call })
    });
    let attached = program.shaders.iter().map(|(name, call)| json!({ "shader": name, "call": call }));
    json!({
        "attached": attached.collect::<Vec<_>>(),
        "linked": linked.collect::<Vec<_>>(),
        "link": program.link,
        "uniforms": uniforms.collect::<Vec<_>>(),
        "blocks": blocks.collect::<Vec<_>>(),
        "attributes": settings_json(program.attributes.iter()),
    })
}

fn uniform_name(program: &Program, location: i64) -> Option<String> {
    program.locations.get(&location).map(|name| name.to_string())
}

/// Writes the state for people.
///
/// # Errors
/// I/O.
pub fn write_text(out: &mut dyn Write, state: &StateAtCall) -> Result<(), Error> {
    match state.call {
        Some(call) => writeln!(out, "after call {call} {}, thread {}", state.function.escape_default(), state.thread)?,
        None => writeln!(out, "no calls")?,
    }
    for (at, (context, known)) in state.contexts.iter().enumerate().filter(|(at, _)| is_shown(state, *at)) {
        let current = if at == state.current as usize { ", current" } else { "" };
        match (context.system, context.created) {
            (None, _) => writeln!(out, "\ncontext unknown{current}")?,
            (Some(system), created) => {
                let created =
                    created.map_or_else(|| "created before the trace".to_owned(), |call| format!("of call {call}"));
                let system = format!("{system:?}").to_lowercase();
                writeln!(
                    out,
                    "\ncontext {at} ({system} {:#x} {created}), group {}{current}",
                    context.handle, context.group
                )?;
            }
        }
        text_context(out, context, known)?;
    }
    writeln!(out, "\nobjects")?;
    for object in &state.objects {
        text_object(out, object)?;
    }
    Ok(())
}

fn call_text(call: Option<u64>) -> String {
    call.map_or_else(|| "initial".to_owned(), |call| format!("call {call}"))
}

fn text_context(out: &mut dyn Write, context: &Context, known: &ContextState) -> Result<(), Error> {
    let line = |out: &mut dyn Write, name: &str, setting: &Setting| {
        writeln!(out, "  {name} = {} ({})", setting.value, call_text(setting.call))
    };
    let all = parameters(context, known);
    for (name, setting) in all.iter().filter(|(_, setting)| setting.call.is_some()) {
        line(out, name, setting)?;
    }
    for (key, stack) in &known.matrices {
        let numbers: Vec<String> = stack.top.iter().map(|number| (*number as f32).to_string()).collect();
        let (name, depth) = (key_text(key), stack.depth());
        writeln!(out, "  {name} matrix = {{{}}} (call {}, depth {depth})", numbers.join(", "), stack.call)?;
    }
    for (key, binding) in &known.bindings {
        let Binding { kind, name, call, more } = binding;
        let bound = if *name == 0 { "none".to_owned() } else { format!("{} {name}", kind.name()) };
        writeln!(out, "  {} bound: {bound}{} (call {call})", key_text(key), pairs_text(more))?;
    }
    text_array(out, &known.vertex_array)?;
    text_initial(out, &all)?;
    for what in &known.unknown {
        writeln!(out, "  unknown: {what}")?;
    }
    Ok(())
}

/// Initial values, many to a line: they are of less interest.
fn text_initial(out: &mut dyn Write, all: &BTreeMap<String, Setting>) -> Result<(), Error> {
    let mut line = String::new();
    for (name, setting) in all.iter().filter(|(_, setting)| setting.call.is_none()) {
        let one = format!("{name} = {}", setting.value);
        if line.is_empty() {
            writeln!(out, "  not set by any call, so initial:")?;
            line.push_str("    ");
        } else if line.len() + one.len() > LINE_BYTES_MAX {
            writeln!(out, "{line},")?;
            line.replace_range(4.., "");
        } else {
            line.push_str(", ");
        }
        line.push_str(&one);
    }
    if line.is_empty() {
        return Ok(writeln!(out, "  state that no call set is unknown")?);
    }
    Ok(writeln!(out, "{line}")?)
}

fn pairs_text(more: &[(Rc<str>, Val)]) -> String {
    more.iter().map(|(name, value)| format!(", {name} {value}")).collect()
}

fn text_array(out: &mut dyn Write, array: &VertexArray) -> Result<(), Error> {
    for (key, one) in &array.attributes {
        let enabled = match &one.enabled {
            Some(setting) if setting.value == Val::truth(true) => "enabled",
            _ => "disabled",
        };
        let format: String = one.format.iter().map(|(name, value)| format!(", {name} {value}")).collect();
        let call = one.call.map_or_else(String::new, |call| format!(" (call {call})"));
        writeln!(out, "  {}: {enabled}{format}{call}", key_text(key))?;
    }
    for (point, settings) in &array.buffers {
        let settings: String = settings.iter().map(|(name, one)| format!(", {name} {}", one.value)).collect();
        writeln!(out, "  vertex buffer {point}{settings}")?;
    }
    if let Some(elements) = &array.elements {
        writeln!(out, "  index buffer {} ({})", elements.value, call_text(elements.call))?;
    }
    Ok(())
}

fn text_object(out: &mut dyn Write, named: &Named) -> Result<(), Error> {
    let object = &named.object;
    let name = if object.kind == Kind::Sync { format!("{:#x}", named.name) } else { named.name.to_string() };
    write!(out, "{} {name}", object.kind.name())?;
    if named.count > 1 {
        write!(out, " and {} more", named.count - 1)?;
    }
    if let Some(label) = &object.label {
        write!(out, " {label}")?;
    }
    write!(out, ": {} of call {}", object.function.escape_default(), object.call)?;
    if let Some(deleted) = object.deleted {
        write!(out, ", deleted by call {deleted} but in use")?;
    }
    let owner = if named.scope == Scope::Group { "group" } else { "context" };
    writeln!(out, ", {owner} {}", named.owner)?;
    for (name, setting) in &object.properties {
        writeln!(out, "  {name} = {} ({})", setting.value, call_text(setting.call))?;
    }
    match &object.detail {
        Detail::Texture(levels) => {
            for ((target, level), one) in levels {
                let format: String = one.format.iter().map(|(name, value)| format!(", {name} {value}")).collect();
                let changed = one.changed.map_or_else(String::new, |call| format!(", changed by call {call}"));
                writeln!(
                    out,
                    "  {target} level {level}{format}, {} bytes given (call {}{changed})",
                    one.given_bytes, one.call
                )?;
            }
        }
        Detail::Framebuffer(attachments) => {
            for (point, one) in attachments {
                let (kind, name, more) = (one.kind.name(), one.name, pairs_text(&one.more));
                writeln!(out, "  {point}: {kind} {name}{more} (call {})", one.call)?;
            }
        }
        Detail::Shader(source) => writeln!(out, "  {}", source_text(source))?,
        Detail::Program(program) => text_program(out, program)?,
        Detail::VertexArray(array) => text_array(out, array)?,
        Detail::List(list) => writeln!(out, "  {} calls that set state", list.count())?,
        Detail::None => {}
    }
    Ok(())
}

fn source_text(source: &Source) -> String {
    let bytes = source.text.as_ref().map(|text| text.bytes().len() as u64).or(source.left_out_bytes);
    match (bytes, source.call) {
        (Some(bytes), Some(call)) => format!("source of {bytes} bytes (call {call})"),
        _ => "source unknown".to_owned(),
    }
}

fn text_program(out: &mut dyn Write, program: &Program) -> Result<(), Error> {
    for (shader, call) in &program.shaders {
        writeln!(out, "  shader {shader} attached (call {call})")?;
    }
    for one in &program.linked {
        let link = program.link.map_or_else(String::new, |call| format!(" (call {call})"));
        writeln!(out, "  linked{link}: {} of shader {}, {}", one.kind, one.name, source_text(&one.source))?;
    }
    for (location, setting) in &program.uniforms {
        let name =
            uniform_name(program, *location).map_or_else(String::new, |name| format!(" {}", name.escape_default()));
        writeln!(out, "  uniform {location}{name} = {} ({})", setting.value, call_text(setting.call))?;
    }
    for (index, setting) in &program.blocks {
        let name =
            program.block_names.get(index).map_or_else(String::new, |name| format!(" {}", name.escape_default()));
        writeln!(out, "  uniform block {index}{name}: binding {} ({})", setting.value, call_text(setting.call))?;
    }
    Ok(())
}

/// A shader's source as a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShaderFile {
    /// The file's name, without folders.
    pub name: String,
    /// The source.
    pub source: Vec<u8>,
}

/// The known sources: those that linked programs run, `program4-shader2.vert`, and those of shaders, `shader2.vert`. If
/// there are several groups, their numbers come first.
pub fn shader_files(state: &StateAtCall) -> Vec<ShaderFile> {
    let groups: BTreeSet<u32> = state.of(Kind::Program).chain(state.of(Kind::Shader)).map(|one| one.owner).collect();
    let group = |one: &Named| if groups.len() > 1 { format!("group{}-", one.owner) } else { String::new() };
    let mut files = Vec::new();
    let mut add = |name: String, source: &Source| {
        if let Some(text) = &source.text {
            files.push(ShaderFile { name, source: text.bytes().to_vec() });
        }
    };
    for one in state.of(Kind::Program) {
        let Detail::Program(program) = &one.object.detail else { continue };
        for linked in &program.linked {
            let shader = if linked.name == 0 { String::new() } else { format!("-shader{}", linked.name) };
            add(format!("{}program{}{shader}.{}", group(one), one.name, extension(&linked.kind)), &linked.source);
        }
    }
    for one in state.of(Kind::Shader) {
        let Detail::Shader(source) = &one.object.detail else { continue };
        let kind = one.object.properties.get("type").map_or(Val::Null, |setting| setting.value.clone());
        add(format!("{}shader{}.{}", group(one), one.name, extension(&kind)), source);
    }
    files
}

/// The ending that the reference compiler knows the stage by.
fn extension(kind: &Val) -> &'static str {
    let (name, number) = match kind {
        Val::Name(name) => (name.trim_end_matches("_ARB"), 0),
        Val::Int(number) => ("", *number),
        _ => ("", 0),
    };
    match (name, number) {
        ("GL_VERTEX_SHADER", _) | (_, 0x8b31) => "vert",
        ("GL_FRAGMENT_SHADER", _) | (_, 0x8b30) => "frag",
        ("GL_GEOMETRY_SHADER", _) | (_, 0x8dd9) => "geom",
        ("GL_TESS_CONTROL_SHADER", _) | (_, 0x8e88) => "tesc",
        ("GL_TESS_EVALUATION_SHADER", _) | (_, 0x8e87) => "tese",
        ("GL_COMPUTE_SHADER", _) | (_, 0x91b9) => "comp",
        _ => "glsl",
    }
}
