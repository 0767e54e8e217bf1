#include "client/doctor/program_checks.h"

#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "client/doctor/value_text.h"

namespace hooke {

const char kPythonScript[] = R"python(
import importlib.util, pathlib, sys
print("python", sys.version.split()[0], sys.executable)
for name in ("torch", "hooke"):
    version = "-"
    try:
        spec = importlib.util.find_spec(name)
        if spec is not None:
            version = "unknown"
            names = {}
            exec((pathlib.Path(spec.origin).parent / "version.py").read_text(), names)
            version = str(names["__version__"])
    except Exception:
        pass
    print(name, version)
)python";

namespace {

// Parts of the paths of fast BLAS libraries, and their names.
constexpr std::pair<const char*, const char*> kFastBlas[] = {
    {"openblas", "OpenBLAS"}, {"mkl", "MKL"}, {"blis", "BLIS"}, {"atlas", "ATLAS"}};
constexpr absl::string_view kIntelVersion = "OS, Version ";
constexpr absl::Duration kSlowStart = absl::Seconds(2);
constexpr char kInstall[] = "./deploy/install-deps    # in Hooke's source; installs what is missing";

// Returns the value of the line "KEY VALUE", or "" if there is none.
std::string ValueOf(absl::string_view text, absl::string_view key) {
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    if (absl::ConsumePrefix(&line, key) && absl::ConsumePrefix(&line, " ")) return std::string(line);
  }
  return "";
}

std::string FamilyName(absl::string_view family) {
  if (family == "openmpi") return "Open MPI";
  if (family == "intelmpi") return "Intel MPI";
  return family == "mpich" ? "MPICH" : "an MPI library that Hooke does not know";
}

std::string PackagesOf(absl::string_view family) { return family == "mpich" ? "mpich" : "openmpi-bin"; }

}  // namespace

WorkerDescription ParseWorkerDescription(absl::string_view text) {
  WorkerDescription worker;
  worker.version = ValueOf(text, "version");
  worker.mpi = ValueOf(text, "mpi");
  worker.mpirun = ValueOf(text, "mpirun");
  worker.rank_binary = ValueOf(text, "rank-binary");
  worker.address = ValueOf(text, "address");
  worker.interface = ValueOf(text, "interface");
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    if (!absl::ConsumePrefix(&line, "own-address ")) continue;
    std::pair<std::string, std::string> parts = absl::StrSplit(line, absl::MaxSplits(' ', 1));
    worker.addresses.push_back({std::move(parts.first), std::move(parts.second)});
  }
  return worker;
}

std::string MpiFamily(absl::string_view text) {
  if (absl::StrContains(text, "Open MPI") || absl::StrContains(text, "OpenRTE")) return "openmpi";
  if (absl::StrContains(text, "Intel(R) MPI Library")) return "intelmpi";
  return absl::StrContains(text, "HYDRA") || absl::StrContains(text, "MPICH") ? "mpich" : "";
}

Finding CheckPrograms(const MachineValues& machine) {
  const std::string check = "programs";
  const std::string& folder = machine.programs_dir;
  if (!machine.missing_programs.empty()) {
    return Fault(
        check,
        absl::StrCat(absl::StrJoin(machine.missing_programs, ", "),
                     machine.missing_programs.size() == 1 ? " is not in " : " are not in ", folder, ", beside hooke"),
        {"bazel build //:programs    # in Hooke's source; then call bazel-bin/bin/hooke"});
  }
  if (!machine.worker_describe.ok()) {
    return Fault(check, absl::StrCat("hooke-worker does not start: ", LastLine(machine.worker_describe.output)),
                 {kInstall});
  }
  const std::string version = ParseWorkerDescription(machine.worker_describe.output).version;
  if (version != machine.own_version) {
    return Fault(check, absl::StrCat("hooke is ", machine.own_version, ", but hooke-worker beside it is ", version),
                 {"bazel build //:programs    # in Hooke's source, and install all of them together"});
  }
  return Ok(check, absl::StrCat(version, " in ", folder));
}

Finding CheckMpi(const MachineValues& machine) {
  const std::string check = "MPI";
  const WorkerDescription worker = ParseWorkerDescription(machine.worker_describe.output);
  const CommandOutcome& version = machine.mpirun_version;
  const std::string wanted = worker.mpi.empty() ? "openmpi" : worker.mpi;
  const std::string mpirun = worker.mpirun.empty() ? "mpirun" : worker.mpirun;
  const std::vector<std::string> install = {absl::StrCat("sudo apt-get install ", PackagesOf(wanted))};
  if (version.missing()) {
    return Fault(check, absl::StrCat("no ", mpirun, " on the PATH"), install);
  }
  if (!version.ok()) {
    const std::string how = version.timed_out ? "does not answer" : LastLine(version.output);
    return Fault(check, absl::StrCat(mpirun, " --version: ", how), install);
  }
  const std::string family = MpiFamily(version.output);
  std::string number;
  if (family == "openmpi") {
    // "mpirun (Open MPI) 4.1.4", or under another name "mpirun.openmpi (OpenRTE) 4.1.4".
    number = FirstLine(version.output);
    number.erase(0, number.rfind(' ') + 1);
  } else {
    for (absl::string_view line : absl::StrSplit(version.output, '\n')) {
      line = absl::StripLeadingAsciiWhitespace(line);
      if (absl::ConsumePrefix(&line, "Version:")) number = std::string(absl::StripAsciiWhitespace(line));
      // "Intel(R) MPI Library for Linux* OS, Version 2021.18.1 Build 20260626 (id: b44796a)"
      const size_t at = line.find(kIntelVersion);
      if (at == absl::string_view::npos) continue;
      line.remove_prefix(at + kIntelVersion.size());
      number = std::string(line.substr(0, line.find(' ')));
    }
  }
  const std::string found = absl::StrCat(FamilyName(family), number.empty() ? "" : " ", number, ", ", mpirun);
  // Ranks that are linked with MPICH run under Intel MPI, which keeps its binary interface.
  if (family == wanted || (family == "intelmpi" && wanted == "mpich")) return Ok(check, found);
  return Fault(check, absl::StrCat(found, "; but hooke-rank is linked with ", FamilyName(wanted)),
               {absl::StrCat("sudo apt-get install ", PackagesOf(wanted),
                             "    # and put its mpirun first on the PATH, or name it: hooke-worker --mpirun PATH")});
}

Finding CheckMpiStart(const MachineValues& machine) {
  const std::string check = "MPI start";
  const CommandOutcome& start = machine.mpirun_start;
  const WorkerDescription worker = ParseWorkerDescription(machine.worker_describe.output);
  const std::string by_hand = absl::StrCat(
      "look at it by hand: ", worker.mpirun.empty() ? "mpirun" : worker.mpirun,
      MpiFamily(machine.mpirun_version.output) == "openmpi" ? " --oversubscribe -n 2 hostname" : " -n 2 hostname");
  if (start.missing()) return Fault(check, "not tried: there is no mpirun", {"mend the line about MPI first"});
  if (start.timed_out) {
    return Fault(check, absl::StrCat("mpirun has not started 2 processes within ", SecondsText(start.took)),
                 {by_hand, "most often the host name does not resolve, or a firewall closes this machine's own ports"});
  }
  size_t started = 0;
  for (const absl::string_view line : absl::StrSplit(start.output, '\n')) {
    if (absl::StrContains(line, kStartedWord)) ++started;
  }
  if (!start.ok() || started != 2) {
    return Fault(check, absl::StrCat("mpirun started ", started, " of 2 processes: ", FirstLine(start.output)),
                 {by_hand});
  }
  const std::string found = absl::StrCat("mpirun starts and ends 2 processes in ", SecondsText(start.took));
  if (start.took < kSlowStart) return Ok(check, found);
  return Warning(check, found, {"see the line about the host name; each start of a group takes as long"});
}

Finding CheckInterfaces(const MachineValues& machine) {
  const std::string check = "interfaces";
  const WorkerDescription worker = ParseWorkerDescription(machine.worker_describe.output);
  if (!machine.worker_describe.ok()) {
    return Warning(check, "not known, because hooke-worker does not start", {"mend the line about programs first"});
  }
  const std::string own = absl::StrJoin(worker.addresses, ", ", [](std::string* out, const OwnAddress& one) {
    absl::StrAppend(out, one.interface, " ", one.address);
  });
  if (!worker.address.empty()) {
    return Ok(check, absl::StrCat("groups on several nodes would reach this one at ", worker.address, " (",
                                  worker.interface, "); there are ", own));
  }
  if (own.empty()) return Ok(check, "loopback only: groups run on this machine alone");
  return Ok(check, absl::StrCat("the coordinator is on this machine, so no interface is chosen; there are ", own),
            {"for groups on several nodes: hooke-worker --interface NAME, or --subnet NETWORK"});
}

std::string BlasInLdd(absl::string_view text) {
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    const std::vector<absl::string_view> words = absl::StrSplit(line, absl::ByAnyChar(" \t"), absl::SkipEmpty());
    if (words.size() >= 3 && words[0] == "libblas.so.3" && words[1] == "=>") return std::string(words[2]);
  }
  return "";
}

Finding CheckBlas(const MachineValues& machine) {
  const std::string check = "BLAS";
  const CommandOutcome& libraries = machine.rank_libraries;
  if (!libraries.ok()) {
    return Warning(check, absl::StrCat("not known: ldd of hooke-rank: ", FirstLine(libraries.output)),
                   {"bazel build //:programs    # in Hooke's source, if hooke-rank is missing"});
  }
  for (const absl::string_view line : absl::StrSplit(libraries.output, '\n')) {
    if (!absl::StrContains(line, "=> not found")) continue;
    return Fault(check, absl::StrCat("hooke-rank lacks a library: ", FirstLine(line)), {kInstall});
  }
  const std::string& path = machine.blas_path;
  if (path.empty()) return Ok(check, "LibTorch brings its own");
  for (const auto& [part, name] : kFastBlas) {
    if (absl::StrContains(path, part)) return Ok(check, absl::StrCat("LibTorch uses ", name, ", ", path));
  }
  return Warning(check, absl::StrCat("LibTorch uses the reference BLAS, ", path, ": about 50 times slower"),
                 {"sudo apt-get install libopenblas0-pthread",
                  "if it is installed: sudo update-alternatives --config libblas.so.3-x86_64-linux-gnu"});
}

Finding CheckPython(const MachineValues& machine) {
  const std::string check = "Python";
  const CommandOutcome& python = machine.python;
  const std::string only = "only scripts of your own need it";
  if (python.missing())
    return Ok(check, absl::StrCat("no python3 on the PATH; ", only), {"sudo apt-get install python3"});
  if (!python.ok()) {
    return Warning(check, absl::StrCat("python3 fails: ", python.timed_out ? "no answer" : LastLine(python.output)),
                   {"python3 -c 'import sys'    # shows how"});
  }
  const std::pair<std::string, std::string> version =
      absl::StrSplit(ValueOf(python.output, "python"), absl::MaxSplits(' ', 1));
  const std::string torch = ValueOf(python.output, "torch");
  const std::string package = ValueOf(python.output, "hooke");
  const std::string found =
      absl::StrCat(version.first, ", ", version.second, "; ", torch == "-" ? "no torch" : absl::StrCat("torch ", torch),
                   "; ", package == "-" ? "no package hooke" : "package hooke");
  std::vector<std::string> numbers = absl::StrSplit(version.first, '.');
  int minor = 0;
  if (numbers.size() >= 2 && numbers[0] == "3" && absl::SimpleAtoi(numbers[1], &minor) && minor < 9) {
    return Warning(check, absl::StrCat(found, "; hooke.torch needs Python 3.9"), {"sudo apt-get install python3"});
  }
  numbers = absl::StrSplit(torch, '.');
  if (numbers.size() >= 2 && numbers[0] == "1" && absl::SimpleAtoi(numbers[1], &minor) && minor < 13) {
    return Warning(check, absl::StrCat(found, "; hooke.torch needs torch 1.13"), {"pip install --upgrade torch"});
  }
  std::vector<std::string> advice;
  if (torch == "-") advice.push_back("for PyTorch scripts: pip install torch, or sudo apt-get install python3-torch");
  if (package == "-") advice.push_back("for scripts with `import hooke`: pip install ./python, in Hooke's source");
  return Ok(check, found, std::move(advice));
}

Finding CheckGpu(const MachineValues& machine) {
  const std::string check = "GPU";
  const CommandOutcome& smi = machine.nvidia_smi;
  if (smi.missing()) {
    if (!machine.nvidia_device) return Ok(check, "no NVIDIA GPU; Hooke trains on the CPU");
    return Warning(check, "there is /dev/nvidiactl, but no nvidia-smi on the PATH",
                   {"sudo apt-get install nvidia-smi"});
  }
  if (!smi.ok()) {
    return Fault(check,
                 absl::StrCat("nvidia-smi ", smi.timed_out ? "does not answer" : "fails: ",
                              smi.timed_out ? "" : FirstLine(smi.output)),
                 {"the driver does not fit the kernel, or is not loaded: sudo modprobe nvidia, or boot anew"});
  }
  const std::vector<absl::string_view> gpus = absl::StrSplit(smi.output, '\n', absl::SkipWhitespace());
  if (gpus.empty()) return Ok(check, "the driver is there, but no GPU; Hooke trains on the CPU");
  const bool nccl = absl::StrContains(machine.shared_libraries.output, "libnccl.so");
  std::string toolkit = "no CUDA Toolkit";
  if (machine.nvcc.ok()) {
    toolkit = "CUDA Toolkit";
    const std::string& text = machine.nvcc.output;
    const size_t release = text.find("release ");
    if (release != std::string::npos)
      absl::StrAppend(&toolkit, " ", text.substr(release + 8, text.find(',', release) - release - 8));
  }
  const std::string found = absl::StrCat(gpus.size(), " x ", gpus[0], "; ", nccl ? "NCCL; " : "no NCCL; ", toolkit);
  std::vector<std::string> advice;
  if (!nccl) advice.push_back("for a build with --config=cuda: sudo apt-get install libnccl2 libnccl-dev");
  if (!machine.nvcc.ok()) advice.push_back("for a build with --config=cuda: install the CUDA Toolkit; docs/gpu.md");
  return Ok(check, found, std::move(advice));
}

}  // namespace hooke
