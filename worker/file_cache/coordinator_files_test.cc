// Tests fetching over a real connection, from a coordinator that answers well, badly, slowly or not at all.

#include "worker/file_cache/coordinator_files.h"

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "clocks/steady_time.h"
#include "clocks/test_wall_clock.h"
#include "proto/coordinator.grpc.pb.h"
#include "wire/file_chunks.h"

namespace hooke {
namespace {

using ::testing::HasSubstr;

absl::Status GoOn() { return absl::OkStatus(); }

class FakeCoordinator final : public v1::Coordinator::Service {
 public:
  FakeCoordinator() {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }
  ~FakeCoordinator() override {
    over_.Notify();
    server_->Shutdown(absl::ToChronoTime(absl::Now()));
  }

  grpc::Status FetchFiles(grpc::ServerContext*, const v1::FetchFilesRequest* request,
                          grpc::ServerWriter<v1::FileChunk>* writer) override {
    asked_job = request->job_id();
    for (const std::string& bytes : contents) {
      (void)SendContent(bytes, [&](const v1::FileChunk& chunk) {
        return writer->Write(chunk) ? absl::OkStatus() : absl::CancelledError("");
      });
    }
    if (silent) over_.WaitForNotification();
    return end;
  }

  FetchOptions Options() const {
    FetchOptions options;
    options.coordinator = absl::StrCat("127.0.0.1:", port_);
    options.silent_max = absl::Milliseconds(600);
    return options;
  }

  // Tests set these fields before the first call, except for asked_job, which FetchFiles sets.
  std::vector<std::string> contents;
  bool silent = false;  // After the contents the stream stays open.
  grpc::Status end;
  std::string asked_job;

 private:
  int port_ = 0;
  absl::Notification over_;
  std::unique_ptr<grpc::Server> server_;
};

struct Fetched {
  absl::Status status;
  std::string bytes;
};
Fetched Fetch(const FetchOptions& options) {
  Fetched fetched;
  fetched.status = FetchFromCoordinator(
      options, {"own-1", {"x"}},
      [&](const v1::FileChunk& chunk) {
        fetched.bytes += chunk.data();
        return absl::OkStatus();
      },
      GoOn);
  return fetched;
}

TEST(CoordinatorFilesTest, PassesOnEachChunk) {
  FakeCoordinator coordinator;
  coordinator.contents = {std::string(2 * kChunkBytesSent + 1, 'a'), "b"};
  const Fetched fetched = Fetch(coordinator.Options());
  EXPECT_TRUE(fetched.status.ok()) << fetched.status;
  EXPECT_EQ(fetched.bytes, coordinator.contents[0] + "b");
  EXPECT_EQ(coordinator.asked_job, "own-1");
}

// The codes DATA_LOSS, NOT_FOUND and FAILED_PRECONDITION would fail the job at once. The worker turns them into
// UNAVAILABLE, so the group is started again: a damaged file may have been uploaded again by then.
TEST(CoordinatorFilesTest, AnErrorOfTheCoordinatorDoesNotFailTheJobAtOnce) {
  for (const grpc::StatusCode code : {grpc::DATA_LOSS, grpc::NOT_FOUND, grpc::FAILED_PRECONDITION}) {
    FakeCoordinator coordinator;
    coordinator.end = grpc::Status(code, "the copy is damaged");
    const absl::Status status = Fetch(coordinator.Options()).status;
    EXPECT_TRUE(absl::IsUnavailable(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(": the copy is damaged"));
  }
  FetchOptions nobody;
  nobody.coordinator = "127.0.0.1:1";
  const absl::Status status = Fetch(nobody).status;
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("cannot be fetched from the coordinator at 127.0.0.1:1: "));
}

TEST(CoordinatorFilesTest, EveryWaitEnds) {
  FakeCoordinator coordinator;
  coordinator.contents = {"a"};
  coordinator.silent = true;
  EXPECT_THAT(std::string(Fetch(coordinator.Options()).status.message()), HasSubstr("it was silent for 600ms"));
  FetchOptions patient = coordinator.Options();
  patient.silent_max = absl::Hours(1);
  std::atomic<int> asked = 0;
  const absl::Status stopped = FetchFromCoordinator(
      patient, {"own-1", {"x"}}, [](const v1::FileChunk&) { return absl::OkStatus(); },
      [&] { return ++asked < 4 ? absl::OkStatus() : absl::CancelledError("stopped"); });
  EXPECT_EQ(stopped, absl::CancelledError("stopped"));
}

// 200 workers share the coordinator's line, so each of them gets a chunk only now and then. A fetch has no time limit
// in total as long as bytes come.
TEST(CoordinatorFilesTest, AFetchOnASlowLineGoesOnAsLongAsBytesCome) {
  FakeCoordinator coordinator;
  coordinator.contents = {std::string(300 * kChunkBytesSent, 'a')};
  absl::Duration passed;
  FetchOptions options = coordinator.Options();
  options.silent_max = kFetchStillMax;
  options.clock = [&] { return absl::UnixEpoch() + passed; };
  int chunks = 0;
  int chunks_before = 0;
  const absl::Status status = FetchFromCoordinator(
      options, {"own-1", {"x"}},
      [&](const v1::FileChunk&) {
        ++chunks;
        return absl::OkStatus();
      },
      [&] {
        // A minute, less a second, passes after each chunk, and none while the test's machine is slow.
        if (chunks > std::exchange(chunks_before, chunks)) passed += kFetchStillMax - absl::Seconds(1);
        return absl::OkStatus();
      });
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(chunks, 300);
  EXPECT_GT(passed, absl::Hours(4));
}

TEST(CoordinatorFilesTest, AClockThatIsSetBackProlongsNoFetch) {
  FakeCoordinator coordinator;
  coordinator.silent = true;
  const absl::Time begin = SteadyTime();
  const auto wall = std::chrono::system_clock::now();
  const absl::Status status = FetchFromCoordinator(
      coordinator.Options(), {"own-1", {"x"}}, [](const v1::FileChunk&) { return absl::OkStatus(); },
      [] {
        StepWallClock(-absl::Hours(1));
        return absl::OkStatus();
      });
  EXPECT_THAT(std::string(status.message()), HasSubstr("it was silent for 600ms"));
  EXPECT_LT(std::chrono::system_clock::now(), wall - std::chrono::minutes(50));  // The clock was set.
  EXPECT_LT(SteadyTime() - begin, absl::Minutes(1));
}

TEST(CoordinatorFilesTest, AnErrorOfTheTakerEndsTheCall) {
  FakeCoordinator coordinator;
  coordinator.contents = {"a"};
  coordinator.silent = true;
  const absl::Status status = FetchFromCoordinator(
      coordinator.Options(), {"own-1", {"x"}},
      [](const v1::FileChunk&) { return absl::ResourceExhaustedError("full"); }, GoOn);
  EXPECT_EQ(status, absl::ResourceExhaustedError("full"));
}

}  // namespace
}  // namespace hooke
