#include "worker/daemon/outbox.h"

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hooke {
namespace {

using ::testing::ElementsAre;

v1::GroupId Id(uint32_t incarnation) {
  v1::GroupId id;
  id.set_job_id("fashion-1");
  id.set_incarnation(incarnation);
  return id;
}

v1::GroupEvent Started() {
  v1::GroupEvent event;
  event.mutable_started()->set_launcher_pid(7);
  return event;
}

v1::GroupEvent Progress(uint32_t rank, uint64_t step) {
  v1::GroupEvent event;
  event.mutable_report()->set_rank(rank);
  event.mutable_report()->mutable_event()->mutable_progress()->set_step(step);
  return event;
}

v1::GroupEvent NoticeOf(const std::string& text) {
  v1::GroupEvent event;
  event.mutable_report()->mutable_event()->mutable_notice()->set_text(text);
  return event;
}

v1::GroupEvent Ended() {
  v1::GroupEvent event;
  event.mutable_ended()->set_ok(true);
  return event;
}

// Takes all messages to send now. Returns "number:kind" for each event.
std::vector<std::string> TakeAll(Outbox& outbox) {
  std::vector<std::string> taken;
  while (std::optional<v1::WorkerMessage> message = outbox.TakeNext()) {
    if (message->has_log()) continue;
    const v1::GroupEvent& event = message->event();
    std::string kind = event.has_started()   ? "started"
                       : event.has_ended()   ? "ended"
                       : event.has_silence() ? "silence"
                                             : "report";
    if (event.has_report() && event.report().event().has_progress())
      kind = absl::StrCat("step", event.report().event().progress().step());
    if (event.has_report() && event.report().event().has_notice()) kind = event.report().event().notice().text();
    taken.push_back(absl::StrCat(event.number(), ":", kind));
  }
  return taken;
}

std::vector<std::string> TakeLog(Outbox& outbox) {
  std::vector<std::string> lines;
  while (std::optional<v1::WorkerMessage> message = outbox.TakeNext()) {
    lines.insert(lines.end(), message->log().lines().begin(), message->log().lines().end());
  }
  return lines;
}

// Events stay until the coordinator has stored them. On a new stream they are sent again with the same numbers.
TEST(OutboxTest, EventsStayUntilSeen) {
  Outbox outbox({});
  outbox.AddEvent(Id(1), Started());
  outbox.AddEvent(Id(1), NoticeOf("a"));
  EXPECT_THAT(TakeAll(outbox), ElementsAre("1:started", "2:a"));
  EXPECT_FALSE(outbox.HasNext());
  outbox.Seen(Id(1), 1);
  outbox.AddEvent(Id(1), Ended());
  outbox.Rewind();
  EXPECT_THAT(TakeAll(outbox), ElementsAre("2:a", "3:ended"));
  EXPECT_EQ(outbox.EndedGroups().size(), 1u);
  EXPECT_FALSE(outbox.empty());
  outbox.Seen(Id(1), 3);
  EXPECT_TRUE(outbox.EndedGroups().empty());
  EXPECT_TRUE(outbox.empty());
  outbox.Rewind();
  EXPECT_THAT(TakeAll(outbox), ElementsAre());
}

// The outbox keeps only the newest progress of each rank, so an absent coordinator costs no memory. It keeps all other
// events.
TEST(OutboxTest, ProgressIsCoalesced) {
  Outbox outbox({});
  outbox.AddEvent(Id(1), Started());
  for (uint64_t step = 1; step <= 1000; ++step) {
    outbox.AddEvent(Id(1), Progress(0, step));
    outbox.AddEvent(Id(1), Progress(1, step));
  }
  outbox.AddEvent(Id(1), NoticeOf("a"));
  EXPECT_THAT(TakeAll(outbox), ElementsAre("1:started", "2000:step1000", "2001:step1000", "2002:a"));
}

// The outbox keeps only the newest profile of each rank. A profile does not replace a progress report.
TEST(OutboxTest, ProfilesAreCoalesced) {
  Outbox outbox({});
  for (uint64_t i = 1; i <= 100; ++i) {
    v1::GroupEvent event;
    event.mutable_report()->mutable_event()->mutable_profile()->set_step_ns(i);
    outbox.AddEvent(Id(1), event);
  }
  outbox.AddEvent(Id(1), Progress(0, 7));
  EXPECT_EQ(outbox.TakeNext()->event().report().event().profile().step_ns(), 100u);
  EXPECT_EQ(outbox.TakeNext()->event().report().event().progress().step(), 7u);
  EXPECT_FALSE(outbox.HasNext());
}

// Each incarnation of a group has its own events. Their numbers begin at 1.
TEST(OutboxTest, GroupsAreApart) {
  Outbox outbox({});
  outbox.AddEvent(Id(1), Ended());
  outbox.AddEvent(Id(2), Started());
  EXPECT_THAT(TakeAll(outbox), ElementsAre("1:ended", "1:started"));
  outbox.Seen(Id(1), 1);
  outbox.Rewind();
  EXPECT_THAT(TakeAll(outbox), ElementsAre("1:started"));
  EXPECT_FALSE(outbox.HasEnded(Id(1)));
  outbox.Seen(Id(3), 9);  // There is no such group.
}

// If a group has too many events, its oldest notices are dropped, but never its start or its end.
TEST(OutboxTest, EventsAreBounded) {
  OutboxOptions options;
  options.events_max = 3;
  Outbox outbox(options);
  outbox.AddEvent(Id(1), Started());
  for (int i = 0; i < 5; ++i) outbox.AddEvent(Id(1), NoticeOf(absl::StrCat("n", i)));
  outbox.AddEvent(Id(1), Ended());
  EXPECT_THAT(TakeAll(outbox), ElementsAre("1:started", "6:n4", "7:ended"));
}

// Events after a group's end are dropped.
TEST(OutboxTest, NothingAfterTheEnd) {
  Outbox outbox({});
  outbox.AddEvent(Id(1), Ended());
  outbox.AddEvent(Id(1), Progress(0, 1));
  EXPECT_THAT(TakeAll(outbox), ElementsAre("1:ended"));
}

// If the log is too long, its oldest lines are dropped, and one line says how many.
TEST(OutboxTest, LogIsBounded) {
  OutboxOptions options;
  options.log_bytes_max = 22;
  Outbox outbox(options);
  for (int i = 0; i < 5; ++i) outbox.AddLog(Id(1), "rank 0", absl::StrCat("l", i));
  EXPECT_THAT(TakeLog(outbox),
              ElementsAre("worker: 3 older lines were dropped: the coordinator was not there to take them",
                          "rank 0: l3", "rank 0: l4"));
  EXPECT_TRUE(outbox.empty());
}

// Lines of different groups never share a message, and a message stays small.
TEST(OutboxTest, LogMessages) {
  OutboxOptions options;
  options.log_message_bytes_max = 40;
  Outbox outbox(options);
  for (int i = 0; i < 3; ++i) outbox.AddLog(Id(1), "rank 0", "x");
  outbox.AddLog(Id(2), "rank 0", "y");
  EXPECT_EQ(outbox.TakeNext()->log().lines_size(), 2);
  EXPECT_EQ(outbox.TakeNext()->log().lines_size(), 1);
  EXPECT_EQ(outbox.TakeNext()->log().group().incarnation(), 2u);
  EXPECT_FALSE(outbox.HasNext());
}

// A group's end is sent after the lines that its own ranks printed before. It does not wait for other groups' lines.
TEST(OutboxTest, LinesComeBeforeTheEnd) {
  Outbox outbox({});
  outbox.AddEvent(Id(1), Started());
  outbox.AddLog(Id(1), "rank 0", "x");
  outbox.AddLog(Id(2), "rank 0", "y");
  outbox.AddEvent(Id(1), Ended());
  EXPECT_TRUE(outbox.TakeNext()->event().has_started());
  EXPECT_EQ(outbox.TakeNext()->log().lines(0), "rank 0: x");
  EXPECT_TRUE(outbox.TakeNext()->event().has_ended());
  EXPECT_EQ(outbox.TakeNext()->log().lines(0), "rank 0: y");
  EXPECT_FALSE(outbox.HasNext());
}

// A group's end is sent even if another group has a new event each time.
TEST(OutboxTest, AnEndDoesNotStarveBehindABusyGroup) {
  Outbox outbox({});
  outbox.AddEvent(Id(2), Started());
  EXPECT_TRUE(outbox.TakeNext()->event().has_started());
  outbox.AddLog(Id(2), "rank 0", "x");
  outbox.AddLog(Id(1), "rank 0", "y");
  outbox.AddLog(Id(2), "rank 0", "z");
  outbox.AddEvent(Id(2), Ended());
  std::vector<std::string> lines;
  bool ended = false;
  for (uint64_t step = 1; step <= 10 && !ended; ++step) {
    outbox.AddEvent(Id(1), Progress(0, step));
    const std::optional<v1::WorkerMessage> message = outbox.TakeNext();
    ASSERT_TRUE(message.has_value());
    lines.insert(lines.end(), message->log().lines().begin(), message->log().lines().end());
    ended = message->event().has_ended();
  }
  EXPECT_THAT(lines, ElementsAre("rank 0: x", "rank 0: y", "rank 0: z"));
  EXPECT_TRUE(ended);
}

v1::GroupEvent ProfileOf(uint32_t rank) {
  v1::GroupEvent event;
  event.mutable_report()->set_rank(rank);
  event.mutable_report()->mutable_event()->mutable_profile()->set_step_ns(1);
  return event;
}

// Progress and profiles may wait for other messages to share their write. All other events are urgent. So are the first
// step, a rank that misses a server, and log lines.
TEST(OutboxTest, WhatMustNotWait) {
  Outbox outbox({});
  const auto is_urgent = [&outbox] {
    const bool urgent = outbox.HasUrgent();
    TakeAll(outbox);
    return urgent;
  };
  outbox.AddEvent(Id(1), Started());
  EXPECT_TRUE(is_urgent());
  EXPECT_FALSE(is_urgent());
  outbox.AddEvent(Id(1), Progress(0, 0));
  EXPECT_FALSE(is_urgent());
  outbox.AddEvent(Id(1), Progress(0, 1));
  EXPECT_TRUE(is_urgent());
  outbox.AddEvent(Id(1), Progress(0, 2));
  outbox.AddEvent(Id(1), ProfileOf(0));
  EXPECT_TRUE(outbox.HasNext());
  EXPECT_FALSE(is_urgent());
  v1::GroupEvent misses = Progress(0, 3);
  misses.mutable_report()->mutable_event()->mutable_progress()->add_absent_servers()->set_address("a:1");
  outbox.AddEvent(Id(1), misses);
  EXPECT_TRUE(is_urgent());
  outbox.AddEvent(Id(1), NoticeOf("a"));
  EXPECT_TRUE(is_urgent());
  outbox.AddLog(Id(1), "rank 0", "line");
  EXPECT_TRUE(is_urgent());
  outbox.AddEvent(Id(1), Ended());
  EXPECT_TRUE(is_urgent());
}

// On a new stream, events that are sent again are as urgent as before. What the coordinator has stored is not.
TEST(OutboxTest, UrgentAgainOnANewStream) {
  Outbox outbox({});
  outbox.AddEvent(Id(1), Started());
  outbox.AddEvent(Id(1), Progress(0, 1));
  TakeAll(outbox);
  outbox.Rewind();
  EXPECT_TRUE(outbox.HasUrgent());
  outbox.Seen(Id(1), 2);
  outbox.Rewind();
  EXPECT_FALSE(outbox.HasUrgent());
  EXPECT_FALSE(outbox.HasNext());
  outbox.AddEvent(Id(1), Progress(0, 2));
  outbox.Rewind();
  EXPECT_FALSE(outbox.HasUrgent());
  EXPECT_TRUE(outbox.HasNext());
}

// An urgent event that was dropped for lack of room leaves nothing that is urgent without an event to send.
TEST(OutboxTest, DroppedIsNotUrgent) {
  Outbox outbox({.events_max = 2});
  for (int i = 0; i < 5; ++i) outbox.AddEvent(Id(1), NoticeOf(absl::StrCat(i)));
  EXPECT_TRUE(outbox.HasUrgent());
  while (outbox.TakeNext().has_value()) {
  }
  EXPECT_FALSE(outbox.HasUrgent());
  EXPECT_FALSE(outbox.HasNext());
}

// TakeSome returns what TakeNext would, in its order, up to its limits. A group's lines stay before its end.
TEST(OutboxTest, TakesSome) {
  Outbox outbox({.messages_max = 3});
  outbox.AddEvent(Id(1), Started());
  outbox.AddLog(Id(1), "rank 0", "last words");
  outbox.AddEvent(Id(1), Ended());
  outbox.AddEvent(Id(2), NoticeOf("a"));
  const std::vector<v1::WorkerMessage> some = outbox.TakeSome();
  ASSERT_EQ(some.size(), 3u);
  EXPECT_TRUE(some[0].event().has_started());
  EXPECT_EQ(some[1].log().lines(0), "rank 0: last words");
  EXPECT_TRUE(some[2].event().has_ended());
  EXPECT_TRUE(outbox.HasNext());
  EXPECT_EQ(outbox.TakeSome().size(), 1u);
  EXPECT_TRUE(outbox.TakeSome().empty());
  Outbox small({.messages_bytes_max = 100});
  for (uint32_t i = 1; i <= 3; ++i) small.AddEvent(Id(i), NoticeOf(std::string(60, 'a')));
  EXPECT_EQ(small.TakeSome().size(), 2u);
}

// One message stays as it is; several are in a batch.
TEST(OutboxTest, InOne) {
  std::vector<v1::WorkerMessage> messages(1);
  messages[0].mutable_heartbeat()->set_sent_ns(7);
  EXPECT_EQ(InOne(messages).heartbeat().sent_ns(), 7);
  messages.emplace_back().mutable_event()->set_number(3);
  const v1::WorkerMessage batch = InOne(messages);
  ASSERT_EQ(batch.batch().messages_size(), 2);
  EXPECT_EQ(batch.batch().messages(0).heartbeat().sent_ns(), 7);
  EXPECT_EQ(batch.batch().messages(1).event().number(), 3u);
}

// A message waits up to 400 ms, so that others can share its write, but never beyond the next heartbeat. Urgent
// messages do not wait. A heartbeat that is due within 400 ms goes in the same write.
TEST(SendTimesTest, Table) {
  const SendTimes times{absl::Milliseconds(400)};
  const absl::Time now = absl::FromUnixSeconds(1000);
  const absl::Time soon = now + absl::Milliseconds(300), later = now + absl::Seconds(1);
  EXPECT_EQ(times.SendAt(true, now, later), absl::InfinitePast());
  EXPECT_EQ(times.SendAt(false, now, later), now + absl::Milliseconds(400));
  EXPECT_EQ(times.SendAt(false, now, soon), soon);
  EXPECT_EQ(times.SendAt(false, std::nullopt, later), later);
  EXPECT_TRUE(times.TakesHeartbeat(now, soon));
  EXPECT_TRUE(times.TakesHeartbeat(later, soon));
  EXPECT_FALSE(times.TakesHeartbeat(now, later));
}

// Any bytes that a rank prints become valid UTF-8 of bounded length.
TEST(CleanLineTest, Table) {
  struct Case {
    std::string text;
    std::string clean;
  };
  const Case cases[] = {
      {"", ""},
      {"plain\ttab", "plain\ttab"},
      {"caf\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80", "caf\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80"},
      {"\xFF\xFE", "??"},
      {"cut \xE2\x82", "cut ??"},
      {"\xC0\xAF", "??"},
      {"\xED\xA0\x80", "???"},
      {"\xF4\x90\x80\x80", "????"},
      {std::string("nul\0x", 5), "nul?x"},
      {"\x1B[31mred", "?[31mred"},
      {"dos\r", "dos"},
      {"50%\r100%", "50%?100%"},
  };
  for (const Case& c : cases) EXPECT_EQ(CleanLine(c.text, 100), c.clean) << c.clean;
  EXPECT_EQ(CleanLine("abc", 2), "ab");
  EXPECT_EQ(CleanLine("a\xC3\xA9", 2), "a");
}

}  // namespace
}  // namespace hooke
