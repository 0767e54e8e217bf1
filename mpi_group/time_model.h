#ifndef HOOKE_MPI_GROUP_TIME_MODEL_H_
#define HOOKE_MPI_GROUP_TIME_MODEL_H_

// A model of the time that all-reduces take between nodes, by which ChooseAlgorithm decides for many ranks. Pure
// functions. docs/scale.md has the formulas in plain words, and how far they are from simulations and measurements.
//
// The network is that of LogGP (Alexandrov, Ionescu, Schauser and Scheiman, 1995). A message of b bytes occupies the
// sender's link for t = overhead + b * per_byte, and arrives `latency` after it has left. The link of the receiver is
// occupied for t, too. Both directions of a link work at the same time, and the network between the links is never
// short. The common alpha-beta model is the same with alpha = overhead + latency and beta = per_byte, except that here
// several messages can be under way.
//
// n is the number of ranks, V the bytes of a rank's values, t(b) as above and L the latency. M messages of b bytes that
// follow one another, with at most w of them on the way before the first must have come, take
//
//   stream(M, b) = (M-1) t(b) + t(b) + L, or (M-1)/w (t(b) + L) + t(b) + L if that is more.
//
// Values are cut into messages of at most `chunk_bytes`, so an exchange of b bytes takes x(b) = stream(c, b/c) with c =
// ceil(b / chunk_bytes).
//
//   recursive doubling  log2 n * x(V)                             Thakur, Rabenseifner and Gropp, 2005
//   halving-doubling    2 (x(V/2) + x(V/4) + ... + x(V/n))        Rabenseifner, 2004
//     If n is no power of two, both work with p, the largest power of two below n. One step of x(V) comes before that
//     work, and one after it. In recursive doubling, ranks that started late catch up with partners that did not. Let
//     k = log2 p, j = log2(n-p) rounded up, and c = ceil(V / chunk_bytes). Then it takes the longer of (k+1) x(V) and
//     (j+2) x(V) + (k-j) c t(V/c).
//   ring                stream(2 (n-1) c, V/(n c))                Patarasuk and Yuan, 2009; c chunks per part
//   pairwise            2 stream((n-1) c, V/(n c))                Thakur, Rabenseifner and Gropp, 2005; w is no limit
//   reference           (n-1) t(V) + L, then ceil(log2 n) c t(V/c) + floor(log2 n) L for a binomial broadcast
//
// Arithmetic is in none of them: sums are made while other messages travel.

#include <cstdint>

#include "mpi_group/operation.h"

namespace hooke {

// The cost of messages, in seconds.
struct LinkCost {
  double latency = 0;   // The time from when a message has left its sender until it has arrived.
  double overhead = 0;  // How long each message occupies a link, besides its bytes.
  double per_byte = 0;  // 1 / the link's bytes per second.
};

// The cost that each of `senders` ranks sees which share a link and send equally many bytes at the same time. In a
// two-level all-reduce these are the drivers of a node.
LinkCost Shared(const LinkCost& link, int senders);

struct ModelCall {
  int ranks = 1;       // The number of ranks. Each has a link of its own.
  uint64_t bytes = 0;  // Bytes of each rank's values, in the type in which they travel.
  // Call::chunk_bytes and Call::window.
  uint64_t chunk_bytes = uint64_t{256} << 10;
  int window = 4;
};

// Returns the seconds from the start of an all-reduce on all ranks until the last rank has the result. The algorithm
// must send messages between all ranks and implement the operation; for others the result is infinite.
double AllReduceSeconds(Algorithm algorithm, const ModelCall& call, const LinkCost& link);

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_TIME_MODEL_H_
