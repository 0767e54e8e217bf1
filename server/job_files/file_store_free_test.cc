// Tests of the coordinator's store of files: which contents it frees, which it keeps, and damaged copies.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "job/file_manifest.h"
#include "server/job_files/file_store.h"
#include "server/job_files/file_store_fixture.h"

namespace hooke {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST_F(FileStoreTest, FreesWhatNoJobNames) {
  const Files one({"a", "b"});
  const Files two({"b", "c"});
  ASSERT_TRUE(Upload(one).ok());
  ASSERT_TRUE(Upload(two).ok());
  const absl::Duration later = kNow + absl::Minutes(11);
  // Contents that were uploaded or asked for lately stay, although no job names them.
  EXPECT_EQ(store_->FreeUnnamed({}, kNow + absl::Minutes(9)).bytes, 0u);
  EXPECT_EQ(store_->FreeUnnamed({one.set, two.set}, later).bytes, 0u);
  // Contents that a job named lately stay, too.
  EXPECT_EQ(store_->FreeUnnamed({one.set}, later).bytes, 0u);
  const absl::Duration last = later + absl::Minutes(11);
  EXPECT_EQ(store_->FreeUnnamed({one.set}, last).bytes, 1 + two.manifest.size());
  EXPECT_TRUE(store_->CheckForJob(one.set, last).ok());
  EXPECT_FALSE(store_->CheckForJob(two.set, last).ok());
  EXPECT_EQ(store_->FreeUnnamed({}, last).bytes, 0u);
  EXPECT_EQ(store_->FreeUnnamed({}, last + absl::Minutes(11)).bytes, 2 + one.manifest.size());
  EXPECT_EQ(FilesThere(), 0u);
  EXPECT_EQ(store_->bytes(), 0u);
}

// Manifests are read and hashed only if something may be freed, not at each call. The test damages a manifest, so a
// call fails if it reads the manifest.
TEST_F(FileStoreTest, ManifestsOfRunningJobsAreNotReadAgainAndAgain) {
  const Files files({"a"});
  ASSERT_TRUE(Upload(files).ok());
  EXPECT_TRUE(store_->FreeUnnamed({files.set}, kNow + absl::Minutes(11)).status.ok());
  std::ofstream(PathOf(files.manifest)) << "x";
  EXPECT_TRUE(store_->FreeUnnamed({files.set}, kNow + absl::Minutes(20)).status.ok());
  EXPECT_FALSE(store_->FreeUnnamed({files.set}, kNow + absl::Minutes(22)).status.ok());
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
    EXPECT_EQ(store_->FreeUnnamed({}, now).bytes, 0u);
  }
  EXPECT_THAT(*store_->FindMissing(files.Contents(), now), IsEmpty());
  upload->reset();
  EXPECT_TRUE(store_->CheckForJob(files.set, now + absl::Minutes(9)).ok());
  // An upload that never ends does not keep everything for ever.
  upload = store_->BeginUpload(now);
  EXPECT_EQ(store_->FreeUnnamed({}, now + absl::Hours(2)).bytes, 3 + files.manifest.size());
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

// The disk has changed or lost a job's manifest. It is removed, and its next upload mends the job.
TEST_F(FileStoreTest, ADamagedManifestIsUploadedAgain) {
  const Files files({"abc"});
  const auto take = [](const auto&) { return absl::OkStatus(); };
  for (const bool gone : {false, true}) {
    ASSERT_TRUE(Upload(files).ok());
    std::string damaged = files.manifest;
    damaged.back() ^= 1;
    const auto damage = [&] {
      if (gone) std::filesystem::remove(PathOf(files.manifest));
      if (!gone) std::ofstream(PathOf(files.manifest)) << damaged;
    };
    damage();
    const absl::Status sent = store_->Send(files.set, {Sha256Of("abc")}, take);
    EXPECT_TRUE(absl::IsDataLoss(sent)) << sent;
    EXPECT_THAT(std::string(sent.message()), HasSubstr(gone ? "is gone; submit" : "is damaged; submit"));
    EXPECT_THAT(*store_->FindMissing(files.Contents(), kNow), ElementsAre(files.set.manifest_sha256()));
    ASSERT_TRUE(Upload({files.manifest}).ok());
    EXPECT_TRUE(store_->Send(files.set, {Sha256Of("abc")}, take).ok());
    damage();
    EXPECT_EQ(store_->CheckForJob(files.set, kNow).code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(*store_->FindMissing(files.Contents(), kNow), ElementsAre(files.set.manifest_sha256()));
  }
}

// A damaged manifest of one job does not keep the files of all others for ever.
TEST_F(FileStoreTest, ADamagedManifestDoesNotStopFreeing) {
  const Files broken({"abc"});
  const Files whole({"d"});
  const Files unnamed({"ef"});
  for (const Files* files : {&broken, &whole, &unnamed}) ASSERT_TRUE(Upload(*files).ok());
  std::ofstream(PathOf(broken.manifest)) << "x";
  const FileStore::Freed freed = store_->FreeUnnamed({broken.set, whole.set}, kNow + absl::Minutes(11));
  EXPECT_TRUE(absl::IsDataLoss(freed.status)) << freed.status;
  EXPECT_EQ(store_->bytes(), 1 + whole.manifest.size());
  EXPECT_TRUE(store_->CheckForJob(whole.set, kNow + absl::Minutes(11)).ok());
}

// Clients upload the same contents while FreeUnnamed runs. Contents that were uploaded a moment ago are still there.
TEST_F(FileStoreTest, UploadsAndFreeingGoTogether) {
  const Files files({"a", "b", "c"});
  std::vector<std::thread> clients;
  clients.reserve(3);
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
