#include "worker/training/rank_process.h"

#include <google/protobuf/util/json_util.h>
#include <signal.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "clocks/process_age.h"
#include "clocks/steady_time.h"
#include "job/job_defaults.h"
#include "mpi_group/groups/in_process_group.h"
#include "mpi_group/groups/mpi_group.h"
#include "mpi_group/profile/profiled_group.h"
#include "mpi_group/tuning.h"
#include "worker/training/job_training.h"
#include "worker/training/sigterm.h"

namespace hooke {
namespace {

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  const std::ifstream file(path, std::ios::binary);
  std::ostringstream bytes;
  if (file.is_open()) bytes << file.rdbuf();
  if (!file.is_open() || bytes.str().empty()) {
    return absl::NotFoundError(absl::StrCat("cannot read the start file ", path));
  }
  return bytes.str();
}

// A job's keys that the file leaves out have their defaults from here on.
v1::GroupStart WithDefaults(v1::GroupStart start) {
  *start.mutable_job() = FillDefaults(std::move(*start.mutable_job()));
  return start;
}

// Returns the options of the MPI session. Only concurrent collectives need MPI's full thread support, because they have
// a thread for each communicator. Other jobs avoid its cost.
MpiSession::Options SessionOptions(const v1::GroupStart& start) {
  const v1::CollectivesSpec& collectives = start.job().collectives();
  MpiSession::Options options;
  options.concurrent = collectives.overlap() && collectives.order() == v1::CollectivesSpec::CONCURRENT;
  return options;
}

v1::MeasuredLinks ToMessage(const std::vector<LinkFigures>& links) {
  v1::MeasuredLinks message;
  for (const LinkFigures& link : links) {
    v1::MeasuredLink* added = message.add_links();
    added->set_peer_rank(static_cast<uint32_t>(link.peer));
    added->set_round_trip_seconds(absl::ToDoubleSeconds(link.round_trip));
    added->set_bytes_per_second(link.bytes_per_second);
  }
  return message;
}

absl::StatusOr<GroupOptions> OptionsOfGroup(const v1::GroupStart& start, std::shared_ptr<spdlog::logger> logger) {
  GroupOptions options;
  options.logger = std::move(logger);
  options.deadline = StartTimeout(start);
  options.addresses.assign(start.addresses().begin(), start.addresses().end());
  const std::string& tuning_text = start.job().collectives().tuning();
  if (tuning_text.empty()) return options;
  absl::StatusOr<Tuning> tuning = ParseTuning(tuning_text);
  if (!tuning.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("collectives.", tuning.status().message(), "; correct the file and submit the job again"));
  }
  options.tuning = *std::move(tuning);
  return options;
}

}  // namespace

absl::StatusOr<v1::GroupStart> ReadStartFile(const std::string& path) {
  absl::StatusOr<std::string> bytes = ReadFile(path);
  if (!bytes.ok()) return bytes.status();
  v1::GroupStart start;
  if (start.ParseFromString(*bytes)) return WithDefaults(std::move(start));
  return absl::InvalidArgumentError(absl::StrCat(path, " is no binary hooke.v1.GroupStart"));
}

absl::StatusOr<v1::GroupStart> ReadStartJson(const std::string& path) {
  absl::StatusOr<std::string> bytes = ReadFile(path);
  if (!bytes.ok()) return bytes.status();
  v1::GroupStart start;
  const auto parsed = google::protobuf::util::JsonStringToMessage(*bytes, &start);
  if (parsed.ok()) return WithDefaults(std::move(start));
  return absl::InvalidArgumentError(
      absl::StrCat(path, " is no JSON of hooke.v1.GroupStart: ", std::string(parsed.message())));
}

bool EndWithLauncher() {
  const pid_t launcher = getppid();
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  return getppid() == launcher;
}

void EndWithoutRank(const std::string& program, int rank, const absl::Status& why, int exit_status) {
  std::fprintf(stderr, "%s: rank %d: %s\n", program.c_str(), rank, why.ToString().c_str());
  MpiSession::ExitWithoutFinalize(exit_status);
}

absl::StatusOr<std::unique_ptr<RankProcess>> RankProcess::Start(const v1::GroupStart& start,
                                                                RankProcessOptions options) {
  std::unique_ptr<RankProcess> process(new RankProcess(start, std::move(options)));
  if (absl::Status joined = process->Join(); !joined.ok()) return joined;
  return process;
}

RankProcess::~RankProcess() = default;

void RankProcess::NoteStart() {
  const absl::Time now = SteadyTime();
  start_spans_.Begin(v1::LifeSpan::LOADED, now - ProcessAge());
  start_spans_.Begin(v1::LifeSpan::JOINED, now);
}

absl::Status RankProcess::Join() {
  NoteStart();
  if (!start_.daemon_socket().empty()) LeaveSigtermToWorker();
  if (options_.mpi) {
    absl::StatusOr<std::unique_ptr<MpiSession>> session = MpiSession::Start(SessionOptions(start_));
    if (!session.ok()) return session.status();
    session_ = *std::move(session);
  }
  logger_ = std::make_shared<spdlog::logger>(absl::StrCat("rank ", rank()),
                                             std::make_shared<spdlog::sinks::stderr_sink_mt>());
  if (options_.quiet) logger_->set_level(spdlog::level::warn);
  ProfileOptions profile_options;
  profile_options.clock = MonotonicNanoseconds;
  profile_ = std::make_shared<ProfileRecorder>(profile_options);
  reporter_ = MakeReporter();
  absl::StatusOr<std::unique_ptr<Group>> group = MakeGroup();
  if (!group.ok()) {
    reporter_->Failed(group.status());
    reporter_.reset();  // Sends the failure.
    return group.status();
  }
  group_ = MakeProfiledGroup(*std::move(group), *profile_);
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Group>> RankProcess::MakeGroup() {
  absl::StatusOr<GroupOptions> options = OptionsOfGroup(start_, logger_);
  if (!options.ok()) return options.status();
  options->on_links = [this](const std::vector<LinkFigures>& links) { reporter_->Links(ToMessage(links)); };
  if (session_ != nullptr) return MakeMpiGroup(*session_, *options);
  return std::move(MakeInProcessGroups(1, *options).front());
}

std::unique_ptr<Reporter> RankProcess::MakeReporter() {
  ReporterOptions reporter;
  // A group that only evaluates takes no steps, so there is no share of collectives to profile.
  if (start_.task() == v1::GroupStart::TRAIN) reporter.profile = profile_;
  reporter.hello.set_rank(static_cast<uint32_t>(rank()));
  reporter.hello.set_ranks(static_cast<uint32_t>(size()));
  reporter.hello.set_pid(getpid());
  reporter.start = start_spans_;
  if (start_.daemon_socket().empty()) {
    if (rank() == 0) reporter.sinks.push_back(MakeLogSink(logger_));
  } else {
    reporter.sinks.push_back(
        DialDaemon(start_.daemon_socket(), [program = options_.program, rank = rank()](const std::string& why) {
          EndWithoutRank(program, rank, absl::UnavailableError(why));
        }));
  }
  if (options_.more_sinks && rank() == 0) {
    for (std::unique_ptr<EventSink>& sink : options_.more_sinks()) reporter.sinks.push_back(std::move(sink));
  }
  return std::make_unique<Reporter>(std::move(reporter));
}

absl::Status RankProcess::Finish(uint64_t steps) {
  // Reports the end of the task before MPI ends. From then on the daemon limits how long the end may take.
  reporter_->Done(steps);
  reporter_.reset();
  group_.reset();
  return session_ == nullptr ? absl::OkStatus() : session_->Finish();
}

void RankProcess::ReportFailure(const absl::Status& why) {
  if (reporter_ == nullptr) return;
  reporter_->Failed(why);
  reporter_.reset();  // Sends the failure.
}

void RankProcess::GiveUp(const absl::Status& why) {
  ReportFailure(why);
  EndWithoutRank(options_.program, rank(), why);
}

}  // namespace hooke
