//! The commands of OpenGL that set state: one table for all that follow it.
//!
//! A row defines which arguments select what is set, so that a later call with equal ones overwrites the earlier, and
//! which groups of `glPushAttrib` save it (OpenGL 2.1, table 6.5 ff.), for `gltrim`. Commands that set the same state in
//! different ways need no special treatment there: the last call of each stays, in order. A row also defines what the
//! state is that `stats` compares, and which parameters of `glGet` have its value, for `state`. Commands that make,
//! delete and bind objects are in [`super::lifecycle`], those of contexts in [`super::contexts`].

pub(crate) mod effects;
mod table;

use effects::{Act, On, Parameter};
pub(crate) use table::COMMANDS;

/// Commands of one stem.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Command {
    /// The name without `gl`, the types of its arguments and the suffix of an extension.
    pub(crate) stem: &'static str,
    /// The number of leading arguments that select what is set; the others are the value.
    pub(crate) selectors: u8,
    /// It sets state and does nothing else.
    pub(crate) sets_only: bool,
    /// The groups that save it; 0: `glPushAttrib` does not. Capabilities are saved by their own groups too.
    pub(crate) groups: u32,
    /// What else it depends on.
    pub(crate) on: On,
    /// What it does to state that is compared, for names with these types.
    act: Option<(&'static [&'static str], Act)>,
    /// The parameters that it sets, for names with these types.
    parameters: &'static [(&'static [&'static str], &'static [Parameter])],
}

impl Command {
    /// The parameters that it sets, whatever its types.
    #[cfg(test)]
    pub(crate) fn parameters(&self) -> impl Iterator<Item = &'static [Parameter]> {
        self.parameters.iter().map(|(_, parameters)| *parameters)
    }

    /// True for the name of this command with one of the types.
    fn is_named(&self, name: &str, types: &[&str]) -> bool {
        name.strip_prefix(self.stem).is_some_and(|rest| types.contains(&rest))
    }
}

/// What a command does to state that is compared. The name is without `gl` and an extension's suffix.
pub(crate) fn act(name: &str) -> Option<Act> {
    COMMANDS.iter().find_map(|command| {
        let (types, act) = command.act?;
        command.is_named(name, types).then_some(act)
    })
}

/// All names with what they do to state that is compared.
#[cfg(test)]
pub(crate) fn acting_names() -> impl Iterator<Item = String> {
    COMMANDS.iter().flat_map(|command| {
        let types = command.act.map_or(&[][..], |(types, _)| types);
        types.iter().map(|kind| format!("{}{kind}", command.stem))
    })
}

/// The parameters that a command sets. The name is as for [`act`].
pub(crate) fn parameters(name: &str) -> Option<&'static [Parameter]> {
    COMMANDS.iter().find_map(|command| {
        command.parameters.iter().find(|(types, _)| command.is_named(name, types)).map(|(_, parameters)| *parameters)
    })
}

/// The row of the state that a command sets: disabling sets the same state as enabling.
pub(crate) fn subject(row: u16) -> u16 {
    let stem = COMMANDS.get(usize::from(row)).map_or("", |command| command.stem);
    let on = match stem {
        "Disable" => "Enable",
        "DisableIndexed" => "EnableIndexed",
        "Disablei" => "Enablei",
        _ => return row,
    };
    place(on).unwrap_or(row)
}

/// The row of the stem of a command that only sets state.
pub(crate) fn place(stem: &str) -> Option<u16> {
    let at = COMMANDS.binary_search_by(|command| command.stem.cmp(stem)).ok()?;
    COMMANDS.get(at).filter(|command| command.sets_only).and_then(|_| u16::try_from(at).ok())
}

/// The row of a command that only sets state, by its name without `gl` and an extension's suffix.
pub(crate) fn find(name: &str) -> Option<u16> {
    // A letter may be the stem's own (`glFogi` is fog, `glBlendFunci` is not the blend function).
    place(name).or_else(|| {
        let name = name.strip_suffix('v').unwrap_or(name);
        let types = ["ub", "us", "ui", "b", "s", "i", "f", "d", "x", "h", "hNV", "N4ub", ""];
        types.into_iter().filter_map(|kind| name.strip_suffix(kind)).find_map(|rest| {
            let rest = rest.strip_suffix('N').unwrap_or(rest);
            place(rest).or_else(|| place(rest.strip_suffix(|digit: char| ('1'..='4').contains(&digit))?)).or_else(
                || {
                    let rest = rest.strip_suffix('N')?;
                    place(rest)
                },
            )
        })
    })
}
#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::gl::lifecycle::{Verb, action};

    /// All names with an act, and all with parameters.
    fn names() -> [Vec<String>; 2] {
        let named = |stem: &str, types: &[&str]| types.iter().map(|kind| format!("{stem}{kind}")).collect::<Vec<_>>();
        let sets = COMMANDS.iter().flat_map(|command| {
            command.parameters.iter().flat_map(|(types, _)| named(command.stem, types)).collect::<Vec<_>>()
        });
        [acting_names().collect(), sets.collect()]
    }

    #[test]
    fn the_table_is_sorted_and_each_name_has_one_row() {
        assert!(COMMANDS.is_sorted_by(|a, b| a.stem < b.stem));
        for (mut names, count) in names().into_iter().zip([139, 109]) {
            assert_eq!(names.len(), count);
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), count);
        }
    }

    #[test]
    fn every_name_is_found_with_what_its_row_has() {
        let [acts, sets] = names();
        assert!(acts.iter().all(|name| act(name).is_some()) && sets.iter().all(|name| parameters(name).is_some()));
        assert_eq!((act("Fogx"), act("Fog"), act("BindBufferBaseX"), act("")), (None, None, None, None));
        assert_eq!((parameters("Fog"), parameters("Vertex3f")), (None, None));
    }

    /// Where a command both sets state and is one of objects, the two tables agree on the argument with the name.
    #[test]
    fn names_of_objects_are_in_the_argument_that_binds_them() {
        let mut count = 0;
        for command in COMMANDS {
            let Some((_, Act::Set(effects::Setter { names: Some(kind), keys, .. }))) = command.act else { continue };
            let Some(action) = action(format!("gl{}", command.stem).as_bytes()) else { continue };
            assert_eq!(effects::ObjectKind::of(action.kind), Some(kind), "{}", command.stem);
            let Verb::Bind { name, .. } = action.verb else { panic!("{}", command.stem) };
            assert_eq!(name, usize::from(keys), "{}", command.stem);
            count += 1;
        }
        assert_eq!(count, 3);
    }

    #[test]
    fn names_with_types_are_found_and_others_are_not() {
        let stem = |name: &str| find(name).and_then(|at| COMMANDS.get(usize::from(at))).map(|row| row.stem);
        for (name, expected) in [
            ("Color3f", "Color"),
            ("Color4ubv", "Color"),
            ("BlendFunci", "BlendFunci"),
            ("BlendFunc", "BlendFunc"),
            ("Fogfv", "Fog"),
            ("Fogi", "Fog"),
            ("TexEnvf", "TexEnv"),
            ("VertexAttrib4Nub", "VertexAttrib"),
            ("VertexAttrib4Nubv", "VertexAttrib"),
            ("VertexAttribI4ui", "VertexAttribI"),
            ("VertexAttribP3uiv", "VertexAttribP"),
            ("ClearDepthf", "ClearDepth"),
            ("ViewportIndexedfv", "ViewportIndexed"),
            ("ViewportArrayv", "ViewportArray"),
            ("PatchParameteri", "PatchParameter"),
            ("Normal3b", "Normal"),
            ("Map2f", "Map"),
            ("MapGrid1d", "MapGrid"),
            ("SampleMaski", "SampleMaski"),
            ("ColorP4ui", "ColorP"),
            ("RasterPos2i", "RasterPos"),
        ] {
            assert_eq!(stem(name), Some(expected), "{name}");
        }
        for name in
            ["TexImage2D", "VertexAttribPointer", "MapBuffer", "Vertex3f", "ColorPointer", "VertexAttribDivisor", ""]
        {
            assert_eq!(stem(name), None, "{name}");
        }
    }
}
