// For tests/dashboard/crowded_test.py: the page of a real coordinator that holds many jobs. It stores them in a folder,
// prints "HOST:PORT" where the page is, and goes on training the newest job, whose groups report each second, until its
// standard input ends. Workers are fakes, so nothing computes.
//
//   page_benchmark FOLDER [--jobs N] [--histories N] [--groups N]

#include <spdlog/sinks/null_sink.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <iostream>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "clocks/instant.h"
#include "flags/command_line.h"
#include "server/cluster/example_job.h"
#include "server/coordinator/coordinator.h"
#include "server/coordinator/fake_server.h"
#include "server/coordinator/fake_worker.h"
#include "server/dashboard/dashboard.h"
#include "server/journal/job_log.h"
#include "server/records/sqlite_record_store.h"

namespace hooke {
namespace {

struct Sizes {
  std::string folder;
  uint32_t jobs = 1000;
  uint32_t histories = 200;  // Jobs of these that have trained to their end.
  uint32_t groups = 256;     // Of the newest job.
};

constexpr uint32_t kPointsOfHistory = 300;  // Points in the history of each group of a job that has trained.
constexpr uint32_t kPointsOfNewest = 120;
constexpr uint32_t kCallers = 64;  // Clients that submit jobs at the same time.
constexpr uint32_t kAtOnce = 50;   // Jobs that train side by side.

class Crowd {
 public:
  Crowd(const Sizes& sizes, Coordinator& coordinator, Instant now)
      : sizes_(sizes), coordinator_(coordinator), now_(now) {}

  Instant now() const { return now_; }

  absl::Status Fill() {
    coordinator_.SetOwnServer(FakeServer("b:1").server_id());
    Pass(absl::ZeroDuration());
    if (absl::Status status = worker_.Connect(coordinator_, now_); !status.ok()) return status;
    if (absl::Status status = CancelMany(sizes_.jobs - sizes_.histories - 1); !status.ok()) return status;
    Pass(absl::ZeroDuration());
    for (uint32_t left = sizes_.histories; left > 0;) {
      const uint32_t count = std::min(left, kAtOnce);
      left -= count;
      if (absl::Status status = TrainToTheEnd(count); !status.ok()) return status;
    }
    if (absl::Status status = Submit({sizes_.groups, 2}).status(); !status.ok()) return status;
    if (absl::Status status = AwaitRunning(sizes_.groups); !status.ok()) return status;
    for (uint32_t i = 0; i < kPointsOfNewest; ++i) {
      Pass(absl::Seconds(1));
      Report();
    }
    return absl::OkStatus();
  }

  // Lets the clock of this machine go on, and reports once a second.
  void GoOn(const std::atomic<bool>& stop) {
    for (int tenth = 0; !stop; ++tenth) {
      usleep(100000);
      const Instant real = InstantNow();
      Pass(std::max(real.steady - now_.steady, absl::ZeroDuration()));
      if (tenth % 10 == 0) Report();
    }
  }

 private:
  absl::StatusOr<std::string> Submit(ExampleGroups groups) {
    return coordinator_.Submit(ExampleSubmission(absl::StrCat("s", ++submissions_), groups), now_);
  }

  // Submits jobs that have no room beside one another, and cancels them. Many threads do so, because each call waits
  // for the disk, and the store writes what is there at once.
  absl::Status CancelMany(uint32_t jobs) {
    std::atomic<uint32_t> next = 0;
    std::vector<absl::Status> ends(kCallers);
    std::vector<std::thread> callers;
    callers.reserve(ends.size());
    for (absl::Status& end : ends) {
      callers.emplace_back([&] {
        for (uint32_t job = next++; job < jobs && end.ok(); job = next++) {
          const auto id = coordinator_.Submit(ExampleSubmission(absl::StrCat("c", job), {4, 1024}), now_);
          end = id.ok() ? coordinator_.Cancel(*id, now_).status() : id.status();
        }
      });
    }
    for (std::thread& caller : callers) caller.join();
    for (const absl::Status& end : ends) {
      if (!end.ok()) return end;
    }
    return absl::OkStatus();
  }

  void Pass(absl::Duration time) {
    now_ += time;
    (void)coordinator_.ServerHeartbeat(FakeServer("b:1"), now_);
    AnswerDials(coordinator_, now_);
    worker_.Heartbeat(now_);
    coordinator_.Tick(now_);
    worker_.Receive(now_);
  }

  // A start comes once its record is stored, which takes real time.
  absl::Status AwaitRunning(size_t groups) {
    for (int tries = 0; tries < 3000; ++tries) {
      Pass(absl::Milliseconds(10));
      if (worker_.running().size() >= groups) return absl::OkStatus();
      usleep(10000);
    }
    return absl::DeadlineExceededError(
        absl::StrCat(worker_.running().size(), " of ", groups, " groups run after 30 s"));
  }

  // All groups that run report a step and print a line.
  void Report() {
    ++step_;
    for (const auto& [key, run] : worker_.running()) {
      v1::RankEvent event;
      v1::RankProgress& progress = *event.mutable_progress();
      progress.set_step(step_);
      progress.set_steps_total(1000000);
      progress.set_epoch(0.01 * step_);
      progress.set_loss(2.0 / (1 + 0.01 * step_) + 0.1 * std::sin(0.1 * step_ + key.group));
      progress.set_samples_per_s(1000 + key.group);
      progress.set_compute_seconds(0.8 * step_);
      progress.set_collective_seconds(0.15 * step_);
      progress.set_exchange_seconds(0.05 * step_);
      progress.set_exchanges(step_);
      worker_.Send(key, 0, event, now_);
      worker_.Log(key, absl::StrCat("step ", step_, " of rank 0, as a script prints it <b>"), now_);
    }
  }

  std::vector<GroupKey> Running() const {
    std::vector<GroupKey> keys;
    for (const auto& [key, run] : worker_.running()) keys.push_back(key);
    return keys;
  }

  absl::Status TrainToTheEnd(uint32_t jobs) {
    for (uint32_t i = 0; i < jobs; ++i) {
      if (absl::Status status = Submit({2, 1}).status(); !status.ok()) return status;
    }
    if (absl::Status status = AwaitRunning(size_t{2} * jobs); !status.ok()) return status;
    for (uint32_t i = 0; i < kPointsOfHistory; ++i) {
      Pass(absl::Seconds(1));
      Report();
    }
    for (const GroupKey& key : Running()) worker_.End(key, absl::OkStatus(), now_);
    if (absl::Status status = AwaitRunning(jobs); !status.ok()) return status;
    for (const GroupKey& key : Running()) {
      worker_.Evaluated(key, 0.9, now_);
      worker_.End(key, absl::OkStatus(), now_);
    }
    return absl::OkStatus();
  }

  const Sizes sizes_;
  Coordinator& coordinator_;
  Instant now_;
  FakeWorker worker_{"w", 4096};
  uint32_t submissions_ = 0;
  uint32_t step_ = 0;
};

absl::Status Run(const Sizes& sizes) {
  absl::StatusOr<std::unique_ptr<RecordStore>> store = OpenSqliteRecordStore(sizes.folder + "/jobs.db");
  if (!store.ok()) return store.status();
  absl::StatusOr<JobLog> log = JobLog::Open({sizes.folder + "/logs"});
  if (!log.ok()) return log.status();
  CoordinatorOptions options;
  options.store = *std::move(store);
  options.cluster.keep.jobs_max = sizes.jobs;
  options.log = std::make_shared<JobLog>(*std::move(log));
  options.logger = std::make_shared<spdlog::logger>("crowded", std::make_shared<spdlog::sinks::null_sink_mt>());
  // The jobs come in the past, so that their ends lie before now.
  Instant past = InstantNow();
  past += -absl::Seconds((sizes.histories / kAtOnce + 1) * (kPointsOfHistory + 10) + kPointsOfNewest + 10);
  absl::StatusOr<std::unique_ptr<Coordinator>> coordinator = Coordinator::Create(std::move(options), past);
  if (!coordinator.ok()) return coordinator.status();
  Crowd crowd(sizes, **coordinator, past);
  if (absl::Status status = crowd.Fill(); !status.ok()) return status;
  DashboardOptions page;
  page.address = "127.0.0.1:0";
  page.coordinator = "127.0.0.1:7411";
  const absl::StatusOr<std::unique_ptr<HttpServer>> server = ServeDashboard(page, coordinator->get());
  if (!server.ok()) return server.status();
  std::atomic<bool> stop = false;
  std::thread going([&] { crowd.GoOn(stop); });
  std::cout << (*server)->address() << std::endl;
  std::cin.ignore(std::numeric_limits<std::streamsize>::max());
  stop = true;
  going.join();
  return absl::OkStatus();
}

int Main(int argc, char** argv) {
  Sizes sizes;
  Command command("page_benchmark", "The web page of a coordinator that holds many jobs.");
  command.Add("FOLDER", sizes.folder, "A folder that is there and empty").Required().Type("");
  command.Add("--jobs", sizes.jobs, "Jobs in all").Range(2, 20000).Type("N");
  command.Add("--histories", sizes.histories, "Jobs of these that have trained to their end").Range(1, 1000).Type("N");
  command.Add("--groups", sizes.groups, "Groups of the newest job").Range(1, 1024).Type("N");
  const Parsed parsed = command.Parse(argc, argv);
  if (!parsed.ok()) return parsed.Print();
  if (sizes.histories + 1 > sizes.jobs) {
    std::cerr << "page_benchmark: --histories must be less than --jobs" << std::endl;
    return 2;
  }
  const absl::Status status = Run(sizes);
  if (!status.ok()) std::cerr << "page_benchmark: " << status << std::endl;
  return status.ok() ? 0 : 1;
}

}  // namespace
}  // namespace hooke

int main(int argc, char** argv) { return hooke::Main(argc, argv); }
