#include "server/coordinator/coordinator_fixture.h"

#include <spdlog/sinks/null_sink.h>
#include <spdlog/spdlog.h>

#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/coordinator/fake_server.h"
#include "server/journal/job_log.h"
#include "server/records/job_store.h"

namespace hooke {

CoordinatorFixture::CoordinatorFixture()
    : folder_(absl::StrCat(testing::TempDir(), "/", testing::UnitTest::GetInstance()->current_test_info()->name())) {
  std::filesystem::remove_all(folder_);
  Restart();
}

CoordinatorFixture::~CoordinatorFixture() { std::filesystem::remove_all(folder_); }

void CoordinatorFixture::Restart() {
  coordinator_.reset();
  CoordinatorOptions options = settings_;
  options.store = store_;
  options.cluster.compare_kept = true;
  options.writer = CoordinatorOptions::Writer::kCaller;
  options.log = std::make_shared<JobLog>(*JobLog::Open({folder_}));
  options.logger = std::make_shared<spdlog::logger>("test", std::make_shared<spdlog::sinks::null_sink_mt>());
  coordinator_ = *Coordinator::Create(std::move(options), now_);
  coordinator_->SetOwnServer(FakeServer("b:1").server_id());
  Heartbeat("b:1");
}

void CoordinatorFixture::Heartbeat(const std::string& address) {
  ASSERT_TRUE(FakeHeartbeat(*coordinator_, address, now_, shards_[address]).ok());
  AnswerDials(*coordinator_, now_);
}

void CoordinatorFixture::Pass(absl::Duration time, const std::vector<FakeWorker*>& alive, bool server_lives) {
  const absl::Duration end = now_.steady + time;
  while (now_.steady < end) {
    now_ += absl::Milliseconds(500);
    if (server_lives) Heartbeat("b:1");
    for (FakeWorker* worker : alive) worker->Heartbeat(now_);
    coordinator_->Tick(now_);
    for (FakeWorker* worker : alive) worker->Receive(now_);
  }
}

std::vector<JobRecord> CoordinatorFixture::Stored() { return (*JobStore::Open(store_))->Load()->jobs; }

std::string CoordinatorFixture::Submit(ExampleGroups groups) {
  absl::StatusOr<std::string> id =
      coordinator_->Submit(ExampleSubmission(absl::StrCat("s", ++submissions_), groups), now_);
  EXPECT_TRUE(id.ok()) << id.status();
  return id.value_or("");
}

}  // namespace hooke
