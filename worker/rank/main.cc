// hooke-rank: one process of a group. mpirun (or srun) starts it with the file that its node's daemon wrote. For
// benchmarks it can also be started alone, with a hand-written start file.

#include <google/protobuf/util/json_util.h>
#include <malloc.h>
#include <signal.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <fstream>
#include <iostream>
#include <iterator>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "flags/command_line.h"
#include "mpi_group/groups/mpi_group.h"
#include "mpi_group/mpi/mpi_session.h"
#include "mpi_group/profile/profile.h"
#include "mpi_group/profile/profiled_group.h"
#include "mpi_group/tuning.h"
#include "proto/worker.pb.h"
#include "worker/exchange/grpc_server_calls.h"
#include "worker/model/model_file.h"
#include "worker/model/torchscript.h"
#include "worker/rank/rank_task.h"
#include "worker/report/event_sink.h"
#include "worker/report/reporter.h"

namespace hooke {
namespace {

// Converts a file of a trained model to another format, without MPI. Both fields are set, or neither.
struct Conversion {
  std::string model;        // Path of a safetensors file.
  std::string torchscript;  // Path of the TorchScript file to write.
};

struct Options {
  std::string start;  // Path of a binary GroupStart.
  // Path of a GroupStart as JSON. Exactly one of `start` and `start_json` is set.
  std::string start_json;
  std::string progress = "none";
  int threads = 1;
  Conversion conversion;
};

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (!file.is_open() || file.bad()) return absl::NotFoundError(absl::StrCat("cannot read the start file ", path));
  return bytes;
}

absl::StatusOr<v1::GroupStart> ReadStart(const Options& options) {
  const bool json = !options.start_json.empty();
  const std::string& path = json ? options.start_json : options.start;
  absl::StatusOr<std::string> bytes = ReadFile(path);
  if (!bytes.ok()) return bytes.status();
  v1::GroupStart start;
  if (!json) {
    if (start.ParseFromString(*bytes)) return start;
    return absl::InvalidArgumentError(absl::StrCat(path, " is no binary hooke.v1.GroupStart"));
  }
  const auto parsed = google::protobuf::util::JsonStringToMessage(*bytes, &start);
  if (parsed.ok()) return start;
  return absl::InvalidArgumentError(
      absl::StrCat(path, " is no JSON of hooke.v1.GroupStart: ", std::string(parsed.message())));
}

// The session's options. Only concurrent collectives, which have a thread for each communicator, need MPI's full thread
// support. Other jobs are spared its cost.
MpiSession::Options SessionOptions(const v1::GroupStart& start) {
  const v1::CollectivesSpec& collectives = start.job().collectives();
  MpiSession::Options options;
  options.concurrent = collectives.overlap() && collectives.order() == v1::CollectivesSpec::CONCURRENT;
  return options;
}

absl::StatusOr<GroupOptions> OptionsOfGroup(const v1::GroupStart& start, std::shared_ptr<spdlog::logger> logger) {
  GroupOptions options;
  options.logger = std::move(logger);
  options.deadline = StartTimeout(start);
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

[[noreturn]] void Die(int rank, const absl::Status& status) {
  std::fprintf(stderr, "hooke-rank: rank %d: %s\n", rank, status.ToString().c_str());
  MpiSession::ExitWithoutFinalize(1);
}

std::unique_ptr<Reporter> MakeReporter(const Options& options, const v1::GroupStart& start, const MpiSession& session,
                                       std::shared_ptr<ProfileRecorder> profile,
                                       std::shared_ptr<spdlog::logger> logger) {
  ReporterOptions reporter;
  // A group that only evaluates takes no steps, so there is no share of collectives to profile.
  if (start.task() == v1::GroupStart::TRAIN) reporter.profile = std::move(profile);
  reporter.hello.set_rank(static_cast<uint32_t>(session.rank()));
  reporter.hello.set_ranks(static_cast<uint32_t>(session.size()));
  reporter.hello.set_pid(getpid());
  if (start.daemon_socket().empty()) {
    if (session.rank() == 0) reporter.sinks.push_back(MakeLogSink(std::move(logger)));
  } else {
    reporter.sinks.push_back(DialDaemon(start.daemon_socket(), [rank = session.rank()](const std::string& why) {
      Die(rank, absl::UnavailableError(why));
    }));
  }
  if (options.progress == "json" && session.rank() == 0) reporter.sinks.push_back(MakeJsonSink(std::cout));
  return std::make_unique<Reporter>(std::move(reporter));
}

// Runs the rank. After any failure it ends the process itself, because MPI_Finalize would wait for the other ranks.
void Run(const Options& options) {
  absl::StatusOr<v1::GroupStart> start = ReadStart(options);
  if (!start.ok()) Die(-1, start.status());
  absl::StatusOr<std::unique_ptr<MpiSession>> session = MpiSession::Start(SessionOptions(*start));
  if (!session.ok()) Die(-1, session.status());
  const int rank = (*session)->rank();
  auto logger =
      std::make_shared<spdlog::logger>(absl::StrCat("rank ", rank), std::make_shared<spdlog::sinks::stderr_sink_mt>());
  ProfileOptions profile_options;
  profile_options.clock = MonotonicNanoseconds;
  auto profile = std::make_shared<ProfileRecorder>(profile_options);
  std::unique_ptr<Reporter> reporter = MakeReporter(options, *start, **session, profile, logger);

  auto give_up = [&reporter, rank](const absl::Status& status) {
    reporter->Failed(status);
    reporter.reset();  // Sends the failure.
    Die(rank, status);
  };
  absl::StatusOr<GroupOptions> group_options = OptionsOfGroup(*start, logger);
  if (!group_options.ok()) return give_up(group_options.status());
  absl::StatusOr<std::unique_ptr<Group>> group = MakeMpiGroup(**session, *group_options);
  if (!group.ok()) return give_up(group.status());
  std::unique_ptr<Group> profiled = MakeProfiledGroup(*std::move(group), *profile);
  RankTask task;
  task.start = *start;
  task.group = profiled.get();
  task.reporter = reporter.get();
  task.dial = [](const std::string& address) { return DialServer(address); };
  task.threads = options.threads;
  absl::StatusOr<uint64_t> steps = RunRankTask(task);
  if (!steps.ok()) return give_up(steps.status());
  // Tells the daemon before MPI ends. From then on the daemon limits how long the end may take.
  reporter->Done(*steps);
  reporter.reset();
  profiled.reset();
  if (absl::Status status = (*session)->Finish(); !status.ok()) Die(rank, status);
}

int Convert(const Conversion& conversion) {
  const absl::StatusOr<ModelFile> model = ReadModelFile(conversion.model);
  const absl::Status status = model.ok() ? WriteTorchScript(*model, conversion.torchscript) : model.status();
  if (status.ok()) return 0;
  std::cerr << "hooke-rank: " << status.message() << "\n";
  return 1;
}

int Main(int argc, char** argv) {
  // A rank must not outlive its launcher, because nobody else would end it.
  const pid_t launcher = getppid();
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != launcher) return 1;
  // Activations of some megabytes are allocated at each step. Keep their memory instead of faulting it in again.
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);

  Command command(
      "hooke-rank",
      "One rank of a Hooke group. The worker starts it through mpirun; with --start-json you can do so yourself.");
  command.ShowDefaults();
  Options options;
  Argument start = command.Add("--start", options.start, "file with a binary hooke.v1.GroupStart");
  Argument json = command.Add("--start-json", options.start_json, "file with the same as JSON");
  start.Excludes(json);
  command.Add("--progress", options.progress, "json: rank 0 prints its events on the standard output, one per line")
      .OneOf({"none", "json"});
  command.Add("--threads", options.threads, "threads of this rank's kernels").Range(1, 1024);
  Argument model = command.Add("--model", options.conversion.model, "a model as `hooke export` writes it");
  Argument torchscript = command.Add("--torchscript", options.conversion.torchscript,
                                     "write that model to this file as TorchScript, then end; trains nothing");
  model.Needs(torchscript).Excludes(start).Excludes(json);
  torchscript.Needs(model);
  command.Version("hooke-rank " HOOKE_VERSION);
  Parsed parsed = command.Parse(argc, argv);
  const bool converts = command.Given("--model");
  if (parsed.ok() && !converts && !command.Given("--start") && !command.Given("--start-json"))
    parsed.error = "--start or --start-json is required";
  if (!parsed.ok()) return parsed.Print();
  if (converts) return Convert(options.conversion);
  Run(options);
  return 0;
}

}  // namespace
}  // namespace hooke

int main(int argc, char** argv) try { return hooke::Main(argc, argv); } catch (const std::exception& error) {
  std::cerr << "hooke-rank: " << error.what() << "\n";
  return 1;
}
