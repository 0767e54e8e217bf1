#ifndef HOOKE_MPI_GROUP_LINKS_MEASURE_LINKS_H_
#define HOOKE_MPI_GROUP_LINKS_MEASURE_LINKS_H_

// Measures the round trip and the bandwidth between the nodes of a group, by messages over the group's own transport.

#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "mpi_group/group.h"
#include "mpi_group/transport/steady_clock.h"
#include "mpi_group/transport/transport.h"

namespace hooke {

// The time that all rounds share. Each round measures for an equal part of it, and completes a burst under way.
constexpr absl::Duration kMeasureLinksFor = absl::Milliseconds(80);
// A rank measures with at most so many others. There may be thousands of nodes.
constexpr int kMeasuredPeersMax = 15;

// Returns the rank with which `rank` measures in this round; -1 if it pauses.
//
// With n ranks (rounded up to an even number) each rank meets each other one once in n-1 rounds. In each round all
// pairs are disjoint. `round` is 0 to n-2. Pure.
int PartnerInRound(int rank, int ranks, int round);

// Collective over `nodes`, which has one rank of each node. Of each pair the lower rank measures. It returns the
// figures of the pairs in which this rank was the lower one. LinkFigures::peer is a rank of `nodes`.
//
// First it sends up to 20 small messages to and fro and takes the shortest round trip. Then it sends bursts, each four
// times as long as the one before, from 16 KiB to 4 MiB. The receiver answers each. A longer burst is not sent if it
// would probably last longer than the time that is left. The last size is sent up to three times. The fastest burst of
// that size gives the bandwidth: its bytes by its time, less the round trip. All rounds together share
// kMeasureLinksFor, but each has at least four round trips, however long they are. On a link with a long round trip TCP
// still speeds up then, and the bandwidth is a lower bound.
//
// `memory` is working memory of any size. After an error it must stay until the transport is destroyed. `now` is the
// clock by which the figures are taken. Errors are those of the transport.
absl::StatusOr<std::vector<LinkFigures>> MeasureLinks(Transport& nodes, std::vector<char>& memory, absl::Time deadline,
                                                      absl::FunctionRef<absl::Time()> now = SteadyNow);

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_LINKS_MEASURE_LINKS_H_
