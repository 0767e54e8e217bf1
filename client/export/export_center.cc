#include "client/export/export_center.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/coordinator_client.h"
#include "client/export/export_metadata.h"
#include "client/export/safetensors.h"
#include "client/text/job_text.h"
#include "files/new_file.h"
#include "proto/parameter_server.grpc.pb.h"
#include "wire/layout_difference.h"
#include "wire/model_metadata.h"
#include "wire/timed_reader.h"

namespace hooke {
namespace {

// Interrupts are checked this often.
constexpr absl::Duration kPoll = absl::Milliseconds(100);

constexpr char kNotDescribed[] =
    "the job's servers do not know how the model's input is normalized, because an older Hooke or a program of your "
    "own "
    "created the center: the file has no mean, std, input_shape, classes and architecture_version";

// Writes the shards of a center into the file, as they are pulled one after another. Checks every message.
class CenterFile {
 public:
  CenterFile(const v1::JobStatus& job, const ExportOptions& options) : job_(job), options_(options) {}

  absl::Status PullShard(int index) {
    const std::string& address = job_.servers(index);
    const std::unique_ptr<v1::ParameterServer::Stub> stub =
        v1::ParameterServer::NewStub(MakeChannel(address, options_.token));
    v1::PullRequest request;
    request.set_job_id(job_.job_id());
    TimedReader<v1::PullResponse> stream([&](grpc::ClientContext* context, grpc::CompletionQueue* queue) {
      return stub->PrepareAsyncPull(context, request, queue);
    });
    bool has_header = false;
    absl::Time deadline = absl::Now() + options_.silence;
    while (true) {
      if (options_.interrupts != nullptr && options_.interrupts->WaitFor(absl::ZeroDuration()).has_value())
        return absl::CancelledError(absl::StrCat("interrupted; ", options_.path, " was not written"));
      absl::StatusOr<v1::PullResponse> response = stream.Next(std::min(kPoll, deadline - absl::Now()));
      if (absl::IsDeadlineExceeded(response.status()) && absl::Now() < deadline) continue;
      deadline = absl::Now() + options_.silence;
      if (absl::IsOutOfRange(response.status())) break;
      if (!response.ok()) return Explain(address, response.status());
      absl::Status taken = response->has_header() == has_header
                               ? absl::DataLossError("the header does not come first")
                               : (has_header ? TakeBlock(response->block()) : TakeHeader(index, response->header()));
      if (!taken.ok()) return Explain(address, taken);
      has_header = true;
    }
    return has_header ? absl::OkStatus() : Explain(address, absl::DataLossError("nothing came"));
  }

  absl::StatusOr<Exported> Finish() {
    if (next_ != total_)
      return absl::DataLossError(absl::StrCat("the servers sent ", next_, " of ", total_, " values; try again"));
    if (absl::Status status = file_->Finish(options_.force); !status.ok()) return status;
    if (!layout_.has_model()) notes_.insert(notes_.begin(), kNotDescribed);
    return Exported{tensors_.size(), total_, file_->bytes(), layout_.has_model(), notes_};
  }

 private:
  absl::Status TakeHeader(int index, const v1::PullResponse::Header& header) {
    if (header.shard_index() != static_cast<uint32_t>(index) ||
        header.shard_count() != static_cast<uint32_t>(job_.servers_size())) {
      return absl::DataLossError(absl::StrCat("this is shard ", header.shard_index(), " of ", header.shard_count(),
                                              ", not ", index, " of ", job_.servers_size()));
    }
    if (index > 0) return CompareWithFirst(index, header.layout());
    layout_ = header.layout();
    if (layout_.has_model()) {
      if (absl::Status status = CheckModelDescription(layout_.model()); !status.ok())
        return absl::DataLossError(status.message());
    }
    for (const v1::Parameter& parameter : header.layout().parameters()) {
      if (parameter.type() != v1::Parameter::FLOAT32) {
        return absl::DataLossError(absl::StrCat("parameter ", Printable(parameter.name()), " is not float32"));
      }
      tensors_.push_back({parameter.name(), {parameter.shape().begin(), parameter.shape().end()}});
    }
    total_ = CountValues(tensors_);
    absl::StatusOr<SafetensorsFile> file =
        SafetensorsFile::Create(options_.path, tensors_, ExportMetadata(job_, layout_));
    if (!file.ok()) return file.status();
    file_.emplace(*std::move(file));
    return absl::OkStatus();
  }

  absl::Status CompareWithFirst(int index, const v1::Layout& layout) {
    if (FindDifference(layout_, layout).has_value()) return absl::DataLossError("its layout is not that of shard 0");
    if (layout.model().SerializeAsString() == layout_.model().SerializeAsString()) return absl::OkStatus();
    notes_.push_back(absl::StrCat("server ", job_.servers(index), " describes the model otherwise than server ",
                                  job_.servers(0),
                                  ", by which the file goes: the job's groups have read different "
                                  "training data, or were started by different versions of Hooke"));
    return absl::OkStatus();
  }

  // Blocks come in order, and a shard begins where the previous one ends.
  absl::Status TakeBlock(const v1::Block& block) {
    const uint64_t count = block.values().size() / 4;
    if (block.values().size() % 4 != 0 || count == 0 || block.first() != next_ || count > total_ - next_) {
      return absl::DataLossError(absl::StrCat("a block of ", block.values().size(), " bytes at value ", block.first(),
                                              " came where value ", next_, " of ", total_, " was due"));
    }
    if (absl::Status status = file_->Write(next_, block.values()); !status.ok()) return status;
    next_ += count;
    return absl::OkStatus();
  }

  absl::Status Explain(const std::string& address, const absl::Status& status) const {
    const std::string message(status.message());
    switch (status.code()) {
      case absl::StatusCode::kDeadlineExceeded:
        return absl::UnavailableError(absl::StrCat("server ", address, " has not answered for ",
                                                   absl::FormatDuration(options_.silence), "; it holds part of job ",
                                                   job_.job_id(), ": try again when it is back"));
      case absl::StatusCode::kUnavailable:
        if (!IsConnectionFailure(message)) break;
        return absl::UnavailableError(absl::StrCat("cannot reach server ", address, ": ", ConnectionTrouble(message),
                                                   "; it holds part of job ", job_.job_id(),
                                                   ": try again when it is back"));
      // No explanation is needed: the error is about our own file, or the server's text is clear enough.
      case absl::StatusCode::kFailedPrecondition:
        return status;
      // We did not cancel the call. A server that shuts down cuts its calls with this code.
      case absl::StatusCode::kCancelled:
        return absl::AbortedError(absl::StrCat("server ", address, " has cut the call; try again"));
      default:
        break;
    }
    return absl::Status(status.code(), absl::StrCat("server ", address, ": ", Printable(message),
                                                    "; try again, and if that repeats, see the log of that server"));
  }

  const v1::JobStatus& job_;
  const ExportOptions& options_;
  v1::Layout layout_;  // From shard 0; the other shards must have the same parameters.
  std::vector<std::string> notes_;
  std::vector<TensorShape> tensors_;
  uint64_t total_ = 0;
  uint64_t next_ = 0;  // Index of the next value to come.
  std::optional<SafetensorsFile> file_;
};

}  // namespace

absl::StatusOr<Exported> ExportCenter(const v1::JobStatus& job, const ExportOptions& options) {
  if (absl::Status status = CheckNewFile(options.path, options.force); !status.ok()) return status;
  if (job.servers().empty()) {
    return absl::FailedPreconditionError(absl::StrCat("job ", job.job_id(), " (", JobStateText(job.state()),
                                                      ") has no center yet; export it after its first step"));
  }
  CenterFile file(job, options);
  for (int i = 0; i < job.servers_size(); ++i) {
    if (absl::Status status = file.PullShard(i); !status.ok()) return status;
  }
  return file.Finish();
}

}  // namespace hooke
