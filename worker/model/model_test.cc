#include "worker/model/model.h"

#include <cmath>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/model/networks.h"

namespace hooke {
namespace {

using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using ::testing::Not;

// Pixels and labels from fixed formulas.
struct Samples {
  std::vector<float> pixels;
  std::vector<int64_t> labels;
  Batch batch() const { return {pixels, labels}; }
};

Samples MakeSamples(int count) {
  Samples samples;
  uint32_t state = 12345;
  for (int i = 0; i < count * 784; ++i) {
    state = state * 1664525u + 1013904223u;
    samples.pixels.push_back(static_cast<float>(state >> 8) / (1 << 24) - 0.5f);
  }
  for (int i = 0; i < count; ++i) samples.labels.push_back(i * 7 % 10);
  return samples;
}

struct BoundModel {
  Arena arena;
  std::unique_ptr<Model> model;
};

BoundModel MakeBound(const std::string& name, uint64_t seed) {
  absl::StatusOr<std::unique_ptr<Model>> model = MakeModel({.name = name});
  EXPECT_TRUE(model.ok()) << model.status();
  const ModelLayout& layout = (*model)->layout();
  absl::StatusOr<Arena> arena =
      Arena::Make({.parameters = layout.parameter_values(), .buffers = layout.buffer_values()});
  EXPECT_TRUE((*model)->Bind(*arena).ok());
  (*model)->Initialize(seed);
  return {*std::move(arena), *std::move(model)};
}

// Each network has the parameter count that follows from its description, computed by hand.
TEST(ModelTest, ParameterCounts) {
  struct Case {
    const char* name;
    uint64_t parameters;
    uint64_t buffers;
  };
  for (const Case& c : {Case{"small-mlp", 101770, 0}, Case{"mlp", 669706, 0}, Case{"lenet", 1663370, 0},
                        Case{"resnet20", 269434, 1376}}) {
    absl::StatusOr<std::unique_ptr<Model>> model = MakeModel({.name = c.name});
    ASSERT_TRUE(model.ok());
    EXPECT_EQ((*model)->layout().parameter_values(), c.parameters) << c.name;
    EXPECT_EQ((*model)->layout().buffer_values(), c.buffers) << c.name;
  }
}

// The arena's gradients equal autograd's gradients of an unbound network with the same values, also in the second step.
TEST(ModelTest, GradientsInTheArenaAreAutograds) {
  torch::set_num_threads(1);
  Samples samples = MakeSamples(6);
  BoundModel bound = MakeBound("lenet", 3);
  LeNet plain;
  {
    torch::NoGradGuard no_grad;
    uint64_t offset = 0;
    for (torch::Tensor& parameter : plain.parameters()) {
      parameter.copy_(torch::from_blob(bound.arena.vector().data() + offset, parameter.sizes()));
      offset += static_cast<uint64_t>(parameter.numel());
    }
  }
  torch::Tensor images = torch::from_blob(samples.pixels.data(), {6, 1, 28, 28});
  torch::Tensor loss =
      torch::cross_entropy_loss(plain.forward(images), torch::from_blob(samples.labels.data(), {6}, torch::kInt64));
  loss.backward();

  for (int repeat = 0; repeat < 2; ++repeat) {
    absl::StatusOr<float> bound_loss = bound.model->TrainBatch(samples.batch());
    ASSERT_TRUE(bound_loss.ok()) << bound_loss.status();
    EXPECT_NEAR(*bound_loss, loss.item<float>(), 1e-5);
    uint64_t offset = 0;
    for (const torch::Tensor& parameter : plain.parameters()) {
      torch::Tensor view = torch::from_blob(bound.arena.gradients().data() + offset, parameter.sizes());
      EXPECT_TRUE(torch::allclose(view, parameter.grad(), 1e-4, 1e-6));
      EXPECT_GT(view.abs().max().item<float>(), 0);
      offset += static_cast<uint64_t>(parameter.numel());
    }
  }
}

// The model computes with the arena's values: if all parameters are zero, all scores are equal and the loss is log(10).
TEST(ModelTest, TheArenaIsTheModel) {
  Samples samples = MakeSamples(4);
  BoundModel bound = MakeBound("mlp", 1);
  std::fill(bound.arena.vector().begin(), bound.arena.vector().end(), 0.0f);
  absl::StatusOr<float> loss = bound.model->TrainBatch(samples.batch());
  ASSERT_TRUE(loss.ok());
  EXPECT_NEAR(*loss, std::log(10.0), 1e-6);
}

// The same seed gives bitwise the same initial values; another seed gives others.
TEST(ModelTest, SeedDecidesTheInitialValues) {
  for (const std::string& name : ModelNames()) {
    BoundModel a = MakeBound(name, 7);
    BoundModel b = MakeBound(name, 7);
    BoundModel c = MakeBound(name, 8);
    EXPECT_THAT(a.arena.vector(), ElementsAreArray(b.arena.vector())) << name;
    EXPECT_THAT(a.arena.vector(), Not(ElementsAreArray(c.arena.vector()))) << name;
  }
}

// Batch-norm statistics lie in the arena's buffers. Training changes them, evaluation does not.
TEST(ModelTest, BatchNormStatisticsAreInTheArena) {
  Samples samples = MakeSamples(8);
  BoundModel bound = MakeBound("resnet20", 1);
  std::vector<float> fresh(bound.arena.buffers().begin(), bound.arena.buffers().end());
  ASSERT_TRUE(bound.model->Evaluate(samples.batch()).ok());
  EXPECT_THAT(bound.arena.buffers(), ElementsAreArray(fresh));
  ASSERT_TRUE(bound.model->TrainBatch(samples.batch()).ok());
  EXPECT_THAT(bound.arena.buffers(), Not(ElementsAreArray(fresh)));
}

// Sixty steps on one small batch make the loss fall. Evaluation counts the samples and finds the same loss, except with
// batch norm.
TEST(ModelTest, LearnsOneBatch) {
  Samples samples = MakeSamples(10);
  for (const std::string& name : ModelNames()) {
    BoundModel bound = MakeBound(name, 1);
    for (int step = 0; step < 60; ++step) {
      ASSERT_TRUE(bound.model->TrainBatch(samples.batch()).ok());
      for (uint64_t i = 0; i < bound.arena.gradients().size(); ++i) {
        bound.arena.parameters()[i] -= 0.05f * bound.arena.gradients()[i];
      }
    }
    absl::StatusOr<float> loss = bound.model->TrainBatch(samples.batch());
    absl::StatusOr<Evaluation> evaluation = bound.model->Evaluate(samples.batch());
    ASSERT_TRUE(loss.ok() && evaluation.ok());
    EXPECT_LT(*loss, 2.0) << name;
    EXPECT_EQ(evaluation->samples, 10u);
    if (name != "resnet20") {
      EXPECT_NEAR(evaluation->loss_sum / 10, *loss, 1e-4) << name;
    }
  }
}

// Wrong calls return errors that say what is allowed.
TEST(ModelTest, RefusesWhatDoesNotFit) {
  EXPECT_THAT(std::string(MakeModel({.name = "gpt"}).status().message()), HasSubstr("small-mlp, mlp, lenet, resnet20"));

  Samples samples = MakeSamples(2);
  absl::StatusOr<std::unique_ptr<Model>> unbound = MakeModel({.name = "mlp"});
  EXPECT_EQ((*unbound)->TrainBatch(samples.batch()).status().code(), absl::StatusCode::kFailedPrecondition);
  absl::StatusOr<Arena> small = Arena::Make({.parameters = 10, .buffers = 0});
  EXPECT_EQ((*unbound)->Bind(*small).code(), absl::StatusCode::kInvalidArgument);

  BoundModel bound = MakeBound("mlp", 1);
  samples.labels[1] = 10;
  EXPECT_THAT(std::string(bound.model->TrainBatch(samples.batch()).status().message()), HasSubstr("label 10"));
  samples.labels.pop_back();
  EXPECT_EQ(bound.model->TrainBatch(samples.batch()).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(bound.model->Evaluate({}).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace hooke
