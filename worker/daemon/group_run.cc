#include "worker/daemon/group_run.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "job/command.h"
#include "wire/random_hex.h"
#include "wire/utc_time.h"
#include "worker/daemon/outbox.h"
#include "worker/launch/command_script.h"

namespace hooke {
namespace {

namespace fs = std::filesystem;

constexpr absl::Duration kTick = absl::Milliseconds(250);
// How long a rank's hello may wait for GroupStarted. A rank that reports has been started by a launcher, so only a
// daemon that was stopped takes this long to say so.
constexpr absl::Duration kAnnounceLimit = absl::Seconds(30);
constexpr size_t kTextBytesMax = 4096;  // Most bytes of a rank's message.
constexpr size_t kProfileBytesMax = 256 << 10;

RankWatchOptions WatchOptions(RankWatchOptions options, const v1::StartGroup& start) {
  options.ranks = start.ranks();
  options.command = HasCommand(start.group().job());
  options.started = absl::Now();
  return options;
}

std::vector<std::string> TextsOf(const google::protobuf::RepeatedPtrField<std::string>& texts) {
  return {texts.begin(), texts.end()};
}

// Returns the variable's value in an environment of "NAME=value", or `otherwise`.
std::string ValueOf(absl::string_view name, const std::vector<std::string>& environment, std::string otherwise) {
  for (absl::string_view variable : environment) {
    if (absl::ConsumePrefix(&variable, name) && absl::ConsumePrefix(&variable, "=")) otherwise = std::string(variable);
  }
  return otherwise;
}

v1::GroupEvent SilenceEvent(const SilenceChange& change) {
  v1::GroupEvent event;
  v1::SilenceChanged* changed = event.mutable_silence();
  changed->set_silent(change.silent);
  changed->mutable_silence()->set_what(change.what);
  changed->mutable_silence()->set_since_unix_ms(absl::ToUnixMillis(change.since));
  changed->mutable_silence()->set_step(change.step);
  return event;
}

}  // namespace

v1::GroupId IdOf(const v1::GroupStart& start) {
  v1::GroupId id;
  id.set_job_id(start.job_id());
  id.set_group(start.group());
  id.set_incarnation(start.incarnation());
  return id;
}

std::string GroupName(const v1::GroupId& group) {
  return absl::StrCat(group.job_id(), "-", group.group(), "-", group.incarnation());
}

absl::Status CheckStartGroup(const v1::StartGroup& start, uint32_t slots, bool allow_commands) {
  const std::string& job_id = start.group().job_id();
  const auto allowed = [](char c) { return absl::ascii_islower(c) || absl::ascii_isdigit(c) || c == '-'; };
  if (job_id.empty() || job_id.size() > 80 || !std::all_of(job_id.begin(), job_id.end(), allowed)) {
    // The id is part of folder names.
    return absl::InvalidArgumentError("a job id must be 1 to 80 of [a-z0-9-]");
  }
  if (start.ranks() < 1) return absl::InvalidArgumentError("a group must have at least one rank");
  if (start.ranks() > slots) {
    return absl::ResourceExhaustedError(
        absl::StrCat("a group of ranks ", start.ranks(), " was sent to a worker of slots ", slots));
  }
  if (!HasCommand(start.group().job())) return absl::OkStatus();
  if (!allow_commands) {
    return absl::FailedPreconditionError(
        "this worker runs no commands; start hooke-worker with --allow-commands, and submit the job again");
  }
  // The coordinator has checked this. It is checked again, because this worker is about to run it.
  const v1::CommandSpec& command = start.group().job().command();
  if (absl::Status status = CheckArguments(TextsOf(command.arguments())); !status.ok()) return status;
  if (!absl::StartsWith(command.directory(), "/")) {
    return absl::InvalidArgumentError("a command's directory must be an absolute path");
  }
  return absl::OkStatus();
}

GroupRun::GroupRun(const v1::StartGroup& start, GroupRunOptions options, GroupRunCallbacks callbacks)
    : id_(IdOf(start.group())),
      name_(GroupName(id_)),
      command_(HasCommand(start.group().job())),
      exit_mark_(absl::StrCat("hooke-exit-", RandomHex(2))),
      options_(std::move(options)),
      callbacks_(std::move(callbacks)),
      start_(start),
      watch_(WatchOptions(options_.watch, start)),
      thread_([this] { Run(); }) {}

GroupRun::~GroupRun() {
  Stop(absl::CancelledError("its worker dropped it"));
  thread_.join();
}

void GroupRun::Stop(const absl::Status& why) {
  absl::MutexLock lock(&mutex_);
  if (stopped_.ok()) stopped_ = why;
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
  absl::StatusOr<std::unique_ptr<RankEventsServer>> server =
      RankEventsServer::Start((*folder)->socket(), std::move(from_ranks));
  if (!server.ok()) return failure(server.status());
  absl::StatusOr<std::unique_ptr<Process>> process = Launch(**folder);
  if (!process.ok()) {
    announced_.Notify();
    rank_output_.reset();
    // That a command is missing has a code of its own. Anything else may be mended by a new try.
    return failure(command_ ? process.status() : absl::UnavailableError(process.status().message()));
  }
  options_.logger->info("group {}: {} ranks started, {} is pid {}", name_, start_.ranks(), options_.launch.mpirun,
                        (*process)->pid());
  v1::GroupEvent started;
  started.mutable_started()->set_launcher_pid((*process)->pid());
  callbacks_.event(std::move(started));
  announced_.Notify();

  const ProcessEnd end = WatchUntilEnd(**process);
  // Afterwards all reports of the ranks have been read, and all that they printed.
  server->reset();
  rank_output_.reset();
  absl::MutexLock lock(&mutex_);
  return watch_.Verdict({end.ok(), absl::StrCat("mpirun ", ToString(end)), launcher_said_, last_words_}, stopped_);
}

absl::StatusOr<std::unique_ptr<Process>> GroupRun::Launch(const GroupFolder& folder) {
  LaunchOptions launch = options_.launch;
  launch.ranks = start_.ranks();
  launch.rank_arguments = {"--start", folder.start_file()};
  launch.session_folder = folder.path();
  launch.memory_folder = folder.memory_path();
  if (command_) {
    if (absl::Status status = PrepareCommand(folder, launch); !status.ok()) return status;
  }
  LaunchCommand command = MakeLaunchCommand(launch);
  ProcessOptions process;
  process.argv = std::move(command.argv);
  process.environment = std::move(command.environment);
  process.folder = command_ ? start_.group().job().command().directory() : folder.path();
  process.on_line = [this](absl::string_view line) { ReadLine(line); };
  return Process::Start(std::move(process));
}

absl::Status GroupRun::PrepareCommand(const GroupFolder& folder, LaunchOptions& launch) {
  const v1::CommandSpec& command = start_.group().job().command();
  // Python keeps lines for a pipe back until it has some KiB. A log is looked at while the command runs.
  launch.added_environment = {"PYTHONUNBUFFERED=1"};
  for (const auto& [name, value] : command.environment()) {
    launch.added_environment.push_back(absl::StrCat(name, "=", value));
  }
  launch.added_environment.push_back(absl::StrCat("HOOKE_START=", folder.start_file()));
  // The library of this very version, for programs that load it at run time.
  const fs::path library = fs::path(launch.rank_binary).parent_path() / "libhooke.so";
  if (std::error_code error; fs::exists(library, error)) {
    launch.added_environment.push_back(absl::StrCat("HOOKE_LIBRARY=", library.string()));
  }
  const std::string path = ValueOf("PATH", launch.added_environment, ValueOf("PATH", launch.environment, ""));
  absl::Status status = FindCommand(command.arguments(0), command.directory(), path);
  if (!status.ok()) return status;
  launch.rank_binary = "/bin/sh";
  launch.rank_arguments = {folder.command_file()};
  launch.tells_threads = false;
  auto output = RankOutput::Open(folder.path(), start_.ranks(), [this](const auto& line) { ReadRankLine(line); });
  if (!output.ok()) return output.status();
  rank_output_ = *std::move(output);
  return folder.WriteCommandFile(CommandScript(TextsOf(command.arguments()), folder.path(), exit_mark_));
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
    if (const auto end = process.Wait(std::min(absl::Now() + kTick, next)); end.has_value()) return *end;
    Tick();
    if (kill_at == absl::InfiniteFuture()) kill_at = KillTime();
    if (!killed && absl::Now() >= kill_at) {
      killed = true;
      process.Stop(absl::ZeroDuration());
    }
    if (!said && absl::Now() >= kill_at + options_.stuck_after) {
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
  return absl::Now() + grace;
}

void GroupRun::SayThatItIsStuck(pid_t launcher, absl::Time killed) {
  const std::string what = absl::StrCat("mpirun (pid ", launcher, "), which was killed and does not end,");
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
  {
    absl::MutexLock lock(&mutex_);
    const absl::Time now = absl::Now();
    changes = watch_.Tick(now);
    if (stopped_.ok()) stopped_ = watch_.MustStop(now);
  }
  for (const SilenceChange& change : changes) {
    options_.logger->warn("group {}: {} {} {} at step {}", name_, change.what,
                          change.silent ? "has been silent since" : "answers again, since", UtcText(change.since),
                          change.step);
    callbacks_.event(SilenceEvent(change));
  }
}

absl::Status GroupRun::RankHello(const v1::RankHello& hello) {
  if (!announced_.WaitForNotificationWithTimeout(kAnnounceLimit)) {
    return absl::DeadlineExceededError(
        absl::StrCat("the daemon has not started this group's mpirun within ", absl::FormatDuration(kAnnounceLimit)));
  }
  {
    absl::MutexLock lock(&mutex_);
    absl::Status status = watch_.Hello({hello.rank(), hello.ranks(), hello.pid()}, absl::Now());
    if (!status.ok()) {
      if (stopped_.ok()) stopped_ = status;
      return status;
    }
  }
  v1::RankEvent event;
  *event.mutable_hello() = hello;
  Report(hello.rank(), event);
  return absl::OkStatus();
}

void GroupRun::RankEvent(uint32_t rank, const v1::RankEvent& event) {
  v1::RankEvent passed = event;
  {
    absl::MutexLock lock(&mutex_);
    const absl::Time now = absl::Now();
    watch_.Heard(rank, now);
    if (event.has_progress()) {
      watch_.Progress(rank, event.progress().step(), now);
      if (!filter_.MustPass(rank, event.progress())) return;
    }
    if (event.has_done()) watch_.Done(rank, now);
    if (event.has_failed()) {
      // Code OK would mean that nothing failed.
      auto code = static_cast<absl::StatusCode>(event.failed().code());
      if (code == absl::StatusCode::kOk) code = absl::StatusCode::kUnknown;
      watch_.Failed(rank, absl::Status(code, CleanLine(event.failed().message(), kTextBytesMax)), now);
    }
  }
  // None of our ranks makes such a profile. It is dropped, because the next one would be as large.
  if (event.has_profile() && event.ByteSizeLong() > kProfileBytesMax) return;
  if (event.has_failed()) passed.mutable_failed()->set_message(CleanLine(event.failed().message(), kTextBytesMax));
  if (event.has_notice()) passed.mutable_notice()->set_text(CleanLine(event.notice().text(), kTextBytesMax));
  Report(rank, passed);
}

void GroupRun::RankStreamEnded(uint32_t rank) {
  absl::MutexLock lock(&mutex_);
  watch_.StreamEnded(rank, absl::Now());
}

void GroupRun::ReadLine(absl::string_view line) {
  const TaggedLine tagged = ParseTaggedLine(options_.launch.flavour, line);
  {
    absl::MutexLock lock(&mutex_);
    const bool from_rank = tagged.source != "mpirun";
    if (!from_rank) ReadLauncherLine(options_.launch.flavour, line, launcher_said_);
    // A line of a rank tells more than a line of the launcher, which also prints lines of dashes around its messages.
    const bool says_something = tagged.text.find_first_not_of("-= \t\r") != absl::string_view::npos;
    if (says_something && (from_rank || !rank_spoke_)) last_words_ = CleanLine(tagged.text, 500);
    rank_spoke_ = rank_spoke_ || from_rank;
  }
  callbacks_.log(tagged.source, tagged.text);
}

void GroupRun::ReadRankLine(const RankOutput::Line& line) {
  const std::string source = absl::StrCat("rank ", line.rank);
  absl::string_view text = line.text;
  const std::optional<ExitLine> exit = line.from_stderr ? ReadExitLine(text, exit_mark_) : std::nullopt;
  if (exit.has_value()) text = exit->before;
  {
    absl::MutexLock lock(&mutex_);
    if (line.from_stderr) error_lines_.Add(source, text);
    if (exit.has_value()) watch_.Exited(line.rank, exit->status, error_lines_.Of(source), absl::Now());
  }
  if (!exit.has_value() || !text.empty()) callbacks_.log(source, text);
}

void GroupRun::Report(uint32_t rank, const v1::RankEvent& event) {
  v1::GroupEvent group_event;
  group_event.mutable_report()->set_rank(rank);
  *group_event.mutable_report()->mutable_event() = event;
  callbacks_.event(std::move(group_event));
}

}  // namespace hooke
