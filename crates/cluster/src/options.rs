//! The options of the scheduler and of executors: the names of Ballista's own programs, with other defaults.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

/// SQL on program traces on several machines.
#[derive(Debug, Parser)]
#[command(name = "anytrace-cluster", version, about, max_term_width = 100)]
pub(crate) struct Options {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What to run.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run the scheduler, to which executors and clients connect: one for a cluster
    ///
    /// Example: anytrace-cluster scheduler --bind-port 50050
    Scheduler(SchedulerOptions),
    /// Run an executor, which reads traces and computes: one for a machine
    ///
    /// Example: anytrace-cluster executor --scheduler-host HOST --root /srv/traces --work-dir /var/lib/anytrace
    Executor(ExecutorOptions),
}

/// Options of the scheduler.
#[derive(Debug, Clone, Args)]
pub(crate) struct SchedulerOptions {
    /// Address to listen on
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    pub(crate) bind_host: String,
    /// Port to listen on
    #[arg(long, value_name = "PORT", default_value_t = 50050)]
    pub(crate) bind_port: u16,
    /// Name or address at which executors reach the scheduler [default: that of --bind-host]
    #[arg(long, value_name = "HOST")]
    pub(crate) external_host: Option<String>,
    /// Seconds without a sign of life after which an executor counts as lost
    #[arg(long, value_name = "SECONDS", default_value_t = 20)]
    pub(crate) executor_timeout_seconds: u64,
    /// Seconds to wait for an executor after the last one was lost, before jobs fail
    #[arg(long, value_name = "SECONDS", default_value_t = 20)]
    pub(crate) no_executors_grace_period_seconds: u64,
    /// Seconds for which the results of a job are kept
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    pub(crate) finished_job_data_clean_up_interval_seconds: u64,
    #[command(flatten)]
    pub(crate) common: CommonOptions,
}

/// Options of an executor.
#[derive(Debug, Clone, Args)]
pub(crate) struct ExecutorOptions {
    /// Address to listen on
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    pub(crate) bind_host: String,
    /// Port from which others fetch what the executor computed
    #[arg(long, value_name = "PORT", default_value_t = 50051)]
    pub(crate) bind_port: u16,
    /// Port at which the scheduler gives tasks to the executor
    #[arg(long, value_name = "PORT", default_value_t = 50052)]
    pub(crate) bind_grpc_port: u16,
    /// Name or address at which others reach the executor [default: where the scheduler sees it]
    #[arg(long, value_name = "HOST")]
    pub(crate) external_host: Option<String>,
    /// Host of the scheduler
    #[arg(long, value_name = "HOST", default_value = "127.0.0.1")]
    pub(crate) scheduler_host: String,
    /// Port of the scheduler
    #[arg(long, value_name = "PORT", default_value_t = 50050)]
    pub(crate) scheduler_port: u16,
    /// Seconds to keep trying to connect to the scheduler
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    pub(crate) scheduler_connect_timeout_seconds: u16,
    /// Tasks that run at the same time [default: one per processor]
    #[arg(long, short = 'c', value_name = "N", default_value_t = 0, hide_default_value = true)]
    pub(crate) vcores: usize,
    /// Folder for everything that is stored: intermediate results and indexes [default: one that is removed at the end]
    #[arg(long, value_name = "FOLDER")]
    pub(crate) work_dir: Option<PathBuf>,
    /// Folder below which traces may be opened; may be repeated. Without it no file is opened
    #[arg(long, value_name = "FOLDER")]
    pub(crate) root: Vec<PathBuf>,
    /// Bucket whose objects may be opened; may be repeated. Credentials and endpoint come from the variables AWS_*
    #[arg(long, value_name = "BUCKET")]
    pub(crate) bucket: Vec<String>,
    /// Bytes that operators may use before they use the disk [default: 70 % of the memory]
    #[arg(long, value_name = "BYTES")]
    pub(crate) memory_pool_size: Option<u64>,
    /// Seconds between signs of life
    #[arg(long, value_name = "SECONDS", default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) executor_heartbeat_interval_seconds: u64,
    #[command(flatten)]
    pub(crate) common: CommonOptions,
}

/// Options of both.
#[derive(Debug, Clone, Args)]
pub(crate) struct CommonOptions {
    /// Port for /healthz, /readyz and /metrics over HTTP, on the same address
    #[arg(long, value_name = "PORT")]
    pub(crate) metrics: Option<u16>,
    /// Most detailed messages of the log
    #[arg(long, value_name = "LEVEL", default_value = "info", value_parser = ["error", "warn", "info", "debug"])]
    pub(crate) log_level: String,
    /// Certificate of this process, in PEM
    #[arg(long, value_name = "FILE", requires = "tls_key", requires = "tls_ca")]
    pub(crate) tls_cert: Option<PathBuf>,
    /// Private key of the certificate, in PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(crate) tls_key: Option<PathBuf>,
    /// Certificate of the authority that signed those of all processes, in PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(crate) tls_ca: Option<PathBuf>,
    /// Listen on an address that is not loopback without TLS: whoever reaches it can read the traces
    #[arg(long)]
    pub(crate) insecure: bool,
}

/// An address to listen on.
pub(crate) fn address(host: &str, port: u16) -> Result<SocketAddr, String> {
    let host: IpAddr = match host {
        "localhost" => IpAddr::from([127, 0, 0, 1]),
        host => host.parse().map_err(|_| format!("--bind-host {host}: expected an address, such as 127.0.0.1"))?,
    };
    Ok(SocketAddr::new(host, port))
}
