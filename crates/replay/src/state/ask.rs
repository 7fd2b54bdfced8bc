//! Questions to the driver, and its answers as JSON. What it does not know is left out.

use serde_json::{Map, Value};

use super::table::{Kind, Parameter, enum_name, rows};
use crate::egl::Screen;
use crate::gl::Gl;

/// Places for answers: no parameter that is asked for has more.
const PLACES: usize = 256;

/// The functions that answer about something: flags, integers, numbers.
#[derive(Debug, Clone, Copy)]
pub(super) struct Getters {
    pub(super) flags: Option<&'static str>,
    pub(super) integers: &'static str,
    pub(super) floats: &'static str,
}

/// Asks the driver in the current context.
pub(super) struct Ask<'a> {
    pub(super) screen: &'a Screen,
    pub(super) gl: &'a Gl,
}

impl Ask<'_> {
    /// Calls a function of the driver with integers and addresses; `None` if it does not have it.
    pub(super) fn call(&self, name: &str, values: &[u64]) -> Option<u64> {
        Some(Gl::plain(self.screen.function(name)?, values))
    }

    /// The first of so many integers that a function stores at its last argument; `None` where it is an error.
    pub(super) fn integers(&self, name: &str, about: &[u64], count: usize) -> Option<Vec<i32>> {
        let mut places = [0_i32; PLACES];
        self.store(name, about, places.as_mut_ptr() as u64)?;
        Some(places.iter().take(count).copied().collect())
    }

    pub(super) fn floats(&self, name: &str, about: &[u64], count: usize) -> Option<Vec<f32>> {
        let mut places = [0_f32; PLACES];
        self.store(name, about, places.as_mut_ptr() as u64)?;
        Some(places.iter().take(count).copied().collect())
    }

    fn flags(&self, name: &str, about: &[u64], count: usize) -> Option<Vec<u8>> {
        let mut places = [0_u8; PLACES];
        self.store(name, about, places.as_mut_ptr() as u64)?;
        Some(places.iter().take(count).copied().collect())
    }

    pub(super) fn longs(&self, name: &str, about: &[u64], count: usize) -> Option<Vec<i64>> {
        let mut places = [0_i64; PLACES];
        self.store(name, about, places.as_mut_ptr() as u64)?;
        Some(places.iter().take(count).copied().collect())
    }

    fn store(&self, name: &str, about: &[u64], to: u64) -> Option<()> {
        let function = self.screen.function(name)?;
        let values: Vec<u64> = about.iter().copied().chain([to]).collect();
        self.gl.clear_errors();
        Gl::plain(function, &values);
        (self.gl.error() == 0).then_some(())
    }

    /// A parameter.
    pub(super) fn value(&self, by: Getters, about: &[u64], of: Parameter) -> Option<Value> {
        let about: Vec<u64> = about.iter().copied().chain([u64::from(of.number)]).collect();
        let values: Vec<Value> = match of.kind {
            Kind::Text => return self.gl.text(of.number).map(Value::from),
            Kind::Bool => match by.flags {
                Some(name) => self.flags(name, &about, of.count)?.into_iter().map(flag).collect(),
                None => self.integers(by.integers, &about, of.count)?.into_iter().map(|it| flag(it as u8)).collect(),
            },
            Kind::Enum => {
                let found = self.integers(by.integers, &about, of.count)?;
                found.into_iter().map(|number| name_of(number as u32)).collect()
            }
            Kind::Integer => self.integers(by.integers, &about, of.count)?.into_iter().map(Value::from).collect(),
            Kind::Long => self.longs("glGetInteger64v", &about, of.count)?.into_iter().map(Value::from).collect(),
            Kind::Float => self.floats(by.floats, &about, of.count)?.into_iter().map(number).collect(),
            Kind::Pointer => return None,
        };
        Some(if of.count == 1 { values.into_iter().next()? } else { Value::Array(values) })
    }

    /// All parameters of a table.
    pub(super) fn table(&self, by: Getters, about: &[u64], table: &'static str) -> Map<String, Value> {
        rows(table).filter_map(|of| Some((of.name.to_owned(), self.value(by, about, of)?))).collect()
    }

    /// A string that a function stores for an object, with its length before it: `glGetShaderSource` and its like.
    pub(super) fn text(&self, name: &str, object: u32, length: usize) -> Option<String> {
        let mut bytes = vec![0_u8; length.clamp(1, 1 << 26) + 1];
        let mut written = [0_i32; 2];
        let room = bytes.len() as u64 - 1;
        let to = bytes.as_mut_ptr() as u64;
        self.call(name, &[u64::from(object), room, written.as_mut_ptr() as u64, to])?;
        let written = usize::try_from(written.first().copied()?).ok()?.min(bytes.len());
        Some(String::from_utf8_lossy(bytes.get(..written)?).into_owned())
    }
}

fn flag(value: u8) -> Value {
    Value::from(if value == 0 { "GL_FALSE" } else { "GL_TRUE" })
}

/// The name of an enumeration's value, or its number.
pub(super) fn name_of(number: u32) -> Value {
    enum_name(number).map_or_else(|| Value::from(number), Value::from)
}

/// A number with the seven digits that are known of it.
pub(super) fn number(value: f32) -> Value {
    if value.fract() == 0.0 && value.abs() < 1e9 {
        return Value::from(value as i64);
    }
    let rounded = format!("{value:.6e}").parse::<f64>().unwrap_or(f64::from(value));
    serde_json::Number::from_f64(rounded).map_or_else(|| Value::from(value.to_string()), Value::Number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_digits_that_are_known() {
        let shown = |value| number(value).to_string();
        assert_eq!([shown(0.2), shown(1.0), shown(-40.0)], ["0.2", "1", "-40"]);
        assert_eq!([shown(0.866_025_4), shown(f32::INFINITY)], ["0.8660254", "\"inf\""]);
        assert_eq!((name_of(0x201), name_of(0xabcd)), (Value::from("GL_LESS"), Value::from(0xabcd)));
    }
}
