#include "absl/strings/str_cat.h"
#include "client/commands/command.h"
#include "client/coordinator_client.h"
#include "client/text/listing.h"
#include "client/text/terminal_text.h"

namespace hooke {
namespace {

struct DrainFlags {
  std::string worker;
  bool now = false;
  bool undo = false;
};

std::string DrainText(const v1::NodeStatus& worker) {
  if (worker.drain() == v1::DRAIN_NONE) return "gets groups again";
  if (worker.slots_used() == 0) return "drained; no group runs there";
  return absl::StrCat(
      "gets no more groups; ", worker.slots_used(), " of ", worker.slots(), " slots are used until ",
      worker.drain() == v1::DRAIN_NOW ? "its groups have stopped, to start elsewhere" : "its groups end by themselves",
      "; `hooke nodes` shows it");
}

int Drain(const Invocation& invocation, const DrainFlags& flags) {
  if (flags.worker.empty()) {  // An unset variable in a script gives an empty WORKER.
    return Report(invocation, absl::InvalidArgumentError("WORKER is empty; `hooke nodes` lists the workers"), kUsage);
  }
  int code = kSucceeded;
  const std::unique_ptr<CoordinatorClient> coordinator = ConnectOrReport(invocation, code);
  if (coordinator == nullptr) return code;
  const v1::Drain drain = flags.undo ? v1::DRAIN_NONE : flags.now ? v1::DRAIN_NOW : v1::DRAIN_FINISH;
  const absl::StatusOr<v1::NodeStatus> worker = coordinator->DrainWorker(flags.worker, drain);
  if (!worker.ok()) return Report(invocation, worker.status());
  if (invocation.json()) {
    *invocation.out << DumpJson(NodeToJson(*worker), 2) << std::endl;
  } else {
    *invocation.out << Printable(worker->name()) << ": " << DrainText(*worker) << std::endl;
  }
  return kSucceeded;
}

}  // namespace

void AddDrainCommand(Command& program, Invocation& invocation) {
  Command& command = program.AddCommand("drain", "Give a worker no more groups, for example before maintenance");
  auto flags = std::make_shared<DrainFlags>();
  command.Add("WORKER", flags->worker, "The worker's name, as `hooke nodes` lists it").Required().Type("");
  const Argument now = command.Add("--now", flags->now, "Also stop the groups that run there; they start elsewhere");
  command.Add("--undo", flags->undo, "Give the worker groups again").Excludes(now);
  AddCoordinatorFlag(command, invocation);
  AddOutputFlag(command, invocation);
  command.Footer(
      "Without a flag, groups that run on the worker go on until they end by themselves.\n"
      "A drain holds until --undo, also if the worker or the coordinator is started again.");
  command.Action([&invocation, flags] { return Drain(invocation, *flags); });
}

}  // namespace hooke
