#ifndef HOOKE_SERVER_SERVICE_SERVICE_H_
#define HOOKE_SERVER_SERVICE_SERVICE_H_

// The gRPC service of the Coordinator, and the thread that ticks it and starts the dials of servers.
//
//   CoordinatorService service({.coordinator = ...});
//   service.AddTo(builder);
//   grpc_server = builder.BuildAndStart();
//   service.Serve();                   // Takes workers' sessions.
//   ...
//   service.Stop();                    // Ends workers' sessions, and open streams of users with UNAVAILABLE.
//   grpc_server->Shutdown(deadline);
//   service.Join();
//   grpc_server.reset();               // After this the service may be destroyed.

#include <grpcpp/grpcpp.h>

#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "absl/time/time.h"
#include "clocks/instant.h"
#include "clocks/stop_signal.h"
#include "proto/coordinator.grpc.pb.h"
#include "server/coordinator/coordinator.h"
#include "server/job_files/file_store.h"
#include "server/service/dial_back.h"
#include "server/service/file_calls.h"
#include "server/service/worker_sessions.h"

namespace hooke {

struct CoordinatorServiceOptions {
  std::shared_ptr<Coordinator> coordinator;
  std::function<Instant()> clock = InstantNow;  // Called from any thread.
  absl::Duration tick = absl::Milliseconds(100);
  std::shared_ptr<DialBack> dial_back = MakeGrpcDialBack();  // Stop stops it.
  // How often the reader of a followed log gets an empty chunk while there is nothing new. From that chunk the reader
  // knows that the job prints nothing, and that the coordinator is still there.
  absl::Duration log_sign_of_life = absl::Seconds(20);
  std::shared_ptr<FileStore> files;                    // Null: jobs with files are refused.
  absl::Duration upload_still_max = absl::Minutes(1);  // An upload of files without a chunk for so long is ended.
};

class CoordinatorService final : private WorkerSessions::Service {
 public:
  // Starts ticking.
  explicit CoordinatorService(CoordinatorServiceOptions options);
  // Calls Stop().
  ~CoordinatorService() override { Stop(); }

  // Registers the service hooke.v1.Coordinator, once. This object owns it, and must outlive the grpc::Server.
  void AddTo(grpc::ServerBuilder& builder);
  // Begins to take workers' sessions. Must be called once, after the server has started.
  void Serve() { workers_.Serve(*this); }
  // Waits for the end of workers' sessions. After Serve it must be called when the server is shut down, and before it
  // is destroyed.
  void Join() { workers_.Join(); }

  Coordinator& coordinator() { return coordinator_; }

  // Stops ticking, the dials, the thread of the file calls, and the coordinator. A second call does nothing.
  void Stop();

 private:
  grpc::Status Submit(grpc::ServerContext* context, const v1::SubmitRequest* request,
                      v1::SubmitResponse* response) override;
  grpc::Status FindMissingFiles(grpc::ServerContext* context, const v1::FindMissingFilesRequest* request,
                                v1::FindMissingFilesResponse* response) override;
  grpc::Status UploadFiles(grpc::ServerContext* context, grpc::ServerReader<v1::FileChunk>* reader,
                           v1::UploadFilesResponse* response) override;
  grpc::Status FetchFiles(grpc::ServerContext* context, const v1::FetchFilesRequest* request,
                          grpc::ServerWriter<v1::FileChunk>* writer) override;
  grpc::Status ListJobs(grpc::ServerContext* context, const v1::ListJobsRequest* request,
                        v1::ListJobsResponse* response) override;
  grpc::Status WatchJob(grpc::ServerContext* context, const v1::WatchJobRequest* request,
                        grpc::ServerWriter<v1::JobStatus>* writer) override;
  grpc::Status ReadLog(grpc::ServerContext* context, const v1::ReadLogRequest* request,
                       grpc::ServerWriter<v1::LogChunk>* writer) override;
  grpc::Status ReadStarts(grpc::ServerContext* context, const v1::ReadStartsRequest* request,
                          v1::ReadStartsResponse* response) override;
  grpc::Status ReadHistory(grpc::ServerContext* context, const v1::ReadHistoryRequest* request,
                           grpc::ServerWriter<v1::ReadHistoryResponse>* writer) override;
  grpc::Status ReadProfile(grpc::ServerContext* context, const v1::ReadProfileRequest* request,
                           grpc::ServerWriter<v1::ReadProfileResponse>* writer) override;
  grpc::Status ResumeJob(grpc::ServerContext* context, const v1::ResumeJobRequest* request,
                         v1::ResumeJobResponse* response) override;
  grpc::Status CancelJob(grpc::ServerContext* context, const v1::CancelJobRequest* request,
                         v1::CancelJobResponse* response) override;
  grpc::Status ScaleJob(grpc::ServerContext* context, const v1::ScaleJobRequest* request,
                        v1::ScaleJobResponse* response) override;
  grpc::Status ForgetJob(grpc::ServerContext* context, const v1::ForgetJobRequest* request,
                         v1::ForgetJobResponse* response) override;
  grpc::Status ListNodes(grpc::ServerContext* context, const v1::ListNodesRequest* request,
                         v1::ListNodesResponse* response) override;
  grpc::Status DrainWorker(grpc::ServerContext* context, const v1::DrainWorkerRequest* request,
                           v1::DrainWorkerResponse* response) override;
  grpc::Status ServerHeartbeat(grpc::ServerContext* context, const v1::ServerHeartbeatRequest* request,
                               v1::ServerHeartbeatResponse* response) override;
  grpc::Status SiteHeartbeat(grpc::ServerContext* context, const v1::SiteHeartbeatRequest* request,
                             v1::SiteHeartbeatResponse* response) override;

  void TickUntilStop();

  const CoordinatorServiceOptions options_;
  Coordinator& coordinator_;
  WorkerSessions workers_;
  FileCalls files_;
  StopSignal stop_;
  std::once_flag stop_once_;
  std::thread ticker_;  // It uses the members above, so it is declared last.
};

}  // namespace hooke

#endif  // HOOKE_SERVER_SERVICE_SERVICE_H_
