//! The client: plans statements here, runs the plans on a cluster, and fetches the rows.
//!
//! The plan is that of `anytrace query` in one process, down to the parts of the traces; the scheduler cuts it where rows
//! change machines, and reads no trace.

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anytrace_query::codec::PhysicalCodec;
use anytrace_query::{Access, Engine, Options, Setup, TraceFile, program, receive};
use async_trait::async_trait;
use ballista_core::client::BallistaClient;
use ballista_core::extension::{BallistaConfigGrpcEndpoint, EndpointOverrideFn, SessionConfigExt};
use ballista_core::serde::protobuf::execute_query_params::Query;
use ballista_core::serde::protobuf::scheduler_grpc_client::SchedulerGrpcClient;
use ballista_core::serde::protobuf::{
    CancelJobParams, ExecuteQueryParams, GetJobMetricsParams, GetJobStatusParams, KeyValuePair, PartitionLocation,
    SuccessfulJob, execute_query_result, job_status, operator_metric,
};
use ballista_core::version::insert_version_header;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::TaskContext;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{ExecutionPlan, SendableRecordBatchStream};
use datafusion::prelude::SessionConfig;
use datafusion_proto::physical_plan::AsExecutionPlan;
use datafusion_proto::protobuf::PhysicalPlanNode;
use futures::TryStreamExt;
use futures::future::BoxFuture;
use tonic::transport::{Channel, Endpoint};
use tower::{Service, ServiceExt};

use crate::access::{Allowed, Reader};
use crate::local::{self, Local};
use crate::scheduler::{MESSAGE_MAX, codecs};
use crate::status::Status;
use crate::tls::Tls;

/// Bytes of a part of a trace, unless `ANYTRACE_CLUSTER_PART_BYTES` says otherwise.
const PART_BYTES: u64 = 64 << 20;

/// Time between questions about a job.
const PACE: Duration = Duration::from_millis(50);

/// How long a cluster may be without executors before a query ends.
const WITHOUT_EXECUTORS: Duration = Duration::from_secs(30);

/// How long a connection may take.
const CONNECT_TIME: Duration = Duration::from_secs(5);

/// How long the scheduler may take to answer.
const ANSWER_TIME: Duration = Duration::from_secs(30);

/// How many attempts are made to fetch a partition, and the time between them.
const FETCH_ATTEMPTS: u8 = 3;
const FETCH_PAUSE_MS: u64 = 500;

/// Begins the address of a cluster.
const SCHEME: &str = "df://";

/// Runs a request of `anytrace query`.
pub(crate) fn main(arguments: Vec<OsString>) -> ExitCode {
    program::main(arguments.into_iter(), Some(&prepared))
}

/// As [`prepare`], of what a request says.
fn prepared<'a>(
    cluster: &'a Option<String>,
    options: &'a Options,
) -> BoxFuture<'a, std::result::Result<Setup, String>> {
    Box::pin(prepare(cluster.as_deref().unwrap_or("local"), options.partitions))
}

async fn prepare(cluster: &str, threads: usize) -> std::result::Result<Setup, String> {
    let status = Arc::new(Status::new(Box::new(|| true)));
    let own = (cluster == "local").then(tempfile::tempdir).transpose().map_err(|error| error.to_string())?;
    let indexes = own.as_ref().map(|folder| folder.path().join("indexes"));
    let access: Arc<dyn Access> = Arc::new(Reader::new(Allowed::All, indexes, status)?);
    let part_bytes = part_bytes()?;
    let (address, local, tls) = match cluster.strip_prefix(SCHEME) {
        Some(address) => (address.trim_end_matches('/').to_owned(), None, tls()?),
        None if cluster == "local" => {
            let local = local::start(&access, threads).await?;
            (local.address.clone(), Some((local, own)), None)
        }
        None => return Err(format!("--cluster {cluster}: expected df://HOST:PORT or local")),
    };
    let engine = Remote::connect(address, local, tls.as_ref(), &access).await?;
    Ok(Setup { engine: Some(Arc::new(engine)), access, part_bytes: Some(part_bytes) })
}

fn part_bytes() -> std::result::Result<u64, String> {
    let Ok(text) = std::env::var("ANYTRACE_CLUSTER_PART_BYTES") else { return Ok(PART_BYTES) };
    match text.parse() {
        Ok(bytes) if bytes > 0 => Ok(bytes),
        _ => Err(format!("ANYTRACE_CLUSTER_PART_BYTES={text}: expected a number of bytes")),
    }
}

/// TLS as the environment says.
fn tls() -> std::result::Result<Option<Tls>, String> {
    let names = ["ANYTRACE_CLUSTER_CERT", "ANYTRACE_CLUSTER_KEY", "ANYTRACE_CLUSTER_CA"];
    let paths = names.map(|name| std::env::var_os(name).filter(|value| !value.is_empty()));
    match &paths {
        [None, None, None] => Ok(None),
        [Some(cert), Some(key), Some(ca)] => Tls::read(Path::new(cert), Path::new(key), Path::new(ca)).map(Some),
        _ => Err(format!("TLS needs all of {}", names.join(", "))),
    }
}

/// A cluster that was connected to.
struct Remote {
    address: String,
    channel: Channel,
    endpoints: Option<EndpointOverrideFn>,
    codec: Arc<PhysicalCodec>,
    job: Mutex<Option<String>>,
    stages: AtomicUsize,
    _local: Option<(Local, Option<tempfile::TempDir>)>,
}

impl std::fmt::Debug for Remote {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Remote").field("address", &self.address).finish_non_exhaustive()
    }
}

impl Remote {
    async fn connect(
        address: String,
        local: Option<(Local, Option<tempfile::TempDir>)>,
        tls: Option<&Tls>,
        access: &Arc<dyn Access>,
    ) -> std::result::Result<Self, String> {
        let failed =
            |error: &dyn std::fmt::Display| format!("cannot reach the scheduler at {SCHEME}{address}: {error}");
        let endpoints = tls.map(Tls::endpoints);
        let endpoint = Endpoint::from_shared(format!("http://{address}")).map_err(|error| failed(&error))?;
        let endpoint = match &endpoints {
            Some(change) => change(endpoint).map_err(|error| failed(&error))?,
            None => endpoint,
        };
        let endpoint = endpoint
            .connect_timeout(CONNECT_TIME)
            .timeout(ANSWER_TIME)
            .tcp_nodelay(true)
            .http2_keep_alive_interval(Duration::from_secs(10))
            .keep_alive_timeout(Duration::from_secs(10));
        let channel = endpoint.connect().await.map_err(|error| failed(&Causes(&error)))?;
        let (_, codec) = codecs(access);
        Ok(Self {
            address,
            channel,
            endpoints,
            codec,
            job: Mutex::default(),
            stages: AtomicUsize::new(0),
            _local: local,
        })
    }

    fn client(&self) -> SchedulerGrpcClient<Channel> {
        let size = usize::try_from(MESSAGE_MAX).unwrap_or(usize::MAX);
        SchedulerGrpcClient::new(self.channel.clone()).max_encoding_message_size(size).max_decoding_message_size(size)
    }

    fn failed(&self, error: &tonic::Status) -> DataFusionError {
        let why = if error.message().is_empty() { Causes(error).to_string() } else { error.message().to_owned() };
        DataFusionError::Execution(format!("the scheduler at {SCHEME}{} failed: {}", self.address, plain(&why)))
    }

    /// Submits a plan; returns the number of the job.
    async fn submit(&self, plan: Arc<dyn ExecutionPlan>, context: &TaskContext) -> Result<String> {
        let message = PhysicalPlanNode::try_from_physical_plan(plan, self.codec.as_ref())?;
        let mut bytes = Vec::new();
        message.try_encode(&mut bytes)?;
        let entries = context.session_config().options().entries().into_iter();
        let settings = entries.map(|entry| KeyValuePair { key: entry.key, value: entry.value }).collect();
        let session = format!("{}-{}", context.session_id(), std::process::id());
        let mut request = tonic::Request::new(ExecuteQueryParams {
            query: Some(Query::PhysicalPlan(bytes)),
            settings,
            session_id: session.clone(),
            operation_id: session,
        });
        insert_version_header(request.metadata_mut());
        let answer = self.client().execute_query(request).await.map_err(|error| self.failed(&error))?;
        match answer.into_inner().result {
            Some(execute_query_result::Result::Success(made)) => Ok(made.job_id),
            Some(execute_query_result::Result::Failure(failure)) => {
                Err(DataFusionError::Execution(plain(&format!("{failure:?}"))))
            }
            None => Err(DataFusionError::Execution("the scheduler gave no answer".to_owned())),
        }
    }

    /// Waits until a job has ended.
    async fn wait(&self, job: &str) -> Result<SuccessfulJob> {
        let (mut last_seen, mut last_asked) = (Instant::now(), Instant::now());
        loop {
            let request = GetJobStatusParams { job_id: job.to_owned() };
            let answer = self.client().get_job_status(request).await.map_err(|error| self.failed(&error))?;
            match answer.into_inner().status.and_then(|status| status.status) {
                Some(job_status::Status::Successful(done)) => return Ok(done),
                Some(job_status::Status::Failed(failed)) => {
                    return Err(DataFusionError::Execution(plain(&failed.error)));
                }
                // A scheduler that was started anew knows nothing of the job.
                None => {
                    return Err(DataFusionError::Execution(format!(
                        "the scheduler at {SCHEME}{} no longer knows the query: it was started anew; run it again",
                        self.address
                    )));
                }
                Some(job_status::Status::Queued(_) | job_status::Status::Running(_)) => {}
            }
            if last_asked.elapsed() > Duration::from_secs(1) {
                last_asked = Instant::now();
                if self._local.is_some() || self.has_executors().await {
                    last_seen = last_asked;
                } else if last_seen.elapsed() > WITHOUT_EXECUTORS {
                    self.cancel().await;
                    return Err(DataFusionError::Execution(format!(
                        "no executor is connected to the scheduler at {SCHEME}{}",
                        self.address
                    )));
                }
                self.look(job).await;
            }
            tokio::time::sleep(PACE).await;
        }
    }

    /// Whether the scheduler has executors; it says so over HTTP.
    async fn has_executors(&self) -> bool {
        let Ok(request) = http::Request::get("/readyz").body(tonic::body::Body::empty()) else { return true };
        let mut channel = self.channel.clone();
        let Ok(ready) = channel.ready().await else { return true };
        // Where it cannot be asked, the next question about the job says why.
        ready.call(request).await.map_or(true, |answer| answer.status() != http::StatusCode::SERVICE_UNAVAILABLE)
    }

    /// Looks how far a job is.
    async fn look(&self, job: &str) {
        let request = GetJobMetricsParams { job_id: job.to_owned() };
        if let Ok(answer) = self.client().get_job_metrics(request).await {
            self.stages.store(answer.into_inner().stages.len(), Ordering::Relaxed);
        }
    }

    /// Takes what the executors found wrong with the traces.
    async fn take_reports(&self, job: &str, files: &[Arc<TraceFile>]) -> Result<()> {
        let request = GetJobMetricsParams { job_id: job.to_owned() };
        let answer = self.client().get_job_metrics(request).await.map_err(|error| self.failed(&error))?;
        let stages = answer.into_inner().stages;
        let mut counts: Vec<(String, u64)> = Vec::new();
        for operator in stages.into_iter().flat_map(|stage| stage.operators) {
            for metric in operator.metrics {
                if let Some(operator_metric::Metric::Count(count)) = metric.metric {
                    counts.push((count.name, count.value));
                }
            }
        }
        // In the order of the traces, however the tasks came to their ends.
        counts.sort();
        for (name, count) in counts {
            receive(&name, count, files.iter().map(AsRef::as_ref));
        }
        Ok(())
    }

    /// The job to cancel, if there is one.
    fn remember(&self, job: Option<String>) {
        *self.job.lock().unwrap_or_else(PoisonError::into_inner) = job;
    }

    fn fetch(&self, location: PartitionLocation, schema: &SchemaRef) -> SendableRecordBatchStream {
        let endpoints = self.endpoints.clone();
        let rows = futures::stream::once(fetch(location, endpoints)).try_flatten();
        Box::pin(RecordBatchStreamAdapter::new(Arc::clone(schema), rows))
    }
}

/// Fetches the rows of a partition from the executor that has them.
async fn fetch(
    location: PartitionLocation,
    endpoints: Option<EndpointOverrideFn>,
) -> Result<SendableRecordBatchStream> {
    let missing = || DataFusionError::Execution("the scheduler did not say where the rows are".to_owned());
    let layout = location.layout();
    let (executor, partition) = location.executor_meta.zip(location.partition_id).ok_or_else(missing)?;
    let port = u16::try_from(executor.port).map_err(|_| missing())?;
    let size = usize::try_from(MESSAGE_MAX).unwrap_or(usize::MAX);
    let use_tls = endpoints.is_some();
    let endpoints = endpoints.map(|change| Arc::new(BallistaConfigGrpcEndpoint::new(change)));
    let lost = |error: ballista_core::error::BallistaError| {
        let text = plain(&error.to_string());
        DataFusionError::Execution(format!("the rows cannot be fetched from {}:{port}: {text}", executor.host))
    };
    let mut client =
        BallistaClient::try_new(&executor.host, port, size, use_tls, endpoints, FETCH_ATTEMPTS, FETCH_PAUSE_MS, 0, 0)
            .await
            .map_err(lost)?;
    client.fetch_partition(&executor.id, &partition.into(), location.file_id, layout, true).await.map_err(lost)
}

#[async_trait]
impl Engine for Remote {
    /// Without what the operators of a plan tell each other while they run, which does not reach other machines.
    fn configure(&self, config: SessionConfig) -> SessionConfig {
        config.upgrade_for_ballista()
    }

    async fn run(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        context: Arc<TaskContext>,
        files: &[Arc<TraceFile>],
    ) -> Result<Vec<SendableRecordBatchStream>> {
        let schema = plan.schema();
        self.stages.store(0, Ordering::Relaxed);
        let job = self.submit(plan, &context).await?;
        self.remember(Some(job.clone()));
        let ended = match self.wait(&job).await {
            Ok(done) => self.take_reports(&job, files).await.map(|()| done),
            Err(error) => Err(error),
        };
        // Not where nobody waits any more: then the job still runs, and is canceled.
        self.remember(None);
        let mut done = ended?;
        done.partition_location.sort_by_key(|location| {
            (location.partition_id.as_ref().map(|id| id.partition_id), location.map_partition_id)
        });
        // One after the other: a result may have many partitions, and each open one is a connection.
        let partitions = done.partition_location.into_iter().map(|location| self.fetch(location, &schema));
        let rows = futures::stream::iter(partitions.map(Ok).collect::<Vec<Result<_>>>()).try_flatten();
        Ok(vec![Box::pin(RecordBatchStreamAdapter::new(schema, rows))])
    }

    async fn cancel(&self) {
        let job = self.job.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(job_id) = job {
            // The client ends whether or not the scheduler can be reached.
            let canceled = self.client().cancel_job(CancelJobParams { job_id }).await;
            drop(canceled);
        }
    }

    fn progress(&self) -> String {
        format!("{} stages done", self.stages.load(Ordering::Relaxed))
    }
}

/// An error with what caused it.
struct Causes<'a>(&'a dyn std::error::Error);

impl std::fmt::Display for Causes<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.0)?;
        let mut error = self.0.source();
        while let Some(cause) = error {
            write!(f, ": {cause}")?;
            error = cause.source();
        }
        Ok(())
    }
}

/// What Ballista says of a failure, without the frames in which its errors and tasks are nested: of a task it has the
/// error as Rust shows it to programmers.
fn plain(text: &str) -> String {
    let mut text = text.trim().to_owned();
    while let Some(inner) = quoted(&text) {
        text = inner;
    }
    let frames = ["Execution error: ", "DataFusion error: ", "External error: ", "Error during planning: "];
    // The innermost error is what happened; what is before it says which task it happened to.
    let start = frames.iter().filter_map(|frame| Some(text.rfind(frame)? + frame.len())).max();
    text.get(start.unwrap_or(0)..).unwrap_or("").trim().to_owned()
}

/// The text in the first error that is shown with its kind and in quotes.
fn quoted(text: &str) -> Option<String> {
    const KINDS: [&str; 7] = [
        "Execution(\"",
        "Plan(\"",
        "Internal(\"",
        "General(\"",
        "NotImplemented(\"",
        "ResourcesExhausted(\"",
        "Cancelled(\"",
    ];
    let start = KINDS.iter().filter_map(|kind| Some(text.find(kind)? + kind.len())).min()?;
    let (mut inner, mut rest) = (String::new(), text.get(start..)?.chars());
    loop {
        match rest.next()? {
            '"' => return Some(inner).filter(|inner| !inner.is_empty()),
            '\\' => match rest.next()? {
                'n' => inner.push('\n'),
                't' => inner.push('\t'),
                other => inner.push(other),
            },
            other => inner.push(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_of_a_task_says_what_happened() {
        let text =
            "Job 1 failed due to stage 1 failed: Task failed: DataFusion error: Execution error: /a: cannot open";
        assert_eq!(plain(text), "/a: cannot open");
        let text = r#"Job failed due to stage 2 failed: Task failed due to runtime execution error: DataFusionError(Execution("/a: \"b\" (c)"))"#;
        assert_eq!(plain(text), "/a: \"b\" (c)");
        let text = r#"stage 1: DataFusionError(ArrowError(ExternalError(Execution("General(\"/a: gone\")")), None))"#;
        assert_eq!(plain(text), "/a: gone");
        assert_eq!(plain("anything else"), "anything else");
        assert_eq!(plain("Execution(\"cut"), "Execution(\"cut");
    }
}
