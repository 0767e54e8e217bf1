#ifndef HOOKE_SERVER_SERVICE_FILE_CALLS_H_
#define HOOKE_SERVER_SERVICE_FILE_CALLS_H_

// The coordinator's calls about files of jobs: FindMissingFiles, UploadFiles and FetchFiles. If there is a store, one
// thread ends uploads that stand still, and frees files that no job names any more.
//
// Thread-safe.

#include <grpcpp/grpcpp.h>

#include <functional>
#include <map>
#include <memory>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "clocks/instant.h"
#include "clocks/stop_signal.h"
#include "proto/coordinator.grpc.pb.h"
#include "server/coordinator/coordinator.h"
#include "server/job_files/file_store.h"

namespace hooke {

struct FileCallsOptions {
  std::shared_ptr<FileStore> store;             // Null: jobs with files, and all calls here, are refused.
  std::function<Instant()> clock;               // Called from any thread.
  absl::Duration still_max = absl::Minutes(1);  // An upload without a chunk for so long is ended.
  absl::Duration free_every = absl::Seconds(30);
};

class FileCalls {
 public:
  // `coordinator` must outlive this object.
  FileCalls(FileCallsOptions options, Coordinator& coordinator);
  ~FileCalls();

  // Checks that the coordinator has the files of a job that is being submitted. FAILED_PRECONDITION: there is no store.
  // Other errors are those of FileStore::CheckForJob.
  absl::Status CheckJob(const v1::JobSpec& job);

  absl::Status FindMissing(const v1::FindMissingFilesRequest& request, v1::FindMissingFilesResponse& response);
  absl::Status Upload(grpc::ServerContext& context, grpc::ServerReader<v1::FileChunk>& reader,
                      v1::UploadFilesResponse& response);
  absl::Status Fetch(const v1::FetchFilesRequest& request, grpc::ServerWriter<v1::FileChunk>& writer);

  // Ends the thread and all calls of Fetch. A second call does nothing.
  void Stop();

 private:
  struct RunningUpload {
    absl::Duration heard;  // When it began, or its last chunk came; steady.
    bool ended = false;    // It stood still, and was ended.
  };

  absl::Status Receive(grpc::ServerContext& context, grpc::ServerReader<v1::FileChunk>& reader,
                       v1::UploadFilesResponse& response);
  void Heard(grpc::ServerContext& context);
  void CareUntilStop();
  void EndStillUploads();

  const FileCallsOptions options_;
  Coordinator& coordinator_;
  StopSignal stop_;
  absl::Mutex mutex_;
  std::map<grpc::ServerContext*, RunningUpload> uploads_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace hooke

#endif  // HOOKE_SERVER_SERVICE_FILE_CALLS_H_
