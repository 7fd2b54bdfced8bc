//! A small, obvious OpenGL: the real effects of calls on the state. Shares no code with the crate.

#![allow(unreachable_pub, reason = "a module of a test")]

use std::collections::BTreeMap;

/// All settings, by name; values are numbers.
type Settings = BTreeMap<String, Vec<u64>>;

/// Two threads, three contexts that share objects, and their state.
pub struct Machine {
    state: Settings,
    current: [usize; 2],
    seed: u64,
    next_object: u64,
    lists: BTreeMap<u64, Vec<(usize, String)>>,
    recording: BTreeMap<usize, u64>,
    stacks: BTreeMap<usize, Vec<Settings>>,
}

/// A call line of each kind, by a number.
pub fn calls(choices: &[u16]) -> Vec<String> {
    let mut out = vec!["glXMakeCurrent ptr:1 2 ptr:1 = 1".to_owned(), "@1 glXMakeCurrent ptr:1 2 ptr:2 = 1".to_owned()];
    for choice in choices {
        let mut rest = u64::from(*choice);
        let mut pick = |count: u64| {
            let one = rest % count;
            rest /= count;
            one
        };
        let kind = pick(29);
        let (a, b, c) = (pick(2), pick(2), pick(3));
        let thread = if pick(4) == 0 { "@1 " } else { "" };
        let call = match kind {
            0 => format!("glEnable {}", [3042, 2929, 3553][c as usize]),
            1 => format!("glDisable {}", [3042, 2929, 3553][c as usize]),
            2 => format!("glEnablei 3042 {a}"),
            3 => format!("glDisablei 3042 {a}"),
            4 => format!("glBlendFunc {a} {b}"),
            5 => format!("glBlendFuncSeparate {a} {b} {a} {}", c % 2),
            6 => format!("glBlendFunci {a} {b} {}", c % 2),
            7 => format!("glActiveTexture {}", 33984 + a),
            8 | 9 => format!("glBindTexture {} {c}", [3553, 34067][a as usize]),
            10 => format!("glTexParameteri {} 10241 {b}", [3553, 34067][a as usize]),
            11 => format!("glTextureParameteri {} 10241 {b}", 1 + a),
            12 => format!("glDeleteTextures 1 [{}]", 1 + a),
            13 => format!("glUseProgram {c}"),
            14 | 15 => format!("glUniform1i {a} {b}"),
            16 => format!("glUniform1iv 0 2 [{a};{b}]"),
            17 => format!("glProgramUniform1i {} {b} {}", 1 + a, c % 2),
            18 => format!("glLinkProgram {}", 1 + a),
            19 => format!("glBindVertexArray {c}"),
            20 => format!("glBindBuffer {} {c}", [34962, 34963][a as usize]),
            21 => format!("glDeleteBuffers 1 [{}]", 1 + a),
            22 => format!("glVertexAttribPointer 0 {b} 5126 0 0 null"),
            23 => format!("glBindFramebuffer {} {c}", [36160, 36009, 36008][(a + b) as usize % 3]),
            24 => format!("glStencilFuncSeparate {} 519 {b} 255", [1028, 1029, 1032][c as usize]),
            25 => format!("glStencilFunc 519 {b} 255"),
            26 => ["glPushAttrib 1", "glPopAttrib", "glEndList"][c as usize].to_owned(),
            27 => [
                format!("glNewList {a} {}", 4864 + b),
                format!("glCallList {a}"),
                format!("glDeleteVertexArrays 1 [{}]", 1 + a),
            ][c as usize]
                .clone(),
            _ => format!("glXMakeCurrent ptr:1 2 ptr:{} = {}", c + 1, u64::from(a + b > 0)),
        };
        out.push(format!("{thread}{call}"));
    }
    out
}

fn numbers(line: &str) -> (usize, String, Vec<u64>, u64) {
    let (call, result) = line.split_once(" = ").map_or((line, 1), |(call, result)| (call, result.parse().unwrap()));
    let mut words = call.split(' ').peekable();
    let thread = usize::from(words.next_if(|word| *word == "@1").is_some());
    let name = words.next().unwrap().to_owned();
    let mut arguments = Vec::new();
    for word in words {
        for part in word.trim_start_matches("ptr:").trim_matches(['[', ']']).split(';') {
            arguments.push(if part == "null" { 0 } else { part.parse().unwrap() });
        }
    }
    (thread, name, arguments, result)
}

impl Machine {
    /// A machine with arbitrary state, from a seed.
    pub fn new(seed: u64) -> Self {
        Self {
            state: Settings::new(),
            current: [0, 0],
            seed,
            next_object: 1000,
            lists: BTreeMap::new(),
            recording: BTreeMap::new(),
            stacks: BTreeMap::new(),
        }
    }

    /// The value of a setting; initially arbitrary.
    fn get(&mut self, key: &str, range: u64) -> u64 {
        let seed = self.seed;
        let hash = key.bytes().fold(seed, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
        self.state.entry(key.to_owned()).or_insert_with(|| vec![(hash >> 20) % range])[0]
    }

    fn set(&mut self, key: &str, value: u64) {
        self.state.insert(key.to_owned(), vec![value]);
    }

    /// The object that a name denotes; 0 stays 0.
    fn object(&mut self, kind: &str, name: u64) -> u64 {
        if name == 0 {
            return 0;
        }
        let key = format!("{kind} {name}");
        if !self.state.contains_key(&key) {
            self.next_object += 1;
            let next = self.next_object;
            self.set(&key, next);
        }
        self.state[&key][0]
    }

    /// Executes a call. Returns true if it changed anything.
    pub fn run(&mut self, line: &str) -> bool {
        let (thread, name, arguments, result) = numbers(line);
        if name == "glXMakeCurrent" {
            if result != 0 {
                self.current[thread] = usize::try_from(arguments[2]).unwrap();
            }
            return true;
        }
        let context = self.current[thread];
        if name == "glNewList" {
            let list = arguments[0] << 1 | u64::from(arguments[1] == 4865);
            if let std::collections::btree_map::Entry::Vacant(place) = self.recording.entry(context) {
                place.insert(list);
                self.lists.insert(arguments[0], Vec::new());
            }
            return true;
        }
        if name == "glEndList" {
            self.recording.remove(&context);
            return true;
        }
        if let Some(&list) = self.recording.get(&context) {
            // Deletion takes effect at once.
            if !name.starts_with("glDelete") {
                self.lists.get_mut(&(list >> 1)).unwrap().push((thread, line.to_owned()));
                if list & 1 == 0 {
                    return true;
                }
            }
        }
        self.carry_out(context, &name, &arguments, 0)
    }

    fn carry_out(&mut self, context: usize, name: &str, arguments: &[u64], depth: usize) -> bool {
        if name == "glCallList" {
            let list = self.lists.get(&arguments[0]).cloned().unwrap_or_default();
            for (_, line) in list.iter().filter(|_| depth < 3) {
                let (_, name, arguments, _) = numbers(line);
                self.carry_out(context, &name, &arguments, depth + 1);
            }
            return true;
        }
        // Settings not read yet get their values first, so that reading them is not a change.
        self.apply(context, name, arguments, true);
        let before = self.state.clone();
        self.apply(context, name, arguments, false);
        before != self.state
    }

    fn apply(&mut self, c: usize, name: &str, a: &[u64], only_look: bool) {
        let saved = only_look.then(|| (self.state.clone(), self.stacks.clone()));
        self.change(c, name, a);
        if let Some((mut before, stacks)) = saved {
            for key in self.state.keys() {
                if !before.contains_key(key) && !key.starts_with(|c: char| c.is_ascii_uppercase()) {
                    before.insert(key.clone(), vec![self.initial(key)]);
                }
            }
            (self.state, self.stacks) = (before, stacks);
        }
    }

    fn initial(&self, key: &str) -> u64 {
        let hash = key.bytes().fold(self.seed, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
        (hash >> 20) % 3
    }

    fn change(&mut self, c: usize, name: &str, a: &[u64]) {
        let is_on = u64::from(name.starts_with("glEnable"));
        match name {
            "glEnable" | "glDisable" => match a[0] {
                3042 => (0..2).for_each(|n| self.set(&format!("c{c} blend {n}"), is_on)),
                3553 => {
                    let unit = self.get(&format!("c{c} unit"), 2);
                    self.set(&format!("c{c} u{unit} texture 2d"), is_on);
                }
                other => self.set(&format!("c{c} cap {other}"), is_on),
            },
            "glEnablei" | "glDisablei" => self.set(&format!("c{c} blend {}", a[1]), is_on),
            "glBlendFunc" => (0..2).for_each(|n| self.blend(c, n, [a[0], a[1], a[0], a[1]])),
            "glBlendFuncSeparate" => (0..2).for_each(|n| self.blend(c, n, [a[0], a[1], a[2], a[3]])),
            "glBlendFunci" => self.blend(c, a[0], [a[1], a[2], a[1], a[2]]),
            "glActiveTexture" => self.set(&format!("c{c} unit"), a[0] - 33984),
            "glBindTexture" => {
                let (unit, object) = (self.get(&format!("c{c} unit"), 2), self.object("Texture", a[1]));
                self.set(&format!("c{c} u{unit} bound {}", a[0]), object);
            }
            "glTexParameteri" => {
                let unit = self.get(&format!("c{c} unit"), 2);
                let object = self.get(&format!("c{c} u{unit} bound {}", a[0]), 1);
                let owner = if object == 0 { format!("default {}", a[0]) } else { format!("object {object}") };
                self.set(&format!("{owner} min filter"), a[2]);
            }
            "glTextureParameteri" => {
                let object = self.object("Texture", a[0]);
                self.set(&format!("object {object} min filter"), a[2]);
            }
            "glDeleteTextures" => self.delete(c, "Texture", a[1], " bound "),
            "glDeleteBuffers" => self.delete(c, "Buffer", a[1], " buffer"),
            "glDeleteVertexArrays" => self.delete(c, &format!("Array{c}"), a[1], " array"),
            "glUseProgram" => {
                let object = self.object("Program", a[0]);
                self.set(&format!("c{c} program"), object);
            }
            "glUniform1i" | "glUniform1iv" | "glProgramUniform1i" => self.uniform(c, name, a),
            "glLinkProgram" => {
                let object = self.object("Program", a[0]);
                (0..2).for_each(|n| self.set(&format!("object {object} uniform {n}"), 0));
            }
            "glBindVertexArray" => {
                let object = self.object(&format!("Array{c}"), a[0]);
                self.set(&format!("c{c} array"), object);
            }
            "glBindBuffer" => {
                let object = self.object("Buffer", a[1]);
                let array = self.get(&format!("c{c} array"), 1);
                let key = if a[0] == 34963 { format!("c{c} a{array} buffer") } else { format!("c{c} buffer") };
                self.set(&key, object);
            }
            "glVertexAttribPointer" => {
                let (array, buffer) = (self.get(&format!("c{c} array"), 1), self.get(&format!("c{c} buffer"), 1));
                self.state.insert(format!("c{c} a{array} pointer"), vec![a[1], buffer]);
            }
            "glBindFramebuffer" => {
                for (target, key) in [(36009, "draw"), (36008, "read")] {
                    if a[0] == target || a[0] == 36160 {
                        self.set(&format!("c{c} {key}"), a[1]);
                    }
                }
            }
            "glStencilFunc" => [1028, 1029].iter().for_each(|face| self.set(&format!("c{c} stencil {face}"), a[1])),
            "glStencilFuncSeparate" => {
                for face in [1028, 1029] {
                    if a[0] == face || a[0] == 1032 {
                        self.set(&format!("c{c} stencil {face}"), a[2]);
                    }
                }
            }
            "glPushAttrib" => {
                let own = format!("c{c} ");
                let now =
                    self.state.iter().filter(|(key, _)| key.starts_with(&own)).map(|(k, v)| (k.clone(), v.clone()));
                let now = now.collect();
                let stack = self.stacks.entry(c).or_default();
                // A full stack is an error without effect.
                if stack.len() < 4 {
                    stack.push(now);
                }
            }
            "glPopAttrib" => {
                if let Some(then) = self.stacks.entry(c).or_default().pop() {
                    self.state.extend(then);
                }
            }
            _ => {}
        }
    }

    fn blend(&mut self, c: usize, buffer: u64, values: [u64; 4]) {
        self.state.insert(format!("c{c} func {buffer}"), values.to_vec());
    }

    fn uniform(&mut self, c: usize, name: &str, a: &[u64]) {
        let (program, first, values) = match name {
            "glUniform1i" => (self.get(&format!("c{c} program"), 1), a[0], &a[1..]),
            "glUniform1iv" => (self.get(&format!("c{c} program"), 1), a[0], &a[2..]),
            _ => (self.object("Program", a[0]), a[1], &a[2..]),
        };
        if program != 0 {
            for (n, value) in (first..).zip(values) {
                self.set(&format!("object {program} uniform {n}"), *value);
            }
        }
    }

    /// A name becomes free. Its bindings in this context are removed; other contexts keep the object.
    fn delete(&mut self, c: usize, kind: &str, name: u64, bound: &str) {
        if let Some(object) = self.state.remove(&format!("{kind} {name}")) {
            let own = format!("c{c} ");
            for (key, value) in &mut self.state {
                if key.starts_with(&own) && key.contains(bound) && *value == object {
                    *value = vec![0];
                }
            }
        }
    }
}
