#ifndef HOOKE_MPI_GROUP_COLLECTIVES_PAIR_EXCHANGE_H_
#define HOOKE_MPI_GROUP_COLLECTIVES_PAIR_EXCHANGE_H_

// An exchange of lists between this rank and one peer, both ways at once. Lists travel in chunks, with a window of them
// under way in each direction. Recursive doubling and halving-doubling are sequences of such exchanges.

#include "absl/status/status.h"
#include "mpi_group/call.h"
#include "mpi_group/reduce/reduce.h"
#include "mpi_group/tensor_list.h"
#include "mpi_group/transport/transport.h"

namespace hooke {

// The peer's `outgoing` is as long as this rank's `incoming`, and the other way round. Either list may be empty.
// `outgoing` and `incoming` may be the same list.
struct PairExchange {
  int peer = -1;
  TensorList outgoing;
  TensorList incoming;
};

// Replaces `incoming` by the peer's values.
absl::Status ExchangeAndStore(Transport& transport, const PairExchange& pair, const Call& call);

// Reduces the peer's values into `incoming`. In the reduction the lower rank's values come first.
absl::Status ExchangeAndReduce(Transport& transport, const PairExchange& pair, const Reduction& reduction,
                               const Call& call);

// Reduces n ranks to a power of two for an algorithm that needs it. In each of the pairs (0, 1), (2, 3), ... the first
// rank hands its values to the second and drops out. There are as many pairs as n exceeds the power of two. Van de
// Geijn's and Rabenseifner's all-reduces do it in this way.
class Folding {
 public:
  Folding(int rank, int ranks);

  int remaining() const { return remaining_; }  // Number of remaining ranks: the largest power of two up to n.
  // This rank's number among the remaining ones; -1 if it has dropped out.
  int index() const { return index_; }
  // The rank in the transport of the remaining rank with this index.
  int RankOf(int index) const { return index < extra_ ? 2 * index + 1 : index + extra_; }

  // Fold() comes before the algorithm and reduces each pair's values on its second rank. Unfold() comes after it and
  // sends the result back to the first rank.
  absl::Status Fold(Transport& transport, const TensorList& values, const Reduction& reduction, const Call& call) const;
  absl::Status Unfold(Transport& transport, const TensorList& values, const Call& call) const;

 private:
  int rank_;
  int remaining_ = 1;
  int extra_;
  int index_;
};

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_COLLECTIVES_PAIR_EXCHANGE_H_
