#include "mpi_group/sockets/open_files.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <iostream>

namespace hooke {
namespace {

// Sets the limits, asks for room, prints the answer and the soft limit, and then opens as many files as were asked for.
void MakeRoom(const rlimit& limits, uint64_t more) {
  setrlimit(RLIMIT_NOFILE, &limits);
  const absl::Status status = MakeRoomForFiles(more);
  rlimit now = {};
  getrlimit(RLIMIT_NOFILE, &now);
  std::cerr << status << ", soft limit " << now.rlim_cur << "\n";
  for (uint64_t i = 0; status.ok() && i < more; ++i) {
    if (open("/dev/null", O_RDONLY | O_CLOEXEC) < 0) _exit(1);
  }
  _exit(0);
}

// Room is there, or made by raising the soft limit to the hard one, or refused.
TEST(OpenFilesTest, MakeRoomForFiles) {
  GTEST_FLAG_SET(death_test_style, "fast");
  EXPECT_EXIT(MakeRoom({100, 200}, 50), testing::ExitedWithCode(0), "OK, soft limit 100");
  EXPECT_EXIT(MakeRoom({100, 200}, 150), testing::ExitedWithCode(0), "OK, soft limit 200");
  EXPECT_EXIT(
      MakeRoom({100, 200}, 200), testing::ExitedWithCode(0),
      "RESOURCE_EXHAUSTED: needs 2[0-9]+ open files, and the limit is 200; raise it with `ulimit -n 2[0-9]+`.*, "
      "soft limit 100");
}

}  // namespace
}  // namespace hooke
