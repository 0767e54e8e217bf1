// Tests a program with a state of its own, whose group is restarted. The group has servers.
#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "algorithms/sharding.h"
#include "gtest/gtest.h"
#include "mpi_group/data_type.h"
#include "mpi_group/reduce/reduce.h"
#include "proto/job.pb.h"
#include "proto/worker.pb.h"
#include "worker/api/rank_job.h"
#include "worker/api/rank_job_ranks.h"
#include "worker/exchange/grpc_server_calls.h"
#include "worker/exchange/restartable_server_test.h"
#include "worker/exchange/server_calls.h"
#include "worker/report/event_sink.h"

namespace hooke {
namespace {

constexpr uint64_t kSteps = 11;
constexpr uint64_t kInterval = 3;
// The vector has three blocks, so that each rank exchanges at least one.
constexpr uint64_t kValues = 2 * kBlockValues + 10;

// A program with momentum, whose targets come from a random generator. The momentum and the generator are its own
// state.
class Program {
 public:
  explicit Program(DataType type) : type_(type), values_(kValues * SizeOf(type)), velocity_(kValues) {
    tensor_.name = "w";
    tensor_.type = static_cast<uint32_t>(type);
    tensor_.shape = &shape_;
    tensor_.dimensions = 1;
    tensor_.device = HOOKE_HOST;
    tensor_.values = values_.data();
    Write(std::vector<float>(kValues, 0.1f), tensor_.values);
  }

  absl::Span<hooke_tensor> tensors() { return absl::MakeSpan(&tensor_, 1); }
  std::vector<float> Values() const { return Read(tensor_.values); }

  void Backward(int rank) {
    random_ = random_ * 1664525 + 1013904223;
    const float target = static_cast<float>(random_ >> 16) / 65536.0f + static_cast<float>(rank);
    std::vector<float> gradient = Values();
    for (uint64_t i = 0; i < kValues; ++i) gradient[i] -= target * static_cast<float>(i % 17);
    Write(gradient, tensor_.gradient);
  }
  void Step() {
    const std::vector<float> gradient = Read(tensor_.gradient);
    std::vector<float> values = Values();
    for (uint64_t i = 0; i < kValues; ++i) {
      velocity_[i] = 0.9f * velocity_[i] + gradient[i];
      values[i] -= 0.03f * velocity_[i];
    }
    Write(values, tensor_.values);
  }

  std::string State() const {
    std::string state(reinterpret_cast<const char*>(&random_), sizeof(random_));
    state.append(reinterpret_cast<const char*>(velocity_.data()), velocity_.size() * sizeof(float));
    return state;
  }
  void Restore(absl::string_view state) {
    ASSERT_EQ(state.size(), sizeof(random_) + kValues * sizeof(float));
    std::memcpy(&random_, state.data(), sizeof(random_));
    std::memcpy(velocity_.data(), state.data() + sizeof(random_), kValues * sizeof(float));
  }

 private:
  std::vector<float> Read(const void* from) const {
    std::vector<float> numbers(kValues);
    if (type_ == DataType::kFloat32) {
      std::memcpy(numbers.data(), from, kValues * sizeof(float));
    } else {
      Widen(type_, {static_cast<const char*>(from), kValues * SizeOf(type_)}, absl::MakeSpan(numbers));
    }
    return numbers;
  }
  void Write(const std::vector<float>& numbers, void* to) const {
    if (type_ == DataType::kFloat32) {
      std::memcpy(to, numbers.data(), kValues * sizeof(float));
    } else {
      Narrow(type_, numbers, {static_cast<char*>(to), kValues * SizeOf(type_)});
    }
  }

  const DataType type_;
  uint64_t shape_ = kValues;
  std::vector<char> values_;
  std::vector<float> velocity_;
  uint32_t random_ = 1;
  hooke_tensor tensor_ = {};
};

// The point at which a start of the group ends. Rank `rank` leaves in step `step`, before or after the gradients are
// combined.
struct Death {
  uint64_t step = kSteps + 1;
  int rank = 0;
  bool combined = false;
};

// A worker that wants the group to leave, once it is told to.
class LeaveSink final : public EventSink {
 public:
  explicit LeaveSink(const std::atomic<bool>* leave) : leave_(leave) {}
  bool Send(const v1::RankEvent&) override { return true; }
  void Close(absl::Duration) override {}
  void Cancel() override {}
  std::string LeaveReason() const override { return *leave_ ? "the node is drained" : ""; }

 private:
  const std::atomic<bool>* const leave_;
};

class RankJobRestartTest : public ::testing::TestWithParam<DataType> {
 protected:
  v1::GroupStart Start(v1::AveragingSpec::Rule rule, uint32_t incarnation, const Death& death) {
    v1::GroupStart start;
    start.set_task(v1::GroupStart::TRAIN);
    start.set_job_id(job_id_);
    start.set_incarnation(incarnation);
    start.set_job_key("key");
    // The rank that is left waits this long for the dead one. If none dies, a slow machine must not end the group.
    start.set_collective_timeout_seconds(death.step <= kSteps ? 0.3 : 60);
    for (const RestartableServer& server : servers_) start.add_servers(server.address());
    v1::JobSpec& job = *start.mutable_job();
    job.mutable_groups()->set_count(1);
    job.mutable_groups()->set_ranks(2);
    job.mutable_train()->set_state_seconds(state_seconds_);
    job.mutable_averaging()->set_rule(rule);
    job.mutable_averaging()->set_interval(kInterval);
    if (rule == v1::AveragingSpec::ELASTIC) job.mutable_averaging()->set_alpha(0.5);
    if (averaging_) averaging_(*job.mutable_averaging());
    return start;
  }

  // Runs a start of the group. Returns the vector at its end; empty if it died.
  std::vector<float> Run(v1::AveragingSpec::Rule rule, uint32_t incarnation, const Death& death) {
    const v1::GroupStart start = Start(rule, incarnation, death);
    std::vector<float> end;
    const auto dial = [](const std::string& address) { return DialServer(address); };
    std::atomic<bool> leave{false};
    const auto body = [&](RankJob& job, Reporter&, int rank) {
      Program program(GetParam());
      if (!Train(job, program, rank, death, &leave) || rank != 0) return;
      end = program.Values();
    };
    RunRankJobs(start, 2, dial, body, [&](int rank) -> std::unique_ptr<EventSink> {
      static const std::atomic<bool> never{false};
      return std::make_unique<LeaveSink>(rank == 1 ? &leave : &never);
    });
    return end;
  }

  // Trains to the end. False: this rank or the other one died, or the group has left.
  bool Train(RankJob& job, Program& program, int rank, const Death& death, std::atomic<bool>* leave) {
    if (!job.Register(program.tensors()).ok() || !job.Begin({kSteps, 0, 0}).ok()) return false;
    first_steps_[rank] = job.step();
    const auto saved = job.SavedState();
    EXPECT_TRUE(saved.ok());
    if (saved->has_value()) program.Restore((*saved)->own);
    if (saved->has_value() && rank == 0) ++restored_;
    if (!KeepIfDue(job, program)) return false;
    while (job.step() < kSteps) {
      const bool dies = job.step() + 1 == death.step && rank == death.rank;
      if (dies && !death.combined) return false;
      program.Backward(rank);
      if (job.step() + 1 == leave_at_ && rank == 1) *leave = true;
      left_[rank] = job.Combine(1, nullptr).status();
      if (!left_[rank].ok() || dies) return false;
      program.Step();
      left_[rank] = job.EndStep({}).status();
      if (!left_[rank].ok()) return false;
      if (ignores_state_) continue;
      if (*job.StateDue()) left_[rank] = job.SaveState(program.State());
      if (!left_[rank].ok()) return false;
    }
    return job.Finish().ok();
  }

  static void ExpectNear(const std::vector<float>& one, const std::vector<float>& other) {
    ASSERT_EQ(one.size(), other.size());
    for (size_t i = 0; i < one.size(); ++i) ASSERT_NEAR(one[i], other[i], 1e-5) << i;
  }

  static bool KeepIfDue(RankJob& job, const Program& program) {
    return !*job.StateDue() || job.SaveState(program.State()).ok();
  }

  RestartableServer servers_[2];
  std::string job_id_ = "job-1";
  double state_seconds_ = 1e-9;
  std::function<void(v1::AveragingSpec&)> averaging_;  // Sets more keys; may be empty.
  uint64_t leave_at_ = 0;       // The worker of rank 1 wants the group to leave in this step; 0: it does not.
  bool ignores_state_ = false;  // The program saves no state, even if one is due.
  int restored_ = 0;            // Number of starts that went on with a kept state.
  std::array<uint64_t, 2> first_steps_ = {};  // For each rank: the step from which the last start went on.
  std::array<absl::Status, 2> left_;          // For each rank: the error with which the last start left.
};

INSTANTIATE_TEST_SUITE_P(All, RankJobRestartTest, testing::Values(DataType::kFloat32, DataType::kBFloat16),
                         [](const auto& info) { return std::string(NameOf(info.param)); });

// A group that dies in any step, on any rank, ends with bitwise the same vector as one that was not killed. If a rank
// dies after the gradients are combined, the other rank still exchanges its own blocks. Then the center has only some
// blocks of that step.
TEST_P(RankJobRestartTest, EndsAsIfNeverKilled) {
  for (const v1::AveragingSpec::Rule rule : {v1::AveragingSpec::AVERAGE, v1::AveragingSpec::NONE}) {
    job_id_ = absl::StrCat("plain-", rule);
    const std::vector<float> plain = Run(rule, 1, {});
    ASSERT_FALSE(plain.empty());
    for (uint64_t step = 1; step <= kSteps; ++step) {
      const Death death = {step, static_cast<int>(step % 2), step % kInterval == 0 || step % 4 == 1};
      job_id_ = absl::StrCat("killed-", rule, "-", step);
      EXPECT_TRUE(Run(rule, 1, death).empty());
      EXPECT_TRUE(Run(rule, 2, {step + 1, death.rank, false}).empty() || step == kSteps);
      EXPECT_EQ(Run(rule, 3, {}), plain) << "rule " << rule << ", killed in step " << step;
    }
  }
  EXPECT_GE(restored_, 2 * static_cast<int>(kSteps));
}

// Under a rule where a restarted group takes the center's values, it still goes on with its own state.
TEST_P(RankJobRestartTest, TheStateComesBackUnderOtherRules) {
  EXPECT_TRUE(Run(v1::AveragingSpec::ELASTIC, 1, {kSteps, 0, false}).empty());
  EXPECT_FALSE(Run(v1::AveragingSpec::ELASTIC, 2, {}).empty());
  EXPECT_EQ(restored_, 1);
}

// A group that is to leave loses nothing. Its next start goes on from the step in which it left, also between two
// exchanges. It ends with bitwise the same vector as a group that stayed. But if it left between two exchanges, it made
// one exchange more, and there the server rounded once more.
TEST_P(RankJobRestartTest, LeavesWithoutLoss) {
  state_seconds_ = 1000;
  for (const v1::AveragingSpec::Rule rule : {v1::AveragingSpec::AVERAGE, v1::AveragingSpec::NONE}) {
    job_id_ = absl::StrCat("stays-", rule);
    leave_at_ = 0;
    const std::vector<float> plain = Run(rule, 1, {});
    for (uint64_t step = 1; step < kSteps; ++step) {
      job_id_ = absl::StrCat("leaves-", rule, "-", step);
      leave_at_ = step;
      EXPECT_TRUE(Run(rule, 1, {}).empty());
      EXPECT_EQ(left_[1],
                absl::CancelledError(absl::StrCat("left after step ", step, ", as asked: the node is drained")));
      EXPECT_EQ(left_[0], absl::CancelledError(absl::StrCat("left after step ", step, ", as asked")));
      leave_at_ = 0;
      SCOPED_TRACE(absl::StrCat("rule ", rule, ", left in step ", step));
      const std::vector<float> end = Run(rule, 2, {});
      if (rule == v1::AveragingSpec::NONE || step % kInterval == 0) {
        EXPECT_EQ(end, plain);
      } else {
        ExpectNear(end, plain);
      }
      EXPECT_EQ(first_steps_[0], step);
    }
  }
}

// Under other rules the next start begins from the center, which has the last step's exchange, and with the state of
// that step.
TEST_P(RankJobRestartTest, LeavesWithAnExchangeUnderOtherRules) {
  state_seconds_ = 1000;
  leave_at_ = 5;
  EXPECT_TRUE(Run(v1::AveragingSpec::ELASTIC, 1, {}).empty());
  leave_at_ = 0;
  EXPECT_FALSE(Run(v1::AveragingSpec::ELASTIC, 2, {}).empty());
  EXPECT_EQ(first_steps_[1], 5u);
  EXPECT_EQ(restored_, 1);
}

// A group also leaves with an exchange in flight, or with fragments, or where servers step. In rounds of gradients it
// stays until its next regular exchange.
TEST_P(RankJobRestartTest, LeavesUnderEachKindOfRule) {
  struct Case {
    v1::AveragingSpec::Rule rule;
    uint32_t delay, fragments;
    uint64_t leave_at, left_at;
  };
  const Case cases[] = {{v1::AveragingSpec::ELASTIC, 2, 1, 4, 4}, {v1::AveragingSpec::DILOCO, 0, 3, 4, 4},
                        {v1::AveragingSpec::DILOCO, 1, 1, 4, 4},  {v1::AveragingSpec::SYNC, 0, 1, 4, 6},
                        {v1::AveragingSpec::SYNC, 0, 1, 6, 6},    {v1::AveragingSpec::ASYNC, 0, 1, 4, 4},
                        {v1::AveragingSpec::DOWNPOUR, 0, 1, 4, 4}};
  for (const Case& c : cases) {
    SCOPED_TRACE(absl::StrCat(v1::AveragingSpec::Rule_Name(c.rule), ", delay ", c.delay, ", fragments ", c.fragments));
    job_id_ = absl::StrCat("job-", &c - cases);
    averaging_ = [&c](v1::AveragingSpec& averaging) {
      averaging.set_delay(c.delay);
      averaging.set_fragments(c.fragments);
    };
    leave_at_ = c.leave_at;
    EXPECT_TRUE(Run(c.rule, 1, {}).empty());
    for (const absl::Status& left : left_) EXPECT_TRUE(absl::IsCancelled(left)) << left;
    leave_at_ = 0;
    EXPECT_FALSE(Run(c.rule, 2, {}).empty());
    EXPECT_EQ(first_steps_[0], c.left_at);
  }
}

// A group that makes its last step ends, even if it is to leave.
TEST_P(RankJobRestartTest, TheEndComesBeforeLeaving) {
  leave_at_ = kSteps;
  EXPECT_FALSE(Run(v1::AveragingSpec::AVERAGE, 1, {}).empty());
}

// A program that saves no state leaves in its next step, which does not count.
TEST_P(RankJobRestartTest, LeavesWithoutAState) {
  leave_at_ = 5;
  ignores_state_ = true;
  EXPECT_TRUE(Run(v1::AveragingSpec::ELASTIC, 1, {}).empty());
  EXPECT_EQ(left_[0].code(), absl::StatusCode::kCancelled) << left_[0];
  leave_at_ = 0;
  EXPECT_FALSE(Run(v1::AveragingSpec::ELASTIC, 2, {}).empty());
  EXPECT_EQ(first_steps_[0], 5u);
}

// With train.state_seconds 0 nothing is kept.
TEST_P(RankJobRestartTest, NothingIsKeptIfTheJobSaysSo) {
  state_seconds_ = 0;
  EXPECT_TRUE(Run(v1::AveragingSpec::AVERAGE, 1, {kSteps, 0, false}).empty());
  EXPECT_FALSE(Run(v1::AveragingSpec::AVERAGE, 2, {}).empty());
  EXPECT_EQ(restored_, 0);
}

}  // namespace
}  // namespace hooke
