#ifndef HOOKE_WORKER_RANK_TRAINER_H_
#define HOOKE_WORKER_RANK_TRAINER_H_

// The built-in trainer. It reads batches, runs the model, and evaluates the center; GroupTraining does the rest. Every
// rank of the group runs one Trainer, in lockstep:
//
//   begin     GroupTraining::Begin: all ranks hold the same vector; go on from its step
//   step      batch -> forward, backward, gradients of all ranks, optimizer, and perhaps an exchange with the servers
//   evaluate  group 0, each `evaluate_every` epochs: the center, on the test samples
//   end       GroupTraining::Finish

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "algorithms/learning_rate.h"
#include "mpi_group/group.h"
#include "worker/data/sampler.h"
#include "worker/data/samples.h"
#include "worker/exchange/center_client.h"
#include "worker/model/arena.h"
#include "worker/model/model.h"
#include "worker/report/reporter.h"
#include "worker/training/group_training.h"

namespace hooke {

// The objects that the trainer works with. All outlive it. While it runs, other threads may use only the reporter.
struct TrainerDependencies {
  Group* group = nullptr;
  Model* model = nullptr;  // Bound to the arena and initialized.
  const Arena* arena = nullptr;
  Sampler* sampler = nullptr;
  const Samples* train = nullptr;
  const Samples* test = nullptr;
  Reporter* reporter = nullptr;
  // Null: no servers. The group trains alone and evaluates its own values, at the end too.
  CenterClient* center = nullptr;
};

struct TrainerOptions {
  uint32_t groups = 1;
  uint32_t batch = 1;  // Samples per rank and step.
  uint32_t epochs = 1;
  uint32_t evaluate_every = 0;  // Epochs between two evaluations; 0: no evaluation during training.
  LearningRateOptions schedule;
  // The trainer sets rhythm.steps_total and `publishes`. training.optimizer must not be nullopt.
  GroupTrainingOptions training;
};

class Trainer {
 public:
  Trainer(const TrainerDependencies& deps, TrainerOptions options);
  ~Trainer();
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  // Trains from begin to end. Returns the steps done by the group, or one of these errors. After a collective's error
  // the group is unusable.
  //   INVALID_ARGUMENT, FAILED_PRECONDITION, ...  An error of a server, the model or the sampler; or the loss is not
  //                                               finite.
  //   ABORTED                                     This incarnation of the group has been replaced.
  //   CANCELLED                                   The group has left, as its worker wanted.
  //   DEADLINE_EXCEEDED, UNAVAILABLE              A peer or the servers did not answer.
  absl::StatusOr<uint64_t> Run();

 private:
  GroupTrainingOptions TrainingOptions() const;
  absl::Status TrainFrom(uint64_t first_step);
  absl::Status Step(uint64_t step);
  absl::Status KeepStateIfDue();
  absl::Status Evaluate(uint64_t step);
  absl::Status EvaluateCenter(uint64_t step);

  bool EvaluationDue(uint64_t step) const;
  double Epoch(uint64_t step) const { return deps_.sampler->division().EpochAt(step); }

  const TrainerDependencies deps_;
  const TrainerOptions options_;
  const uint64_t steps_total_;
  std::vector<float> pixels_;
  std::vector<int64_t> labels_;
  GroupTraining training_;
};

}  // namespace hooke

#endif  // HOOKE_WORKER_RANK_TRAINER_H_
