// What people are told of batch jobs that have ended, and for how long.

#include "worker/slurm/batch_end.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

namespace hooke {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

std::string Text(const std::string& state, const std::string& script_said = "") {
  return EndText({"4211", state, script_said, "/home/me/slurm-4211.log", "no space left"});
}

TEST(BatchEndTest, SlurmsWordIsTold) {
  for (const char* state : {"TIMEOUT", "OUT_OF_MEMORY", "NODE_FAIL", "PREEMPTED", "CANCELLED"}) {
    EXPECT_EQ(Text(state), std::string("Slurm job 4211 ended: ") + state);
  }
  EXPECT_EQ(Text("FAILED"), "Slurm job 4211 ended: FAILED, see /home/me/slurm-4211.log: no space left");
  EXPECT_EQ(EndText({"7", "FAILED", "", "/l", ""}), "Slurm job 7 ended: FAILED, see /l");
  EXPECT_EQ(Text(""), "Slurm job 4211 ended, and Slurm does not say how");
}

// Workers without a group end by themselves. If somebody made them end, that is why a group waits again.
TEST(BatchEndTest, AnEndThatWasWantedIsToldOnlyWithItsCause) {
  EXPECT_EQ(Text("COMPLETED"), "");
  EXPECT_EQ(Text("COMPLETED", "SIGTERM: the workers end"), "Slurm job 4211 ended: SIGTERM: the workers end");
}

// The group waits some seconds after its batch job has gone. The text stays until it waits no more.
TEST(BatchEndTest, ATextStaysWhileAGroupWaits) {
  EndNotes notes;
  notes.Add("a-1", "first", absl::Hours(1));
  notes.Next({}, absl::Hours(1) + absl::Seconds(10));
  EXPECT_THAT(notes.Texts(), ElementsAre(Pair("a-1", ElementsAre("first"))));
  notes.Next({"a-1"}, absl::Hours(1) + absl::Seconds(12));
  notes.Next({"a-1"}, absl::Hours(9));
  EXPECT_THAT(notes.Texts(), ElementsAre(Pair("a-1", ElementsAre("first"))));
  notes.Add("a-1", "second", absl::Hours(9));
  notes.Next({}, absl::Hours(9) + absl::Seconds(2));
  EXPECT_THAT(notes.Texts(), ElementsAre(Pair("a-1", ElementsAre("first", "second"))));
  notes.Next({"a-1"}, absl::Hours(9) + absl::Seconds(4));
  notes.Next({}, absl::Hours(9) + absl::Seconds(6));
  EXPECT_THAT(notes.Texts(), IsEmpty());
}

TEST(BatchEndTest, ATextGoesIfNoGroupEverWaits) {
  EndNotes notes;
  notes.Add("a-1", "first", absl::ZeroDuration());
  notes.Next({"b-2"}, absl::Seconds(119));
  EXPECT_EQ(notes.Texts().size(), 1u);
  notes.Next({"b-2"}, absl::Seconds(120));
  EXPECT_THAT(notes.Texts(), IsEmpty());
}

TEST(BatchEndTest, OnlyTheNewestTextsStay) {
  EndNotes notes;
  for (const char* text : {"1", "2", "3", "4"}) notes.Add("a-1", text, absl::ZeroDuration());
  EXPECT_THAT(notes.Texts(), ElementsAre(Pair("a-1", ElementsAre("2", "3", "4"))));
  notes.Forget("a-1");
  EXPECT_THAT(notes.Texts(), IsEmpty());
}

}  // namespace
}  // namespace hooke
