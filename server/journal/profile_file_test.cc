#include "server/journal/profile_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include "absl/strings/str_cat.h"

namespace hooke {
namespace {

using testing::HasSubstr;

class ProfileFileTest : public testing::Test {
 protected:
  ProfileFileTest()
      : path_(absl::StrCat(testing::TempDir(), "/", testing::UnitTest::GetInstance()->current_test_info()->name())) {
    std::filesystem::remove_all(path_);
  }
  ~ProfileFileTest() override { std::filesystem::remove_all(path_); }

  std::string Bytes() const {
    std::ifstream file(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void Fill(const std::string& bytes) const { std::ofstream(path_, std::ios::binary) << bytes; }

  const std::string path_;
};

// A file is overwritten with longer, shorter and empty profiles. Each is read as it was written.
TEST_F(ProfileFileTest, IsOverwritten) {
  EXPECT_EQ(ReadProfileFile(path_).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(OverwriteProfileFile(path_, "x").code(), absl::StatusCode::kNotFound);
  ASSERT_TRUE(CreateProfileFile(path_, "first").ok());
  EXPECT_EQ(*ReadProfileFile(path_), "first");
  for (const std::string& profile : {std::string(100000, 'p'), std::string("short"), std::string()}) {
    ASSERT_TRUE(OverwriteProfileFile(path_, profile).ok());
    EXPECT_EQ(*ReadProfileFile(path_), profile);
  }
}

// A file has exactly these bytes, so later versions must be able to read them.
TEST_F(ProfileFileTest, HasItsFormat) {
  ASSERT_TRUE(CreateProfileFile(path_, "123456789").ok());
  const char header[] = {0, 'H', 'P', '1', 9, 0, 0, 0, 0x26, 0x39, '\xf4', '\xcb'};
  static_assert(sizeof header == kProfileFileHeaderBytes);
  EXPECT_EQ(Bytes(), std::string(header, sizeof header) + "123456789");
}

// Earlier versions wrote a profile and nothing else.
TEST_F(ProfileFileTest, ReadsTheFormerFormat) {
  Fill("\x08\x07");
  EXPECT_EQ(*ReadProfileFile(path_), "\x08\x07");
}

// A write that was cut short anywhere leaves no profile.
TEST_F(ProfileFileTest, APartIsNoProfile) {
  ASSERT_TRUE(CreateProfileFile(path_, "new and long").ok());
  const std::string whole = Bytes();
  ASSERT_TRUE(CreateProfileFile(path_, "old").ok());
  const std::string old = Bytes();
  for (const size_t written : {4, 8, 12, 20}) {
    std::string part = whole.substr(0, written);
    if (part.size() < old.size()) part += old.substr(part.size());
    if (part == old) continue;
    Fill(part);
    const absl::Status status = ReadProfileFile(path_).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kNotFound) << written;
    EXPECT_THAT(std::string(status.message()), HasSubstr(path_));
  }
}

// A thread reads while another one overwrites: each time it gets one profile whole.
TEST_F(ProfileFileTest, ReadersSeeWholeProfiles) {
  ASSERT_TRUE(CreateProfileFile(path_, std::string(50000, 'a')).ok());
  std::atomic<bool> enough = false;
  std::thread writer([&] {
    for (int i = 0; !enough; ++i) {
      EXPECT_TRUE(OverwriteProfileFile(path_, std::string(50000 - i % 100, static_cast<char>('a' + i % 26))).ok());
    }
  });
  for (int i = 0; i < 200; ++i) {
    const absl::StatusOr<std::string> profile = ReadProfileFile(path_);
    // The writer of this test never pauses, so a reader may find no moment with a whole profile.
    if (!profile.ok()) continue;
    ASSERT_GT(profile->size(), 49900u);
    EXPECT_EQ(*profile, std::string(profile->size(), profile->front()));
  }
  enough = true;
  writer.join();
}

// A file that cannot be written is an error that names it.
TEST_F(ProfileFileTest, DiskTrouble) {
  ASSERT_TRUE(std::filesystem::create_directory(path_));
  for (const absl::Status& status : {CreateProfileFile(path_, "x"), OverwriteProfileFile(path_, "x")}) {
    EXPECT_THAT(std::string(status.message()), HasSubstr("cannot write " + path_));
  }
}

}  // namespace
}  // namespace hooke
