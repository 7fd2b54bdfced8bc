//! Names of every rule of the Itanium grammar, and random ones against LLVM's tool.

#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

use std::io::{Seek, Write};
use std::process::Command;

use anytrace_core::span::Mangling;
use anytrace_core::testing::skip;
use anytrace_symbols::demangle;

fn shown(name: &str) -> String {
    demangle(name, Mangling::Demangled).into_owned()
}

/// Each row: what the name ends with, and how that is written as the parameter of `f`.
fn parameters(rows: &[(&str, &str)]) {
    for (code, text) in rows {
        assert_eq!(shown(&format!("_Z1f{code}")), format!("f({text})"), "{code}");
        // As the type of a vtable no more than the type itself is shown.
        assert_eq!(shown(&format!("_ZTI{code}")), format!("typeinfo for {text}"), "{code}");
    }
}

#[test]
fn every_builtin_type_has_its_name() {
    // Section 5.1.5.2 of the ABI.
    parameters(&[
        ("w", "wchar_t"),
        ("b", "bool"),
        ("c", "char"),
        ("a", "signed char"),
        ("h", "unsigned char"),
        ("s", "short"),
        ("t", "unsigned short"),
        ("i", "int"),
        ("j", "unsigned int"),
        ("l", "long"),
        ("m", "unsigned long"),
        ("x", "long long"),
        ("y", "unsigned long long"),
        ("n", "__int128"),
        ("o", "unsigned __int128"),
        ("f", "float"),
        ("d", "double"),
        ("e", "long double"),
        ("g", "__float128"),
        ("z", "..."),
        ("Dd", "decimal64"),
        ("De", "decimal128"),
        ("Df", "decimal32"),
        ("Dh", "half"),
        ("DF16_", "_Float16"),
        ("DB8_", "_BitInt(8)"),
        ("DU32_", "unsigned _BitInt(32)"),
        ("Di", "char32_t"),
        ("Ds", "char16_t"),
        ("Du", "char8_t"),
        ("Dn", "std::nullptr_t"),
        ("Da", "auto"),
        ("Dc", "decltype(auto)"),
        ("u7__int24", "__int24"),
    ]);
}

#[test]
fn compound_types_are_written_around_their_parts() {
    parameters(&[
        ("Pi", "int*"),
        ("PKi", "int const*"),
        ("PVKi", "int const volatile*"),
        ("PrVKi", "int const volatile restrict*"),
        ("KPi", "int* const"),
        ("PKPVi", "int volatile* const*"),
        ("Ri", "int&"),
        ("Oi", "int&&"),
        ("RKPi", "int* const&"),
        ("Ci", "int complex"),
        ("Gd", "double imaginary"),
        ("A3_i", "int [3]"),
        ("A_i", "int []"),
        ("A3_A4_i", "int [3][4]"),
        ("PA3_i", "int (*) [3]"),
        ("RA3_Ki", "int const (&) [3]"),
        ("PFvvE", "void (*)()"),
        ("FvvE", "void ()"),
        ("PFivE", "int (*)()"),
        ("PFiidE", "int (*)(int, double)"),
        ("PFPFvvEiE", "void (* (*)(int))()"),
        ("PFvPFvvEE", "void (*)(void (*)())"),
        ("PFPA3_ivE", "int (* (*)()) [3]"),
        ("RFvvE", "void (&)()"),
        ("M1Ai", "int A::*"),
        ("M1AFvvE", "void (A::*)()"),
        ("M1AKFvvE", "void (A::*)() const"),
        ("M1AVKFvvRE", "void (A::*)() const volatile &"),
        ("M1AFvvOE", "void (A::*)() &&"),
        ("M1AFviE", "void (A::*)(int)"),
        ("PDoFvvE", "void (*)() noexcept"),
        ("PDOLb1EEFvvE", "void (*)() noexcept(true)"),
        ("PDwiEFvvE", "void (*)() throw(int)"),
        ("Dv4_f", "float vector[4]"),
        ("Dv_f", "float vector[]"),
        ("P1A", "A*"),
        ("N1A1BE", "A::B"),
        ("Ts1A", "struct A"),
        ("Tu1A", "union A"),
        ("Te1A", "enum A"),
        ("DTfp_E", "decltype(fp)"),
        ("St6vectorIiSaIiEE", "std::vector<int, std::allocator<int>>"),
        ("U8__strongP1A", "A* __strong"),
    ]);
}

#[test]
fn every_operator_has_its_name() {
    for (code, text) in [
        ("nw", " new"),
        ("na", " new[]"),
        ("dl", " delete"),
        ("da", " delete[]"),
        ("ps", "+"),
        ("ng", "-"),
        ("ad", "&"),
        ("de", "*"),
        ("co", "~"),
        ("pl", "+"),
        ("mi", "-"),
        ("ml", "*"),
        ("dv", "/"),
        ("rm", "%"),
        ("an", "&"),
        ("or", "|"),
        ("eo", "^"),
        ("aS", "="),
        ("pL", "+="),
        ("mI", "-="),
        ("mL", "*="),
        ("dV", "/="),
        ("rM", "%="),
        ("aN", "&="),
        ("oR", "|="),
        ("eO", "^="),
        ("ls", "<<"),
        ("rs", ">>"),
        ("lS", "<<="),
        ("rS", ">>="),
        ("eq", "=="),
        ("ne", "!="),
        ("lt", "<"),
        ("gt", ">"),
        ("le", "<="),
        ("ge", ">="),
        ("ss", "<=>"),
        ("nt", "!"),
        ("aa", "&&"),
        ("oo", "||"),
        ("pp", "++"),
        ("mm", "--"),
        ("cm", ","),
        ("pm", "->*"),
        ("pt", "->"),
        ("cl", "()"),
        ("ix", "[]"),
        ("aw", " co_await"),
        ("li2_x", "\"\" _x"),
        ("cvi", " int"),
        ("cvPKc", " char const*"),
    ] {
        assert_eq!(shown(&format!("_ZN1A{code}Ev")), format!("A::operator{text}()"), "{code}");
        assert_eq!(shown(&format!("_ZNK1A{code}Ei")), format!("A::operator{text}(int) const"), "{code}");
    }
}

/// Each row: an expression, and how it is written in `decltype`.
#[test]
fn expressions_are_written_with_the_brackets_of_the_peer() {
    for (code, text) in [
        ("fp_", "fp"),
        ("fp0_", "fp0"),
        ("fpT", "this"),
        ("fL0p_", "fp"),
        ("plfp_fp0_", "(fp) + (fp0)"),
        ("gtfp_fp0_", "((fp) > (fp0))"),
        ("ngfp_", "-(fp)"),
        ("ntfp_", "!(fp)"),
        ("pp_fp_", "++(fp)"),
        ("ppfp_", "(fp)++"),
        ("mm_fp_", "--(fp)"),
        ("qufp_fp0_fp1_", "(fp) ? (fp0) : (fp1)"),
        ("ixfp_fp0_", "(fp)[fp0]"),
        ("clfp_E", "fp()"),
        ("clfp_fp0_Li1EE", "fp(fp0, 1)"),
        ("dtfp_1x", "fp.x"),
        ("ptfp_1x", "fp->x"),
        ("dsfp_fp0_", "fp.*fp0"),
        ("scifp_", "static_cast<int>(fp)"),
        ("dcPifp_", "dynamic_cast<int*>(fp)"),
        ("ccKifp_", "const_cast<int const>(fp)"),
        ("rcmfp_", "reinterpret_cast<unsigned long>(fp)"),
        ("cvifp_", "(int)(fp)"),
        ("cvi_E", "(int)()"),
        ("cv1A_fp_fp0_E", "(A)(fp, fp0)"),
        ("tl1Afp_Li1EE", "A{fp, 1}"),
        ("ilfp_E", "{fp}"),
        ("tl1Adi1xfp_E", "A{.x = fp}"),
        ("tl1AdxLi1Efp_E", "A{[1] = fp}"),
        ("tl1AdXLi1ELi2Efp_E", "A{[1 ... 2] = fp}"),
        ("sti", "sizeof (int)"),
        ("szfp_", "sizeof (fp)"),
        ("ati", "alignof (int)"),
        ("azfp_", "alignof (fp)"),
        ("tii", "typeid (int)"),
        ("tefp_", "typeid (fp)"),
        ("nxfp_", "noexcept (fp)"),
        ("twfp_", "throw fp"),
        ("tr", "throw"),
        ("sZfp_", "sizeof... (fp)"),
        ("sPifE", "sizeof... (int, float)"),
        ("nw_iE", "new int"),
        ("gsnw_iE", "::new int"),
        ("na_iE", "new[] int"),
        ("nwfp__iE", "new (fp)int"),
        ("nw_ipiLi5EE", "new int(5)"),
        ("gsdlfp_", "::deletefp"),
        ("flplfp_", "(... + (fp...))"),
        ("frplfp_", "((fp...) + ...)"),
        ("1x", "x"),
        ("onpl", "operator+"),
        ("dn1A", "~A"),
        ("sr1AE1x", "A::x"),
        ("sr1A1BE1x", "A::B::x"),
        ("gs1x", "::x"),
        ("L_Z1gvE", "g()"),
    ] {
        assert_eq!(shown(&format!("_Z1fDT{code}E")), format!("f(decltype({text}))"), "{code}");
    }
}

#[test]
fn literals_have_their_suffix_or_a_cast() {
    for (code, text) in [
        ("Li5E", "5"),
        ("Lin5E", "-5"),
        ("Lj4E", "4u"),
        ("Ll2E", "2l"),
        ("Lm1E", "1ul"),
        ("Lx3E", "3ll"),
        ("Ly4E", "4ull"),
        ("Lb0E", "false"),
        ("Lb1E", "true"),
        ("Lc97E", "(char)97"),
        ("La1E", "(signed char)1"),
        ("Lh200E", "(unsigned char)200"),
        ("Ls3E", "(short)3"),
        ("Lt7E", "(unsigned short)7"),
        ("Lw3E", "(wchar_t)3"),
        ("Ln1E", "(__int128)1"),
        ("Lf3f800000E", "0x1p+0f"),
        ("Lfbf800000E", "-0x1p+0f"),
        ("Ld3ff8000000000000E", "0x1.8p+0"),
        ("Ld0000000000000000E", "0x0p+0"),
        ("Ld7ff0000000000000E", "inf"),
        ("LDn0E", "nullptr"),
        ("LPi0E", "(int*)0"),
        ("L1A3E", "(A)3"),
        ("L_Z1gvE", "g()"),
        ("L_ZN1A1xEE", "A::x"),
        ("XadL_Z1gvEE", "&(g())"),
        ("XplLi1ELi2EE", "(1) + (2)"),
    ] {
        assert_eq!(shown(&format!("_Z1AI{code}E")), format!("A<{text}>"), "{code}");
    }
}

#[test]
fn special_names_are_words_before_a_name() {
    for (name, text) in [
        ("_ZTV1A", "vtable for A"),
        ("_ZTT1A", "VTT for A"),
        ("_ZTI1A", "typeinfo for A"),
        ("_ZTS1A", "typeinfo name for A"),
        ("_ZTIPFvvE", "typeinfo for void (*)()"),
        ("_ZTSA3_c", "typeinfo name for char [3]"),
        ("_ZTC1A8_1B", "construction vtable for B-in-A"),
        ("_ZTHN1A1xE", "thread-local initialization routine for A::x"),
        ("_ZTWN1A1xE", "thread-local wrapper routine for A::x"),
        ("_ZGVN1A1xE", "guard variable for A::x"),
        ("_ZGR1A_", "reference temporary for A"),
        ("_ZGR1A0_", "reference temporary for A"),
        ("_ZThn8_N1A1fEv", "non-virtual thunk to A::f()"),
        ("_ZTh8_N1A1fEv", "non-virtual thunk to A::f()"),
        ("_ZTv0_n24_N1A1fEv", "virtual thunk to A::f()"),
        ("_ZTcv0_n24_h8_N1A1fEv", "covariant return thunk to A::f()"),
        ("_ZTVN10__cxxabiv120__si_class_type_infoE", "vtable for __cxxabiv1::__si_class_type_info"),
        ("_ZDC1a1bE", "[a, b]"),
        ("___Z1fv_block_invoke", "invocation function for block in f()"),
        ("___Z1fv_block_invoke_2", "invocation function for block in f()"),
        ("_Z1fv.llvm.123", "f() (.llvm.123)"),
        ("_Z1f.part.0", "f (.part.0)"),
    ] {
        assert_eq!(shown(name), text, "{name}");
    }
}

#[test]
fn members_of_the_standard_s_short_names_are_those_of_the_templates() {
    let long = "std::basic_string<char, std::char_traits<char>, std::allocator<char>>";
    assert_eq!(shown("_ZNSs6appendEPKc"), "std::string::append(char const*)");
    assert_eq!(shown("_ZNSsC1Ev"), format!("{long}::basic_string()"));
    assert_eq!(shown("_ZNSsD1Ev"), format!("{long}::~basic_string()"));
    assert_eq!(shown("_ZNSiC2Ev"), "std::basic_istream<char, std::char_traits<char>>::basic_istream()");
    assert_eq!(shown("_ZNSoD0Ev"), "std::basic_ostream<char, std::char_traits<char>>::~basic_ostream()");
    assert_eq!(shown("_ZNSaIcEC1Ev"), "std::allocator<char>::allocator()");
    assert_eq!(shown("_Z1fSsSsSaIiE"), "f(std::string, std::string, std::allocator<int>)");
    assert_eq!(shown("_ZN1A1BIiEC1EOS0_"), "A::B<int>::B(A::B&&)");
    assert_eq!(shown("_ZN1AC4Ev"), "A::A()");
    assert_eq!(shown("_ZN1AC1B5cxx11Ev"), "A::A[abi:cxx11]()");
}

#[test]
fn packs_expand_to_their_elements() {
    for (name, text) in [
        ("_Z1fIJEEvDpT_", "void f<>()"),
        ("_Z1fIJiEEvDpT_", "void f<int>(int)"),
        ("_Z1fIJicEEvDpT_", "void f<int, char>(int, char)"),
        ("_Z1fIJicEEvDpPT_", "void f<int, char>(int*, char*)"),
        ("_Z1fIJicEEvDp1AIT_E", "void f<int, char>(A<int>, A<char>)"),
        ("_Z1fIJicEEDTsZT_EDpT_", "decltype(sizeof...(int, char)) f<int, char>(int, char)"),
        ("_Z1fIJicEEDTsZfp_EDpT_", "decltype(sizeof... (fp)) f<int, char>(int, char)"),
        ("_Z1fIiJcdEEvT_DpT0_", "void f<int, char, double>(int, char, double)"),
    ] {
        assert_eq!(shown(name), text, "{name}");
    }
}

/// `T_` in the parameters of a generic lambda is its own `auto`, whatever templates are around it.
#[test]
fn parameters_of_generic_lambdas_are_auto() {
    for (name, text) in [
        (
            "_ZZ1fIiEvT_ENKUlT_E_clIcEEDaS2_",
            "auto void f<int>(int)::'lambda'(auto)::operator()<char>('lambda'(auto)) const",
        ),
        // A lambda that initializes a member of a class template.
        (
            "_ZNK1AIiE1xMUlT_E_clIcEEDaS3_",
            "auto A<int>::x::'lambda'(auto)::operator()<char>(A<int>::x::'lambda'(auto)) const",
        ),
        ("_ZNK1AIiE1xMUlvE_clEv", "A<int>::x::'lambda'()::operator()() const"),
        (
            "_ZNK1AIiE1xMUlDpT_E_clIJcdEEEDaDpT_",
            "auto A<int>::x::'lambda'(auto...)::operator()<char, double>(char, double) const",
        ),
        ("_ZZ1fvENKUlTyT_E_clIiEEDaT_", "auto f()::'lambda'<typename $T>($T)::operator()<int>(int) const"),
        ("_ZZ1fvENKUlTnicE_clILi5EEEDac", "auto f()::'lambda'<int $N>(char)::operator()<5>(char) const"),
        ("_ZNK3$_0clIiEEDaT_", "auto $_0::operator()<int>(int) const"),
    ] {
        assert_eq!(shown(name), text, "{name}");
    }
}

#[test]
fn local_names_follow_their_function() {
    for (name, text) in [
        ("_ZZ1fvE1x", "f()::x"),
        ("_ZZ1fvE1x_0", "f()::x"),
        ("_ZZ1fvE1x__10_", "f()::x"),
        ("_ZZ1fvEs", "f()::string literal"),
        ("_ZZ1fvEs_0", "f()::string literal"),
        ("_ZZN1A1fEvEd_1x", "A::f()::x"),
        ("_ZZ1fvENUt_1gEv", "f()::'unnamed'::g()"),
        ("_ZZ1fvENUt0_1gEv", "f()::'unnamed0'::g()"),
        ("_ZZZ1fvENKUlvE_clEvENKUlvE_clEv", "f()::'lambda'()::operator()() const::'lambda'()::operator()() const"),
        ("_ZN12_GLOBAL__N_11A1fEv", "(anonymous namespace)::A::f()"),
    ] {
        assert_eq!(shown(name), text, "{name}");
    }
}

#[test]
fn damaged_names_of_every_rule_stay() {
    for name in [
        "_Z1fA3i",
        "_Z1fA",
        "_Z1fM1A",
        "_Z1fFvv",
        "_Z1fDTfp_",
        "_Z1fDT",
        "_Z1fDv4f",
        "_Z1fDB",
        "_Z1fT_",
        "_Z1fS_",
        "_Z1fIiEvT0_",
        "_Z1fS9999999999999999999999_",
        "_Z1fT99999999999999999999999_",
        "_Z99999999999999999999999f",
        "_ZN1AEE",
        "_ZN",
        "_ZNK",
        "_ZTV",
        "_ZTX1A",
        "_ZTC1A8_",
        "_ZTh",
        "_ZThn8",
        "_ZTcv0_n24_N1A1fEv",
        "_ZZ1fv",
        "_ZZ1fvE",
        "_ZZ1fvEUl",
        "_ZZ1fvENKUlvE",
        "_ZDC",
        "_Z1fLi5E",
        "_Z1AILi5",
        "_Z1AILf3f80E",
        "_Z1AIXplLi1EEE",
        "_ZN1AD9Ev",
        "_ZN1AC9Ev",
        "_Zli",
        "_Zcv",
    ] {
        assert_eq!(shown(name), name, "{name}");
    }
}

/// Random names of the rules whose text did not change between versions of the peer.
struct Names(u64);

impl Names {
    fn below(&mut self, end: u64) -> u64 {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % end
    }

    fn one(&mut self, of: &str) -> String {
        let words: Vec<&str> = of.split(' ').collect();
        words[self.below(words.len() as u64) as usize].to_owned()
    }

    fn types(&mut self, depth: u32, least: u64, most: u64) -> String {
        let count = least + self.below(most - least + 1);
        (0..count).map(|_| self.a_type(depth)).collect()
    }

    fn a_type(&mut self, depth: u32) -> String {
        if depth == 0 {
            return self.one("i c b d m y w Di Ds 1A 3foo");
        }
        let inner = |names: &mut Self| names.a_type(depth - 1);
        match self.below(13) {
            0 | 1 => self.one("i j l m x y n o f d e b c a h s t w"),
            2 | 3 => self.one("P R O PK RK PV PVK") + &inner(self),
            4 => format!("PF{}{}E", inner(self), self.types(depth - 1, 1, 3)),
            5 => self.one("PA3_ RA2_ PA_") + &inner(self),
            6 => format!("M{}{}", self.class(depth - 1), inner(self)),
            7 => format!("M{}{}Fv{}E", self.class(depth - 1), self.one(" K VK"), inner(self)),
            8 => self.one("S_ S0_ S1_ S2_ Sa Sb T_ T0_"),
            9 => self.one("Dv4_f Ci Gd"),
            10 => format!("DT{}E", self.expression(depth - 1)),
            _ => self.class(depth),
        }
    }

    fn class(&mut self, depth: u32) -> String {
        match self.below(5) {
            0 | 1 => self.one("1A 3foo 5Klass"),
            2 => format!("N{}{}E", self.one("1A 2ns"), self.one("1B 3Bar")),
            3 => format!("{}{}", self.one("1A 3foo"), self.arguments(depth.saturating_sub(1))),
            _ => format!("St{}", self.one("4pair 5tuple")),
        }
    }

    fn arguments(&mut self, depth: u32) -> String {
        let one = |names: &mut Self| match names.below(4) {
            0 => names.one("Li5E Lin5E Lb1E Lc97E Lj4E Lm1E Ls3E L1A3E"),
            1 if depth > 0 => format!("J{}E", names.types(depth - 1, 0, 2)),
            _ => names.a_type(depth),
        };
        let count = 1 + self.below(3);
        format!("I{}E", (0..count).map(|_| one(self)).collect::<String>())
    }

    fn expression(&mut self, depth: u32) -> String {
        if depth == 0 {
            return self.one("fp_ fp0_ Li1E Lb0E");
        }
        let inner = |names: &mut Self| names.expression(depth - 1);
        match self.below(6) {
            0 => self.one("ng nt ad de co") + &inner(self),
            1 => self.one("pl mi ml dv an or eq ne lt aa") + &inner(self) + &inner(self),
            2 => format!("cl{}{}E", inner(self), inner(self)),
            3 => format!("st{}", self.a_type(depth - 1)),
            4 => format!("qu{}{}{}", inner(self), inner(self), inner(self)),
            _ => self.one("sz az nx") + &inner(self),
        }
    }

    fn name(&mut self) -> String {
        let (name, is_template) = match self.below(5) {
            0 => (self.one("1f 3bar pl ix cl"), false),
            1 => (self.one("1f 3bar ls") + &self.arguments(2), true),
            2 => (format!("N{}{}1fE", self.one(" K V"), self.class(1).replace(['N', 'E'], "1n")), false),
            3 => (format!("N2ns{}1f{}E", self.one("1A 1B"), self.arguments(2)), true),
            _ => (format!("NK2ns1A{}E", self.one("cvi cvPKc C1 D2 pl 1g")), false),
        };
        let result = if is_template { self.a_type(2) } else { String::new() };
        format!("_Z{name}{result}{}", self.types(3, 1, 3))
    }
}

#[test]
fn random_names_are_written_as_the_peer_writes_them() {
    let is_here = |name: &&String| Command::new(name).arg("--version").output().is_ok_and(|out| out.status.success());
    let tools = ["llvm-cxxfilt".to_owned()].into_iter().chain((14..30).map(|n| format!("llvm-cxxfilt-{n}")));
    let Some(tool) = tools.collect::<Vec<_>>().into_iter().find(|name| is_here(&name)) else {
        return skip("llvm-cxxfilt is not installed");
    };
    let mut random = Names(3);
    let names: Vec<String> = (0..20_000).map(|_| random.name()).collect();
    let mut asked = tempfile::tempfile().unwrap();
    asked.write_all(names.join("\n").as_bytes()).unwrap();
    asked.rewind().unwrap();
    let output = Command::new(&tool).stdin(asked).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text.lines().count(), names.len());
    let closed_up = |text: &str| {
        let mut text = text.to_owned();
        while text.contains("> >") {
            text = text.replace("> >", ">>");
        }
        text
    };
    let mut demangled = 0;
    for (name, theirs) in names.iter().zip(text.lines()) {
        assert_eq!(closed_up(&shown(name)), closed_up(theirs), "{name}");
        demangled += u32::from(name != theirs);
    }
    assert!(demangled > 10_000, "only {demangled} names were valid");
}
