use super::*;

fn of(text: &str) -> Vec<Claim> {
    claims(&code_lines(text), 1)
}

fn named(name: &str) -> Expression {
    Expression { name: name.to_owned(), ..Expression::default() }
}

fn new(name: &str, is_array: bool) -> Claim {
    Claim::New { name: name.to_owned(), is_array }
}

fn size_of(operand: Expression, part: Part) -> Claim {
    Claim::SizeOf { operand, part }
}

#[test]
fn new_names_the_type() {
    let assigned = Claim::Assigned(named("x"));
    assert_eq!(of("Order *x = new Order[n];"), [new("Order", true)]);
    assert_eq!(of("auto x = new (std::nothrow) ns::Order<int>(1);"), [new("ns::Order< int >", false)]);
    assert_eq!(of("x = new Order*[n];"), [new("Order*", true)]);
    assert_eq!(of("x = operator new(n);"), []);
    assert_eq!(of("x = f(new A, new B);"), [assigned, new("A", false), new("B", false)]);
}

#[test]
fn sizes_casts_and_assignments_are_found() {
    let x = || Claim::Assigned(named("x"));
    assert_eq!(
        of("struct a *x = malloc(sizeof(struct a));"),
        [x(), size_of(Expression { is_type: true, ..named("a") }, Part::All)]
    );
    let target = Expression { stars: 1, ..named("x") };
    assert_eq!(of("x = malloc(n * sizeof *x);"), [x(), Claim::Product, size_of(target.clone(), Part::Factor)]);
    assert_eq!(of("x = calloc(n, sizeof(*x));"), [x(), size_of(target, Part::Factor)]);
    let steps = vec![Step::Member("rows".into()), Step::Element];
    assert_eq!(
        of("p->rows[i] = (row_t *)malloc(n);"),
        [Claim::Assigned(Expression { steps, ..named("p") }), Claim::Cast("row_t*".into())]
    );
    assert_eq!(of("x = static_cast<T *>(malloc(n));"), [x(), Claim::Cast("T*".into())]);
    assert_eq!(of("if ((x = malloc(n)) == NULL)"), [x()]);
    assert_eq!(of("*x = malloc(n);"), [Claim::Assigned(Expression { stars: 1, ..named("x") })]);
    assert_eq!(of("return xmalloc(n);"), [Claim::Returned]);
    let pointer = Expression { pointers: 1, ..named("T") };
    assert_eq!(of("x = malloc(sizeof(T *));"), [x(), size_of(pointer, Part::All)]);
}

#[test]
fn products_and_last_arguments_show_arrays() {
    let last = Claim::LastArgument("Node".into());
    assert_eq!(of("x = new_vector(L, n, Node);"), [Claim::Assigned(named("x")), last]);
    assert!(of("x = get(n * 8);").contains(&Claim::Product) && of("x = get((n) * 8);").contains(&Claim::Product));
    assert!(!of("node *x = get(n);").contains(&Claim::Product));
    assert!(!of("x = (node *)get(n);").contains(&Claim::Product));
}

#[test]
fn what_is_added_to_a_size_is_a_tail() {
    let tails = |text: &str| -> Vec<bool> {
        let tail = |claim: Claim| if let Claim::SizeOf { part, .. } = claim { Some(part == Part::Head) } else { None };
        of(text).into_iter().filter_map(tail).collect()
    };
    assert_eq!(tails("x = malloc(sizeof(T) + n);"), [true]);
    assert_eq!(tails("x = malloc(n + sizeof(T));"), [true]);
    assert_eq!(tails("x = malloc(sizeof(T) + (n - 1) * sizeof(U));"), [true, true]);
    assert_eq!(tails("x = malloc((n + 1) * sizeof(T));"), [false]);
    assert_eq!(tails("x = y + f(n + 1, sizeof(T));"), [false]);
}

#[test]
fn statements_go_over_lines_and_comments_say_nothing() {
    let text = "a = new A;\nb /* = new C; */ =\n    f(new B, // new D\n      \"new E;\");\nc = new F;\n";
    let found = claims(&code_lines(text), 3);
    assert_eq!(found, [Claim::Assigned(named("b")), new("B", false)]);
    assert_eq!(claims(&code_lines(text), 4), found);
    assert!(claims(&code_lines(text), 0).is_empty() && claims(&code_lines(text), 99).is_empty());
}

#[test]
fn what_is_no_allocation_says_nothing() {
    for text in [
        "x = y;",
        "f((char *)p + n);",
        "x += f(n);",
        "a * b;",
        "a == f(n);",
        "))) = ((( sizeof",
        "sizeof(",
        "new",
        "= new (",
    ] {
        assert!(of(text).is_empty(), "{text}: {:?}", of(text));
    }
}
