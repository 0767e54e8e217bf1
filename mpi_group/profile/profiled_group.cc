#include "mpi_group/profile/profiled_group.h"

#include <utility>

namespace hooke {
namespace {

class ProfiledGroup : public Group {
 public:
  ProfiledGroup(std::unique_ptr<Group> group, ProfileRecorder& recorder)
      : group_(std::move(group)), recorder_(recorder), lane_(recorder.AddLane()) {}

  int rank() const override { return group_->rank(); }
  int size() const override { return group_->size(); }

  absl::Status AllReduce(const TensorList& values, ReduceOp op) override {
    return Timed(Operation::kAllReduce, values, [&] { return group_->AllReduce(values, op); });
  }
  absl::Status Reduce(const TensorList& values, ReduceOp op, int root) override {
    return Timed(Operation::kReduce, values, [&] { return group_->Reduce(values, op, root); });
  }
  absl::Status Broadcast(const TensorList& values, int root) override {
    return Timed(Operation::kBroadcast, values, [&] { return group_->Broadcast(values, root); });
  }
  absl::Status ReduceScatter(const TensorList& values, absl::Span<const ValueRange> parts, ReduceOp op) override {
    return Timed(Operation::kReduceScatter, values, [&] { return group_->ReduceScatter(values, parts, op); });
  }
  absl::Status AllGather(const TensorList& values, absl::Span<const ValueRange> parts) override {
    return Timed(Operation::kAllGather, values, [&] { return group_->AllGather(values, parts); });
  }
  absl::Status Barrier() override {
    return Timed(Operation::kBarrier, TensorList(), [&] { return group_->Barrier(); });
  }
  void SetDeadline(absl::Duration deadline) override { group_->SetDeadline(deadline); }
  absl::StatusOr<absl::Span<char>> AllocateShared(uint64_t bytes) override { return group_->AllocateShared(bytes); }
  absl::string_view LastAlgorithm() const override { return group_->LastAlgorithm(); }
  absl::StatusOr<std::unique_ptr<Group>> Clone() override {
    absl::StatusOr<std::unique_ptr<Group>> clone = group_->Clone();
    if (!clone.ok()) return clone.status();
    return MakeProfiledGroup(*std::move(clone), recorder_);  // The clone gets a lane of its own.
  }

 private:
  template <typename Call>
  absl::Status Timed(Operation operation, const TensorList& values, const Call& call) {
    const int64_t begin = recorder_.Now();
    absl::Status status = call();
    const int64_t end = recorder_.Now();
    if (lane_ != nullptr) {
      lane_->Record({operation, values.pieces().size() > 1, values.bytes(), begin, end, group_->LastAlgorithm()});
    } else {
      recorder_.LeaveOut();
    }
    return status;
  }

  const std::unique_ptr<Group> group_;
  ProfileRecorder& recorder_;
  ProfileLane* const lane_;
};

}  // namespace

std::unique_ptr<Group> MakeProfiledGroup(std::unique_ptr<Group> group, ProfileRecorder& recorder) {
  return std::make_unique<ProfiledGroup>(std::move(group), recorder);
}

}  // namespace hooke
