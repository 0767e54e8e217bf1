#include "server/parameters/storage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "server/parameters/in_memory_storage.h"

namespace hooke {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Runs each test with the real storage and with that in memory. The folder is removed at the end, even after a failure.
class StorageTest : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    if (GetParam()) {
      storage_ = OpenFolderStorage(folder_).value();
    } else {
      storage_ = std::make_unique<InMemoryStorage>();
    }
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void Write(absl::string_view name, absl::string_view bytes) {
    auto writer = storage_->Create(name).value();
    ASSERT_TRUE(writer->Append(bytes).ok());
    ASSERT_TRUE(writer->Commit().ok());
  }

  const std::string folder_ = absl::StrCat(::testing::TempDir(), "/storage-", getpid(), "/deep");
  std::unique_ptr<Storage> storage_;
};

INSTANTIATE_TEST_SUITE_P(FolderAndMemory, StorageTest, ::testing::Bool());

// Committed bytes are read back, in pieces of any size.
TEST_P(StorageTest, WritesAndReads) {
  Write("a.1", "hello");
  auto reader = storage_->Open("a.1").value();
  EXPECT_EQ(reader->size(), 5u);
  EXPECT_EQ(reader->Read(2).value(), "he");
  EXPECT_EQ(reader->Read(100).value(), "llo");
  EXPECT_EQ(reader->Read(1).value(), "");
}

// A file does not exist before its Commit. A committed file is replaced in one step.
TEST_P(StorageTest, NothingIsSeenBeforeCommit) {
  Write("a", "old");
  {
    auto writer = storage_->Create("a").value();
    ASSERT_TRUE(writer->Append("new, cut sh").ok());
    EXPECT_THAT(storage_->List().value(), ElementsAre("a"));
    EXPECT_EQ(storage_->Open("a").value()->Read(100).value(), "old");
  }
  EXPECT_THAT(storage_->List().value(), ElementsAre("a"));
  Write("a", "new");
  EXPECT_EQ(storage_->Open("a").value()->Read(100).value(), "new");
}

// Files are listed by name and removed. Removing a missing file is fine, opening it is NOT_FOUND.
TEST_P(StorageTest, ListsAndRemoves) {
  Write("b", "2");
  Write("a", "1");
  EXPECT_THAT(storage_->List().value(), ElementsAre("a", "b"));
  EXPECT_TRUE(storage_->Remove("a").ok());
  EXPECT_TRUE(storage_->Remove("a").ok());
  EXPECT_THAT(storage_->List().value(), ElementsAre("b"));
  EXPECT_EQ(storage_->Open("a").status().code(), absl::StatusCode::kNotFound);
}

// No name leads out of the folder.
TEST_P(StorageTest, RefusesNames) {
  for (const char* name : {"", ".", "..", "../a", "a/b", ".a", "a.part", "a b"}) {
    EXPECT_EQ(storage_->Create(name).status().code(), absl::StatusCode::kInvalidArgument) << name;
    EXPECT_EQ(storage_->Open(name).status().code(), absl::StatusCode::kInvalidArgument) << name;
    EXPECT_EQ(storage_->Remove(name).code(), absl::StatusCode::kInvalidArgument) << name;
  }
}

// Half-written files of a killed process are removed when the folder is opened again.
TEST(FolderStorage, RemovesLeftovers) {
  const std::string folder = absl::StrCat(::testing::TempDir(), "/leftovers-", getpid());
  std::filesystem::create_directories(folder);
  std::ofstream(absl::StrCat(folder, "/a.part")) << "half";
  EXPECT_THAT(OpenFolderStorage(folder).value()->List().value(), IsEmpty());
  EXPECT_TRUE(std::filesystem::is_empty(folder));
  std::filesystem::remove_all(folder);
}

// If the folder cannot be made, the error names it.
TEST(FolderStorage, NamesTheFolderItCannotUse) {
  const absl::Status status = OpenFolderStorage("/dev/null/centers").status();
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(std::string(status.message()), HasSubstr("cannot make folder /dev/null/centers: "));
}

// A test can fill up or break the disk of the in-memory storage.
TEST(InMemoryStorage, Faults) {
  InMemoryStorage storage;
  storage.SetFreeBytes(4);
  auto writer = storage.Create("a").value();
  EXPECT_TRUE(writer->Append("1234").ok());
  EXPECT_EQ(writer->Append("5").code(), absl::StatusCode::kResourceExhausted);
  storage.FailCommits(absl::UnavailableError("broken"));
  EXPECT_EQ(writer->Commit().message(), "broken");
  EXPECT_THAT(storage.List().value(), IsEmpty());

  storage.Put("b", std::string(4, '\0'));
  storage.FlipBit("b", 9);
  EXPECT_EQ(storage.Get("b"), std::string("\0\2\0\0", 4));
  storage.Truncate("b", 1);
  EXPECT_EQ(storage.Get("b").size(), 1u);
}

}  // namespace
}  // namespace hooke
