#ifndef HOOKE_WORKER_TRAINING_NARROW_TENSORS_H_
#define HOOKE_WORKER_TRAINING_NARROW_TENSORS_H_

// The 16-bit tensors of a program's model, beside the arena. The model computes in 16-bit values and gradients, which
// lie here. The arena's vector holds a float32 master of each value. The group exchanges the masters with the center,
// and so the center, the servers and exports know only float32.
//
//   Gather    before the vector is read: a master follows its value, as far as the program changed that
//   Scatter   after the vector has changed: each value becomes its master, rounded
//
// A master keeps what rounding takes from its value. So pulls of the center that are each too small to change a 16-bit
// value add up in the master.
//
// Gradients of 16 bits are averaged as such: added in float32 and rounded once. Where the ranks of a node share memory,
// gradients lie in it.

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "mpi_group/data_type.h"
#include "worker/model/arena.h"
#include "worker/training/gradient_buckets.h"

namespace hooke {

// The properties of a model's tensor that decide where its memory lies.
struct TypedTensor {
  DataType type = DataType::kFloat32;  // kFloat32, kBFloat16 or kFloat16.
  uint64_t values = 0;
  bool parameter = true;  // False: a buffer, which has no gradient.
};

// Where a tensor lies. The gradient of a buffer is empty.
struct TensorPlace {
  absl::Span<char> values;
  absl::Span<char> gradient;
};

// Returns the arena's sizes for these tensors. `widens`: the group sends gradients, all as float32. Otherwise
// the arena has no place for 16-bit gradients.
Arena::Sizes ArenaSizesOf(absl::Span<const TypedTensor> tensors, bool widens, uint64_t statistics);

class NarrowTensors {
 public:
  // Gives each tensor its place: float32 tensors in the arena, the values of others on the heap, and the gradients of
  // others in memory of `allocate`. The memory of 16-bit tensors is zeroed. 16-bit tensors and their gradients are
  // aligned to kArenaAlignment bytes. `tensors` are in the order of the vector. The arena has the ArenaSizesOf(tensors,
  // widens, ...), and a copy of it is kept. Errors are those of `allocate` and AllocateOnHeap.
  static absl::StatusOr<std::unique_ptr<NarrowTensors>> Make(absl::Span<const TypedTensor> tensors, bool widens,
                                                             const Arena& arena, const ArenaAllocator& allocate);

  const std::vector<TensorPlace>& places() const { return places_; }
  // The gradients of all parameters. Those of 16 bits reach to the next one, so that they travel as one piece. Behind
  // the parameter's own gradient there are zeros.
  const std::vector<TypedGradient>& gradients() const { return gradients_; }

  void Gather();
  void Scatter();
  // Like Gather and Scatter, but for buffers only.
  void GatherBuffers();
  void ScatterBuffers();
  // Copies the 16-bit gradients to the arena's, as float32. Only with `widens`.
  void WidenGradients();

 private:
  struct Tensor {
    DataType type;
    bool parameter;
    absl::Span<char> values;
    absl::Span<float> master;
    absl::Span<char> gradient;
    absl::Span<float> wide_gradient;
  };

  explicit NarrowTensors(const Arena& arena) : arena_(arena) {}
  void Arrange(absl::Span<const TypedTensor> tensors, bool widens);

  const Arena arena_;
  ArenaMemory values_;
  ArenaMemory gradient_memory_;
  std::vector<TensorPlace> places_;
  std::vector<TypedGradient> gradients_;
  std::vector<Tensor> narrow_;  // The 16-bit tensors.
};

// Makes masters follow their values. If a value is its rounded master, the program has not changed it, and the master
// stays. Otherwise the master changes by as much as the value did since it was the rounded master. If the new master
// would not round to the value, it becomes the value. So no value changes, and NaN and infinity are taken over.
void FollowValues(DataType type, absl::Span<const char> values, absl::Span<float> master);

}  // namespace hooke

#endif  // HOOKE_WORKER_TRAINING_NARROW_TENSORS_H_
