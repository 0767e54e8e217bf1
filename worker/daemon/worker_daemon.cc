#include "worker/daemon/worker_daemon.h"

#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "clocks/clock_offset.h"
#include "clocks/steady_time.h"
#include "wire/host_port.h"
#include "wire/metrics/metrics_page.h"
#include "wire/metrics/process_figures.h"
#include "wire/random_hex.h"
#include "wire/worker_limits.h"
#include "worker/daemon/group_part.h"
#include "worker/launch/find_program.h"
#include "worker/metrics/worker_metrics.h"

namespace hooke {
namespace {

constexpr absl::Duration kAskDiskEvery = absl::Seconds(5);

absl::Status CheckName(absl::string_view flag, const std::string& name) {
  if (IsNodeName(name)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(flag, " must be 1 to 63 letters, digits, '.', '_' or '-', got '", name, "'"));
}

absl::Status CheckProgram(absl::string_view flag, const std::string& path) {
  if (absl::StartsWith(path, "/") && IsProgram(path)) return absl::OkStatus();
  return absl::NotFoundError(absl::StrCat("there is no program ", path, ": name it with ", flag));
}

// Reads the machine's monotonic clock, by which the ranks' profiles give times.
int64_t MonotonicNanoseconds() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1000000000 + now.tv_nsec;
}

v1::GroupEvent RefusedEvent(const absl::Status& why) {
  v1::GroupEvent event;
  event.mutable_ended()->set_code(static_cast<int>(why.code()));
  event.mutable_ended()->set_message(std::string(why.message()));
  return event;
}

}  // namespace

absl::Status CheckWorkerOptions(const WorkerOptions& options) {
  if (options.slots < 1 || options.slots > kSlotsMax) {
    return absl::InvalidArgumentError(absl::StrCat("--slots must be 1 to ", kSlotsMax, ", got ", options.slots));
  }
  for (const absl::Duration timeout : {options.collective_timeout, options.exchange_timeout}) {
    if (timeout < kTimeoutMin || timeout > kTimeoutMax) {
      return absl::InvalidArgumentError("--collective-timeout and --exchange-timeout must be from 1ms to 24h");
    }
  }
  if (const absl::Status status = CheckDialAddress(options.coordinator); !status.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("--coordinator: ", status.message()));
  }
  if (options.allow_commands) {
    if (absl::Status status = CheckCommandsAllowed(options.coordinator, options.token); !status.ok()) return status;
  }
  if (!absl::StartsWith(options.state_dir, "/")) {
    return absl::InvalidArgumentError(
        absl::StrCat("--state-dir must be an absolute path, got '", options.state_dir, "'"));
  }
  for (const absl::Status& status :
       {CheckName("--name", options.name), CheckName("--site", options.site),
        CheckProgram("--rank-binary", options.launch.rank_binary), CheckProgram("--mpirun", options.launch.mpirun)}) {
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status CheckCommandsAllowed(absl::string_view coordinator, const ClusterToken& token) {
  const absl::StatusOr<HostPort> address = ParseHostPort(coordinator);
  if (!address.ok()) return address.status();
  if (address->IsLoopback() || !token.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "--allow-commands is refused with --coordinator ", coordinator,
      ": other machines reach that cluster, and whoever reaches it could run any program here. Such a cluster needs a "
      "token: give --token-file here and to every other program of it. Or use a coordinator at 127.0.0.1, as `hooke "
      "up` "
      "starts one, or leave --allow-commands out"));
}

absl::StatusOr<std::unique_ptr<WorkerDaemon>> WorkerDaemon::Start(WorkerOptions options) {
  if (absl::Status status = CheckWorkerOptions(options); !status.ok()) return status;
  absl::StatusOr<std::unique_ptr<WorkerFolder>> state_folder = WorkerFolder::Open(options.state_dir);
  if (!state_folder.ok()) return state_folder.status();
  absl::StatusOr<std::unique_ptr<FileCache>> files =
      FileCache::Open((*state_folder)->files(), options.files_cache_bytes);
  if (!files.ok()) return files.status();
  std::unique_ptr<WorkerDaemon> daemon(
      new WorkerDaemon(std::move(options), *std::move(state_folder), *std::move(files)));
  if (absl::Status status = daemon->OpenMetrics(); !status.ok()) return status;
  daemon->collector_ = std::thread([daemon = daemon.get()] { daemon->CollectEndedRuns(); });
  daemon->session_->Start();
  return daemon;
}

WorkerDaemon::WorkerDaemon(WorkerOptions options, std::unique_ptr<WorkerFolder> state_folder,
                           std::unique_ptr<FileCache> files)
    : options_(std::move(options)),
      state_folder_(std::move(state_folder)),
      files_(std::move(files)),
      cores_({options_.cores, std::max(options_.core_shares, options_.slots), options_.cores_file}),
      gpus_({options_.gpus, options_.slots, options_.gpus_file}),
      idle_since_(SteadyTime()),
      session_(std::make_unique<Session>(MakeSessionOptions(), MakeSessionCallbacks())) {}

void WorkerDaemon::LeaveAll() {
  absl::MutexLock lock(&mutex_);
  shutdown_ = true;
  session_->AnnounceEnd();
  for (auto& [name, running] : runs_) running.run->Leave(absl::CancelledError("its worker was shut down"));
}

bool WorkerDaemon::AnyRuns() {
  absl::MutexLock lock(&mutex_);
  return !runs_.empty();
}

absl::Status WorkerDaemon::StopAll(absl::Duration limit) {
  absl::MutexLock lock(&mutex_);
  shutdown_ = true;
  for (auto& [name, running] : runs_) {
    running.run->Stop(absl::CancelledError("its worker was shut down"));
  }
  const auto none = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return runs_.empty(); };
  if (changed_.Await(mutex_, SteadyTime() + limit, none)) return absl::OkStatus();
  std::vector<std::string> names;
  names.reserve(runs_.size());
  for (const auto& [name, running] : runs_) names.push_back(name);
  return absl::DeadlineExceededError(
      absl::StrCat("not ended within ", absl::FormatDuration(limit), ": ", absl::StrJoin(names, ", ")));
}

WorkerDaemon::~WorkerDaemon() {
  (void)StopAll(absl::ZeroDuration());
  metrics_.reset();
  // OpenMetrics failed, so that nothing was started.
  if (!collector_.joinable()) return;
  collector_.join();  // The collector ends after the last run has ended.
  const absl::Time limit = SteadyTime() + options_.flush_within;
  session_->Flush(limit);
  session_->SayGoodbye(limit);
  session_.reset();
}

absl::Status WorkerDaemon::Refusal() {
  absl::MutexLock lock(&mutex_);
  return refusal_;
}

SessionOptions WorkerDaemon::MakeSessionOptions() const {
  SessionOptions session;
  session.coordinator = options_.coordinator;
  session.credential = options_.token.ForCalls();
  session.hello.set_name(options_.name);
  session.hello.set_instance(RandomHex(2));
  session.hello.set_site(options_.site);
  session.hello.set_slots(options_.slots);
  session.hello.set_version(options_.version);
  session.hello.set_allows_commands(options_.allow_commands);
  session.hello.set_only_job(options_.only_job);
  session.hello.set_gpus(static_cast<uint32_t>(options_.gpus.size()));
  session.hello.set_address(options_.node.address);
  for (const InterfaceAddress& one : options_.node.addresses) {
    if (options_.node.address.empty() || session.hello.interfaces_size() == kInterfacesMax) break;
    v1::NodeInterface* interface = session.hello.add_interfaces();
    interface->set_name(one.interface);
    interface->set_address(TextOf(one.address));
    interface->set_megabits(one.address.megabits);
  }
  std::string library(NameOf(options_.launch.flavour));
  // MPICH and Intel MPI run no groups over IPv6.
  if (options_.launch.flavour == MpiFlavour::kOpenMpi && options_.node.is_ipv6()) library += "-ipv6";
  if (!options_.mpi_version.empty()) absl::StrAppend(&library, " ", options_.mpi_version);
  session.hello.set_mpi(library);
  session.machine = MachineClockName();
  session.clock = MonotonicNanoseconds;
  session.logger = options_.logger;
  return session;
}

SessionCallbacks WorkerDaemon::MakeSessionCallbacks() {
  SessionCallbacks callbacks;
  callbacks.running_groups = [this] { return RunningGroups(); };
  callbacks.start_group = [this](const v1::StartGroupCommand& start) { StartGroup(start); };
  callbacks.stop_group = [this](const v1::StopGroup& stop) { StopGroup(stop); };
  callbacks.launch_part = [this](const v1::LaunchPart& command) { LaunchPart(command); };
  callbacks.welcomed = [this] {
    if (options_.on_welcome) options_.on_welcome();
  };
  callbacks.refused = [this](const absl::Status& why) { NoteRefusal(why); };
  return callbacks;
}

void WorkerDaemon::StartGroup(const v1::StartGroupCommand& start) {
  const v1::GroupId id = IdOf(start.group());
  if (absl::Status refused = CheckStartGroup(start, options_.slots, options_.allow_commands); !refused.ok()) {
    options_.logger->warn("not starting group {}: {}", GroupName(id), std::string(refused.message()));
    session_->AddEvent(id, RefusedEvent(refused));
    return;
  }
  if (session_->EndIsPending(id)) return;  // A repeated command: the group has run and ended.
  absl::MutexLock lock(&mutex_);
  const std::string name = GroupName(id);
  if (runs_.count(name) > 0) return;  // A repeated command: the group runs.
  if (shutdown_) {
    // The command gets no answer. The coordinator then takes the group for lost with this worker's session, and not for
    // failed.
    options_.logger->warn("not starting group {}: this worker is shutting down", name);
    return;
  }
  for (auto& [other, running] : runs_) {
    const v1::GroupId& old = running.run->id();
    if (old.job_id() != id.job_id() || old.group() != id.group() || old.incarnation() > id.incarnation()) continue;
    running.run->Stop(absl::AbortedError(absl::StrCat("replaced by start ", id.incarnation())));
  }
  Running& running = runs_[name];
  running.run = MakeRun(start);
  running.ranks = PartOf(start).ranks;
}

std::unique_ptr<GroupRun> WorkerDaemon::MakeRun(v1::StartGroupCommand start) {
  const double wanted = start.group().job().collectives().timeout_seconds();
  const absl::Duration timeout = wanted > 0 ? absl::Seconds(wanted) : options_.collective_timeout;
  start.mutable_group()->set_collective_timeout_seconds(absl::ToDoubleSeconds(timeout));
  start.mutable_group()->set_exchange_timeout_seconds(absl::ToDoubleSeconds(options_.exchange_timeout));
  start.mutable_group()->set_job_credential(options_.token.ForJob(start.group().job_id()).secret);
  start.mutable_group()->clear_addresses();
  if (options_.node.chosen) {
    for (const InterfaceAddress& one : options_.node.addresses)
      start.mutable_group()->add_addresses(TextOf(one.address));
  }
  GroupRunOptions run;
  run.groups_folder = state_folder_->groups();
  run.launch = options_.launch;
  run.launch.interfaces = options_.node.interfaces;
  run.worker = options_.name;
  run.site = options_.site;
  run.files = files_.get();
  run.cores = options_.cores.empty() ? nullptr : &cores_;
  run.gpus = options_.gpus.empty() ? nullptr : &gpus_;
  run.fetch.coordinator = options_.coordinator;
  run.fetch.credential = options_.token.ForCalls();
  run.watch = options_.watch;
  // The daemon waits longer than a collective. So if a rank stops, the collectives of the group's other ranks fail
  // first, and only then does the daemon end the group.
  run.watch.give_up_after = std::max(timeout, options_.collective_timeout) + run.watch.silent_after;
  run.contact = [this] { return session_->Contact(); };
  run.leave_within = options_.leave_within;
  run.stop_grace = options_.stop_grace;
  run.stuck_after = options_.stuck_after;
  run.ready_again = options_.ready_again;
  run.logger = options_.logger;
  const v1::GroupId id = IdOf(start.group());
  GroupRunCallbacks callbacks;
  callbacks.event = [this, id](v1::GroupEvent event) { session_->AddEvent(id, std::move(event)); };
  callbacks.log = [this, id](absl::string_view source, absl::string_view text) {
    options_.logger->debug("{} {}: {}", GroupName(id), std::string(source), std::string(text));
    // The line names the group, because a job's log holds the lines of all its groups.
    session_->AddLog(id, absl::StrCat("group ", id.group(), " ", source), text);
  };
  callbacks.ended = [this, name = GroupName(id)] {
    absl::MutexLock lock(&mutex_);
    runs_[name].ended = true;
    any_ended_ = true;
  };
  return std::make_unique<GroupRun>(start, std::move(run), std::move(callbacks));
}

void WorkerDaemon::StopGroup(const v1::StopGroup& stop) {
  absl::MutexLock lock(&mutex_);
  const auto found = runs_.find(GroupName(stop.group()));
  // A group that is not in runs_ has ended, and the session delivers its end.
  if (found == runs_.end()) return;
  const absl::Status why = absl::CancelledError(absl::StrCat("stopped: ", stop.reason()));
  if (stop.leaves()) {
    found->second.run->Leave(why);
  } else {
    found->second.run->Stop(why);
  }
}

void WorkerDaemon::LaunchPart(const v1::LaunchPart& command) {
  absl::MutexLock lock(&mutex_);
  const auto found = runs_.find(GroupName(command.group()));
  if (found == runs_.end()) return;  // The group has ended, and the session delivers its end.
  const absl::Status status = found->second.run->Launch(command);
  if (!status.ok()) options_.logger->error("group {}: {}", found->first, std::string(status.message()));
}

std::vector<v1::GroupId> WorkerDaemon::RunningGroups() {
  absl::MutexLock lock(&mutex_);
  std::vector<v1::GroupId> groups;
  for (const auto& [name, running] : runs_) {
    if (!running.ended) groups.push_back(running.run->id());
  }
  return groups;
}

absl::Status WorkerDaemon::OpenMetrics() {
  if (options_.metrics.empty()) return absl::OkStatus();
  space_ = std::make_unique<FolderSpace>(options_.state_dir, kAskDiskEvery);
  absl::StatusOr<std::unique_ptr<HttpServer>> metrics =
      ServeMetrics(options_.metrics, options_.token, [this](MetricFamilies& families) { CollectMetrics(families); });
  if (!metrics.ok()) return metrics.status();
  metrics_ = *std::move(metrics);
  if (options_.on_metrics) options_.on_metrics(metrics_->address());
  return absl::OkStatus();
}

void WorkerDaemon::CollectMetrics(MetricFamilies& families) {
  NodeFigures figures;
  figures.version = options_.version;
  figures.process = ReadProcessFigures();
  figures.space = space_->last();
  figures.slots = options_.slots;
  {
    absl::MutexLock lock(&mutex_);
    for (const auto& [name, running] : runs_) {
      if (running.ended) continue;
      ++figures.groups;
      figures.slots_used += running.ranks;
    }
  }
  figures.cache_bytes = files_->bytes();
  figures.cache_max_bytes = options_.files_cache_bytes;
  figures.session = session_->Figures();
  figures.now = SteadyTime();
  AddWorkerMetrics(figures, families);
}

void WorkerDaemon::NoteRefusal(const absl::Status& why) {
  std::string message = absl::StrCat("coordinator ", options_.coordinator, " refuses this worker: ", why.message());
  if (why.code() == absl::StatusCode::kAlreadyExists) {
    message = absl::StrCat("a worker named ", options_.name, " is already connected: choose another --name");
  } else if (why.code() == absl::StatusCode::kUnimplemented) {
    message = absl::StrCat(options_.coordinator,
                           " is not a coordinator: name the server that was started without --coordinator");
  }
  absl::MutexLock lock(&mutex_);
  refusal_ = absl::Status(why.code(), message);
}

absl::Duration WorkerDaemon::IdleFor() {
  absl::MutexLock lock(&mutex_);
  return runs_.empty() ? SteadyTime() - idle_since_ : absl::ZeroDuration();
}

void WorkerDaemon::CollectEndedRuns() {
  while (true) {
    // Ended runs are destroyed without the lock, because destroying a run waits for its threads.
    std::vector<std::unique_ptr<GroupRun>> ended;
    absl::MutexLock lock(&mutex_);
    auto work = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return any_ended_ || (shutdown_ && runs_.empty()); };
    mutex_.Await(absl::Condition(&work));
    any_ended_ = false;
    for (auto it = runs_.begin(); it != runs_.end();) {
      if (it->second.ended) ended.push_back(std::move(it->second.run));
      it = it->second.ended ? runs_.erase(it) : std::next(it);
    }
    changed_.SignalAll();
    if (runs_.empty() && !ended.empty()) idle_since_ = SteadyTime();
    if (shutdown_ && runs_.empty()) return;
  }
}

}  // namespace hooke
