// Measures training steps of the built-in models on one core, in samples per second.

#include <vector>

#include "benchmark/benchmark.h"
#include "worker/model/model.h"

namespace hooke {
namespace {

void BM_TrainBatch(benchmark::State& state, const char* name) {
  const uint64_t batch = static_cast<uint64_t>(state.range(0));
  std::unique_ptr<Model> model = *MakeModel({.name = name});
  Arena arena =
      *Arena::Make({.parameters = model->layout().parameter_values(), .buffers = model->layout().buffer_values()});
  if (!model->Bind(arena).ok()) return state.SkipWithError("bind");
  model->Initialize(1);
  std::vector<float> pixels(batch * model->input_values(), 0.5f);
  std::vector<int64_t> labels(batch, 1);
  for (uint64_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<float>(i * 7919 % 255) / 255;
  for (auto _ : state) benchmark::DoNotOptimize(model->TrainBatch({pixels, labels}));
  state.SetItemsProcessed(state.iterations() * static_cast<int64_t>(batch));
}
BENCHMARK_CAPTURE(BM_TrainBatch, mlp, "mlp")->Arg(64)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(BM_TrainBatch, lenet, "lenet")->Arg(64)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(BM_TrainBatch, resnet20, "resnet20")->Arg(64)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace hooke

BENCHMARK_MAIN();
