#include "server/daemon.h"

#include <grpcpp/grpcpp.h>
#include <grpcpp/resource_quota.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "clocks/instant.h"
#include "clocks/steady_time.h"
#include "server/coordinator/coordinator.h"
#include "server/dashboard/dashboard.h"
#include "server/heartbeat/heartbeat.h"
#include "server/job_files/file_store.h"
#include "server/journal/job_log.h"
#include "server/journal/profile_store.h"
#include "server/listen_address.h"
#include "server/metrics/server_metrics.h"
#include "server/parameters/parameter_server.h"
#include "server/parameters/storage.h"
#include "server/records/record_store.h"
#include "server/records/sqlite_record_store.h"
#include "server/scheduling/fair_share.h"
#include "server/server_folder.h"
#include "server/service/service.h"
#include "wire/admission.h"
#include "wire/channel.h"
#include "wire/host_port.h"
#include "wire/metrics/folder_space.h"
#include "wire/metrics/metrics_page.h"
#include "wire/metrics/process_figures.h"
#include "wire/random_hex.h"

namespace hooke {
namespace {

// The most threads of gRPC. Each open stream of a user's watch holds one, and so does each call while it runs. Streams
// of exchanges hold none.
constexpr int kThreadsMax = 8192;
constexpr absl::Duration kShutdownTimeout = absl::Seconds(5);
constexpr absl::Duration kAskDiskEvery = absl::Seconds(5);

}  // namespace

ServerDaemon::ServerDaemon(ServerOptions options, HostPort listen, std::unique_ptr<ServerFolder> folder)
    : options_(std::move(options)), listen_(std::move(listen)), folder_(std::move(folder)), instance_(RandomHex(2)) {}

ServerDaemon::~ServerDaemon() { (void)Stop(); }

absl::Status ServerDaemon::OpenParameters() {
  absl::StatusOr<std::unique_ptr<Storage>> storage = OpenFolderStorage(folder_->centers());
  if (!storage.ok()) return storage.status();
  ParameterServerOptions options;
  options.server_id = folder_->identity();
  options.instance = instance_;
  options.storage = *std::move(storage);
  options.logger = options_.logger;
  options.max_center_bytes = options_.max_center_bytes;
  options.snapshot_interval = options_.snapshot_interval;
  options.direct_host = listen_.host;
  absl::StatusOr<std::unique_ptr<ParameterServer>> parameters = ParameterServer::Create(options);
  if (!parameters.ok()) return parameters.status();
  parameters_ = *std::move(parameters);
  return absl::OkStatus();
}

absl::Status ServerDaemon::OpenCoordinator() {
  if (!options_.coordinator.empty()) return absl::OkStatus();
  absl::StatusOr<OwnerSlots> owner_slots = ParseOwnerSlots(options_.owner_slots);
  if (!owner_slots.ok()) return owner_slots.status();
  absl::StatusOr<std::unique_ptr<RecordStore>> store = OpenSqliteRecordStore(folder_->job_store());
  if (!store.ok()) return store.status();
  absl::StatusOr<JobLog> log = JobLog::Open({folder_->logs()});
  if (!log.ok()) return log.status();
  absl::StatusOr<ProfileStore> profiles = ProfileStore::Open({folder_->profiles()});
  if (!profiles.ok()) return profiles.status();
  CoordinatorOptions options;
  options.store = *std::move(store);
  options.log = std::make_shared<JobLog>(*std::move(log));
  options.profiles = std::make_shared<ProfileStore>(*std::move(profiles));
  options.logger = options_.logger;
  if (!listen_.IsLoopback() && options_.token.empty()) options.cluster.reached_by_others_at = options_.listen;
  options.cluster.liveness.lease = options_.lease;
  options.cluster.resize.after = options_.resize_after;
  options.cluster.resize.pause = 2 * options_.resize_after;
  options.cluster.resize.begin_after = std::min(options.cluster.resize.begin_after, options_.resize_after);
  options.cluster.restart.repeats_max = static_cast<uint32_t>(options_.hold_after);
  options.cluster.owner_slots = *std::move(owner_slots);
  options.cluster.fair_half_life = options_.fair_share_half_life;
  options.cluster.keep.jobs_max = options_.finished_jobs_max;
  options.cluster.keep.age_max = options_.keep_jobs;
  if (options_.keep_bytes > 0) options.cluster.keep.bytes_max = options_.keep_bytes;
  options.cluster.liveness.silent_after = std::min(options.cluster.liveness.silent_after, 0.4 * options_.lease);
  const bool takes_commands = options.cluster.reached_by_others_at.empty();
  absl::StatusOr<std::unique_ptr<Coordinator>> coordinator = Coordinator::Create(std::move(options), InstantNow());
  if (!coordinator.ok()) return coordinator.status();
  CoordinatorServiceOptions service;
  service.coordinator = *std::move(coordinator);
  // Only jobs with a command send files. A coordinator that refuses such jobs needs no store for files.
  if (takes_commands) {
    FileStoreOptions files;
    files.folder = folder_->files();
    files.job_bytes_max = options_.files_max_bytes;
    files.total_bytes_max = options_.files_total_bytes;
    absl::StatusOr<std::unique_ptr<FileStore>> file_store = FileStore::Open(std::move(files), InstantNow().steady);
    if (!file_store.ok()) return file_store.status();
    service.files = *std::move(file_store);
  }
  service.dial_back = MakeGrpcDialBack(options_.token.ForCalls());
  coordinator_ = std::make_unique<CoordinatorService>(std::move(service));
  return absl::OkStatus();
}

absl::Status ServerDaemon::Listen() {
  grpc::ServerBuilder builder;
  // Otherwise gRPC would share a port that another server has, and the kernel would divide calls between both.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  // These pings find peers that vanish without a word. Peers may send pings as often as they like, so that they find
  // out the same about us.
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, 10000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 10000);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 500);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PING_STRIKES, 0);
  // A connection that does not complete its handshake holds a descriptor no longer than this.
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, 10000);
  // With these sizes all blocks that a rank may send ahead arrive without a pause, in few large frames and reads.
  builder.AddChannelArgument(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, 4 << 20);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_FRAME_SIZE, 1 << 20);
  builder.AddChannelArgument(GRPC_ARG_TCP_READ_CHUNK_SIZE, 1 << 20);
  builder.SetMaxReceiveMessageSize(static_cast<int>(std::min<uint64_t>(options_.max_message_bytes, INT32_MAX)));
  builder.SetResourceQuota(grpc::ResourceQuota("hooke-server").SetMaxThreads(kThreadsMax));
  builder.RegisterService(parameters_->service());
  if (coordinator_ != nullptr) coordinator_->AddTo(builder);
  int port = 0;
  builder.AddListeningPort(listen_.ToString(), ListenCredentials({options_.token, MethodsForRanks()}), &port);
  server_ = builder.BuildAndStart();
  if (server_ == nullptr || port == 0) return WhyNotListening(listen_);
  if (coordinator_ != nullptr) coordinator_->Serve();
  parameters_->LoadInBackground();
  if (!listen_.IsLoopback() && options_.token.empty()) {
    options_.logger->warn(
        "{} can be reached from other machines, and there is no --token-file: whoever reaches it may use the cluster",
        listen_.ToString());
  }
  return Advertise(static_cast<uint16_t>(port));
}

// Works out the address that others dial, and starts to tell the coordinator. `port` is where the server listens.
absl::Status ServerDaemon::Advertise(uint16_t port) {
  HostPort advertised = {listen_.host, port};
  if (!options_.advertise.empty()) {
    absl::StatusOr<HostPort> given = ParseHostPort(options_.advertise);
    if (!given.ok()) return given.status();
    advertised = *given;
    if (advertised.port == 0) advertised.port = port;
  } else if (listen_.IsAnyHost()) {
    char name[256] = "";
    if (gethostname(name, sizeof name - 1) != 0)
      return absl::UnavailableError("this host has no name: set --advertise");
    advertised.host = name;
  }
  address_ = advertised.ToString();
  HeartbeatOptions heartbeat;
  heartbeat.address = address_;
  heartbeat.server_id = folder_->identity();
  heartbeat.instance = instance_;
  heartbeat.version = options_.version;
  heartbeat.coordinator = coordinator_ != nullptr ? address_ : options_.coordinator;
  heartbeat.parameters = parameters_.get();
  heartbeat.logger = options_.logger;
  if (coordinator_ != nullptr) {
    coordinator_->coordinator().SetOwnServer(folder_->identity());
    heartbeat.channel = server_->InProcessChannel({});
  } else {
    grpc::ChannelArguments arguments;
    SetReconnect(arguments, absl::Milliseconds(500));
    heartbeat.channel = OpenChannel(options_.coordinator, arguments, options_.token.ForCalls());
  }
  heartbeat_ = std::make_unique<Heartbeat>(std::move(heartbeat));
  return absl::OkStatus();
}

absl::Status ServerDaemon::OpenMetrics() {
  if (options_.metrics.empty()) return absl::OkStatus();
  space_ = std::make_unique<FolderSpace>(options_.state_dir, kAskDiskEvery);
  absl::StatusOr<std::unique_ptr<HttpServer>> metrics =
      ServeMetrics(options_.metrics, options_.token, [this](MetricFamilies& families) { CollectMetrics(families); });
  if (!metrics.ok()) return metrics.status();
  metrics_ = *std::move(metrics);
  return absl::OkStatus();
}

absl::Status ServerDaemon::OpenDashboard() {
  if (options_.dashboard.empty()) return absl::OkStatus();
  const absl::StatusOr<HostPort> at = ParseHostPort(options_.dashboard);
  if (!at.ok()) return at.status();
  DashboardOptions options;
  options.address = options_.dashboard;
  options.token = options_.token;
  options.coordinator = address_;
  options.read_only = WhyReadOnly(*at, listen_, options_.token);
  absl::StatusOr<std::unique_ptr<HttpServer>> dashboard = ServeDashboard(options, &coordinator_->coordinator());
  if (!dashboard.ok()) return dashboard.status();
  dashboard_ = *std::move(dashboard);
  return absl::OkStatus();
}

std::string ServerDaemon::dashboard_address() const { return dashboard_ == nullptr ? "" : dashboard_->address(); }

void ServerDaemon::CollectMetrics(MetricFamilies& families) const {
  DaemonFigures figures;
  figures.version = options_.version;
  figures.process = ReadProcessFigures();
  figures.space = space_->last();
  figures.stats = parameters_->Stats();
  figures.parameters = parameters_->Figures();
  figures.max_center_bytes = options_.max_center_bytes;
  if (coordinator_ != nullptr) figures.coordinator = coordinator_->coordinator().Figures({}, InstantNow());
  figures.now = SteadyTime();
  AddServerMetrics(figures, families);
}

std::string ServerDaemon::metrics_address() const { return metrics_ == nullptr ? "" : metrics_->address(); }

absl::Status ServerDaemon::Stop() {
  dashboard_.reset();
  metrics_.reset();
  heartbeat_.reset();
  if (coordinator_ != nullptr) coordinator_->Stop();
  absl::Status status = parameters_ == nullptr ? absl::OkStatus() : parameters_->Stop();
  if (server_ != nullptr) {
    if (options_.on_saved) options_.on_saved(status.ok());
    server_->Shutdown(absl::ToChronoTime(absl::Now() + kShutdownTimeout));
    server_->Wait();
    if (coordinator_ != nullptr) coordinator_->Join();
    server_.reset();
  }
  return status;
}

absl::StatusOr<std::unique_ptr<ServerDaemon>> ServerDaemon::Start(ServerOptions options) {
  absl::StatusOr<HostPort> listen = ParseHostPort(options.listen);
  if (!listen.ok()) return listen.status();
  absl::StatusOr<std::unique_ptr<ServerFolder>> folder = ServerFolder::Open(options.state_dir);
  if (!folder.ok()) return folder.status();
  std::unique_ptr<ServerDaemon> daemon(new ServerDaemon(std::move(options), *std::move(listen), *std::move(folder)));
  absl::Status status = daemon->OpenParameters();
  if (status.ok()) status = daemon->OpenCoordinator();
  if (status.ok()) status = daemon->OpenMetrics();
  if (status.ok()) status = daemon->Listen();
  if (status.ok()) status = daemon->OpenDashboard();
  if (!status.ok()) return status;
  return daemon;
}

}  // namespace hooke
