#ifndef HOOKE_MPI_GROUP_COLLECTIVES_CASE_VALUES_H_
#define HOOKE_MPI_GROUP_COLLECTIVES_CASE_VALUES_H_

// What ranks put into the collectives under test and what must come out, for every type; and lists to hold it.

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "mpi_group/call.h"
#include "mpi_group/data_type.h"
#include "mpi_group/tensor_list.h"

namespace hooke {

// Sums of whole numbers are exact in any order and, in 16 bits, need rounding; sums of fractions depend on the order.
// For integers both are whole, and some sums wrap around.
//
// kOneLarge is for sums of 16 bits only: at each place one of 8 ranks in turn has a number so large, and all others
// have so little, 1, that adding it changes nothing where the result is rounded; the sum, rounded once, has all of
// them.
enum class Numbers { kWhole, kFractions, kOneLarge };

// Values of a type that repeat for ever: value i is number i modulo a prime of them.
struct Pattern {
  DataType type = DataType::kFloat32;
  std::vector<char> bytes;
  bool exact = true;  // In comparisons; else to within what rounding in another order makes of it.

  double At(uint64_t index) const;
};

// Both are made once per process.
const Pattern& InputOf(DataType type, Numbers numbers, int rank);
// Of InputOf ranks 0 to n-1.
const Pattern& ReductionOf(DataType type, Numbers numbers, ReduceOp op, int ranks);

// A list in `room`, which it overwrites, with memory before, between and after its pieces that nothing may touch.
class CaseList {
 public:
  static uint64_t RoomBytes(uint64_t values) { return (values + 6) * sizeof(double); }

  // room: as many bytes as RoomBytes(values), aligned for any type.
  CaseList(absl::Span<char> room, DataType type, uint64_t values, bool pieces);

  const TensorList& list() const { return list_; }
  void Fill(const Pattern& pattern);
  // The values in `range` are those of the pattern at their places.
  void Expect(const Pattern& pattern, ValueRange range) const;
  void Expect(const Pattern& pattern) const { Expect(pattern, {0, list_.size()}); }
  void ExpectUntouchedAround() const;
  int64_t Hash() const;

 private:
  const absl::Span<char> room_;
  std::vector<absl::Span<char>> around_;
  TensorList list_;
};

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_COLLECTIVES_CASE_VALUES_H_
