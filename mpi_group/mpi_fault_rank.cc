// One rank of mpi_fault_test.cc: sums without end until something fails; then writes what it was told to
// FOLDER/RANK.report and exits with 1.

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "mpi_group/mpi_group.h"

namespace hooke {
namespace {

struct Options {
  std::string folder;
  int deadline_ms = 1000;
  bool shared = false;
};

int Reports(const std::string& folder) {
  int count = 0;
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    if (file.path().extension() == ".report") ++count;
  }
  return count;
}

// mpirun ends the other ranks as soon as one exits: this one stays until all but the victim have reported, so that the
// test sees what each was told.
void Report(const Options& options, const MpiSession& session, const absl::Status& status) {
  const std::string path = absl::StrCat(options.folder, "/", session.rank());
  std::ofstream(path) << status;
  std::filesystem::rename(path, path + ".report");
  const absl::Time deadline = absl::Now() + absl::Seconds(5);
  while (Reports(options.folder) < session.size() - 1 && absl::Now() < deadline) absl::SleepFor(absl::Milliseconds(5));
}

absl::Status SumWithoutEnd(MpiSession& session, const Options& options) {
  GroupOptions group_options;
  group_options.deadline = absl::Milliseconds(options.deadline_ms);
  absl::StatusOr<std::unique_ptr<Group>> group = MakeMpiGroup(session, group_options);
  if (!group.ok()) return group.status();
  std::vector<float> own(1 << 20);
  absl::StatusOr<absl::Span<float>> values = absl::MakeSpan(own);
  if (options.shared) values = (*group)->AllocateShared(own.size());
  if (!values.ok()) return values.status();
  absl::Status status;
  for (int round = 0; status.ok(); ++round) {
    status = (*group)->AllReduce(TensorList(*values), ReduceOp::kMean);
    if (round == 3) std::cout << absl::StrCat("summing ", session.rank(), " ", getpid(), "\n") << std::flush;
  }
  return status;
}

}  // namespace
}  // namespace hooke

int main(int argc, char** argv) {
  CLI::App app("One rank of mpi_fault_test.");
  hooke::Options options;
  app.add_option("--folder", options.folder)->required();
  app.add_option("--deadline-ms", options.deadline_ms);
  app.add_flag("--shared", options.shared);
  CLI11_PARSE(app, argc, argv);
  const auto session = hooke::MpiSession::Start();
  if (!session.ok()) {
    std::cerr << session.status() << "\n";
    return 1;
  }
  hooke::Report(options, **session, hooke::SumWithoutEnd(**session, options));
  hooke::MpiSession::ExitWithoutFinalize(1);
}
