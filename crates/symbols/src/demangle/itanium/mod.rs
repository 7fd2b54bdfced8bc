//! Names of C++ as compilers of the Itanium ABI mangle them (gcc and clang except on Windows), printed as by LLVM's
//! tools.
//!
//! A name is parsed into a graph and printed from it. A name of a few hundred bytes may describe one of gigabytes, or
//! take years to print nothing: depth, nodes, steps and letters are bounded, and a name that exceeds them is returned
//! unchanged.

mod expressions;
mod names;
mod node;
mod operators;
mod parser;
mod print;
mod types;

use node::{Id, Node};
use parser::Parser;

/// The readable form of a name; `None` where it is not a C++ name, is damaged, or exceeds a limit.
pub(super) fn demangle(name: &str, bytes_max: usize) -> Option<String> {
    // Darwin prefixes everything with an underscore, and functions that run its blocks with three.
    let mangled = name.strip_prefix("_Z").or_else(|| name.strip_prefix("__Z"));
    if let Some(mangled) = mangled {
        let mut parser = Parser::new(mangled);
        let root = parser.encoding()?;
        let root = suffixed(&mut parser, root)?;
        return print::print(&parser.into_nodes(), root, bytes_max);
    }
    let mangled = name.strip_prefix("___Z").or_else(|| name.strip_prefix("____Z"))?;
    let mut parser = Parser::new(mangled);
    let inner = parser.encoding()?;
    parser.expect("_block_invoke")?;
    let has_line = parser.eat("_");
    let number = parser.number();
    if has_line && number.is_none() {
        return None;
    }
    if !parser.rest().is_empty() && !parser.rest().starts_with('.') {
        return None;
    }
    let root = parser.make(Node::Prefixed("invocation function for block in ", inner))?;
    print::print(&parser.into_nodes(), root, bytes_max)
}

/// The name with the suffix that a compiler appended, from a point to the end.
fn suffixed<'a>(parser: &mut Parser<'a>, root: Id) -> Option<Id> {
    match parser.rest() {
        "" => Some(root),
        suffix if suffix.starts_with('.') => parser.make(Node::Suffixed(root, suffix)),
        _ => None,
    }
}
