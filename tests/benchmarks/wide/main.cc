// The program of `tests/benchmarks/run wide`. It attaches all groups, prints "ready" and waits for a line. Then it lets
// the groups exchange, and prints the results as one JSON object.

#include <cstdio>
#include <exception>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/status/status.h"
#include "flags/command_line.h"
#include "tests/benchmarks/wide/groups.h"

namespace hooke {
namespace {

int Fail(const absl::Status& status) {
  std::cerr << "wide_groups: " << status << std::endl;
  return 1;
}

int Run(const WideOptions& options) {
  WideRun run(options);
  if (absl::Status status = run.Attach(); !status.ok()) return Fail(status);
  std::cout << "ready" << std::endl;
  std::string go;
  if (!std::getline(std::cin, go)) return 1;  // The parent process is gone.
  const absl::StatusOr<WideResult> result = run.Run();
  if (!result.ok()) return Fail(result.status());
  const nlohmann::ordered_json json = {
      {"latencies_ms", result->latencies_ms}, {"errors", result->errors}, {"first_error", result->first_error}};
  std::cout << json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) << std::endl;
  return 0;
}

}  // namespace
}  // namespace hooke

int main(int argc, char** argv) try {
  hooke::Command command("wide_groups", "Many groups that exchange with one server, by the clock");
  hooke::WideOptions options;
  double period = 1;
  double seconds = 20;
  uint64_t bytes = 1 << 20;
  command.Add("--server", options.server, "HOST:PORT of the server").Required();
  command.Add("--groups", options.groups, "Groups").Range(1, 1024);
  command.Add("--bytes", bytes, "Bytes of the center").Range(4, 1 << 30);
  command.Add("--period", period, "Seconds between two exchanges of a group").Range(0.001, 86400.0);
  command.Add("--seconds", seconds, "Length").Range(0.001, 86400.0);
  command.Add("--seed", options.seed, "Of the order in which groups start");
  command.Add("--grpc", options.grpc, "Exchange by gRPC instead of plain TCP");
  if (const hooke::Parsed parsed = command.Parse(argc, argv); !parsed.ok()) return parsed.Print();
  options.values = bytes / sizeof(float);
  options.period = absl::Seconds(period);
  options.length = absl::Seconds(seconds);
  return hooke::Run(options);
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
