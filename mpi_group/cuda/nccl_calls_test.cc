// Tests how NCCL is found while the program runs. Needs no device.

#include "mpi_group/cuda/nccl_calls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hooke {
namespace {

using testing::HasSubstr;

// The error for a missing library says which one it is, where it was looked for, and what to do.
TEST(NcclCalls, AMissingLibraryIsExplained) {
  const absl::Status by_name = LoadNccl("libnccl-of-nobody.so.2").status();
  EXPECT_EQ(by_name.code(), absl::StatusCode::kFailedPrecondition) << by_name;
  for (const char* part : {"libnccl-of-nobody.so.2", "the folders of LD_LIBRARY_PATH", "Install NCCL"}) {
    EXPECT_THAT(std::string(by_name.message()), HasSubstr(part));
  }
  const absl::Status by_path = LoadNccl("/nonexistent/libnccl.so.2").status();
  EXPECT_THAT(std::string(by_path.message()), HasSubstr("looked for at this path"));
}

// A library that is not NCCL, or is too old, is refused with the name of a function that it lacks.
TEST(NcclCalls, ALibraryWithoutTheFunctionsIsRefused) {
  const absl::Status status = LoadNccl("libm.so.6").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("libm.so.6 has no function nccl"));
}

// The machine's NCCL, if it has one, has all functions, and gives its own words for an error without any device.
TEST(NcclCalls, TheMachinesLibraryIsLoaded) {
  const absl::StatusOr<NcclCalls> nccl = LoadNccl();
  if (!nccl.ok()) GTEST_SKIP() << nccl.status();
  const absl::Status status = NcclStatus(*nccl, ncclInvalidArgument, "a call");
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(status.message()), HasSubstr("a call: invalid argument"));
  EXPECT_EQ(NcclStatus(*nccl, ncclInProgress, "a call"), absl::OkStatus());
}

}  // namespace
}  // namespace hooke
