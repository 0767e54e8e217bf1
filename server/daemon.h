#ifndef HOOKE_SERVER_DAEMON_H_
#define HOOKE_SERVER_DAEMON_H_

// One hooke-server. It holds shards of centers, and is the coordinator if it is not told to join one. Several can live
// in one process.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "wire/cluster_token.h"
#include "wire/host_port.h"

namespace grpc {
class Server;
}
namespace spdlog {
class logger;
}

namespace hooke {

class CoordinatorService;
class FolderSpace;
class Heartbeat;
class HttpServer;
class MetricFamilies;
class ParameterServer;
class ServerFolder;

struct ServerOptions {
  std::string listen = "127.0.0.1:7411";  // Port 0 picks a free one.
  // HOST:PORT that ranks and the coordinator dial; empty: as `listen`, with this host's name for 0.0.0.0 and [::].
  std::string advertise;
  std::string coordinator;  // HOST:PORT of the coordinator to join; empty: be the coordinator.
  // With a token, callers must have it. Ranks may instead have the credential that is made from it for their job's
  // center. Without a token, whoever reaches this server may call it.
  ClusterToken token;
  std::string metrics;    // HOST:PORT where metrics are served over HTTP; empty: nowhere.
  std::string dashboard;  // HOST:PORT where a coordinator serves its web page; empty: nowhere.
  std::string state_dir;  // Made if necessary; no other server may use it.
  absl::Duration snapshot_interval = absl::Seconds(30);
  uint64_t max_message_bytes = uint64_t{16} << 20;
  uint64_t max_center_bytes = uint64_t{8} << 30;
  absl::Duration lease = absl::Seconds(10);  // A worker that is silent for this long is lost.
  // Jobs with groups.min or groups.max get other numbers of groups after this long (ResizeOptions::after).
  absl::Duration resize_after = absl::Seconds(30);
  uint64_t hold_after = 3;  // RestartOptions::repeats_max.
  std::string owner_slots;  // As ParseOwnerSlots reads it.
  absl::Duration fair_share_half_life = absl::Hours(24);
  // The coordinator forgets finished jobs beyond these limits, those that ended first before others.
  uint64_t finished_jobs_max = 1000;                    // Jobs; >= 1.
  absl::Duration keep_jobs = absl::InfiniteDuration();  // Time since a job's end; > 0.
  uint64_t keep_bytes = 0;  // Centers of finished jobs on the disks of all servers; 0: no limit.
  // Files that jobs send to their groups, at the coordinator; > 0.
  uint64_t files_max_bytes = uint64_t{1} << 30;     // The most bytes of one job's files.
  uint64_t files_total_bytes = uint64_t{10} << 30;  // The most bytes of the files of all jobs together.
  // Stop calls it once, after the last snapshots, when only gRPC's connections and threads must still end. `saved` is
  // false if a snapshot failed. May be empty.
  std::function<void(bool saved)> on_saved;
  std::string version;
  std::shared_ptr<spdlog::logger> logger;
};

class ServerDaemon {
 public:
  // After OK it serves. UNAVAILABLE: it cannot listen. INVALID_ARGUMENT: an address is malformed. Other errors are
  // those of ServerFolder::Open and ParameterServer::Create, and of the stores that a coordinator opens in its folder.
  static absl::StatusOr<std::unique_ptr<ServerDaemon>> Start(ServerOptions options);

  // Calls Stop().
  ~ServerDaemon();
  ServerDaemon(const ServerDaemon&) = delete;
  ServerDaemon& operator=(const ServerDaemon&) = delete;

  // HOST:PORT that ranks, workers and users dial.
  const std::string& address() const { return address_; }
  // HOST:PORT where metrics are served; empty: nowhere.
  std::string metrics_address() const;
  // HOST:PORT where the web page is served; empty: nowhere.
  std::string dashboard_address() const;

  // Ends all calls, writes the last snapshots and returns their first error. A second call does nothing and returns OK.
  // Call it from one thread.
  absl::Status Stop();

 private:
  ServerDaemon(ServerOptions options, HostPort listen, std::unique_ptr<ServerFolder> folder);

  absl::Status OpenParameters();
  absl::Status OpenCoordinator();
  absl::Status Listen();
  absl::Status Advertise(uint16_t port);
  absl::Status OpenMetrics();
  absl::Status OpenDashboard();
  void CollectMetrics(MetricFamilies& families) const;

  const ServerOptions options_;
  const HostPort listen_;                       // options_.listen.
  const std::unique_ptr<ServerFolder> folder_;  // Destroyed last: it holds the folder's lock.
  const std::string instance_;
  std::string address_;
  std::unique_ptr<ParameterServer> parameters_;
  std::unique_ptr<CoordinatorService> coordinator_;  // Null if another server is the coordinator.
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<Heartbeat> heartbeat_;
  std::unique_ptr<FolderSpace> space_;  // Null if there are no metrics.
  // Null if there are no metrics. Its threads use the members above, so it is destroyed before them.
  std::unique_ptr<HttpServer> metrics_;
  // Null without a web page. Its threads use the members above, so it is destroyed before them.
  std::unique_ptr<HttpServer> dashboard_;
};

}  // namespace hooke

#endif  // HOOKE_SERVER_DAEMON_H_
