#include "wire/metrics/process_figures.h"

#include <dirent.h>
#include <sys/resource.h>
#include <unistd.h>

#include <fstream>
#include <iterator>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "clocks/cores_used.h"

namespace hooke {
namespace {

uint64_t ResidentBytes() {
  std::ifstream file("/proc/self/statm");
  uint64_t all = 0;
  uint64_t resident = 0;
  if (!(file >> all >> resident)) return 0;
  return resident * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

uint64_t OpenFiles() {
  DIR* const folder = opendir("/proc/self/fd");
  if (folder == nullptr) return 0;
  uint64_t entries = 0;
  while (readdir(folder) != nullptr) ++entries;
  closedir(folder);
  return entries < 3 ? 0 : entries - 3;  // Without ".", ".." and the folder's own descriptor.
}

// Returns how long this process has existed.
absl::Duration Age() {
  std::ifstream file("/proc/self/stat");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  // The program's name, which may have any characters, ends with the last parenthesis. The start is the 20th field
  // after it, in clock ticks since the machine's start.
  const size_t name_end = text.rfind(')');
  if (name_end == std::string::npos) return absl::ZeroDuration();
  const std::vector<std::string> fields = absl::StrSplit(text.substr(name_end + 1), ' ', absl::SkipEmpty());
  uint64_t ticks = 0;
  if (fields.size() < 20 || !absl::SimpleAtoi(fields[19], &ticks)) return absl::ZeroDuration();
  timespec up = {};
  clock_gettime(CLOCK_BOOTTIME, &up);
  return absl::DurationFromTimespec(up) - absl::Seconds(static_cast<double>(ticks) / sysconf(_SC_CLK_TCK));
}

}  // namespace

ProcessFigures ReadProcessFigures() {
  ProcessFigures figures;
  figures.cpu_time = ProcessCpuTime();
  figures.resident_bytes = ResidentBytes();
  figures.open_files = OpenFiles();
  rlimit files = {};
  if (getrlimit(RLIMIT_NOFILE, &files) == 0) figures.open_files_max = files.rlim_cur;
  figures.started = absl::Now() - Age();
  return figures;
}

void AddProcessMetrics(const ProcessFigures& figures, const std::string& program, const std::string& version,
                       MetricFamilies& families) {
  families.Gauge("hooke_build_info", "1, with the program and its version as labels.", 1,
                 {{"program", program}, {"version", version}});
  families.Counter("process_cpu_seconds_total", "CPU time of all threads of this process.",
                   absl::ToDoubleSeconds(figures.cpu_time));
  families.Gauge("process_resident_memory_bytes", "Memory of this process that is in RAM.",
                 static_cast<double>(figures.resident_bytes));
  families.Gauge("process_open_fds", "File descriptors that this process has open.",
                 static_cast<double>(figures.open_files));
  families.Gauge("process_max_fds", "File descriptors that this process may open.",
                 static_cast<double>(figures.open_files_max));
  families.Gauge("process_start_time_seconds", "Time of this process' start, since 1970-01-01 UTC.",
                 absl::ToDoubleSeconds(figures.started - absl::UnixEpoch()));
}

}  // namespace hooke
