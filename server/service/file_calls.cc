#include "server/service/file_calls.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "job/file_manifest.h"
#include "job/job_refusal.h"

namespace hooke {
namespace {

constexpr absl::Duration kLookEvery = absl::Seconds(1);

absl::Status NoFiles() {
  return RefusalOf({{"files",
                     "this coordinator takes none, as it takes no jobs with a command: other machines reach it, and it "
                     "has no --token-file",
                     {"files"}}},
                   absl::StatusCode::kFailedPrecondition);
}

}  // namespace

FileCalls::FileCalls(FileCallsOptions options, Coordinator& coordinator)
    : options_(std::move(options)), coordinator_(coordinator) {
  if (options_.store != nullptr) thread_ = std::thread([this] { CareUntilStop(); });
}

FileCalls::~FileCalls() { Stop(); }

void FileCalls::Stop() {
  stop_.Notify();
  if (thread_.joinable()) thread_.join();
}

absl::Status FileCalls::CheckJob(const v1::JobSpec& job) {
  if (!job.command().has_files()) return absl::OkStatus();
  return options_.store == nullptr ? NoFiles()
                                   : options_.store->CheckForJob(job.command().files(), options_.clock().steady);
}

absl::Status FileCalls::FindMissing(const v1::FindMissingFilesRequest& request,
                                    v1::FindMissingFilesResponse& response) {
  if (options_.store == nullptr) return NoFiles();
  const std::vector<v1::FileContent> contents(request.contents().begin(), request.contents().end());
  absl::StatusOr<std::vector<std::string>> missing = options_.store->FindMissing(contents, options_.clock().steady);
  if (!missing.ok()) return missing.status();
  for (std::string& sha256 : *missing) response.add_sha256(std::move(sha256));
  return absl::OkStatus();
}

absl::Status FileCalls::Upload(grpc::ServerContext& context, grpc::ServerReader<v1::FileChunk>& reader,
                               v1::UploadFilesResponse& response) {
  if (options_.store == nullptr) return NoFiles();
  Heard(context);
  absl::Status status = Receive(context, reader, response);
  absl::MutexLock lock(&mutex_);
  const bool still = uploads_.extract(&context).mapped().ended;
  if (!still) return status;
  return absl::DeadlineExceededError(
      absl::StrCat("the upload stood still for ", absl::FormatDuration(options_.still_max), "; submit the job again"));
}

absl::Status FileCalls::Receive(grpc::ServerContext& context, grpc::ServerReader<v1::FileChunk>& reader,
                                v1::UploadFilesResponse& response) {
  absl::StatusOr<std::unique_ptr<FileStore::Upload>> upload = options_.store->BeginUpload(options_.clock().steady);
  if (!upload.ok()) return upload.status();
  v1::FileChunk chunk;
  while (reader.Read(&chunk)) {
    Heard(context);
    if (absl::Status status = (*upload)->Take(chunk, options_.clock().steady); !status.ok()) return status;
  }
  if (context.IsCancelled()) return absl::CancelledError("the upload was cancelled");
  const absl::StatusOr<uint32_t> stored = (*upload)->Finish();
  if (!stored.ok()) return stored.status();
  response.set_stored(*stored);
  return absl::OkStatus();
}

absl::Status FileCalls::Fetch(const v1::FetchFilesRequest& request, grpc::ServerWriter<v1::FileChunk>& writer) {
  if (options_.store == nullptr) return NoFiles();
  const absl::StatusOr<v1::FileSet> set = coordinator_.FilesOf(request.job_id());
  if (!set.ok()) return set.status();
  if (request.sha256_size() < 1 || request.sha256_size() > static_cast<int>(kContentsMax)) {
    return absl::InvalidArgumentError(
        absl::StrCat("1 to ", kContentsMax, " contents can be fetched at once, not ", request.sha256_size()));
  }
  const std::vector<std::string> wanted(request.sha256().begin(), request.sha256().end());
  // A repeated content could be read from the disk thousands of times for one small request.
  if (std::set<std::string>(wanted.begin(), wanted.end()).size() != wanted.size()) {
    return absl::InvalidArgumentError("a content is asked for twice");
  }
  return options_.store->Send(*set, wanted, [&](const v1::FileChunk& chunk) {
    if (stop_.HasBeenNotified()) return absl::UnavailableError("the coordinator is stopping: try again");
    return writer.Write(chunk) ? absl::OkStatus() : absl::CancelledError("the worker is gone");
  });
}

void FileCalls::Heard(grpc::ServerContext& context) {
  absl::MutexLock lock(&mutex_);
  uploads_[&context].heard = options_.clock().steady;
}

void FileCalls::EndStillUploads() {
  const absl::Duration now = options_.clock().steady;
  absl::MutexLock lock(&mutex_);
  for (auto& [context, upload] : uploads_) {
    if (upload.ended || now - upload.heard < options_.still_max) continue;
    upload.ended = true;
    context->TryCancel();  // It returns at once. The upload's Read then returns false.
  }
}

void FileCalls::CareUntilStop() {
  absl::Status trouble;
  absl::Duration freed_at = options_.clock().steady;
  while (!stop_.WaitFor(std::min(kLookEvery, options_.still_max))) {
    EndStillUploads();
    const absl::Duration now = options_.clock().steady;
    if (now - freed_at < options_.free_every) continue;
    freed_at = now;
    const FileStore::Freed freed = options_.store->FreeUnnamed(coordinator_.FilesOfAll(), now);
    if (freed.bytes > 0) {
      coordinator_.logger().info("files that no job names any more are freed: {}", BytesText(freed.bytes));
    }
    // A trouble that stays is logged only once.
    if (freed.status != trouble && !freed.status.ok()) {
      coordinator_.logger().warn("{}", std::string(freed.status.message()));
    }
    trouble = freed.status;
  }
}

}  // namespace hooke
