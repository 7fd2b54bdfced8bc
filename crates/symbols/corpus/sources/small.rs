//! An enum with data, a generic function, a trait object: what debug data and names of Rust have.
#![no_std]
#![crate_type = "lib"]
pub enum Shape { Circle { radius: f64 }, Square(f64), None }
pub trait Area { fn area(&self) -> f64; }
impl Area for Shape {
    fn area(&self) -> f64 {
        match self { Shape::Circle { radius } => radius * radius * 3.0, Shape::Square(side) => side * side, Shape::None => 0.0 }
    }
}
#[inline(never)]
fn sum<T: Copy + Into<f64>>(all: &[T], more: &dyn Area) -> f64 {
    all.iter().map(|one| (*one).into()).sum::<f64>() + more.area()
}
#[unsafe(no_mangle)]
pub extern "C" fn total(n: u8) -> f64 { sum(&[n, 2, 3], &Shape::Square(1.5)) }
