//! A Rust program recorded by hand, or instrumented by the compiler; the first argument selects the case.

use anytrace_cacheray_recorder::{Layouts, Recorded, TraceType, allocated_as, boxed, ignored, of, read, removed, vec, write};

#[global_allocator]
static ALLOCATOR: Recorded = Recorded::system();

#[derive(TraceType)]
#[repr(C)]
#[allow(dead_code)]
struct Particle {
    x: f64,
    v: f64,
    tag: u8,
    r#type: [u16; 3],
}

#[derive(TraceType)]
#[trace(name = "struct.Pair")]
struct Pair<T: Copy>(T, T);

#[derive(TraceType)]
#[allow(dead_code)]
union Either {
    whole: u64,
    half: u32,
}

#[derive(TraceType)]
#[allow(dead_code)]
enum Choice {
    None,
    Some(u32),
}

fn particle() -> Particle {
    Particle { x: 0.0, v: 1.0, tag: 1, r#type: [0; 3] }
}

fn by_hand() {
    let mut one = boxed(particle());
    for _ in 0..10 {
        let v = *read(&one.v);
        *write(&mut one.x) += v;
    }
    ignored(|| *write(&mut one.x) = 0.0);
    let mut many = vec::<Particle>(4);
    // Growing keeps the type.
    many.extend((0..9).map(|_| particle()));
    let pairs = of::<Pair<u32>, _>(|| Box::new([Pair(1_u32, 2), Pair(3, 4)]));
    read(&pairs[1].1);
    let here = [particle(), particle()];
    allocated_as(&here);
    read(&here[1]);
    removed(&here);
    let untyped = String::from("forty characters that are no type at all");
    assert_eq!(untyped.len() + many.len() + pairs.len() + pairs[0].0 as usize, 52);
    drop(many);
}

fn instrumented() {
    let mut many = vec::<Particle>(100);
    many.extend((0..100).map(|_| particle()));
    for _ in 0..10 {
        for one in std::hint::black_box(&mut many).iter_mut() {
            one.x += one.v;
        }
    }
    assert!(many.iter().all(|one| one.x == 10.0));
}

fn main() {
    match std::env::args().nth(1).as_deref() {
        Some("layouts") => {
            let all = Layouts::new().with::<Particle>().with::<Pair<u32>>().with::<Either>().with::<Choice>();
            print!("{}", all.with::<Particle>().to_json());
        }
        Some("instrumented") => instrumented(),
        _ => by_hand(),
    }
}
