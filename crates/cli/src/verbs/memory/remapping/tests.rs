//! Plans read and written in both forms.

use std::sync::Arc;

use anytrace_core::layout::{Field, RecordKind};
use serde_json::json;

use super::json::of_json;
use super::lines::of_lines;
use super::*;

struct Node;

impl Layouts for Node {
    fn layout(&mut self, name: &str, _recorded: u64) -> Option<Arc<Layout>> {
        let mut layout = Layout::new("Node", RecordKind::Struct, 24);
        layout.push(Field::new("next", 0, 8, "Node*"));
        layout.push(Field::new("val", 8, 4, "int"));
        layout.push(Field::new("big", 16, 8, "long"));
        name.ends_with("Node").then(|| Arc::new(layout))
    }
}

#[test]
fn upstreams_lines_move_fields_and_leave_the_others() {
    let plans = of_lines("# two\nstruct Node=next,8;val,0;\n", &mut Node).unwrap();
    let moves: Vec<_> = plans[0].moves.iter().map(|one| (one.from, one.to)).collect();
    assert_eq!((moves.as_slice(), plans[0].parts[0].bytes), (&[(0, 8), (8, 0), (16, 16)][..], 24));
    let grown = of_lines("Node=next,100", &mut Node).unwrap();
    assert_eq!(grown[0].parts[0].bytes, 112);
}

#[test]
fn what_is_wrong_is_reported_with_its_line() {
    let why = |text: &str| of_lines(text, &mut Node).unwrap_err();
    assert_eq!(why("\nstruct Node"), "line 2: expected TYPE=FIELD,OFFSET;…");
    assert!(why("Node=x,8").contains("no field x") && why("Node=next").contains("FIELD,OFFSET"));
    assert!(why("Other=a,1").contains("are unknown") && why("Node=next,8").contains("share"));
}

#[test]
fn our_form_is_read_as_it_is_written() {
    let plans = of_lines("Node=next,8;val,0", &mut Node).unwrap();
    let text = json!({"version": 1, "types": [written(&plans[0])]}).to_string();
    assert_eq!(of_json(&text, &mut Node).unwrap(), plans);
    assert_eq!(of_json(&written(&plans[0]).to_string(), &mut Node).unwrap(), plans);
    let named = r#"{"version":1,"types":[{"name":"Node","parts":[{"size":16,"fields":[{"field":"next","offset":0}]},
        {"size":16,"fields":[{"field":"big","offset":0},{"from":8,"bytes":4,"offset":8}]}],"pointer":8}]}"#;
    assert_eq!(of_json(named, &mut Node).unwrap()[0].parts.len(), 2);
    assert!(of_json("{}", &mut Node).is_err() && of_json(&named.replace("big", "bag"), &mut Node).is_err());
}
