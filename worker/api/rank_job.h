#ifndef HOOKE_WORKER_API_RANK_JOB_H_
#define HOOKE_WORKER_API_RANK_JOB_H_

// The training of a user's own program, as hooke.h describes it, in C++. RankJob checks the order of the program's
// calls, its list of tensors, and its plan. GroupTraining does the training itself. hooke.cc makes this class available
// to C.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "mpi_group/data_type.h"
#include "mpi_group/group.h"
#include "proto/job.pb.h"
#include "proto/worker.pb.h"
#include "worker/api/hooke.h"
#include "worker/exchange/server_calls.h"
#include "worker/model/arena.h"
#include "worker/model/model_layout.h"
#include "worker/report/reporter.h"
#include "worker/training/group_training.h"
#include "worker/training/job_training.h"
#include "worker/training/narrow_tensors.h"

namespace hooke {

class RankJob {
 public:
  // `group` and `reporter` outlive the RankJob.
  struct Dependencies {
    Group* group = nullptr;  // Its deadline is StartTimeout(start).
    Reporter* reporter = nullptr;
    ServerDialer dial;
  };

  // `start` has passed CheckStart, or there is no job. Without a job it names no servers, and hooke.cc sets only the
  // numbers of groups and ranks in its JobSpec.
  RankJob(const v1::GroupStart& start, const Dependencies& deps);

  // These functions do what the functions of hooke.h with the same names do. Their contracts are there.
  hooke_place Place() const;
  absl::Span<const hooke_generation> EarlierGenerations() const { return earlier_; }
  // The step at which the job's present generation began.
  uint64_t first_step() const { return start_.first_step(); }
  absl::Status Register(absl::Span<hooke_tensor> tensors);
  absl::StatusOr<uint64_t> Begin(const hooke_plan& plan);
  absl::Status GradientReady(size_t index);
  absl::StatusOr<float> Combine(float loss, uint8_t* used);
  absl::StatusOr<uint64_t> EndStep(const hooke_step& done);
  absl::StatusOr<bool> ValuesDue() const;
  absl::StatusOr<bool> StateDue() const;
  absl::Status SaveState(absl::string_view own);
  absl::StatusOr<std::optional<GroupTraining::OwnState>> SavedState() const;
  absl::Status WithCenter(const std::function<absl::Status()>& work);
  absl::Status Evaluated(double accuracy, double loss, uint64_t samples, absl::Span<const hooke_metric> metrics);
  absl::Status Report(absl::Span<const hooke_metric> metrics);
  absl::Status Stop();
  absl::StatusOr<bool> Stopping() const;
  // Runs `call`, which makes a collective of the program's own.
  absl::Status Collective(const std::function<absl::Status(Group& group)>& call);
  absl::Status Finish();

  // Returns whether the job should be finished before the rank leaves.
  bool NeedsFinish() const { return stage_ == Stage::kTraining; }
  uint64_t step() const { return step_; }
  // Returns the error of the collective by which the group was lost. OK: it was not lost.
  const absl::Status& lost() const { return lost_; }

 private:
  enum class Stage { kJoined, kRegistered, kTraining, kFinished };

  absl::Status CheckTensors(absl::Span<const hooke_tensor> tensors) const;
  absl::Status CompareTensors(absl::Span<const hooke_tensor> tensors);
  absl::Status Allocate(absl::Span<const hooke_tensor> tensors);
  void Move(absl::Span<hooke_tensor> tensors) const;
  absl::Status CheckPlan(const hooke_plan& plan) const;
  absl::Status CheckStage(Stage wanted, const char* call, const char* otherwise) const;
  absl::Status Note(absl::Status status);
  void BeginStepIfNone();
  double EpochsDone(const hooke_plan& plan) const;
  double Epoch(uint64_t step) const;
  absl::Span<float> Given() const { return arena_->statistics().subspan(kTrainingStatistics, 1); }
  absl::Span<float> Used() const { return arena_->statistics().subspan(kTrainingStatistics + 1); }

  const v1::GroupStart start_;
  const v1::JobSpec job_;  // With defaults.
  const Dependencies deps_;
  const std::string rule_;
  std::vector<std::vector<hooke_share>> shares_;  // The memory to which the `shares` of earlier_ point.
  std::vector<hooke_generation> earlier_;

  Stage stage_ = Stage::kJoined;
  absl::Status lost_;  // The error of a failed collective. Once it is set, the group cannot be used any more.
  ModelLayout layout_;
  std::unique_ptr<Arena> arena_;
  std::unique_ptr<NarrowTensors> narrow_;  // Null if all tensors are float32.
  std::unique_ptr<DialedCenter> center_;
  std::unique_ptr<GroupTraining> training_;
  hooke_plan plan_ = {};  // With the numbers that the library has worked out.

  // State of the step.
  bool in_step_ = false;       // The step began, and its gradients are not combined yet.
  bool combined_ = false;      // Combine was called, and neither EndStep nor another step followed.
  std::vector<bool> ready_;    // For each parameter, whether GradientReady was called in this step.
  std::optional<float> loss_;  // The step's mean loss, if a rank gave one.
  uint64_t step_ = 0;          // Steps done by the group.
};

}  // namespace hooke

#endif  // HOOKE_WORKER_API_RANK_JOB_H_
