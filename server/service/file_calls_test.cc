// The calls about files over a real connection: question, upload, submission and fetch; uploads that stand still; and
// streams that no client of ours sends.

#include "server/service/file_calls.h"

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/null_sink.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "job/file_manifest.h"
#include "job/job_refusal.h"
#include "proto/coordinator.grpc.pb.h"
#include "server/journal/job_log.h"
#include "server/records/sqlite_record_store.h"
#include "server/service/fake_dial_back.h"
#include "server/service/service.h"
#include "wire/file_chunks.h"
#include "wire/grpc_status.h"

namespace hooke {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

constexpr absl::Duration kDeadline = absl::Seconds(20);  // The longest time that a call of these tests waits.

class FileCallsTest : public ::testing::Test {
 protected:
  FileCallsTest() : folder_(absl::StrCat(testing::TempDir(), "/calls-", getpid())) { fs::remove_all(folder_); }
  ~FileCallsTest() override {
    if (service_ != nullptr) {
      service_->Stop();
      server_->Shutdown(absl::ToChronoTime(absl::Now() + absl::Seconds(5)));
      service_->Join();
    }
    server_.reset();
    service_.reset();
    fs::remove_all(folder_);
  }

  void Start(absl::Duration still_max = absl::Minutes(1), bool with_store = true) {
    fs::create_directories(folder_);
    CoordinatorOptions options;
    options.store = *OpenSqliteRecordStore(folder_ + "/coordinator.db");
    options.log = std::make_shared<JobLog>(*JobLog::Open({folder_ + "/logs"}));
    options.logger = std::make_shared<spdlog::logger>("test", std::make_shared<spdlog::sinks::null_sink_mt>());
    CoordinatorServiceOptions service;
    service.coordinator = *Coordinator::Create(std::move(options), InstantNow());
    service.dial_back = std::make_shared<FakeDialBack>();
    service.upload_still_max = still_max;
    FileStoreOptions files;
    files.folder = folder_ + "/files";
    if (with_store) service.files = *FileStore::Open(files, InstantNow().steady);
    service_ = std::make_unique<CoordinatorService>(std::move(service));
    grpc::ServerBuilder builder;
    service_->AddTo(builder);
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    server_ = builder.BuildAndStart();
    service_->Serve();
    stub_ = v1::Coordinator::NewStub(
        grpc::CreateChannel(absl::StrCat("127.0.0.1:", port), grpc::InsecureChannelCredentials()));
  }

  static std::unique_ptr<grpc::ClientContext> Context() {
    auto context = std::make_unique<grpc::ClientContext>();
    context->set_deadline(absl::ToChronoTime(absl::Now() + kDeadline));
    return context;
  }

  // Adds a file to the job's files.
  void AddFile(const std::string& path, const std::string& bytes) {
    v1::FileEntry& entry = *manifest_.add_entries();
    entry.set_path(path);
    entry.set_sha256(Sha256Of(bytes));
    entry.set_bytes(bytes.size());
    contents_[entry.sha256()] = bytes;
  }

  absl::StatusOr<v1::FindMissingFilesResponse> FindMissing() {
    v1::FindMissingFilesRequest request;
    *request.add_contents() = ManifestContent(FileSetOf(manifest_));
    for (const v1::FileContent& content : ContentsOf(manifest_)) *request.add_contents() = content;
    v1::FindMissingFilesResponse response;
    const absl::Status status = FromGrpc(stub_->FindMissingFiles(Context().get(), request, &response));
    if (!status.ok()) return status;
    return response;
  }

  absl::Status Upload(const std::vector<v1::FileChunk>& chunks) {
    const auto context = Context();
    v1::UploadFilesResponse response;
    const auto writer = stub_->UploadFiles(context.get(), &response);
    for (const v1::FileChunk& chunk : chunks) {
      if (!writer->Write(chunk)) break;
    }
    writer->WritesDone();
    return FromGrpc(writer->Finish());
  }

  std::vector<v1::FileChunk> ChunksOf(const std::string& bytes) {
    std::vector<v1::FileChunk> chunks;
    EXPECT_TRUE(SendContent(bytes, [&](const v1::FileChunk& chunk) {
                  chunks.push_back(chunk);
                  return absl::OkStatus();
                }).ok());
    return chunks;
  }

  absl::Status UploadAll() {
    std::vector<v1::FileChunk> all = ChunksOf(ManifestBytes(manifest_));
    for (const auto& [sha256, bytes] : contents_) {
      for (v1::FileChunk& chunk : ChunksOf(bytes)) all.push_back(std::move(chunk));
    }
    return Upload(all);
  }

  absl::StatusOr<std::string> Submit() {
    v1::SubmitRequest request;
    request.set_submission_id("1");
    request.mutable_job()->set_name("own");
    request.mutable_job()->mutable_command()->add_arguments("train");
    *request.mutable_job()->mutable_command()->mutable_files() = FileSetOf(manifest_);
    v1::SubmitResponse response;
    const absl::Status status = FromGrpc(stub_->Submit(Context().get(), request, &response));
    if (!status.ok()) return status;
    return response.job_id();
  }

  absl::StatusOr<std::string> Fetch(const std::string& job_id, const std::vector<std::string>& sha256) {
    v1::FetchFilesRequest request;
    request.set_job_id(job_id);
    for (const std::string& digest : sha256) request.add_sha256(digest);
    const auto context = Context();
    const auto reader = stub_->FetchFiles(context.get(), request);
    std::string bytes;
    v1::FileChunk chunk;
    while (reader->Read(&chunk)) bytes += chunk.data();
    const absl::Status status = FromGrpc(reader->Finish());
    if (!status.ok()) return status;
    return bytes;
  }

  size_t FilesThere() const {
    const fs::path files = folder_ + "/files";
    return static_cast<size_t>(std::distance(fs::directory_iterator(files), fs::directory_iterator()));
  }

  const std::string folder_;
  v1::FileManifest manifest_;
  std::map<std::string, std::string> contents_;
  std::unique_ptr<CoordinatorService> service_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<v1::Coordinator::Stub> stub_;
};

// A job's files go up once, the job is taken, and a worker gets exactly them.
TEST_F(FileCallsTest, FromTheClientToTheWorker) {
  Start();
  const std::string large(3 * kChunkBytesSent + 17, 'x');
  AddFile("a.py", "print(1)");
  AddFile("b", large);
  EXPECT_EQ(FindMissing()->sha256_size(), 3);
  const Refusal refusal = ReadRefusal(Submit().status());
  ASSERT_EQ(refusal.problems.size(), 1u);
  EXPECT_EQ(refusal.problems[0].key, "files");
  EXPECT_THAT(refusal.problems[0].message, HasSubstr("does not have 1 of their contents; upload them first"));
  ASSERT_TRUE(UploadAll().ok());
  EXPECT_EQ(FindMissing()->sha256_size(), 0);
  const absl::StatusOr<std::string> job = Submit();
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(*Fetch(*job, {Sha256Of(large), Sha256Of("print(1)")}), large + "print(1)");
  EXPECT_EQ(*Fetch(*job, {FileSetOf(manifest_).manifest_sha256()}), ManifestBytes(manifest_));
  EXPECT_TRUE(absl::IsNotFound(Fetch(*job, {Sha256Of("other")}).status()));
  EXPECT_TRUE(absl::IsNotFound(Fetch("own-9", {Sha256Of(large)}).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(Fetch(*job, {}).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(Fetch(*job, {Sha256Of(large), Sha256Of(large)}).status()));
  v1::CancelJobRequest cancel;
  cancel.set_job_id(*job);
  v1::CancelJobResponse response;
  ASSERT_TRUE(stub_->CancelJob(Context().get(), cancel, &response).ok());
  EXPECT_EQ(Fetch(*job, {Sha256Of(large)}).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(response.job().spec().command().files().files(), 2u);
}

TEST_F(FileCallsTest, AnUploadThatStandsStillIsDropped) {
  Start(absl::Milliseconds(300));
  const auto context = Context();
  v1::UploadFilesResponse response;
  const auto writer = stub_->UploadFiles(context.get(), &response);
  ASSERT_TRUE(writer->Write(ChunksOf(std::string(2 * kChunkBytesSent, 'x'))[0]));
  const absl::Status status = FromGrpc(writer->Finish());
  EXPECT_FALSE(status.ok());
  // The client may learn of the end before the coordinator has removed the file.
  AddFile("a", "abc");
  for (const absl::Time end = absl::Now() + kDeadline; FilesThere() > 0 && absl::Now() < end;) (void)FindMissing();
  EXPECT_EQ(FilesThere(), 0u);
}

// Bytes of a peer break no daemon: each wrong stream gets an error, and the next right one is taken.
TEST_F(FileCallsTest, WrongStreamsAreRefused) {
  Start();
  AddFile("a", "abc");
  v1::FileChunk chunk = ChunksOf("abc")[0];
  chunk.set_data("abd");
  EXPECT_TRUE(absl::IsDataLoss(Upload({chunk})));
  chunk.clear_begins();
  EXPECT_TRUE(absl::IsInvalidArgument(Upload({chunk})));
  chunk = ChunksOf("abc")[0];
  chunk.set_data("ab");
  EXPECT_TRUE(absl::IsInvalidArgument(Upload({chunk})));
  chunk.mutable_begins()->set_bytes(~uint64_t{0});
  EXPECT_TRUE(absl::IsResourceExhausted(Upload({chunk})));
  chunk.mutable_begins()->set_sha256("../../etc/passwd");
  EXPECT_TRUE(absl::IsInvalidArgument(Upload({chunk})));
  v1::FindMissingFilesRequest request;
  request.add_contents()->set_sha256("x");
  v1::FindMissingFilesResponse response;
  EXPECT_EQ(stub_->FindMissingFiles(Context().get(), request, &response).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(FilesThere(), 0u);
  EXPECT_TRUE(UploadAll().ok());
}

// A manifest whose paths lead out of the group's folder never becomes a job.
TEST_F(FileCallsTest, PathsThatLeadOutAreRefused) {
  Start();
  AddFile("../../evil", "abc");
  ASSERT_TRUE(UploadAll().ok());
  const Refusal refusal = ReadRefusal(Submit().status());
  ASSERT_EQ(refusal.problems.size(), 1u);
  EXPECT_THAT(refusal.problems[0].message, HasSubstr("has a part \"..\""));
}

// Where jobs with a command are refused, files are refused as well.
TEST_F(FileCallsTest, WithoutAStoreThereAreNoFiles) {
  Start(absl::Minutes(1), false);
  AddFile("a", "abc");
  EXPECT_THAT(std::string(FindMissing().status().message()), HasSubstr("this coordinator takes none"));
  EXPECT_EQ(UploadAll().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Submit().status().code(), absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace hooke
