//! The state of the driver at a call: parameters, program, textures, framebuffers, in the structure of apitrace's dumps.

mod ask;
mod images;
mod objects;
mod programs;
mod table;
mod vertices;

use serde_json::{Map, Value, json};

use crate::egl::Screen;
use crate::framebuffer::{Part, Reading, Source};
use crate::gl::Gl;
use ask::Ask;

/// The state of the current context. All state is left as it was.
pub(crate) fn dump(screen: &Screen, gl: &Gl, source: Source) -> Value {
    let ask = Ask { screen, gl };
    let mut parameters = ask.parameters();
    ask.lights(&mut parameters);
    ask.attributes(&mut parameters);
    ask.buffers(&mut parameters);
    ask.framebuffers(&mut parameters);
    // GL_CURRENT_PROGRAM.
    let program = gl.state(0x8b8d) as u32;
    gl.clear_errors();
    let (shaders, uniforms, buffers) = match program {
        0 => (Map::new(), Map::new(), Map::new()),
        _ => (ask.shaders(program), ask.uniforms(program), ask.vertices(program)),
    };
    // From here on pixels are packed without gaps.
    let reading = Reading::begin(gl, source);
    let mut framebuffer = Map::new();
    for part in reading.parts() {
        let (name, format) = match part {
            Part::Depth => ("GL_DEPTH_COMPONENT".to_owned(), "GL_DEPTH_COMPONENT"),
            Part::Stencil => ("GL_STENCIL_INDEX".to_owned(), "GL_STENCIL_INDEX"),
            Part::Drawn | Part::Color(_) => (reading.name(part), "GL_RGB"),
        };
        if let Ok(image) = reading.part(part) {
            framebuffer.insert(name, images::of_image(&image, 1, &Value::from(format)));
        }
    }
    let mut textures = Map::new();
    ask.textures(&mut parameters, &mut textures);
    reading.end();
    gl.clear_errors();
    json!({
        "parameters": parameters,
        "shaders": shaders,
        "uniforms": uniforms,
        "buffers": buffers,
        "shaderstoragebufferblocks": {},
        "textures": textures,
        "framebuffer": framebuffer,
    })
}
