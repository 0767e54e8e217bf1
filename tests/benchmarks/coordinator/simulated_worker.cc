#include "tests/benchmarks/coordinator/simulated_worker.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "clocks/steady_time.h"
#include "wire/grpc_status.h"

namespace hooke {
namespace {

constexpr absl::Duration kHeartbeatEvery = absl::Seconds(1);  // SessionOptions::heartbeat_every.

std::shared_ptr<grpc::Channel> OwnChannel(const std::string& coordinator) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return grpc::CreateCustomChannel(coordinator, grpc::InsecureChannelCredentials(), arguments);
}

}  // namespace

SimulatedWorker::SimulatedWorker(SimulatedWorkerOptions options)
    : options_(std::move(options)), stub_(v1::Coordinator::NewStub(OwnChannel(options_.coordinator))) {}

SimulatedWorker::~SimulatedWorker() {
  if (!started_) return;
  context_.TryCancel();
  done_.WaitForNotification();
}

void SimulatedWorker::Start() {
  started_ = true;
  v1::WorkerHello* hello = written_.mutable_hello();
  hello->set_name(options_.name);
  hello->set_instance(absl::StrCat(options_.name, "-1"));
  hello->set_site("benchmark");
  hello->set_slots(options_.slots);
  hello->set_version("0.0.0");
  hello->set_takes_batches(true);
  {
    absl::MutexLock lock(&mutex_);
    next_heartbeat_ = SteadyTime() + options_.shift * kHeartbeatEvery;
  }
  stub_->async()->WorkerSession(&context_, this);
  StartWrite(&written_);
  StartRead(&read_);
  StartCall();
}

bool SimulatedWorker::welcomed() {
  absl::MutexLock lock(&mutex_);
  return welcomed_;
}

void SimulatedWorker::Tick(absl::Time now, bool quiet) {
  {
    absl::MutexLock lock(&mutex_);
    for (Group& group : groups_) {
      if (quiet) break;
      for (v1::GroupEvent& event : group.ranks.Due(now, sent_)) outbox_.AddEvent(group.id, std::move(event));
    }
  }
  Pump();
}

Sent SimulatedWorker::TakeSent() {
  absl::MutexLock lock(&mutex_);
  return std::exchange(sent_, {});
}

bool SimulatedWorker::AllSeen() {
  absl::MutexLock lock(&mutex_);
  return outbox_.empty();
}

std::map<std::string, uint64_t> SimulatedWorker::Steps() {
  absl::MutexLock lock(&mutex_);
  std::map<std::string, uint64_t> steps;
  for (const Group& group : groups_) {
    steps[absl::StrCat(group.id.job_id(), " ", group.id.group())] = group.ranks.step();
  }
  return steps;
}

absl::Status SimulatedWorker::status() {
  absl::MutexLock lock(&mutex_);
  return status_;
}

void SimulatedWorker::OnReadDone(bool ok) {
  if (!ok) return;  // The stream's end; OnDone tells why.
  {
    absl::MutexLock lock(&mutex_);
    Obey(read_);
  }
  Pump();
  StartRead(&read_);
}

void SimulatedWorker::OnWriteDone(bool ok) {
  if (!ok) return;
  {
    absl::MutexLock lock(&mutex_);
    writing_ = false;
  }
  Pump();
}

void SimulatedWorker::OnDone(const grpc::Status& status) {
  {
    absl::MutexLock lock(&mutex_);
    const absl::Status why =
        status.ok() ? absl::UnavailableError("the coordinator ended the stream") : FromGrpc(status);
    if (status_.ok()) status_ = absl::Status(why.code(), absl::StrCat("worker ", options_.name, ": ", why.message()));
  }
  done_.Notify();
}

void SimulatedWorker::Obey(const v1::WorkerCommand& command) {
  if (command.has_welcome()) {
    welcomed_ = true;
  } else if (command.has_batch()) {
    for (const v1::WorkerCommand& one : command.batch().commands()) Obey(one);
  } else if (command.has_seen()) {
    outbox_.Seen(command.seen().group(), command.seen().number());
  } else if (command.has_start()) {
    const v1::GroupStart& start = command.start().group();
    v1::GroupId id;
    id.set_job_id(start.job_id());
    id.set_group(start.group());
    id.set_incarnation(start.incarnation());
    // Groups of one worker start together, but report at different times.
    double shift = options_.shift + 0.37 * static_cast<double>(groups_.size());
    shift -= std::floor(shift);
    const SimulatedRanks ranks(command.start().ranks(), SteadyTime() + shift * kProgressEvery, shift);
    for (v1::GroupEvent& event : SimulatedRanks::FirstEvents(command.start().ranks())) {
      outbox_.AddEvent(id, std::move(event));
    }
    groups_.push_back({id, ranks});
  } else if (command.has_stop()) {
    status_ = absl::InternalError(
        absl::StrCat("worker ", options_.name, " was told to stop a group: ", command.stop().reason()));
  }
}

std::vector<v1::WorkerMessage> SimulatedWorker::TakeDue(absl::Time now) {
  const SendTimes times;
  if (!waits_since_.has_value() && outbox_.HasNext()) waits_since_ = now;
  if (now < times.SendAt(outbox_.HasUrgent(), waits_since_, next_heartbeat_)) return {};
  std::vector<v1::WorkerMessage> messages = outbox_.TakeSome();
  waits_since_.reset();
  // If more messages wait than one write takes, the rest is due at once.
  if (outbox_.HasNext()) waits_since_ = absl::InfinitePast();
  if (now < next_heartbeat_ && (messages.empty() || !times.TakesHeartbeat(now, next_heartbeat_))) return messages;
  messages.emplace_back().mutable_heartbeat()->set_sent_ns(absl::ToUnixNanos(now));
  next_heartbeat_ = now + kHeartbeatEvery;
  ++sent_.heartbeats;
  return messages;
}

void SimulatedWorker::Pump() {
  {
    absl::MutexLock lock(&mutex_);
    if (writing_) return;
    std::vector<v1::WorkerMessage> messages = TakeDue(SteadyTime());
    if (messages.empty()) return;
    ++sent_.writes;
    written_ = InOne(std::move(messages));
    writing_ = true;
  }
  StartWrite(&written_);
}

}  // namespace hooke
