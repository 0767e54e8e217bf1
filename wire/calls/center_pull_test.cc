#include "wire/calls/center_pull.h"

#include <atomic>
#include <string>
#include <thread>
#include <utility>

#include "absl/time/time.h"
#include "clocks/steady_time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "wire/calls/test_scripted_server.h"

namespace hooke {
namespace {

using testing::HasSubstr;

constexpr absl::Duration kSilence = absl::Seconds(2);
// A machine under load may be late by as much.
constexpr absl::Duration kSlack = absl::Seconds(10);

CenterPullOptions OptionsFor(const ScriptedServer& server, absl::Duration silence) {
  CenterPullOptions options;
  options.job_id = "job-1";
  options.servers = {server.address()};
  options.silence = silence;
  return options;
}

ScriptedServer::Script HangsAfter(int messages) {
  ScriptedServer::Script script;
  for (int i = 0; i < messages; ++i) script.pulled.emplace_back().mutable_header()->set_updates(i + 1);
  script.hangs = true;
  return script;
}

// A server that accepts the call and never answers has failed after `silence`.
TEST(CenterPullTest, ServerThatNeverAnswers) {
  const ScriptedServer server(HangsAfter(0));
  CenterPull pull(OptionsFor(server, kSilence));
  const absl::Time begin = SteadyTime();
  const auto next = pull.Next(0);
  EXPECT_EQ(next.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(next.status().message()),
              HasSubstr("server " + server.address() + " has not answered for 2s, it is away or busy"));
  EXPECT_GE(SteadyTime() - begin, kSilence);
  EXPECT_LT(SteadyTime() - begin, kSilence + kSlack);
  EXPECT_EQ(*pull.Next(0), std::nullopt);  // After an error no more messages come.
}

// A server that hangs after its first message has failed after `silence`, too. The silence counts from when somebody
// asks for the next message.
TEST(CenterPullTest, ServerThatHangsAfterAMessage) {
  const ScriptedServer server(HangsAfter(1));
  CenterPull pull(OptionsFor(server, kSilence));
  const auto first = pull.Next(0);
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ((*first)->header().updates(), 1u);
  const absl::Time begin = SteadyTime();
  EXPECT_EQ(pull.Next(0).status().code(), absl::StatusCode::kUnavailable);
  EXPECT_GE(SteadyTime() - begin, kSilence);
  EXPECT_LT(SteadyTime() - begin, kSilence + kSlack);
}

// A server that goes away in the middle of the call ends it at once, long before `silence`.
TEST(CenterPullTest, ServerThatGoesAway) {
  ScriptedServer server(HangsAfter(1));
  CenterPull pull(OptionsFor(server, absl::Minutes(1)));
  ASSERT_TRUE(pull.Next(0).ok());
  const absl::Time begin = SteadyTime();
  std::thread cuts([&server] { server.Cut(); });
  const auto next = pull.Next(0);
  cuts.join();
  EXPECT_TRUE(absl::IsAborted(next.status()) || absl::IsUnavailable(next.status())) << next.status();
  EXPECT_THAT(std::string(next.status().message()), HasSubstr(server.address()));
  EXPECT_LT(SteadyTime() - begin, kSlack);
}

// When `stopped` returns true, a wait for a server ends within a moment, whether or not the server has sent a message
// before.
TEST(CenterPullTest, Stops) {
  for (const int messages : {0, 1}) {
    const ScriptedServer server(HangsAfter(messages));
    std::atomic<bool> counts{messages == 0};
    std::atomic<int> asked{0};
    CenterPullOptions options = OptionsFor(server, absl::Minutes(1));
    options.stopped = [&counts, &asked] { return counts && ++asked > 3; };
    CenterPull pull(std::move(options));
    const absl::Time begin = SteadyTime();
    for (int i = 0; i < messages; ++i) ASSERT_TRUE(pull.Next(0).ok());
    counts = true;
    EXPECT_EQ(pull.Next(0).status().code(), absl::StatusCode::kCancelled);
    EXPECT_LT(SteadyTime() - begin, kSlack);
    EXPECT_EQ(asked, 4);
  }
}

}  // namespace
}  // namespace hooke
