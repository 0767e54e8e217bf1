// The benchmark's ranks of an MPI library; the program is built once with each library. It also has a textbook ring of
// our own (Baidu's algorithm) on top of MPI_Sendrecv. The ring makes n - 1 steps of reduce-scatter and n - 1 of
// all-gather, without pipelining.

#include <mpi.h>

#include <exception>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "flags/command_line.h"
#include "tests/benchmarks/collectives/rival.h"
#include "tests/benchmarks/collectives/serve.h"

namespace hooke {
namespace {

absl::Status FromMpi(int code) {
  return code == MPI_SUCCESS ? absl::OkStatus() : absl::InternalError("MPI returned " + std::to_string(code));
}

class Ring {
 public:
  Ring(int rank, int size, uint64_t count)
      : rank_(rank), size_(size), received_((count + static_cast<uint64_t>(size) - 1) / size) {}

  absl::Status AllReduce(absl::Span<float> values) {
    for (int step = 0; step < size_ - 1; ++step) {
      const absl::Span<float> to = Slice(values, rank_ - step);
      const absl::Span<float> own = Slice(values, rank_ - step - 1);
      const int code = Exchange(to, received_.data(), own.size());
      if (code != MPI_SUCCESS) return FromMpi(code);
      for (size_t i = 0; i < own.size(); ++i) own[i] += received_[i];
    }
    for (int step = 0; step < size_ - 1; ++step) {
      const absl::Span<float> next = Slice(values, rank_ - step);
      const int code = Exchange(Slice(values, rank_ - step + 1), next.data(), next.size());
      if (code != MPI_SUCCESS) return FromMpi(code);
    }
    return absl::OkStatus();
  }

 private:
  // Returns slice `index` modulo the number of ranks; `index` may be negative.
  absl::Span<float> Slice(absl::Span<float> values, int index) const {
    const uint64_t slice = (index + 2 * size_) % size_;
    const uint64_t begin = values.size() * slice / size_;
    return values.subspan(begin, values.size() * (slice + 1) / size_ - begin);
  }

  int Exchange(absl::Span<const float> to, float* from, size_t count) const {
    return MPI_Sendrecv(to.data(), static_cast<int>(to.size()), MPI_FLOAT, (rank_ + 1) % size_, 0, from,
                        static_cast<int>(count), MPI_FLOAT, (rank_ + size_ - 1) % size_, 0, MPI_COMM_WORLD,
                        MPI_STATUS_IGNORE);
  }

  const int rank_;
  const int size_;
  std::vector<float> received_;
};

int AllReduce(absl::Span<float> values) {
  return MPI_Allreduce(MPI_IN_PLACE, values.data(), static_cast<int>(values.size()), MPI_FLOAT, MPI_SUM,
                       MPI_COMM_WORLD);
}

int Reduce(absl::Span<float> values, int rank) {
  const bool root = rank == 0;
  return MPI_Reduce(root ? MPI_IN_PLACE : values.data(), root ? values.data() : nullptr,
                    static_cast<int>(values.size()), MPI_FLOAT, MPI_SUM, 0, MPI_COMM_WORLD);
}

int Broadcast(absl::Span<float> values) {
  return MPI_Bcast(values.data(), static_cast<int>(values.size()), MPI_FLOAT, 0, MPI_COMM_WORLD);
}

int NonblockingBroadcast(absl::Span<float> values) {
  MPI_Request request;
  const int code = MPI_Ibcast(values.data(), static_cast<int>(values.size()), MPI_FLOAT, 0, MPI_COMM_WORLD, &request);
  return code == MPI_SUCCESS ? MPI_Wait(&request, MPI_STATUS_IGNORE) : code;
}

std::vector<Rival> MakeRivals(const std::string& name, bool with_ring, const ServeOptions& options, const Task& task) {
  const int rank = options.rank;
  switch (task.operation) {
    case Task::Operation::kBroadcast:
      return {
          OnVector(name + "/bcast", task.count, [](absl::Span<float> v) { return FromMpi(Broadcast(v)); }),
          OnVector(name + "/ibcast", task.count, [](absl::Span<float> v) { return FromMpi(NonblockingBroadcast(v)); })};
    case Task::Operation::kReduce:
      return {OnVector(name, task.count, [rank](absl::Span<float> v) { return FromMpi(Reduce(v, rank)); })};
    default:
      break;
  }
  std::vector<Rival> rivals = {OnVector(name, task.count, [](absl::Span<float> v) { return FromMpi(AllReduce(v)); })};
  if (with_ring) {
    const auto ring = std::make_shared<Ring>(rank, options.size, task.count);
    rivals.push_back(OnVector("ring", task.count, [ring](absl::Span<float> v) { return ring->AllReduce(v); }));
  }
  return rivals;
}

absl::Status Run(const std::string& name, bool with_ring, ServeOptions options) {
  MPI_Comm_rank(MPI_COMM_WORLD, &options.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &options.size);
  return Serve(options, [&](const Task& task) -> absl::StatusOr<std::vector<Rival>> {
    return MakeRivals(name, with_ring, options, task);
  });
}

}  // namespace
}  // namespace hooke

int main(int argc, char** argv) try {
  hooke::Command command(
      "mpi_rank", "Ranks of the collectives benchmark: an MPI library. tests/benchmarks/run starts it under mpirun.");
  hooke::ServeOptions options;
  hooke::AddServeFlags(command, options);
  std::string name = "mpi";
  bool with_ring = false;
  command.Add("--name", name, "What the library is called in the results");
  command.Add("--ring", with_ring, "Also the textbook ring");
  if (const hooke::Parsed parsed = command.Parse(argc, argv); !parsed.ok()) return parsed.Print();
  MPI_Init(nullptr, nullptr);
  const absl::Status status = hooke::Run(name, with_ring, options);
  if (!status.ok()) {
    std::cerr << status << "\n";
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  MPI_Finalize();
} catch (const std::exception& error) {
  std::cerr << error.what() << "\n";
  return 1;
}
