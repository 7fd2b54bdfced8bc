//! Which preset has the caches of this machine's processor.

use super::presets::Preset;

/// The preset with the caches of this machine's processor, as Linux describes it; `None` where none is known to fit.
pub fn of_this_machine() -> Option<&'static Preset> {
    let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    preset_name(&cpuinfo).and_then(Preset::of_name)
}

/// The preset of the first processor that Linux lists in `/proc/cpuinfo`; `None` where no preset is known to fit.
///
/// Families and models: Linux, `arch/x86/include/asm/intel-family.h` and `arch/x86/kernel/cpu/amd.c`; part numbers:
/// `arch/arm64/include/asm/cputype.h`.
fn preset_name(cpuinfo: &str) -> Option<&'static str> {
    let field = |name: &str| {
        let mut lines = cpuinfo.lines().filter_map(|line| line.split_once(':'));
        lines.find(|(key, _)| key.trim() == name).map(|(_, value)| value.trim())
    };
    let number = |name: &str| field(name)?.parse::<u32>().ok();
    match field("vendor_id") {
        Some("AuthenticAMD") => amd(number("cpu family")?, number("model")?),
        Some("GenuineIntel") if number("cpu family") == Some(6) => intel(number("model")?),
        Some(_) => None,
        None => {
            let hex = |name: &str| u32::from_str_radix(field(name)?.strip_prefix("0x")?, 16).ok();
            arm(hex("CPU implementer")?, hex("CPU part")?)
        }
    }
}

fn amd(family: u32, model: u32) -> Option<&'static str> {
    match (family, model) {
        (0x17, 0x30..) => Some("zen2"),
        (0x19, 0x10..=0x1f | 0x60..=0x7f | 0xa0..=0xaf) => Some("zen4"),
        (0x19, _) => Some("zen3"),
        (0x1a, _) => Some("zen5"),
        _ => None,
    }
}

fn intel(model: u32) -> Option<&'static str> {
    match model {
        0x4e | 0x5e | 0x8e | 0x9e | 0xa5 | 0xa6 => Some("skylake"),
        0x55 => Some("skylake-sp"),
        0x6a | 0x6c | 0x7d | 0x7e => Some("ice-lake"),
        0x97 | 0x9a => Some("alder-lake-p"),
        _ => None,
    }
}

fn arm(implementer: u32, part: u32) -> Option<&'static str> {
    match (implementer, part) {
        (0x41, 0xd03) => Some("cortex-a53"),
        (0x41, 0xd08) => Some("cortex-a72"),
        (0x41, 0xd0b) => Some("cortex-a76"),
        (0x41, 0xd0c) => Some("neoverse-n1"),
        (0x41, 0xd40) => Some("neoverse-v1"),
        (0x61, 0x22..=0x29) => Some("apple-m1"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_processor_decides_and_every_name_is_a_preset() {
        let x86 = |vendor: &str, family: u32, model: u32| {
            format!(
                "processor\t: 0\nvendor_id\t: {vendor}\ncpu family\t: {family}\nmodel\t\t: {model}\nmodel name\t: x\n"
            )
        };
        let arm = |part: &str| format!("processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: {part}\n");
        let known = [
            (x86("AuthenticAMD", 0x19, 0x21), Some("zen3")),
            (x86("AuthenticAMD", 0x19, 0x61), Some("zen4")),
            (x86("AuthenticAMD", 0x17, 0x71), Some("zen2")),
            (x86("AuthenticAMD", 0x1a, 0x44), Some("zen5")),
            (x86("GenuineIntel", 6, 0x55), Some("skylake-sp")),
            (x86("GenuineIntel", 6, 0x97), Some("alder-lake-p")),
            (x86("GenuineIntel", 15, 0x55), None),
            (arm("0xd0c"), Some("neoverse-n1")),
            (String::new(), None),
        ];
        for (cpuinfo, name) in known {
            assert_eq!(preset_name(&cpuinfo), name, "{cpuinfo}");
            assert!(name.is_none_or(|name| Preset::of_name(name).is_some()));
        }
    }
}
