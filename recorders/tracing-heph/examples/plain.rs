//! A program without `tracing` that records what it does.
//!
//! `cargo run -p tracing-heph --example plain -- plain.heph`, then `anytrace dump plain.heph`.

use std::hint::black_box;

use tracing_heph::Recorder;

fn is_prime(n: u64) -> bool {
    n > 1 && (2..).take_while(|d| d * d <= n).all(|d| !n.is_multiple_of(d))
}

fn main() -> Result<(), tracing_heph::Error> {
    let path = std::env::args().nth(1).unwrap_or_else(|| "plain.heph".to_owned());
    let (recorder, _guard) = Recorder::builder().file(&path).overwrite(true).with_thread_name(true).build_recorder()?;
    std::thread::scope(|scope| {
        for thread in 0..4_u64 {
            let recorder = &recorder;
            scope.spawn(move || {
                let mut span = recorder.span("search");
                let mut primes = Vec::new();
                for n in thread * 1_000..(thread + 1) * 1_000 {
                    if black_box(is_prime(n)) {
                        recorder.point("prime").u64("n", n);
                        primes.push(n);
                    }
                }
                span.u64("thread", thread).u64s("primes", &primes);
            });
        }
    });
    Ok(())
}
