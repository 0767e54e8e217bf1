#ifndef HOOKE_CLIENT_COORDINATOR_CLIENT_H_
#define HOOKE_CLIENT_COORDINATOR_CLIENT_H_

// The client of the coordinator's API for users. Every wait for the coordinator has a deadline. An error of the
// connection names the coordinator; the coordinator's own messages stay unchanged. Calls may come from several threads.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/files/collect_files.h"
#include "proto/coordinator.grpc.pb.h"
#include "wire/cluster_token.h"
#include "wire/timed_reader.h"

namespace hooke {

class CoordinatorClient {
 public:
  // Connects and waits until the connection is there. UNAVAILABLE "cannot reach the coordinator at HOST:PORT: ..."
  // comes at once if the connection is refused, otherwise after `timeout`. `token` is that of the cluster; it may be
  // empty.
  static absl::StatusOr<std::unique_ptr<CoordinatorClient>> Connect(const std::string& address, absl::Duration timeout,
                                                                    const ClusterToken& token = {});

  const std::string& address() const { return address_; }

  // Later calls have this time to answer, instead of 20 seconds. Call it before any other call.
  void LimitCalls(absl::Duration limit) { call_limit_ = limit; }

  // The amount that PutFiles has sent.
  struct Uploaded {
    // How many contents of files were sent, without the manifest. Files with equal contents count once.
    size_t contents = 0;
    uint64_t bytes = 0;  // The bytes that were sent, with the manifest.
  };
  // Sends the files of a job that the coordinator lacks, before the job is submitted. FAILED_PRECONDITION: a refusal as
  // Submit gives it (ReadRefusal), for the key `files`. ABORTED: a file has changed since it was collected, or cannot
  // be read. UNAVAILABLE: the coordinator cannot be reached, or loses the files again and again. CANCELLED: `goes_on`
  // returned false; it is asked again and again. DEADLINE_EXCEEDED: the upload was too slow, or stood still.
  absl::StatusOr<Uploaded> PutFiles(const CollectedFiles& files, const std::function<bool()>& goes_on);
  // Times that the client took before it submits a job.
  struct SubmitTimes {
    absl::Duration preparing;  // The time from the program's start to the submission.
    absl::Duration upload;     // The part of `preparing` in which the job's files were sent.
  };
  // Submits a job and returns its id. If the coordinator goes away meanwhile, the call is repeated with the same
  // submission id, so the job is stored once.
  absl::StatusOr<std::string> Submit(const v1::JobSpec& job, const SubmitTimes& times = {});
  absl::StatusOr<v1::ListJobsResponse> ListJobs();
  absl::StatusOr<v1::JobStatus> CancelJob(const std::string& job_id);
  // Changes the number of a job's groups, and returns the job. Errors are those of Coordinator.ScaleJob.
  absl::StatusOr<v1::JobStatus> ScaleJob(const v1::ScaleJobRequest& scale);
  absl::StatusOr<v1::ResumeJobResponse> ResumeJob(const std::string& job_id);
  // Returns the job as it was. FAILED_PRECONDITION: it has not ended.
  absl::StatusOr<v1::JobStatus> ForgetJob(const std::string& job_id);
  // Returns the servers and workers, and if `links`, what was measured between workers.
  absl::StatusOr<v1::ListNodesResponse> ListNodes(bool links = false);
  // Drains a worker, or takes that back, and returns the worker. NOT_FOUND: no such worker; the text suggests one with
  // a similar name.
  absl::StatusOr<v1::NodeStatus> DrainWorker(const std::string& worker, v1::Drain drain);
  // The job's current status. NOT_FOUND if there is no such job.
  absl::StatusOr<v1::JobStatus> GetJob(const std::string& job_id);
  // The profiles of the job's ranks; there is at least one. NOT_FOUND: there is no such job. FAILED_PRECONDITION: the
  // job has no profile.
  absl::StatusOr<std::vector<v1::ReadProfileResponse>> ReadProfile(const std::string& job_id, bool trace);
  // Returns how long each part of the way took from the job's submission to the first steps of its groups. NOT_FOUND:
  // there is no such job.
  // UNIMPLEMENTED: the coordinator is of an older version.
  absl::StatusOr<v1::ReadStartsResponse> ReadStarts(const std::string& job_id);
  // The points of the job's history, at least one, in the order of ReadHistory (proto/coordinator.proto). NOT_FOUND:
  // there is no such job. FAILED_PRECONDITION: it has no points.
  absl::StatusOr<std::vector<v1::HistoryPoint>> ReadHistory(const std::string& job_id);

  // The calls that return streams. Pass the streams' errors through Explain before showing them. Each stream has its
  // own connection. So a stream reaches a coordinator that has come back, even after a dead connection or during gRPC's
  // wait after a failure.
  std::unique_ptr<TimedReader<v1::JobStatus>> WatchJob(const std::string& job_id);
  std::unique_ptr<TimedReader<v1::LogChunk>> ReadLog(const v1::ReadLogRequest& request);

  // Rewrites a call's error for people. The coordinator's own messages stay unchanged.
  absl::Status Explain(const absl::Status& status) const;
  // Like Explain, for a call about one job. If there is no such job, the text suggests one with a similar name.
  absl::Status ExplainAbout(const std::string& job_id, const absl::Status& status);

 private:
  absl::StatusOr<v1::FindMissingFilesResponse> FindMissing(const CollectedFiles& files, bool wait_for_connection);
  absl::Status Upload(const CollectedFiles& files, const v1::FindMissingFilesResponse& missing,
                      const std::function<bool()>& goes_on, Uploaded& uploaded);

  CoordinatorClient(std::string address, ClusterToken token, const std::shared_ptr<grpc::Channel>& channel);

  const std::string address_;
  const ClusterToken token_;
  absl::Duration call_limit_ = absl::Seconds(20);
  const std::unique_ptr<v1::Coordinator::Stub> stub_;
};

}  // namespace hooke

#endif  // HOOKE_CLIENT_COORDINATOR_CLIENT_H_
