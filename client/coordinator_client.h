#ifndef HOOKE_CLIENT_COORDINATOR_CLIENT_H_
#define HOOKE_CLIENT_COORDINATOR_CLIENT_H_

// The client of the coordinator's API for users. Every call has a deadline. An error names the coordinator and says
// what to do. Calls may come from several threads.

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "client/timed_reader.h"
#include "proto/coordinator.grpc.pb.h"

namespace hooke {

class CoordinatorClient {
 public:
  // Waits for a connection. UNAVAILABLE "cannot reach the coordinator at HOST:PORT: ..." comes at once if the
  // connection is refused, otherwise after `timeout`.
  static absl::StatusOr<std::unique_ptr<CoordinatorClient>> Connect(const std::string& address, absl::Duration timeout);

  const std::string& address() const { return address_; }

  // Retries with the same submission id if the coordinator goes away meanwhile, so the job is stored once.
  absl::StatusOr<std::string> Submit(const v1::JobSpec& job);
  absl::StatusOr<v1::ListJobsResponse> ListJobs();
  absl::StatusOr<v1::JobStatus> CancelJob(const std::string& job_id);
  absl::StatusOr<v1::ListNodesResponse> ListNodes();
  // The job's current status. NOT_FOUND if there is no such job.
  absl::StatusOr<v1::JobStatus> GetJob(const std::string& job_id);
  // The profiles of the job's ranks, at least one. NOT_FOUND: there is no such job. FAILED_PRECONDITION: it has no
  // profile.
  absl::StatusOr<std::vector<v1::ReadProfileResponse>> ReadProfile(const std::string& job_id, bool trace);

  // Streams. Pass their errors through Explain before showing them. Each stream has its own connection. So neither a
  // dead connection nor gRPC's wait after a failure keeps it from a coordinator that has come back.
  std::unique_ptr<TimedReader<v1::JobStatus>> WatchJob(const std::string& job_id);
  std::unique_ptr<TimedReader<v1::LogChunk>> ReadLog(const v1::ReadLogRequest& request);

  // Rewrites a call's error for people. The coordinator's own messages stay unchanged.
  absl::Status Explain(const absl::Status& status) const;
  // The same for a call about one job. If there is no such job, the text suggests one with a similar name.
  absl::Status ExplainAbout(const std::string& job_id, const absl::Status& status);

 private:
  CoordinatorClient(std::string address, const std::shared_ptr<grpc::Channel>& channel);

  const std::string address_;
  const std::unique_ptr<v1::Coordinator::Stub> stub_;
};

// A channel for this program's clients: no proxy, large messages allowed, quick to reconnect.
std::shared_ptr<grpc::Channel> MakeChannel(const std::string& address);

// True if the message of an UNAVAILABLE error is gRPC's own, about a connection, and not the server's answer.
bool IsConnectionFailure(absl::string_view message);

// Cuts gRPC's reason for a failed connection to what people need: "Connection refused".
std::string ConnectionTrouble(const std::string& message);

}  // namespace hooke

#endif  // HOOKE_CLIENT_COORDINATOR_CLIENT_H_
