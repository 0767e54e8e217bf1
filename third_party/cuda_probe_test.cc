// Tests that device code compiles and links and, if there is a GPU, computes correctly.

#include "third_party/cuda_probe.h"

#include "gtest/gtest.h"

namespace hooke {
namespace {

TEST(CudaProbe, KernelSums) {
  std::string error;
  if (CudaDevices(&error) == 0)
    GTEST_SKIP() << "no GPU here (" << error << "): run with --config=cuda on a machine with one";
  const std::vector<float> a = {1, 2, 3};
  const std::vector<float> b = {10, 20, 30};
  EXPECT_EQ(SumOnDevice(a, b, &error), (std::vector<float>{11, 22, 33})) << error;
}

}  // namespace
}  // namespace hooke
