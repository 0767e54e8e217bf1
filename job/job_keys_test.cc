#include "job/job_keys.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "job/job_field.h"

namespace hooke {
namespace {

// Every preset is allowed by its key's type and range, and every key is in the table once.
TEST(JobKeysTest, PresetsAreAllowedValues) {
  std::set<std::string> paths;
  for (const JobKey& key : JobKeys()) {
    EXPECT_TRUE(paths.insert(key.path).second) << key.path;
    EXPECT_FALSE(key.meaning.empty()) << key.path;
    if (key.preset.has_value()) {
      EXPECT_TRUE(ParseKeyValue(key, *key.preset, /*quoted=*/false).ok()) << key.path;
    }
  }
}

// The value of a key with choices is stored as the enum value of its own name, or as its text. It never becomes 0,
// which servers refuse, nor the number of another choice.
TEST(JobKeysTest, EveryChoiceIsAnEnumValue) {
  int tried = 0;
  for (const JobKey& key : JobKeys()) {
    if (key.type != KeyType::kChoice) continue;
    for (const std::string& choice : key.choices) {
      v1::JobSpec job;
      SetField(key, ParseKeyValue(key, choice, /*quoted=*/false).value(), job);
      EXPECT_THAT(job.ShortDebugString(),
                  testing::ContainsRegex(absl::StrCat(": ((FORMAT_|COMPRESSION_)?", absl::AsciiStrToUpper(choice),
                                                      "|\"", choice, "\")[ }]*$")))
          << key.path << " " << choice;
      ++tried;
    }
  }
  EXPECT_GT(tried, 20);
}

// Every key's field that is no message exists and keeps the value that is set.
TEST(JobKeysTest, FieldsHoldWhatIsSet) {
  for (const JobKey& key : JobKeys()) {
    if (IsMessage(key)) continue;
    v1::JobSpec job;
    KeyValue value;
    value.text = key.type == KeyType::kChoice ? key.choices.back() : "text";
    value.integer = 3;
    value.number = 0.25;
    value.boolean = true;
    value.texts = {"A=b=c", "D="};
    SetField(key, value, job);
    const KeyValue read = GetField(key, job);
    switch (key.type) {
      case KeyType::kInteger:
        EXPECT_EQ(read.integer, 3u) << key.path;
        break;
      case KeyType::kNumber:
        EXPECT_EQ(read.number, 0.25) << key.path;
        break;
      case KeyType::kBoolean:
        EXPECT_TRUE(read.boolean) << key.path;
        break;
      case KeyType::kArguments:
      case KeyType::kEnvironment:
        EXPECT_EQ(read.texts, value.texts) << key.path;
        break;
      default:
        EXPECT_EQ(read.text, value.text) << key.path;
    }
  }
}

// The ends of each range are >= 0. As float32 the upper end is finite, and the lower end is 0 or a normal number.
TEST(JobKeysTest, RangesAreSensible) {
  for (const JobKey& key : JobKeys()) {
    if (key.type != KeyType::kNumber && key.type != KeyType::kInteger) continue;
    EXPECT_LT(key.range.min, key.range.max) << key.path;
    EXPECT_GE(key.range.min, 0) << key.path;
    EXPECT_TRUE(std::isfinite(static_cast<float>(key.range.max))) << key.path;
    if (key.range.min > 0) {
      EXPECT_TRUE(std::isnormal(static_cast<float>(key.range.min))) << key.path;
    }
    for (const char* text : {"1e300", "1e400", "1e-300", "1e-400", "1e-40", "-1", "-1e300", "nan", "inf", "-inf", ""}) {
      EXPECT_FALSE(ParseKeyValue(key, text, /*quoted=*/false).ok()) << key.path << " " << text;
    }
    KeyValue value;
    for (const double number : std::vector<double>{NAN, INFINITY, -INFINITY, -1.0, 1e300, 1e-300, 1e-40}) {
      value.number = number;
      if (key.type == KeyType::kNumber) {
        EXPECT_FALSE(CheckKeyValue(key, value).ok()) << key.path << " " << number;
      }
    }
  }
}

// A number too large for a double is reported as out of range, not as text that is no number.
TEST(JobKeysTest, NumbersThatNoDoubleHolds) {
  const JobKey& rate = *FindJobKey("train.optimizer.learning_rate");
  EXPECT_EQ(ParseKeyValue(rate, "1e400", false).status().message(),
            "1e400 is out of range; must be a number from 1e-9 to 1000");
  EXPECT_EQ(ParseKeyValue(rate, "1e-400", false).status().message(),
            "1e-400 is too small: a number other than 0 is at least 1e-20; must be a number from 1e-9 to 1000");
  EXPECT_EQ(ParseKeyValue(*FindJobKey("train.optimizer.weight_decay"), "1e-300", false).status().message(),
            "1e-300 is too small: a number other than 0 is at least 1e-20; must be a number from 0 to 10");
  const absl::Status huge = ParseKeyValue(rate, std::string(100000, '9'), false).status();
  EXPECT_LT(huge.message().size(), 200u);
}

}  // namespace
}  // namespace hooke
