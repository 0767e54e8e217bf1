#include "server/dashboard/dashboard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/cluster/example_job.h"
#include "server/coordinator/coordinator_fixture.h"
#include "wire/http/test_client.h"

namespace hooke {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// Whoever may not give orders to the coordinator may not give them through its page.
TEST(WhyReadOnlyTest, APageHasThePermissionsOfTheCommand) {
  const ClusterToken none, token("0123456789abcdef");
  const HostPort here = {"127.0.0.1", 7480}, everywhere = {"0.0.0.0", 7480};
  EXPECT_EQ(WhyReadOnly(here, {"127.0.0.1", 7411}, none), "");
  EXPECT_EQ(WhyReadOnly(here, {"0.0.0.0", 7411}, none), "");
  EXPECT_EQ(WhyReadOnly(everywhere, {"0.0.0.0", 7411}, none), "");
  EXPECT_EQ(WhyReadOnly(everywhere, {"127.0.0.1", 7411}, token), "");
  EXPECT_EQ(
      WhyReadOnly(everywhere, {"127.0.0.1", 7411}, none),
      "this page only shows: other machines reach it at 0.0.0.0:7480, but the coordinator at 127.0.0.1:7411 takes "
      "orders of this machine only. Use `hooke` there, or start the servers with --token-file");
}

constexpr char kJobFile[] = "name: own\ncommand: [/bin/true]\ndirectory: /\n";
constexpr char kWhy[] = "this page only shows: a test says so";

// The page of the fixture's coordinator, over real HTTP.
class DashboardTest : public CoordinatorFixture {
 protected:
  void Serve(const std::string& read_only) {
    absl::StatusOr<std::unique_ptr<HttpServer>> server =
        ServeDashboard({"127.0.0.1:0", {}, "b:1", read_only}, coordinator_.get());
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    const nlohmann::json about = nlohmann::json::parse(BodyOf(Get("/api/page")));
    EXPECT_EQ(about["read_only"], read_only);
    key_ = about["action_key"];
  }

  std::string Get(const std::string& path) {
    return Exchange(server_->address(), absl::StrCat("GET ", path, " HTTP/1.1\r\nHost: localhost\r\n\r\n"));
  }

  // Asks for an action as the page does. Returns "STATUS TEXT", with the text of an error if it is one.
  std::string Act(const std::string& path, const std::string& body = "") {
    const std::string answer = Exchange(
        server_->address(), absl::StrCat("POST ", path, " HTTP/1.1\r\nHost: localhost\r\nX-Hooke-Action: ", key_,
                                         "\r\nContent-Length: ", body.size(), "\r\n\r\n", body));
    const std::string text = BodyOf(answer);
    const nlohmann::json json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
    const bool failed = json.is_object() && json.count("error") > 0;
    return absl::StrCat(answer.substr(9, 3), " ", failed ? json["error"].get<std::string>() : text);
  }

  static std::string BodyOf(const std::string& answer) { return answer.substr(answer.find("\r\n\r\n") + 4); }

  std::unique_ptr<HttpServer> server_;
  std::string key_;
};

// A page that may only show refuses each action with its reason, and nothing has changed after that. Checking a job
// file changes nothing, so it stays.
TEST_F(DashboardTest, AReadOnlyPageRefusesEachAction) {
  const std::string id = Submit();
  const std::string before = Status(id).SerializeAsString();
  Serve(kWhy);
  const std::string refused = absl::StrCat("403 ", kWhy);
  EXPECT_EQ(Act("/api/submit?submission=a", kJobFile), refused);
  EXPECT_EQ(Act("/api/submit?submission=a", "no job file"), refused);
  EXPECT_EQ(Act(absl::StrCat("/api/cancel/", id)), refused);
  EXPECT_EQ(Act(absl::StrCat("/api/resume/", id)), refused);
  EXPECT_EQ(Act(absl::StrCat("/api/scale/", id, "?groups=2")), refused);
  EXPECT_EQ(Act(absl::StrCat("/api/export/", id)), refused);
  EXPECT_EQ(Act("/api/cancel/none-7"), refused) << "it does not even say which jobs there are";
  EXPECT_THAT(Act("/api/check", kJobFile), HasSubstr("200 {\"name\":\"own\""));
  EXPECT_THAT(Get("/api/download/1234"), StartsWith("HTTP/1.1 404")) << "without a ticket there is no download";
  EXPECT_EQ(coordinator_->List(1 << 20, now_).jobs.size(), 1u);
  EXPECT_EQ(Status(id).SerializeAsString(), before);
}

// The same requests reach the coordinator through a page that may act.
TEST_F(DashboardTest, APageThatMayActDoes) {
  const std::string id = Submit();
  Serve("");
  EXPECT_THAT(Act(absl::StrCat("/api/resume/", id)), Not(StartsWith("403")));
  EXPECT_THAT(Act(absl::StrCat("/api/scale/", id, "?groups=x")), HasSubstr("400 groups is no number"));
  EXPECT_THAT(Act(absl::StrCat("/api/cancel/", id)), HasSubstr("200 {"));
  EXPECT_EQ(Status(id).state(), v1::JOB_STATE_CANCELLED);
  EXPECT_THAT(Act("/api/submit?submission=a", kJobFile), HasSubstr("200 {\"job_id\":\"own-"));
}

}  // namespace
}  // namespace hooke
