#ifndef HOOKE_WORKER_RANK_AGGREGATION_H_
#define HOOKE_WORKER_RANK_AGGREGATION_H_

// One optimizer step of a group: forward, backward, and what the ranks do with their gradients. Used by the trainer.
//
//   all-reduce  every rank gets the mean gradient, and each steps its optimizer.
//   rooted      rank 0 alone gets it and steps its optimizer, then broadcasts the parameters: a bucket for each few
//               layers, the first layers first (S-Caffe, Awan et al., PPoPP 2017). The other ranks have no optimizer.
//   sharded     each rank gets 1/n of each bucket and steps an optimizer of that, then all gather the parameters, the
//               first layers first. As many bytes as an all-reduce, 1/n of the optimizer's work and state on each rank
//               (ZeRO's first stage, Rajbhandari et al., SC 2020).
//
// With overlap, gradients are combined in buckets while backward goes on, and the parameters of rooted and sharded
// travel beside the next forward pass, in which each layer waits for its own. Without, it is one collective after
// backward (and one more after the optimizer). Loss and float buffers are averaged along with the gradients, in the
// bucket of the first layers.
//
// One thread. After an error the group is unusable.

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "algorithms/optimizer.h"
#include "mpi_group/group.h"
#include "mpi_group/issue_order/bucket_plan.h"
#include "mpi_group/issue_order/issue_order.h"
#include "worker/model/arena.h"
#include "worker/model/model.h"
#include "worker/report/reporter.h"

namespace hooke {

// In Arena::Sizes::statistics: the loss.
inline constexpr uint64_t kAggregationStatistics = 1;

enum class AggregationKind { kAllReduce, kRooted, kSharded };

struct AggregationOptions {
  AggregationKind kind = AggregationKind::kAllReduce;
  bool overlap = true;
  // With overlap:
  IssuePolicy order = IssuePolicy::kFunneled;
  uint64_t bucket_bytes = 4 << 20;  // A bucket closes when its gradients have so many.
  int lanes = 2;                    // Of the concurrent order.
};

class Aggregation {
 public:
  // All outlive it; it sets the model's hooks for as long as it lives.
  struct Parts {
    Group* group = nullptr;
    Model* model = nullptr;                     // Bound to the arena.
    const Arena* arena = nullptr;               // With kAggregationStatistics.
    std::optional<OptimizerOptions> optimizer;  // None: nobody steps, the gradients are for others: kAllReduce.
    Reporter* reporter = nullptr;
    absl::Duration collective_timeout;
  };

  // Collective; INVALID_ARGUMENT, on all ranks, where they mean different steps, or as CheckOptimizer.
  static absl::StatusOr<std::unique_ptr<Aggregation>> Make(const Parts& parts, const AggregationOptions& options);
  ~Aggregation();
  Aggregation(const Aggregation&) = delete;
  Aggregation& operator=(const Aggregation&) = delete;

  // Collective. The mean loss of all ranks' batches before the step; then all ranks have the same parameters, but for
  // those that are still on their way: see Settle. Errors are the model's and the group's.
  absl::StatusOr<float> Step(const Batch& batch, double learning_rate);

  // Returns when all of the arena's vector is there. To be called before anyone but Step reads or writes it, or calls a
  // collective. Nothing to do after the first time until the next step.
  absl::Status Settle();

 private:
  // The buckets of gradients, and where each of them is.
  struct Plan {
    std::vector<Bucket> buckets;
    std::vector<size_t> bucket_of;  // Each parameter.
  };
  static Plan MakePlan(const ModelLayout& layout, uint64_t bucket_bytes);

  Aggregation(const Parts& parts, const AggregationOptions& options, Plan plan);

  // A range of the parameters that this rank steps.
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

  void BeforeUse(size_t parameter);
  void GradientReady(size_t parameter);
  void MakeReady(IssueOrder& order, size_t bucket);
  // Rooted and sharded: the parameters set out for the ranks that have not stepped them.
  absl::Status Distribute();
  absl::Status WaitForParameters(size_t bucket);
  void ReportOverlap();

  const Parts parts_;
  const AggregationOptions options_;
  const Plan plan_;
  std::vector<Stepped> stepped_;
  std::vector<std::unique_ptr<Group>> clones_;
  std::unique_ptr<IssueOrder> gradients_;
  std::unique_ptr<IssueOrder> parameters_;  // Null where every rank steps them; in the order of forward.

  // Of the step that is under way.
  std::vector<size_t> missing_;  // Gradients of each bucket.
  std::vector<size_t> last_;     // Buckets that are complete with the batch only.
  bool distributing_ = false;
  absl::Duration overlapped_;  // Reported so far.
  std::vector<bool> arrived_;  // Buckets of parameters that have been waited for.
  absl::Status failure_;
};

}  // namespace hooke

#endif  // HOOKE_WORKER_RANK_AGGREGATION_H_
