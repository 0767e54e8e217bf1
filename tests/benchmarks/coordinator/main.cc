// Started by `tests/benchmarks/run coordinator`. It brings all groups to run, prints "ready", waits for a line,
// measures for a while and prints "measured". Then it checks that nothing was lost and prints the results as one JSON
// object.

#include <cstdint>
#include <cstdio>
#include <exception>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "flags/command_line.h"
#include "tests/benchmarks/coordinator/load.h"

namespace hooke {
namespace {

int Fail(const absl::Status& status) {
  std::cerr << "coordinator_load: " << status << std::endl;
  return 1;
}

int Run(const LoadOptions& options, absl::Duration warm_up, absl::Duration length) {
  Load load(options);
  if (absl::Status status = load.Start(warm_up); !status.ok()) return Fail(status);
  std::cout << "ready" << std::endl;
  std::string go;
  if (!std::getline(std::cin, go)) return 1;  // The parent process is gone.
  const absl::StatusOr<LoadResult> result = load.Measure(length);
  if (!result.ok()) return Fail(result.status());
  std::cout << "measured" << std::endl;
  if (absl::Status status = load.Check(); !status.ok()) return Fail(status);
  const nlohmann::ordered_json json = {{"rank_reports", result->sent.rank_reports},
                                       {"progress", result->sent.progress},
                                       {"profiles", result->sent.profiles},
                                       {"heartbeats", result->sent.heartbeats},
                                       {"writes", result->sent.writes},
                                       {"late_ms", result->sent.late_ms_max},
                                       {"statuses", result->statuses},
                                       {"list_ms", result->list_ms}};
  std::cout << json.dump() << std::endl;
  return 0;
}

}  // namespace
}  // namespace hooke

int main(int argc, char** argv) try {
  hooke::Command command("coordinator_load", "Simulated workers, ranks and watchers of one coordinator");
  hooke::LoadOptions options;
  double seconds = 20;
  double warm_up = 34;
  double list_every = absl::ToDoubleSeconds(options.list_every);
  command.Add("--coordinator", options.coordinator, "HOST:PORT of the coordinator").Required();
  command.Add("--workers", options.workers, "Workers").Range(1, 4096);
  command.Add("--ranks", options.ranks, "Ranks of all groups together").Range(1, 100000);
  command.Add("--group-ranks", options.group_ranks, "Ranks of a group").Range(1, 1024);
  command.Add("--job-groups", options.job_groups, "Groups of a job").Range(1, 1024);
  command.Add("--watchers", options.watchers, "Users who watch a job each").Range(0, 1000);
  command.Add("--list-every", list_every, "Seconds between two lists of all jobs").Range(0.001, 3600.0);
  command.Add("--warm-up", warm_up, "Seconds from when all groups run to the measurement").Range(0.0, 3600.0);
  command.Add("--seconds", seconds, "Seconds of the measurement").Range(0.001, 3600.0);
  if (const hooke::Parsed parsed = command.Parse(argc, argv); !parsed.ok()) return parsed.Print();
  options.list_every = absl::Seconds(list_every);
  return hooke::Run(options, absl::Seconds(warm_up), absl::Seconds(seconds));
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
