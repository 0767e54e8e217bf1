#ifndef HOOKE_CLIENT_COORDINATOR_CLIENT_H_
#define HOOKE_CLIENT_COORDINATOR_CLIENT_H_

// The user's side of the coordinator. Every call has a deadline, and an error says which coordinator it is about and
// what to do. Used by the commands. Calls may come from several threads.

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
  // Waits for a connection. UNAVAILABLE "cannot reach the coordinator at HOST:PORT: ..." at once when it is refused,
  // else after `timeout`.
  static absl::StatusOr<std::unique_ptr<CoordinatorClient>> Connect(const std::string& address, absl::Duration timeout);

  const std::string& address() const { return address_; }

  // Tries again, with the same submission id, when the coordinator went away meanwhile: it stores the job once.
  absl::StatusOr<std::string> Submit(const v1::JobSpec& job);
  absl::StatusOr<v1::ListJobsResponse> ListJobs();
  absl::StatusOr<v1::JobStatus> CancelJob(const std::string& job_id);
  absl::StatusOr<v1::ListNodesResponse> ListNodes();
  // The job as it is now. NOT_FOUND when there is none of that id.
  absl::StatusOr<v1::JobStatus> GetJob(const std::string& job_id);
  // The profiles of the job's ranks, at least one. NOT_FOUND: no such job; FAILED_PRECONDITION: it has none.
  absl::StatusOr<std::vector<v1::ReadProfileResponse>> ReadProfile(const std::string& job_id, bool trace);

  // Streams; their errors go through Explain to be shown. Each has a connection of its own, so that neither a
  // connection that is dead without knowing it, nor the wait after an earlier failure, keeps it from a coordinator that
  // has come back.
  std::unique_ptr<TimedReader<v1::JobStatus>> WatchJob(const std::string& job_id);
  std::unique_ptr<TimedReader<v1::LogChunk>> ReadLog(const v1::ReadLogRequest& request);

  // The error of a call, for a person. What the coordinator itself says stays as it is.
  absl::Status Explain(const absl::Status& status) const;
  // The same for a call about one job: where there is none, it asks for a job of a near name.
  absl::Status ExplainAbout(const std::string& job_id, const absl::Status& status);

 private:
  CoordinatorClient(std::string address, const std::shared_ptr<grpc::Channel>& channel);

  const std::string address_;
  const std::unique_ptr<v1::Coordinator::Stub> stub_;
};

// A channel for clients of this program: no proxy, large messages allowed, quick to try again.
std::shared_ptr<grpc::Channel> MakeChannel(const std::string& address);

// Whether the message of an UNAVAILABLE error is gRPC's own, about a connection, and not the server's answer.
bool IsConnectionFailure(absl::string_view message);

// gRPC's words for why a connection failed, cut to what a person needs: "Connection refused".
std::string ConnectionTrouble(const std::string& message);

}  // namespace hooke

#endif  // HOOKE_CLIENT_COORDINATOR_CLIENT_H_
