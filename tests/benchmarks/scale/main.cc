// The program of `tests/benchmarks/run scale`. It simulates one all-reduce among many ranks, or fits the costs of a
// network to measured all-reduces. It prints one JSON object.

#include <algorithm>
#include <exception>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "flags/command_line.h"
#include "mpi_group/choose_algorithm.h"
#include "mpi_group/scale/fit_link.h"
#include "mpi_group/scale/simulated_all_reduce.h"
#include "mpi_group/time_model.h"

namespace hooke {
namespace {

constexpr double kMicro = 1e-6;
// The most bytes of memory for the values of all ranks if nodes have several ranks. Only if each node has one rank can
// a byte of memory stand for many.
constexpr uint64_t kGroupBytesMax = uint64_t{4} << 30;

struct Flags {
  int nodes = 1024;
  int each = 1;
  uint64_t bytes = 25000000;
  std::string algorithm = "chosen";
  double latency_us = 20;
  double overhead_us = 4;
  double gbit = 10;
  uint64_t memory = uint64_t{512} << 20;
  bool fit = false;
};

int Fail(const absl::Status& status) {
  std::cerr << "scale_simulation: " << status << std::endl;
  return 1;
}

int Print(const nlohmann::ordered_json& object) {
  std::cout << object.dump() << std::endl;
  return 0;
}

// Returns how many bytes of values one byte of memory must stand for, so that the values of all ranks take at most
// `memory` bytes. It is a power of two.
uint64_t BytesPerByte(const Flags& flags) {
  uint64_t count = 1;
  while (flags.bytes / count * static_cast<uint64_t>(flags.nodes) > flags.memory) count *= 2;
  return count;
}

Choice ChoiceFor(const Flags& flags) {
  if (flags.each > 1) return ChoiceBetweenNodes({flags.nodes, flags.each, flags.bytes});
  const Topology topology = {flags.nodes, flags.nodes, 1, 1, true, false};
  Choice choice = ChooseAlgorithm(topology, {Operation::kAllReduce, flags.bytes});
  if (flags.algorithm == "chosen") return choice;
  const auto* const named = std::find_if(std::begin(kAllAlgorithms), std::end(kAllAlgorithms),
                                         [&](Algorithm each) { return NameOf(each) == flags.algorithm; });
  choice.algorithm = *named;
  return choice;
}

int Simulate(const Flags& flags) {
  if (flags.each > 1 && flags.bytes * flags.nodes * flags.each > kGroupBytesMax) {
    return Fail(absl::InvalidArgumentError(
        absl::StrCat("the values of ", flags.nodes * flags.each, " ranks take ", flags.bytes * flags.nodes * flags.each,
                     " bytes of memory, at most ", kGroupBytesMax, " are allowed; take fewer --bytes or --nodes")));
  }
  const LinkCost link = {flags.latency_us * kMicro, flags.overhead_us * kMicro, 8 / (flags.gbit * 1e9)};
  const Choice choice = ChoiceFor(flags);
  const absl::Time begin = absl::Now();
  absl::StatusOr<double> simulated = 0.0;
  double model = 0;
  if (flags.each > 1) {
    const TwoLevelCase one = {flags.nodes, flags.each, flags.bytes};
    model = TwoLevelSeconds(one, link);
    simulated = SimulateTwoLevel(one, link);
  } else {
    const ModelCall call = {flags.nodes, flags.bytes, choice.chunk_bytes};
    model = AllReduceSeconds(choice.algorithm, call, link);
    simulated = SimulateAllReduce(choice.algorithm, call, link, BytesPerByte(flags));
  }
  if (!simulated.ok()) return Fail(simulated.status());
  return Print({{"algorithm", std::string(NameOf(choice.algorithm))},
                {"model_us", model / kMicro},
                {"simulated_us", *simulated / kMicro},
                {"real_s", absl::ToDoubleSeconds(absl::Now() - begin)}});
}

// Reads lines of "NODES BYTES MICROSECONDS".
int Fit() {
  std::vector<MeasuredAllReduce> measured;
  MeasuredAllReduce one;
  while (std::cin >> one.nodes >> one.bytes >> one.seconds) {
    one.seconds *= kMicro;
    if (one.nodes < 2 || one.seconds <= 0)
      return Fail(absl::InvalidArgumentError("lines are NODES BYTES MICROSECONDS"));
    measured.push_back(one);
  }
  if (measured.empty()) return Fail(absl::InvalidArgumentError("no line of NODES BYTES MICROSECONDS on the input"));
  const LinkCost link = FitLink(measured);
  nlohmann::ordered_json models = nlohmann::ordered_json::array();
  for (const MeasuredAllReduce& each : measured) models.push_back(ModelSeconds(each, link) / kMicro);
  return Print({{"latency_us", link.latency / kMicro},
                {"overhead_us", link.overhead / kMicro},
                {"gbit", 8 / link.per_byte / 1e9},
                {"model_us", models}});
}

}  // namespace
}  // namespace hooke

int main(int argc, char** argv) try {
  hooke::Command command("scale_simulation", "An all-reduce among many simulated ranks");
  hooke::Flags flags;
  command.Add("--nodes", flags.nodes, "Nodes, each with a link of its own").Range(2, 2048);
  command.Add("--each", flags.each, "Ranks of each node").Range(1, 16);
  command.Add("--bytes", flags.bytes, "Bytes of each rank's values").Range(uint64_t{4}, uint64_t{1} << 30);
  command.Add("--algorithm", flags.algorithm, "The algorithm, if each node has one rank")
      .OneOf({"chosen", "ring", "pairwise", "recursive-doubling", "halving-doubling", "reference"});
  command.Add("--latency-us", flags.latency_us, "Microseconds").Range(0.0, 1e6);
  command.Add("--overhead-us", flags.overhead_us, "Microseconds for each message").Range(0.0, 1e6);
  command.Add("--gbit", flags.gbit, "Gbit/s of each link").Range(0.001, 10000.0);
  command.Add("--memory", flags.memory, "Bytes of memory for the values of all ranks");
  command.Add("--fit", flags.fit, "Read lines of NODES BYTES MICROSECONDS, and print the costs that explain them best");
  if (const hooke::Parsed parsed = command.Parse(argc, argv); !parsed.ok()) return parsed.Print();
  return flags.fit ? hooke::Fit() : hooke::Simulate(flags);
} catch (const std::exception& error) {
  std::cerr << error.what() << "\n";
  return 1;
}
