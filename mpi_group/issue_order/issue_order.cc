#include "mpi_group/issue_order/issue_order.h"

#include <optional>
#include <thread>
#include <utility>

#include "mpi_group/issue_order/bucket_agreement.h"
#include "mpi_group/issue_order/issue_order_pass.h"
#include "mpi_group/transport/steady_clock.h"

namespace hooke {
namespace {

// The base of all orders: it keeps the state of a pass and measures how long callers wait.
class CountingOrder : public IssueOrder {
 public:
  explicit CountingOrder(IssueOrderOptions options)
      : options_(std::move(options)), pass_({options_.buckets.size(), lanes(), options_.deadline}) {}

  absl::Status Wait(size_t bucket) override {
    const Waiting waiting(pass_);
    return pass_.Wait(bucket);
  }
  absl::Status FinishWith(absl::Span<const size_t> last) override {
    const Waiting waiting(pass_);
    if (lanes() == 1) {
      for (std::optional<size_t> next = pass_.SetLast(last); next; next = pass_.TryNext(0)) Call(*next);
    } else {
      for (size_t bucket : last) pass_.SetReady(bucket);
    }
    return pass_.Finish();
  }
  IssueTimes times() const override { return pass_.times(); }

 protected:
  class Waiting {
   public:
    explicit Waiting(IssueOrderPass& pass) : pass_(pass) {}
    ~Waiting() { pass_.AddWaited(SteadyNow() - begin_); }
    Waiting(const Waiting&) = delete;
    Waiting& operator=(const Waiting&) = delete;

   private:
    IssueOrderPass& pass_;
    const absl::Time begin_ = SteadyNow();
  };

  size_t lanes() const { return options_.lanes.size(); }

  void Call(size_t bucket) {
    pass_.Done(bucket, options_.collective(*options_.lanes[bucket % lanes()], options_.buckets[bucket]));
  }

  const IssueOrderOptions options_;
  IssueOrderPass pass_;
};

// The concurrent order; with one lane, the funneled one.
class LaneOrder : public CountingOrder {
 public:
  explicit LaneOrder(IssueOrderOptions options) : CountingOrder(std::move(options)) {
    for (size_t lane = 0; lane < lanes(); ++lane) {
      threads_.emplace_back([this, lane] {
        while (std::optional<size_t> bucket = pass_.AwaitNext(lane)) Call(*bucket);
      });
    }
  }

  ~LaneOrder() override {
    pass_.Close();
    for (std::thread& thread : threads_) thread.join();
  }

  void Ready(size_t bucket) override { pass_.SetReady(bucket); }

 private:
  std::vector<std::thread> threads_;
};

class ChainedOrder : public CountingOrder {
 public:
  explicit ChainedOrder(IssueOrderOptions options) : CountingOrder(std::move(options)) {}

  void Ready(size_t bucket) override {
    const Waiting waiting(pass_);
    pass_.SetReady(bucket);
    while (std::optional<size_t> next = pass_.TryNext(0)) Call(*next);
  }
};

}  // namespace

absl::string_view NameOf(IssuePolicy policy) {
  switch (policy) {
    case IssuePolicy::kFunneled:
      return "funneled";
    case IssuePolicy::kConcurrent:
      return "concurrent";
    case IssuePolicy::kChained:
      return "chained";
  }
  return "unknown policy";
}

absl::StatusOr<std::unique_ptr<IssueOrder>> MakeIssueOrder(IssueOrderOptions options) {
  if (options.lanes.empty()) return absl::InvalidArgumentError("an issue order needs at least one group to call");
  if (options.policy != IssuePolicy::kConcurrent) options.lanes.resize(1);
  const AgreedSetting settings[] = {{"the number of the issue policy", static_cast<int64_t>(options.policy)},
                                    {"the number of lanes", static_cast<int64_t>(options.lanes.size())}};
  absl::Status status = AgreeOnBuckets(*options.lanes[0], settings, options.buckets);
  if (!status.ok()) return status;
  if (options.policy == IssuePolicy::kChained) return std::make_unique<ChainedOrder>(std::move(options));
  return std::make_unique<LaneOrder>(std::move(options));
}

}  // namespace hooke
