#ifndef HOOKE_WORKER_TRAINING_GROUP_STEP_H_
#define HOOKE_WORKER_TRAINING_GROUP_STEP_H_

// The group's part in a step: it combines the ranks' gradients and steps the optimizer. The caller does forward and
// backward. The caller is the built-in trainer or a user's own program.
//
//   Begin                      before forward
//   BeforeUse, GradientReady   during forward and backward, with overlap (Hooks)
//   Finish                     after backward
//
// There are three ways to combine gradients:
//
//   all-reduce  Every rank gets the mean gradient and steps its own optimizer.
//   rooted      Only rank 0 gets the mean gradient and steps an optimizer. Then it broadcasts the parameters bucket by
//               bucket, the first layers first (S-Caffe, Awan et al., PPoPP 2017). The other ranks have no optimizer.
//   sharded     Each rank gets 1/n of each bucket's gradient and steps an optimizer for that part. Then an all-gather
//               spreads the parameters, the first layers first. It moves as many bytes as an all-reduce; each rank has
//               1/n of the optimizer's work and state (ZeRO's first stage, Rajbhandari et al., SC 2020).
//
// With overlap, gradients are combined in buckets while backward goes on. With rooted and sharded, the parameters
// travel during the next forward pass, and each layer waits for its own. Without overlap there is one collective after
// backward and, with rooted and sharded, one more after the optimizer.
//
// Loss and float buffers are averaged along with the gradients, in the bucket of the first layers. If gradients are of
// several types, that is the first float32 gradients' bucket.
//
// Calls must not overlap; all but GradientReady come from one thread. After an error the group is unusable.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "algorithms/optimizer.h"
#include "mpi_group/group.h"
#include "mpi_group/issue_order/bucket_plan.h"
#include "mpi_group/issue_order/issue_order.h"
#include "worker/model/arena.h"
#include "worker/model/model.h"
#include "worker/model/model_layout.h"
#include "worker/report/reporter.h"
#include "worker/training/gradient_buckets.h"

namespace hooke {

// Number of the arena's statistics (Arena::Sizes) that a group step uses: the loss.
inline constexpr uint64_t kGroupStepStatistics = 1;

enum class AggregationKind { kAllReduce, kRooted, kSharded };

struct GroupStepOptions {
  AggregationKind kind = AggregationKind::kAllReduce;
  bool overlap = true;
  // `order`, `bucket_bytes` and `lanes` are used only with overlap.
  IssuePolicy order = IssuePolicy::kFunneled;
  uint64_t bucket_bytes = 4 << 20;  // A bucket closes when its gradients have this many bytes.
  int lanes = 2;                    // Number of communicators with IssuePolicy::kConcurrent.
};

class GroupStep {
 public:
  // All these objects outlive the group step.
  struct Dependencies {
    Group* group = nullptr;
    const ModelLayout* layout = nullptr;  // Used only by Make.
    // The arena has the sizes of the layout. The first of its statistics is the step's loss. All statistics are
    // averaged over the ranks.
    const Arena* arena = nullptr;
    // The gradients of all parameters, if not all of them are float32. Otherwise empty: they are the arena's. Only for
    // all-reduce, without an optimizer.
    absl::Span<const TypedGradient> gradients;
    // `nullopt`: the servers or the user's program step instead, and `kind` must be kAllReduce.
    std::optional<OptimizerOptions> optimizer;
    Reporter* reporter = nullptr;
    absl::Duration collective_timeout;
  };

  // Makes the group step of this rank. Collective. INVALID_ARGUMENT on all ranks: the ranks' options or layouts differ.
  // INVALID_ARGUMENT also if CheckOptimizer refuses the options.
  static absl::StatusOr<std::unique_ptr<GroupStep>> Make(const Dependencies& deps, const GroupStepOptions& options);
  ~GroupStep();
  GroupStep(const GroupStep&) = delete;
  GroupStep& operator=(const GroupStep&) = delete;

  // Returns hooks by which a model calls BeforeUse and GradientReady. Without overlap the hooks are empty. They are
  // valid as long as the group step lives.
  BatchHooks Hooks();

  // Begins a step. Call it before forward reads the parameters.
  void Begin();

  // Returns when this parameter has arrived. Call it before forward uses the parameter. Finish returns the error, if
  // there was one.
  void BeforeUse(size_t parameter);

  // Notes that backward has completed this parameter's gradient. The caller must not touch the gradient again before
  // Finish. Call it at most once per parameter and step.
  void GradientReady(size_t parameter);

  // Collective. Combines all gradients, steps the optimizer if there is one, and returns the mean of the ranks' losses.
  // Afterwards all ranks have the same parameters, except for those whose collectives still run (AwaitParameters).
  // Errors are the group's.
  absl::StatusOr<float> Finish(float loss, double learning_rate);

  // Returns the state of this rank's optimizers. RestoreOptimizers takes it in a group step with the same options. ""
  // if there are no optimizers.
  std::string SaveOptimizers() const;
  // Restores what SaveOptimizers returned. DATA_LOSS: the state belongs to other optimizers.
  absl::Status RestoreOptimizers(absl::string_view state);

  // Returns when the whole vector of the arena has arrived. Must be called before anybody reads or writes the vector
  // outside of a step, or calls a collective. A second call after the same step does nothing.
  absl::Status AwaitParameters();

 private:
  // How the values are divided into buckets of gradients.
  struct Plan {
    std::vector<Bucket> buckets;     // The buckets. If `typed` is not empty, these have no `values`.
    std::vector<size_t> bucket_of;   // The bucket of each parameter.
    std::vector<TypedBucket> typed;  // Empty if all gradients are float32.
  };
  static Plan MakePlan(const ModelLayout& layout, uint64_t bucket_bytes);
  static Plan MakeTypedPlan(absl::Span<const TypedGradient> gradients, uint64_t bucket_bytes);

  GroupStep(const Dependencies& deps, const GroupStepOptions& options, Plan plan);

  // A range of the parameters that this rank's optimizer updates.
  struct Stepped {
    ValueRange values;
    std::unique_ptr<Optimizer> optimizer;
  };

  absl::Status MakeOptimizers();
  std::vector<ValueRange> SteppedHere() const;
  absl::Status OpenLanes();
  absl::Status MakeOrders();
  std::vector<TensorList> GradientLists() const;
  std::vector<TensorList> ParameterLists() const;

  void MakeReady(IssueOrder& order, size_t bucket);
  // Starts to send the new parameters to the ranks that did not compute them, and waits for the first bucket. Called
  // only with rooted and sharded.
  absl::Status Distribute();
  absl::Status WaitForParameters(size_t bucket);
  void ReportOverlap();

  const Dependencies deps_;
  const GroupStepOptions options_;
  const Plan plan_;
  std::vector<Stepped> stepped_;
  std::vector<std::unique_ptr<Group>> clones_;
  std::unique_ptr<IssueOrder> gradients_;
  // Issues the collectives that spread parameters, in forward's order; null with all-reduce.
  std::unique_ptr<IssueOrder> parameters_;

  // State of the running step.
  std::vector<size_t> missing_;  // For each bucket, the number of gradients still missing.
  std::vector<size_t> last_;     // Buckets that are complete only after the batch.
  bool distributing_ = false;
  absl::Duration overlapped_;  // The overlapped time that was passed to the reporter so far.
  std::vector<bool> arrived_;  // For each bucket of parameters, whether it has arrived.
  absl::Status failure_;
};

}  // namespace hooke

#endif  // HOOKE_WORKER_TRAINING_GROUP_STEP_H_
