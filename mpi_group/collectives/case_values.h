#ifndef HOOKE_MPI_GROUP_COLLECTIVES_CASE_VALUES_H_
#define HOOKE_MPI_GROUP_COLLECTIVES_CASE_VALUES_H_

// Inputs and expected results for tests of collectives, in every type, and lists of memory to hold them.

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "mpi_group/call.h"
#include "mpi_group/data_type.h"
#include "mpi_group/tensor_list.h"

namespace hooke {

// The kind of numbers in an input. Sums of whole numbers are exact in any order; only in 16 bits do they need rounding.
// Sums of fractions depend on the order of addition. Integer types take whole numbers for kFractions too; some of their
// sums wrap around.
//
// kOneLarge checks that sums of 16-bit values are rounded only once. At each place one of every 8 ranks has a number so
// large that adding 1 to it and rounding changes nothing; all others have 1. A sum that is rounded only once counts all
// the ones; a sum rounded at each addition loses some.
enum class Numbers { kWhole, kFractions, kOneLarge };

// An endless, periodic sequence of values of one type. The period is a prime number.
struct Pattern {
  DataType type = DataType::kFloat32;
  std::vector<char> bytes;
  bool exact = true;  // If false, comparisons allow for rounding errors that depend on the order of addition.

  double At(uint64_t index) const;
};

// The values that a rank contributes. Made once per process.
const Pattern& InputOf(DataType type, Numbers numbers, int rank);
// The expected reduction of InputOf() ranks 0 to `ranks` - 1. Made once per process.
const Pattern& ReductionOf(DataType type, Numbers numbers, ReduceOp op, int ranks);

// A list whose memory is in the given room, all of which it overwrites. There are guard bytes before, between and after
// the list's pieces.
class CaseList {
 public:
  static uint64_t RoomBytes(uint64_t values) { return (values + 6) * sizeof(double); }

  // `room` has RoomBytes(values) bytes and is aligned for any type.
  CaseList(absl::Span<char> room, DataType type, uint64_t values, bool pieces);

  const TensorList& list() const { return list_; }
  void Fill(const Pattern& pattern);
  // Expects the values in `range` to be those of the pattern at the same places.
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
