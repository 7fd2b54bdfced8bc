//! Applies a function's rule to a call of it.

use crate::tools::gl::commands::COMMANDS;
use crate::tools::gl::kind::Kind;
use crate::tools::gl::lifecycle::{Action, Verb};
use crate::tools::gl::values::Values;
use crate::tools::gltrim::log::Effect;
use crate::tools::gltrim::model::{At, Model};
use crate::tools::gltrim::nodes::{Label, Node, key};
use crate::tools::gltrim::objects::Id;
use crate::tools::gltrim::rules::Rule;

impl Model {
    /// Applies the effects of a call.
    pub(super) fn apply(&mut self, rule: Rule, values: &Values<'_>, at: At) {
        let name = values.dictionary().function(at.function).map_or(&b""[..], |function| function.name());
        match rule {
            Rule::Nothing => {}
            Rule::Unknown => self.unknown_call(at),
            Rule::State(row) => self.state_call(row, values),
            Rule::Vertex => self.vertex(at),
            Rule::MatrixMode => self.matrix_mode(values),
            Rule::MatrixLoad | Rule::MatrixMultiply | Rule::MatrixPush | Rule::MatrixPop => self.matrix(rule, at),
            Rule::AttribPush => self.attrib_push(values, at),
            Rule::AttribPop => self.attrib_pop(),
            Rule::ClientPush => self.client_stack(false, at),
            Rule::ClientPop => self.client_stack(true, at),
            Rule::ActiveTexture => self.active_texture(values),
            Rule::ClientActiveTexture => self.client_unit(values),
            Rule::ClientState => self.client_state(values),
            Rule::PixelStore => self.pixel_store(values),
            Rule::Begin => self.begin(at),
            Rule::End => self.end(at),
            Rule::Draw | Rule::DrawFeedback => self.draw_call(rule, values, at),
            Rule::Clear => self.clear(values),
            Rule::ClearBuffer { is_named } => self.clear_buffer(values, is_named),
            Rule::Blit { is_named } => self.blit(values, is_named),
            Rule::ReadPixels => self.read_pixels(at),
            Rule::Accumulate => self.accumulate(),
            Rule::NewList => self.new_list(values, at),
            Rule::EndList => self.end_list(),
            Rule::CallList => self.call_list(values.name(0).unwrap_or(0), values, at),
            Rule::CallLists => self.call_lists(values, at),
            Rule::Object(action) => self.object_call(action, values, at, name),
            Rule::Context(system, verb) => self.follow_context((system, verb), values, at),
            Rule::Swap => self.swap(values, at, name),
            Rule::System => self.effect(Effect::Always),
            Rule::Group { is_end } => self.group(is_end, at),
            Rule::Wait => {
                if at.is_forced
                    && let Some(id) = self.find(Kind::Sync, values.name(0))
                {
                    self.read_birth(Some(id));
                }
            }
            Rule::QueryEnd => self.end_query(values, name),
            Rule::Conditional { is_end } => self.conditional(values, is_end, at),
            Rule::Feedback { is_end } => self.feedback(is_end, at),
            _ => self.apply_stored(rule, values, at, name),
        }
    }

    /// Functions that affect stored data: buffers, textures, framebuffers, programs.
    fn apply_stored(&mut self, rule: Rule, values: &Values<'_>, at: At, name: &[u8]) {
        match rule {
            Rule::BindIndexed => self.bind_indexed(values),
            Rule::BindMany(what) => self.bind_many(what, values),
            Rule::BindImage => {
                let id = self.find(Kind::Texture, values.name(1));
                // GL_READ_ONLY is 0x88b8.
                self.bind_image(values.integer(0).unwrap_or(0) as u32, id, values.integer(5) != Some(0x88b8));
            }
            Rule::BindUnit => {
                let id = self.find(Kind::Texture, values.name(1));
                self.bind_unit(values.integer(0).unwrap_or(0) as u32, id);
            }
            Rule::VertexBuffer { is_named } => self.vertex_buffer(values, is_named),
            Rule::ElementBuffer => self.element_buffer(values),
            Rule::Attribute { .. } => self.attribute(rule, values, at.function, name),
            Rule::ArrayPointer => self.array_pointer(at.function, name),
            Rule::BufferData { is_named } => self.buffer_data(values, is_named),
            Rule::BufferPart { is_named } => self.buffer_part(values, is_named),
            Rule::BufferCopy { is_named } => self.buffer_copy(values, is_named),
            Rule::BufferClear { is_named, is_part } => self.buffer_clear(values, is_named, is_part),
            Rule::Map { is_named, is_range } => self.map(values, is_named, is_range, at),
            Rule::Flush { is_named } => self.flush(values, is_named),
            Rule::Unmap { is_named } => self.unmap(values, is_named),
            Rule::Memcpy => self.memcpy(values),
            Rule::Texture(function, way) => self.texture_call(function, way, values),
            Rule::CopyImage => self.copy_image(values),
            Rule::View => self.view(values),
            Rule::Sampler => self.sampler(values),
            Rule::RenderStorage { is_named } => {
                let has_samples = name.windows(11).any(|part| part == b"Multisample");
                self.render_storage(values, is_named, has_samples);
            }
            Rule::Attach { .. } => self.attach(rule, values),
            Rule::DrawBuffers { is_named } => self.draw_buffers(values, is_named),
            Rule::ReadBuffer { is_named } => self.read_buffer(values, is_named),
            Rule::FramebufferParameter { is_named } => self.framebuffer_parameter(values, is_named),
            Rule::Code => self.say(values, name),
            Rule::AttachShader => self.attach_shader(values),
            Rule::Link => self.link(values),
            Rule::Uniform => self.uniform(values),
            Rule::ProgramUniform => self.program_uniform(values, name),
            Rule::UseStages => self.use_stages(values, name),
            Rule::Location => self.location(values, name, at.function),
            Rule::AssemblyCode => self.assembly_code(values, name),
            Rule::AssemblyParameter => self.assembly_parameter(values, name, at),
            _ => self.unknown_call(at),
        }
    }

    /// It stays, and may depend on all state of its context.
    fn unknown_call(&mut self, at: At) {
        *self.unknown.entry(at.function).or_insert(0) += 1;
        self.effect(Effect::Always);
        self.read_levels();
        self.read_matrices();
    }

    fn state_call(&mut self, row: u16, values: &Values<'_>) {
        self.set_state(row, values);
        if self.state().is_primitive {
            self.effect(Effect::Inner);
        }
        match COMMANDS.get(usize::from(row)).map_or("", |state| state.stem) {
            "ListBase" => {
                let base = values.name(0).unwrap_or(0);
                self.list_bases.insert(self.ctx, base);
            }
            "Viewport" => self.grow_to_viewports(&values.floats(0, 4)),
            "ViewportIndexed" => self.grow_to_viewports(&values.floats(1, 4)),
            "ViewportArray" => self.grow_to_viewports(&values.floats(2, 4)),
            _ => {}
        }
    }

    fn draw_call(&mut self, rule: Rule, values: &Values<'_>, at: At) {
        if rule == Rule::DrawFeedback
            && let Some(id) = self.find(Kind::TransformFeedback, values.name(1))
        {
            let (made, content) = (self.made(id), self.content(id));
            self.reads(made);
            self.reads(content);
        }
        self.draw(at);
    }

    /// Follows a call that makes, deletes or binds objects.
    fn object_call(&mut self, action: Action, values: &Values<'_>, at: At, name: &[u8]) {
        let Action { kind, verb, scope } = action;
        match verb {
            Verb::MakeMany { names, .. } => {
                for made in values.integers(names) {
                    self.make(kind, scope, made as u64);
                }
            }
            Verb::Make => {
                if let Some(made) = values.returned_name().filter(|made| *made != 0) {
                    self.make(kind, scope, made);
                }
            }
            Verb::MakeRange { count } => {
                let first = values.returned_name().unwrap_or(0);
                let count = values.integer(count).unwrap_or(0).clamp(0, 1 << 16) as u64;
                for made in (first..first.saturating_add(count)).filter(|made| *made != 0) {
                    self.make(kind, scope, made);
                }
            }
            Verb::MakeInto(index) => {
                if let Some(made) = values.integers(index).next() {
                    self.make(kind, scope, made as u64);
                }
            }
            Verb::Delete(index) => self.delete_one(action, values.name(index).unwrap_or(0)),
            Verb::DeleteMany { names, .. } => {
                for gone in values.integers(names) {
                    self.delete_one(action, gone as u64);
                }
            }
            Verb::DeleteRange { first, count } => {
                let first = values.name(first).unwrap_or(0);
                let count = values.integer(count).unwrap_or(0).clamp(0, 1 << 16) as u64;
                for gone in first..first.saturating_add(count) {
                    self.delete_one(action, gone);
                }
            }
            Verb::Bind { name: index, target } => {
                let id = self.named(kind, scope, values.name(index).unwrap_or(0));
                let target = target.and_then(|target| values.integer(target)).unwrap_or(0);
                self.bind(kind, target, id, values, at, name);
            }
            _ => self.unknown_call(at),
        }
    }

    fn bind(&mut self, kind: Kind, target: i64, id: Option<Id>, values: &Values<'_>, at: At, name: &[u8]) {
        match kind {
            Kind::Buffer => self.bind_buffer(target as u32, id),
            Kind::Texture if name.starts_with(b"glBindMultiTexture") => {
                let unit = (values.integer(0).unwrap_or(0) - 0x84c0).clamp(0, 1 << 16) as u32;
                self.bind_texture(unit, target as u32, id);
            }
            Kind::Texture => {
                let unit = self.state().unit;
                self.read_unit();
                self.bind_texture(unit, target as u32, id);
            }
            Kind::Framebuffer => self.bind_framebuffer(target, id),
            Kind::Renderbuffer => {
                self.state().renderbuffer = id;
                self.kill_state(0, super::textures::RENDERBUFFER_KEY, Label::Binding("renderbuffer"));
                self.read_birth(id);
            }
            Kind::Sampler => self.bind_sampler(values.integer(0).unwrap_or(0) as u32, id),
            Kind::VertexArray => {
                let nameless = self.nameless_array();
                self.state().array = id.unwrap_or(nameless);
                self.kill_state(0, super::buffers::ARRAY_KEY, Label::Binding("vertex array"));
                self.read_birth(id);
                self.touch();
            }
            Kind::Program => self.use_program(id),
            Kind::Pipeline => self.bind_pipeline(id),
            Kind::AssemblyProgram => self.bind_assembly(target as u32, id),
            Kind::Query => self.begin_query(values, id, name.windows(7).any(|part| part == b"Indexed"), at),
            _ => {
                self.kill_state(0, key(&[24 << 32, kind.index() as u64, target as u64]), Label::Binding("object"));
                self.read_birth(id);
            }
        }
    }

    /// The vertex array with name 0.
    fn nameless_array(&mut self) -> Id {
        let ctx = self.ctx;
        if let Some(known) = self.arrays.get(&ctx) {
            return *known;
        }
        let first = self.state().array;
        self.arrays.insert(ctx, first);
        first
    }

    /// Deletes an object and its bindings.
    fn delete_one(&mut self, action: Action, name: u64) {
        let Action { kind, scope, .. } = action;
        if name == 0 {
            return;
        }
        let Some(id) = self.delete(kind, scope, name) else { return };
        match kind {
            Kind::Texture => {
                let places: Vec<(u32, u32)> =
                    self.state().textures.iter().filter(|(_, known)| **known == id).map(|(place, _)| *place).collect();
                for (unit, target) in places {
                    self.bind_texture(unit, target, None);
                }
            }
            Kind::Buffer => {
                let targets: Vec<u32> =
                    self.state().buffers.iter().filter(|(_, known)| **known == id).map(|(target, _)| *target).collect();
                for target in targets {
                    self.bind_buffer(target, None);
                }
                let array = self.state().array;
                let places: Vec<u32> = self
                    .object(array)
                    .map(|array| array.links.iter().filter(|link| link.1 == id).map(|link| link.0).collect())
                    .unwrap_or_default();
                for place in places {
                    self.link_buffer(array, place, None);
                }
                if let Some(map) = self.object_mut(id).and_then(|object| object.map.take()) {
                    self.regions.remove(&map.address);
                }
            }
            Kind::Framebuffer => {
                for (is_bound, target) in
                    [(self.state().draw == Some(id), 0x8ca9), (self.state().read == Some(id), 0x8ca8)]
                {
                    if is_bound {
                        self.bind_framebuffer(target, None);
                    }
                }
            }
            Kind::VertexArray if self.state().array == id => {
                let nameless = self.nameless_array();
                self.state().array = nameless;
                self.kill_state(0, super::buffers::ARRAY_KEY, Label::Binding("vertex array"));
                self.touch();
            }
            Kind::List => self.drop_list(id),
            _ => {}
        }
        // Only bindings that exist are removed.
        let is_binding = |node: Node| matches!(self.nodes.label(node), Label::Binding(_));
        let kills = self.record.effects.iter().filter_map(|effect| match effect {
            Effect::Kill(node) if is_binding(*node) => Some(Effect::Read(*node)),
            _ => None,
        });
        let reads: Vec<Effect> = kills.collect();
        self.record.effects.extend(reads);
    }
}
