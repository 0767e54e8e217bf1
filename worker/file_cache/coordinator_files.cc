#include "worker/file_cache/coordinator_files.h"

#include "absl/strings/str_cat.h"
#include "proto/coordinator.grpc.pb.h"
#include "wire/channel.h"
#include "wire/timed_reader.h"

namespace hooke {
namespace {

constexpr absl::Duration kAskEvery = absl::Milliseconds(200);

absl::Status Failed(const FetchOptions& options, absl::string_view why) {
  return absl::UnavailableError(
      absl::StrCat("the job's files cannot be fetched from the coordinator at ", options.coordinator, ": ", why));
}

}  // namespace

absl::Status FetchFromCoordinator(const FetchOptions& options, const FetchWish& wish,
                                  const std::function<absl::Status(const v1::FileChunk&)>& take,
                                  const std::function<absl::Status()>& stopped) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  // A connection of its own, so that commands and events of the worker do not wait behind files.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  const auto stub = v1::Coordinator::NewStub(OpenChannel(options.coordinator, arguments, options.credential));
  v1::FetchFilesRequest request;
  request.set_job_id(wish.job_id);
  for (const std::string& sha256 : wish.sha256) request.add_sha256(sha256);
  TimedReader<v1::FileChunk> reader([&](grpc::ClientContext* context, grpc::CompletionQueue* queue) {
    return stub->PrepareAsyncFetchFiles(context, request, queue);
  });
  absl::Time heard = options.clock();
  while (true) {
    if (absl::Status stop = stopped(); !stop.ok()) return stop;
    const absl::StatusOr<v1::FileChunk> chunk = reader.Next(kAskEvery);
    if (chunk.ok()) {
      if (absl::Status status = take(*chunk); !status.ok()) return status;
      // Read after `take`: a slow disk of this worker does not count as silence of the coordinator.
      heard = options.clock();
    } else if (absl::IsOutOfRange(chunk.status())) {
      return absl::OkStatus();
    } else if (!absl::IsDeadlineExceeded(chunk.status())) {
      return Failed(options, chunk.status().message());
    } else if (options.clock() > heard + options.silent_max) {
      return Failed(options, absl::StrCat("it was silent for ", absl::FormatDuration(options.silent_max)));
    }
  }
}

}  // namespace hooke
