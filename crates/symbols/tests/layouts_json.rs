//! Type data as JSON: ours, that of dwarf2json, and files that are neither.

#![allow(missing_docs)]
#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anytrace_core::InputOptions;
use anytrace_core::layout::{Bits, Dimension, Field, Layout, Layouts, RecordKind, Role};
use anytrace_symbols::layouts::{with_type_data, write_layouts};
use proptest::prelude::*;

fn file(name: &str, bytes: &[u8]) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("layouts-json");
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join(name);
    std::fs::write(&path, bytes).unwrap();
    path
}

fn records(path: &Path) -> Result<Vec<Arc<Layout>>, String> {
    with_type_data(&[path], InputOptions::default(), |data| data.records()).map_err(|error| error.to_string())
}

const UPSTREAM: &str = r#"{"version": 4, "structs": [
  {"id": 1, "name": "struct Node", "members": [
    {"id": 2, "memberName": "next", "name": "struct Node*", "offset": 0, "size": 8},
    {"id": 3, "memberName": "how", "name": "<unsupported type>", "offset": 8, "size": -1},
    {"id": 4, "memberName": "cold", "name": "char[]", "offset": 16, "size": 48}]},
  {"id": 5, "name": "struct Pk", "members": [
    {"id": 6, "memberName": "t", "name": "unsigned char", "offset": 0, "size": 1},
    {"id": 7, "memberName": "u", "name": "unsigned int", "offset": 1, "size": 4}]},
  {"id": 8, "name": "struct Open", "members": [
    {"id": 9, "memberName": "n", "name": "int", "offset": 0, "size": 4},
    {"id": 9, "memberName": "f", "name": "<unsupported type>", "offset": 8, "size": -1}]}],
 "unions": [{"id": 1, "name": "union U", "members": [
    {"id": 2, "memberName": "i", "name": "long", "size": 8}, {"id": 2, "memberName": "s", "name": "char[]", "size": 9}]}],
 "typedefs": [{"type": "NodeT", "def": "struct Node"}]}"#;

#[test]
fn dwarf2json_is_read_and_its_missing_sizes_are_added() {
    let path = file("upstream.json", UPSTREAM.as_bytes());
    with_type_data(&[&path], InputOptions::default(), |data| {
        let node = data.layout("struct.Node.7", 64).unwrap();
        assert_eq!(
            (node.bytes, node.describe(8, 4), node.describe(63, 1)),
            (64, "how".to_owned(), "cold[47]".to_owned())
        );
        assert_eq!(data.layout("NodeT", 0), Some(node));
        assert_eq!(data.layout("struct.Pk", 0).unwrap().bytes, 5);
        let union = data.layout("union.U", 0).unwrap();
        assert_eq!((union.bytes, union.touched(0, 1)), (16, vec![0, 1]));
        // Its last member has no size: elements are taken as the trace has them.
        let open = data.layout("Open", 24).unwrap();
        assert_eq!((open.bytes, open.element_bytes(24)), (0, 24));
        // The bytes after its start are its own, as far as is known.
        assert_eq!(
            [(0, 4), (4, 4), (8, 4), (20, 4)].map(|(at, bytes)| open.describe(at, bytes)),
            ["n", "(padding)", "f", "f"]
        );
        assert!(data.layout("struct.Missing", 0).is_none());
    })
    .unwrap();
}

#[test]
fn files_without_type_data_are_refused_with_a_reason() {
    for (name, bytes, why) in [
        ("empty", &b""[..], "EOF"),
        ("text", b"hello", "expected value"),
        ("version", br#"{"version":3,"structs":[]}"#, "version 3"),
        ("keys", br#"{"version":1}"#, "types: expected a list"),
        ("structs", br#"{"version":4}"#, "structs: expected a list"),
        ("kind", br#"{"version":1,"types":[{"name":"A","kind":"thing","size":1}]}"#, "thing"),
        ("size", br#"{"version":1,"types":[{"name":"A","kind":"struct"}]}"#, "size"),
        ("list", br#"{"version":4,"structs":7}"#, "structs: expected a list"),
        ("elf", b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0", "elf"),
    ] {
        let error = records(&file(name, bytes)).unwrap_err();
        assert!(error.contains(why), "{name}: {error}");
    }
}

/// Offset, bytes, bits, dimensions, and whether it is in the field before.
type Drawn = (u64, u64, Option<(u64, u64)>, Vec<(u64, u64)>, bool);

fn field() -> impl Strategy<Value = Drawn> {
    (
        0_u64..100,
        0_u64..20,
        proptest::option::of((0_u64..64, 1_u64..9)),
        proptest::collection::vec((0_u64..9, 0_u64..5), 0..3),
        any::<bool>(),
    )
}

proptest! {
    #[test]
    fn written_layouts_are_read_back(fields in proptest::collection::vec(field(), 1..12), name in "[a-zA-Z:<>, ]{1,12}x") {
        let mut layout = Layout::new(&name, RecordKind::Class, 100);
        layout.virtual_bases = vec!["Base".to_owned()];
        let mut parent: Option<usize> = None;
        for (number, (offset, bytes, bits, dimensions, is_inside)) in fields.into_iter().enumerate() {
            let mut field = Field::new(&format!("f{number}"), offset, bytes, "int");
            if let Some(outer) = parent.filter(|_| is_inside) {
                let above = layout.fields[outer].clone();
                (field.parent, field.depth, field.dimensions) = (Some(outer), above.depth + 1, above.dimensions);
            }
            field.bits = bits.map(|(first, count)| Bits { first, count });
            field.role = if number == 0 { Role::Base } else { Role::Member };
            for (stride_bytes, count) in dimensions {
                field = field.repeated(Dimension { stride_bytes, count });
            }
            parent = layout.push(field);
        }
        let mut bytes = Vec::new();
        write_layouts(&[Arc::new(layout.clone())], &mut bytes).unwrap();
        let path = file(&format!("round-{:?}.json", std::thread::current().id()), &bytes);
        let read = records(&path).unwrap();
        prop_assert_eq!(read.len(), 1);
        prop_assert_eq!(&*read[0], &layout);
    }
}
