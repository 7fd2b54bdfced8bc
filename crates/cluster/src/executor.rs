//! An executor.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anytrace_query::Access;
use ballista_core::ConfigProducer;
use ballista_core::extension::SessionConfigExt;
use ballista_core::ids::new_instance_id;
use ballista_executor::executor_process::{ExecutorProcessConfig, start_executor_process};
use ballista_executor::executor_server::TERMINATING;
use ballista_executor::health::ExecutorHealth;
use datafusion::prelude::SessionConfig;
use log::{info, warn};

use crate::access::{Allowed, Reader};
use crate::options::{ExecutorOptions, address};
use crate::scheduler::{MESSAGE_MAX, codecs};
use crate::status::Status;
use crate::tls::{self, Tls};
use crate::{logs, status, terminate};

/// How long running tasks have to end after a signal; the scheduler gives those that do not to others.
const GRACE: Duration = Duration::from_secs(8);

/// Time between attempts to find a scheduler that was lost.
const PAUSE: Duration = Duration::from_secs(1);

/// Runs an executor until a signal ends it.
pub(crate) async fn run(options: &ExecutorOptions) -> Result<(), String> {
    logs::start(&options.common.log_level);
    let tls = Tls::of(&options.common, &options.bind_host)?;
    let work = WorkDir::of(options.work_dir.as_deref())?;
    let health = ExecutorHealth::new();
    let ready = health.clone();
    let state = Arc::new(Status::new(Box::new(move || ready.is_ready())));
    let allowed = Allowed::Only { roots: options.root.clone(), buckets: options.bucket.clone() };
    if options.root.is_empty() && options.bucket.is_empty() {
        warn!("neither --root nor --bucket is given: this executor can open no trace");
    }
    let reader = Reader::new(allowed, Some(work.path.join("indexes")), Arc::clone(&state))?;
    // A folder of its own: Ballista removes all folders beside its files when it ends.
    let rows = work.path.join("rows");
    std::fs::create_dir_all(&rows).map_err(|error| format!("{}: {error}", rows.display()))?;
    let access: Arc<dyn Access> = Arc::new(reader);
    let status = status::serve(&options.bind_host, options.common.metrics, state).await?;
    // Also where TLS is in front: ports that are taken are an error at once.
    let flight = address(&options.bind_host, options.bind_port)?;
    let tasks = address(&options.bind_host, options.bind_grpc_port)?;
    if let Some(tls) = &tls {
        tls::cover(tls, flight).await?;
        tls::cover(tls, tasks).await?;
    }
    info!("anytrace-cluster {} executor on {flight}", env!("CARGO_PKG_VERSION"));
    tokio::select! {
        ended = serve(options, tls.as_ref(), &rows, &access, &health) => ended,
        ended = status => ended,
        () = overdue() => {
            warn!("tasks were still running after {} s", GRACE.as_secs());
            Ok(())
        }
    }
}

/// Serves one scheduler after another: where it is lost, the executor waits until it is there again.
async fn serve(
    options: &ExecutorOptions,
    tls: Option<&Tls>,
    work: &Path,
    access: &Arc<dyn Access>,
    health: &ExecutorHealth,
) -> Result<(), String> {
    let mut was_connected = false;
    loop {
        let config = config(options, tls, work, access, health)?;
        let signal = terminate::signaled();
        tokio::pin!(signal);
        let served = start_executor_process(Arc::new(config));
        tokio::pin!(served);
        let (ended, is_signaled) = tokio::select! {
            ended = &mut served => (ended, false),
            // Ballista has the signal too; it ends when tasks have ended.
            () = &mut signal => (served.await, true),
        };
        if is_signaled {
            info!("the executor ends");
            return Ok(());
        }
        match ended {
            Ok(()) => was_connected = true,
            Err(error) if !was_connected && !health.is_ready() => return Err(error.to_string()),
            Err(error) => warn!("{error}"),
        }
        warn!("the scheduler was lost; trying again");
        tokio::time::sleep(PAUSE).await;
        TERMINATING.store(false, Ordering::Release);
    }
}

/// Ends some time after a signal.
async fn overdue() {
    terminate::signaled().await;
    tokio::time::sleep(GRACE).await;
}

fn config(
    options: &ExecutorOptions,
    tls: Option<&Tls>,
    work: &Path,
    access: &Arc<dyn Access>,
    health: &ExecutorHealth,
) -> Result<ExecutorProcessConfig, String> {
    let (logical, physical) = codecs(access);
    let work = work.to_str().ok_or("the name of --work-dir is not UTF-8")?;
    let endpoints = tls.map(Tls::endpoints);
    let behind = tls.map(|_| tls::BEHIND.to_string());
    let bind_host = address(&options.bind_host, 0)?.ip().to_string();
    let external_host = options.external_host.clone().or_else(|| tls.map(|_| bind_host.clone()));
    let session = endpoints.clone();
    let sessions: ConfigProducer = Arc::new(move || {
        let config = SessionConfig::new_with_ballista();
        match &session {
            Some(endpoints) => config
                .with_ballista_override_create_grpc_client_endpoint(Arc::clone(endpoints))
                .with_ballista_use_tls(true),
            None => config,
        }
    });
    Ok(ExecutorProcessConfig {
        executor_id: new_instance_id(),
        bind_host: behind.unwrap_or(bind_host),
        external_host,
        port: options.bind_port,
        grpc_port: options.bind_grpc_port,
        scheduler_host: options.scheduler_host.clone(),
        scheduler_port: options.scheduler_port,
        scheduler_connect_timeout_seconds: options.scheduler_connect_timeout_seconds,
        vcores: options.vcores,
        work_dir: Some(work.to_owned()),
        job_data_ttl_seconds: 24 * 3600,
        job_data_clean_up_interval_seconds: 600,
        grpc_max_decoding_message_size: MESSAGE_MAX,
        grpc_max_encoding_message_size: MESSAGE_MAX,
        executor_heartbeat_interval_seconds: options.executor_heartbeat_interval_seconds,
        memory_pool_size: options.memory_pool_size,
        override_config_producer: Some(sessions),
        override_logical_codec: Some(logical),
        override_physical_codec: Some(physical),
        override_create_grpc_client_endpoint: endpoints,
        health: health.clone(),
        ..ExecutorProcessConfig::default()
    })
}

/// The folder of everything that an executor stores.
struct WorkDir {
    path: PathBuf,
    /// Removed at the end, where nobody named a folder.
    _own: Option<tempfile::TempDir>,
}

impl WorkDir {
    fn of(named: Option<&Path>) -> Result<Self, String> {
        match named {
            Some(path) => {
                std::fs::create_dir_all(path).map_err(|error| format!("--work-dir {}: {error}", path.display()))?;
                let path = std::fs::canonicalize(path).map_err(|error| error.to_string())?;
                Ok(Self { path, _own: None })
            }
            None => {
                let own = tempfile::tempdir().map_err(|error| format!("cannot make a work folder: {error}"))?;
                Ok(Self { path: own.path().to_owned(), _own: Some(own) })
            }
        }
    }
}
