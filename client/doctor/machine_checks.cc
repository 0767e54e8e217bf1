#include "client/doctor/machine_checks.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "client/doctor/value_text.h"

namespace hooke {
namespace {

// A look-up that takes longer is felt at the start of each group.
constexpr absl::Duration kLookupMax = absl::Milliseconds(300);
constexpr uint64_t kMemoryWanted = uint64_t{1} << 30;
constexpr uint64_t kSharedWanted = uint64_t{256} << 20;
constexpr uint64_t kSharedNeeded = uint64_t{16} << 20;
constexpr uint64_t kDiskWanted = uint64_t{5} << 30;
constexpr uint64_t kDiskNeeded = uint64_t{100} << 20;
constexpr uint64_t kFilesWanted = 4096;
constexpr uint64_t kProcessesWanted = 4096;
constexpr double kSlowWriteSeconds = 0.05;
constexpr absl::Duration kLeftoverAge = absl::Hours(1);
constexpr size_t kNamesShown = 3;

bool NamesHost(const std::string& etc_hosts, const std::string& name) {
  for (absl::string_view line : absl::StrSplit(etc_hosts, '\n')) {
    line = line.substr(0, line.find('#'));
    const std::vector<absl::string_view> words = absl::StrSplit(line, absl::ByAnyChar(" \t"), absl::SkipEmpty());
    if (words.size() > 1 && std::find(words.begin() + 1, words.end(), name) != words.end()) return true;
  }
  return false;
}

// Reads "MemAvailable:   123 kB" of /proc/meminfo, in bytes.
std::optional<uint64_t> MeminfoBytes(const std::string& meminfo, absl::string_view key) {
  for (const absl::string_view line : absl::StrSplit(meminfo, '\n')) {
    const std::vector<absl::string_view> words = absl::StrSplit(line, ' ', absl::SkipEmpty());
    uint64_t kib = 0;
    if (words.size() >= 2 && words[0] == key && absl::SimpleAtoi(words[1], &kib)) return kib << 10;
  }
  return std::nullopt;
}

struct Limits {
  uint64_t soft = 0;
  uint64_t hard = 0;
};

// Reads a line of /proc/self/limits: "Max open files            1024                 524288               files".
std::optional<Limits> ParseLimits(const std::string& text, absl::string_view name) {
  const auto number = [](absl::string_view word, uint64_t& value) {
    value = std::numeric_limits<uint64_t>::max();
    return word == "unlimited" || absl::SimpleAtoi(word, &value);
  };
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    if (!absl::ConsumePrefix(&line, name)) continue;
    const std::vector<absl::string_view> words = absl::StrSplit(line, ' ', absl::SkipEmpty());
    Limits limits;
    if (words.size() >= 2 && number(words[0], limits.soft) && number(words[1], limits.hard)) return limits;
  }
  return std::nullopt;
}

std::string LimitText(uint64_t limit) {
  return limit == std::numeric_limits<uint64_t>::max() ? "unlimited" : absl::StrCat(limit);
}

struct LimitNeed {
  std::string check;         // "open files"
  absl::string_view line;    // Its name in /proc/self/limits.
  std::string shell_flag;    // "-n"
  std::string unit_setting;  // "LimitNOFILE"
  std::string file_item;     // "nofile"
  uint64_t wanted = 0;
};

Finding CheckLimit(const MachineValues& machine, const LimitNeed& need) {
  const std::optional<Limits> limits = ParseLimits(machine.own_limits, need.line);
  if (!limits.has_value()) return Ok(need.check, "the kernel does not tell its limit");
  const std::string found =
      absl::StrCat("soft limit ", LimitText(limits->soft), ", hard limit ", LimitText(limits->hard));
  if (limits->soft >= need.wanted) return Ok(need.check, found);
  const std::string told = absl::StrCat(found, "; a large cluster needs ", need.wanted);
  if (limits->hard >= need.wanted) {
    return Warning(need.check, told,
                   {absl::StrCat("`ulimit ", need.shell_flag, " ", need.wanted, "` before starting a daemon, or `",
                                 need.unit_setting, "=", need.wanted, "` in its systemd unit")});
  }
  return Warning(need.check, told,
                 {absl::StrCat("echo '* - ", need.file_item, " ", need.wanted,
                               "' | sudo tee /etc/security/limits.d/hooke.conf    # then log in again"),
                  absl::StrCat("a systemd unit has `", need.unit_setting, "=", need.wanted, "`")});
}

}  // namespace

Finding CheckHostName(const MachineValues& machine) {
  const std::string check = "host name";
  const std::string& name = machine.host_name;
  const std::vector<std::string> advice = {absl::StrCat(
      "echo '127.0.1.1 ", name, "' | sudo tee -a /etc/hosts    # else each start may take seconds longer")};
  const CommandOutcome& lookup = machine.host_lookup;
  if (name.empty()) return Warning(check, "this machine has none", {"sudo hostname NAME"});
  const std::string quoted = absl::StrCat("\"", name, "\"");
  if (NamesHost(machine.etc_hosts, name)) return Ok(check, absl::StrCat(quoted, " is in /etc/hosts"));
  if (lookup.missing()) return Warning(check, absl::StrCat(quoted, " is not in /etc/hosts"), advice);
  if (!lookup.ok()) {
    return Warning(check,
                   absl::StrCat(quoted, " does not resolve", lookup.timed_out ? " within " : " after ",
                                SecondsText(lookup.took), ", and is not in /etc/hosts"),
                   advice);
  }
  const std::string resolved = absl::StrCat(quoted, " resolves by a name server in ", SecondsText(lookup.took));
  return lookup.took > kLookupMax ? Warning(check, resolved, advice) : Ok(check, resolved);
}

std::optional<double> CgroupCpus(const CgroupLimits& cgroup) {
  std::optional<double> least;
  for (const std::string& text : cgroup.cpu) {
    const std::vector<absl::string_view> words = absl::StrSplit(text, absl::ByAnyChar(" \n"), absl::SkipEmpty());
    double quota = 0, period = 0;
    if (words.size() != 2 || !absl::SimpleAtod(words[0], &quota) || !absl::SimpleAtod(words[1], &period)) continue;
    if (quota <= 0 || period <= 0) continue;
    least = std::min(least.value_or(quota / period), quota / period);
  }
  return least;
}

Finding CheckCores(const MachineValues& machine) {
  const std::string check = "cores";
  const int own = machine.own_cpus;
  std::string found = absl::StrCat(own, own == 1 ? " CPU" : " CPUs");
  if (own < machine.online_cpus) {
    absl::StrAppend(&found, " of ", machine.online_cpus, " are in the affinity mask of this process");
  }
  const std::optional<double> limit = CgroupCpus(machine.cgroup);
  if (!limit.has_value() || *limit >= own) return Ok(check, found);
  const int slots = std::max(1, static_cast<int>(std::floor(*limit)));
  return Warning(
      check,
      absl::StrFormat("%s, but the cgroup gives the time of %.2f: a worker would offer %d slots", found, *limit, own),
      {absl::StrCat("hooke-worker --slots ", slots, " --bind none"),
       absl::StrCat("or raise the limit: `docker run --cpus ", own, "`, `resources.limits.cpu` of the pod, ",
                    "`CPUQuota=` of the unit")});
}

Finding CheckMemory(const MachineValues& machine) {
  const std::string check = "memory";
  const std::optional<uint64_t> available = MeminfoBytes(machine.meminfo, "MemAvailable:");
  const std::optional<uint64_t> total = MeminfoBytes(machine.meminfo, "MemTotal:");
  if (!available.has_value() || !total.has_value()) return Ok(check, "the kernel does not tell how much is free");
  uint64_t free = *available;
  std::string limited;
  for (const CgroupLimits::Memory& memory : machine.cgroup.memory) {
    uint64_t limit = 0, usage = 0;
    if (!absl::SimpleAtoi(memory.limit, &limit) || !absl::SimpleAtoi(memory.usage, &usage)) continue;
    const uint64_t left = limit > usage ? limit - usage : 0;
    if (left >= free) continue;
    free = left;
    limited = absl::StrCat(", of the ", SpaceText(limit), " that the cgroup allows");
  }
  const std::string found =
      absl::StrCat(SpaceText(free), " are free", limited.empty() ? absl::StrCat(" of ", SpaceText(*total)) : limited);
  if (free >= kMemoryWanted) return Ok(check, found);
  return Warning(check, absl::StrCat(found, "; a rank with LibTorch takes about 0.3 GiB before its model"),
                 {"`ps aux --sort -rss | head` names the largest processes; end some, or raise the limit"});
}

std::optional<Filesystem> ParseDf(const std::string& text) {
  const std::vector<absl::string_view> lines = absl::StrSplit(text, '\n', absl::SkipWhitespace());
  if (lines.empty()) return std::nullopt;
  const std::vector<absl::string_view> words = absl::StrSplit(lines.back(), ' ', absl::SkipEmpty());
  Filesystem found;
  if (words.size() != 2 || !absl::SimpleAtoi(words[0], &found.size) || !absl::SimpleAtoi(words[1], &found.free)) {
    return std::nullopt;
  }
  return found;
}

std::vector<std::string> Leftovers(const std::vector<SharedEntry>& entries) {
  std::vector<std::string> names;
  for (const SharedEntry& entry : entries) {
    if (!entry.ours || entry.age < kLeftoverAge || entry.has_socket.value_or(true)) continue;
    names.push_back(entry.name);
  }
  return names;
}

Finding CheckSharedMemory(const MachineValues& machine) {
  const std::string check = "/dev/shm";
  const std::vector<std::string> enlarge = {
      "sudo mount -o remount,size=50% /dev/shm    # in a container: `docker run --shm-size=4g`, or a memory emptyDir"};
  const std::optional<Filesystem> space = ParseDf(machine.shared_memory_space.output);
  if (!machine.shared_memory_space.ok() || !space.has_value()) {
    return Fault(check, "there is none; the ranks of a node share memory in it",
                 {"sudo mount -t tmpfs -o mode=1777 tmpfs /dev/shm"});
  }
  const std::string found = absl::StrCat(SpaceText(space->free), " of ", SpaceText(space->size), " are free");
  if (space->free < kSharedNeeded) {
    return Fault(check, absl::StrCat(found, "; the ranks of a node share their gradients in it"), enlarge);
  }
  if (space->free < kSharedWanted) {
    return Warning(check, absl::StrCat(found, "; a group needs about 8 bytes for each parameter"), enlarge);
  }
  std::vector<std::string> left = Leftovers(machine.shared_entries);
  if (left.empty()) return Ok(check, found);
  const size_t count = left.size();
  const std::string counted = count == 1 ? "1 entry that a killed worker has left"
                                         : absl::StrCat(count, " entries that killed workers have left");
  left.resize(std::min(count, kNamesShown));
  return Warning(check, absl::StrCat(found, "; ", counted),
                 {absl::StrCat("rm -r /dev/shm/", absl::StrJoin(left, " /dev/shm/"),
                               count > kNamesShown ? absl::StrCat("    # and ", count - kNamesShown, " more") : "")});
}

Finding CheckOpenFiles(const MachineValues& machine) {
  return CheckLimit(machine, {"open files", "Max open files", "-n", "LimitNOFILE", "nofile", kFilesWanted});
}

Finding CheckProcesses(const MachineValues& machine) {
  return CheckLimit(machine, {"processes", "Max processes", "-u", "LimitNPROC", "nproc", kProcessesWanted});
}

Finding CheckClock(const MachineValues& machine) {
  const std::string check = "clock";
  if (!machine.clock_synchronised.has_value()) return Ok(check, "the kernel does not tell whether it is synchronised");
  if (*machine.clock_synchronised) return Ok(check, "is synchronised");
  return Warning(check, "nothing keeps it synchronised: times in logs of several machines would not fit together",
                 {"sudo timedatectl set-ntp true    # or: sudo apt-get install chrony"});
}

Finding CheckPort(const MachineValues& machine) {
  const std::string check = absl::StrCat("port ", machine.port);
  if (machine.port_is_free) return Ok(check, "is free for hooke-server");
  if (absl::StartsWith(machine.port_owner, "hooke-server"))
    return Ok(check, absl::StrCat(machine.port_owner, " has it"));
  const std::string owner = machine.port_owner.empty() ? "another user's program" : machine.port_owner;
  return Warning(check, absl::StrCat(owner, " has it, so that hooke-server cannot listen there"),
                 {absl::StrCat("hooke-server --listen 127.0.0.1:0    # a free port; `ss -ltnp sport = :", machine.port,
                               "` shows who has this one")});
}

Finding CheckStateSpace(const MachineValues& machine) {
  const std::string check = "state folder";
  const std::string& folder = machine.state_dir;
  const std::vector<std::string> elsewhere = {
      absl::StrCat("choose another by --state-dir, or make room: `du -sh ", folder, "/*`")};
  if (folder.empty()) return Fault(check, "$HOME is not set", {"export HOME=~, or give each program a --state-dir"});
  const std::string shown = machine.state_probe_dir == folder
                                ? folder
                                : absl::StrCat(folder, " (to be made in ", machine.state_probe_dir, ")");
  if (machine.state_space.timed_out) {
    return Fault(check, absl::StrCat(shown, ": its disk does not answer"), {"choose another by --state-dir"});
  }
  const std::optional<Filesystem> space = ParseDf(machine.state_space.output);
  if (!space.has_value()) {
    return Fault(check, absl::StrCat(shown, ": ", FirstLine(machine.state_space.output)),
                 {"choose another by --state-dir"});
  }
  const std::string found =
      absl::StrCat(shown, ": ", SpaceText(space->free), " of ", SpaceText(space->size), " are free");
  if (space->free < kDiskNeeded) return Fault(check, found, elsewhere);
  if (space->free < kDiskWanted) return Warning(check, found, elsewhere);
  return Ok(check, found);
}

std::optional<double> ParseDdSeconds(const std::string& text) {
  const size_t found = text.rfind("copied, ");
  if (found == std::string::npos) return std::nullopt;
  const std::vector<absl::string_view> words = absl::StrSplit(absl::string_view(text).substr(found), ' ');
  double seconds = 0;
  if (words.size() < 2 || !absl::SimpleAtod(words[1], &seconds) || seconds < 0) return std::nullopt;
  return seconds;
}

Finding CheckStateSpeed(const MachineValues& machine) {
  const std::string check = "disk writes";
  const std::string& folder = machine.state_probe_dir;
  const CommandOutcome& writes = machine.state_writes;
  if (folder.empty()) return Ok(check, "not tried: no state folder is known");
  if (writes.timed_out) {
    return Fault(check,
                 absl::StrCat(folder, ": ", kStateWrites, " small writes take more than ", SecondsText(writes.took)),
                 {"put the state folder on a local disk: --state-dir DIR"});
  }
  const std::optional<double> seconds = ParseDdSeconds(writes.output);
  if (!writes.ok() || !seconds.has_value()) {
    return Fault(check, absl::StrCat(folder, " cannot be written: ", FirstLine(writes.output)),
                 {absl::StrCat("sudo chown $(id -u):$(id -g) ", folder, "    # or choose another by --state-dir")});
  }
  const double each = *seconds / kStateWrites;
  const std::string found = absl::StrFormat("%s: a write that is forced to disk takes %.1f ms", folder, 1000 * each);
  if (each < kSlowWriteSeconds) return Ok(check, found);
  return Warning(check, absl::StrCat(found, "; the coordinator waits for each"),
                 {"put the state folder of hooke-server on a local or faster disk: --state-dir DIR"});
}

}  // namespace hooke
