// Tests the checks of the machine with values made by hand.
#include "client/doctor/machine_checks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "client/doctor/proc_texts.h"

namespace hooke {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kLimits[] =
    "Limit                     Soft Limit           Hard Limit           Units     \n"
    "Max processes             63000                63000                processes \n"
    "Max open files            1024                 524288               files     \n";

CommandOutcome Printed(std::string output, absl::Duration took = absl::Milliseconds(10)) {
  CommandOutcome outcome;
  outcome.exit_code = 0;
  outcome.output = std::move(output);
  outcome.took = took;
  return outcome;
}

CommandOutcome Failed(int exit_code, std::string output = "", bool timed_out = false) {
  CommandOutcome outcome = Printed(std::move(output), absl::Seconds(2));
  outcome.exit_code = exit_code;
  outcome.timed_out = timed_out;
  return outcome;
}

struct Case {
  std::string name;
  MachineValues machine;
  Level level;
  std::string found;   // A part of the finding.
  std::string advice;  // A part of the first advice; empty: there is none.
};

void Expect(const Case& one, const Finding& finding) {
  EXPECT_EQ(finding.level, one.level) << one.name << ": " << finding.found;
  EXPECT_THAT(finding.found, HasSubstr(one.found)) << one.name;
  EXPECT_EQ(finding.advice.empty(), one.advice.empty()) << one.name;
  if (!finding.advice.empty()) {
    EXPECT_THAT(finding.advice[0], HasSubstr(one.advice)) << one.name;
  }
}

MachineValues HostValues(std::string etc_hosts, CommandOutcome lookup) {
  MachineValues machine;
  machine.host_name = "node7";
  machine.etc_hosts = std::move(etc_hosts);
  machine.host_lookup = std::move(lookup);
  return machine;
}

TEST(MachineChecksTest, HostName) {
  const Case cases[] = {
      {"listed", HostValues("127.0.0.1 localhost\n10.0.0.7\tnode7.lan node7\n", Printed("")), Level::kOk,
       "\"node7\" is in /etc/hosts", ""},
      {"a longer name", HostValues("10.0.0.7 node77\n", Printed("", absl::Seconds(4))), Level::kWarning,
       "by a name server in 4.0 s", "echo '127.0.1.1 node7' | sudo tee -a /etc/hosts"},
      {"a comment", HostValues("10.0.0.7 a # node7\n", Failed(2)), Level::kWarning, "does not resolve after 2.0 s",
       "127.0.1.1 node7"},
      {"only an address", HostValues("node7\n", Failed(-1, "", true)), Level::kWarning, "within 2.0 s", "127.0.1.1"},
      {"a quick name server", HostValues("", Printed("10.0.0.7 STREAM node7")), Level::kOk, "name server in 0.01 s",
       ""},
      {"no getent", HostValues("", Failed(127)), Level::kWarning, "is not in /etc/hosts", "127.0.1.1"},
  };
  for (const Case& one : cases) Expect(one, CheckHostName(one.machine));
}

MachineValues CpuValues(int online, int own, std::vector<std::string> cgroup) {
  MachineValues machine;
  machine.online_cpus = online;
  machine.own_cpus = own;
  machine.cgroup.cpu = std::move(cgroup);
  return machine;
}

TEST(MachineChecksTest, Cores) {
  const Case cases[] = {
      {"all", CpuValues(8, 8, {}), Level::kOk, "8 CPUs", ""},
      {"affinity", CpuValues(8, 1, {"max 100000\n"}), Level::kOk, "1 CPU of 8 are in the affinity mask", ""},
      {"limit", CpuValues(64, 64, {"max 100000\n", "250000 100000\n"}), Level::kWarning,
       "64 CPUs, but the cgroup gives the time of 2.50: a worker would offer 64 slots", "hooke-worker --slots 2 "},
      {"a small limit", CpuValues(4, 4, {"50000 100000"}), Level::kWarning, "0.50", "--slots 1"},
      {"a wide limit", CpuValues(4, 4, {"800000 100000"}), Level::kOk, "4 CPUs", ""},
  };
  for (const Case& one : cases) Expect(one, CheckCores(one.machine));
  EXPECT_EQ(CgroupCpus({{"-1 100000\n", "", "nonsense", "max 100000", "100000 0"}, {}}), std::nullopt);
  EXPECT_EQ(CgroupCpus({{"300000\n 100000\n", "200000 100000"}, {}}), 2.0);
}

MachineValues MemoryValues(std::string meminfo, std::vector<CgroupLimits::Memory> cgroup) {
  MachineValues machine;
  machine.meminfo = std::move(meminfo);
  machine.cgroup.memory = std::move(cgroup);
  return machine;
}

TEST(MachineChecksTest, Memory) {
  const std::string text = "MemTotal:       16777216 kB\nMemFree: 1 kB\nMemAvailable:    8388608 kB\n";
  const Case cases[] = {
      {"free", MemoryValues(text, {{"max", "1000"}}), Level::kOk, "8.0 GiB are free of 16.0 GiB", ""},
      {"cgroup", MemoryValues(text, {{"1073741824\n", "1048576000\n"}}), Level::kWarning,
       "24 MiB are free, of the 1.0 GiB that the cgroup allows", "ps aux"},
      {"full", MemoryValues("MemTotal: 1048576 kB\nMemAvailable: 102400 kB\n", {}), Level::kWarning, "100 MiB are free",
       "ps aux"},
      {"not told", MemoryValues("", {}), Level::kOk, "does not tell", ""},
  };
  for (const Case& one : cases) Expect(one, CheckMemory(one.machine));
}

MachineValues SharedValues(CommandOutcome df, std::vector<SharedEntry> entries) {
  MachineValues machine;
  machine.shared_memory_space = std::move(df);
  machine.shared_entries = std::move(entries);
  return machine;
}

TEST(MachineChecksTest, SharedMemory) {
  const std::string df = "   1B-blocks       Avail\n 8589934592  8589934592\n";
  const SharedEntry left = {"hooke-Ab12xY", true, absl::Hours(30), false};
  const Case cases[] = {
      {"free", SharedValues(Printed(df), {}), Level::kOk, "8.0 GiB of 8.0 GiB are free", ""},
      {"a container's", SharedValues(Printed("x\n67108864 67108864\n"), {}), Level::kWarning, "64 MiB of 64 MiB",
       "remount"},
      {"full", SharedValues(Printed("x\n67108864 0\n"), {}), Level::kFault, "0 MiB of 64 MiB", "remount"},
      {"none", SharedValues(Failed(1, "df: /dev/shm: No such file"), {}), Level::kFault, "there is none",
       "mount -t tmpfs"},
      {"leftover", SharedValues(Printed(df), {left}), Level::kWarning, "1 entry that a killed worker has left",
       "rm -r /dev/shm/hooke-Ab12xY"},
      {"many", SharedValues(Printed(df), {left, left, left, left, left}), Level::kWarning, "5 entries", "and 2 more"},
  };
  for (const Case& one : cases) Expect(one, CheckSharedMemory(one.machine));
}

// Only an old entry of this user that no process uses is called a leftover.
TEST(MachineChecksTest, Leftovers) {
  EXPECT_THAT(Leftovers({{"a", true, absl::Hours(2), false},
                         {"young", true, absl::Minutes(2), false},
                         {"another user's", false, absl::Hours(2), false},
                         {"in use", true, absl::Hours(2), true},
                         {"not known", true, absl::Hours(2), std::nullopt}}),
              ElementsAre("a"));
}

TEST(MachineChecksTest, Limits) {
  MachineValues machine;
  machine.own_limits = kLimits;
  Expect({"soft", {}, Level::kWarning, "soft limit 1024, hard limit 524288", "ulimit -n 4096"},
         CheckOpenFiles(machine));
  Expect({"enough", {}, Level::kOk, "soft limit 63000", ""}, CheckProcesses(machine));
  machine.own_limits =
      "Max open files            1024  2048   files\nMax processes             unlimited  unlimited    processes\n";
  Expect({"hard", {}, Level::kWarning, "hard limit 2048", "/etc/security/limits.d/hooke.conf"},
         CheckOpenFiles(machine));
  Expect({"unlimited", {}, Level::kOk, "soft limit unlimited", ""}, CheckProcesses(machine));
  machine.own_limits = "nonsense";
  Expect({"not told", {}, Level::kOk, "does not tell", ""}, CheckOpenFiles(machine));
}

TEST(MachineChecksTest, Clock) {
  MachineValues machine;
  Expect({"not told", {}, Level::kOk, "does not tell", ""}, CheckClock(machine));
  machine.clock_synchronised = true;
  Expect({"good", {}, Level::kOk, "is synchronised", ""}, CheckClock(machine));
  machine.clock_synchronised = false;
  Expect({"bad", {}, Level::kWarning, "nothing keeps it", "timedatectl set-ntp true"}, CheckClock(machine));
}

TEST(MachineChecksTest, Port) {
  MachineValues machine;
  machine.port = 7411;
  EXPECT_EQ(CheckPort(machine).check, "port 7411");
  Expect({"free", {}, Level::kOk, "is free", ""}, CheckPort(machine));
  machine.port_is_free = false;
  Expect({"hidden", {}, Level::kWarning, "another user's program has it", "--listen 127.0.0.1:0"}, CheckPort(machine));
  machine.port_owner = "python3 (pid 12)";
  Expect({"other", {}, Level::kWarning, "python3 (pid 12) has it", "--listen"}, CheckPort(machine));
  machine.port_owner = "hooke-server (pid 12)";
  Expect({"ours", {}, Level::kOk, "hooke-server (pid 12) has it", ""}, CheckPort(machine));
}

MachineValues StateValues(std::string probe, CommandOutcome space, CommandOutcome writes) {
  MachineValues machine;
  machine.state_dir = "/home/me/.hooke";
  machine.state_probe_dir = std::move(probe);
  machine.state_space = std::move(space);
  machine.state_writes = std::move(writes);
  return machine;
}

TEST(MachineChecksTest, StateFolder) {
  const CommandOutcome roomy = Printed("x\n 107374182400 53687091200\n");
  const CommandOutcome written = Printed("16+0 records out\n65536 bytes (66 kB, 64 KiB) copied, 0.016 s, 4.1 MB/s\n");
  const Case cases[] = {
      {"there", StateValues("/home/me/.hooke", roomy, written), Level::kOk,
       "/home/me/.hooke: 50.0 GiB of 100.0 GiB are free", ""},
      {"to be made", StateValues("/home/me", roomy, written), Level::kOk, "(to be made in /home/me)", ""},
      {"little", StateValues("/home/me/.hooke", Printed("x\n1073741824 1073741824\n"), written), Level::kWarning,
       "1.0 GiB of", "--state-dir"},
      {"full", StateValues("/home/me/.hooke", Printed("x\n1073741824 1\n"), written), Level::kFault, "0 MiB of",
       "du -sh"},
      {"hangs", StateValues("/home/me/.hooke", Failed(-1, "", true), written), Level::kFault, "does not answer",
       "--state-dir"},
      {"no df", StateValues("/home/me/.hooke", Failed(1, "df: no\n"), written), Level::kFault, "df: no", "--state-dir"},
  };
  for (const Case& one : cases) Expect(one, CheckStateSpace(one.machine));
  Expect({"no home", {}, Level::kFault, "$HOME is not set", "export HOME"}, CheckStateSpace({}));
  const Case speeds[] = {
      {"quick", StateValues("/s", roomy, written), Level::kOk, "/s: a write that is forced to disk takes 1.0 ms", ""},
      {"slow", StateValues("/s", roomy, Printed("65536 bytes copied, 1.6 s, 41 kB/s")), Level::kWarning, "100.0 ms",
       "faster disk"},
      {"hangs", StateValues("/s", roomy, Failed(-1, "", true)), Level::kFault, "more than 2.0 s", "local disk"},
      {"forbidden", StateValues("/s", roomy, Failed(1, "dd: failed to open '/s/x': Permission denied\n")),
       Level::kFault, "cannot be written: dd: failed to open", "sudo chown"},
  };
  for (const Case& one : speeds) Expect(one, CheckStateSpeed(one.machine));
}

TEST(MachineChecksTest, ParsesNonsense) {
  for (const char* text : {"", "\n\n", "x", "1 2 3", "a b", "-1 2"}) EXPECT_FALSE(ParseDf(text).has_value()) << text;
  for (const char* text : {"", "copied, ", "copied, x s", "copied, -1 s", "0.1 s"})
    EXPECT_FALSE(ParseDdSeconds(text).has_value()) << text;
}

// The folders of all cgroups above a process count, with both versions of cgroups.
TEST(ProcTextsTest, CgroupFolders) {
  std::vector<std::string> paths;
  for (const CgroupFolder& one : CgroupFolders("0::/a/b\n")) {
    EXPECT_FALSE(one.old);
    paths.push_back(one.path);
  }
  EXPECT_THAT(paths, ElementsAre("/sys/fs/cgroup/a/b", "/sys/fs/cgroup/a", "/sys/fs/cgroup"));
  paths.clear();
  for (const CgroupFolder& one : CgroupFolders("5:devices:/\n4:memory:/x\n3:cpu,cpuacct:/\nnonsense\n")) {
    EXPECT_TRUE(one.old);
    paths.push_back(one.path);
  }
  EXPECT_THAT(paths, ElementsAre("/sys/fs/cgroup/memory/x", "/sys/fs/cgroup/memory", "/sys/fs/cgroup/cpu"));
  EXPECT_THAT(CgroupFolders(""), IsEmpty());
}

TEST(ProcTextsTest, ListeningInode) {
  const std::string text =
      "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
      "   0: 0100007F:1CF3 00000000:0000 06 00000000:00000000 00:00000000 00000000     0        0 1 1 0\n"
      "   1: 0100007F:1CF3 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4242 1 0\n";
  EXPECT_EQ(ListeningInode(text, 7411), "4242");
  EXPECT_EQ(ListeningInode(text, 7412), "");
  EXPECT_EQ(ListeningInode("", 7411), "");
}

TEST(ProcTextsTest, PidOfSharedFile) {
  EXPECT_EQ(PidOfSharedFile("hooke-123-0a1b"), "123");
  for (const char* name : {"hooke-Ab12xY", "hooke--1", "hooke-1", "other-1-2", "hooke-1x-2"})
    EXPECT_EQ(PidOfSharedFile(name), "none") << name;
}

}  // namespace
}  // namespace hooke
