// hooke-bench measures the collectives of this machine or cluster and makes a tuning from the times. `hooke bench` runs
// it with `tune` and `explain`. `measure` is one rank of a measurement. `tune` starts the ranks by mpirun on one
// machine; for several nodes a user starts them.

#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "flags/command_line.h"
#include "mpi_group/groups/group_nodes.h"
#include "mpi_group/groups/mpi_group.h"
#include "mpi_group/mpi/mpi_session.h"
#include "mpi_group/mpi/mpi_transport.h"
#include "mpi_group/transport/steady_clock.h"
#include "mpi_group/transport/topology.h"
#include "worker/bench/document.h"
#include "worker/bench/fit_tuning.h"
#include "worker/bench/measure.h"
#include "worker/bench/run_ranks.h"

namespace hooke {
namespace {

constexpr size_t kTuningBytesMax = 64 << 10;
constexpr absl::Duration kMeetingTime = absl::Seconds(30);

struct Flags {
  int ranks = 2;
  int nodes = 1;
  double seconds = 30;
  uint64_t bytes_max = uint64_t{64} << 20;
  std::string mpirun;
  std::string tuning;
  std::string document;
  bool tuning_only = false;
  int threads = 1;
};

// Prints an error and returns `code`. The line is written in one piece, because mpirun labels each piece.
int Complain(const absl::Status& status, int code = 1) {
  std::cerr << absl::StrCat("hooke-bench: ", status.message(), "\n");
  return code;
}

absl::StatusOr<Topology> TopologyOf(MpiSession& session) {
  MpiTransportOptions options;
  options.deadline = SteadyNow() + kMeetingTime;
  absl::StatusOr<std::unique_ptr<Transport>> transport = MakeMpiTransport(session, options);
  if (!transport.ok()) return transport.status();
  std::vector<char> memory;  // Unused without an RDMA device.
  const absl::StatusOr<std::unique_ptr<GroupNodes>> nodes =
      GroupNodes::Gather(**transport, GroupOptions(), memory, SteadyNow() + kMeetingTime);
  if (!nodes.ok()) return nodes.status();
  return (*nodes)->topology();
}

absl::StatusOr<std::string> MeasureAsRank(MpiSession& session, const Flags& flags) {
  const absl::StatusOr<Topology> topology = TopologyOf(session);
  if (!topology.ok()) return topology.status();
  MeasureOptions options;
  options.topology = *topology;
  options.time_max = absl::Seconds(flags.seconds);
  options.bytes_max = flags.bytes_max;
  options.make_group = [&session](const Tuning& tuning) {
    GroupOptions group_options;
    group_options.tuning = tuning;
    return MakeMpiGroup(session, group_options);
  };
  options.on_operation = [&session](absl::string_view operation) {
    if (session.rank() == 0) std::cerr << absl::StrCat("measuring ", operation, "\n");
  };
  const absl::StatusOr<Measured> measured = Measure(options);
  if (!measured.ok()) return measured.status();
  Tuning tuning = FitTuning(*topology, measured->measurements, options.margin);
  tuning.between_nodes = measured->between_nodes;
  return flags.tuning_only ? FormatTuning(tuning) : TuningDocument(*topology, *measured, tuning);
}

// Writes to the file `path`, or to the standard output if `path` is empty.
absl::Status Deliver(const std::string& text, const std::string& path) {
  if (path.empty()) {
    std::cout << text << std::flush;
    return absl::OkStatus();
  }
  std::ofstream file(path);
  file << text << std::flush;
  return file ? absl::OkStatus() : absl::UnavailableError(absl::StrCat("cannot write ", path));
}

// Runs one rank. After a failure it ends the process without MPI_Finalize, which would wait for the other ranks.
int RunRank(const Flags& flags) {
  const absl::StatusOr<std::unique_ptr<MpiSession>> session = MpiSession::Start();
  if (!session.ok()) MpiSession::ExitWithoutFinalize(Complain(session.status()));
  const absl::StatusOr<std::string> text = MeasureAsRank(**session, flags);
  if (!text.ok()) MpiSession::ExitWithoutFinalize(Complain(text.status()));
  absl::Status status = (*session)->rank() == 0 ? Deliver(*text, flags.document) : absl::OkStatus();
  if (status.ok()) status = (*session)->Finish();
  if (!status.ok()) MpiSession::ExitWithoutFinalize(Complain(status));
  return 0;
}

int Tune(const Flags& flags, const sigset_t& stop_signals) {
  RanksOptions options;
  std::error_code error;
  options.program = std::filesystem::read_symlink("/proc/self/exe", error);
  options.arguments = {"measure", absl::StrCat("--seconds=", flags.seconds),
                       absl::StrCat("--bytes-max=", flags.bytes_max)};
  options.mpirun = flags.mpirun;
  const char* path = std::getenv("PATH");
  options.path = path == nullptr ? "" : path;
  for (char** variable = environ; *variable != nullptr; ++variable) options.environment.emplace_back(*variable);
  options.ranks = flags.ranks;
  options.stop_signals = stop_signals;
  options.on_line = [](absl::string_view line) { std::cerr << line << std::endl; };
  const absl::StatusOr<std::string> document = RunRanks(options);
  if (!document.ok()) return Complain(document.status(), absl::IsCancelled(document.status()) ? 130 : 1);
  std::cout << *document << std::flush;
  return 0;
}

absl::StatusOr<Tuning> ReadTuning(const std::string& path) {
  if (path.empty()) return Tuning();
  std::ifstream in(path, std::ios::binary);
  std::string text(kTuningBytesMax + 1, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (!in.is_open() || in.bad()) return absl::NotFoundError(absl::StrCat(path, ": cannot be read; name a tuning file"));
  text.resize(static_cast<size_t>(in.gcount()));
  if (text.size() > kTuningBytesMax) return absl::InvalidArgumentError(absl::StrCat(path, ": is larger than 64 KiB"));
  absl::StatusOr<Tuning> tuning = ParseTuning(text);
  if (tuning.ok()) return tuning;
  return absl::Status(tuning.status().code(), absl::StrCat(path, ": ", tuning.status().message()));
}

int Explain(const Flags& flags) {
  if (flags.nodes > flags.ranks) {
    return Complain(absl::InvalidArgumentError(absl::StrCat("--nodes ", flags.nodes, " is more than --ranks ",
                                                            flags.ranks, "; a node has at least one rank")),
                    2);
  }
  const absl::StatusOr<Tuning> tuning = ReadTuning(flags.tuning);
  if (!tuning.ok()) return Complain(tuning.status(), 2);
  Topology topology = OneNode(flags.ranks);
  topology.nodes = flags.nodes;
  topology.smallest_node = flags.ranks / flags.nodes;
  topology.largest_node = (flags.ranks + flags.nodes - 1) / flags.nodes;
  topology.oversubscribed = topology.largest_node > static_cast<int>(std::thread::hardware_concurrency());
  std::cout << ExplanationDocument(topology, *tuning) << std::flush;
  return 0;
}

void AddMeasureFlags(Command& command, Flags& flags) {
  command.Add("--seconds", flags.seconds, "begin no further size after so many seconds").Range(0.1, 86400.0);
  command.Add("--bytes-max", flags.bytes_max, "the largest size").Range(uint64_t{4}, uint64_t{1} << 30);
}

int Main(int argc, char** argv) {
  // The signals that `tune` blocks before its first thread starts. All its threads inherit the mask, so only WaitForEnd
  // takes these signals.
  sigset_t stop_signals;
  sigemptyset(&stop_signals);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&stop_signals, signal);
  Command command("hooke-bench",
                  "Measures Hooke's collectives and makes a tuning; `hooke bench` runs it. Prints JSON.");
  command.Version("hooke-bench " HOOKE_VERSION);
  command.ShowDefaults();
  Flags flags;
  Command& tune = command.AddCommand("tune", "Measure with ranks on this machine");
  Command& measure = command.AddCommand("measure", "Be one rank of a measurement; started by mpirun or srun");
  Command& explain = command.AddCommand("explain", "Say which algorithm is chosen when, and why");
  tune.Add("--ranks", flags.ranks, "ranks of the group").Range(2, 1024);
  explain.Add("--ranks", flags.ranks, "ranks of the group").Range(1, 16384);
  tune.Add("--mpirun", flags.mpirun, "mpirun of the MPI library that hooke-bench is linked with");
  AddMeasureFlags(tune, flags);
  AddMeasureFlags(measure, flags);
  measure.Add("--document", flags.document, "file that rank 0 writes, instead of its standard output");
  measure.Add("--tuning-only", flags.tuning_only, "print the tuning file alone");
  measure.Add("--threads", flags.threads, "as hooke-rank has it; collectives need one").HideDefault();
  explain.Add("--nodes", flags.nodes, "nodes that the ranks are spread over").Range(1, 16384);
  explain.Add("--tuning", flags.tuning, "tuning file; without one the rules that come with Hooke decide");
  measure.Action([&flags] { return RunRank(flags); });
  explain.Action([&flags] { return Explain(flags); });
  tune.Action([&flags, &stop_signals] {
    pthread_sigmask(SIG_BLOCK, &stop_signals, nullptr);
    return Tune(flags, stop_signals);
  });
  const Parsed parsed = command.Parse(argc, argv);
  return parsed.ok() ? parsed.action() : parsed.Print();
}

}  // namespace
}  // namespace hooke

int main(int argc, char** argv) try { return hooke::Main(argc, argv); } catch (const std::exception& error) {
  std::cerr << "hooke-bench: " << error.what() << "\n";
  return 1;
}
