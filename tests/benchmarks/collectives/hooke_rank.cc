// The benchmark's ranks of Hooke. The values of "hooke" are in the group's arena, those of "hooke-private" in ordinary
// memory.

#include <exception>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "flags/command_line.h"
#include "mpi_group/groups/mpi_group.h"
#include "tests/benchmarks/collectives/rival.h"
#include "tests/benchmarks/collectives/serve.h"

namespace hooke {
namespace {

std::function<absl::Status()> CallOn(Group& group, Task::Operation operation, absl::Span<float> values) {
  const TensorList list(values);
  switch (operation) {
    case Task::Operation::kBroadcast:
      return [&group, list] { return group.Broadcast(list, 0); };
    case Task::Operation::kReduce:
      return [&group, list] { return group.Reduce(list, ReduceOp::kSum, 0); };
    default:
      return [&group, list] { return group.AllReduce(list, ReduceOp::kSum); };
  }
}

absl::Status Run(MpiSession& session, ServeOptions options) {
  options.rank = session.rank();
  options.size = session.size();
  std::unique_ptr<Group> group;
  const Prepare prepare = [&](const Task& task) -> absl::StatusOr<std::vector<Rival>> {
    // Each task gets a new group, since an arena lives as long as its group.
    group.reset();
    absl::StatusOr<std::unique_ptr<Group>> made = MakeMpiGroup(session, GroupOptions());
    if (!made.ok()) return made.status();
    group = *std::move(made);
    const absl::StatusOr<absl::Span<float>> arena = AllocateSharedValues<float>(*group, task.count);
    if (!arena.ok()) return arena.status();
    const auto memory = std::make_shared<std::vector<float>>(task.count);
    const absl::Span<float> own = absl::MakeSpan(*memory);
    return std::vector<Rival>{{"hooke", *arena, CallOn(*group, task.operation, *arena), nullptr},
                              {"hooke-private", own, CallOn(*group, task.operation, own), memory}};
  };
  return Serve(options, prepare);
}

}  // namespace
}  // namespace hooke

int main(int argc, char** argv) try {
  hooke::Command command("hooke_rank",
                         "Ranks of the collectives benchmark: Hooke. tests/benchmarks/run starts it under mpirun.");
  hooke::ServeOptions options;
  hooke::AddServeFlags(command, options);
  if (const hooke::Parsed parsed = command.Parse(argc, argv); !parsed.ok()) return parsed.Print();
  const auto session = hooke::MpiSession::Start();
  if (!session.ok()) {
    std::cerr << session.status() << "\n";
    return 1;
  }
  absl::Status status = hooke::Run(**session, options);
  status.Update((*session)->Finish());
  if (status.ok()) return 0;
  std::cerr << status << "\n";
  hooke::MpiSession::ExitWithoutFinalize(1);
} catch (const std::exception& error) {
  std::cerr << error.what() << "\n";
  return 1;
}
