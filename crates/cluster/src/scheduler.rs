//! The scheduler.

use std::sync::Arc;

use anytrace_query::codec::{LogicalCodec, PhysicalCodec};
use anytrace_query::{Access, Files};
use ballista_core::serde::{BallistaLogicalExtensionCodec, BallistaPhysicalExtensionCodec};
use ballista_scheduler::cluster::BallistaCluster;
use ballista_scheduler::config::SchedulerConfig;
use ballista_scheduler::scheduler_process::{create_scheduler, start_grpc_service_with_listener};
use ballista_scheduler::scheduler_server::SchedulerServer;
use datafusion_proto::protobuf::{LogicalPlanNode, PhysicalPlanNode};
use log::info;
use tokio::net::TcpListener;

use crate::options::{SchedulerOptions, address};
use crate::status::Status;
use crate::tls::Tls;
use crate::{logs, status, terminate, tls};

/// Largest message, in bytes: a plan names every part of every trace.
pub(crate) const MESSAGE_MAX: u32 = 256 << 20;

/// The codecs of a process that reads traces by `access`, or only passes plans on.
pub(crate) fn codecs(access: &Arc<dyn Access>) -> (Arc<LogicalCodec>, Arc<PhysicalCodec>) {
    let logical = LogicalCodec::new(Arc::clone(access), Arc::new(BallistaLogicalExtensionCodec::default()));
    let physical = PhysicalCodec::new(Arc::clone(access), Arc::new(BallistaPhysicalExtensionCodec::default()));
    (Arc::new(logical), Arc::new(physical))
}

/// Runs the scheduler until a signal ends it.
pub(crate) async fn run(options: &SchedulerOptions) -> Result<(), String> {
    logs::start(&options.common.log_level);
    let tls = Tls::of(&options.common, &options.bind_host)?;
    let address = address(&options.bind_host, options.bind_port)?;
    // Plans pass through; the scheduler itself reads no trace.
    let access: Arc<dyn Access> = Arc::new(Files);
    let (logical, physical) = codecs(&access);
    let mut config = SchedulerConfig {
        bind_host: options.bind_host.clone(),
        bind_port: options.bind_port,
        external_host: options.external_host.clone().unwrap_or_else(|| options.bind_host.clone()),
        executor_timeout_seconds: options.executor_timeout_seconds,
        expire_dead_executor_interval_seconds: 2,
        no_executors_grace_period_seconds: options.no_executors_grace_period_seconds,
        finished_job_data_clean_up_interval_seconds: options.finished_job_data_clean_up_interval_seconds,
        override_logical_codec: Some(logical),
        override_physical_codec: Some(physical),
        ..limits()
    };
    if let Some(tls) = &tls {
        config.override_create_grpc_client_endpoint = Some(tls.endpoints());
        config.use_tls = true;
    }
    let config = Arc::new(config);
    let failed = |error: ballista_core::error::BallistaError| error.to_string();
    let cluster = BallistaCluster::new_from_config(&config).await.map_err(failed)?;
    let server: SchedulerServer<LogicalPlanNode, PhysicalPlanNode> =
        create_scheduler(cluster, Arc::clone(&config)).await.map_err(failed)?;
    let listener = TcpListener::bind(address).await.map_err(|error| format!("cannot listen on {address}: {error}"))?;
    let shown = listener.local_addr().unwrap_or(address);
    let ready = server.clone();
    let state = Arc::new(Status::new(Box::new(move || ready.is_ready())));
    let status = status::serve(&options.bind_host, options.common.metrics, state).await?;
    let listener = tls::front(tls.as_ref(), listener).await?;
    info!("anytrace-cluster {} scheduler on {shown}", env!("CARGO_PKG_VERSION"));
    tokio::select! {
        ended = start_grpc_service_with_listener(listener, server) => ended.map_err(failed),
        ended = status => ended,
        () = terminate::signaled() => {
            info!("the scheduler ends");
            Ok(())
        }
    }
}

/// What does not depend on options.
pub(crate) fn limits() -> SchedulerConfig {
    SchedulerConfig {
        grpc_server_max_decoding_message_size: MESSAGE_MAX,
        grpc_server_max_encoding_message_size: MESSAGE_MAX,
        grpc_client_max_message_size: MESSAGE_MAX,
        ..SchedulerConfig::default()
    }
}
