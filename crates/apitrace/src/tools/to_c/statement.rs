//! The statement of a call, in one line or more.

use super::text::{Expressions, kind_name};
use crate::tools::program::{Around, GlCall, Unfit};

pub(super) fn of_call(call: &GlCall<'_>, expressions: &mut Expressions) -> Result<String, Unfit> {
    let name = call.name;
    let mut arguments = Vec::new();
    for (types, argument) in crate::tools::program::split_types(call.types).skip(1).zip(call.arguments) {
        arguments.push(expressions.argument(types, argument, call.dictionary)?);
    }
    let text = format!("{name}({})", arguments.join(", "));
    let first = arguments.first().map_or("0", String::as_str);
    Ok(match call.around {
        // This machine asks nothing.
        Around::Nothing | Around::Asks(_) => format!("{text};"),
        Around::UsesProgram(program) => format!("{text}; used_program({program}u);"),
        Around::FindsLocation { program, location } => format!("location_is({program}u, {location}, {text});"),
        Around::FindsBlock { program, block } => format!("block_is({program}u, {block}u, {text});"),
        Around::DeletesSync(sync) => format!("{text}; forget_sync({sync:#x});"),
        Around::Maps { address, length, is_name } => {
            let length = length.and_then(|index| arguments.get(index)).map_or("-1", String::as_str);
            format!("mapped({address:#x}, {text}, {length}, {first}, {});", u8::from(is_name))
        }
        Around::Unmaps { is_name } => format!("unmapped({first}, {}); {text};", u8::from(is_name)),
        Around::Packs => format!("if (pack_buffer()) {text};"),
        Around::Makes { kind, name } => format!("made({}, {name}u, {text});", kind_name(kind)),
        Around::MakesSync(sync) => format!("made_sync({sync:#x}, {text});"),
        Around::MakesRange { kind, first, count } => {
            format!("made_range({}, {first}u, {count}, {text});", kind_name(kind))
        }
        Around::MakesMany { kind, names } => {
            let (length, kind) = (names.len(), kind_name(kind));
            let names: Vec<String> = names.iter().map(|name| format!("{name}u")).collect();
            format!(
                "{{ GLuint names[{length}] = {{0}}; {text}; made_many({kind}, {length}, (const GLuint[]){{{}}}, names); }}",
                names.join(", ")
            )
        }
    })
}
