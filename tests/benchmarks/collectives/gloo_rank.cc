// The benchmark's ranks of Gloo, with several of its all-reduces. They use TCP, the transport that Gloo has on every
// machine.

#include <gloo/allreduce.h>
#include <gloo/allreduce_halving_doubling.h>
#include <gloo/allreduce_ring_chunked.h>
#include <gloo/broadcast.h>
#include <gloo/math.h>
#include <gloo/reduce.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>

#include <chrono>
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

using GlooContext = std::shared_ptr<gloo::Context>;

// Calls `function` and turns an exception into a status, because Gloo reports errors by exceptions.
template <typename Function>
absl::Status Guarded(const Function& function) {
  try {
    function();
  } catch (const std::exception& error) {
    return absl::InternalError(error.what());
  }
  return absl::OkStatus();
}

void SumInto(void* to, const void* a, const void* b, size_t count) { gloo::sum<float>(to, a, b, count); }

Rival NewStyle(const std::string& name, const GlooContext& context, uint64_t count,
               gloo::AllreduceOptions::Algorithm algorithm) {
  return OnVector(name, count, [context, algorithm](absl::Span<float> values) {
    return Guarded([&] {
      gloo::AllreduceOptions options(context);
      options.setAlgorithm(algorithm);
      options.setOutput(values.data(), values.size());
      options.setReduceFunction(&SumInto);
      gloo::allreduce(options);
    });
  });
}

// Makes a rival of one of Gloo's older algorithms. These are classes with state: an object is made once and run often.
template <typename Algorithm>
Rival OldStyle(const std::string& name, const GlooContext& context, uint64_t count) {
  const auto memory = std::make_shared<std::vector<float>>(count);
  const auto algorithm =
      std::make_shared<Algorithm>(context, std::vector<float*>{memory->data()}, static_cast<int>(count));
  return {name, absl::MakeSpan(*memory), [algorithm] { return Guarded([&] { algorithm->run(); }); }, memory};
}

absl::Status Broadcast(const GlooContext& context, absl::Span<float> values) {
  return Guarded([&] {
    gloo::BroadcastOptions options(context);
    options.setRoot(0);
    options.setOutput(values.data(), values.size());
    gloo::broadcast(options);
  });
}

// Reduces in place at the root. The other ranks need an output, too, for partial sums.
absl::Status Reduce(const GlooContext& context, absl::Span<float> values) {
  return Guarded([&] {
    gloo::ReduceOptions options(context);
    options.setRoot(0);
    options.setOutput(values.data(), values.size());
    options.setReduceFunction(&SumInto);
    gloo::reduce(options);
  });
}

std::vector<Rival> MakeRivals(const GlooContext& context, const Task& task) {
  using Algorithm = gloo::AllreduceOptions::Algorithm;
  if (task.operation == Task::Operation::kBroadcast) {
    return {OnVector("gloo", task.count, [context](absl::Span<float> values) { return Broadcast(context, values); })};
  }
  if (task.operation == Task::Operation::kReduce) {
    return {OnVector("gloo", task.count, [context](absl::Span<float> values) { return Reduce(context, values); })};
  }
  return {NewStyle("gloo-default", context, task.count, Algorithm::UNSPECIFIED),
          NewStyle("gloo/bcube", context, task.count, Algorithm::BCUBE),
          OldStyle<gloo::AllreduceHalvingDoubling<float>>("gloo/halving_doubling", context, task.count),
          OldStyle<gloo::AllreduceRingChunked<float>>("gloo/ring_chunked", context, task.count)};
}

absl::Status Run(const ServeOptions& options, const std::string& store_path, const std::string& address) {
  const auto context = std::make_shared<gloo::rendezvous::Context>(options.rank, options.size);
  context->setTimeout(std::chrono::seconds(60));
  absl::Status status = Guarded([&] {
    gloo::transport::tcp::attr attributes(address.c_str());
    auto device = gloo::transport::tcp::CreateDevice(attributes);
    gloo::rendezvous::FileStore store(store_path);
    context->connectFullMesh(store, device);
  });
  if (!status.ok()) return status;
  return Serve(options, [&](const Task& task) -> absl::StatusOr<std::vector<Rival>> {
    std::vector<Rival> rivals;
    absl::Status made = Guarded([&] { rivals = MakeRivals(context, task); });
    if (!made.ok()) return made;
    return rivals;
  });
}

}  // namespace
}  // namespace hooke

int main(int argc, char** argv) try {
  hooke::Command command("gloo_rank", "Ranks of the collectives benchmark: Gloo. tests/benchmarks/run starts it.");
  hooke::ServeOptions options;
  hooke::AddServeFlags(command, options);
  std::string store;
  std::string address;
  command.Add("--rank", options.rank, "This rank").Required();
  command.Add("--size", options.size, "Number of ranks").Required();
  command.Add("--store", store, "Empty folder where the ranks find one another").Required();
  command.Add("--address", address, "IP address of this rank's host").Required();
  if (const hooke::Parsed parsed = command.Parse(argc, argv); !parsed.ok()) return parsed.Print();
  const absl::Status status = hooke::Run(options, store, address);
  if (status.ok()) return 0;
  std::cerr << status << "\n";
  return 1;
} catch (const std::exception& error) {
  std::cerr << error.what() << "\n";
  return 1;
}
