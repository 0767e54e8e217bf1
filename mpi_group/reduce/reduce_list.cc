#include "mpi_group/reduce/reduce_list.h"

#include "absl/container/inlined_vector.h"

namespace hooke {

void ReduceIntoList(const Reduction& reduction, absl::Span<const absl::Span<const char>> others, size_t place,
                    const TensorList& list) {
  absl::InlinedVector<const char*, 16> sources(others.size() + 1);
  size_t begin = 0;
  for (absl::Span<char> piece : list.pieces()) {
    for (size_t i = 0; i < others.size(); ++i) sources[i < place ? i : i + 1] = others[i].data() + begin;
    sources[place] = piece.data();
    char* const destination = piece.data();
    Reduce(reduction, sources, absl::MakeConstSpan(&destination, 1), piece.size() / SizeOf(list.type()));
    begin += piece.size();
  }
}

void NarrowIntoList(absl::Span<const float> from, const TensorList& list) {
  for (absl::Span<char> piece : list.pieces()) {
    const uint64_t count = piece.size() / SizeOf(list.type());
    Narrow(list.type(), from.first(count), piece);
    from.remove_prefix(count);
  }
}

}  // namespace hooke
