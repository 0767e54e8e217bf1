// Tests the checks of programs and libraries with outputs made by hand.
#include "client/doctor/program_checks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace hooke {
namespace {

using ::testing::HasSubstr;

constexpr char kDescription[] =
    "version 1.2.3\nslots 4\nmpi openmpi\nmpirun /usr/bin/mpirun.openmpi\nrank-binary /opt/hooke-rank\n"
    "address \ninterface \nown-address eth0 10.0.0.7\nown-address ib0 10.1.0.7\n";
constexpr char kOpenMpi[] = "mpirun (Open MPI) 4.1.4\n\nReport bugs to http://www.open-mpi.org/community/help/\n";
constexpr char kMpich[] = "HYDRA build details:\n    Version:                                 4.0.2\n    CC: gcc\n";

CommandOutcome Printed(std::string output, absl::Duration took = absl::Milliseconds(10)) {
  CommandOutcome outcome;
  outcome.exit_code = 0;
  outcome.output = std::move(output);
  outcome.took = took;
  return outcome;
}

CommandOutcome Failed(int exit_code, std::string output = "", bool timed_out = false) {
  CommandOutcome outcome = Printed(std::move(output), absl::Seconds(10));
  outcome.exit_code = exit_code;
  outcome.timed_out = timed_out;
  return outcome;
}

// Values of a machine on which all is well.
MachineValues Healthy() {
  MachineValues machine;
  machine.own_version = "1.2.3";
  machine.programs_dir = "/opt";
  machine.worker_describe = Printed(kDescription);
  machine.mpirun_version = Printed(kOpenMpi);
  machine.mpirun_start = Printed(absl::StrCat(kStartedWord, "\n", kStartedWord, "\n"), absl::Milliseconds(300));
  machine.rank_libraries =
      Printed("\tlinux-vdso.so.1 (0x7)\n\tlibblas.so.3 => /lib/x86_64-linux-gnu/libblas.so.3 (0x7f)\n");
  machine.blas_path = "/usr/lib/x86_64-linux-gnu/openblas-pthread/libblas.so.3";
  machine.python = Printed("python 3.11.2 /usr/bin/python3\ntorch 1.13.1\nhooke 0.1.0\n");
  machine.nvidia_smi = Failed(127);
  machine.nvcc = Failed(127);
  return machine;
}

void Expect(const Finding& finding, Level level, const std::string& found, const std::string& advice = "") {
  EXPECT_EQ(finding.level, level) << finding.found;
  EXPECT_THAT(finding.found, HasSubstr(found));
  EXPECT_EQ(finding.advice.empty(), advice.empty()) << finding.found;
  if (!finding.advice.empty()) {
    EXPECT_THAT(finding.advice[0], HasSubstr(advice)) << finding.found;
  }
}

TEST(ProgramChecksTest, Programs) {
  MachineValues machine = Healthy();
  Expect(CheckPrograms(machine), Level::kOk, "1.2.3 in /opt");
  machine.own_version = "1.2.4";
  Expect(CheckPrograms(machine), Level::kFault, "hooke is 1.2.4, but hooke-worker beside it is 1.2.3", "bazel build");
  machine.worker_describe = Failed(127, "error while loading shared libraries: libgrpc++.so.1.51\n");
  Expect(CheckPrograms(machine), Level::kFault, "libgrpc++.so.1.51", "./deploy/install-deps");
  machine.missing_programs = {"hooke-rank", "hooke-remote"};
  Expect(CheckPrograms(machine), Level::kFault, "hooke-rank, hooke-remote are not in /opt", "bazel build //:programs");
}

TEST(ProgramChecksTest, Mpi) {
  MachineValues machine = Healthy();
  Expect(CheckMpi(machine), Level::kOk, "Open MPI 4.1.4, /usr/bin/mpirun.openmpi");
  machine.mpirun_version = Printed("mpirun.openmpi (OpenRTE) 4.1.4\n");
  Expect(CheckMpi(machine), Level::kOk, "Open MPI 4.1.4, /usr/bin/mpirun.openmpi");
  machine.mpirun_version = Printed(kMpich);
  Expect(CheckMpi(machine), Level::kFault,
         "MPICH 4.0.2, /usr/bin/mpirun.openmpi; but hooke-rank is linked with Open MPI",
         "sudo apt-get install openmpi-bin ");
  const std::string intel = "Intel(R) MPI Library for Linux* OS, Version 2021.19 Build 1\nCopyright\n";
  machine.mpirun_version = Printed(intel);
  Expect(CheckMpi(machine), Level::kFault, "Intel MPI 2021.19, /usr/bin/mpirun.openmpi; but hooke-rank is linked with",
         "openmpi-bin");
  machine.mpirun_version = Printed("prun 1.0\n");
  Expect(CheckMpi(machine), Level::kFault, "an MPI library that Hooke does not know", "openmpi-bin");
  machine.mpirun_version = Failed(127);
  Expect(CheckMpi(machine), Level::kFault, "no /usr/bin/mpirun.openmpi on the PATH",
         "sudo apt-get install openmpi-bin");
  machine.mpirun_version = Failed(-1, "", true);
  Expect(CheckMpi(machine), Level::kFault, "does not answer", "apt-get");
  machine = Healthy();
  machine.worker_describe = Printed("version 1.2.3\nmpi mpich\nmpirun /usr/bin/mpirun.mpich\n");
  machine.mpirun_version = Printed(kMpich);
  Expect(CheckMpi(machine), Level::kOk, "MPICH 4.0.2, /usr/bin/mpirun.mpich");
  machine.mpirun_version = Printed(intel);
  Expect(CheckMpi(machine), Level::kOk, "Intel MPI 2021.19, /usr/bin/mpirun.mpich");
  machine.worker_describe = Failed(127);  // Without a worker, Open MPI is wanted.
  machine.mpirun_version = Failed(127);
  Expect(CheckMpi(machine), Level::kFault, "no mpirun on the PATH", "openmpi-bin");
}

TEST(ProgramChecksTest, MpiStart) {
  MachineValues machine = Healthy();
  Expect(CheckMpiStart(machine), Level::kOk, "2 processes in 0.30 s");
  machine.mpirun_start.took = absl::Seconds(4);
  Expect(CheckMpiStart(machine), Level::kWarning, "in 4.0 s", "the host name");
  machine.mpirun_start = Printed(absl::StrCat(kStartedWord, "\n"));
  Expect(CheckMpiStart(machine), Level::kFault, "started 1 of 2", "mpirun.openmpi --oversubscribe -n 2 hostname");
  machine.mpirun_start = Failed(1, "There are not enough slots available\n");
  Expect(CheckMpiStart(machine), Level::kFault, "0 of 2 processes: There are not enough slots", "by hand");
  machine.mpirun_start = Failed(-1, "", true);
  Expect(CheckMpiStart(machine), Level::kFault, "within 10.0 s", "by hand");
  machine.mpirun_start = Failed(127);
  Expect(CheckMpiStart(machine), Level::kFault, "not tried", "about MPI");
}

TEST(ProgramChecksTest, Interfaces) {
  MachineValues machine = Healthy();
  Expect(CheckInterfaces(machine), Level::kOk, "no interface is chosen; there are eth0 10.0.0.7, ib0 10.1.0.7",
         "--interface NAME");
  machine.worker_describe = Printed("address 10.1.0.7\ninterface ib0\nown-address ib0 10.1.0.7\n");
  Expect(CheckInterfaces(machine), Level::kOk, "at 10.1.0.7 (ib0); there are ib0 10.1.0.7");
  machine.worker_describe = Printed("address \n");
  Expect(CheckInterfaces(machine), Level::kOk, "loopback only");
  machine.worker_describe = Failed(2);
  Expect(CheckInterfaces(machine), Level::kWarning, "not known", "about programs");
}

TEST(ProgramChecksTest, Blas) {
  MachineValues machine = Healthy();
  EXPECT_EQ(BlasInLdd(machine.rank_libraries.output), "/lib/x86_64-linux-gnu/libblas.so.3");
  Expect(CheckBlas(machine), Level::kOk, "OpenBLAS, /usr/lib");
  machine.blas_path = "/usr/lib/x86_64-linux-gnu/blas/libblas.so.3.11.0";
  Expect(CheckBlas(machine), Level::kWarning, "50 times slower", "sudo apt-get install libopenblas0-pthread");
  machine.blas_path = "";
  Expect(CheckBlas(machine), Level::kOk, "its own");
  machine.rank_libraries = Printed("\tlibtorch_cpu.so => not found\n");
  Expect(CheckBlas(machine), Level::kFault, "libtorch_cpu.so => not found", "install-deps");
  machine.rank_libraries = Failed(1, "ldd: ./hooke-rank: No such file or directory\n");
  Expect(CheckBlas(machine), Level::kWarning, "No such file", "bazel build");
}

TEST(ProgramChecksTest, Python) {
  MachineValues machine = Healthy();
  Expect(CheckPython(machine), Level::kOk, "3.11.2, /usr/bin/python3; torch 1.13.1; package hooke");
  machine.python = Printed("python 3.14.0 /home/a b/python3\ntorch -\nhooke -\n");
  Expect(CheckPython(machine), Level::kOk, "3.14.0, /home/a b/python3; no torch; no package hooke",
         "pip install torch");
  machine.python = Printed("python 3.8.1 /p\ntorch 2.1.0\nhooke -\n");
  Expect(CheckPython(machine), Level::kWarning, "needs Python 3.9", "python3");
  machine.python = Printed("python 3.9.1 /p\ntorch 1.12.0+cpu\nhooke -\n");
  Expect(CheckPython(machine), Level::kWarning, "needs torch 1.13", "--upgrade torch");
  machine.python = Failed(1, "Traceback\nImportError: x\n");
  Expect(CheckPython(machine), Level::kWarning, "ImportError: x", "python3 -c");
  machine.python = Failed(127);
  Expect(CheckPython(machine), Level::kOk, "no python3", "apt-get install python3");
}

// The script runs in the Python of this machine.
TEST(ProgramChecksTest, PythonScript) {
  const CommandOutcome outcome = RunCommands({{{"python3", "-c", kPythonScript}, absl::Seconds(60)}})[0];
  if (outcome.missing()) GTEST_SKIP() << "no python3 here";
  ASSERT_TRUE(outcome.ok()) << outcome.output;
  EXPECT_THAT(outcome.output, ::testing::MatchesRegex("python 3[^ ]* /.*\ntorch [^ ]+\nhooke [^ ]+\n"));
}

TEST(ProgramChecksTest, Gpu) {
  MachineValues machine = Healthy();
  Expect(CheckGpu(machine), Level::kOk, "no NVIDIA GPU");
  machine.nvidia_device = true;
  Expect(CheckGpu(machine), Level::kWarning, "no nvidia-smi", "nvidia-smi");
  machine.nvidia_smi = Failed(9, "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n");
  Expect(CheckGpu(machine), Level::kFault, "couldn't communicate", "modprobe nvidia");
  machine.nvidia_smi = Failed(-1, "", true);
  Expect(CheckGpu(machine), Level::kFault, "does not answer", "modprobe");
  machine.nvidia_smi = Printed("");
  Expect(CheckGpu(machine), Level::kOk, "no GPU");
  machine.nvidia_smi =
      Printed("NVIDIA H100 80GB HBM3, 550.54.15, 81559 MiB\nNVIDIA H100 80GB HBM3, 550.54.15, 81559 MiB\n");
  Expect(CheckGpu(machine), Level::kOk, "2 x NVIDIA H100 80GB HBM3, 550.54.15, 81559 MiB; no NCCL; no CUDA Toolkit",
         "libnccl2");
  machine.shared_libraries = Printed("\tlibnccl.so.2 (libc6,x86-64) => /lib/libnccl.so.2\n");
  machine.nvcc = Printed("nvcc: NVIDIA\nCuda compilation tools, release 12.4, V12.4.131\n");
  Expect(CheckGpu(machine), Level::kOk, "; NCCL; CUDA Toolkit 12.4");
}

}  // namespace
}  // namespace hooke
