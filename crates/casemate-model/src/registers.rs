//! System registers that are in no table of this crate, and whether they matter for translation.

use crate::record::Sysreg;

/// Beginnings of the names of registers that change no translation at EL2 or below it: vectors, syndromes, timers,
/// interrupt controllers, performance monitors, debugging, traps, floating point, and the general ones of a context
/// (Arm ARM D19, by the groups of its registers).
const HARMLESS: &[&str] = &[
    "actlr_", "afsr", "amair_", "ap", "brb", "ccsidr_", "clidr_", "cnt", "cpacr_", "cptr_", "csselr_", "daif", "dbg",
    "disr_", "dlr_", "dspsr_", "elr_", "esr_", "far_", "fpcr", "fpsr", "hacr_", "hdfg", "hfg", "hpfar_", "hstr_",
    "icc_", "ich_", "icv_", "isr_", "mdcr_", "mdscr_", "nzcv", "osdlr_", "oslar_", "pan", "par_", "pm", "rmr_",
    "rvbar_", "scxtnum_", "smcr_", "smpri", "sp_el", "spsel", "spsr_", "svcr", "tco", "tfsr", "tpidr", "trb", "trc",
    "uao", "vbar_", "vdisr_", "vmpidr_", "vpidr_", "vsesr_", "zcr_",
];

/// True when a write of the register cannot change how addresses are translated.
pub(crate) fn is_harmless(name: &str) -> bool {
    HARMLESS.iter().any(|start| name.starts_with(start))
}

/// The register of EL1 that a name ending with `_el12` means: a host's names of EL1 are for EL2 (Arm ARM D8.3).
pub(crate) fn of_guest(name: &str) -> Option<Sysreg> {
    Some(match name {
        "ttbr0_el12" => Sysreg::Ttbr0El1,
        "ttbr1_el12" => Sysreg::Ttbr1El1,
        "tcr_el12" => Sysreg::TcrEl1,
        "sctlr_el12" => Sysreg::SctlrEl1,
        "mair_el12" => Sysreg::MairEl1,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers_of_translation_are_not_harmless() {
        for name in ["vbar_el2", "tpidr_el2", "cntvoff_el2", "icc_sre_el2", "pmcr_el0", "spsr_el2", "mdcr_el2"] {
            assert!(is_harmless(name), "{name}");
        }
        for name in [
            "tcr2_el2",
            "hcrx_el2",
            "vsttbr_el2",
            "vstcr_el2",
            "ttbr0_el12",
            "tcr_el3",
            "pir_el2",
            "por_el1",
            "contextidr_el2",
            "s3_4_c2_c0_0",
            "sctlr2_el2",
            "gpccr_el3",
            "scr_el3",
            "vncr_el2",
            "mecid_p0_el2",
            "vmecid_p_el2",
        ] {
            assert!(!is_harmless(name), "{name}");
        }
    }
}
