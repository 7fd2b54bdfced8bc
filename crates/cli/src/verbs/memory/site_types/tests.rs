use anytrace_core::span::Location;

use super::stated::{Stated, parsed};

fn of(site: &str) -> Stated {
    parsed(&format!("{site}=T")).unwrap()
}

#[test]
fn sites_types_and_counts_are_read() {
    let stated = parsed("make(int)+0x1f = ns::Node<3> [10]").unwrap();
    assert_eq!((stated.site.as_str(), stated.type_name.as_str()), ("make(int)+0x1f", "ns::Node<3>"));
    assert_eq!(stated.elements, Some(10));
    assert_eq!(parsed("a::operator==(b)=T").unwrap().site, "a::operator==(b)");
    for wrong in ["", "T", "=T", "f=", "f=[3]", "f=T[0]", "f=T[]", "f=T[x]", "f=T[99999999999999999999]"] {
        let error = parsed(wrong).unwrap_err();
        assert!(error.starts_with("expected SITE=TYPE"), "{wrong}: {error}");
    }
}

#[test]
fn sites_are_named_in_several_ways() {
    let name = "ns::make<int>(long)+0x1f<main+0x30 (calloc)";
    for site in
        [name, "ns::make<int>(long)+0x1f<main+0x30", "ns::make<int>(long)+0x1f", "ns::make", "main", "main+0x30"]
    {
        assert!(of(site).is_of(name, &[]), "{site}");
    }
    for site in ["make", "ns::make<int>(long)+0x1e", "main+0x3", "app.c:3"] {
        assert!(!of(site).is_of(name, &[]), "{site}");
    }
    let lines = [Location { file: "/src/app/app.c".into(), line: 3 }];
    for (site, is_it) in [("app.c:3", true), ("app/app.c:3", true), ("p.c:3", false), ("app.c:4", false)] {
        assert_eq!(of(site).is_of(name, &lines), is_it, "{site}");
    }
}
