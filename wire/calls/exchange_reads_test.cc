#include "wire/calls/exchange_reads.h"

#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "clocks/steady_time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "wire/calls/test_scripted_server.h"

namespace hooke {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

// All servers are asked at once, and the answers come in their order. A server that hangs, is away, or is of an older
// version costs no other server's answer, and the whole takes no longer than the timeout.
TEST(ExchangeReadsTest, AnswersInOrderAndInTime) {
  ScriptedServer::Script answers;
  answers.exchanges.add_exchanges()->set_sequence(7);
  ScriptedServer::Script hangs;
  hangs.hangs = true;
  ScriptedServer::Script older;
  older.end = {grpc::StatusCode::UNIMPLEMENTED, ""};
  ScriptedServer::Script ended;
  ended.end = {grpc::StatusCode::NOT_FOUND, "none of it"};
  const ScriptedServer one(answers), two(hangs), three(older), four(ended), five(answers), six(hangs);
  std::string away;
  {
    const ScriptedServer gone({});
    away = gone.address();
  }
  ExchangeReadsOptions options;
  options.job_id = "job-1";
  options.servers = {one.address(),  two.address(),  three.address(), away,
                     four.address(), five.address(), six.address()};
  options.timeout = absl::Seconds(4);
  const absl::Time begin = SteadyTime();
  const std::vector<ExchangesOfServer> read = ReadExchanges(options);
  const absl::Duration took = SteadyTime() - begin;
  EXPECT_GE(took, absl::Milliseconds(3900));  // Two servers hang, and both waits run side by side.
  EXPECT_LT(took, absl::Milliseconds(7900));
  ASSERT_EQ(read.size(), options.servers.size());
  for (size_t i = 0; i < read.size(); ++i) EXPECT_EQ(read[i].address, options.servers[i]);
  for (const size_t answered : {0, 5}) {
    const auto& answer = read[answered].answer;
    ASSERT_TRUE(answer.ok()) << answer.status();
    EXPECT_EQ(answer->exchanges(0).sequence(), 7u);
    EXPECT_EQ(answer->machine(), "job-1");
  }
  EXPECT_EQ(read[1].answer.status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(read[2].answer.status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(read[3].answer.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(read[3].answer.status().message()), HasSubstr("cannot be reached: Connection refused"));
  EXPECT_EQ(read[4].answer.status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(read[6].answer.status().code(), absl::StatusCode::kDeadlineExceeded);
}

// A job that has no servers has no answers.
TEST(ExchangeReadsTest, NoServers) { EXPECT_THAT(ReadExchanges({}), IsEmpty()); }

}  // namespace
}  // namespace hooke
