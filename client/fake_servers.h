#ifndef HOOKE_CLIENT_FAKE_SERVERS_H_
#define HOOKE_CLIENT_FAKE_SERVERS_H_

// A coordinator and a parameter server for tests of the client. They listen on a real port and give the answers that
// the test sets.

#include <grpcpp/grpcpp.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "proto/coordinator.grpc.pb.h"
#include "proto/parameter_server.grpc.pb.h"
#include "wire/cluster_token.h"

namespace hooke {

// Listens on 127.0.0.1, on `port` or a free port, until it is destroyed. With a token it admits its holders only. The
// destructor cuts calls that still run.
class FakeListener {
 public:
  explicit FakeListener(grpc::Service& service, int port = 0, const ClusterToken& token = {});
  ~FakeListener();

  int port() const { return port_; }
  std::string address() const;

 private:
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

// A test sets fields only while no call runs, and reads them then or under the mutex. But it may replace `jobs` under
// the mutex at any time, for the next WatchJob.
class FakeCoordinatorService : public v1::Coordinator::Service {
 public:
  grpc::Status Submit(grpc::ServerContext*, const v1::SubmitRequest* request, v1::SubmitResponse* response) override;
  grpc::Status ListJobs(grpc::ServerContext*, const v1::ListJobsRequest*, v1::ListJobsResponse* response) override;
  grpc::Status WatchJob(grpc::ServerContext* context, const v1::WatchJobRequest* request,
                        grpc::ServerWriter<v1::JobStatus>* writer) override;
  grpc::Status ReadLog(grpc::ServerContext*, const v1::ReadLogRequest* request,
                       grpc::ServerWriter<v1::LogChunk>* writer) override;
  grpc::Status ReadProfile(grpc::ServerContext*, const v1::ReadProfileRequest* request,
                           grpc::ServerWriter<v1::ReadProfileResponse>* writer) override;
  grpc::Status ReadStarts(grpc::ServerContext*, const v1::ReadStartsRequest* request,
                          v1::ReadStartsResponse* response) override;
  grpc::Status ReadHistory(grpc::ServerContext*, const v1::ReadHistoryRequest* request,
                           grpc::ServerWriter<v1::ReadHistoryResponse>* writer) override;
  grpc::Status ResumeJob(grpc::ServerContext*, const v1::ResumeJobRequest* request,
                         v1::ResumeJobResponse* response) override;
  grpc::Status CancelJob(grpc::ServerContext*, const v1::CancelJobRequest* request,
                         v1::CancelJobResponse* response) override;
  grpc::Status ForgetJob(grpc::ServerContext*, const v1::ForgetJobRequest* request,
                         v1::ForgetJobResponse* response) override;
  grpc::Status ListNodes(grpc::ServerContext*, const v1::ListNodesRequest* request,
                         v1::ListNodesResponse* response) override;
  grpc::Status ScaleJob(grpc::ServerContext*, const v1::ScaleJobRequest* request,
                        v1::ScaleJobResponse* response) override;
  // Knows the workers in `nodes`.
  grpc::Status DrainWorker(grpc::ServerContext*, const v1::DrainWorkerRequest* request,
                           v1::DrainWorkerResponse* response) override;

  // The statuses that WatchJob sends for each job. After the last one the stream ends if the job has ended; otherwise
  // it stays open and silent.
  std::map<std::string, std::vector<v1::JobStatus>> jobs;
  uint32_t jobs_left_out = 0;
  std::vector<v1::NodeStatus> nodes;
  std::vector<v1::NodeLink> links;
  std::string log;
  // The answer to ReadProfile for every job; FAILED_PRECONDITION if empty.
  std::vector<v1::ReadProfileResponse> profiles;
  v1::ReadStartsResponse starts;  // The answer to ReadStarts for every job.
  // The answer to ReadHistory for every job, a message for each point; FAILED_PRECONDITION if empty.
  std::vector<v1::HistoryPoint> history;
  grpc::Status submit_status;

  mutable absl::Mutex mutex;
  std::vector<v1::SubmitRequest> submitted ABSL_GUARDED_BY(mutex);
  std::vector<v1::ScaleJobRequest> scaled;
  int watches ABSL_GUARDED_BY(mutex) = 0;
};

// Answers every Pull with the same messages.
class FakeParameterServer : public v1::ParameterServer::Service {
 public:
  grpc::Status Pull(grpc::ServerContext* context, const v1::PullRequest*,
                    grpc::ServerWriter<v1::PullResponse>* writer) override;

  std::vector<v1::PullResponse> responses;
  bool falls_silent = false;  // Whether the stream stays open after the messages instead of ending.
  grpc::Status end;
};

// Returns a job that succeeded, with a center of 90.12 % accuracy.
v1::JobStatus SucceededJob(const std::string& job_id);
// Returns a running job of two groups, with group 0 at step 528 of 1123.
v1::JobStatus RunningJob(const std::string& job_id);

}  // namespace hooke

#endif  // HOOKE_CLIENT_FAKE_SERVERS_H_
