#include "tests/end_to_end/cluster.h"

#include <grpcpp/grpcpp.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <random>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "clocks/steady_time.h"
#include "wire/channel.h"
#include "wire/cluster_token.h"
#include "worker/launch/proc_file.h"

namespace hooke {
namespace {

namespace fs = std::filesystem;

constexpr absl::Duration kReadyLimit = absl::Seconds(30);

std::string ReadFile(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// Polls until the condition holds or the deadline passes. It is meant for conditions that no event announces, such as
// another process's file or /proc.
bool PollUntil(absl::Time deadline, const std::function<bool()>& condition) {
  while (!condition()) {
    if (absl::Now() > deadline) return false;
    absl::SleepFor(absl::Milliseconds(20));
  }
  return true;
}

// Returns this process's environment, without the coordinator and the token that the machine's user may have set.
std::vector<std::string> Environment() {
  std::vector<std::string> environment;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    if (absl::StartsWith(*entry, "HOOKE_COORDINATOR=") || absl::StartsWith(*entry, "HOOKE_TOKEN_FILE=")) continue;
    environment.emplace_back(*entry);
  }
  return environment;
}

std::vector<std::pair<pid_t, std::string>> CommandLines() {
  std::vector<std::pair<pid_t, std::string>> commands;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator("/proc", error)) {
    int pid = 0;
    if (!absl::SimpleAtoi(entry.path().filename().string(), &pid)) continue;
    const std::optional<std::string> command = ReadProcFile(pid, "cmdline");
    if (command.has_value()) commands.emplace_back(pid, absl::StrReplaceAll(*command, {{std::string(1, '\0'), " "}}));
  }
  return commands;
}

// Removes the cluster's folder. A killed worker leaves its groups' shared-memory folders behind, and its state folder
// has a link to each. The folders behind the links are removed, too.
void RemoveFolder(const fs::path& folder) {
  std::error_code error;
  for (const auto& entry : fs::recursive_directory_iterator(folder, error)) {
    if (entry.is_symlink(error)) fs::remove_all(fs::read_symlink(entry.path(), error), error);
  }
  fs::remove_all(folder, error);
}

}  // namespace

struct Cluster::Output {
  mutable absl::Mutex mutex;
  std::string text ABSL_GUARDED_BY(mutex);

  void Add(absl::string_view line) {
    absl::MutexLock lock(&mutex);
    absl::StrAppend(&text, line, "\n");
  }
  std::string Text() const {
    absl::MutexLock lock(&mutex);
    return text;
  }
};

absl::StatusOr<std::unique_ptr<Cluster>> Cluster::Start(const ClusterOptions& options) {
  auto cluster = std::unique_ptr<Cluster>(new Cluster);
  // The path is short, because a Unix socket's path may have at most 107 bytes.
  std::string folder = "/tmp/hooke-test-XXXXXX";
  if (mkdtemp(folder.data()) == nullptr) return absl::InternalError("cannot make a folder below /tmp");
  cluster->folder_ = folder;
  if (!options.token.empty()) cluster->token_file_ = cluster->WritePrivateFile("token", options.token + "\n");
  // bin/ of the test holds links. A worker looks for hooke-rank beside itself, so the real folder is used.
  cluster->programs_ = fs::canonical("bin/hooke").parent_path().string();
  if (absl::Status status = cluster->StartDaemons(options); !status.ok()) {
    std::string outputs;
    for (const auto* daemons : {&cluster->servers_, &cluster->workers_}) {
      for (const Daemon& daemon : *daemons) absl::StrAppend(&outputs, daemon.name, ":\n", daemon.output->Text());
    }
    return absl::Status(status.code(), absl::StrCat(status.message(), "\n", outputs));
  }
  return cluster;
}

absl::Status Cluster::Add(std::vector<Daemon>& daemons, const std::string& name, std::vector<std::string> argv,
                          const std::vector<std::string>& flags) {
  Daemon daemon;
  daemon.name = name;
  daemon.ready_file = absl::StrCat(folder_, "/", name, ".ready");
  argv[0] = absl::StrCat(programs_, "/", argv[0]);
  argv.push_back(absl::StrCat("--state-dir=", folder_, "/", name));
  argv.push_back(absl::StrCat("--ready-file=", daemon.ready_file));
  if (!token_file_.empty()) argv.push_back("--token-file=" + token_file_);
  argv.insert(argv.end(), flags.begin(), flags.end());
  daemon.argv = std::move(argv);
  daemon.output = std::make_shared<Output>();
  daemons.push_back(std::move(daemon));
  return Launch(daemons.back());
}

absl::Status Cluster::AddWorker(int slots, const std::vector<std::string>& flags) {
  const size_t i = workers_.size();
  return Add(workers_, absl::StrCat("worker", i),
             {"hooke-worker", "--coordinator=" + servers_[0].address, absl::StrCat("--name=w", i),
              absl::StrCat("--slots=", slots), absl::StrCat("--site=site", i)},
             flags);
}

absl::Status Cluster::StartDaemons(const ClusterOptions& options) {
  for (int i = 0; i < options.servers; ++i) {
    std::vector<std::string> argv = {"hooke-server", absl::StrCat("--listen=", options.host, ":0")};
    if (i > 0) argv.push_back("--coordinator=" + servers_[0].address);
    if (absl::Status status = Add(servers_, absl::StrCat("server", i), argv, options.server_flags); !status.ok())
      return status;
  }
  for (int i = 0; i < options.workers; ++i) {
    if (absl::Status status = AddWorker(options.slots, options.worker_flags); !status.ok()) return status;
  }
  coordinator_ = v1::Coordinator::NewStub(
      OpenChannel(servers_[0].address, grpc::ChannelArguments(), ClusterToken(options.token).ForCalls()));
  return AwaitNodes(servers_.size() + workers_.size());
}

absl::Status Cluster::Launch(Daemon& daemon) {
  fs::remove(daemon.ready_file);
  ProcessOptions options;
  options.argv = daemon.argv;
  options.environment = Environment();
  options.folder = folder_;
  options.on_line = [output = daemon.output](absl::string_view line) { output->Add(line); };
  auto process = Process::Start(std::move(options));
  if (!process.ok()) return process.status();
  daemon.process = *std::move(process);
  const bool ready = PollUntil(absl::Now() + kReadyLimit, [&] {
    return !ReadFile(daemon.ready_file).empty() || daemon.process->Wait(absl::InfinitePast()).has_value();
  });
  std::string address = ReadFile(daemon.ready_file);
  if (!ready || address.empty())
    return absl::UnavailableError(absl::StrCat(daemon.name, " was not ready:\n", daemon.output->Text()));
  daemon.address = address.substr(0, address.find('\n'));
  return absl::OkStatus();
}

absl::Status Cluster::AwaitNodes(size_t nodes) const {
  int alive = 0;
  const bool all = PollUntil(absl::Now() + kReadyLimit, [&] {
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Seconds(5)));
    context.set_wait_for_ready(true);
    v1::ListNodesResponse response;
    if (!coordinator_->ListNodes(&context, {}, &response).ok()) return false;
    alive =
        std::count_if(response.nodes().begin(), response.nodes().end(), [](const auto& node) { return node.alive(); });
    return static_cast<size_t>(alive) == nodes;
  });
  return all ? absl::OkStatus() : absl::UnavailableError(absl::StrCat(alive, " of ", nodes, " nodes joined"));
}

Cluster::~Cluster() {
  for (auto* daemons : {&workers_, &servers_}) {
    for (Daemon& daemon : *daemons) {
      if (daemon.process == nullptr) continue;
      kill(daemon.process->pid(), SIGCONT);  // A stopped process would not handle SIGTERM.
      daemon.process->Stop(absl::Seconds(10));
    }
    for (Daemon& daemon : *daemons) daemon.process.reset();
  }
  if (!folder_.empty()) RemoveFolder(folder_);
}

std::string Cluster::server_folder(int index) const { return absl::StrCat(folder_, "/", servers_[index].name); }

void Cluster::SignalServer(int index, int signal) { kill(servers_[index].process->pid(), signal); }
void Cluster::SignalWorker(int index, int signal) { kill(workers_[index].process->pid(), signal); }

absl::Status Cluster::AwaitServerEnd(int index) {
  if (servers_[index].process->Wait(SteadyTime() + kReadyLimit).has_value()) return absl::OkStatus();
  return absl::DeadlineExceededError(servers_[index].name + " lives on");
}

absl::Status Cluster::RestartServer(int index) {
  if (absl::Status status = AwaitServerEnd(index); !status.ok()) return status;
  Daemon& server = servers_[index];
  server.argv[1] = "--listen=" + server.address;
  // While the server was away, a connection of another program may have taken its port.
  absl::Status status;
  PollUntil(absl::Now() + kReadyLimit, [&] {
    status = Launch(server);
    return status.ok() || !absl::StrContains(status.message(), "address already in use");
  });
  return status;
}

std::string Cluster::ServerOutput(int index) const { return servers_[index].output->Text(); }
std::string Cluster::WorkerOutput(int index) const { return workers_[index].output->Text(); }

std::string Cluster::WritePrivateFile(const std::string& name, const std::string& text) const {
  std::string path = absl::StrCat(folder_, "/", name);
  std::ofstream(path) << text;
  fs::permissions(path, fs::perms::owner_read | fs::perms::owner_write);
  return path;
}

absl::StatusOr<std::unique_ptr<Process>> Cluster::StartHooke(std::vector<std::string> arguments,
                                                             std::function<void(absl::string_view)> on_line) const {
  ProcessOptions options;
  options.argv = std::move(arguments);
  options.argv.insert(options.argv.begin(), programs_ + "/hooke");
  options.environment = Environment();
  options.environment.push_back("HOOKE_COORDINATOR=" + servers_[0].address);
  if (!token_file_.empty()) options.environment.push_back("HOOKE_TOKEN_FILE=" + token_file_);
  options.folder = folder_;
  options.on_line = std::move(on_line);
  return Process::Start(std::move(options));
}

ProgramResult Cluster::Hooke(std::vector<std::string> arguments, absl::Duration limit) const {
  Output output;
  auto process = StartHooke(std::move(arguments), [&](absl::string_view line) { output.Add(line); });
  if (!process.ok()) return {-1, process.status().ToString()};
  const auto end = (*process)->Wait(SteadyTime() + limit);
  process->reset();
  if (!end.has_value()) return {-1, absl::StrCat("no end after ", absl::FormatDuration(limit), ":\n", output.Text())};
  return {end->signal != 0 ? 128 + end->signal : end->exit_status, output.Text()};
}

absl::StatusOr<std::string> Cluster::Submit(const std::string& yaml) const {
  const std::string path = folder_ + "/job.yaml";
  std::ofstream(path) << yaml;
  const ProgramResult result = Hooke({"submit", path, "--output", "json"});
  const std::string key = "\"job_id\"";
  const size_t at = result.output.find(key);
  if (result.status != 0 || at == std::string::npos) return absl::InvalidArgumentError(result.output);
  const size_t begin = result.output.find('"', result.output.find(':', at)) + 1;
  return result.output.substr(begin, result.output.find('"', begin) - begin);
}

absl::StatusOr<v1::JobStatus> Cluster::Status(const std::string& job_id) const {
  return Await(job_id, absl::Seconds(10), [](const v1::JobStatus&) { return true; });
}

absl::StatusOr<v1::JobStatus> Cluster::Await(const std::string& job_id, absl::Duration limit,
                                             const JobCondition& condition) const {
  const absl::Time deadline = absl::Now() + limit;
  v1::JobStatus last;
  // A restart of the coordinator ends the stream, so ask again.
  while (absl::Now() < deadline) {
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(deadline));
    context.set_wait_for_ready(true);
    v1::WatchJobRequest request;
    request.set_job_id(job_id);
    auto stream = coordinator_->WatchJob(&context, request);
    v1::JobStatus status;
    while (stream->Read(&status)) {
      last = status;
      if (condition(last) || Ended(last)) {
        context.TryCancel();
        return last;
      }
    }
    const grpc::Status end = stream->Finish();
    if (end.error_code() == grpc::StatusCode::NOT_FOUND) return absl::NotFoundError(end.error_message());
    PollUntil(absl::Now() + absl::Milliseconds(100), [] { return false; });
  }
  return absl::DeadlineExceededError(absl::StrCat(job_id, " after ", absl::FormatDuration(limit), ": ",
                                                  last.ShortDebugString(), "\nlog:\n", Log(job_id)));
}

absl::StatusOr<v1::JobStatus> Cluster::AwaitEnd(const std::string& job_id, absl::Duration limit) const {
  return Await(job_id, limit, Ended);
}

std::string Cluster::Log(const std::string& job_id) const { return Hooke({"logs", job_id}).output; }

std::vector<pid_t> Cluster::RankPids(const std::string& job_id, uint32_t group) const {
  const std::string mark = absl::StrCat(job_id, "-", group, "-");
  std::vector<pid_t> pids;
  for (const auto& [pid, command] : CommandLines()) {
    // mpirun and setpriv have the rank's command line at the end of theirs, so only its start identifies a rank.
    if (absl::StartsWith(command, programs_ + "/hooke-rank ") && absl::StrContains(command, folder_) &&
        absl::StrContains(command, mark)) {
      pids.push_back(pid);
    }
  }
  return pids;
}

std::vector<std::string> Cluster::CommandLinesOfCluster() const {
  std::vector<std::string> lines;
  for (const auto& [pid, command] : CommandLines()) {
    if (absl::StrContains(command, folder_)) lines.push_back(command);
  }
  return lines;
}

std::vector<pid_t> Cluster::LeftOver() const {
  std::vector<pid_t> pids;
  for (const auto& [pid, command] : CommandLines()) {
    const bool daemon = absl::StrContains(command, "/hooke-server ") || absl::StrContains(command, "/hooke-worker ");
    if (absl::StrContains(command, folder_) && !daemon) pids.push_back(pid);
  }
  return pids;
}

bool Ended(const v1::JobStatus& job) {
  return job.state() == v1::JOB_STATE_SUCCEEDED || job.state() == v1::JOB_STATE_FAILED ||
         job.state() == v1::JOB_STATE_CANCELLED;
}

absl::Status WriteBars(const std::string& prefix, int samples, uint64_t seed, int brightness) {
  constexpr int kSide = 28;
  const auto big_endian = [](uint32_t value) {
    return std::string{static_cast<char>(value >> 24), static_cast<char>(value >> 16), static_cast<char>(value >> 8),
                       static_cast<char>(value)};
  };
  std::mt19937_64 random(seed);
  std::string images = big_endian(0x803) + big_endian(samples) + big_endian(kSide) + big_endian(kSide);
  std::string labels = big_endian(0x801) + big_endian(samples);
  for (int sample = 0; sample < samples; ++sample) {
    const int label = static_cast<int>(random() % 10);
    labels.push_back(static_cast<char>(label));
    for (int pixel = 0; pixel < kSide * kSide; ++pixel) {
      const bool bar = label < 5 ? pixel / kSide / 5 == label : pixel % kSide / 5 == label - 5;
      images.push_back(static_cast<char>((bar ? brightness : 0) + random() % 100));
    }
  }
  std::ofstream(prefix + "-images-idx3-ubyte", std::ios::binary) << images;
  std::ofstream(prefix + "-labels-idx1-ubyte", std::ios::binary) << labels;
  return fs::exists(prefix + "-labels-idx1-ubyte") ? absl::OkStatus() : absl::InternalError("cannot write " + prefix);
}

}  // namespace hooke
