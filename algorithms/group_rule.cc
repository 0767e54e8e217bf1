#include "algorithms/group_rule.h"

#include <algorithm>
#include <vector>

#include "absl/base/macros.h"
#include "algorithms/elastic.h"

namespace hooke {
namespace {

class ParametersRule : public GroupRule {
 public:
  // `alpha` is 0 under kNone, whose answers say nothing about the center.
  explicit ParametersRule(double alpha) : alpha_(alpha) {}

  bool StepsLocally() const override { return true; }
  void Begin(absl::Span<const float> /*vector*/) override {}
  void AddGradient(absl::Span<const float> /*gradient*/) override {}
  absl::Span<const float> Prepare(absl::Span<const float> vector, absl::Span<const Range> /*ranges*/) override {
    return vector;
  }
  void CorrectCopy(const BlockAnswer& earlier, absl::Span<float> copy) const override {
    ApplyElasticAnswer(earlier.values, copy.subspan(earlier.first, earlier.values.size()));
  }
  std::optional<CenterGap> Gap(const BlockAnswer& answer, absl::Span<const float> /*vector*/) const override {
    if (alpha_ <= 0) return std::nullopt;
    return GapOfElasticAnswer(alpha_, answer.sent, answer.values);
  }
  void Take(const BlockAnswer& answer, absl::Span<float> vector) override {
    ApplyElasticAnswer(answer.values, vector.subspan(answer.first, answer.values.size()));
  }

 private:
  const double alpha_;
};

// Subtracts the values of an earlier exchange from `copy`, because the servers have them already.
void TakeOffSent(const BlockAnswer& earlier, absl::Span<float> copy) {
  for (uint64_t i = 0; i < earlier.sent.size(); ++i) copy[earlier.first + i] -= earlier.sent[i];
}

// Sends a range of the vector as distances, anchor - x.
class Distances {
 public:
  // `range` is the part of the vector that this object handles.
  explicit Distances(const Range& range) : range_(range), anchor_(range.size()) {}

  void Begin(absl::Span<const float> vector) {
    const absl::Span<const float> own = vector.subspan(range_.begin, range_.size());
    std::copy(own.begin(), own.end(), anchor_.begin());
  }

  void Prepare(absl::Span<const float> vector, absl::Span<const Range> ranges, absl::Span<float> sent) const {
    for (const Range& each : ranges) {
      const Range range = Intersect(each, range_);
      for (uint64_t i = range.begin; i < range.end; ++i) sent[i] = anchor_[i - range_.begin] - vector[i];
    }
  }

  // Call it before Take. `sent` has the values of Prepare for the answer's block.
  CenterGap Gap(const BlockAnswer& answer, absl::Span<const float> sent) const {
    const Range range = Intersect({answer.first, answer.first + answer.values.size()}, range_);
    if (range.empty()) return {};
    return GapOfDifference(sent.subspan(range.begin, range.size()),
                           absl::MakeConstSpan(anchor_).subspan(range.begin - range_.begin, range.size()));
  }

  // Applies the center, and keeps how far the group has moved since it sent. That is exactly 0 if it has not moved.
  void Take(const BlockAnswer& answer, absl::Span<float> sent, absl::Span<float> vector) {
    const Range range = Intersect({answer.first, answer.first + answer.values.size()}, range_);
    for (uint64_t i = range.begin; i < range.end; ++i) {
      float& anchor = anchor_[i - range_.begin];
      const float moved = (vector[i] - anchor) + answer.sent[i - answer.first];
      anchor = answer.values[i - answer.first];
      vector[i] = anchor + moved;
      sent[i] = -moved;
    }
  }

 private:
  const Range range_;
  std::vector<float> anchor_;
};

class DistanceRule : public GroupRule {
 public:
  explicit DistanceRule(const GroupSlice& slice) : distances_(slice.slice), sent_(slice.values) {}

  bool StepsLocally() const override { return true; }
  void Begin(absl::Span<const float> vector) override { distances_.Begin(vector); }
  void AddGradient(absl::Span<const float> /*gradient*/) override {}
  absl::Span<const float> Prepare(absl::Span<const float> vector, absl::Span<const Range> ranges) override {
    distances_.Prepare(vector, ranges, absl::MakeSpan(sent_));
    return sent_;
  }
  void CorrectCopy(const BlockAnswer& earlier, absl::Span<float> copy) const override { TakeOffSent(earlier, copy); }
  std::optional<CenterGap> Gap(const BlockAnswer& answer, absl::Span<const float> /*vector*/) const override {
    return distances_.Gap(answer, sent_);
  }
  void Take(const BlockAnswer& answer, absl::Span<float> vector) override {
    distances_.Take(answer, absl::MakeSpan(sent_), vector);
  }

 private:
  Distances distances_;
  std::vector<float> sent_;
};

class GradientRule : public GroupRule {
 public:
  GradientRule(const GroupSlice& slice, bool steps_locally)
      : steps_locally_(steps_locally),
        parameters_(Intersect(slice.slice, {0, slice.parameters})),
        buffers_(Intersect(slice.slice, {slice.parameters, slice.values})),
        sent_(slice.values) {}

  bool StepsLocally() const override { return steps_locally_; }

  void Begin(absl::Span<const float> vector) override {
    std::fill(sent_.begin(), sent_.end(), 0.0f);
    buffers_.Begin(vector);
  }

  void AddGradient(absl::Span<const float> gradient) override {
    for (uint64_t i = parameters_.begin; i < parameters_.end; ++i) sent_[i] += gradient[i];
  }

  absl::Span<const float> Prepare(absl::Span<const float> vector, absl::Span<const Range> ranges) override {
    buffers_.Prepare(vector, ranges, absl::MakeSpan(sent_));
    return sent_;
  }

  void CorrectCopy(const BlockAnswer& earlier, absl::Span<float> copy) const override { TakeOffSent(earlier, copy); }

  std::optional<CenterGap> Gap(const BlockAnswer& answer, absl::Span<const float> vector) const override {
    if (!steps_locally_) return std::nullopt;
    const Range range = Intersect({answer.first, answer.first + answer.values.size()}, parameters_);
    return GapBetween(vector.subspan(range.begin, range.size()),
                      answer.values.subspan(range.begin - answer.first, range.size()));
  }

  // `answer.sent` may point into sent_; the difference is 0 then.
  void Take(const BlockAnswer& answer, absl::Span<float> vector) override {
    const Range range = Intersect({answer.first, answer.first + answer.values.size()}, parameters_);
    for (uint64_t i = range.begin; i < range.end; ++i) {
      sent_[i] -= answer.sent[i - answer.first];
      vector[i] = answer.values[i - answer.first];
    }
    buffers_.Take(answer, absl::MakeSpan(sent_), vector);
  }

 private:
  const bool steps_locally_;
  const Range parameters_;
  Distances buffers_;
  // One value for each value of the vector. For parameters, it is the sum of the gradients that are not yet answered.
  std::vector<float> sent_;
};

}  // namespace

std::unique_ptr<GroupRule> MakeGroupRule(RuleName rule, const GroupSlice& slice) {
  ABSL_ASSERT(slice.slice.end <= slice.values && slice.parameters <= slice.values);
  if (!AnswersWithCenter(rule)) return std::make_unique<ParametersRule>(FactsOf(rule).shares ? slice.alpha : 0);
  if (SendsGradients(rule)) return std::make_unique<GradientRule>(slice, FactsOf(rule).steps_locally);
  return std::make_unique<DistanceRule>(slice);
}

}  // namespace hooke
