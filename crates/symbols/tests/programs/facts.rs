#![allow(dead_code)]
use std::mem::{offset_of, size_of};
mod inner {
    pub struct Point { pub x: f64, pub y: f32, pub tag: u8 }
    pub enum Shape { Dot, Circle(Point, f32), Text { name: String, at: (u8, u64) } }
    pub enum Mixed { A(u32), B { x: u64, y: u8 }, C }
    #[repr(u8)]
    pub enum Plain { A, B }
    #[repr(C)]
    pub struct Fixed { pub a: u8, pub words: [[u16; 3]; 2], pub s: &'static str, pub slice: &'static [u32] }
    pub union Bits { pub f: f32, pub i: u32 }
    pub struct Generic<T> { pub value: T, pub next: Option<Box<Generic<T>>>, pub marker: std::marker::PhantomData<T> }
}
use inner::*;
macro_rules! size { ($n:expr, $t:ty) => { println!("size|{}|{}", $n, size_of::<$t>()) }; }
macro_rules! field { ($n:expr, $t:ty, $($f:tt)+) => {
    println!("field|{}|{}|{}|{}", $n, stringify!($($f)+).replace(' ', ""), offset_of!($t, $($f)+), 0) } }
fn main() {
    let keep: (Point, Shape, Plain, Fixed, Bits, Generic<u16>) = (
        Point { x: 1.0, y: 2.0, tag: 3 }, Shape::Text { name: String::new(), at: (1, 2) }, Plain::B,
        Fixed { a: 1, words: [[0; 3]; 2], s: "x", slice: &[1] }, Bits { i: 1 },
        Generic { value: 3, next: None, marker: std::marker::PhantomData });
    let all = [Shape::Dot, Shape::Circle(Point { x: 0.0, y: 0.0, tag: 0 }, 1.0)];
    let mixed = [Mixed::A(1), Mixed::B { x: 2, y: 3 }, Mixed::C];
    std::hint::black_box((&keep, &all, &mixed));
    size!("facts::inner::Point", Point); field!("facts::inner::Point", Point, x); field!("facts::inner::Point", Point, y);
    field!("facts::inner::Point", Point, tag); size!("facts::inner::Shape", Shape);
    size!("facts::inner::Fixed", Fixed); field!("facts::inner::Fixed", Fixed, a);
    size!("facts::inner::Bits", Bits); size!("facts::inner::Generic<u16>", Generic<u16>); size!("Point", Point);
    field!("facts::inner::Generic<u16>", Generic<u16>, value); size!("facts::inner::Plain", Plain);
    size!("facts::inner::Mixed", Mixed);
}
