//! Real async programs, with many more threads than cores, into a collector that is killed and started again meanwhile.

use std::time::Duration;

use super::Bench;

/// How often the collector is killed, and how long it lives until then.
const KILLS: usize = 2;
const LIFE: Duration = Duration::from_millis(150);

pub(super) fn web(bench: &Bench) -> Result<String, String> {
    counted(bench, "web", 640, 160_000)
}

pub(super) fn redis(bench: &Bench) -> Result<String, String> {
    counted(bench, "redis", 19_200, 640_000)
}

pub(super) fn moved(bench: &Bench) -> Result<String, String> {
    counted(bench, "moved", 48_000, 1_280_000)
}

/// Runs a program, short or long, and compares its count with all others.
fn counted(bench: &Bench, name: &str, short: u64, long: u64) -> Result<String, String> {
    let number = if bench.scale.is_full { long } else { short };
    let out = bench.folder.join("out");
    let mut collector = bench.collector(&out, "tcp://127.0.0.1:0", &["--ack"])?;
    let address = collector.address.clone();
    let running = bench.trial(name, &address, number)?;
    for _ in 0..KILLS {
        std::thread::sleep(LIFE);
        collector.running.kill()?;
        collector = bench.collector(&out, &address, &["--ack", "--append"])?;
    }
    let program = running.counted()?;
    let report = collector.report(true)?;
    bench.judge(&program, &[&report], &[&out])
}
