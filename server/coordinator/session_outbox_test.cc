// Shows which commands may go to a worker at once, and which have to wait for the store.

#include "server/coordinator/session_outbox.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/coordinator.pb.h"
#include "server/records/records.h"

namespace hooke {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

v1::WorkerCommand Start(uint32_t group) {
  v1::WorkerCommand command;
  command.mutable_start()->mutable_group()->set_job_id("j-1");
  command.mutable_start()->mutable_group()->set_group(group);
  command.mutable_start()->mutable_group()->set_incarnation(1);
  return command;
}

v1::WorkerCommand Stop(uint32_t group) {
  v1::WorkerCommand command;
  command.mutable_stop()->mutable_group()->set_job_id("j-1");
  command.mutable_stop()->mutable_group()->set_group(group);
  command.mutable_stop()->mutable_group()->set_incarnation(1);
  return command;
}

v1::WorkerCommand Echo(int64_t sent) {
  v1::WorkerCommand command;
  command.mutable_clock()->set_sent_ns(sent);
  return command;
}

// Returns the commands that may be sent, as texts: "start 0", "stop 0", "seen 0 up to 5", "echo 7".
std::vector<std::string> Taken(SessionOutbox& outbox) {
  std::vector<std::string> texts;
  for (const v1::WorkerCommand& command : outbox.TakeReady()) {
    if (command.has_start()) texts.push_back(absl::StrCat("start ", command.start().group().group()));
    if (command.has_stop()) texts.push_back(absl::StrCat("stop ", command.stop().group().group()));
    if (command.has_clock()) texts.push_back(absl::StrCat("echo ", command.clock().sent_ns()));
    if (command.has_seen()) {
      texts.push_back(absl::StrCat("seen ", command.seen().group().group(), " up to ", command.seen().number()));
    }
  }
  return texts;
}

// A command that waits for no batch goes at once; one that waits for batch 2 goes when batch 2 is stored.
TEST(SessionOutboxTest, HoldsWhatRestsOnTheStore) {
  SessionOutbox outbox;
  outbox.Add(Start(0), 2);
  EXPECT_FALSE(outbox.HasReady());
  outbox.Add(Stop(1), 0);
  EXPECT_THAT(Taken(outbox), ElementsAre("stop 1"));
  outbox.Stored(1);
  EXPECT_THAT(Taken(outbox), IsEmpty());
  outbox.Stored(2);
  EXPECT_TRUE(outbox.HasReady());
  EXPECT_THAT(Taken(outbox), ElementsAre("start 0"));
  EXPECT_EQ(outbox.bytes(), 0u);
}

// A stop never overtakes the start of its group.
TEST(SessionOutboxTest, AStopStaysBehindItsStart) {
  SessionOutbox outbox;
  outbox.Add(Start(0), 2);
  outbox.Add(Stop(0), 0);
  outbox.Add(Stop(1), 0);
  EXPECT_THAT(Taken(outbox), ElementsAre("stop 1"));
  outbox.Stored(2);
  EXPECT_THAT(Taken(outbox), ElementsAre("start 0", "stop 0"));
}

// An acknowledgement that needs no store does not make HasReady true. It is sent with the next command, or when
// TakeReady is called.
TEST(SessionOutboxTest, AnAcknowledgementWaitsForCompany) {
  SessionOutbox outbox;
  outbox.AddSeen({"j-1", 0, 1}, 1, 0);
  EXPECT_FALSE(outbox.HasReady());
  outbox.Add(Echo(7), 0);
  EXPECT_TRUE(outbox.HasReady());
  EXPECT_THAT(Taken(outbox), ElementsAre("echo 7", "seen 0 up to 1"));
  outbox.AddSeen({"j-1", 0, 1}, 2, 0);
  EXPECT_FALSE(outbox.HasReady());
  EXPECT_THAT(Taken(outbox), ElementsAre("seen 0 up to 2"));
}

// An acknowledgement that waited for the store makes HasReady true once it is stored. A worker that ends may wait for
// it.
TEST(SessionOutboxTest, AnAcknowledgementOfWhatWasStoredIsDue) {
  SessionOutbox outbox;
  outbox.AddSeen({"j-1", 0, 1}, 1, 3);
  EXPECT_FALSE(outbox.HasReady());
  outbox.Stored(3);
  EXPECT_TRUE(outbox.HasReady());
  EXPECT_THAT(Taken(outbox), ElementsAre("seen 0 up to 1"));
  EXPECT_FALSE(outbox.HasReady());
}

// However many echoes and acknowledgements wait, they merge into one echo and one acknowledgement for each group.
TEST(SessionOutboxTest, EchoesAndAcknowledgementsDoNotPileUp) {
  SessionOutbox outbox;
  outbox.Add(Echo(0), 0);
  outbox.AddSeen({"j-1", 0, 1}, 1, 0);
  const size_t bytes = outbox.bytes();
  for (int i = 1; i <= 10000; ++i) {
    outbox.Add(Echo(i), 0);
    outbox.AddSeen({"j-1", 0, 1}, i, 0);
    outbox.AddSeen({"j-1", 1, 1}, i, i);
  }
  EXPECT_LT(outbox.bytes(), 4 * bytes);
  EXPECT_THAT(Taken(outbox), ElementsAre("echo 10000", "seen 0 up to 10000"));
  outbox.Stored(1);
  EXPECT_THAT(Taken(outbox), ElementsAre("seen 1 up to 1")) << "later events must not delay the first";
  outbox.Stored(10000);
  EXPECT_THAT(Taken(outbox), ElementsAre("seen 1 up to 10000"));
  EXPECT_EQ(outbox.bytes(), 0u);
}

// Echoes and acknowledgements that follow one another share a batch. Other commands stay as they are, in order.
TEST(SessionOutboxTest, InBatches) {
  const auto seen = [](uint64_t number) {
    v1::WorkerCommand command;
    command.mutable_seen()->set_number(number);
    return command;
  };
  EXPECT_TRUE(InBatches({}).empty());
  EXPECT_TRUE(InBatches({Echo(7)}).at(0).has_clock());
  const std::vector<v1::WorkerCommand> batches =
      InBatches({Start(0), Stop(1), Echo(7), seen(1), seen(2), Start(2), seen(3)});
  ASSERT_EQ(batches.size(), 5u);
  EXPECT_TRUE(batches[0].has_start());
  EXPECT_TRUE(batches[1].has_stop());
  ASSERT_EQ(batches[2].batch().commands_size(), 3);
  EXPECT_EQ(batches[2].batch().commands(0).clock().sent_ns(), 7);
  EXPECT_EQ(batches[2].batch().commands(2).seen().number(), 2u);
  EXPECT_TRUE(batches[3].has_start());
  EXPECT_EQ(batches[4].seen().number(), 3u);
}

}  // namespace
}  // namespace hooke
