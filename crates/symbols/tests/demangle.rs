//! Names as people wrote them, and names made to harm.

use anytrace_core::span::Mangling;
use anytrace_symbols::demangle;
use proptest::prelude::*;

fn demangled(name: &str) -> String {
    demangle(name, Mangling::Demangled).into_owned()
}

#[test]
fn names_are_those_of_the_peer() {
    for (name, expected) in [
        ("_Z2c3i", "c3(int)"),
        ("main", "main"),
        ("_ZN4demo4leafEj", "demo::leaf(unsigned int)"),
        ("_Z1fv.cold", "f() (.cold)"),
        ("_Z1fv.isra.0.cold", "f() (.isra.0.cold)"),
        ("_ZThn16_N1A1fEv", "non-virtual thunk to A::f()"),
        ("_ZTv0_n24_NSt10ostrstreamD0Ev", "virtual thunk to std::ostrstream::~ostrstream()"),
        ("_ZTch0_h16_N1A1fEv", "covariant return thunk to A::f()"),
        ("_ZTV1A", "vtable for A"),
        ("_ZTT1A", "VTT for A"),
        ("_ZTI1A", "typeinfo for A"),
        ("_ZTS1A", "typeinfo name for A"),
        ("_ZGVZ1fvE1x", "guard variable for f()::x"),
        ("_Z1fILin5EEvv", "void f<-5>()"),
        ("_Z1fILx5ELj4ELm1ELy7ELl2ELb1EEvv", "void f<5ll, 4u, 1ul, 7ull, 2l, true>()"),
        ("_Z1fILc97ELs3EEvv", "void f<(char)97, (short)3>()"),
        ("_ZN1A1BIS_IiEE1fEv", "A::B<A<int>>::f()"),
        ("_ZN1ArsIiEEvT_", "void A::operator>><int>(int)"),
        ("_ZN1AgtIS_IiEEEvT_", "void A::operator><A<int>>(A<int>)"),
        ("_ZltI1AEbRKT_S3_", "bool operator<<A>(A const&, A const&)"),
        ("_ZN1AlsIiEEvT_", "void A::operator<<<int>(int)"),
        ("_ZZ1fvENKUliE_clEi", "f()::'lambda'(int)::operator()(int) const"),
        ("_ZZ1fvENKUlvE0_clEv", "f()::'lambda0'()::operator()() const"),
        ("_ZZ4mainENK3$_0clEv", "main::$_0::operator()() const"),
        ("_ZN12_GLOBAL__N_11fEv", "(anonymous namespace)::f()"),
        ("_Z1fB5cxx11v", "f[abi:cxx11]()"),
        ("_Z1fSt8functionIFviEE", "f(std::function<void (int)>)"),
        ("_ZN1A1BIJEE1fEv", "A::B<>::f()"),
        ("_RNvC3foo3bar", "foo::bar"),
    ] {
        assert_eq!(demangled(name), expected, "{name}");
    }
}

#[test]
fn rust_names_lose_their_hash() {
    assert_eq!(demangled("_ZN3std2io5Write9write_fmt17h0123456789abcdefE"), "std::io::Write::write_fmt");
    assert_eq!(
        demangled("_ZN4core3ptr42drop_in_place$LT$alloc..string..String$GT$17h0123456789abcdefE"),
        "core::ptr::drop_in_place<alloc::string::String>"
    );
    assert_eq!(demangled("_RNvNtCs1234_7mycrate3foo3bar"), "mycrate::foo::bar");
}

#[test]
fn other_names_and_damaged_ones_stay() {
    for name in
        ["", "_", "_Z", "_ZN", "_Z1", "_R", "_RNvC", "__ZN", "printf", "f()", "?f@@YAHH@Z", "é", "_Z9999999999f"]
    {
        assert_eq!(demangled(name), name);
    }
    assert_eq!(demangle("_Z2c3i", Mangling::AsIs), "_Z2c3i");
}

/// Each argument is a pair of the one before: the text doubles with each.
fn bomb(depth: usize) -> String {
    let mut name = "_Z1f1A".to_owned();
    for n in 0..depth {
        let back = if n == 0 { "S_".to_owned() } else { format!("S{}_", base36(2 * n - 1)) };
        name.push_str(&format!("1BI{back}{back}E"));
    }
    name
}

fn base36(n: usize) -> String {
    let digit = |n: usize| char::from_digit(u32::try_from(n % 36).unwrap_or(0), 36).unwrap_or('0').to_ascii_uppercase();
    if n < 36 { digit(n).to_string() } else { format!("{}{}", base36(n / 36), digit(n)) }
}

#[test]
fn a_name_that_would_fill_memory_is_given_up() {
    let small = demangled(&bomb(4));
    assert!(small.starts_with("f(A, B<A, A>"), "{small}");
    for depth in [10, 20, 40, 80, 200] {
        assert!(demangled(&bomb(depth)).len() <= 64 * 1024, "{depth}");
    }
}

#[test]
fn names_that_nest_deep_are_given_up() {
    for depth in [100, 1_000, 10_000, 60_000] {
        for (begin, unit, end) in
            [("_Z1f", "P", "i"), ("_Z1f", "1AI", ""), ("_Z1fIX", "ng", ""), ("_RNvC3foo", "I", ""), ("_Z", "Z", "")]
        {
            demangled(&format!("{begin}{}{end}", unit.repeat(depth)));
        }
    }
    let long = format!("_Z1f{}", "i".repeat(100_000));
    assert_eq!(demangled(&long), long);
}

#[test]
fn names_of_c_that_look_like_rusts_without_its_underscore_stay() {
    for name in ["RC3.A_.", "RC3foo", "RNvC3foo3bar", "ZN3foo3barE", "ZN4testE"] {
        assert_eq!(demangled(name), name);
        assert_ne!(demangled(&format!("_{name}")), format!("_{name}"));
    }
}

proptest! {
    #[test]
    fn any_text_is_answered(text in "(_Z|_R|__Z|)[ -~]{0,60}") {
        demangled(&text);
    }

    #[test]
    fn letters_of_the_grammar_are_answered(text in "_Z[NSTIEKPROvijmlbcfdZUluLAXJDFGMCVr0-9_]{0,60}") {
        demangled(&text);
    }

    #[test]
    fn plain_names_stay(text in "[a-zA-Z][a-zA-Z0-9_.]{0,40}") {
        prop_assert_eq!(demangled(&text), text);
    }
}
