#include "worker/rank/rank_task.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "algorithms/optimizer.h"
#include "clocks/steady_time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "mpi_group/groups/in_process_group.h"
#include "worker/data/idx_dataset.h"
#include "worker/data/sampler.h"
#include "worker/exchange/center_client.h"
#include "worker/exchange/grpc_server_calls.h"
#include "worker/exchange/in_memory_server.h"
#include "worker/exchange/restartable_server_test.h"
#include "worker/model/model.h"
#include "worker/training/job_training.h"

namespace hooke {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr uint32_t kImages = 96;

std::string BigEndian(uint32_t value) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes.push_back(static_cast<char>(value >> shift & 0xff));
  return bytes;
}

// Writes images that show their class: the place of a bright column tells the label.
void WriteDataset(const std::string& prefix, uint32_t side) {
  std::ofstream images(prefix + "-images-idx3-ubyte", std::ios::binary);
  std::ofstream labels(prefix + "-labels-idx1-ubyte", std::ios::binary);
  images << BigEndian(0x803) << BigEndian(kImages) << BigEndian(side) << BigEndian(side);
  labels << BigEndian(0x801) << BigEndian(kImages);
  for (uint32_t image = 0; image < kImages; ++image) {
    const uint32_t label = image * 7 % 10;
    labels.put(static_cast<char>(label));
    for (uint32_t pixel = 0; pixel < side * side; ++pixel) {
      images.put(static_cast<char>(pixel % side == label * 2 ? 200 + image % 50 : pixel * image % 60));
    }
  }
}

// Keeps the events that rank 0 sends.
class KeepSink : public EventSink {
 public:
  explicit KeepSink(std::vector<v1::RankEvent>* events) : events_(events) {}
  bool Send(const v1::RankEvent& event) override {
    events_->push_back(event);
    return true;
  }
  void Close(absl::Duration) override {}
  void Cancel() override {}

 private:
  std::vector<v1::RankEvent>* const events_;
};

// Forwards collectives and allocations. Records the names and deadlines of all-reduces, broadcasts, barriers and
// allocations. Equal ones in a row are recorded once.
class DeadlineGroup : public Group {
 public:
  DeadlineGroup(Group& group, absl::Duration deadline) : group_(group), deadline_(deadline) {}

  int rank() const override { return group_.rank(); }
  int size() const override { return group_.size(); }
  absl::Status AllReduce(const TensorList& values, ReduceOp op) override {
    Note("all-reduce");
    return group_.AllReduce(values, op);
  }
  absl::Status Reduce(const TensorList& values, ReduceOp op, int root) override {
    return group_.Reduce(values, op, root);
  }
  absl::Status Broadcast(const TensorList& values, int root) override {
    Note("broadcast");
    return group_.Broadcast(values, root);
  }
  absl::Status ReduceScatter(const TensorList& values, absl::Span<const ValueRange> parts, ReduceOp op) override {
    return group_.ReduceScatter(values, parts, op);
  }
  absl::Status AllGather(const TensorList& values, absl::Span<const ValueRange> parts) override {
    return group_.AllGather(values, parts);
  }
  absl::Status Barrier() override {
    Note("barrier");
    return group_.Barrier();
  }
  void SetDeadline(absl::Duration deadline) override { deadline_ = deadline; }
  absl::StatusOr<absl::Span<char>> AllocateShared(uint64_t bytes) override {
    Note("allocation");
    return group_.AllocateShared(bytes);
  }

  std::vector<std::string> calls;

 private:
  void Note(absl::string_view what) {
    const std::string call = absl::StrCat(what, " ", absl::FormatDuration(deadline_));
    if (calls.empty() || calls.back() != call) calls.push_back(call);
  }

  Group& group_;
  absl::Duration deadline_;
};

class RankTaskTest : public ::testing::Test {
 protected:
  RankTaskTest() : folder_(absl::StrCat(::testing::TempDir(), "/rank_task_test_", getpid())) {
    std::filesystem::create_directories(folder_);
    WriteDataset(folder_ + "/train", 28);
    WriteDataset(folder_ + "/test", 28);
  }
  ~RankTaskTest() override { std::filesystem::remove_all(folder_); }

  v1::GroupStart Start(uint32_t ranks) {
    v1::GroupStart start;
    start.set_job_id("job-1");
    start.set_incarnation(1);
    start.set_task(v1::GroupStart::TRAIN);
    start.add_servers(server_.address());
    v1::JobSpec& job = *start.mutable_job();
    job.set_name("job");
    job.mutable_model()->set_name("mlp");
    job.mutable_data()->set_format(v1::DataSpec::FORMAT_IDX);
    job.mutable_data()->set_train(folder_ + "/train");
    job.mutable_data()->set_test(folder_ + "/test");
    job.mutable_train()->set_epochs(2);
    job.mutable_train()->set_batch_size(8);
    job.mutable_train()->set_seed(5);
    job.mutable_train()->mutable_optimizer()->set_name(v1::OptimizerSpec::SGD);
    job.mutable_train()->mutable_optimizer()->set_learning_rate(0.05);
    job.mutable_train()->mutable_optimizer()->set_momentum(0.9);
    job.mutable_train()->mutable_schedule()->set_name(v1::ScheduleSpec::CONSTANT);
    job.mutable_groups()->set_count(1);
    job.mutable_groups()->set_ranks(ranks);
    job.mutable_averaging()->set_rule(v1::AveragingSpec::ELASTIC);
    job.mutable_averaging()->set_interval(2);
    job.mutable_averaging()->set_alpha(0.4);
    return start;
  }

  // Runs a task with one thread for each rank. Returns rank 0's result, after checking that all ranks have the same
  // code.
  absl::StatusOr<uint64_t> Run(const v1::GroupStart& start) {
    const int ranks = static_cast<int>(start.job().groups().ranks());
    std::vector<std::unique_ptr<Group>> groups = MakeInProcessGroups(ranks);
    std::vector<absl::StatusOr<uint64_t>> results(ranks);
    std::vector<std::thread> threads;
    threads.reserve(ranks);
    for (int rank = 0; rank < ranks; ++rank) {
      threads.emplace_back([&, rank] {
        ReporterOptions options;
        if (rank == 0) options.sinks.push_back(std::make_unique<KeepSink>(&events_));
        Reporter reporter(std::move(options));
        results[rank] = RunRankTask({start, groups[rank].get(), &reporter, dial_, 1});
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (const auto& result : results) EXPECT_EQ(result.status().code(), results[0].status().code()) << result.status();
    return results[0];
  }

  // Trains in one process, with all ranks' batches as one, and returns the vector.
  std::vector<float> Reference(const v1::JobSpec& job) {
    std::unique_ptr<Model> model = *MakeModel({.name = job.model().name()});
    const uint64_t parameters = model->layout().parameter_values();
    Arena arena = *Arena::Make({.parameters = parameters, .buffers = model->layout().buffer_values()});
    EXPECT_TRUE(model->Bind(arena).ok());
    model->Initialize(job.train().seed());
    std::unique_ptr<Optimizer> optimizer = *MakeOptimizer({.momentum = 0.9}, parameters);
    IdxDataset data = *IdxDataset::Load({job.data().train()});
    std::vector<Sampler> samplers;
    for (uint32_t rank = 0; rank < job.groups().ranks(); ++rank) {
      SamplerOptions options;
      options.samples = data.size();
      options.ranks = job.groups().ranks();
      options.batch = job.train().batch_size();
      options.seed = job.train().seed();
      options.rank = rank;
      samplers.push_back(*Sampler::Make(options));
    }
    const uint64_t steps = samplers[0].division().steps_per_epoch() * job.train().epochs();
    for (uint64_t step = 0; step < steps; ++step) {
      std::vector<uint32_t> indices;
      for (Sampler& sampler : samplers) {
        absl::Span<const uint32_t> batch = sampler.BatchIndices(step);
        indices.insert(indices.end(), batch.begin(), batch.end());
      }
      std::vector<float> pixels(indices.size() * data.image_values());
      std::vector<int64_t> labels(indices.size());
      data.WriteImages(indices, data.normalization(), absl::MakeSpan(pixels));
      data.WriteLabels(indices, absl::MakeSpan(labels));
      EXPECT_TRUE(model->TrainBatch({pixels, labels}).ok());
      optimizer->Step(0.05, arena.gradients(), arena.parameters());
    }
    return std::vector<float>(arena.vector().begin(), arena.vector().end());
  }

  std::vector<float> PullCenter(const std::string& model_name) {
    std::unique_ptr<Model> model = *MakeModel({.name = model_name});
    std::unique_ptr<ServerCalls> calls = DialServer(server_.address());
    CenterOptions options;
    options.sender.set_job_id("job-1");
    options.layout = model->layout();
    options.partition = Partition(model->layout().values());
    options.servers = {calls.get()};
    std::vector<float> center(model->layout().values());
    absl::Status status = CenterClient(options).Pull(absl::MakeSpan(center), SteadyTime() + absl::Seconds(30));
    EXPECT_TRUE(status.ok()) << status;
    return center;
  }

  const std::string folder_;
  RestartableServer server_;
  ServerDialer dial_ = [](const std::string& address) { return DialServer(address); };
  std::vector<v1::RankEvent> events_;
};

// Twelve steps of three ranks with batch 8 end with the same values as one process with batch 24, to the tolerance of
// float. The values are read from the server: under rule none, group 0's values become the center.
TEST_F(RankTaskTest, AGroupTrainsAsOneProcessWould) {
  v1::GroupStart start = Start(3);
  start.mutable_job()->mutable_train()->set_epochs(3);
  start.mutable_job()->mutable_averaging()->set_rule(v1::AveragingSpec::NONE);
  absl::StatusOr<uint64_t> steps = Run(start);
  ASSERT_TRUE(steps.ok()) << steps.status();
  EXPECT_EQ(*steps, 12u);
  std::vector<float> reference = Reference(start.job());
  std::vector<float> center = PullCenter("mlp");
  ASSERT_EQ(center.size(), reference.size());
  float farthest = 0;
  for (uint64_t i = 0; i < center.size(); ++i) farthest = std::max(farthest, std::abs(center[i] - reference[i]));
  EXPECT_LT(farthest, 1e-4f);
}

// A rank may come minutes late to the start of its group. Reading the data, building the model and the barrier after
// them have the start's deadline. Only then does the collective timeout apply.
TEST_F(RankTaskTest, StartsWithMorePatienceThanItTrains) {
  v1::GroupStart start = Start(2);
  start.set_collective_timeout_seconds(21);
  EXPECT_EQ(StartTimeout(start), absl::Minutes(5));
  std::vector<std::unique_ptr<Group>> groups = MakeInProcessGroups(2);
  std::vector<DeadlineGroup> watched;
  watched.reserve(groups.size());
  for (const std::unique_ptr<Group>& group : groups) watched.emplace_back(*group, StartTimeout(start));
  std::vector<std::thread> threads;
  threads.reserve(watched.size());
  for (DeadlineGroup& group : watched) {
    threads.emplace_back([&] {
      Reporter reporter({});
      EXPECT_EQ(RunRankTask({start, &group, &reporter, dial_, 1}).status(), absl::OkStatus());
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const DeadlineGroup& group : watched) {
    ASSERT_GT(group.calls.size(), 4u);
    EXPECT_THAT(std::vector<std::string>(group.calls.begin(), group.calls.begin() + 3),
                ElementsAre("broadcast 5m", "allocation 5m", "barrier 5m"));
    for (size_t i = 3; i < group.calls.size(); ++i) EXPECT_THAT(group.calls[i], HasSubstr(" 21s"));
    EXPECT_THAT(group.calls, testing::Contains("all-reduce 21s"));
  }
  start.set_collective_timeout_seconds(3600);
  EXPECT_EQ(StartTimeout(start), absl::Hours(1));
}

// A group trains by the elastic rule with a real server and a network with batch-norm buffers. Then another task
// evaluates the center.
TEST_F(RankTaskTest, TrainsThenEvaluatesTheCenter) {
  v1::GroupStart start = Start(2);
  start.mutable_job()->mutable_model()->set_name("resnet20");
  absl::StatusOr<uint64_t> steps = Run(start);
  ASSERT_TRUE(steps.ok()) << steps.status();
  EXPECT_EQ(*steps, 12u);

  start.set_task(v1::GroupStart::EVALUATE);
  start.set_group(1);
  events_.clear();
  steps = Run(start);
  ASSERT_TRUE(steps.ok()) << steps.status();
  const v1::RankEvent* evaluated = nullptr;
  for (const v1::RankEvent& event : events_) {
    if (event.has_evaluated()) evaluated = &event;
  }
  ASSERT_NE(evaluated, nullptr);
  EXPECT_EQ(evaluated->evaluated().samples(), kImages);
  EXPECT_EQ(evaluated->evaluated().step(), 12u);
}

// A group attaches with the job's key, by which servers tell this job from another one that had the same id.
TEST_F(RankTaskTest, AttachesWithTheJobsKey) {
  InMemoryServer server("first:1");
  dial_ = [&server](const std::string&) { return server.Dial(); };
  v1::GroupStart start = Start(1);
  start.mutable_job()->mutable_train()->set_epochs(1);
  start.set_job_key("5d41402abc4b");
  absl::StatusOr<uint64_t> steps = Run(start);
  ASSERT_TRUE(steps.ok()) << steps.status();
  EXPECT_EQ(server.job().job_key(), "5d41402abc4b");
}

// The servers keep what a user of the model must know: the network, and exactly the numbers by which training
// normalizes.
TEST_F(RankTaskTest, DescribesItsModel) {
  InMemoryServer server("first:1");
  dial_ = [&server](const std::string&) { return server.Dial(); };
  v1::GroupStart start = Start(1);
  start.mutable_job()->mutable_train()->set_epochs(1);
  start.mutable_job()->mutable_model()->set_name("lenet");
  absl::StatusOr<uint64_t> steps = Run(start);
  ASSERT_TRUE(steps.ok()) << steps.status();
  const v1::ModelDescription model = server.layout().model();
  EXPECT_EQ(model.architecture(), "lenet");
  EXPECT_EQ(model.architecture_version(), 1u);
  EXPECT_THAT(model.input_shape(), ElementsAre(1, 28, 28));
  EXPECT_EQ(model.input_type(), "uint8");
  EXPECT_EQ(model.classes(), 10u);
  const IdxDataset data = *IdxDataset::Load({start.job().data().train()});
  EXPECT_EQ(model.mean(), data.normalization().mean);
  EXPECT_EQ(model.deviation(), data.normalization().deviation);
  // The description's normalization, applied to raw pixels, gives the inputs of training.
  std::vector<float> inputs(data.image_values());
  data.WriteImages({0}, data.normalization(), absl::MakeSpan(inputs));
  for (size_t i = 0; i < inputs.size(); ++i) {
    EXPECT_NEAR((data.image(0)[i] / model.input_scale() - model.mean()) / model.deviation(), inputs[i], 1e-6);
  }
}

// If the data cannot be used, the task fails with a code after which the coordinator does not try again. The message
// names the file or the model.
TEST_F(RankTaskTest, BadData) {
  v1::GroupStart start = Start(1);
  start.mutable_job()->mutable_data()->set_test(folder_ + "/nothing");
  absl::Status missing = Run(start).status();
  EXPECT_EQ(missing.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(missing.message()), HasSubstr(folder_ + "/nothing"));

  WriteDataset(folder_ + "/small", 20);
  start.mutable_job()->mutable_data()->set_test(folder_ + "/small");
  absl::Status small = Run(start).status();
  EXPECT_EQ(small.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(small.message()), HasSubstr("has images of 20 x 20 pixels; model mlp wants 784 values"));

  start = Start(1);
  start.mutable_job()->mutable_train()->set_batch_size(1000);
  EXPECT_EQ(Run(start).status().code(), absl::StatusCode::kInvalidArgument);
}

// A job with a command has no built-in model to train.
TEST_F(RankTaskTest, RefusesACommand) {
  v1::GroupStart start = Start(2);
  start.mutable_job()->clear_model();
  start.mutable_job()->clear_data();
  start.mutable_job()->mutable_train()->clear_batch_size();
  start.mutable_job()->mutable_train()->clear_evaluate_every();
  start.mutable_job()->mutable_command()->add_arguments("train");
  start.mutable_job()->mutable_command()->set_directory("/tmp");
  const absl::Status status = Run(start).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("hooke-rank trains built-in models only"));
}

}  // namespace
}  // namespace hooke
