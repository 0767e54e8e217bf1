// The coordinator's store of files: what is missing, uploads that end well or break, limits, what is freed and what
// stays over a restart, and copies that the disk has damaged.

#include "server/job_files/file_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "job/file_manifest.h"
#include "job/job_refusal.h"

namespace hooke {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr absl::Duration kNow = absl::Hours(1);

v1::FileContent Content(const std::string& bytes) {
  v1::FileContent content;
  content.set_sha256(Sha256Of(bytes));
  content.set_bytes(bytes.size());
  return content;
}

// A job's files, each with its bytes as its name and content.
struct Files {
  explicit Files(const std::vector<std::string>& all) : bytes(all) {
    v1::FileManifest made;
    for (const std::string& one : all) {
      v1::FileEntry& entry = *made.add_entries();
      entry.set_path(one.substr(0, 100));
      entry.set_sha256(Sha256Of(one));
      entry.set_bytes(one.size());
    }
    set = FileSetOf(made);
    manifest = ManifestBytes(made);
  }

  std::vector<v1::FileContent> Contents() const {
    std::vector<v1::FileContent> contents = {Content(manifest)};
    for (const std::string& one : bytes) contents.push_back(Content(one));
    return contents;
  }

  std::vector<std::string> bytes;
  v1::FileSet set;
  std::string manifest;
};

class FileStoreTest : public ::testing::Test {
 protected:
  FileStoreTest() : folder_(absl::StrCat(testing::TempDir(), "/store-", getpid())) {
    fs::remove_all(folder_);
    Open({});
  }
  ~FileStoreTest() override {
    store_.reset();
    fs::remove_all(folder_);
  }

  void Open(FileStoreOptions options) {
    store_.reset();
    options.folder = folder_;
    absl::StatusOr<std::unique_ptr<FileStore>> store = FileStore::Open(std::move(options), kNow);
    ASSERT_TRUE(store.ok()) << store.status();
    store_ = *std::move(store);
  }

  absl::Status Upload(const std::vector<std::string>& contents, absl::Duration now = kNow) {
    absl::StatusOr<std::unique_ptr<FileStore::Upload>> upload = store_->BeginUpload(now);
    if (!upload.ok()) return upload.status();
    for (const std::string& bytes : contents) {
      absl::Status status = SendContent(bytes, [&](const v1::FileChunk& chunk) { return (*upload)->Take(chunk, now); });
      if (!status.ok()) return status;
    }
    return (*upload)->Finish().status();
  }
  absl::Status Upload(const Files& files, absl::Duration now = kNow) {
    std::vector<std::string> contents = files.bytes;
    contents.push_back(files.manifest);
    return Upload(contents, now);
  }

  size_t FilesThere() const {
    return static_cast<size_t>(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }
  std::string PathOf(const std::string& bytes) const {
    return absl::StrCat(folder_, "/", absl::BytesToHexString(Sha256Of(bytes)));
  }

  const std::string folder_;
  std::unique_ptr<FileStore> store_;
};

TEST_F(FileStoreTest, OnlyWhatIsMissingIsAskedFor) {
  const Files files({"a", "b"});
  EXPECT_EQ(store_->FindMissing(files.Contents(), kNow)->size(), 3u);
  ASSERT_TRUE(Upload({"a"}).ok());
  EXPECT_THAT(*store_->FindMissing(files.Contents(), kNow), ElementsAre(files.set.manifest_sha256(), Sha256Of("b")));
  ASSERT_TRUE(Upload(files).ok());
  EXPECT_THAT(*store_->FindMissing(files.Contents(), kNow), IsEmpty());
  EXPECT_TRUE(store_->CheckForJob(files.set, kNow).ok());
  EXPECT_EQ(store_->bytes(), 2 + files.manifest.size());
  Open({});
  EXPECT_TRUE(store_->CheckForJob(files.set, kNow).ok());
  EXPECT_EQ(store_->bytes(), 2 + files.manifest.size());
}

// What breaks off in mid-write leaves no file, takes no room, and is missing after that.
TEST_F(FileStoreTest, ABrokenUploadLeavesNothing) {
  const std::string large(3 * kChunkBytesSent, 'x');
  {
    absl::StatusOr<std::unique_ptr<FileStore::Upload>> upload = store_->BeginUpload(kNow);
    ASSERT_TRUE(upload.ok());
    int chunks = 0;
    EXPECT_FALSE(SendContent(large, [&](const v1::FileChunk& chunk) {
                   return ++chunks == 3 ? absl::UnavailableError("cut") : (*upload)->Take(chunk, kNow);
                 }).ok());
    EXPECT_EQ(FilesThere(), 1u);
    EXPECT_FALSE((*upload)->Finish().ok());
  }
  EXPECT_EQ(FilesThere(), 0u);
  EXPECT_EQ(store_->FindMissing({Content(large)}, kNow)->size(), 1u);
  EXPECT_TRUE(Upload({large}).ok());
}

TEST_F(FileStoreTest, OtherBytesThanTheDigestAreRefused) {
  absl::StatusOr<std::unique_ptr<FileStore::Upload>> upload = store_->BeginUpload(kNow);
  v1::FileChunk chunk;
  *chunk.mutable_begins() = Content("abc");
  chunk.set_data("abd");
  EXPECT_TRUE(absl::IsDataLoss((*upload)->Take(chunk, kNow)));
  upload->reset();
  EXPECT_EQ(FilesThere(), 0u);
}

TEST_F(FileStoreTest, LimitsNameTheKeyTheSizeAndTheFlag) {
  FileStoreOptions options;
  options.job_bytes_max = 2000;
  options.total_bytes_max = 3000;
  options.uploads_max = 1;
  Open(options);
  const absl::Status job = store_->FindMissing({Content(std::string(2001, 'x'))}, kNow).status();
  ASSERT_EQ(ReadRefusal(job).problems.size(), 1u);
  EXPECT_EQ(ReadRefusal(job).problems[0].key, "files");
  EXPECT_THAT(ReadRefusal(job).problems[0].message,
              HasSubstr("they have 2.0 KiB, and a job may have 2.0 KiB (--files-max-bytes of the coordinator)"));
  ASSERT_TRUE(Upload({std::string(1500, 'a')}).ok());
  const absl::Status total = store_->FindMissing({Content(std::string(1600, 'b'))}, kNow).status();
  EXPECT_EQ(total.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(ReadRefusal(total).problems.at(0).message,
              HasSubstr("they need 1.6 KiB more, and the coordinator has 1.5 KiB of at most 2.9 KiB"));
  // A client that does not ask is refused as well.
  EXPECT_TRUE(absl::IsResourceExhausted(Upload({std::string(1600, 'b')})));
  EXPECT_TRUE(Upload({std::string(1500, 'b')}).ok());
  const absl::StatusOr<std::unique_ptr<FileStore::Upload>> first = store_->BeginUpload(kNow);
  EXPECT_TRUE(absl::IsResourceExhausted(store_->BeginUpload(kNow).status()));
}

TEST_F(FileStoreTest, AJobIsTakenOnlyWithAllItsFiles) {
  const Files files({"a", "b"});
  ASSERT_TRUE(Upload({"a"}).ok());
  EXPECT_THAT(ReadRefusal(store_->CheckForJob(files.set, kNow)).problems.at(0).message,
              HasSubstr("does not have 1 of their contents"));
  ASSERT_TRUE(Upload({files.manifest}).ok());
  EXPECT_THAT(ReadRefusal(store_->CheckForJob(files.set, kNow)).problems.at(0).message,
              HasSubstr("does not have 1 of their contents"));
  ASSERT_TRUE(Upload({"b"}).ok());
  EXPECT_TRUE(store_->CheckForJob(files.set, kNow).ok());
  v1::FileSet wrong = files.set;
  wrong.set_files(7);
  EXPECT_THAT(ReadRefusal(store_->CheckForJob(wrong, kNow)).problems.at(0).message, HasSubstr("the job says 7 files"));
  wrong = files.set;
  wrong.set_manifest_sha256(Sha256Of("a"));
  wrong.set_manifest_bytes(1);
  EXPECT_EQ(store_->CheckForJob(wrong, kNow).code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(FileStoreTest, FreesWhatNoJobNames) {
  const Files one({"a", "b"});
  const Files two({"b", "c"});
  ASSERT_TRUE(Upload(one).ok());
  ASSERT_TRUE(Upload(two).ok());
  const absl::Duration later = kNow + absl::Minutes(11);
  // What was uploaded or asked for lately stays without a job.
  EXPECT_EQ(store_->FreeUnnamed({}, kNow + absl::Minutes(9)), 0u);
  EXPECT_EQ(store_->FreeUnnamed({one.set, two.set}, later), 0u);
  EXPECT_EQ(store_->FreeUnnamed({one.set}, later), 1 + two.manifest.size());
  EXPECT_TRUE(store_->CheckForJob(one.set, later).ok());
  EXPECT_FALSE(store_->CheckForJob(two.set, later).ok());
  EXPECT_EQ(store_->FreeUnnamed({}, later), 0u);
  EXPECT_EQ(store_->FreeUnnamed({}, later + absl::Minutes(11)), 2 + one.manifest.size());
  EXPECT_EQ(FilesThere(), 0u);
  EXPECT_EQ(store_->bytes(), 0u);
}

// A slow line: the upload takes longer than a content without a job stays. What came first, and what was there before,
// is still there at its end.
TEST_F(FileStoreTest, AnUploadOfMoreThanTenMinutesKeepsItsFirstFiles) {
  const Files files({"a", "b", "c"});
  ASSERT_TRUE(Upload({"a"}).ok());
  EXPECT_EQ(store_->FindMissing(files.Contents(), kNow)->size(), 3u);
  absl::StatusOr<std::unique_ptr<FileStore::Upload>> upload = store_->BeginUpload(kNow);
  absl::Duration now = kNow;
  for (const std::string& bytes : {files.manifest, std::string("b"), std::string("c")}) {
    EXPECT_TRUE(SendContent(bytes, [&](const v1::FileChunk& chunk) { return (*upload)->Take(chunk, now); }).ok());
    now += absl::Minutes(5);
    EXPECT_EQ(store_->FreeUnnamed({}, now), 0u);
  }
  EXPECT_THAT(*store_->FindMissing(files.Contents(), now), IsEmpty());
  upload->reset();
  EXPECT_TRUE(store_->CheckForJob(files.set, now + absl::Minutes(9)).ok());
  // An upload that never ends does not keep everything for ever.
  upload = store_->BeginUpload(now);
  EXPECT_EQ(store_->FreeUnnamed({}, now + absl::Hours(2)), 3 + files.manifest.size());
}

TEST_F(FileStoreTest, SendsOnlyWhatTheJobNames) {
  const Files files({"a", "b"});
  ASSERT_TRUE(Upload(files).ok());
  ASSERT_TRUE(Upload({"secret"}).ok());
  std::string came;
  const auto take = [&](const v1::FileChunk& chunk) {
    came += chunk.data();
    return absl::OkStatus();
  };
  EXPECT_TRUE(store_->Send(files.set, {Sha256Of("b"), Sha256Of("a")}, take).ok());
  EXPECT_EQ(came, "ba");
  EXPECT_TRUE(absl::IsNotFound(store_->Send(files.set, {Sha256Of("secret")}, take)));
  EXPECT_EQ(came, "ba");
}

// The disk has changed a content. Nobody gets it, and the next submission brings it again.
TEST_F(FileStoreTest, ADamagedCopyIsNotSent) {
  const Files files({"abc"});
  ASSERT_TRUE(Upload(files).ok());
  std::ofstream(PathOf("abc")) << "abd";
  std::string came;
  const absl::Status status = store_->Send(files.set, {Sha256Of("abc")}, [&](const v1::FileChunk& chunk) {
    came += chunk.data();
    return absl::OkStatus();
  });
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_EQ(came, "");
  EXPECT_EQ(store_->FindMissing(files.Contents(), kNow)->size(), 1u);
  ASSERT_TRUE(Upload({"abc"}).ok());
  EXPECT_TRUE(store_->Send(files.set, {Sha256Of("abc")}, [](const auto&) { return absl::OkStatus(); }).ok());
}

// Clients that upload the same contents while others are freed: whoever has just asked finds what was said to be there.
TEST_F(FileStoreTest, UploadsAndFreeingGoTogether) {
  const Files files({"a", "b", "c"});
  std::vector<std::thread> clients;
  for (int i = 0; i < 3; ++i) {
    clients.emplace_back([&] {
      for (int n = 0; n < 50; ++n) {
        EXPECT_TRUE(Upload(files).ok());
        EXPECT_TRUE(store_->CheckForJob(files.set, kNow).ok());
      }
    });
  }
  for (int n = 0; n < 50; ++n) store_->FreeUnnamed({}, kNow + absl::Minutes(n % 2 == 0 ? 5 : 9));
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(store_->bytes(), 3 + files.manifest.size());
  store_->FreeUnnamed({}, kNow + absl::Minutes(11));
  EXPECT_EQ(store_->bytes(), 0u);
  EXPECT_EQ(FilesThere(), 0u);
}

}  // namespace
}  // namespace hooke
