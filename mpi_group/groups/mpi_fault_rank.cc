// One rank of mpi_fault_test.cc. It calls collectives without end until something fails, then writes the error to
// FOLDER/RANK.report and exits with 1. With --error, rank 1 goes wrong in the fifth round.

#include <unistd.h>

#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "flags/command_line.h"
#include "mpi_group/groups/mpi_group.h"
#include "mpi_group/tuning.h"

namespace hooke {
namespace {

constexpr int kVictim = 1;
constexpr int kWrongRound = 4;

struct Options {
  std::string folder;
  std::string error;
  int deadline_ms = 1000;
  int reports = 0;
  std::string values = "shared";
};

int Reports(const std::string& folder) {
  int count = 0;
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    if (file.path().extension() == ".report") ++count;
  }
  return count;
}

// mpirun ends the other ranks as soon as one exits. So this rank stays until as many ranks have reported as the test
// expects.
void Report(const Options& options, const MpiSession& session, const absl::Status& status) {
  const std::string path = absl::StrCat(options.folder, "/", session.rank());
  std::ofstream(path) << status;
  std::filesystem::rename(path, path + ".report");
  const absl::Time deadline = absl::Now() + absl::Seconds(5);
  while (Reports(options.folder) < options.reports && absl::Now() < deadline) absl::SleepFor(absl::Milliseconds(5));
}

// One rank's calls of a round. The rank goes wrong as `error` says, or does everything right if that is empty.
absl::Status Round(Group& group, absl::Span<float> values, const std::string& error, const Options& options) {
  TensorList sum(error == "size" ? values.first(values.size() - 1) : values);
  if (error == "type") sum = TensorList(absl::MakeSpan(reinterpret_cast<int32_t*>(values.data()), values.size()));
  if (error == "late") absl::SleepFor(absl::Milliseconds(options.deadline_ms) + absl::Milliseconds(1500));
  absl::Status status;
  if (error != "skip") status = group.AllReduce(sum, error == "op" ? ReduceOp::kMax : ReduceOp::kMean);
  if (status.ok() && error == "order") status = group.Broadcast(TensorList(values.first(100)), 0);
  if (status.ok()) status = group.Barrier();
  if (status.ok() && error != "order") {
    status = group.Broadcast(TensorList(values.first(100)), error == "root" ? kVictim : 0);
  }
  return status;
}

absl::Status CallWithoutEnd(MpiSession& session, const Options& options) {
  GroupOptions group_options;
  group_options.deadline = absl::Milliseconds(options.deadline_ms);
  // Simulates nodes of two ranks, or nodes of one rank, between which there are only messages.
  const bool two_level = absl::StartsWith(options.values, "two-level");
  const bool shared = options.values == "shared" || options.values == "two-level";
  if (two_level) {
    group_options.node = absl::StrCat("node ", session.rank() / 2);
  } else if (!shared) {
    group_options.node = absl::StrCat("node ", session.rank());
  }
  group_options.tuning.between_nodes =
      options.values == "messages" ? Tuning::BetweenNodes::kMpi : Tuning::BetweenNodes::kSockets;
  absl::StatusOr<std::unique_ptr<Group>> group = MakeMpiGroup(session, group_options);
  if (!group.ok()) return group.status();
  // Never freed: peers may read a failed rank's values until it has exited.
  std::vector<float>& own = *new std::vector<float>(1 << 20);
  absl::StatusOr<absl::Span<float>> values = absl::MakeSpan(own);
  if (shared) values = AllocateSharedValues<float>(**group, own.size());
  if (!values.ok()) return values.status();
  absl::Status status;
  for (int round = 0; status.ok(); ++round) {
    const bool wrong = session.rank() == kVictim && round == kWrongRound;
    status = Round(**group, *values, wrong ? options.error : "", options);
    if (round == 3) std::cout << absl::StrCat("summing ", session.rank(), " ", getpid(), "\n") << std::flush;
  }
  return status;
}

}  // namespace
}  // namespace hooke

int main(int argc, char** argv) try {
  hooke::Command command("mpi_fault_rank", "One rank of mpi_fault_test.");
  hooke::Options options;
  command.Add("--folder", options.folder, "Where the ranks write their reports").Required();
  command.Add("--deadline-ms", options.deadline_ms, "Of the group's calls");
  command.Add("--error", options.error, "What rank 1 does wrong");
  command.Add("--reports", options.reports, "How many ranks will report");
  command.Add("--values", options.values, "How they go between ranks")
      .OneOf({"shared", "messages", "sockets", "two-level", "two-level-private"});
  if (const hooke::Parsed parsed = command.Parse(argc, argv); !parsed.ok()) return parsed.Print();
  const auto session = hooke::MpiSession::Start();
  if (!session.ok()) {
    std::cerr << session.status() << "\n";
    return 1;
  }
  hooke::Report(options, **session, hooke::CallWithoutEnd(**session, options));
  hooke::MpiSession::ExitWithoutFinalize(1);
} catch (const std::exception& error) {
  std::cerr << error.what() << "\n";
  return 1;
}
