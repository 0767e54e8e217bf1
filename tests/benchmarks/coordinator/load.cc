#include "tests/benchmarks/coordinator/load.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "clocks/steady_time.h"
#include "grpcpp/grpcpp.h"
#include "wire/grpc_status.h"

namespace hooke {
namespace {

constexpr absl::Duration kTick = absl::Milliseconds(10);
constexpr absl::Duration kPatience = absl::Seconds(60);
constexpr absl::Duration kPoll = absl::Milliseconds(100);

void SetDeadline(grpc::ClientContext& context) {
  context.set_deadline(std::chrono::system_clock::now() + absl::ToChronoSeconds(kPatience));
}

v1::SubmitRequest Submission(uint32_t number, uint32_t groups, uint32_t ranks) {
  v1::SubmitRequest request;
  request.set_submission_id(absl::StrCat("coordinator-benchmark-", number));
  v1::JobSpec* job = request.mutable_job();
  job->set_name("benchmark");
  job->mutable_model()->set_name("lenet");
  job->mutable_data()->set_format(v1::DataSpec::FORMAT_IDX);
  job->mutable_data()->set_train("/data/train");
  job->mutable_data()->set_test("/data/t10k");
  job->mutable_train()->set_epochs(4);
  job->mutable_train()->set_batch_size(64);
  job->mutable_groups()->set_count(groups);
  job->mutable_groups()->set_ranks(ranks);
  job->mutable_averaging()->set_rule(v1::AveragingSpec::ELASTIC);
  return request;
}

bool AllRun(const v1::ListJobsResponse& list) {
  return std::all_of(list.jobs().begin(), list.jobs().end(), [](const v1::JobStatus& job) {
    return std::all_of(job.groups().begin(), job.groups().end(),
                       [](const v1::GroupStatus& group) { return group.state() == v1::GROUP_STATE_RUNNING; });
  });
}

}  // namespace

Load::Load(LoadOptions options)
    : options_(std::move(options)),
      groups_(options_.ranks / options_.group_ranks),
      stub_(v1::Coordinator::NewStub(grpc::CreateChannel(options_.coordinator, grpc::InsecureChannelCredentials()))) {}

Load::~Load() {
  ending_ = true;
  if (ticker_.joinable()) ticker_.join();
}

absl::Status Load::Start(absl::Duration warm_up) {
  if (options_.ranks % options_.group_ranks != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("--ranks=", options_.ranks, " is not a multiple of --group-ranks=", options_.group_ranks));
  }
  for (uint64_t i = 0; i < options_.workers; ++i) {
    // All workers together have just the slots that all groups need, if there are groups enough.
    const uint64_t own = groups_ * (i + 1) / options_.workers - groups_ * i / options_.workers;
    SimulatedWorkerOptions worker;
    worker.coordinator = options_.coordinator;
    worker.name = absl::StrCat("worker-", i);
    worker.slots = static_cast<uint32_t>(std::max<uint64_t>(own, 1)) * options_.group_ranks;
    worker.shift = static_cast<double>(i) / options_.workers;
    workers_.push_back(std::make_unique<SimulatedWorker>(std::move(worker)));
    workers_.back()->Start();
  }
  ticker_ = std::thread([this] { TickUntilEnd(); });
  if (absl::Status status = AwaitWelcomes(); !status.ok()) return status;
  if (absl::Status status = Submit(); !status.ok()) return status;
  if (absl::Status status = AwaitRunning(); !status.ok()) return status;
  for (uint32_t i = 0; i < options_.watchers; ++i) {
    watchers_.push_back(std::make_unique<Watcher>(options_.coordinator, job_ids_[i % job_ids_.size()]));
  }
  absl::SleepFor(warm_up);
  return StatusOfAll();
}

absl::Status Load::AwaitWelcomes() {
  for (const absl::Time deadline = SteadyTime() + kPatience; SteadyTime() < deadline; absl::SleepFor(kPoll)) {
    if (absl::Status status = StatusOfAll(); !status.ok()) return status;
    if (std::all_of(workers_.begin(), workers_.end(), [](const auto& worker) { return worker->welcomed(); })) {
      return absl::OkStatus();
    }
  }
  return absl::DeadlineExceededError(
      absl::StrCat("not all workers were welcomed within ", absl::FormatDuration(kPatience)));
}

absl::Status Load::Submit() {
  for (uint32_t done = 0; done < groups_; done += options_.job_groups) {
    const uint32_t groups = std::min(options_.job_groups, groups_ - done);
    grpc::ClientContext context;
    SetDeadline(context);
    v1::SubmitResponse response;
    const grpc::Status status = stub_->Submit(&context, Submission(done, groups, options_.group_ranks), &response);
    if (!status.ok()) return FromGrpc(status);
    job_ids_.push_back(response.job_id());
  }
  return absl::OkStatus();
}

absl::StatusOr<v1::ListJobsResponse> Load::List() {
  grpc::ClientContext context;
  SetDeadline(context);
  v1::ListJobsResponse response;
  const grpc::Status status = stub_->ListJobs(&context, {}, &response);
  if (!status.ok()) return FromGrpc(status);
  if (response.jobs_size() != static_cast<int>(job_ids_.size())) {
    return absl::DataLossError(
        absl::StrCat("the coordinator lists ", response.jobs_size(), " of ", job_ids_.size(), " jobs"));
  }
  return response;
}

absl::Status Load::AwaitRunning() {
  for (const absl::Time deadline = SteadyTime() + kPatience; SteadyTime() < deadline; absl::SleepFor(kPoll)) {
    if (absl::Status status = StatusOfAll(); !status.ok()) return status;
    const absl::StatusOr<v1::ListJobsResponse> list = List();
    if (!list.ok()) return list.status();
    if (AllRun(*list)) return absl::OkStatus();
  }
  return absl::DeadlineExceededError(absl::StrCat("not all groups ran within ", absl::FormatDuration(kPatience)));
}

absl::StatusOr<LoadResult> Load::Measure(absl::Duration length) {
  LoadResult result;
  for (const auto& worker : workers_) worker->TakeSent();
  for (const auto& watcher : watchers_) watcher->TakeCount();
  const absl::Time end = SteadyTime() + length;
  for (absl::Time next = SteadyTime(); next < end; next += options_.list_every) {
    absl::SleepFor(next - SteadyTime());
    const absl::Time begin = SteadyTime();
    if (absl::Status status = List().status(); !status.ok()) return status;
    result.list_ms.push_back(absl::ToDoubleMilliseconds(SteadyTime() - begin));
  }
  absl::SleepFor(end - SteadyTime());
  for (const auto& worker : workers_) result.sent.Add(worker->TakeSent());
  for (const auto& watcher : watchers_) result.statuses += watcher->TakeCount();
  if (absl::Status status = StatusOfAll(); !status.ok()) return status;
  return result;
}

absl::Status Load::Check() {
  quiet_ = true;
  const auto all_seen = [this] {
    return std::all_of(workers_.begin(), workers_.end(), [](const auto& worker) { return worker->AllSeen(); });
  };
  for (const absl::Time deadline = SteadyTime() + kPatience; !all_seen(); absl::SleepFor(kPoll)) {
    if (absl::Status status = StatusOfAll(); !status.ok()) return status;
    if (SteadyTime() >= deadline) return absl::DataLossError("some events were not acknowledged");
  }
  std::map<std::string, uint64_t> steps;
  for (const auto& worker : workers_) steps.merge(worker->Steps());
  const absl::StatusOr<v1::ListJobsResponse> list = List();
  if (!list.ok()) return list.status();
  uint32_t shown = 0;
  for (const v1::JobStatus& job : list->jobs()) {
    for (const v1::GroupStatus& group : job.groups()) {
      const std::string name = absl::StrCat(job.job_id(), " ", group.group());
      const auto sent = steps.find(name);
      if (sent == steps.end() || sent->second != group.progress().step() || group.incarnation() != 1) {
        return absl::DataLossError(absl::StrCat("the coordinator shows step ", group.progress().step(), " of group ",
                                                name, ", start ", group.incarnation(), "; sent was step ",
                                                sent == steps.end() ? 0 : sent->second));
      }
      ++shown;
    }
  }
  if (shown != groups_)
    return absl::DataLossError(absl::StrCat("the coordinator shows ", shown, " of ", groups_, " groups"));
  return absl::OkStatus();
}

absl::Status Load::StatusOfAll() {
  for (const auto& worker : workers_) {
    if (absl::Status status = worker->status(); !status.ok()) return status;
  }
  for (const auto& watcher : watchers_) {
    if (absl::Status status = watcher->status(); !status.ok()) return status;
  }
  return absl::OkStatus();
}

void Load::TickUntilEnd() {
  for (absl::Time next = SteadyTime(); !ending_; next = std::max(next + kTick, SteadyTime())) {
    absl::SleepFor(next - SteadyTime());
    for (const auto& worker : workers_) worker->Tick(SteadyTime(), quiet_);
  }
}

}  // namespace hooke
