//! A scheduler and an executor in this process, for `--cluster local`: the same plans, codecs and shuffles as on several
//! machines, without them.

use std::sync::Arc;

use anytrace_query::Access;
use arrow_flight::flight_service_server::FlightServiceServer;
use ballista_core::extension::SessionConfigExt;
use ballista_core::ids::new_instance_id;
use ballista_core::registry::BallistaFunctionRegistry;
use ballista_core::serde::BallistaCodec;
use ballista_core::serde::protobuf::ExecutorRegistration;
use ballista_core::serde::protobuf::scheduler_grpc_client::SchedulerGrpcClient;
use ballista_core::serde::scheduler::{ExecutorOperatingSystemSpecification, ExecutorSpecification};
use ballista_core::utils::{GrpcServerConfig, create_grpc_server};
use ballista_core::{BALLISTA_PROTOCOL_VERSION, RuntimeProducer};
use ballista_executor::execution_loop::poll_loop;
use ballista_executor::executor::Executor;
use ballista_executor::flight_service::BallistaFlightService;
use ballista_executor::health::ExecutorHealth;
use ballista_executor::metrics::LoggingMetricsCollector;
use ballista_scheduler::cluster::BallistaCluster;
use ballista_scheduler::config::SchedulerConfig;
use ballista_scheduler::scheduler_process::{create_scheduler, start_grpc_service_with_listener};
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::prelude::SessionConfig;
use datafusion_proto::protobuf::{LogicalPlanNode, PhysicalPlanNode};
use tempfile::TempDir;
use tokio::net::TcpListener;

use crate::scheduler::{MESSAGE_MAX, codecs, limits};

/// What runs in this process; its intermediate results are removed with it.
#[derive(Debug)]
pub(crate) struct Local {
    /// Where the scheduler listens.
    pub(crate) address: String,
    _work: TempDir,
}

/// Starts both.
pub(crate) async fn start(access: &Arc<dyn Access>, vcores: usize) -> Result<Local, String> {
    let failed = |error: &dyn std::fmt::Display| format!("the cluster in this process did not start: {error}");
    let work = tempfile::tempdir().map_err(|error| failed(&error))?;
    let (logical, physical) = codecs(access);
    let config = Arc::new(SchedulerConfig {
        scheduling_policy: ballista_core::config::TaskSchedulingPolicy::PullStaged,
        override_logical_codec: Some(Arc::clone(&logical) as _),
        override_physical_codec: Some(Arc::clone(&physical) as _),
        ..limits()
    });
    let cluster = BallistaCluster::new_from_config(&config).await.map_err(|error| failed(&error))?;
    let server = create_scheduler::<LogicalPlanNode, PhysicalPlanNode>(cluster, config);
    let server = server.await.map_err(|error| failed(&error))?;
    let listener = TcpListener::bind("127.0.0.1:0").await.map_err(|error| failed(&error))?;
    let address = listener.local_addr().map_err(|error| failed(&error))?.to_string();
    tokio::spawn(start_grpc_service_with_listener(listener, server));

    let listener = TcpListener::bind("127.0.0.1:0").await.map_err(|error| failed(&error))?;
    let port = listener.local_addr().map_err(|error| failed(&error))?.port();
    let work_dir = work.path().to_str().ok_or("the folder for temporary files is not UTF-8")?.to_owned();
    let specification = ExecutorSpecification::default().with_vcores(u32::try_from(vcores).unwrap_or(1));
    let registration = ExecutorRegistration {
        id: new_instance_id(),
        host: Some("127.0.0.1".to_owned()),
        port: u32::from(port),
        // Executors that ask for their tasks listen for none.
        grpc_port: 0,
        specification: Some(specification.into()),
        os_info: Some(ExecutorOperatingSystemSpecification::default().into()),
        ballista_protocol_version: BALLISTA_PROTOCOL_VERSION,
    };
    let temporary = work_dir.clone();
    let runtimes: RuntimeProducer =
        Arc::new(move |_| RuntimeEnvBuilder::new().with_temp_file_path(temporary.clone()).build_arc());
    let executor = Arc::new(Executor::with_default_execution_engine(
        registration,
        &work_dir,
        runtimes,
        Arc::new(SessionConfig::new_with_ballista),
        Arc::new(BallistaFunctionRegistry::default()),
        Arc::new(LoggingMetricsCollector::default()),
        vcores,
    ));
    let size = usize::try_from(MESSAGE_MAX).unwrap_or(usize::MAX);
    let service = FlightServiceServer::new(BallistaFlightService::new(work_dir))
        .max_decoding_message_size(size)
        .max_encoding_message_size(size);
    let incoming = tonic::transport::server::TcpIncoming::from(listener);
    tokio::spawn(create_grpc_server(&GrpcServerConfig::default()).add_service(service).serve_with_incoming(incoming));
    let client = SchedulerGrpcClient::connect(format!("http://{address}")).await.map_err(|error| failed(&error))?;
    let client = client.max_decoding_message_size(size).max_encoding_message_size(size);
    let codec: BallistaCodec<LogicalPlanNode, PhysicalPlanNode> = BallistaCodec::new(logical, physical);
    tokio::spawn(poll_loop(client, executor, codec, None, None, ExecutorHealth::new()));
    Ok(Local { address, _work: work })
}
