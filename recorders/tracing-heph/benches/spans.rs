//! What a span costs the program, beside the layers for Chrome's format, for Perfetto's and for flame graphs.
//!
//! `cargo bench -p tracing-heph` prints a table: spans with one `u64` field and an `entered()` guard, one thread,
//! 500,000 a run, each run a process of its own, the layers in turn; lowest and median of the runs. The clock of "caller" stops
//! after the last span, that of "on disk" when the guard is dropped. `-- --runs N --spans N --threads N` change the
//! numbers.

#![allow(missing_docs)]
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark may fail by panicking, and prints")]

use std::hint::black_box;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use tracing::info_span;
use tracing_subscriber::Registry;
use tracing_subscriber::layer::SubscriberExt;

const LAYERS: [&str; 11] = [
    "none",
    "registry",
    "nothing",
    "tracing-chrome",
    "tracing-chrome, args",
    "tracing-flame",
    "tracing-perfetto",
    "heph",
    "heph, zero",
    "heph, lives",
    "heph, survives",
];

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [child, layer, spans, threads, path] = arguments.as_slice()
        && child == "--child"
    {
        return run(layer, spans.parse().unwrap(), threads.parse().unwrap(), Path::new(path));
    }
    let number = |name: &str, or: usize| {
        let at = arguments.iter().position(|argument| argument == name);
        at.and_then(|at| arguments.get(at + 1)).map_or(or, |value| value.parse().unwrap())
    };
    let (runs, spans, threads) = (number("--runs", 3), number("--spans", 500_000), number("--threads", 1));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace");
    let mut results = vec![Vec::new(); LAYERS.len()];
    for _ in 0..runs {
        for (layer, results) in LAYERS.iter().zip(&mut results) {
            let _ = std::fs::remove_file(&path);
            let mut child = Command::new(std::env::current_exe().unwrap());
            child.args(["--child", layer, &spans.to_string(), &threads.to_string()]).arg(&path);
            let output = child.output().unwrap();
            assert!(output.status.success(), "{layer}: {}", String::from_utf8_lossy(&output.stderr));
            let text = String::from_utf8(output.stdout).unwrap();
            let numbers: Vec<f64> = text.split_whitespace().map(|number| number.parse().unwrap()).collect();
            results.push(<[f64; 4]>::try_from(numbers).unwrap());
        }
    }
    println!("| layer | caller ns/span, lowest / median | on disk ns/span | peak MiB | bytes/span | lost |");
    println!("|---|---|---|---|---|---|");
    let lost = |results: &[[f64; 4]]| results.iter().map(|result| result[3]).sum::<f64>();
    for (layer, results) in LAYERS.iter().zip(&results) {
        let (caller, disk, peak) = (sorted(results, 0), sorted(results, 1), sorted(results, 2));
        let bytes = std::fs::metadata(format!("{}.{layer}", path.display())).map_or(0, |file| file.len());
        println!(
            "| {layer} | {:.0} / {:.0} | {:.0} / {:.0} | {:.1} | {:.0} | {} |",
            caller.0,
            caller.1,
            disk.0,
            disk.1,
            peak.1,
            bytes as f64 / spans as f64,
            lost(results)
        );
    }
    let lowest = |layer: &str| sorted(&results[LAYERS.iter().position(|name| *name == layer).unwrap()], 0);
    let (heph, chrome, registry) = (lowest("heph"), lowest("tracing-chrome"), lowest("registry"));
    println!(
        "\nheph / tracing-chrome: {:.2} lowest, {:.2} median (at most 0.35)",
        heph.0 / chrome.0,
        heph.1 / chrome.1
    );
    println!(
        "above the registry: {:.0} ns lowest, {:.0} ns median (at most 200)",
        heph.0 - registry.0,
        heph.1 - registry.1
    );
}

/// Lowest and median of a column.
fn sorted(results: &[[f64; 4]], column: usize) -> (f64, f64) {
    let mut values: Vec<f64> = results.iter().map(|result| result[column]).collect();
    values.sort_by(f64::total_cmp);
    (values[0], values[values.len() / 2])
}

fn run(layer: &str, spans: u64, threads: u64, path: &Path) {
    let end: Box<dyn FnOnce() -> u64> = match layer {
        "none" => Box::new(|| 0),
        "registry" => {
            tracing::subscriber::set_global_default(Registry::default()).unwrap();
            Box::new(|| 0)
        }
        "nothing" => {
            tracing::subscriber::set_global_default(Registry::default().with(Nothing)).unwrap();
            Box::new(|| 0)
        }
        "tracing-chrome" | "tracing-chrome, args" => {
            let (layer, guard) =
                tracing_chrome::ChromeLayerBuilder::new().file(path).include_args(layer.ends_with("args")).build();
            tracing::subscriber::set_global_default(Registry::default().with(layer)).unwrap();
            Box::new(|| {
                drop(guard);
                0
            })
        }
        "tracing-flame" => {
            let (layer, guard) = tracing_flame::FlameLayer::with_file(path).unwrap();
            tracing::subscriber::set_global_default(Registry::default().with(layer)).unwrap();
            Box::new(|| {
                drop(guard);
                0
            })
        }
        "tracing-perfetto" => {
            let file = std::fs::File::create(path).unwrap();
            let layer = tracing_perfetto::PerfettoLayer::new(std::sync::Mutex::new(file));
            tracing::subscriber::set_global_default(Registry::default().with(layer)).unwrap();
            // It writes each span when it ends.
            Box::new(|| 0)
        }
        _ => {
            let mut builder = tracing_heph::HephLayer::builder().file(path).lives(layer.ends_with("lives"));
            builder = builder.survive_kill(layer.ends_with("survives"));
            if layer.ends_with("zero") {
                builder = builder.substream(tracing_heph::Substream::Zero);
            }
            let (layer, guard) = builder.build().unwrap();
            tracing::subscriber::set_global_default(Registry::default().with(layer)).unwrap();
            Box::new(|| {
                let stats = guard.close();
                stats.dropped + stats.lost
            })
        }
    };
    let start = Instant::now();
    std::thread::scope(|scope| {
        for _ in 1..threads {
            scope.spawn(|| work(spans / threads));
        }
        work(spans / threads);
    });
    let caller = start.elapsed();
    let lost = end();
    let total = start.elapsed();
    let per_span = |time: std::time::Duration| time.as_nanos() as f64 / spans as f64;
    println!("{} {} {} {lost}", per_span(caller), per_span(total), peak_mib());
    let _ = std::fs::rename(path, format!("{}.{layer}", path.display()));
}

fn work(spans: u64) {
    for n in 0..spans {
        let _span = info_span!("work", n).entered();
        black_box(n);
    }
}

/// A layer that does nothing, but lets the registry use the places of closed spans again.
struct Nothing;

impl<S: tracing::Subscriber> tracing_subscriber::Layer<S> for Nothing {}

/// Peak memory of this process, as the kernel counts it.
fn peak_mib() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or("0 kB");
    line.split_whitespace().next().map_or(0.0, |kib| kib.parse::<f64>().unwrap() / 1024.0)
}
