// The main of tests that run under mpirun. All ranks run all test cases together. Rank 0 prints and writes the result
// file, in which a case fails if it fails on any rank.

#include <gtest/gtest.h>
#include <mpi.h>

#include <iostream>

#include "mpi_group/mpi/mpi_session.h"
#include "mpi_group/mpi/mpi_test_session.h"

namespace hooke {
namespace {

MpiSession* session = nullptr;

class AllRanksPass : public testing::EmptyTestEventListener {
  void OnTestEnd(const testing::TestInfo& test) override {
    const int own_failed = test.result()->Failed() ? 1 : 0;
    int failed = 0;
    MPI_Allreduce(&own_failed, &failed, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (own_failed == 0 && failed > 0) ADD_FAILURE() << "failed on " << failed << " other ranks";
  }
};

}  // namespace

MpiSession& TestSession() { return *session; }

}  // namespace hooke

int main(int argc, char** argv) {
  hooke::MpiSession::Options options;
#ifdef HOOKE_CONCURRENT_MPI_TEST
  options.concurrent = true;
#endif
  absl::StatusOr<std::unique_ptr<hooke::MpiSession>> session = hooke::MpiSession::Start(options);
  if (!session.ok()) {
    std::cerr << session.status() << "\n";
    return 1;
  }
  hooke::session = session->get();
  if ((*session)->rank() != 0) testing::GTEST_FLAG(output) = "";
  testing::InitGoogleTest(&argc, argv);
  testing::TestEventListeners& listeners = testing::UnitTest::GetInstance()->listeners();
  if ((*session)->rank() != 0) delete listeners.Release(listeners.default_result_printer());
  listeners.Append(new hooke::AllRanksPass);
  const int code = RUN_ALL_TESTS();
  const absl::Status finished = (*session)->Finish();
  if (finished.ok()) return code;
  std::cerr << finished << "\n";
  hooke::MpiSession::ExitWithoutFinalize(code != 0 ? code : 1);
}
