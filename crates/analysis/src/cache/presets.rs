//! Caches of common processors, from what their makers publish.
//!
//! Sizes, lines and ways are public; replacement policies are mostly not, and LRU takes their place unless the source
//! states another. The last level is the one shared by a core complex. Prefetchers are left out: how they work is not
//! public. First levels are those for data.

use super::config::{Config, Inclusion, Level, Policy};

/// A processor.
#[derive(Debug, Clone, Copy)]
pub struct Preset {
    /// Its name for `--config`.
    pub name: &'static str,
    /// Its description.
    pub title: &'static str,
    /// Where its figures are from.
    pub source: &'static str,
    /// Name, bytes, ways; all but the last are private to each core, unless `first_shared` states otherwise.
    levels: &'static [(&'static str, u64, u64)],
    /// The first level that cores share.
    first_shared: usize,
    line: u64,
    inclusion: Inclusion,
    /// Entries and ways of the levels of the TLB, for pages of 4 KiB; 0 ways is fully associative.
    tlb: &'static [(u64, u64)],
    page: u64,
    first_policy: Policy,
}

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// What most have in common.
const BASE: Preset = Preset {
    name: "",
    title: "",
    source: "",
    levels: &[],
    first_shared: 2,
    line: 64,
    inclusion: Inclusion::Nine,
    tlb: &[],
    page: 4096,
    first_policy: Policy::Lru,
};

/// All presets, by name.
pub const PRESETS: &[Preset] = &[
    Preset {
        name: "alder-lake-e",
        title: "Intel Gracemont (Alder Lake E-core), L2 of a cluster of four",
        source: "Intel 64 and IA-32 Architectures Optimization Reference Manual (248966), Gracemont microarchitecture",
        levels: &[("L1", 32 * KIB, 8), ("L2", 2 * MIB, 16), ("L3", 30 * MIB, 12)],
        first_shared: 1,
        tlb: &[(32, 0), (2048, 4)],
        ..BASE
    },
    Preset {
        name: "alder-lake-p",
        title: "Intel Golden Cove (Alder Lake P-core, Core i9-12900K)",
        source: "Intel 64 and IA-32 Architectures Optimization Reference Manual (248966), Golden Cove microarchitecture",
        levels: &[("L1", 48 * KIB, 12), ("L2", 1280 * KIB, 10), ("L3", 30 * MIB, 12)],
        tlb: &[(96, 6), (2048, 16)],
        ..BASE
    },
    Preset {
        name: "apple-m1",
        title: "Apple M1, performance cluster (Firestorm); the system cache is left out",
        source: "macOS on M1, sysctl hw.perflevel0.l1dcachesize, .l2cachesize, hw.cachelinesize; ways after AnandTech, \
                 \"Apple Announces The Apple Silicon M1\", 2020",
        levels: &[("L1", 128 * KIB, 8), ("L2", 12 * MIB, 12)],
        first_shared: 1,
        line: 128,
        page: 16384,
        tlb: &[(160, 0), (3072, 12)],
        ..BASE
    },
    Preset {
        name: "cortex-a53",
        title: "Arm Cortex-A53 with 32 KiB and 512 KiB (sizes are the maker's choice)",
        source: "Arm Cortex-A53 MPCore Processor Technical Reference Manual (DDI 0500), sections 5.2, 6.1, 7.1",
        levels: &[("L1", 32 * KIB, 4), ("L2", 512 * KIB, 16)],
        first_shared: 1,
        tlb: &[(10, 0), (512, 4)],
        first_policy: Policy::Random,
        ..BASE
    },
    Preset {
        name: "cortex-a72",
        title: "Arm Cortex-A72 with 1 MiB (the size of L2 is the maker's choice)",
        source: "Arm Cortex-A72 MPCore Processor Technical Reference Manual (100095), sections 5.2, 6.1, 7.1",
        levels: &[("L1", 32 * KIB, 2), ("L2", MIB, 16)],
        first_shared: 1,
        inclusion: Inclusion::Inclusive,
        tlb: &[(32, 0), (1024, 4)],
        ..BASE
    },
    Preset {
        name: "cortex-a76",
        title: "Arm Cortex-A76 with 256 KiB and 2 MiB (sizes are the maker's choice)",
        source: "Arm Cortex-A76 Core Technical Reference Manual (100798), sections A5.1, A6.1, A7.1",
        levels: &[("L1", 64 * KIB, 4), ("L2", 256 * KIB, 8), ("L3", 2 * MIB, 16)],
        tlb: &[(48, 0), (1280, 5)],
        ..BASE
    },
    Preset {
        name: "ice-lake",
        title: "Intel Sunny Cove (Ice Lake client, four cores)",
        source: "Intel 64 and IA-32 Architectures Optimization Reference Manual (248966), Ice Lake Client microarchitecture",
        levels: &[("L1", 48 * KIB, 12), ("L2", 512 * KIB, 8), ("L3", 8 * MIB, 16)],
        tlb: &[(64, 4), (2048, 16)],
        ..BASE
    },
    Preset {
        name: "neoverse-n1",
        title: "Arm Neoverse N1 with 1 MiB and a system cache of 32 MiB (sizes are the maker's choice)",
        source: "Arm Neoverse N1 Core Technical Reference Manual (100616), sections A5.1, A6.1, A7.1",
        levels: &[("L1", 64 * KIB, 4), ("L2", MIB, 8), ("SLC", 32 * MIB, 16)],
        tlb: &[(48, 0), (1280, 5)],
        ..BASE
    },
    Preset {
        name: "neoverse-v1",
        title: "Arm Neoverse V1 with 1 MiB and a system cache of 32 MiB (sizes are the maker's choice)",
        source: "Arm Neoverse V1 Core Technical Reference Manual (101427), sections A5.1, A6.1, A7.1",
        levels: &[("L1", 64 * KIB, 4), ("L2", MIB, 8), ("SLC", 32 * MIB, 16)],
        tlb: &[(40, 0), (2048, 8)],
        ..BASE
    },
    Preset {
        name: "skylake",
        title: "Intel Skylake client, four cores",
        source: "Intel 64 and IA-32 Architectures Optimization Reference Manual (248966), Skylake Client microarchitecture",
        levels: &[("L1", 32 * KIB, 8), ("L2", 256 * KIB, 4), ("L3", 8 * MIB, 16)],
        tlb: &[(64, 4), (1536, 12)],
        ..BASE
    },
    Preset {
        name: "skylake-sp",
        title: "Intel Skylake server (Xeon Scalable, 16 slices of L3)",
        source: "Intel 64 and IA-32 Architectures Optimization Reference Manual (248966), Skylake Server microarchitecture",
        levels: &[("L1", 32 * KIB, 8), ("L2", MIB, 16), ("L3", 22 * MIB, 11)],
        tlb: &[(64, 4), (1536, 12)],
        ..BASE
    },
    Preset {
        name: "zen2",
        title: "AMD Zen 2, one core complex of four",
        source: "AMD Software Optimization Guide for AMD Family 17h Models 30h and Greater Processors (56305), section 2",
        levels: &[("L1", 32 * KIB, 8), ("L2", 512 * KIB, 8), ("L3", 16 * MIB, 16)],
        tlb: &[(64, 0), (2048, 16)],
        ..BASE
    },
    Preset {
        name: "zen3",
        title: "AMD Zen 3, one core complex of eight",
        source: "AMD Software Optimization Guide for AMD Family 19h Processors (56665), section 2",
        levels: &[("L1", 32 * KIB, 8), ("L2", 512 * KIB, 8), ("L3", 32 * MIB, 16)],
        tlb: &[(64, 0), (2048, 16)],
        ..BASE
    },
    Preset {
        name: "zen4",
        title: "AMD Zen 4, one core complex of eight",
        source: "AMD Software Optimization Guide for the AMD Zen4 Microarchitecture (57647), section 2",
        levels: &[("L1", 32 * KIB, 8), ("L2", MIB, 8), ("L3", 32 * MIB, 16)],
        tlb: &[(72, 0), (3072, 24)],
        ..BASE
    },
    Preset {
        name: "zen5",
        title: "AMD Zen 5, one core complex of eight",
        source: "AMD Software Optimization Guide for the AMD Zen5 Microarchitecture (58455), section 2",
        levels: &[("L1", 48 * KIB, 12), ("L2", MIB, 16), ("L3", 32 * MIB, 16)],
        tlb: &[(96, 0), (4096, 16)],
        ..BASE
    },
];

impl Preset {
    /// The preset with a name, whatever its case and separators.
    pub fn of_name(name: &str) -> Option<&'static Self> {
        let plain = |text: &str| text.to_ascii_lowercase().replace(['-', '_', ' '], "");
        PRESETS.iter().find(|preset| plain(preset.name) == plain(name))
    }

    /// The preset for results that are the same on every machine, and for machines whose processor has none.
    pub fn documented() -> &'static Self {
        Self::of_name("zen3").unwrap_or(&PRESETS[0])
    }

    /// The configuration.
    pub fn config(&self) -> Config {
        let level = |(at, (name, size, ways)): (usize, &(&str, u64, u64))| {
            let mut level = Level::new(name, *size, self.line, *ways);
            level.is_private = at < self.first_shared;
            level.policy = if at == 0 { self.first_policy } else { Policy::Lru };
            level
        };
        let page = |(at, (entries, ways)): (usize, &(u64, u64))| {
            let mut level = Level::new(&format!("DTLB{}", at + 1), entries * self.page, self.page, *ways);
            level.is_private = true;
            level
        };
        let mut config = Config::new(self.name, self.levels.iter().enumerate().map(level).collect());
        config.inclusion = self.inclusion;
        config.tlb = self.tlb.iter().enumerate().map(page).collect();
        config
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_can_be_simulated_and_is_in_order() {
        for preset in PRESETS {
            assert_eq!(preset.config().check(), Ok(()), "{}", preset.name);
            assert!(!preset.source.is_empty() && !preset.title.is_empty());
            for level in &preset.config().levels {
                assert_eq!(level.size % (level.line * level.ways), 0, "{} {}", preset.name, level.name);
            }
        }
        assert!(PRESETS.is_sorted_by_key(|preset| preset.name));
        assert_eq!(Preset::of_name("Zen_3").map(|preset| preset.name), Some("zen3"));
        assert!(Preset::of_name("zen9").is_none());
    }
}
