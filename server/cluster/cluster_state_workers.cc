// ClusterState: the workers' sessions and the groups that they run.

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "job/job_state.h"
#include "server/cluster/cluster_state.h"
#include "server/cluster/shortened.h"
#include "wire/worker_limits.h"

namespace hooke {
namespace {

bool IsIpAddress(const std::string& text) {
  in6_addr address;  // An in6_addr has room for an IPv4 or an IPv6 address.
  return inet_pton(AF_INET, text.c_str(), &address) == 1 || inet_pton(AF_INET6, text.c_str(), &address) == 1;
}

absl::Status CheckHello(const v1::WorkerHello& hello) {
  for (const auto& [what, value] : {std::pair("name", hello.name()), std::pair("site", hello.site())}) {
    if (IsNodeName(value)) continue;
    return absl::InvalidArgumentError(absl::StrCat("a worker's ", what, " is \"", absl::CHexEscape(value.substr(0, 80)),
                                                   "\", allowed are 1 to 63 characters of [A-Za-z0-9._-]"));
  }
  if (hello.instance().empty() || hello.instance().size() > 128) {
    return absl::InvalidArgumentError("a worker's instance must have 1 to 128 bytes");
  }
  // The address becomes a word of mpirun's command line on other workers.
  if (!hello.address().empty() && !IsIpAddress(hello.address())) {
    return absl::InvalidArgumentError("a worker's address must be an IP address, or empty");
  }
  if (hello.only_job().size() > 128) return absl::InvalidArgumentError("a worker's only_job has at most 128 bytes");
  if (hello.gpus() > kGpusMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("worker ", hello.name(), " has ", hello.gpus(), " GPUs, allowed is 0 to ", kGpusMax));
  }
  if (hello.mpi().size() > 64) return absl::InvalidArgumentError("a worker's mpi must have at most 64 bytes");
  if (hello.interfaces_size() > kInterfacesMax) {
    return absl::InvalidArgumentError(absl::StrCat("a worker must have at most ", kInterfacesMax, " interfaces"));
  }
  for (const v1::NodeInterface& one : hello.interfaces()) {
    if (one.name().size() <= 64 && one.address().size() <= 64) continue;
    return absl::InvalidArgumentError("the name and the address of a worker's interface must have at most 64 bytes");
  }
  if (hello.slots() < 1 || hello.slots() > kSlotsMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("worker ", hello.name(), " has ", hello.slots(), " slots, allowed is 1 to ", kSlotsMax));
  }
  if (static_cast<uint32_t>(hello.running_size()) > 2 * kSlotsMax) {
    return absl::InvalidArgumentError(absl::StrCat("worker ", hello.name(), " runs ", hello.running_size(), " groups"));
  }
  return absl::OkStatus();
}

v1::WorkerCommand EchoCommand(const v1::WorkerHeartbeat& heartbeat, Instant now) {
  v1::WorkerCommand command;
  command.mutable_clock()->set_sent_ns(heartbeat.sent_ns());
  command.mutable_clock()->set_unix_ns(absl::ToUnixNanos(now.wall));
  return command;
}

}  // namespace

absl::StatusOr<SessionId> ClusterState::Hello(const v1::WorkerHello& hello, Instant now) {
  absl::Status status = CheckHello(hello);
  if (!status.ok()) return status;
  Worker* present = workers_.Find(hello.name());
  const bool known_before = present != nullptr;
  if (!known_before && workers_.size() >= known::kNodesMax) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the coordinator knows ", known::kNodesMax, " workers, and takes no more"));
  }
  if (known_before && present->session != 0) {
    Worker& old = *present;
    const bool lives = LivenessOf(old.last_heard, now, options_.liveness) != Liveness::kLost;
    if (old.instance != hello.instance() && lives) {
      return absl::AlreadyExistsError(absl::StrCat("a worker named ", hello.name(), " is connected already (site ",
                                                   old.site, "): give this one another name with --name"));
    }
    effects_.closed[old.session] = absl::StrCat("worker ", hello.name(), " has connected again");
    workers_.EndSession(old);
  }
  Worker& worker = workers_.Add(hello.name(), now);
  worker.instance = hello.instance();
  worker.site = hello.site();
  worker.slots = hello.slots();
  worker.allows_commands = hello.allows_commands();
  worker.address = hello.address();
  worker.mpi = hello.mpi();
  worker.only_job = hello.only_job();
  worker.gpus = hello.gpus();
  worker.interfaces.assign(hello.interfaces().begin(), hello.interfaces().end());
  worker.version = Shortened(hello.version(), 64);
  workers_.BeginSession(worker);
  worker.ends = false;
  const bool was_lost = std::exchange(worker.lost, false);
  const Before before = known_before ? (was_lost ? Before::kLost : Before::kKnown) : Before::kUnknown;
  rooms_.Changed(worker.name);
  effects_.LogDaemon(absl::StrCat("worker ", worker.name, " at site ", worker.site, " joined with ", worker.slots,
                                  " slots, running ", hello.running_size(), " groups"),
                     now);
  v1::WorkerCommand welcome;
  welcome.mutable_welcome()->set_takes_batches(true);
  welcome.mutable_welcome()->set_lease_ms(static_cast<uint64_t>(absl::ToInt64Milliseconds(options_.liveness.lease)));
  effects_.Send(worker.session, std::move(welcome));
  WorkerAnswers(worker, now);
  workers_.Expect(worker);
  TakeOver(worker, hello, now);
  AwaitOthers(worker, before, now);
  AskToLeave(worker, now);
  Place(now);
  return worker.session;
}

void ClusterState::TakeOver(Worker& worker, const v1::WorkerHello& hello, Instant now) {
  worker.occupants.clear();
  worker.unconfirmed.clear();
  for (const v1::GroupId& id : hello.running()) {
    const GroupKey key = KeyOf(id);
    Job* job = jobs_.Find(key.job_id);
    const JobRecord* record = job == nullptr ? nullptr : &job->record;
    // Only the newest incarnation's ranks are recorded. An older incarnation counts as all slots of the worker until it
    // has ended.
    const bool recorded = record != nullptr && key.group < record->groups.size() &&
                          record->groups[key.group].incarnation == key.incarnation;
    const GroupPart* part = recorded ? PartOn(record->groups[key.group], worker.name) : nullptr;
    worker.occupants[key] = part != nullptr ? part->ranks : worker.slots;
    // The job may have failed just before the coordinator restarted, while this group still printed.
    if (job != nullptr) AwaitLastWords(*job, now);
    const bool cut_off = recorded && job->live[key.group].cut_off.has_value();
    const AdoptionDecision decision = AdoptGroup(key, worker.name, record, cut_off);
    if (decision.what == Adoption::kTakeBack) {
      TakeBack(*job, job->record.groups[key.group], worker, now);
      continue;
    }
    if (decision.what == Adoption::kAdopt) {
      effects_.Log(job->record.job_id, absl::StrCat("group ", key.group, " goes on on worker ", worker.name), now);
      continue;
    }
    effects_.LogDaemon(absl::StrCat("group ", key.group, " of ", Shortened(key.job_id, 80), " on worker ", worker.name,
                                    " is stopped: ", Shortened(decision.reason)),
                       now);
    effects_.SendStop(worker.session, key, Shortened(decision.reason));
  }
  for (auto& [number, job] : jobs_) {
    if (HasEnded(job.record.state)) continue;
    for (const GroupRecord& group : job.record.groups) {
      const GroupKey key{job.record.job_id, group.group, group.incarnation};
      const GroupPart* part = PartOn(group, worker.name);
      if (part == nullptr || worker.occupants.count(key) > 0) continue;
      if (job.live[group.group].cut_off.has_value()) NoteNotRunning(job, group);
      if (!IsPlaced(group.state) || part->ended) continue;
      worker.occupants[key] = part->ranks;
      worker.unconfirmed.insert(key);
    }
  }
}

// Takes the worker's unconfirmed groups for lost, at its first heartbeat. A worker sends its unacknowledged events
// between its hello and that heartbeat. So a group that is placed there, but neither runs nor has ended, is lost.
void ClusterState::ConfirmMissing(Worker& worker, Instant now) {
  if (worker.unconfirmed.empty()) return;
  rooms_.Changed(worker.name);
  bool noted = false;  // Avoidance counts the groups that are lost here as one death of the worker.
  const std::string why = absl::StrCat("worker ", worker.name, " does not run it any more");
  for (const GroupKey& key : std::exchange(worker.unconfirmed, {})) {
    worker.occupants.erase(key);
    Job* job = jobs_.Find(key.job_id);
    // Meanwhile the job may have got fewer groups.
    if (job == nullptr || key.group >= job->record.groups.size()) continue;
    GroupRecord& group = job->record.groups[key.group];
    if (group.incarnation != key.incarnation || !IsPlaced(group.state)) continue;
    if (!std::exchange(noted, true)) NoteDeath(worker, {key.job_id, key.group, now.steady, why}, now);
    LoseGroup(*job, group, why, now);
  }
  Place(now);
}

absl::Status ClusterState::Message(SessionId session, const v1::WorkerMessage& message, Instant now) {
  Worker* worker = workers_.OfSession(session);
  if (worker == nullptr) return absl::AbortedError("this session was ended: connect again");
  WorkerAnswers(*worker, now);
  switch (message.message_case()) {
    case v1::WorkerMessage::kHeartbeat:
      if (message.heartbeat().sent_ns() != 0) effects_.Send(session, EchoCommand(message.heartbeat(), now));
      ConfirmMissing(*worker, now);
      return absl::OkStatus();
    case v1::WorkerMessage::kEvent:
      Event(*worker, message.event(), now);
      return absl::OkStatus();
    case v1::WorkerMessage::kLog:
      TakeLog(*worker, message.log(), now);
      return absl::OkStatus();
    case v1::WorkerMessage::kBatch:
      return Batch(session, message.batch(), now);
    case v1::WorkerMessage::kEnds:
      rooms_.Changed(worker->name);
      if (!std::exchange(worker->ends, true))
        effects_.LogDaemon(absl::StrCat("worker ", worker->name, " is about to end"), now);
      AskToLeave(*worker, now);
      return absl::OkStatus();
    case v1::WorkerMessage::kGoodbye: {
      const std::string why = absl::StrCat("worker ", worker->name, " has ended");
      effects_.LogDaemon(why, now);
      worker->silent = true;  // The worker said that it ends, so users get no notice that it does not answer.
      LoseWorker(*worker, why, Groups::kHaveEnded, now);
      Place(now);
      return absl::OkStatus();
    }
    default:
      return absl::InvalidArgumentError(
          "after its hello a worker sends heartbeats, events, log lines, and that it ends");
  }
}

absl::Status ClusterState::Batch(SessionId session, const v1::WorkerMessages& batch, Instant now) {
  if (batch.messages_size() > kBatchMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("a batch has ", batch.messages_size(), " messages, allowed are ", kBatchMax));
  }
  for (const v1::WorkerMessage& message : batch.messages()) {
    if (message.has_heartbeat() || message.has_event() || message.has_log()) {
      if (absl::Status status = Message(session, message, now); !status.ok()) return status;
      continue;
    }
    return absl::InvalidArgumentError("a batch has only heartbeats, events and log lines");
  }
  return absl::OkStatus();
}

void ClusterState::Gone(SessionId session, Instant now) {
  Worker* worker = workers_.OfSession(session);
  if (worker == nullptr) return;
  workers_.EndSession(*worker);
  rooms_.Changed(worker->name);
  effects_.LogDaemon(absl::StrCat("the stream of worker ", worker->name, " has ended"), now);
}

void ClusterState::EndSession(SessionId session, absl::string_view why, Instant now) {
  effects_.LogDaemon(absl::StrCat("session ", session, " is ended: ", why), now);
  Gone(session, now);
}

void ClusterState::WorkerAnswers(Worker& worker, Instant now) {
  worker.last_heard = now;
  if (!worker.has_room) rooms_.Changed(worker.name);
  if (!std::exchange(worker.silent, false)) return;
  workers_.Expect(worker);
  PlaceSoon();
  const std::string what = absl::StrCat("worker ", worker.name);
  effects_.LogDaemon(absl::StrCat(what, " answers again"), now);
  for (auto& [number, job] : jobs_) {
    if (HasEnded(job.record.state)) continue;
    bool told = false;
    for (const GroupRecord& group : job.record.groups) {
      if (PartOn(group, worker.name) == nullptr || !IsPlaced(group.state)) continue;
      RemoveSilence(job, group, what);
      if (!std::exchange(told, true)) Notice(job, absl::StrCat(what, " answers again"), now);
    }
  }
}

}  // namespace hooke
