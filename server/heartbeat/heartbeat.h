#ifndef HOOKE_SERVER_HEARTBEAT_HEARTBEAT_H_
#define HOOKE_SERVER_HEARTBEAT_HEARTBEAT_H_

// The heartbeats of a server. Once a second the server tells the coordinator that it lives and which jobs it holds. The
// coordinator answers which of these jobs have ended. The server then seals their centers (ParameterServer::Seal). The
// coordinator also answers which of the jobs were forgotten. The server then frees their centers
// (ParameterServer::Forget). It frees a center for no other reason. The coordinator also names jobs whose number of
// groups changes. The server ends their generations (ParameterServer::EndGeneration), and at once sends another
// heartbeat, which says how far the groups had come. The answer has the coordinator's time, too
// (ParameterServer::MeasureClock). If the coordinator places nothing on this server, the answer says why, and the
// server logs the reason. If the coordinator refuses the server's token, the server logs that once.

#include <grpcpp/grpcpp.h>

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "clocks/cores_used.h"
#include "clocks/steady_condition.h"
#include "proto/coordinator.grpc.pb.h"
#include "proto/coordinator.pb.h"
#include "server/heartbeat/exchange_window.h"

namespace spdlog {
class logger;
}

namespace hooke {

class ParameterServer;
struct ParameterServerStats;

struct HeartbeatOptions {
  std::string address;  // The HOST:PORT at which ranks dial this server.
  std::string server_id;
  std::string instance;  // Names this process of the server.
  std::string version;
  std::string coordinator;                 // HOST:PORT, for messages to users only.
  std::shared_ptr<grpc::Channel> channel;  // Leads to the coordinator.
  ParameterServer* parameters = nullptr;   // Must outlive the Heartbeat.
  std::shared_ptr<spdlog::logger> logger;
  absl::Duration interval = absl::Seconds(1);
  absl::Duration call_timeout = absl::Seconds(2);
  absl::Duration complain_every = absl::Seconds(10);   // Pause between complaints while the coordinator is away.
  absl::Duration seal_again_after = absl::Minutes(1);  // Pause after a Seal or Forget that failed, for its job.
  // The list of jobs on disk is sent when it has changed, and after a failed heartbeat. Otherwise it is sent again
  // after this many heartbeats.
  int disk_jobs_every = 60;
};

// Sends heartbeats from its construction to its destruction, whether or not the coordinator answers. The destructor
// waits at most `call_timeout`, and for an order that is being carried out.
class Heartbeat {
 public:
  explicit Heartbeat(HeartbeatOptions options);
  ~Heartbeat();
  Heartbeat(const Heartbeat&) = delete;
  Heartbeat& operator=(const Heartbeat&) = delete;

 private:
  void Beat();
  void BeatOnce();
  void Complain(const grpc::Status& status);
  void TellProblem(const std::string& problem);
  // Adds the jobs that are on disk only, if the coordinator may not know them.
  void ListDiskJobs(const ParameterServerStats& stats, v1::ServerHeartbeatRequest& request) const;
  // Waits until the next heartbeat is due. False: there is none any more.
  bool AwaitNextBeat();
  void TakeGenerationEnds(const v1::ServerHeartbeatResponse& response) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ObeyOrders();
  void SealOrForget(const std::string& job, const std::optional<std::string>& key);
  void EndGeneration(const v1::GenerationEnd& end);
  absl::Status Seal(const std::string& job);
  absl::Status Forget(const std::string& job, const std::string& key);
  // Returns whether the job may be sealed or freed now. After a failure the answer is false for a while, or for good if
  // another try would fail too.
  bool MayTry(const std::string& job) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const HeartbeatOptions options_;
  const std::unique_ptr<v1::Coordinator::Stub> stub_;

  // Only beater_ uses these.
  bool answered_ = false;
  bool refused_ = false;  // The coordinator has refused our token; that was logged.
  // The steady time of the last complaint that the coordinator is away.
  absl::Duration complained_ = -absl::InfiniteDuration();
  std::string problem_;  // The problem that was logged last; empty: none.
  // The list of jobs on disk that the coordinator accepted last; nullopt: none.
  std::optional<std::vector<std::pair<std::string, uint64_t>>> listed_;
  int beats_since_listed_ = 0;
  CoresUsed cores_{absl::Seconds(10)};
  ExchangeWindow exchanges_{absl::Seconds(10)};

  absl::Mutex mutex_;
  SteadyCondition woken_;  // Signalled when `stopping_` or `hurries_` is set.
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  bool hurries_ ABSL_GUARDED_BY(mutex_) = false;  // The next heartbeat has something that the coordinator waits for.
  std::set<std::string> ended_ ABSL_GUARDED_BY(mutex_);  // Jobs to seal; at most those that this server holds.
  std::map<std::string, std::string> forgotten_ ABSL_GUARDED_BY(mutex_);  // Jobs to free, and their keys.
  // Steady times before which jobs that could not be sealed or freed are not tried again.
  std::map<std::string, absl::Duration> again_at_ ABSL_GUARDED_BY(mutex_);

  // These three are keyed by job, and have only jobs that the last response named: the generations to end, the answers
  // for the coordinator, and the failures that were logged.
  std::map<std::string, v1::GenerationEnd> generation_ends_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, v1::ClosedGeneration> closed_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, std::string> end_failures_ ABSL_GUARDED_BY(mutex_);

  std::thread beater_;
  // Ends generations, and seals and frees shards. This has its own thread because it uses the disk. A slow disk must
  // not look like a silent server.
  std::thread worker_;
};

}  // namespace hooke

#endif  // HOOKE_SERVER_HEARTBEAT_HEARTBEAT_H_
