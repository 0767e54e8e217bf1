#include <unistd.h>

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/commands/bench_report.h"
#include "client/commands/command.h"
#include "client/process/interrupts.h"
#include "client/process/program_output.h"
#include "client/text/listing.h"
#include "files/new_file.h"
#include "job/job_keys.h"

namespace hooke {
namespace {

constexpr int kTunedRanksMax = 1024;

struct BenchFlags {
  std::string what;
  int ranks = 2;
  int nodes = 1;
  double seconds = 30;
  std::string mpirun;
  std::string tuning;
  std::string out;
  bool force = false;
  std::string programs_dir;
};

// Runs hooke-bench and returns its output. If that fails, it returns nullopt and sets `code`. The error has then been
// printed, by this program or by hooke-bench.
std::optional<std::string> RunBench(const Invocation& invocation, const BenchFlags& flags,
                                    std::vector<std::string> arguments, int& code) {
  const std::string folder = flags.programs_dir.empty() ? invocation.programs_dir : flags.programs_dir;
  const std::string program = std::filesystem::path(folder) / "hooke-bench";
  if (access(program.c_str(), X_OK) != 0) {
    code = Report(invocation, absl::NotFoundError(absl::StrCat(
                                  program,
                                  ": no such program; hooke-bench is looked for beside hooke (bazel build //:programs "
                                  "puts them into one folder), or where --programs-dir says")));
    return std::nullopt;
  }
  arguments.insert(arguments.begin(), {program, flags.what, absl::StrCat("--ranks=", flags.ranks)});
  Interrupts interrupts;
  absl::StatusOr<ProgramOutput> output = RunForOutput(arguments, interrupts);
  if (!output.ok()) {
    code = Report(invocation, output.status());
    return std::nullopt;
  }
  if (output->exit_code == kSucceeded) return std::move(output->text);
  code = output->exit_code == kUsage || output->exit_code == kInterrupted ? output->exit_code : kFailed;
  if (output->exit_code > 128 && output->exit_code != kInterrupted) {
    Report(invocation, absl::UnavailableError(absl::StrCat(program, " was killed by signal ", output->exit_code - 128,
                                                           "; `hooke doctor` checks MPI, memory and limits")));
  }
  return std::nullopt;
}

int Tune(const Invocation& invocation, const BenchFlags& flags) {
  if (!flags.out.empty()) {
    if (absl::Status status = CheckNewFile(flags.out, flags.force); !status.ok()) return Report(invocation, status);
  }
  std::vector<std::string> arguments = {absl::StrCat("--seconds=", flags.seconds)};
  if (!flags.mpirun.empty()) arguments.push_back(absl::StrCat("--mpirun=", flags.mpirun));
  int code = kSucceeded;
  const std::optional<std::string> printed = RunBench(invocation, flags, std::move(arguments), code);
  if (!printed.has_value()) return code;
  absl::StatusOr<TuningReport> report = ReportTuning(*printed);
  if (!report.ok()) return Report(invocation, report.status());
  if (!flags.out.empty()) {
    absl::Status status = WriteNewFile(flags.out, report->tuning, flags.force);
    if (!status.ok()) return Report(invocation, status);
  }
  if (invocation.json()) {
    if (!flags.out.empty()) report->document["path"] = flags.out;
    *invocation.out << DumpJson(report->document, 2) << std::endl;
    return kSucceeded;
  }
  *invocation.out << report->table << "\n" << report->notes;
  if (flags.out.empty()) {
    *invocation.out << "the tuning (--out FILE writes it to a file):\n" << report->tuning << std::flush;
  } else {
    *invocation.out << flags.out << ": written; a job uses it with `collectives: {tuning: " << flags.out << "}`"
                    << std::endl;
  }
  return kSucceeded;
}

int Explain(const Invocation& invocation, const BenchFlags& flags) {
  std::vector<std::string> arguments = {absl::StrCat("--nodes=", flags.nodes)};
  if (!flags.tuning.empty()) arguments.push_back(absl::StrCat("--tuning=", flags.tuning));
  int code = kSucceeded;
  const std::optional<std::string> printed = RunBench(invocation, flags, std::move(arguments), code);
  if (!printed.has_value()) return code;
  const absl::StatusOr<ExplanationReport> report = ReportExplanation(*printed);
  if (!report.ok()) return Report(invocation, report.status());
  *invocation.out << (invocation.json() ? DumpJson(report->document, 2) + "\n" : report->table) << std::flush;
  return kSucceeded;
}

int Bench(const Invocation& invocation, const BenchFlags& flags, const Command& command) {
  const bool tunes = flags.what == "tune";
  for (const char* flag : {"--seconds", "--mpirun", "--out", "--force"}) {
    if (!tunes && command.Given(flag)) {
      return Report(invocation, absl::InvalidArgumentError(absl::StrCat(flag, " goes with `bench tune`")), kUsage);
    }
  }
  for (const char* flag : {"--nodes", "--tuning"}) {
    if (tunes && command.Given(flag)) {
      return Report(invocation, absl::InvalidArgumentError(absl::StrCat(flag, " goes with `bench explain`")), kUsage);
    }
  }
  if (tunes && flags.ranks > kTunedRanksMax) {
    return Report(
        invocation,
        absl::InvalidArgumentError(absl::StrCat("--ranks ", flags.ranks, ": `bench tune` starts at most ",
                                                kTunedRanksMax, " on this machine; `bench explain` takes more")),
        kUsage);
  }
  if (flags.force && flags.out.empty()) {
    return Report(invocation, absl::InvalidArgumentError("--force goes with --out FILE"), kUsage);
  }
  return tunes ? Tune(invocation, flags) : Explain(invocation, flags);
}

void AddFlags(Command& command, BenchFlags& flags) {
  command.Add("WHAT", flags.what, "tune: measure, and write a tuning; explain: say what is chosen, and why")
      .Required()
      .OneOf({"tune", "explain"})
      .Type("tune|explain");
  command.Add("--ranks", flags.ranks, "Ranks of the group; tune: at most 1024, more than cores are allowed. Default: 2")
      .Range(2, kJobRanksMax)
      .Type("N");
  command.Add("--nodes", flags.nodes, "explain: nodes that the ranks are spread over. Default: 1")
      .Range(1, kJobRanksMax)
      .Type("N");
  command.Add("--tuning", flags.tuning, "explain: a tuning. Default: the rules that come with Hooke").Type("FILE");
  command.Add("--seconds", flags.seconds, "tune: begin no further size after so many seconds. Default: 30")
      .Range(0.1, 86400.0)
      .Type("S");
  command.Add("--out", flags.out, "tune: the file to write; it appears complete or not at all").Type("FILE");
  command.Add("--force", flags.force, "Replace a file of that name");
  command.Add("--mpirun", flags.mpirun, "tune: the mpirun to start ranks with. Default: from the PATH").Type("PROGRAM");
  command.Add("--programs-dir", flags.programs_dir, "Folder of hooke-bench. Default: that of hooke").Type("DIR");
}

}  // namespace

void AddBenchCommand(Command& program, Invocation& invocation) {
  Command& command = program.AddCommand("bench", "Measure this machine's collectives and make a tuning for jobs");
  auto flags = std::make_shared<BenchFlags>();
  AddFlags(command, *flags);
  AddOutputFlag(command, invocation);
  command.Footer(
      "`bench tune` runs every algorithm at every size with ranks on this machine; leave it idle meanwhile.\n"
      "A job uses the tuning with `collectives: {tuning: FILE}`. docs/tuning.md says how to measure several nodes.");
  command.Action([&invocation, flags, &command] { return Bench(invocation, *flags, command); });
}

}  // namespace hooke
