// Tests the upload of a job's files to coordinators that lose files, or end an upload with an error.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <string>

#include "absl/synchronization/mutex.h"
#include "client/coordinator_client.h"
#include "client/fake_servers.h"
#include "job/file_manifest.h"
#include "wire/sha256.h"

namespace hooke {
namespace {

using ::testing::HasSubstr;

bool GoOn() { return true; }

// A coordinator that stores contents, and loses one of them during uploads.
class FilesCoordinator final : public FakeCoordinatorService {
 public:
  grpc::Status FindMissingFiles(grpc::ServerContext*, const v1::FindMissingFilesRequest* request,
                                v1::FindMissingFilesResponse* response) override {
    absl::MutexLock lock(&mutex);
    std::set<std::string> missing;
    bytes_asked = 0;
    for (const v1::FileContent& content : request->contents()) {
      bytes_asked += content.bytes();
      if (stored.count(content.sha256()) == 0) missing.insert(content.sha256());
    }
    for (const std::string& sha256 : missing) response->add_sha256(sha256);
    return grpc::Status::OK;
  }

  grpc::Status UploadFiles(grpc::ServerContext*, grpc::ServerReader<v1::FileChunk>* reader,
                           v1::UploadFilesResponse*) override {
    absl::MutexLock lock(&mutex);
    ++uploads;
    v1::FileChunk chunk;
    while (reader->Read(&chunk)) {
      if (chunk.has_begins()) stored.insert(chunk.begins().sha256());
    }
    if (uploads <= losses) stored.erase(lost);
    return end;
  }

  std::string lost;  // The content that each of the first `losses` uploads loses.
  int losses = 0;
  grpc::Status end;  // The status that ends each upload.
  std::set<std::string> stored;
  int uploads = 0;
  uint64_t bytes_asked = 0;  // Sum of the sizes in the last FindMissingFiles.
};

// The files "a" and "b", both with the bytes "abc".
CollectedFiles Files() {
  const std::string path = testing::TempDir() + "/put_files_abc";
  std::ofstream(path) << "abc";
  v1::FileManifest manifest;
  for (const char* name : {"a", "b"}) {
    v1::FileEntry& entry = *manifest.add_entries();
    entry.set_path(name);
    entry.set_sha256(Sha256Of("abc"));
    entry.set_bytes(3);
  }
  CollectedFiles files;
  files.manifest = ManifestBytes(manifest);
  files.set = FileSetOf(manifest);
  files.contents.push_back({ContentsOf(manifest)[0], path});
  return files;
}

absl::StatusOr<CoordinatorClient::Uploaded> Put(FilesCoordinator& coordinator, const CollectedFiles& files) {
  FakeListener listener(coordinator);
  const auto client = CoordinatorClient::Connect(listener.address(), absl::Seconds(10));
  if (!client.ok()) return client.status();
  return (*client)->PutFiles(files, GoOn);
}

// During an upload the coordinator may free another file of the job, or find it damaged. So the client asks again at
// the end what is missing.
TEST(PutFilesTest, WhatTheCoordinatorLosesMeanwhileIsSentAgain) {
  const CollectedFiles files = Files();
  FilesCoordinator coordinator;
  coordinator.lost = files.set.manifest_sha256();
  coordinator.losses = 1;
  const absl::StatusOr<CoordinatorClient::Uploaded> uploaded = Put(coordinator, files);
  ASSERT_TRUE(uploaded.ok()) << uploaded.status();
  EXPECT_EQ(uploaded->contents, 1u);
  EXPECT_EQ(coordinator.stored.size(), 2u);
  EXPECT_EQ(coordinator.uploads, 2);
}

// Two paths of one content are two copies for each group, and count twice for the coordinator's limit.
TEST(PutFilesTest, EachPathCountsForTheLimitOfAJob) {
  const CollectedFiles files = Files();
  FilesCoordinator coordinator;
  ASSERT_TRUE(Put(coordinator, files).ok());
  EXPECT_EQ(coordinator.bytes_asked, files.set.bytes() + files.set.manifest_bytes());
  EXPECT_EQ(coordinator.uploads, 1);
}

TEST(PutFilesTest, ACoordinatorThatLosesEachUploadIsGivenUp) {
  FilesCoordinator coordinator;
  coordinator.lost = Sha256Of("abc");
  coordinator.losses = 100;
  const absl::Status status = Put(coordinator, Files()).status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("has lost 1 of the uploaded files 3 times: see to its disk"));
  EXPECT_EQ(coordinator.uploads, 3);
}

// If the coordinator ends an upload, its reason is shown. The client's time limit for short calls is not.
TEST(PutFilesTest, AnUploadThatStoodStillSaysSo) {
  FilesCoordinator coordinator;
  coordinator.end = {grpc::DEADLINE_EXCEEDED, "the upload stood still for 1m; submit the job again"};
  EXPECT_EQ(Put(coordinator, Files()).status(),
            absl::DeadlineExceededError("the upload stood still for 1m; submit the job again"));
}

}  // namespace
}  // namespace hooke
