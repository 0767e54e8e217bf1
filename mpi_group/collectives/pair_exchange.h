#ifndef HOOKE_MPI_GROUP_COLLECTIVES_PAIR_EXCHANGE_H_
#define HOOKE_MPI_GROUP_COLLECTIVES_PAIR_EXCHANGE_H_

// Lists that go between this rank and one peer, both ways at once, in chunks, a window of them under way each way. What
// recursive doubling and halving-doubling are made of.

#include "absl/status/status.h"
#include "mpi_group/call.h"
#include "mpi_group/reduce/reduce.h"
#include "mpi_group/tensor_list.h"
#include "mpi_group/transport/transport.h"

namespace hooke {

// The peer's `outgoing` is as long as this rank's `incoming`, and the other way round; either may be empty. The two may
// be the same list.
struct PairExchange {
  int peer = -1;
  TensorList outgoing;
  TensorList incoming;
};

// `incoming` ends as what the peer has sent.
absl::Status ExchangeAndStore(Transport& transport, const PairExchange& pair, const Call& call);

// `incoming` ends as the reduction of what is there and what the peer has sent; the lower rank's values come first.
absl::Status ExchangeAndReduce(Transport& transport, const PairExchange& pair, const Reduction& reduction,
                               const Call& call);

// How n ranks become a power of two: the first ranks, as many as are too many, each hand their values to the next rank,
// in pairs (0, 1), (2, 3), ... After Van de Geijn's and Rabenseifner's all-reduces.
class Folding {
 public:
  Folding(int rank, int ranks);

  int nodes() const { return nodes_; }  // The largest power of two up to n.
  // This rank's number among them; -1 for a rank that has handed its values over.
  int node() const { return node_; }
  int RankOf(int node) const { return node < extra_ ? 2 * node + 1 : node + extra_; }

  // Before: the values of pairs are reduced on the second rank. After: the first rank gets them back.
  absl::Status Fold(Transport& transport, const TensorList& values, const Reduction& reduction, const Call& call) const;
  absl::Status Unfold(Transport& transport, const TensorList& values, const Call& call) const;

 private:
  int rank_;
  int nodes_ = 1;
  int extra_;
  int node_;
};

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_COLLECTIVES_PAIR_EXCHANGE_H_
