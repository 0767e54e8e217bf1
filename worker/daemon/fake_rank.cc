// A program that a test's mpirun starts in place of hooke-rank. It speaks RankEvents and needs neither MPI nor
// LibTorch. The job's model name chooses its behaviour:
//
//   done      does three steps and is done
//   run       runs for ever
//   leave     runs until the group is to leave; rank 0 then leaves at once, and the others a moment later
//   fail      rank 1 reports a failure
//   exit3     rank 1 exits without a report
//   all fail  all ranks report a failure
//   children  rank 0 leaves a child in a session of its own; all ranks run for ever
//   cores     prints the CPUs on which its threads run, then runs for ever
//   cut off   as "run"; each rank misses the job's server of its own number
//   talk      prints odd lines, then behaves like "done"

#include <signal.h>
#include <spawn.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <set>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "grpcpp/grpcpp.h"
#include "proto/worker.grpc.pb.h"

namespace hooke {
namespace {

using Stream = grpc::ClientReaderWriter<v1::RankEvent, v1::RankCommand>;

uint32_t NumberIn(char** environment, const std::vector<absl::string_view>& names) {
  for (char** variable = environment; *variable != nullptr; ++variable) {
    for (absl::string_view name : names) {
      absl::string_view text = *variable;
      uint32_t number;
      if (absl::ConsumePrefix(&text, absl::StrCat(name, "=")) && absl::SimpleAtoi(text, &number)) return number;
    }
  }
  return 0;
}

void Report(Stream& stream, const v1::RankEvent& event) {
  if (!stream.Write(event)) _exit(9);
}

void Progress(Stream& stream, uint64_t step, v1::RankProgress progress = {}) {
  v1::RankEvent event;
  progress.set_step(step);
  progress.set_phase(v1::RankProgress::COMPUTE);
  *event.mutable_progress() = std::move(progress);
  Report(stream, event);
}

// Prints the CPUs on which each thread of this process may run, each list once. By now gRPC has made its threads.
void PrintCpus() {
  std::set<std::string> lists;
  for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream status(thread.path() / "status");
    for (std::string line; std::getline(status, line);) {
      absl::string_view list = line;
      if (absl::ConsumePrefix(&list, "Cpus_allowed_list:")) lists.emplace(absl::StripAsciiWhitespace(list));
    }
  }
  std::string text = "runs on";
  for (const std::string& list : lists) absl::StrAppend(&text, " ", list);
  std::cout << text << std::endl;
}

void LeaveChild(char** environment) {
  const char* argv[] = {"setsid", "sleep", "1000", nullptr};
  pid_t pid;
  if (posix_spawnp(&pid, "setsid", nullptr, nullptr, const_cast<char**>(argv), environment) != 0) _exit(8);
  std::cout << "child " << pid << std::endl;
}

int Finish(Stream& stream) {
  stream.WritesDone();
  return stream.Finish().ok() ? 0 : 1;
}

// Waits for the command to leave, and obeys it.
int Leave(uint32_t rank, Stream& stream) {
  Progress(stream, 1);
  v1::RankCommand command;
  while (command.leave().empty()) {
    if (!stream.Read(&command)) _exit(6);
  }
  if (rank > 0) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  v1::RankEvent event;
  event.mutable_failed()->set_code(static_cast<int>(grpc::CANCELLED));
  event.mutable_failed()->set_message(absl::StrCat("left: ", command.leave()));
  Report(stream, event);
  Finish(stream);
  _exit(1);
}

// The rank exchanges with each second server, and misses the first of them.
v1::RankProgress MissesOne(const v1::GroupStart& start, uint32_t rank) {
  v1::RankProgress progress;
  for (auto i = static_cast<int>(rank % 2); i < start.servers_size(); i += 2)
    progress.set_servers(progress.servers() + 1);
  if (progress.servers() > 0) progress.add_absent_servers()->set_address(start.servers(static_cast<int>(rank % 2)));
  return progress;
}

int Behave(const v1::GroupStart& start, uint32_t rank, char** environment, Stream& stream) {
  const std::string& behaviour = start.job().model().name();
  if (behaviour == "all fail" || (behaviour == "fail" && rank == 1)) {
    v1::RankEvent event;
    event.mutable_failed()->set_code(static_cast<int>(grpc::NOT_FOUND));
    event.mutable_failed()->set_message("no file /data/train");
    Report(stream, event);
    Finish(stream);
    std::cerr << "I give up" << std::endl;
    _exit(1);
  }
  if (behaviour == "exit3" && rank == 1) {
    std::cerr << "cannot go on" << std::endl;
    _exit(3);
  }
  if (behaviour == "children" && rank == 0) LeaveChild(environment);
  if (behaviour == "cores") PrintCpus();
  if (behaviour == "talk" && rank == 1) std::cout << "hello \xFF from one" << std::endl;
  if (behaviour == "leave") return Leave(rank, stream);
  const bool ends = behaviour == "done" || behaviour == "talk";
  const v1::RankProgress progress = behaviour == "cut off" ? MissesOne(start, rank) : v1::RankProgress();
  for (uint64_t step = 1; !ends || step <= 3; ++step) {
    Progress(stream, step, progress);
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  v1::RankEvent event;
  event.mutable_done()->set_step(3);
  Report(stream, event);
  return Finish(stream);
}

int Main(const std::string& start_file, char** environment) {
  std::ifstream file(start_file, std::ios::binary);
  v1::GroupStart start;
  if (!start.ParseFromString(std::string(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>())))
    return 7;
  const uint32_t rank = NumberIn(environment, {"OMPI_COMM_WORLD_RANK", "PMI_RANK"});
  auto channel = grpc::CreateChannel(absl::StrCat("unix:", start.daemon_socket()), grpc::InsecureChannelCredentials());
  auto stub = v1::RankEvents::NewStub(channel);
  grpc::ClientContext context;
  auto stream = stub->Report(&context);
  v1::RankEvent hello;
  hello.mutable_hello()->set_rank(rank);
  hello.mutable_hello()->set_ranks(NumberIn(environment, {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"}));
  hello.mutable_hello()->set_pid(getpid());
  Report(*stream, hello);
  v1::RankCommand command;
  if (!stream->Read(&command)) return 6;
  return Behave(start, rank, environment, *stream);
}

}  // namespace
}  // namespace hooke

int main(int argc, char** argv, char** environment) {
  if (argc != 4 || std::string(argv[1]) != "--start" || std::string(argv[3]).rfind("--threads=", 0) != 0) return 5;
  return hooke::Main(argv[2], environment);
}
