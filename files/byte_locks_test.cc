#include "files/byte_locks.h"

#include <unistd.h>

#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hooke {
namespace {

using ::testing::HasSubstr;

class ByteLocksTest : public ::testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove(file_); }

  std::unique_ptr<ByteLocks> Open() const { return *ByteLocks::Open(file_); }

  const std::string file_ = absl::StrCat(::testing::TempDir(), "/locks", getpid());
};

// A thing that one object has taken is taken for all other objects, until it is given back or the object is destroyed.
TEST_F(ByteLocksTest, TakenForOthers) {
  std::unique_ptr<ByteLocks> a = Open();
  const std::unique_ptr<ByteLocks> b = Open();
  a->Take(7);
  a->Take(ByteLocks::kNumbersMax - 1);
  EXPECT_FALSE(a->IsTaken(7));
  EXPECT_TRUE(b->IsTaken(7));
  EXPECT_TRUE(b->IsTaken(ByteLocks::kNumbersMax - 1));
  EXPECT_FALSE(b->IsTaken(8));
  a->GiveBack(7);
  EXPECT_FALSE(b->IsTaken(7));
  a.reset();
  EXPECT_FALSE(b->IsTaken(ByteLocks::kNumbersMax - 1));
  EXPECT_EQ(std::filesystem::file_size(file_), 0u);
}

TEST_F(ByteLocksTest, OneChoosesAtATime) {
  const std::unique_ptr<ByteLocks> a = Open();
  const std::unique_ptr<ByteLocks> b = Open();
  ASSERT_TRUE(a->BeginChoice().ok());
  EXPECT_THAT(std::string(b->BeginChoice().message()), HasSubstr("another worker has not released "));
  a->EndChoice();
  EXPECT_TRUE(b->BeginChoice().ok());
}

TEST_F(ByteLocksTest, SaysWhatCannotBeOpened) {
  EXPECT_EQ(ByteLocks::Open("/no/such/folder/locks").status().message(),
            "/no/such/folder/locks cannot be opened: No such file or directory");
}

}  // namespace
}  // namespace hooke
