#include "worker/launch/launch_command.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace hooke {
namespace {

// Prefixes of environment variables that are not for ranks. A scheduler or another launcher sets most of them for this
// process. The cluster's token is for the worker alone.
constexpr absl::string_view kForeignPrefixes[] = {
    "HOOKE_TOKEN_FILE=", "SLURM_",         "PMI_",  "PMIX_", "HYDRA_",        "HYDI_",         "ORTE_",
    "OMPI_COMM_",        "OMPI_UNIVERSE_", "MPIR_", "PRTE_", "OMPI_MCA_ess_", "OMPI_MCA_orte_"};

bool IsForeign(absl::string_view variable) {
  for (absl::string_view prefix : kForeignPrefixes) {
    if (absl::StartsWith(variable, prefix)) return true;
  }
  return false;
}

void SetVariable(absl::string_view name, absl::string_view value, std::vector<std::string>& environment) {
  const std::string prefix = absl::StrCat(name, "=");
  std::vector<std::string> kept;
  for (std::string& variable : environment) {
    if (!absl::StartsWith(variable, prefix)) kept.push_back(std::move(variable));
  }
  kept.push_back(absl::StrCat(prefix, value));
  environment = std::move(kept);
}

bool HasVariable(absl::string_view name, const std::vector<std::string>& environment) {
  const std::string prefix = absl::StrCat(name, "=");
  for (const std::string& variable : environment) {
    if (absl::StartsWith(variable, prefix)) return true;
  }
  return false;
}

void AppendOpenMpi(const LaunchOptions& options, std::vector<std::string>& argv) {
  auto parameter = [&argv](absl::string_view name, absl::string_view value) {
    for (absl::string_view part : {absl::string_view("--mca"), name, value}) argv.emplace_back(part);
  };
  // The user may choose more ranks than cores. Ranks are not bound to cores, because two groups would otherwise share
  // the same first cores.
  for (absl::string_view part : {"--oversubscribe", "--bind-to", "none", "--tag-output"}) argv.emplace_back(part);
  if (options.as_root) argv.push_back("--allow-run-as-root");
  parameter("orte_tmpdir_base", options.session_folder);
  parameter("btl_vader_backing_directory", options.memory_folder);
  parameter("osc_sm_backing_directory", options.memory_folder);
  // mpirun knows only its own ranks, not other groups on the same cores, so waiting ranks always yield.
  parameter("mpi_yield_when_idle", "1");
  // A single TCP connection reaches only half of a link's speed while both directions are used at once.
  parameter("btl_tcp_links", "4");
}

void AppendMpich(std::vector<std::string>& argv) {
  for (absl::string_view part : {"-launcher", "fork", "-prepend-rank"}) argv.emplace_back(part);
}

// Finds "<prefix>NUMBER<rest>" anywhere in `line` and returns NUMBER.
template <typename Number>
std::optional<Number> NumberAfter(absl::string_view line, absl::string_view prefix) {
  const size_t at = line.find(prefix);
  if (at == absl::string_view::npos) return std::nullopt;
  absl::string_view rest = absl::StripLeadingAsciiWhitespace(line.substr(at + prefix.size()));
  const size_t digits = rest.find_first_not_of("0123456789");
  Number number;
  if (!absl::SimpleAtoi(rest.substr(0, digits), &number)) return std::nullopt;
  return number;
}

template <typename Number>
void SetFirst(std::optional<Number> value, std::optional<Number>& field) {
  if (!field.has_value()) field = value;
}

void ReadOpenMpiLine(absl::string_view line, LauncherVerdict& verdict) {
  // The line is "mpirun noticed that process rank 1 with PID 0 on node n exited on signal 9 (Killed)." The PID is not
  // the rank's.
  if (absl::StrContains(line, "noticed that process rank")) {
    SetFirst(NumberAfter<uint32_t>(line, "process rank"), verdict.rank);
    SetFirst(NumberAfter<int>(line, "on signal"), verdict.signal);
  }
  // The lines are "  Process name: [[18662,1],0]" and "  Exit code:    3".
  if (absl::StrContains(line, "Process name: [[")) SetFirst(NumberAfter<uint32_t>(line, "],"), verdict.rank);
  if (absl::StrContains(line, "Exit code:")) SetFirst(NumberAfter<int>(line, "Exit code:"), verdict.exit_status);
}

void ReadMpichLine(absl::string_view line, LauncherVerdict& verdict) {
  // The lines are "=   PID 9223 RUNNING AT n", "=   EXIT CODE: 9" and "YOUR APPLICATION TERMINATED WITH THE EXIT
  // STRING: Killed (signal 9)".
  if (absl::StrContains(line, "RUNNING AT")) SetFirst(NumberAfter<int64_t>(line, "PID"), verdict.pid);
  if (absl::StrContains(line, "EXIT CODE:")) SetFirst(NumberAfter<int>(line, "EXIT CODE:"), verdict.exit_status);
  if (absl::StrContains(line, "EXIT STRING:") && absl::StrContains(line, "(signal")) {
    SetFirst(NumberAfter<int>(line, "(signal"), verdict.signal);
    verdict.exit_status.reset();  // The "exit code" line was the signal's number.
  }
}

}  // namespace

MpiFlavour BuiltFlavour() {
#ifdef HOOKE_MPICH
  return MpiFlavour::kMpich;
#else
  return MpiFlavour::kOpenMpi;
#endif
}

std::vector<std::string> MpirunNames(MpiFlavour flavour) {
  if (flavour == MpiFlavour::kMpich) return {"mpirun.mpich", "mpiexec.hydra", "mpirun"};
  return {"mpirun.openmpi", "mpirun"};
}

LaunchCommand MakeLaunchCommand(const LaunchOptions& options) {
  LaunchCommand command;
  command.argv = {options.mpirun, "-n", absl::StrCat(options.ranks)};
  if (options.flavour == MpiFlavour::kOpenMpi) {
    AppendOpenMpi(options, command.argv);
  } else {
    AppendMpich(command.argv);
  }
  for (absl::string_view part : {"setpriv", "--pdeathsig", "KILL", "--"}) command.argv.emplace_back(part);
  command.argv.push_back(options.rank_binary);
  command.argv.insert(command.argv.end(), options.rank_arguments.begin(), options.rank_arguments.end());
  if (options.tells_threads) command.argv.push_back(absl::StrCat("--threads=", options.threads_per_rank));

  for (const std::string& variable : options.environment) {
    if (!IsForeign(variable)) command.environment.push_back(variable);
  }
  // By default LibTorch and BLAS use every core, so several ranks on a node would compete for them.
  for (absl::string_view name : {"OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"}) {
    SetVariable(name, absl::StrCat(options.threads_per_rank), command.environment);
  }
  SetVariable("TMPDIR", options.session_folder, command.environment);
  // Keeps hwloc from looking for graphics cards, for which it asks X displays :0 to :9, in mpirun twice and in each
  // rank. Where no display listens, libxcb tries TCP and looks "localhost" up. If no file has that name, each look-up
  // waits for a name server.
  if (!HasVariable("HWLOC_COMPONENTS", command.environment)) {
    SetVariable("HWLOC_COMPONENTS", "-gl,-opencl", command.environment);
  }
  if (options.flavour == MpiFlavour::kMpich) SetVariable("UCX_POSIX_DIR", options.memory_folder, command.environment);
  for (const std::string& variable : options.added_environment) {
    const std::pair<absl::string_view, absl::string_view> parts = absl::StrSplit(variable, absl::MaxSplits('=', 1));
    SetVariable(parts.first, parts.second, command.environment);
  }
  return command;
}

TaggedLine ParseTaggedLine(MpiFlavour flavour, absl::string_view line) {
  TaggedLine launcher{"mpirun", line};
  absl::string_view rest = line;
  if (!absl::ConsumePrefix(&rest, "[")) return launcher;
  const size_t close = rest.find(']');
  if (close == absl::string_view::npos) return launcher;
  absl::string_view label = rest.substr(0, close);
  absl::string_view text = rest.substr(close + 1);
  if (flavour == MpiFlavour::kOpenMpi) {
    // Open MPI's lines are "[job,rank]<stdout>:text".
    const std::vector<absl::string_view> parts = absl::StrSplit(label, ',');
    uint32_t job;
    if (parts.size() != 2 || !absl::SimpleAtoi(parts[0], &job)) return launcher;
    if (!absl::ConsumePrefix(&text, "<stdout>:") && !absl::ConsumePrefix(&text, "<stderr>:")) return launcher;
    label = parts[1];
  } else if (!absl::ConsumePrefix(&text, " ") && !text.empty()) {
    return launcher;  // MPICH's lines are "[rank] text".
  }
  uint32_t rank;
  if (!absl::SimpleAtoi(label, &rank)) return launcher;
  return {absl::StrCat("rank ", rank), text};
}

void ReadLauncherLine(MpiFlavour flavour, absl::string_view line, LauncherVerdict& verdict) {
  if (flavour == MpiFlavour::kOpenMpi) {
    ReadOpenMpiLine(line, verdict);
  } else {
    ReadMpichLine(line, verdict);
  }
}

}  // namespace hooke
