#include "server/coordinator/fake_worker.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"

namespace hooke {
namespace {

void SetId(const GroupKey& key, v1::GroupId* id) {
  id->set_job_id(key.job_id);
  id->set_group(key.group);
  id->set_incarnation(key.incarnation);
}

}  // namespace

FakeWorker::FakeWorker(std::string name, uint32_t slots, std::string site)
    : name_(std::move(name)), site_(std::move(site)), slots_(slots) {}

absl::Status FakeWorker::Connect(Coordinator& coordinator, Instant now) {
  v1::WorkerHello hello;
  hello.set_name(name_);
  hello.set_instance(absl::StrCat(name_, "-", instance_));
  hello.set_site(site_);
  hello.set_slots(slots_);
  hello.set_allows_commands(allows_commands_);
  hello.set_address(address_);
  hello.set_gpus(gpus_);
  hello.set_only_job(only_job_);
  if (!address_.empty()) {
    v1::NodeInterface* interface = hello.add_interfaces();
    interface->set_name("eth0");
    interface->set_address(address_);
    interface->set_megabits(1000);
  }
  hello.set_mpi("openmpi");
  std::set<GroupKey> running;
  for (const auto& [key, run] : running_) running.insert(key);
  for (const v1::GroupEvent& event : unseen_) running.insert(KeyOf(event.group()));
  for (const GroupKey& key : running) SetId(key, hello.add_running());
  absl::StatusOr<SessionId> session = coordinator.Hello(hello, now);
  if (!session.ok()) return session.status();
  coordinator_ = &coordinator;
  session_ = *session;
  welcomed_ = false;
  for (const v1::GroupEvent& event : std::exchange(unseen_, {})) SendEvent(event, now);
  return absl::OkStatus();
}

void FakeWorker::Disconnect(Instant now) {
  if (session_ != 0) coordinator_->Gone(session_, now);
  session_ = 0;
}

absl::Status FakeWorker::AnnounceEnd(Instant now) {
  v1::WorkerMessage message;
  message.mutable_ends();
  return coordinator_->Message(session_, message, now);
}

absl::Status FakeWorker::SayGoodbye(Instant now) {
  v1::WorkerMessage message;
  message.mutable_goodbye();
  absl::Status status = coordinator_->Message(session_, message, now);
  Crash(now);
  return status;
}

void FakeWorker::Crash(Instant now) {
  Disconnect(now);
  running_.clear();
  unseen_.clear();
  ++instance_;
}

void FakeWorker::Receive(Instant now, bool linger) {
  if (session_ == 0) return;
  const Coordinator::Outgoing outgoing = coordinator_->TakeCommands(session_);
  for (const v1::WorkerCommand& command : outgoing.commands) {
    if (command.has_welcome()) {
      welcomed_ = true;
    } else if (command.has_clock()) {
      ++echoes_;
    } else if (command.has_start()) {
      const v1::GroupStart& start = command.start().group();
      const GroupKey key{start.job_id(), start.group(), start.incarnation()};
      running_[key].start = command.start();
      started_.push_back(key);
      if (command.start().parts().empty() || never_ready_) continue;
      SayReady(key, now);
    } else if (command.has_launch()) {
      const auto run = running_.find(KeyOf(command.launch().group()));
      if (run != running_.end()) run->second.launches.push_back(command.launch());
    } else if (command.has_stop()) {
      const GroupKey key = KeyOf(command.stop().group());
      stop_reasons_.push_back(command.stop().reason());
      if (command.stop().leaves()) ++leaves_;
      auto run = running_.find(key);
      if (run != running_.end()) run->second.stopping = true;
    } else if (command.has_seen()) {
      const GroupKey key = KeyOf(command.seen().group());
      const uint64_t number = command.seen().number();
      unseen_.erase(std::remove_if(unseen_.begin(), unseen_.end(),
                                   [&](const v1::GroupEvent& event) {
                                     return KeyOf(event.group()) == key && event.number() <= number;
                                   }),
                    unseen_.end());
    }
  }
  if (!outgoing.open) Disconnect(now);
  if (linger) return;
  std::vector<GroupKey> stopped;
  for (const auto& [key, run] : running_) {
    if (run.stopping) stopped.push_back(key);
  }
  for (const GroupKey& key : stopped) End(key, absl::CancelledError("stopped"), now);
}

void FakeWorker::Heartbeat(Instant now) {
  if (session_ == 0) return;
  v1::WorkerMessage message;
  message.mutable_heartbeat()->set_sent_ns(1);
  if (!coordinator_->Message(session_, message, now).ok()) Disconnect(now);
}

v1::GroupEvent FakeWorker::NewEvent(const GroupKey& key) {
  v1::GroupEvent event;
  SetId(key, event.mutable_group());
  event.set_number(++running_.at(key).events);
  return event;
}

void FakeWorker::SendEvent(v1::GroupEvent event, Instant now) {
  unseen_.push_back(event);
  if (session_ == 0) return;
  v1::WorkerMessage message;
  *message.mutable_event() = std::move(event);
  if (!coordinator_->Message(session_, message, now).ok()) Disconnect(now);
}

void FakeWorker::Log(const GroupKey& key, const std::string& line, Instant now) {
  v1::WorkerMessage message;
  SetId(key, message.mutable_log()->mutable_group());
  message.mutable_log()->add_lines(line);
  if (!coordinator_->Message(session_, message, now).ok()) Disconnect(now);
}

void FakeWorker::Repeat(Instant now) {
  if (session_ == 0 || unseen_.empty()) return;
  v1::WorkerMessage message;
  *message.mutable_event() = unseen_.back();
  if (!coordinator_->Message(session_, message, now).ok()) Disconnect(now);
}

void FakeWorker::Started(const GroupKey& key, absl::Duration preparing, Instant now) {
  v1::GroupEvent event = NewEvent(key);
  event.mutable_started()->set_launcher_pid(7);
  event.mutable_started()->set_preparing_us(static_cast<uint64_t>(absl::ToInt64Microseconds(preparing)));
  SendEvent(std::move(event), now);
}

void FakeWorker::SayReady(const GroupKey& key, Instant now) {
  v1::GroupEvent event = NewEvent(key);
  event.mutable_ready();
  SendEvent(std::move(event), now);
}

void FakeWorker::Remote(const GroupKey& key, const std::string& address, const std::vector<std::string>& arguments,
                        Instant now) {
  v1::GroupEvent event = NewEvent(key);
  event.mutable_remote()->set_address(address);
  for (const std::string& argument : arguments) event.mutable_remote()->add_arguments(argument);
  SendEvent(std::move(event), now);
}

void FakeWorker::Progress(const GroupKey& key, uint64_t step, Instant now) {
  Works(key, step, absl::ZeroDuration(), now);
}

void FakeWorker::Works(const GroupKey& key, uint64_t step, absl::Duration computed, Instant now) {
  v1::GroupEvent event = NewEvent(key);
  v1::RankProgress* progress = Report(event)->mutable_progress();
  progress->set_step(step);
  progress->set_steps_total(100);
  progress->set_compute_seconds(absl::ToDoubleSeconds(computed));
  progress->set_phase(v1::RankProgress::COMPUTE);
  running_.at(key).step = step;
  SendEvent(std::move(event), now);
}

void FakeWorker::Send(const GroupKey& key, uint32_t rank, const v1::RankEvent& rank_event, Instant now) {
  v1::GroupEvent event = NewEvent(key);
  event.mutable_report()->set_rank(rank);
  *Report(event) = rank_event;
  SendEvent(std::move(event), now);
}

void FakeWorker::Evaluated(const GroupKey& key, double accuracy, Instant now) {
  v1::GroupEvent event = NewEvent(key);
  Report(event)->mutable_evaluated()->set_accuracy(accuracy);
  SendEvent(std::move(event), now);
}

void FakeWorker::Silence(const GroupKey& key, bool silent, Instant now) {
  v1::GroupEvent event = NewEvent(key);
  v1::SilenceChanged* change = event.mutable_silence();
  change->set_silent(silent);
  change->mutable_silence()->set_what("rank 1 (pid 1234)");
  change->mutable_silence()->set_since_unix_ms(absl::ToUnixMillis(now.wall));
  change->mutable_silence()->set_step(running_.at(key).step);
  SendEvent(std::move(event), now);
}

void FakeWorker::Failed(const GroupKey& key, const absl::Status& status, const std::string& server, Instant now) {
  v1::GroupEvent event = NewEvent(key);
  v1::RankFailed* failed = Report(event)->mutable_failed();
  failed->set_code(static_cast<int>(status.code()));
  failed->set_message(std::string(status.message()));
  failed->set_server(server);
  SendEvent(std::move(event), now);
}

void FakeWorker::End(const GroupKey& key, const absl::Status& status, Instant now) {
  v1::GroupEvent event = NewEvent(key);
  event.mutable_ended()->set_ok(status.ok());
  event.mutable_ended()->set_code(static_cast<int>(status.code()));
  event.mutable_ended()->set_message(std::string(status.message()));
  running_.erase(key);
  SendEvent(std::move(event), now);
}

uint32_t FakeWorker::slots_used() const {
  uint32_t used = 0;
  for (const auto& [key, run] : running_) {
    const bool whole = run.start.parts().empty();
    used += whole ? run.start.ranks() : run.start.parts(static_cast<int>(run.start.part())).ranks();
  }
  return used;
}

}  // namespace hooke
