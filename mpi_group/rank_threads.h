#ifndef HOOKE_MPI_GROUP_RANK_THREADS_H_
#define HOOKE_MPI_GROUP_RANK_THREADS_H_

#include <thread>
#include <vector>

namespace hooke {

// Runs body(rank) for every rank of n, each in a thread of its own; returns when all are done. For tests.
template <typename Body>
void RunRanks(int n, const Body& body) {
  std::vector<std::thread> threads;
  threads.reserve(n);
  for (int rank = 0; rank < n; ++rank) threads.emplace_back([&body, rank] { body(rank); });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_RANK_THREADS_H_
