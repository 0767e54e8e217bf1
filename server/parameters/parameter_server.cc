#include "server/parameters/parameter_server.h"

#include <spdlog/spdlog.h>

#include <optional>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "clocks/steady_time.h"
#include "server/parameters/direct_exchanges.h"
#include "server/parameters/grpc_exchanges.h"
#include "server/parameters/parameter_store.h"
#include "server/parameters/service.h"
#include "server/parameters/snapshot_loop.h"
#include "server/parameters/storage.h"

namespace hooke {
namespace {

constexpr absl::Duration kCallsEndTimeout = absl::Seconds(5);

class RunningParameterServer final : public ParameterServer {
 public:
  RunningParameterServer(const ParameterServerOptions& options, std::unique_ptr<ParameterStore> store,
                         std::unique_ptr<GrpcExchanges> exchanges)
      : logger_(options.logger),
        store_(std::move(store)),
        direct_(ListenDirectly(options.direct_host)),
        exchanges_(std::move(exchanges)),
        service_({store_.get(), exchanges_.get(), logger_, options.clock, absl::Now(), WhereDirect(), WhoIs(options),
                  MachineClockName(), [this] { return clock_offset(); }}),
        snapshots_(
            options.snapshot_interval, [this]() { return Snapshot(); }, options.clock) {}

  ~RunningParameterServer() override { RunningParameterServer::Stop().IgnoreError(); }

  grpc::Service* service() override { return &service_; }

  void LoadInBackground() override {
    loader_ = std::thread([this]() { store_->LoadRest(); });
  }

  absl::Status Seal(absl::string_view job_id) override {
    absl::Status status = store_->Seal(job_id);
    if (!status.ok()) logger_->error("job {} cannot be sealed: {}", std::string(job_id), status.ToString());
    return status;
  }

  absl::Status Forget(const std::string& job_id, const std::string& job_key) override {
    return store_->Forget(job_id, job_key);
  }

  absl::StatusOr<std::vector<GroupReached>> EndGeneration(const std::string& job_id, const std::string& job_key,
                                                          uint32_t successor) override {
    return store_->EndGeneration(job_id, job_key, successor);
  }

  void MeasureClock(const ClockRoundTrip& trip) override {
    absl::MutexLock lock(&clock_mutex_);
    clock_offset_.Add(trip);
  }

  ParameterServerStats Stats() const override {
    ParameterStore::DiskUse disk = store_->disk_use();
    return {store_->center_bytes(), store_->jobs(), disk.centers, disk.bytes, std::move(disk.jobs)};
  }

  ParameterFigures Figures() const override { return store_->Figures(); }

  absl::Status Stop() override {
    store_->StopWaiting();
    if (loader_.joinable()) loader_.join();
    if (direct_ != nullptr) direct_->Stop();
    if (!service_.Close(kCallsEndTimeout))
      logger_->warn("some calls have not ended; the last snapshots are written now");
    return snapshots_.Stop();
  }

 private:
  std::optional<ClockOffset::Estimate> clock_offset() const {
    absl::MutexLock lock(&clock_mutex_);
    return clock_offset_.Best(absl::ToUnixNanos(SteadyTime()));
  }

  absl::Status Snapshot() {
    absl::Status status = store_->SnapshotChanged();
    if (!status.ok()) logger_->error("a snapshot failed: {}", status.ToString());
    return status;
  }

  // Listens for exchanges without gRPC. Returns null if no host is given or listening fails. Then all exchanges come
  // through gRPC.
  std::unique_ptr<DirectExchanges> ListenDirectly(const std::string& host) const {
    if (host.empty()) return nullptr;
    absl::StatusOr<std::unique_ptr<DirectExchanges>> direct = DirectExchanges::Listen({store_.get(), logger_, host});
    if (direct.ok()) return *std::move(direct);
    logger_->warn("exchanges without gRPC are not taken: {}", direct.status().ToString());
    return nullptr;
  }

  v1::LocateResponse WhereDirect() const {
    v1::LocateResponse where;
    if (direct_ == nullptr) return where;
    where.set_port(direct_->port());
    where.set_local_name(direct_->local_name());
    return where;
  }

  static v1::IdentifyResponse WhoIs(const ParameterServerOptions& options) {
    v1::IdentifyResponse response;
    response.set_server_id(options.server_id);
    response.set_instance(options.instance);
    return response;
  }

  const std::shared_ptr<spdlog::logger> logger_;
  const std::unique_ptr<ParameterStore> store_;
  const std::unique_ptr<DirectExchanges> direct_;
  const std::unique_ptr<GrpcExchanges> exchanges_;
  mutable absl::Mutex clock_mutex_;
  ClockOffset clock_offset_ ABSL_GUARDED_BY(clock_mutex_);
  ParameterService service_;
  std::thread loader_;      // Joined by Stop.
  SnapshotLoop snapshots_;  // Last: its thread uses the others.
};

}  // namespace

absl::StatusOr<std::unique_ptr<ParameterServer>> ParameterServer::Create(const ParameterServerOptions& options) {
  if (options.storage == nullptr || options.logger == nullptr || options.clock == nullptr) {
    return absl::InvalidArgumentError("a parameter server needs a storage, a logger and a clock");
  }
  if (options.snapshot_interval <= absl::ZeroDuration() || options.initialize_lease <= absl::ZeroDuration()) {
    return absl::InvalidArgumentError("snapshot interval and initialize lease of a parameter server are more than 0");
  }
  ParameterStoreOptions store_options;
  store_options.storage = options.storage;
  store_options.logger = options.logger;
  store_options.max_center_bytes = options.max_center_bytes;
  store_options.wait_clock = options.clock;
  store_options.initialize_lease = options.initialize_lease;
  absl::StatusOr<std::unique_ptr<ParameterStore>> store = ParameterStore::Open(std::move(store_options));
  if (!store.ok()) return store.status();
  absl::StatusOr<std::unique_ptr<GrpcExchanges>> exchanges =
      GrpcExchanges::Start({store->get(), options.logger, options.clock});
  if (!exchanges.ok()) return exchanges.status();
  return std::make_unique<RunningParameterServer>(options, *std::move(store), *std::move(exchanges));
}

}  // namespace hooke
