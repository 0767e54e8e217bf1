// The coordinator's store of files: what is missing, uploads that end well or break, limits, and what stays over a
// restart.

#include "server/job_files/file_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "job/file_manifest.h"
#include "job/job_refusal.h"
#include "server/job_files/file_store_fixture.h"

namespace hooke {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

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

// An upload that breaks off leaves no file and takes no room. Its content is missing afterwards.
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

// Contents without bytes pass all limits of bytes, so their number has a limit, too.
TEST_F(FileStoreTest, AnUploadHasNoMoreContentsThanAJob) {
  const std::vector<std::string> most(kContentsMax, "");
  EXPECT_TRUE(Upload(most).ok());
  std::vector<std::string> more = most;
  more.push_back("");
  EXPECT_TRUE(absl::IsInvalidArgument(Upload(more)));
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
  options.job_bytes_max = 8000;
  options.total_bytes_max = 12000;
  options.uploads_max = 1;
  Open(options);
  const absl::Status job = store_->FindMissing({Content(std::string(8001, 'x'))}, kNow).status();
  ASSERT_EQ(ReadRefusal(job).problems.size(), 1u);
  EXPECT_EQ(ReadRefusal(job).problems[0].key, "files");
  EXPECT_THAT(ReadRefusal(job).problems[0].message,
              HasSubstr("they have 7.8 KiB, and a job may have 7.8 KiB (--files-max-bytes of the coordinator)"));
  ASSERT_TRUE(Upload({std::string(6000, 'a')}).ok());
  const absl::Status total = store_->FindMissing({Content(std::string(6400, 'b'))}, kNow).status();
  EXPECT_EQ(total.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(ReadRefusal(total).problems.at(0).message,
              HasSubstr("they need 6.2 KiB more, and the coordinator has 5.9 KiB of at most 11.7 KiB"));
  // A client that does not ask is refused as well.
  EXPECT_TRUE(absl::IsResourceExhausted(Upload({std::string(6400, 'b')})));
  EXPECT_TRUE(Upload({std::string(6000, 'b')}).ok());
  const absl::StatusOr<std::unique_ptr<FileStore::Upload>> first = store_->BeginUpload(kNow);
  EXPECT_TRUE(absl::IsResourceExhausted(store_->BeginUpload(kNow).status()));
}

// Each stored file takes an inode of the disk. Uploads of empty files once took all inodes, so an empty file also
// counts against the limit.
TEST_F(FileStoreTest, ManyTinyFilesDoNotUseUpTheDisksNames) {
  FileStoreOptions options;
  options.total_bytes_max = 40 << 10;
  Open(options);
  std::vector<std::string> tiny;
  tiny.reserve(10);
  for (int i = 0; i < 10; ++i) tiny.push_back(std::string(static_cast<size_t>(i), 'x'));
  ASSERT_TRUE(Upload(tiny).ok());
  EXPECT_EQ(FilesThere(), 10u);
  EXPECT_TRUE(Upload(tiny).ok());  // They are there already.
  const absl::Status question = store_->FindMissing({Content("y")}, kNow).status();
  EXPECT_THAT(ReadRefusal(question).problems.at(0).message,
              HasSubstr("they need 4.0 KiB more, and the coordinator has 40.0 KiB of at most 40.0 KiB (its "
                        "--files-total-bytes; each file counts as at least 4.0 KiB)"));
  EXPECT_TRUE(absl::IsResourceExhausted(Upload({"y"})));
  EXPECT_EQ(FilesThere(), 10u);
  Open(options);
  EXPECT_TRUE(absl::IsResourceExhausted(Upload({"y"})));  // A restart counts them, too.
  // No job names them, so they leave, and their room is free again.
  EXPECT_EQ(store_->FreeUnnamed({}, kNow + absl::Minutes(11)).bytes, 45u);
  EXPECT_EQ(FilesThere(), 0u);
  EXPECT_TRUE(Upload(tiny).ok());
}

// A coordinator that starts again with a smaller --files-total-bytes goes on with the files that it has.
TEST_F(FileStoreTest, AStoreThatHasBecomeTooSmallTakesJobsWithoutNewFiles) {
  const Files files({"a", "b"});
  ASSERT_TRUE(Upload(files).ok());
  FileStoreOptions options;
  options.total_bytes_max = 1;
  Open(options);
  EXPECT_TRUE(store_->CheckForJob(files.set, kNow).ok());
  EXPECT_FALSE(store_->FindMissing({Content("c")}, kNow).ok());
}

// A manifest may name one content under many paths, and each group gets a copy for each path. So the copies count
// against the limit of a job.
TEST_F(FileStoreTest, ManyPathsOfOneLargeContentAreRefused) {
  FileStoreOptions options;
  options.job_bytes_max = 5000;
  Open(options);
  const std::string large(2000, 'x');
  v1::FileManifest manifest;
  for (const char* path : {"a", "b", "c"}) {
    v1::FileEntry& entry = *manifest.add_entries();
    entry.set_path(path);
    entry.set_sha256(Sha256Of(large));
    entry.set_bytes(large.size());
  }
  ASSERT_TRUE(Upload({large, ManifestBytes(manifest)}).ok());
  EXPECT_THAT(ReadRefusal(store_->CheckForJob(FileSetOf(manifest), kNow)).problems.at(0).message,
              HasSubstr("they have 6.0 KiB, and a job may have 4.9 KiB (--files-max-bytes of the coordinator)"));
  // A client that names each path's content learns that before it uploads.
  EXPECT_FALSE(store_->FindMissing({Content(large), Content(large), Content(large)}, kNow).ok());
  manifest.mutable_entries()->RemoveLast();
  ASSERT_TRUE(Upload({ManifestBytes(manifest)}).ok());
  EXPECT_TRUE(store_->CheckForJob(FileSetOf(manifest), kNow).ok());
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

}  // namespace
}  // namespace hooke
