#include "worker/daemon/fake_coordinator.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace hooke {

FakeCoordinator::FakeCoordinator(Options options) : options_(std::move(options)) {
  grpc::ServerBuilder builder;
  builder.AddListeningPort(absl::StrCat("127.0.0.1:", options_.port), grpc::InsecureServerCredentials(), &port_);
  builder.RegisterService(this);
  server_ = builder.BuildAndStart();
}

FakeCoordinator::~FakeCoordinator() {
  if (server_ != nullptr) server_->Shutdown(std::chrono::system_clock::now());
}

std::optional<v1::WorkerCommand> FakeCoordinator::Take(const v1::WorkerMessage& message) {
  v1::WorkerCommand answer;
  if (message.has_batch()) {
    {
      absl::MutexLock lock(&mutex_);
      ++batches_;
    }
    for (const v1::WorkerMessage& one : message.batch().messages()) {
      if (const auto to_one = Take(one); to_one.has_value()) *answer.mutable_batch()->add_commands() = *to_one;
    }
    return answer.has_batch() ? std::optional(answer) : std::nullopt;
  }
  {
    absl::MutexLock lock(&mutex_);
    received_.push_back(message);
  }
  if (message.has_hello() && options_.welcome) {
    answer.mutable_welcome()->set_takes_batches(options_.batches);
    answer.mutable_welcome()->set_lease_ms(options_.lease_ms);
    return answer;
  }
  if (!message.has_event() || !options_.ack) return std::nullopt;
  *answer.mutable_seen()->mutable_group() = message.event().group();
  answer.mutable_seen()->set_number(message.event().number());
  return answer;
}

grpc::Status FakeCoordinator::WorkerSession(grpc::ServerContext*, Stream* stream) {
  v1::WorkerMessage message;
  while (stream->Read(&message)) {
    const std::optional<v1::WorkerCommand> answer = Take(message);
    if (message.has_hello() && !options_.refuse.ok()) return options_.refuse;
    if (!answer.has_value()) continue;
    absl::MutexLock lock(&mutex_);
    stream_ = stream;
    stream->Write(*answer);
  }
  absl::MutexLock lock(&mutex_);
  stream_ = nullptr;
  return grpc::Status::OK;
}

grpc::Status FakeCoordinator::FetchFiles(grpc::ServerContext*, const v1::FetchFilesRequest* request,
                                         grpc::ServerWriter<v1::FileChunk>* writer) {
  for (const std::string& sha256 : request->sha256()) {
    const auto found = options_.files.find(sha256);
    if (found == options_.files.end()) return {grpc::StatusCode::NOT_FOUND, "no such content"};
    v1::FileChunk chunk;
    chunk.mutable_begins()->set_sha256(sha256);
    chunk.mutable_begins()->set_bytes(found->second.size());
    chunk.set_data(found->second);
    writer->Write(chunk);
  }
  return grpc::Status::OK;
}

bool FakeCoordinator::Send(const v1::WorkerCommand& command) {
  absl::MutexLock lock(&mutex_);
  auto connected = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return stream_ != nullptr; };
  return mutex_.AwaitWithTimeout(absl::Condition(&connected), absl::Seconds(20)) && stream_->Write(command);
}

v1::WorkerMessage FakeCoordinator::WaitFor(const std::function<bool(const v1::WorkerMessage&)>& wanted) {
  if (!WaitForCount(wanted, 1)) return {};
  const std::vector<v1::WorkerMessage> messages = received();
  return *std::find_if(messages.begin(), messages.end(), wanted);
}

bool FakeCoordinator::WaitForCount(const std::function<bool(const v1::WorkerMessage&)>& wanted, int64_t count) {
  absl::MutexLock lock(&mutex_);
  auto here = [this, &wanted, count]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return std::count_if(received_.begin(), received_.end(), wanted) >= count;
  };
  return mutex_.AwaitWithTimeout(absl::Condition(&here), absl::Seconds(20));
}

std::vector<v1::WorkerMessage> FakeCoordinator::received() {
  absl::MutexLock lock(&mutex_);
  return received_;
}

int FakeCoordinator::batches() {
  absl::MutexLock lock(&mutex_);
  return batches_;
}

v1::WorkerCommand StartCommand(const std::string& behaviour, uint32_t ranks, uint32_t incarnation) {
  v1::WorkerCommand command;
  v1::GroupStart* group = command.mutable_start()->mutable_group();
  group->set_job_id("test-1");
  group->mutable_job()->mutable_model()->set_name(behaviour);
  group->set_incarnation(incarnation);
  group->set_task(v1::GroupStart::TRAIN);
  command.mutable_start()->set_ranks(ranks);
  return command;
}

v1::WorkerCommand LeaveCommand(const std::string& reason) {
  v1::WorkerCommand command = StopCommand(reason);
  command.mutable_stop()->set_leaves(true);
  return command;
}

v1::WorkerCommand StopCommand(const std::string& reason, uint32_t incarnation) {
  v1::WorkerCommand command;
  command.mutable_stop()->mutable_group()->set_job_id("test-1");
  command.mutable_stop()->mutable_group()->set_incarnation(incarnation);
  command.mutable_stop()->set_reason(reason);
  return command;
}

bool IsStarted(const v1::WorkerMessage& message) { return message.event().has_started(); }

bool IsEnded(const v1::WorkerMessage& message) { return message.event().has_ended(); }

std::function<bool(const v1::WorkerMessage&)> IsHelloOf(uint32_t rank) {
  return [rank](const v1::WorkerMessage& message) {
    return message.event().report().rank() == rank && message.event().report().event().has_hello();
  };
}

std::function<bool(const v1::WorkerMessage&)> IsStep(uint32_t rank, uint64_t at_least) {
  return [rank, at_least](const v1::WorkerMessage& message) {
    const v1::RankReport& report = message.event().report();
    return report.rank() == rank && report.event().has_progress() && report.event().progress().step() >= at_least;
  };
}

std::function<bool(const v1::WorkerMessage&)> IsSilence(bool silent) {
  return [silent](const v1::WorkerMessage& message) {
    return message.event().has_silence() && message.event().silence().silent() == silent;
  };
}

std::function<bool(const v1::WorkerMessage&)> HasLogLine(const std::string& part) {
  return [part](const v1::WorkerMessage& message) {
    const auto& lines = message.log().lines();
    return std::any_of(lines.begin(), lines.end(),
                       [&part](const std::string& line) { return absl::StrContains(line, part); });
  };
}

}  // namespace hooke
