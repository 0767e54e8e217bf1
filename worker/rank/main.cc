// hooke-rank: one process of a group. mpirun (or srun) starts it with the file that its node's daemon wrote. For
// benchmarks it can also be started alone, with a hand-written start file.

#include <malloc.h>

#include <exception>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "flags/command_line.h"
#include "proto/worker.pb.h"
#include "worker/exchange/grpc_server_calls.h"
#include "worker/model/model_file.h"
#include "worker/model/torchscript.h"
#include "worker/rank/rank_task.h"
#include "worker/report/event_sink.h"
#include "worker/training/rank_process.h"

namespace hooke {
namespace {

constexpr char kProgram[] = "hooke-rank";

// Converts a file of a trained model to another format, without MPI. Both fields are set, or neither.
struct Conversion {
  std::string model;        // Path of a safetensors file.
  std::string torchscript;  // Path of the TorchScript file to write.
};

struct Options {
  std::string start;  // Path of a binary GroupStart.
  // Path of a GroupStart as JSON. Without `conversion`, exactly one of `start` and `start_json` is set.
  std::string start_json;
  std::string progress = "none";
  int threads = 1;
  Conversion conversion;
};

// Runs the rank. After any failure it ends the process itself, because MPI_Finalize would wait for the other ranks.
void Run(const Options& options) {
  absl::StatusOr<v1::GroupStart> start =
      options.start_json.empty() ? ReadStartFile(options.start) : ReadStartJson(options.start_json);
  if (!start.ok()) EndWithoutRank(kProgram, -1, start.status());
  RankProcessOptions process;
  process.program = kProgram;
  process.more_sinks = [&options] {
    std::vector<std::unique_ptr<EventSink>> sinks;
    if (options.progress == "json") sinks.push_back(MakeJsonSink(std::cout));
    return sinks;
  };
  absl::StatusOr<std::unique_ptr<RankProcess>> rank = RankProcess::Start(*start, process);
  if (!rank.ok()) EndWithoutRank(kProgram, -1, rank.status());
  RankTask task;
  task.start = *start;
  task.group = &(*rank)->group();
  task.reporter = &(*rank)->reporter();
  task.dial = [options = DialOptionsOf(*start)](const std::string& address) { return DialServer(address, options); };
  task.threads = options.threads;
  absl::StatusOr<uint64_t> steps = RunRankTask(task);
  if (!steps.ok()) (*rank)->GiveUp(steps.status());
  const int number = (*rank)->group().rank();
  if (absl::Status status = (*rank)->Finish(*steps); !status.ok()) EndWithoutRank(kProgram, number, status);
}

int Convert(const Conversion& conversion) {
  const absl::StatusOr<ModelFile> model = ReadModelFile(conversion.model);
  const absl::Status status = model.ok() ? WriteTorchScript(*model, conversion.torchscript) : model.status();
  if (status.ok()) return 0;
  std::cerr << "hooke-rank: " << status.message() << "\n";
  return 1;
}

int Main(int argc, char** argv) {
  if (!EndWithLauncher()) return 1;
  // Activations of some megabytes are allocated at each step. Keep their memory instead of faulting it in again.
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);

  Command command(
      "hooke-rank",
      "One rank of a Hooke group. The worker starts it through mpirun; with --start-json you can do so yourself.");
  command.ShowDefaults();
  Options options;
  Argument start = command.Add("--start", options.start, "file with a binary hooke.v1.GroupStart");
  Argument json = command.Add("--start-json", options.start_json, "file with the same as JSON");
  start.Excludes(json);
  command.Add("--progress", options.progress, "json: rank 0 prints its events on the standard output, one per line")
      .OneOf({"none", "json"});
  command.Add("--threads", options.threads, "threads of this rank's kernels").Range(1, 1024);
  Argument model = command.Add("--model", options.conversion.model, "a model as `hooke export` writes it");
  Argument torchscript = command.Add("--torchscript", options.conversion.torchscript,
                                     "write that model to this file as TorchScript, then end; trains nothing");
  model.Needs(torchscript).Excludes(start).Excludes(json);
  torchscript.Needs(model);
  command.Version("hooke-rank " HOOKE_VERSION);
  Parsed parsed = command.Parse(argc, argv);
  const bool converts = command.Given("--model");
  if (parsed.ok() && !converts && !command.Given("--start") && !command.Given("--start-json"))
    parsed.error = "--start or --start-json is required";
  if (!parsed.ok()) return parsed.Print();
  if (converts) return Convert(options.conversion);
  Run(options);
  return 0;
}

}  // namespace
}  // namespace hooke

int main(int argc, char** argv) try { return hooke::Main(argc, argv); } catch (const std::exception& error) {
  std::cerr << "hooke-rank: " << error.what() << "\n";
  return 1;
}
