//! Names of objects: what the trace calls them, and what they are called here.

use std::collections::HashMap;

use anytrace_apitrace::tools::gl::kind::{Kind, Scope};
use foldhash::fast::RandomState;

/// Locations further behind a known one are not elements of its array.
const ELEMENTS_MAX: i32 = 1024;

/// Who has a name: a group of contexts, or one context.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Owner {
    Group(u32),
    Context(u32),
}

/// The context that names belong to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Of {
    pub(crate) context: u32,
    pub(crate) group: u32,
}

impl Of {
    fn owner(self, kind: Kind) -> Owner {
        if kind.scope() == Scope::Group { Owner::Group(self.group) } else { Owner::Context(self.context) }
    }
}

type Map<K, V> = HashMap<K, V, RandomState>;

/// All names.
#[derive(Debug, Default)]
pub(crate) struct Names {
    objects: Map<(Kind, Owner, u32), u32>,
    syncs: Map<u64, u64>,
    /// By group and program, as the trace calls it.
    locations: Map<(u32, u32, i32), i32>,
    blocks: Map<(u32, u32, u32), u32>,
}

impl Names {
    /// The name here, if the trace made the object.
    pub(crate) fn object(&self, of: Of, kind: Kind, traced: u32) -> Option<u32> {
        let kind = kind.namespace();
        self.objects.get(&(kind, of.owner(kind), traced)).copied()
    }

    pub(crate) fn made(&mut self, of: Of, kind: Kind, traced: u32, real: u32) {
        let kind = kind.namespace();
        if traced != 0 && real != 0 {
            self.objects.insert((kind, of.owner(kind), traced), real);
        }
    }

    /// The objects of a group belong to another one from now on.
    pub(crate) fn join(&mut self, from: u32, to: u32) {
        if from == to {
            return;
        }
        let moved: Vec<_> = self.objects.extract_if(|(_, owner, _), _| *owner == Owner::Group(from)).collect();
        self.objects.extend(moved.into_iter().map(|((kind, _, name), real)| ((kind, Owner::Group(to), name), real)));
        let moved: Vec<_> = self.locations.extract_if(|(group, ..), _| *group == from).collect();
        self.locations.extend(moved.into_iter().map(|((_, program, at), real)| ((to, program, at), real)));
        let moved: Vec<_> = self.blocks.extract_if(|(group, ..), _| *group == from).collect();
        self.blocks.extend(moved.into_iter().map(|((_, program, at), real)| ((to, program, at), real)));
    }

    /// A sync object here; 0 if there is none.
    pub(crate) fn sync(&self, traced: u64) -> u64 {
        self.syncs.get(&traced).copied().unwrap_or(0)
    }

    pub(crate) fn made_sync(&mut self, traced: u64, real: u64) {
        self.syncs.insert(traced, real);
    }

    pub(crate) fn forget_sync(&mut self, traced: u64) {
        self.syncs.remove(&traced);
    }

    pub(crate) fn location_is(&mut self, of: Of, program: u32, traced: i32, real: i32) {
        self.locations.insert((of.group, program, traced), real);
    }

    /// The location here. Elements of an array follow its first: that is the nearest before it that was asked for.
    pub(crate) fn location(&self, of: Of, program: u32, traced: i32) -> i32 {
        if traced < 0 {
            return traced;
        }
        let known = |back: i32| {
            let real = *self.locations.get(&(of.group, program, traced - back))?;
            Some(if real < 0 { -1 } else { real + back })
        };
        (0..=traced.min(ELEMENTS_MAX - 1)).find_map(known).unwrap_or(traced)
    }

    pub(crate) fn block_is(&mut self, of: Of, program: u32, traced: u32, real: u32) {
        self.blocks.insert((of.group, program, traced), real);
    }

    pub(crate) fn block(&self, of: Of, program: u32, traced: u32) -> u32 {
        self.blocks.get(&(of.group, program, traced)).copied().unwrap_or(traced)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_belong_to_contexts_or_their_groups() {
        let mut names = Names::default();
        let (one, two) = (Of { context: 1, group: 1 }, Of { context: 2, group: 1 });
        names.made(one, Kind::Texture, 5, 50);
        names.made(one, Kind::VertexArray, 5, 51);
        names.made(one, Kind::Shader, 6, 60);
        assert_eq!((names.object(two, Kind::Texture, 5), names.object(two, Kind::VertexArray, 5)), (Some(50), None));
        // Shaders and programs have one name space.
        assert_eq!((names.object(one, Kind::Program, 6), names.object(one, Kind::Texture, 0)), (Some(60), None));
        names.join(1, 7);
        assert_eq!(names.object(Of { context: 9, group: 7 }, Kind::Texture, 5), Some(50));
        assert_eq!(names.object(one, Kind::Texture, 5), None);
    }

    #[test]
    fn elements_of_arrays_follow_their_first() {
        let mut names = Names::default();
        let of = Of::default();
        names.location_is(of, 3, 10, 4);
        names.location_is(of, 3, 20, -1);
        let found: Vec<i32> = [-1, 9, 10, 12, 21].into_iter().map(|at| names.location(of, 3, at)).collect();
        assert_eq!(found, [-1, 9, 4, 6, -1]);
        names.block_is(of, 3, 1, 0);
        assert_eq!((names.block(of, 3, 1), names.block(of, 3, 2)), (0, 2));
    }
}
