// Measures the real time and the CPU time that the coordinator's decisions take in a large cluster. The cluster itself
// is simulated in virtual time, without sockets, threads, disk or processes. Workers join, and more jobs are submitted
// than fit. Then groups end, one after another. Each end frees slots for a group that waits. All groups report their
// progress, so that there are estimates. This program checks that no slot is given out twice.
// `tests/benchmarks/run scheduling` runs it and judges the times.

#include <time.h>

#include <algorithm>
#include <cstdint>
#include <exception>
#include <fstream>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "flags/command_line.h"
#include "server/cluster/cluster_state.h"
#include "server/cluster/example_job.h"
#include "server/coordinator/fake_server.h"

namespace hooke {
namespace {

struct Sizes {
  uint32_t workers = 10000;
  uint32_t slots = 8;
  uint32_t jobs = 1000;
  uint32_t groups = 25;      // Of a job.
  uint32_t ranks = 4;        // Of a group.
  uint32_t ends = 2000;      // Groups that end.
  bool preemptible = false;  // Groups leave for jobs of higher priority.
};

double Milliseconds(clockid_t clock) {
  timespec time = {};
  clock_gettime(clock, &time);
  return 1e3 * static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_nsec);
}

class Simulation {
 public:
  explicit Simulation(const Sizes& sizes)
      : sizes_(sizes), state_(ClusterStateOptions(), {}, now_), used_(sizes.workers) {}

  // Returns an error text, or "".
  std::string Run() {
    state_.SetOwnServer(FakeServer("s:1").server_id());
    KeepAlive();
    for (uint32_t i = 0; i < sizes_.workers; ++i) {
      v1::WorkerHello hello;
      hello.set_name(absl::StrCat("w", i));
      hello.set_instance("i");
      hello.set_site(i % 2 == 0 ? "hpc" : "cloud");
      hello.set_slots(sizes_.slots);
      hello.set_address(absl::StrCat("10.", i >> 16, ".", (i >> 8) & 255, ".", i & 255));
      hello.set_mpi("openmpi");
      const absl::StatusOr<SessionId> session = state_.Hello(hello, now_);
      if (!session.ok()) return session.status().ToString();
      worker_of_[*session] = i;
      session_of_.push_back(*session);
    }
    KeepAlive();
    for (uint32_t i = 0; i < sizes_.jobs; ++i) {
      v1::SubmitRequest request = ExampleSubmission(absl::StrCat("s", i), {sizes_.groups, sizes_.ranks});
      request.mutable_job()->set_priority(i % 3);
      request.mutable_job()->set_owner(absl::StrCat("user", i % 20));
      request.mutable_job()->set_preemptible(sizes_.preemptible);
      request.mutable_job()->mutable_groups()->set_site(i % 4 == 0 ? "hpc" : "");
      Measure("submit", [&] {
        const auto submission = state_.BeginSubmit(request, now_);
        if (!submission.ok()) fault_ = submission.status().ToString();
        for (const JobRecord& job : Take().submissions) state_.EndSubmit(job, true, now_);
      });
      Take();
      LeaveAll();
      Step();
    }
    std::mt19937 random(1);
    for (uint32_t i = 0; i < sizes_.ends && fault_.empty(); ++i) {
      if (running_.empty()) return "no group runs";
      std::swap(running_[random() % running_.size()], running_.back());
      const Started run = running_.back();
      running_.pop_back();
      used_[run.worker] -= sizes_.ranks;
      Measure("end", [&] { Send(run.worker, EndOf(run)); });
      LeaveAll();
      Step();
    }
    return fault_;
  }

  // The times that decisions took, by the kind of decision.
  std::map<std::string, std::vector<double>>& wall_ms() { return wall_ms_; }
  std::map<std::string, std::vector<double>>& cpu_ms() { return cpu_ms_; }
  size_t waiting() const {
    size_t waiting = 0;
    for (const v1::JobStatus& job : ListJobs(state_.jobs(), SIZE_MAX, now_).jobs) {
      waiting += job.state() == v1::JOB_STATE_QUEUED ? 1 : 0;
    }
    return waiting;
  }

 private:
  // A group that runs.
  struct Started {
    uint32_t worker = 0;
    GroupKey key;
    uint64_t next_event = 1;
  };

  // Lets time pass: a tick each 100 ms, and each second a heartbeat of each worker.
  void Step() {
    now_ += absl::Milliseconds(20);
    if (now_.steady >= tick_at_) {
      tick_at_ = now_.steady + absl::Milliseconds(100);
      Measure("tick", [this] { state_.Tick(now_); });
      Take();
    }
    // Each group reports every 5 s, which is 250 steps. Groups that started at different times report at different
    // times.
    for (size_t i = static_cast<size_t>(step_++ % 250); i < running_.size(); i += 250) Report(running_[i]);
    if (now_.steady >= heartbeat_at_) KeepAlive();
  }

  void KeepAlive() {
    heartbeat_at_ = now_.steady + absl::Seconds(1);
    const absl::StatusOr<v1::ServerHeartbeatResponse> beat = state_.ServerHeartbeat(FakeServer("s:1"), now_);
    if (!beat.ok()) fault_ = beat.status().ToString();
    v1::WorkerMessage message;
    message.mutable_heartbeat();
    for (const SessionId session : session_of_) {
      if (!state_.Message(session, message, now_).ok()) fault_ = "a heartbeat is refused";
    }
    Take();
  }

  void Report(Started& run) {
    v1::WorkerMessage message;
    v1::GroupEvent& event = Event(message, run.key, run.next_event++);
    v1::RankProgress& progress = *event.mutable_report()->mutable_event()->mutable_progress();
    // Speeds differ, so that the estimates do.
    progress.set_step(run.next_event * (10 + run.key.group));
    progress.set_steps_total(100000);
    progress.set_phase(v1::RankProgress::COMPUTE);
    Send(run.worker, message);
  }

  // Ends the groups that were told to leave for jobs of higher priority.
  void LeaveAll() {
    while (!leaving_.empty()) {
      const GroupKey key = leaving_.back();
      leaving_.pop_back();
      const auto is_it = [&key](const Started& run) { return run.key == key; };
      const auto found = std::find_if(running_.begin(), running_.end(), is_it);
      if (found == running_.end()) continue;
      const Started run = *found;
      running_.erase(found);
      used_[run.worker] -= sizes_.ranks;
      v1::WorkerMessage message;
      v1::GroupEnded& ended = *Event(message, run.key, run.next_event).mutable_ended();
      ended.set_code(static_cast<int32_t>(absl::StatusCode::kCancelled));
      ended.set_message("left");
      Measure("leave", [&] { Send(run.worker, message); });
    }
  }

  static v1::WorkerMessage EndOf(const Started& run) {
    v1::WorkerMessage message;
    Event(message, run.key, run.next_event).mutable_ended()->set_ok(true);
    return message;
  }

  static v1::GroupEvent& Event(v1::WorkerMessage& message, const GroupKey& key, uint64_t number) {
    v1::GroupEvent& event = *message.mutable_event();
    event.mutable_group()->set_job_id(key.job_id);
    event.mutable_group()->set_group(key.group);
    event.mutable_group()->set_incarnation(key.incarnation);
    event.set_number(number);
    return event;
  }

  void Send(uint32_t worker, const v1::WorkerMessage& message) {
    const absl::Status status = state_.Message(session_of_[worker], message, now_);
    if (!status.ok()) fault_ = status.ToString();
    Take();
  }

  // Takes the effects, answers dials and notes the groups that start.
  Effects Take() {
    Effects effects = state_.TakeEffects();
    for (const ServerDial& dial : effects.dials) {
      state_.ServerDialed(dial, FakeServerAnswers(dial.address), now_);
    }
    for (const Effects::Command& command : effects.commands) {
      if (command.command.has_stop()) leaving_.push_back(KeyOf(command.command.stop().group()));
      if (!command.command.has_start()) continue;
      const v1::GroupStart& start = command.command.start().group();
      const uint32_t worker = worker_of_.at(command.session);
      if ((used_[worker] += sizes_.ranks) > sizes_.slots) fault_ = absl::StrCat("w", worker, " has too many ranks");
      running_.push_back({worker, {start.job_id(), start.group(), start.incarnation()}});
    }
    return effects;
  }

  template <typename Call>
  void Measure(const std::string& what, const Call& call) {
    const double wall = Milliseconds(CLOCK_MONOTONIC);
    const double cpu = Milliseconds(CLOCK_THREAD_CPUTIME_ID);
    call();
    cpu_ms_[what].push_back(Milliseconds(CLOCK_THREAD_CPUTIME_ID) - cpu);
    wall_ms_[what].push_back(Milliseconds(CLOCK_MONOTONIC) - wall);
  }

  const Sizes sizes_;
  Instant now_ = {absl::FromUnixSeconds(1000000), absl::ZeroDuration()};
  ClusterState state_;
  absl::Duration tick_at_, heartbeat_at_;
  std::map<SessionId, uint32_t> worker_of_;
  std::vector<SessionId> session_of_;  // By worker.
  std::vector<uint32_t> used_;         // Slots, by worker.
  std::vector<Started> running_;
  std::vector<GroupKey> leaving_;
  uint64_t step_ = 0;
  std::map<std::string, std::vector<double>> wall_ms_, cpu_ms_;
  std::string fault_;
};

double MebibytesUsed() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    if (word != "VmRSS:") continue;
    double kib = 0;
    status >> kib;
    return kib / 1024;
  }
  return 0;
}

int Main(const Sizes& sizes) {
  Simulation simulation(sizes);
  const std::string fault = simulation.Run();
  if (!fault.empty()) {
    std::cerr << fault << "\n";
    return 1;
  }
  nlohmann::json result = {{"waiting", simulation.waiting()}, {"mib", MebibytesUsed()}};
  for (auto& [what, times] : simulation.wall_ms()) result["wall_ms"][what] = times;
  for (auto& [what, times] : simulation.cpu_ms()) result["cpu_ms"][what] = times;
  std::cout << result << std::endl;
  return 0;
}

}  // namespace
}  // namespace hooke

int main(int argc, char** argv) try {
  hooke::Sizes sizes;
  hooke::Command program("scheduling_benchmark", "Measures the coordinator's decisions in a large simulated cluster.");
  program.Add("--workers", sizes.workers, "Workers").Range(1, 16384);
  program.Add("--slots", sizes.slots, "Slots of a worker");
  program.Add("--jobs", sizes.jobs, "Jobs").Range(1, 2000);
  program.Add("--groups", sizes.groups, "Groups of a job");
  program.Add("--ranks", sizes.ranks, "Ranks of a group, at most as many as slots");
  program.Add("--ends", sizes.ends, "Groups that end");
  program.Add("--preemptible", sizes.preemptible, "Groups leave for jobs of higher priority");
  const hooke::Parsed parsed = program.Parse(argc, argv);
  return parsed.ok() ? hooke::Main(sizes) : parsed.Print();
} catch (const std::exception& error) {
  std::cerr << error.what() << "\n";
  return 1;
}
