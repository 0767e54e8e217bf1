// Times all-reduces of device memory side by side in one run, and checks every answer before it times:
//   mpirun -n N --bind-to none cuda_benchmark [--json FILE]
// "staged" reduces on the device, with chunks in page-locked memory. "host" does what a program without Hooke would do:
// it copies all values to the host, calls MPI_Allreduce, and copies the result back. "nccl" runs if each rank has its
// own device.

#include <cuda_runtime_api.h>
#include <mpi.h>

#include <algorithm>
#include <exception>
#include <fstream>
#include <functional>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "flags/command_line.h"
#include "mpi_group/cuda/cuda_status.h"
#include "mpi_group/cuda/device_memory.h"
#include "mpi_group/cuda/nccl_calls.h"
#include "mpi_group/cuda/nccl_group.h"
#include "mpi_group/cuda/staged_group.h"
#include "mpi_group/groups/mpi_group.h"
#include "mpi_group/mpi/mpi_session.h"
#include "mpi_group/mpi/mpi_transport.h"

namespace hooke {
namespace {

using AllReduce = std::function<absl::Status()>;

struct Rival {
  std::string name;
  AllReduce all_reduce;  // Sums the vector in place.
};

// Returns when the copy is done. cudaMemcpy alone may return while a copy from ordinary host memory is under way, so a
// collective would start before its values are there, or a measured time would end too early.
absl::Status CopyToDevice(const float* from, absl::Span<char> to) {
  absl::Status status =
      CudaStatus(cudaMemcpy(to.data(), from, to.size(), cudaMemcpyHostToDevice), "copy to the device");
  status.Update(CudaStatus(cudaStreamSynchronize(nullptr), "copy to the device"));
  return status;
}

// Checks one rival: fills the vector, sums it, and compares on the host. The vector is left zeroed.
absl::Status Check(const Rival& rival, absl::Span<char> vector, int rank, int ranks) {
  std::vector<float> values(vector.size() / sizeof(float));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(rank + i % 100);
  absl::Status status = CopyToDevice(values.data(), vector);
  status.Update(rival.all_reduce());
  status.Update(
      CudaStatus(cudaMemcpy(values.data(), vector.data(), vector.size(), cudaMemcpyDeviceToHost), "cudaMemcpy"));
  if (!status.ok()) return status;
  for (size_t i = 0; i < values.size(); ++i) {
    const int expected = ranks * (ranks - 1) / 2 + ranks * static_cast<int>(i % 100);
    if (values[i] != static_cast<float>(expected)) return absl::InternalError(rival.name + " gives a wrong sum");
  }
  return ZeroDeviceMemory(vector.data(), vector.size());
}

// Returns, per rival, the microseconds of each call on its slowest rank, sorted.
absl::StatusOr<std::vector<std::vector<double>>> Time(const std::vector<Rival>& rivals, int repetitions) {
  std::vector<std::vector<double>> times(rivals.size());
  for (int i = 0; i < repetitions; ++i) {
    for (size_t k = 0; k < rivals.size(); ++k) {
      MPI_Barrier(MPI_COMM_WORLD);
      const absl::Time start = absl::Now();
      absl::Status status = rivals[k].all_reduce();
      if (!status.ok()) return status;
      const double own = absl::ToDoubleMicroseconds(absl::Now() - start);
      double slowest = 0;
      MPI_Allreduce(&own, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
      times[k].push_back(slowest);
    }
  }
  for (std::vector<double>& all : times) std::sort(all.begin(), all.end());
  return times;
}

absl::Status RunSize(uint64_t bytes, Group& staged, Group* nccl, const MpiSession& session, std::ostream* json) {
  absl::StatusOr<absl::Span<char>> vector = (nccl != nullptr ? *nccl : staged).AllocateShared(bytes);
  if (!vector.ok()) return vector.status();
  const TensorList list(DataType::kFloat32, *vector);
  std::vector<float> host(bytes / sizeof(float));
  std::vector<Rival> rivals = {
      {"staged", [&] { return staged.AllReduce(list, ReduceOp::kSum); }},
      {"host", [&] {
         absl::Status status =
             CudaStatus(cudaMemcpy(host.data(), vector->data(), bytes, cudaMemcpyDeviceToHost), "copy");
         MPI_Allreduce(MPI_IN_PLACE, host.data(), static_cast<int>(host.size()), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
         status.Update(CopyToDevice(host.data(), *vector));
         return status;
       }}};
  if (nccl != nullptr) rivals.push_back({"nccl", [&] { return nccl->AllReduce(list, ReduceOp::kSum); }});
  for (const Rival& rival : rivals) {
    absl::Status status = Check(rival, *vector, session.rank(), session.size());
    if (!status.ok()) return status;
  }
  const auto times = Time(rivals, static_cast<int>(std::clamp<uint64_t>((uint64_t{1} << 30) / bytes, 21, 301)));
  if (!times.ok()) return times.status();
  if (session.rank() != 0) return absl::OkStatus();
  for (size_t k = 0; k < rivals.size(); ++k) {
    const std::vector<double>& sorted = (*times)[k];
    const double us = sorted[sorted.size() / 2];
    const double p99 = sorted[sorted.size() * 99 / 100];
    const double gb_per_s = 2.0 * (session.size() - 1) / session.size() * static_cast<double>(bytes) / us / 1e3;
    std::cout << absl::StrFormat("%10d  %-8s %12.1f %12.1f %8.2f\n", bytes, rivals[k].name, us, p99, gb_per_s);
    if (json == nullptr) continue;
    *json << nlohmann::json{{"benchmark", "allreduce-device"},
                            {"impl", rivals[k].name},
                            {"ranks", session.size()},
                            {"bytes", bytes},
                            {"median_us", us},
                            {"p99_us", p99},
                            {"correct", true}}
          << "\n";
  }
  return absl::OkStatus();
}

struct BenchmarkOptions {
  std::vector<uint64_t> sizes = {4, 1 << 14, 1 << 16, 1 << 20, 6650000, 1 << 24, 1 << 26};
  std::string json_file;
  std::string nccl_library = "libnccl.so.2";
};

absl::Status RunAll(MpiSession& session, const BenchmarkOptions& benchmark) {
  int devices = 0;
  absl::Status status = CudaStatus(cudaGetDeviceCount(&devices), "this benchmark needs a GPU: cudaGetDeviceCount");
  if (!status.ok()) return status;
  if (devices == 0) return absl::FailedPreconditionError("this benchmark needs a GPU");
  auto control = MakeMpiGroup(session, GroupOptions());
  if (!control.ok()) return control.status();
  auto transport = MakeMpiTransport(session, MpiTransportOptions());
  if (!transport.ok()) return transport.status();
  StagedGroupOptions options;
  options.device = session.rank() % devices;
  // The benchmark's own copies go to this device, too.
  status = CudaStatus(cudaSetDevice(options.device), "cudaSetDevice");
  if (!status.ok()) return status;
  auto staged = MakeStagedGroup(*std::move(transport), options);
  if (!staged.ok()) return staged.status();
  std::unique_ptr<Group> nccl;
  if (devices >= session.size()) {
    NcclGroupOptions nccl_options;
    nccl_options.device = options.device;
    auto made = MakeNcclGroup(**control, LoadNccl(benchmark.nccl_library), nccl_options);
    if (!made.ok()) return made.status();
    nccl = *std::move(made);
  }
  std::ofstream json;
  if (session.rank() == 0) {
    if (!benchmark.json_file.empty()) json.open(benchmark.json_file);
    std::cout << absl::StrFormat("%d ranks, %d devices\n%10s  %-8s %12s %12s %8s\n", session.size(), devices, "bytes",
                                 "impl", "median us", "p99 us", "GB/s");
  }
  for (uint64_t bytes : benchmark.sizes) {
    status =
        RunSize(bytes / sizeof(float) * sizeof(float), **staged, nccl.get(), session, json.is_open() ? &json : nullptr);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace hooke

int main(int argc, char** argv) try {
  hooke::Command command("cuda_benchmark",
                         "All-reduce of device memory: staged over MPI, through the host, NCCL. Run it under mpirun.");
  hooke::BenchmarkOptions options;
  command.Add("--json", options.json_file, "Also write one JSON object per line to this file");
  command.Add("--nccl", options.nccl_library, "The NCCL library: a path, or a name that the system looks for");
  command.Add("--bytes", options.sizes, "Sizes to measure").Range(uint64_t{4}, uint64_t{1} << 32);
  if (const hooke::Parsed parsed = command.Parse(argc, argv); !parsed.ok()) return parsed.Print();
  const auto session = hooke::MpiSession::Start();
  if (!session.ok()) {
    std::cerr << session.status() << "\n";
    return 1;
  }
  absl::Status status = hooke::RunAll(**session, options);
  if (status.ok()) status = (*session)->Finish();
  if (status.ok()) return 0;
  std::cerr << status << "\n";
  hooke::MpiSession::ExitWithoutFinalize(1);
} catch (const std::exception& error) {
  std::cerr << error.what() << "\n";
  return 1;
}
