//! Functions that set state and nothing else.
//!
//! A row defines which arguments select what is set, so that a later call with equal ones overwrites the earlier, and
//! which groups of `glPushAttrib` save it (OpenGL 2.1, table 6.5 ff.). Functions that set the same state in different
//! ways need no special treatment: the last call of each stays, in order.

use crate::tools::gl::attribute_groups::{
    ACCUM, COLOR, CURRENT, DEPTH, ENABLE, EVAL, FOG, HINT, LIGHTING, LINE, LIST, MULTISAMPLE, PIXEL, POINT, POLYGON,
    SCISSOR, STENCIL, STIPPLE, TEXTURE, TRANSFORM, VIEWPORT,
};

/// Functions of one stem.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct StateRow {
    /// The name without `gl`, the types of its arguments and the suffix of an extension.
    pub(super) stem: &'static str,
    /// The number of arguments that select what is set.
    pub(super) selectors: usize,
    /// The groups that save it; 0: `glPushAttrib` does not. Capabilities are saved by their own groups too.
    pub(super) groups: u32,
    /// What else it depends on.
    pub(super) on: On,
}

/// What a state also depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum On {
    /// Nothing.
    Nothing,
    /// The active texture unit, which selects too.
    Unit,
    /// The modelview matrix, which is applied.
    ModelView,
    /// All state of the context.
    Everything,
}

const fn row(stem: &'static str, selectors: usize, groups: u32) -> StateRow {
    StateRow { stem, selectors, groups, on: On::Nothing }
}

const fn on(stem: &'static str, selectors: usize, groups: u32, on: On) -> StateRow {
    StateRow { stem, selectors, groups, on }
}

/// Sorted by stem.
pub(super) const STATES: &[StateRow] = &[
    row("ActiveStencilFace", 0, STENCIL),
    row("AlphaFunc", 0, COLOR),
    row("BlendBarrier", 0, 0),
    row("BlendColor", 0, COLOR),
    row("BlendEquation", 0, COLOR),
    row("BlendEquationIndexed", 1, COLOR),
    row("BlendEquationSeparate", 0, COLOR),
    row("BlendEquationSeparateIndexed", 1, COLOR),
    row("BlendEquationSeparatei", 1, COLOR),
    row("BlendEquationi", 1, COLOR),
    row("BlendFunc", 0, COLOR),
    row("BlendFuncIndexed", 1, COLOR),
    row("BlendFuncSeparate", 0, COLOR),
    row("BlendFuncSeparateIndexed", 1, COLOR),
    row("BlendFuncSeparatei", 1, COLOR),
    row("BlendFunci", 1, COLOR),
    row("BlendParameter", 1, COLOR),
    row("ClampColor", 1, COLOR | ENABLE),
    row("ClearAccum", 0, ACCUM),
    row("ClearColor", 0, COLOR),
    row("ClearDepth", 0, DEPTH),
    row("ClearIndex", 0, COLOR),
    row("ClearStencil", 0, STENCIL),
    row("ClipControl", 0, TRANSFORM),
    on("ClipPlane", 1, TRANSFORM, On::ModelView),
    row("Color", 0, CURRENT),
    row("ColorMask", 0, COLOR),
    row("ColorMaskIndexed", 1, COLOR),
    row("ColorMaski", 1, COLOR),
    row("ColorMaterial", 0, LIGHTING),
    row("ColorP", 0, CURRENT),
    row("CombinerInput", 4, TEXTURE),
    row("CombinerOutput", 2, TEXTURE),
    row("CombinerParameter", 1, TEXTURE),
    row("CombinerStageParameter", 2, TEXTURE),
    row("ConservativeRasterParameter", 1, 0),
    row("CoverageModulation", 0, 0),
    row("CullFace", 0, POLYGON),
    row("DepthBounds", 0, DEPTH),
    row("DepthFunc", 0, DEPTH),
    row("DepthMask", 0, DEPTH),
    row("DepthRange", 0, VIEWPORT),
    row("DepthRangeArray", 2, VIEWPORT),
    row("DepthRangeIndexed", 1, VIEWPORT),
    row("Disable", 1, ENABLE),
    row("DisableIndexed", 2, ENABLE),
    row("Disablei", 2, ENABLE),
    row("EdgeFlag", 0, CURRENT),
    row("Enable", 1, ENABLE),
    row("EnableIndexed", 2, ENABLE),
    row("Enablei", 2, ENABLE),
    row("FinalCombinerInput", 1, TEXTURE),
    row("Fog", 1, FOG),
    row("FogCoord", 0, CURRENT),
    row("FramebufferFetchBarrier", 0, 0),
    row("FrontFace", 0, POLYGON),
    row("Hint", 1, HINT),
    row("Index", 0, CURRENT),
    row("IndexMask", 0, COLOR),
    on("Light", 2, LIGHTING, On::ModelView),
    row("LightModel", 1, LIGHTING),
    row("LineStipple", 0, LINE),
    row("LineWidth", 0, LINE),
    row("ListBase", 0, LIST),
    row("LogicOp", 0, COLOR),
    row("Map", 1, EVAL),
    row("MapGrid", 0, EVAL),
    row("Material", 2, LIGHTING),
    row("MaxShaderCompilerThreads", 0, 0),
    row("MinSampleShading", 0, MULTISAMPLE),
    row("MultiTexCoord", 1, CURRENT),
    row("MultiTexCoordP", 1, CURRENT),
    row("MultiTexEnv", 3, TEXTURE),
    on("MultiTexGen", 3, TEXTURE, On::ModelView),
    row("Normal", 0, CURRENT),
    row("NormalP", 0, CURRENT),
    row("PatchParameter", 1, 0),
    row("PixelMap", 1, PIXEL),
    row("PixelTransfer", 1, PIXEL),
    row("PixelTransformParameter", 2, PIXEL),
    row("PixelZoom", 0, PIXEL),
    row("PointParameter", 1, POINT),
    row("PointSize", 0, POINT),
    row("PolygonMode", 1, POLYGON),
    row("PolygonOffset", 0, POLYGON),
    row("PolygonOffsetClamp", 0, POLYGON),
    row("PolygonStipple", 0, STIPPLE),
    row("PrimitiveBoundingBox", 0, 0),
    row("PrimitiveRestartIndex", 0, 0),
    row("ProgramEnvParameter", 2, 0),
    row("ProgramEnvParameters", 3, 0),
    row("ProvokingVertex", 0, LIGHTING),
    on("RasterPos", 0, CURRENT, On::Everything),
    row("RasterSamples", 0, MULTISAMPLE),
    row("SampleCoverage", 0, MULTISAMPLE),
    row("SampleMask", 0, MULTISAMPLE),
    row("SampleMaskIndexed", 1, MULTISAMPLE),
    row("SampleMaski", 1, MULTISAMPLE),
    row("SamplePattern", 0, MULTISAMPLE),
    row("Scissor", 0, SCISSOR),
    row("ScissorArray", 2, SCISSOR),
    row("ScissorIndexed", 1, SCISSOR),
    row("SecondaryColor", 0, CURRENT),
    row("SecondaryColorP", 0, CURRENT),
    row("ShadeModel", 0, LIGHTING),
    row("ShadingRate", 0, 0),
    row("StencilClearTag", 0, STENCIL),
    row("StencilFunc", 0, STENCIL),
    row("StencilFuncSeparate", 1, STENCIL),
    row("StencilMask", 0, STENCIL),
    row("StencilMaskSeparate", 1, STENCIL),
    row("StencilOp", 0, STENCIL),
    row("StencilOpSeparate", 1, STENCIL),
    row("TexCoord", 0, CURRENT),
    row("TexCoordP", 0, CURRENT),
    on("TexEnv", 2, TEXTURE, On::Unit),
    on("TexGen", 2, TEXTURE, On::ModelView),
    row("VertexAttrib", 1, CURRENT),
    row("VertexAttribI", 1, CURRENT),
    row("VertexAttribL", 1, CURRENT),
    row("VertexAttribP", 1, CURRENT),
    row("Viewport", 0, VIEWPORT),
    row("ViewportArray", 2, VIEWPORT),
    row("ViewportIndexed", 1, VIEWPORT),
    on("WindowPos", 0, CURRENT, On::Everything),
];

/// The row of the state that a function sets: disabling sets the same state as enabling.
pub(super) fn subject(row: u16) -> u16 {
    let stem = STATES.get(usize::from(row)).map_or("", |state| state.stem);
    let on = match stem {
        "Disable" => "Enable",
        "DisableIndexed" => "EnableIndexed",
        "Disablei" => "Enablei",
        _ => return row,
    };
    place(on).unwrap_or(row)
}

/// The row of a stem.
pub(super) fn place(stem: &str) -> Option<u16> {
    STATES.binary_search_by(|row| row.stem.cmp(stem)).ok().and_then(|at| u16::try_from(at).ok())
}

/// The row of a name without `gl` and without an extension's suffix.
pub(super) fn find(name: &str) -> Option<u16> {
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
    use crate::tools::state::saving_groups;
    use crate::tools::stats::key_arguments;

    #[test]
    fn the_table_is_sorted() {
        assert!(STATES.is_sorted_by(|a, b| a.stem < b.stem));
    }

    /// `stats` and `state` have separate tables for other purposes. Where they overlap they must agree.
    #[test]
    fn other_tables_of_state_agree() {
        let row = |name: &str| find(name).and_then(|at| STATES.get(usize::from(at)));
        let keys: Vec<_> =
            key_arguments().filter_map(|(name, keys)| Some((name, keys, row(name)?.selectors))).collect();
        assert!(keys.len() > 60, "{}", keys.len());
        for (name, keys, selectors) in keys {
            assert_eq!(keys, selectors, "{name}");
        }
        let saved: Vec<_> = saving_groups().filter_map(|(name, by)| Some((name, by, row(name)?.groups))).collect();
        assert!(saved.len() > 50, "{}", saved.len());
        for (name, by, groups) in saved {
            assert_eq!(by, groups, "{name}");
        }
    }

    #[test]
    fn names_with_types_are_found_and_others_are_not() {
        let stem = |name: &str| find(name).and_then(|at| STATES.get(usize::from(at))).map(|row| row.stem);
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
