#include "worker/daemon/group_run.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "clocks/steady_time.h"
#include "job/command.h"
#include "job/file_manifest.h"
#include "wire/random_hex.h"
#include "wire/utc_time.h"
#include "wire/worker_limits.h"
#include "worker/daemon/outbox.h"
#include "worker/launch/command_script.h"

namespace hooke {
namespace {

constexpr absl::Duration kTick = absl::Milliseconds(250);

std::string LauncherName(MpiFlavour flavour, const v1::StartGroupCommand& start) {
  return PartOf(start).leads ? "mpirun" : NodeDaemonName(flavour);
}

RankWatchOptions WatchOptions(RankWatchOptions options, const v1::StartGroupCommand& start, MpiFlavour flavour) {
  options.ranks = start.ranks();
  options.first_rank = PartOf(start).first_rank;
  options.ranks_here = PartOf(start).ranks;
  options.elsewhere = ElsewhereOf(start);
  options.launcher = LauncherName(flavour, start);
  options.command = HasCommand(start.group().job());
  options.started = SteadyTime();
  options.wall_time_of = WallTimeOf;
  return options;
}

std::vector<std::string> TextsOf(const google::protobuf::RepeatedPtrField<std::string>& texts) {
  return {texts.begin(), texts.end()};
}

v1::GroupEvent SilenceEvent(const SilenceChange& change) {
  v1::GroupEvent event;
  v1::SilenceChanged* changed = event.mutable_silence();
  changed->set_silent(change.silent);
  changed->mutable_silence()->set_what(change.what);
  changed->mutable_silence()->set_since_unix_ms(absl::ToUnixMillis(WallTimeOf(change.since)));
  changed->mutable_silence()->set_step(change.step);
  return event;
}

absl::Duration LeaveLimit(const v1::StartGroupCommand& start, const GroupRunOptions& options) {
  if (options.leave_within == absl::ZeroDuration()) return options.leave_within;
  return options.leave_within + absl::Seconds(start.group().job().averaging().grace_seconds());
}

}  // namespace

GroupRun::GroupRun(const v1::StartGroupCommand& start, GroupRunOptions options, GroupRunCallbacks callbacks)
    : id_(IdOf(start.group())),
      name_(GroupName(id_)),
      command_(HasCommand(start.group().job())),
      trains_(start.group().task() == v1::GroupStart::TRAIN),
      leave_within_(LeaveLimit(start, options)),
      part_(PartOf(start)),
      hosts_(HostsOf(start)),
      mark_(absl::StrCat("hooke-rank-", RandomHex(2))),
      options_(std::move(options)),
      callbacks_(std::move(callbacks)),
      launcher_(LauncherName(options_.launch.flavour, start)),
      begun_(SteadyTime()),
      start_(start),
      watch_(WatchOptions(options_.watch, start, options_.launch.flavour)),
      thread_([this] { Run(); }) {}

GroupRun::~GroupRun() {
  Stop(absl::CancelledError("its worker dropped it"));
  thread_.join();
}

void GroupRun::Stop(const absl::Status& why) {
  absl::MutexLock lock(&mutex_);
  if (stopped_.ok()) stopped_ = why;
  told_.SignalAll();
}

void GroupRun::Leave(const absl::Status& why) {
  absl::MutexLock lock(&mutex_);
  if (!stopped_.ok() || !leaves_.ok()) return;
  if (!trains_ || ranks_ == nullptr || !watch_.AnyHello() || leave_within_ == absl::ZeroDuration()) {
    stopped_ = why;
    told_.SignalAll();
    return;
  }
  options_.logger->info("group {}: its ranks have {} to leave: {}", name_, absl::FormatDuration(leave_within_),
                        std::string(why.message()));
  leaves_ = why;
  leave_by_ = SteadyTime() + leave_within_;
  ranks_->Leave(std::string(why.message()));
}

absl::Status GroupRun::Launch(const v1::LaunchPart& command) {
  if (part_.alone) return absl::InvalidArgumentError("the group runs on this worker alone");
  if (part_.leads != command.arguments().empty()) {
    return absl::InvalidArgumentError("only the parts that do not lead get arguments");
  }
  absl::MutexLock lock(&mutex_);
  if (!launch_.has_value()) launch_ = command;
  told_.SignalAll();
  return absl::OkStatus();
}

absl::Status GroupRun::AwaitLaunch() {
  if (part_.alone) return absl::OkStatus();
  const absl::Duration limit = PartLimitsOf(start_.group().job().command()).launch;
  const absl::Time deadline = SteadyTime() + limit;
  while (SteadyTime() < deadline) {
    // The event is sent again and again, because a coordinator that has restarted does not know it.
    v1::GroupEvent event;
    event.mutable_ready();
    callbacks_.event(std::move(event));
    const absl::Time again = std::min(SteadyTime() + options_.ready_again, deadline);
    absl::MutexLock lock(&mutex_);
    while (!launch_.has_value() && stopped_.ok() && SteadyTime() < again) told_.WaitUntil(mutex_, again);
    if (launch_.has_value() || !stopped_.ok()) return stopped_;
  }
  return absl::UnavailableError(
      absl::StrCat("this worker was ready, but was not told to start its ranks within ", absl::FormatDuration(limit)));
}

absl::Status GroupRun::StartRemote(const v1::StartRemoteRequest& request) {
  if (part_.alone || !part_.leads) return absl::FailedPreconditionError("no mpirun of this group runs here");
  v1::GroupEvent event;
  event.mutable_remote()->set_address(AddressOfMpirunName(hosts_, request.host()));
  *event.mutable_remote()->mutable_arguments() = request.arguments();
  callbacks_.event(std::move(event));
  return absl::OkStatus();
}

void GroupRun::Run() {
  const GroupVerdict verdict = RunToEnd();
  if (verdict.ok) {
    options_.logger->info("group {}: {}", name_, verdict.message);
  } else {
    options_.logger->warn("group {}: {}", name_, verdict.message);
  }
  v1::GroupEvent event;
  event.mutable_ended()->set_ok(verdict.ok);
  event.mutable_ended()->set_code(static_cast<int>(verdict.code));
  event.mutable_ended()->set_message(CleanLine(verdict.message, kTextBytesMax));
  callbacks_.event(std::move(event));
  callbacks_.ended();
}

GroupVerdict GroupRun::RunToEnd() {
  const auto failure = [](const absl::Status& status) {
    return GroupVerdict{false, status.code(), std::string(status.message())};
  };
  absl::StatusOr<std::unique_ptr<GroupFolder>> folder = GroupFolder::Make(options_.groups_folder, name_);
  if (!folder.ok()) return failure(absl::UnavailableError(folder.status().message()));
  start_.mutable_group()->set_daemon_socket((*folder)->socket());
  if (absl::Status status = (*folder)->WriteStartFile(start_.group().SerializeAsString()); !status.ok())
    return failure(status);
  RankEventCallbacks from_ranks;
  from_ranks.hello = [this](const v1::RankHello& hello) { return RankHello(hello); };
  from_ranks.event = [this](uint32_t rank, const v1::RankEvent& event) { RankEvent(rank, event); };
  from_ranks.stream_ended = [this](uint32_t rank) { RankStreamEnded(rank); };
  from_ranks.start_remote = [this](const v1::StartRemoteRequest& request) { return StartRemote(request); };
  absl::StatusOr<std::unique_ptr<RankEventsServer>> server =
      RankEventsServer::Start((*folder)->socket(), std::move(from_ranks));
  if (!server.ok()) return failure(server.status());
  SetRanks(server->get());
  const auto not_started = [&](const absl::Status& why) {
    announced_.Notify();
    SetRanks(nullptr);
    rank_output_.reset();
    gpus_.reset();
    cores_.reset();
    return failure(why);
  };
  // For a job with a command, the error keeps its code, which may fail the job. For other jobs a new try may mend the
  // error.
  const auto may_be_mended = [this](const absl::Status& why) {
    return command_ ? why : absl::UnavailableError(why.message());
  };
  if (absl::Status files = PrepareFiles(**folder); !files.ok()) return not_started(files);
  absl::StatusOr<LaunchOptions> launch = Prepare(**folder);
  if (!launch.ok()) return not_started(may_be_mended(launch.status()));
  if (absl::Status told = AwaitLaunch(); !told.ok()) return not_started(told);
  absl::StatusOr<std::unique_ptr<Process>> process = StartLauncher(*launch);
  if (!process.ok()) return not_started(may_be_mended(process.status()));
  options_.logger->info("group {}: {} ranks started, {} is pid {}", name_, part_.ranks, launcher_, (*process)->pid());
  v1::GroupEvent started;
  started.mutable_started()->set_launcher_pid((*process)->pid());
  started.mutable_started()->set_preparing_us(static_cast<uint64_t>(absl::ToInt64Microseconds(SteadyTime() - begun_)));
  started.mutable_started()->set_files_us(static_cast<uint64_t>(absl::ToInt64Microseconds(fetching_)));
  callbacks_.event(std::move(started));
  announced_.Notify();

  const ProcessEnd end = WatchUntilEnd(**process);
  SetRanks(nullptr);
  // After these calls, all reports and all output of the ranks have been read.
  server->reset();
  rank_output_.reset();
  // Before the group's end is reported: the coordinator may then send the next group.
  gpus_.reset();
  cores_.reset();
  absl::MutexLock lock(&mutex_);
  watch_.SetExitOrder(exit_order_.Exited());
  return watch_.Verdict({end.ok(), absl::StrCat(launcher_, " ", ToString(end)), launcher_said_, last_words_}, stopped_);
}

void GroupRun::SetRanks(RankEventsServer* ranks) {
  absl::MutexLock lock(&mutex_);
  ranks_ = ranks;
}

absl::Status GroupRun::WhyStopped() {
  absl::MutexLock lock(&mutex_);
  return stopped_;
}

absl::StatusOr<std::unique_ptr<Process>> GroupRun::StartLauncher(const LaunchOptions& launch) {
  std::vector<std::string> arguments;
  {
    absl::MutexLock lock(&mutex_);
    if (launch_.has_value()) arguments = TextsOf(launch_->arguments());
  }
  absl::StatusOr<LaunchCommand> command =
      part_.leads ? MakeLaunchCommand(launch) : MakeNodeDaemonCommand(launch, arguments);
  if (!command.ok()) return command.status();
  ProcessOptions process;
  process.argv = std::move(command->argv);
  process.environment = std::move(command->environment);
  // mpirun tells the other nodes its own working folder, which they may not have.
  process.folder = part_.alone ? launch.rank_folder : "/";
  process.on_line = [this](absl::string_view line) { ReadLine(line); };
  // SIGTERM would make the launcher kill its ranks. If it comes to all processes of a batch job, the group is to leave.
  process.blocks_sigterm = true;
  return Process::Start(std::move(process));
}

// Waits for the launcher's end, however long it takes: until the launcher is gone, nothing else may have its slots. If
// it does not end, SayThatItIsStuck reports it.
//
// The launcher is never sent SIGTERM. After a rank has left, the launcher ends the group by itself. If SIGTERM comes
// meanwhile, Open MPI's launcher takes it for a second order to abort. It crashes, with a stack trace in the job's log.
// So a launcher that ends by itself is waited for. Any other launcher is killed with all processes that it started. Its
// files are in the group's folder, which the daemon removes.
ProcessEnd GroupRun::WatchUntilEnd(Process& process) {
  absl::Time kill_at = absl::InfiniteFuture();
  bool killed = false;
  bool said = false;
  while (true) {
    const absl::Time next = killed ? absl::InfiniteFuture() : kill_at;
    if (const auto end = process.Wait(std::min(SteadyTime() + kTick, next)); end.has_value()) return *end;
    Tick();
    if (kill_at == absl::InfiniteFuture()) kill_at = KillTime();
    if (!killed && SteadyTime() >= kill_at) {
      killed = true;
      process.Stop(absl::ZeroDuration());
    }
    if (!said && SteadyTime() >= kill_at + options_.stuck_after) {
      said = true;
      SayThatItIsStuck(process.pid(), kill_at);
    }
  }
}

absl::Time GroupRun::KillTime() {
  absl::Status stopped;
  absl::Duration grace;
  {
    absl::MutexLock lock(&mutex_);
    stopped = stopped_;
    if (watch_.LauncherEndsByItself(stopped)) grace = options_.stop_grace;
  }
  if (stopped.ok()) return absl::InfiniteFuture();
  options_.logger->info("group {}: stopping it: {}", name_, std::string(stopped.message()));
  return SteadyTime() + grace;
}

void GroupRun::SayThatItIsStuck(pid_t launcher, absl::Time killed) {
  const std::string what = absl::StrCat(launcher_, " (pid ", launcher, "), which was killed and does not end,");
  options_.logger->error(
      "group {}: {} hangs in the kernel, as on a file system that does not answer; its slots stay taken until it is "
      "gone: mend that, or restart this node",
      name_, what);
  uint64_t step = 0;
  {
    absl::MutexLock lock(&mutex_);
    step = watch_.FurthestStep();
  }
  callbacks_.event(SilenceEvent({true, what, killed, step}));
}

void GroupRun::Tick() {
  std::vector<SilenceChange> changes;
  const CoordinatorContact contact = options_.contact ? options_.contact() : CoordinatorContact();
  {
    absl::MutexLock lock(&mutex_);
    const absl::Time now = SteadyTime();
    changes = watch_.Tick(now);
    if (stopped_.ok()) stopped_ = watch_.MustStop(now);
    if (stopped_.ok()) stopped_ = WhyCutOff(contact, missed_.All(), now);
    if (stopped_.ok() && now >= leave_by_) {
      stopped_ = absl::Status(leaves_.code(), absl::StrCat(leaves_.message(), "; its ranks had not left within ",
                                                           absl::FormatDuration(leave_within_)));
    }
  }
  for (const SilenceChange& change : changes) {
    options_.logger->warn("group {}: {} {} {} at step {}", name_, change.what,
                          change.silent ? "has been silent since" : "answers again, since",
                          UtcText(WallTimeOf(change.since)), change.step);
    callbacks_.event(SilenceEvent(change));
  }
}

}  // namespace hooke
