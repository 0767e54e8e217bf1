#include "worker/gpus/choose_gpus.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hooke {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Lists = std::vector<std::vector<size_t>>;

TEST(ChooseGpusTest, ReadsListsAsCudaDoes) {
  EXPECT_THAT(ParseGpuList("0, 2"), ElementsAre("0", "2"));
  EXPECT_THAT(ParseGpuList("GPU-5f1e,MIG-27b1"), ElementsAre("GPU-5f1e", "MIG-27b1"));
  EXPECT_THAT(ParseGpuList("1,-1,0"), ElementsAre("1"));
  for (const char* none : {"", "-1", "NoDevFiles", ",0"}) EXPECT_THAT(ParseGpuList(none), IsEmpty()) << none;
}

TEST(ChooseGpusTest, SaysWhatIsWrongWithAList) {
  EXPECT_EQ(GpuListFault("0,1"), "");
  EXPECT_EQ(GpuListFault("GPU-5f1e"), "");
  EXPECT_THAT(GpuListFault("0,x"), HasSubstr("names no GPU: \"x\"; give auto, none, or a list"));
  EXPECT_THAT(GpuListFault(""), HasSubstr("names no GPU: \"\""));
  EXPECT_EQ(GpuListFault("1,0,1"), "names GPU 1 twice");
}

TEST(ChooseGpusTest, ReadsNvidiaSmi) {
  EXPECT_THAT(ParseNvidiaSmi("GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-aa)\nGPU 1: NVIDIA (odd) name (UUID: GPU-bb)\n"),
              ElementsAre("GPU-aa", "GPU-bb"));
  // The parts of a GPU stand in its place. It cannot be used as a whole.
  EXPECT_THAT(
      ParseNvidiaSmi("GPU 0: A100 (UUID: GPU-aa)\nGPU 1: A100 (UUID: GPU-bb)\n"
                     "  MIG 3g.20gb     Device  0: (UUID: MIG-b0)\n  MIG 3g.20gb     Device  1: (UUID: MIG-b1)\n"
                     "GPU 2: A100 (UUID: GPU-cc)\n"),
      ElementsAre("GPU-aa", "MIG-b0", "MIG-b1", "GPU-cc"));
  EXPECT_THAT(ParseNvidiaSmi("No devices found.\n"), IsEmpty());
  EXPECT_THAT(ParseNvidiaSmi("NVIDIA-SMI has failed because it couldn't communicate (UUID: \n"), IsEmpty());
}

TEST(ChooseGpusTest, OneEach) {
  EXPECT_EQ(ChooseGpus({0, 0, 0, 0}, 1, 2), (Lists{{0}, {1}}));
  EXPECT_EQ(ChooseGpus({1, 1, 0, 0}, 1, 2), (Lists{{2}, {3}}));
  EXPECT_EQ(ChooseGpus({0, 1, 0, 1}, 1, 1), (Lists{{0}}));
}

TEST(ChooseGpusTest, SeveralEachIfThereAreMoreThanSlots) {
  EXPECT_EQ(ChooseGpus({0, 0, 0, 0, 0}, 2, 2), (Lists{{0, 1}, {2, 3}}));
  EXPECT_EQ(ChooseGpus({0, 0, 0, 0}, 4, 1), (Lists{{0, 1, 2, 3}}));
}

TEST(ChooseGpusTest, RanksShareIfThereAreFewerThanSlots) {
  EXPECT_EQ(ChooseGpus({0, 0}, 1, 4), (Lists{{0}, {1}, {0}, {1}}));
  EXPECT_EQ(ChooseGpus({2, 1}, 1, 1), (Lists{{1}}));
}

// A job may ask for fewer than a slot's share. It does not get more than there are.
TEST(ChooseGpusTest, AsManyAsTheJobAsksFor) {
  EXPECT_EQ(GpusOfASlot(8, 2), 4u);
  EXPECT_EQ(ChooseGpus({0, 0, 0, 0, 0, 0, 0, 0}, 3, 2), (Lists{{0, 1, 2}, {3, 4, 5}}));
  EXPECT_EQ(ChooseGpus({0, 0}, 3, 1), (Lists{{0, 1}}));
}

TEST(ChooseGpusTest, NoGpu) {
  EXPECT_EQ(ChooseGpus({}, 2, 2), (Lists{{}, {}}));
  EXPECT_EQ(GpusOfASlot(0, 2), 0u);
}

TEST(ChooseGpusTest, SaysWhoGotWhich) {
  EXPECT_EQ(SayGpus({{"0", "1"}, {"2", "3"}}, "w1", 4, false), "GPUs on w1: rank 4 has 0,1; rank 5 has 2,3");
  EXPECT_EQ(SayGpus({{"0"}, {"0"}}, "w1", 0, true), "GPUs on w1, which ranks share: rank 0 has 0; rank 1 has 0");
}

}  // namespace
}  // namespace hooke
