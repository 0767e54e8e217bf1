// Time of a group's all-reduce against MPI_Allreduce, side by side in one run:
//   mpirun -n 2 --bind-to none all_reduce_benchmark [--json FILE]
// Checks every answer before it times; alternates the rivals; prints bytes, median and p99 microseconds, bus bandwidth
// (bytes a rank must at least send and receive, per second) and the ratio of MPI_Allreduce's median to ours.

#include <mpi.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "mpi_group/mpi_group.h"

namespace hooke {
namespace {

struct Rival {
  std::string name;
  absl::Span<float> values;
  std::function<absl::Status()> all_reduce;  // Sums `values` in place.
};

absl::Status Check(const Rival& rival, const MpiSession& session) {
  for (size_t i = 0; i < rival.values.size(); ++i) rival.values[i] = static_cast<float>(session.rank() + i % 100);
  absl::Status status = rival.all_reduce();
  if (!status.ok()) return status;
  const size_t n = session.size();
  for (size_t i = 0; i < rival.values.size(); ++i) {
    const size_t expected = n * (n - 1) / 2 + n * (i % 100);
    if (rival.values[i] != static_cast<float>(expected)) return absl::InternalError(rival.name + " gives a wrong sum");
  }
  std::fill(rival.values.begin(), rival.values.end(), 0.0f);
  return absl::OkStatus();
}

// Microseconds of each call, the slowest rank's.
absl::StatusOr<std::map<std::string, std::vector<double>>> Time(const std::vector<Rival>& rivals, int repetitions) {
  std::map<std::string, std::vector<double>> times;
  for (int i = 0; i < repetitions; ++i) {
    for (const Rival& rival : rivals) {
      MPI_Barrier(MPI_COMM_WORLD);
      const absl::Time start = absl::Now();
      absl::Status status = rival.all_reduce();
      const double own = absl::ToDoubleMicroseconds(absl::Now() - start);
      if (!status.ok()) return status;
      double slowest = 0;
      MPI_Allreduce(&own, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
      times[rival.name].push_back(slowest);
    }
  }
  for (auto& [name, all] : times) std::sort(all.begin(), all.end());
  return times;
}

struct Output {
  bool speaks = false;  // Rank 0.
  std::ofstream json;
};

void Print(const std::map<std::string, std::vector<double>>& times, uint64_t bytes, int ranks, Output& output) {
  if (!output.speaks) return;
  const auto median = [](const std::vector<double>& sorted) { return sorted[sorted.size() / 2]; };
  const double mpi = median(times.at("mpi"));
  for (const auto& [name, sorted] : times) {
    const double us = median(sorted);
    const double p99 = sorted[sorted.size() * 99 / 100];
    const double gb_per_s = 2.0 * (ranks - 1) / ranks * bytes / us / 1e3;
    std::cout << absl::StrFormat("%10d  %-8s %12.1f %12.1f %8.2f %8.2f\n", bytes, name, us, p99, gb_per_s, mpi / us);
    if (!output.json.is_open()) continue;
    output.json
        << nlohmann::json{{"benchmark", "all_reduce"}, {"impl", name},  {"ranks", ranks},       {"bytes", bytes},
                          {"median_us", us},           {"p99_us", p99}, {"gb_per_s", gb_per_s}, {"speedup", mpi / us}}
        << "\n";
  }
}

absl::Status RunSize(uint64_t bytes, Group& group, const MpiSession& session, Output& output) {
  const uint64_t count = bytes / sizeof(float);
  std::vector<float> own(count);
  std::vector<float> mpi(count);
  const absl::StatusOr<absl::Span<float>> arena = group.AllocateShared(count);
  if (!arena.ok()) return arena.status();
  const TensorList messages(absl::MakeSpan(own));
  const TensorList shared(*arena);
  const std::vector<Rival> rivals = {
      {"messages", absl::MakeSpan(own), [&] { return group.AllReduce(messages, ReduceOp::kSum); }},
      {"mpi", absl::MakeSpan(mpi),
       [&] {
         MPI_Allreduce(MPI_IN_PLACE, mpi.data(), static_cast<int>(count), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
         return absl::OkStatus();
       }},
      {"shared", *arena, [&] { return group.AllReduce(shared, ReduceOp::kSum); }},
  };
  for (const Rival& rival : rivals) {
    absl::Status status = Check(rival, session);
    if (!status.ok()) return status;
  }
  const auto times = Time(rivals, std::max<int>(21, std::min<int>(501, (uint64_t{256} << 20) / bytes)));
  if (!times.ok()) return times.status();
  Print(*times, bytes, session.size(), output);
  return absl::OkStatus();
}

absl::Status RunAll(MpiSession& session, const std::vector<uint64_t>& sizes, Output& output) {
  if (output.speaks) {
    std::cout << absl::StrFormat("%d ranks\n%10s  %-8s %12s %12s %8s %8s\n", session.size(), "bytes", "impl",
                                 "median us", "p99 us", "GB/s", "x mpi");
  }
  for (uint64_t bytes : sizes) {
    const absl::StatusOr<std::unique_ptr<Group>> group = MakeMpiGroup(session, GroupOptions());
    if (!group.ok()) return group.status();
    absl::Status status = RunSize(bytes, **group, session, output);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace hooke

int main(int argc, char** argv) {
  CLI::App app("All-reduce of a group against MPI_Allreduce; run it under mpirun.");
  std::string json;
  std::vector<uint64_t> sizes = {4, 1 << 10, 1 << 14, 1 << 16, 1 << 20, 6650000, 1 << 24, 1 << 26};
  app.add_option("--json", json, "Also write one JSON object per line to this file");
  app.add_option("--bytes", sizes, "Sizes to measure")->check(CLI::Range(uint64_t{4}, uint64_t{1} << 32));
  CLI11_PARSE(app, argc, argv);
  const auto session = hooke::MpiSession::Start();
  if (!session.ok()) {
    std::cerr << session.status() << "\n";
    return 1;
  }
  hooke::Output output;
  output.speaks = (*session)->rank() == 0;
  if (output.speaks && !json.empty()) output.json.open(json);
  absl::Status status = hooke::RunAll(**session, sizes, output);
  status.Update((*session)->Finish());
  if (status.ok()) return 0;
  std::cerr << status << "\n";
  hooke::MpiSession::ExitWithoutFinalize(1);
}
