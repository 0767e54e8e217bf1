#include "worker/launch/launcher_output.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace hooke {
namespace {

TEST(MpiVersionTest, Table) {
  EXPECT_EQ(MpiVersion("mpirun (Open MPI) 4.1.4\n\nReport bugs to http://www.open-mpi.org/community/help/\n"), "4.1");
  EXPECT_EQ(MpiVersion("mpirun.openmpi (OpenRTE) 4.1.4\n\nReport bugs to http://www.open-mpi.org/community/help/\n"),
            "4.1");
  EXPECT_EQ(MpiVersion("mpirun (Open MPI) 5.0\n"), "5.0");
  EXPECT_EQ(MpiVersion("HYDRA build details:\n    Version:       4.0.2\n    Release Date:  Thu Apr  7\n"), "4.0");
  const char* intel = "Intel(R) MPI Library for Linux* OS, Version 2021.18.1 Build 20260626 (id: b44796a)\nCopyright\n";
  EXPECT_EQ(MpiVersion(intel), "2021.18");
  EXPECT_EQ(FlavourOf(intel), MpiFlavour::kIntelMpi);
  EXPECT_EQ(FlavourOf("HYDRA build details:\n"), MpiFlavour::kMpich);
  EXPECT_EQ(FlavourOf("mpirun (Open MPI) 4.1.4\n"), MpiFlavour::kOpenMpi);
  EXPECT_EQ(FlavourOf("mpirun.openmpi (OpenRTE) 4.1.4\n"), MpiFlavour::kOpenMpi);
  EXPECT_EQ(FlavourOf("mpirun"), std::nullopt);
  for (const char* said : {"", "mpirun", "(Open MPI)", "(Open MPI) x.y", "Version: 4", "Version:"}) {
    EXPECT_EQ(MpiVersion(said), "") << said;
  }
}

// The labels of both libraries are parsed. A line without a label comes from the launcher.
TEST(ParseTaggedLineTest, Table) {
  struct Case {
    MpiFlavour flavour;
    const char* line;
    const char* source;
    const char* text;
  };
  const MpiFlavour open = MpiFlavour::kOpenMpi;
  const MpiFlavour mpich = MpiFlavour::kMpich;
  const Case cases[] = {
      {open, "[1,0]<stdout>:hello", "rank 0", "hello"},
      {open, "[1,12]<stderr>:", "rank 12", ""},
      {open, "[1,1]<stdout>:[1,0]<stdout>:x", "rank 1", "[1,0]<stdout>:x"},
      {open, "[vm:123] *** Process received signal ***", "mpirun", "[vm:123] *** Process received signal ***"},
      {open, "[1,x]<stdout>:a", "mpirun", "[1,x]<stdout>:a"},
      {open, "[1,0]<stdlog>:a", "mpirun", "[1,0]<stdlog>:a"},
      {open, "[1,0", "mpirun", "[1,0"},
      {open, "", "mpirun", ""},
      {open, "[]", "mpirun", "[]"},
      {open, "[1,99999999999]<stdout>:a", "mpirun", "[1,99999999999]<stdout>:a"},
      {mpich, "[0] hi", "rank 0", "hi"},
      {mpich, "[3] ", "rank 3", ""},
      {mpich, "[3]", "rank 3", ""},
      {mpich, "[mpiexec@vm] oops", "mpirun", "[mpiexec@vm] oops"},
      {mpich, "[-1] x", "mpirun", "[-1] x"},
      {mpich, "[0]x", "mpirun", "[0]x"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.line);
    const TaggedLine tagged = ParseTaggedLine(c.flavour, c.line);
    EXPECT_EQ(tagged.source, c.source);
    EXPECT_EQ(tagged.text, c.text);
  }
}

LauncherVerdict Read(MpiFlavour flavour, const std::vector<std::string>& lines) {
  LauncherVerdict verdict;
  for (const std::string& line : lines) ReadLauncherLine(flavour, line, verdict);
  return verdict;
}

// The rank and the signal or exit status are read from the output of each launcher.
TEST(LauncherVerdictTest, WhatEndedTheRun) {
  LauncherVerdict verdict =
      Read(MpiFlavour::kOpenMpi,
           {"-----", "mpirun noticed that process rank 1 with PID 0 on node vm exited on signal 9 (Killed)."});
  EXPECT_EQ(verdict.rank, 1u);
  EXPECT_EQ(verdict.signal, 9);
  EXPECT_FALSE(verdict.exit_status.has_value());
  verdict = Read(MpiFlavour::kOpenMpi, {"  Process name: [[18662,1],2]", "  Exit code:    3"});
  EXPECT_EQ(verdict.rank, 2u);
  EXPECT_EQ(verdict.exit_status, 3);
  verdict = Read(MpiFlavour::kMpich, {"=   PID 9223 RUNNING AT vm", "=   EXIT CODE: 9",
                                      "YOUR APPLICATION TERMINATED WITH THE EXIT STRING: Killed (signal 9)"});
  EXPECT_EQ(verdict.pid, 9223);
  EXPECT_EQ(verdict.signal, 9);
  EXPECT_FALSE(verdict.exit_status.has_value());
  // Intel MPI may have killed this rank itself.
  verdict = Read(MpiFlavour::kIntelMpi, {"=   RANK 1 PID 9223 RUNNING AT vm", "=   KILLED BY SIGNAL: 9 (Killed)"});
  EXPECT_FALSE(verdict.rank.has_value() || verdict.pid.has_value() || verdict.signal.has_value());
  verdict = Read(MpiFlavour::kMpich, {"=   PID 9223 RUNNING AT vm", "=   EXIT CODE: 3"});
  EXPECT_EQ(verdict.exit_status, 3);
  EXPECT_FALSE(verdict.signal.has_value());
}

// Lines that only look like a report of the launcher change nothing. The first value of a field stays.
TEST(LauncherVerdictTest, OddLines) {
  const LauncherVerdict verdict =
      Read(MpiFlavour::kOpenMpi, {"noticed that process rank", "noticed that process rank x on signal",
                                  "Process name: [[", "Exit code:", "Exit code: 4", "Exit code: 5"});
  EXPECT_FALSE(verdict.rank.has_value());
  EXPECT_FALSE(verdict.signal.has_value());
  EXPECT_EQ(verdict.exit_status, 4);
}

}  // namespace
}  // namespace hooke
