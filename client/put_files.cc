// Uploads a job's files: asks which ones the coordinator lacks, and then sends these in one stream.
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/coordinator_client.h"
#include "job/file_manifest.h"
#include "job/visible_text.h"
#include "wire/file_chunks.h"
#include "wire/grpc_status.h"

namespace hooke {
namespace {

constexpr absl::Duration kQuestionTimeout = absl::Seconds(20);
constexpr int kTries = 3;

}  // namespace

absl::StatusOr<CoordinatorClient::Uploaded> CoordinatorClient::PutFiles(const CollectedFiles& files,
                                                                        const std::function<bool()>& goes_on) {
  Uploaded uploaded;
  absl::Status status;
  // After an upload, FindMissing is called again. So contents that the coordinator has lost or freed meanwhile are sent
  // again. The call also restarts the time for which the coordinator keeps files without a job.
  for (int i = 0;; ++i) {
    const absl::StatusOr<v1::FindMissingFilesResponse> missing = FindMissing(files, i > 0);
    if (missing.ok() && missing->sha256().empty()) return uploaded;
    // If the coordinator cannot be reached, the loop goes on. The next upload sends only the contents that have not
    // arrived.
    if (!missing.ok() && !absl::IsUnavailable(missing.status())) return Explain(missing.status());
    if (i == kTries) {
      if (!status.ok() || !missing.ok()) return Explain(status.ok() ? missing.status() : status);
      return absl::UnavailableError(absl::StrCat("the coordinator at ", address_, " has lost ", missing->sha256_size(),
                                                 " of the uploaded files ", kTries, " times: see to its disk"));
    }
    status = missing.ok() ? Upload(files, *missing, goes_on, uploaded) : missing.status();
    // Explain would describe this error as a call that was not answered.
    if (absl::IsDeadlineExceeded(status)) return status;
    if (!status.ok() && !absl::IsUnavailable(status)) return Explain(status);
  }
}

absl::StatusOr<v1::FindMissingFilesResponse> CoordinatorClient::FindMissing(const CollectedFiles& files,
                                                                            bool wait_for_connection) {
  v1::FindMissingFilesRequest request;
  *request.add_contents() = ManifestContent(files.set);
  // Lists each path and not only each content, because a group gets a copy for each path. So the coordinator can refuse
  // a job that is too large before its files come.
  v1::FileManifest manifest;
  if (!manifest.ParseFromString(files.manifest))
    return absl::InternalError("the manifest of the files is damaged; submit the job again");
  for (const v1::FileEntry& entry : manifest.entries()) {
    if (entry.folder()) continue;
    v1::FileContent& content = *request.add_contents();
    content.set_sha256(entry.sha256());
    content.set_bytes(entry.bytes());
  }
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + kQuestionTimeout));
  context.set_wait_for_ready(wait_for_connection);
  v1::FindMissingFilesResponse missing;
  const absl::Status status = FromGrpc(stub_->FindMissingFiles(&context, request, &missing));
  if (!status.ok()) return status;
  return missing;
}

absl::Status CoordinatorClient::Upload(const CollectedFiles& files, const v1::FindMissingFilesResponse& missing,
                                       const std::function<bool()>& goes_on, Uploaded& uploaded) {
  std::map<std::string, const CollectedFiles::Content*> contents;
  for (const CollectedFiles::Content& content : files.contents) contents[content.content.sha256()] = &content;
  grpc::ClientContext context;
  const absl::Duration limit = UploadLimit(files.set);
  const absl::Time deadline = absl::Now() + limit;
  context.set_deadline(absl::ToChronoTime(deadline));
  v1::UploadFilesResponse response;
  const std::unique_ptr<grpc::ClientWriter<v1::FileChunk>> writer = stub_->UploadFiles(&context, &response);
  const auto send = [&](const v1::FileChunk& chunk) {
    if (!goes_on()) return absl::CancelledError("interrupted");
    // A write fails if the call has ended. Its end says why.
    return writer->Write(chunk) ? absl::OkStatus() : absl::UnknownError("");
  };
  absl::Status status;
  for (const std::string& sha256 : missing.sha256()) {
    const auto found = contents.find(sha256);
    if (found != contents.end()) {
      status = SendFile(found->second->path, found->second->content, send);
      if (absl::IsDataLoss(status) || absl::IsNotFound(status) || absl::IsFailedPrecondition(status)) {
        status = absl::AbortedError(absl::StrCat(Escaped(found->second->path), " was not uploaded: ", status.message(),
                                                 "; submit the job again when nobody changes its files"));
      }
      uploaded.bytes += status.ok() ? found->second->content.bytes() : 0;
      uploaded.contents += status.ok() ? 1 : 0;
    } else if (sha256 == files.set.manifest_sha256()) {
      status = SendContent(files.manifest, send);
      uploaded.bytes += files.manifest.size();
    } else {
      status = absl::InternalError(
          "the coordinator asks for a file that this job does not have; `hooke doctor` compares the versions");
    }
    if (!status.ok()) break;
  }
  if (status.ok()) {
    writer->WritesDone();
  } else if (!absl::IsUnknown(status)) {
    context.TryCancel();
    (void)writer->Finish();
    return status;
  }
  status = FromGrpc(writer->Finish());
  if (!absl::IsDeadlineExceeded(status) || absl::Now() < deadline) return status;
  return absl::DeadlineExceededError(
      absl::StrCat("the upload of the files took longer than ", absl::FormatDuration(limit),
                   "; submit the job again: ", "the files that have come are not sent again"));
}

}  // namespace hooke
