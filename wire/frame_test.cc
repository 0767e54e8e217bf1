#include "wire/frame.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>

namespace hooke {
namespace {

using ::testing::HasSubstr;

v1::Sender ExampleSender() {
  v1::Sender sender;
  sender.set_job_id("job-1");
  sender.set_group(2);
  sender.set_rank(1);
  sender.set_incarnation(3);
  sender.set_job_key("key7");
  return sender;
}

std::string Bytes(std::initializer_list<int> bytes) { return {bytes.begin(), bytes.end()}; }

// The worked example of docs/wire.md is encoded to the bytes printed there.
TEST(Frame, WorkedExample) {
  EXPECT_EQ(EncodeOpening(ExampleSender()),
            Bytes({1, 2, 5, 4, 2, 0, 0, 0, 1, 0, 0, 0, 3, 0, 0, 0, 'j', 'o', 'b', '-', '1', 'k', 'e', 'y', '7'}));
  std::string message(kValuesHeaderBytes, 'x');
  EncodeValuesHeader({16, 0x8000, 2}, absl::MakeSpan(&message[0], message.size()));
  EXPECT_EQ(message, Bytes({2, 1, 0, 0, 2, 0, 0, 0, 16, 0, 0, 0, 0, 0, 0, 0, 0, 0x80, 0, 0, 0, 0, 0, 0}));
}

// Decoding returns what was encoded, at the ends of every field's range.
TEST(Frame, RoundTrip) {
  v1::Sender sender = ExampleSender();
  sender.set_group(~uint32_t{0});
  sender.set_rank(~uint32_t{0} - 1);
  sender.set_incarnation(~uint32_t{0} - 2);
  sender.set_job_id(std::string(kJobIdBytesMax, 'j'));
  sender.set_job_key(std::string(kJobKeyBytesMax, '\0'));
  EXPECT_EQ(DecodeOpening(EncodeOpening(sender)).value().SerializeAsString(), sender.SerializeAsString());
  for (const uint64_t large : {uint64_t{0}, uint64_t{1} << 32, ~uint64_t{0}}) {
    std::string message(kValuesHeaderBytes, '\0');
    EncodeValuesHeader({large, ~large, kFrameValuesMax}, absl::MakeSpan(&message[0], message.size()));
    EXPECT_EQ(ReadKind(message).value(), FrameKind::kValues);
    const ValuesHeader header = DecodeValuesHeader(message, kValuesHeaderBytes + 4 * kFrameValuesMax).value();
    EXPECT_EQ(header.sequence, large);
    EXPECT_EQ(header.first, ~large);
    EXPECT_EQ(header.values, kFrameValuesMax);
  }
}

// Each wrong field is refused, and the text gives the allowed values.
TEST(Frame, Refusals) {
  const std::string opening = EncodeOpening(ExampleSender());
  std::string values(kValuesHeaderBytes + 8, '\0');
  EncodeValuesHeader({16, 0, 2}, absl::MakeSpan(&values[0], values.size()));
  const auto with = [](std::string message, size_t at, char byte) {
    message[at] = byte;
    return message;
  };
  const auto refusal = [](const absl::Status& status) {
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return std::string(status.message());
  };
  const auto of_values = [&](const std::string& message) {
    return refusal(DecodeValuesHeader(message.substr(0, kValuesHeaderBytes), message.size()).status());
  };
  ASSERT_TRUE(DecodeOpening(opening).ok());
  ASSERT_TRUE(DecodeValuesHeader(values, values.size()).ok());
  EXPECT_THAT(refusal(ReadKind("").status()), HasSubstr("begins with its kind, 1 or 2"));
  EXPECT_THAT(refusal(ReadKind(std::string(1, '\0')).status()), HasSubstr("of kind 0; 1 (opening) and 2 (values)"));
  EXPECT_THAT(refusal(DecodeOpening(opening.substr(0, 15)).status()), HasSubstr("has 15 bytes; it has at least 16"));
  EXPECT_THAT(refusal(DecodeOpening(with(opening, 1, 1)).status()), HasSubstr("of version 1 of the wire format; 2"));
  EXPECT_THAT(refusal(DecodeOpening(with(opening, 2, 101)).status()), HasSubstr("a job id of 101 bytes; 1 to 100"));
  EXPECT_THAT(refusal(DecodeOpening(opening + "x").status()), HasSubstr("of 9 bytes together and has 10"));
  EXPECT_THAT(refusal(DecodeOpening(values).status()), HasSubstr("the first message is no opening"));
  EXPECT_THAT(of_values(values.substr(0, 23)), HasSubstr("has 23 bytes; it has more than 24"));
  EXPECT_THAT(of_values(with(values, 1, 0)), HasSubstr("of type 0; 1 (float32) to 6 (top_k) are allowed"));
  EXPECT_THAT(of_values(with(values, 1, 7)), HasSubstr("of type 7; 1 (float32) to 6 (top_k) are allowed"));
  EXPECT_THAT(of_values(with(values, 1, 4)), HasSubstr("announces 2 int8 values and has 8 bytes of them; 6 are"));
  EXPECT_THAT(of_values(with(values, 2, 1)), HasSubstr("bytes 2 and 3 of a message of values are 1; 0 is allowed"));
  EXPECT_THAT(of_values(with(values, 1, 6)), HasSubstr("are 0; 1 to 16384 are allowed with type 6 (top_k)"));
  EXPECT_THAT(of_values(with(values, 4, 0)), HasSubstr("0 values; at least 1"));
  EXPECT_THAT(of_values(with(values, 7, '\xff')), HasSubstr("announces 4278190082 float32 values and has 8 bytes"));
  EXPECT_THAT(of_values(values + "x"), HasSubstr("announces 2 float32 values and has 9 bytes"));
}

// For each type, the length of a message is the one that docs/wire.md gives, and its header decodes to the same type.
TEST(Frame, TypesAndLengths) {
  struct Case {
    WireType type;
    uint16_t top_k;
    uint64_t values;
    uint64_t bytes;
  };
  const Case cases[] = {
      {WireType::kFloat32, 0, 65536, 262144}, {WireType::kFloat16, 0, 65536, 131072},
      {WireType::kBFloat16, 0, 3, 6},         {WireType::kInt8, 0, 65536, 66560},
      {WireType::kInt8, 0, 257, 265},         {WireType::kInt4, 0, 65536, 34816},
      {WireType::kInt4, 0, 129, 73},          {WireType::kTopK, 164, 65536, 2624},
      {WireType::kTopK, 1, 16385, 8},         {WireType::kTopK, 16384, 7, 28},
  };
  for (const Case& c : cases) {
    const ValuesHeader header = {5, 16384, c.values, c.type, c.top_k};
    EXPECT_EQ(PayloadBytes(header), c.bytes) << WireTypeText(c.type);
    std::string message(kValuesHeaderBytes, 'x');
    EncodeValuesHeader(header, absl::MakeSpan(&message[0], message.size()));
    const ValuesHeader read = DecodeValuesHeader(message, kValuesHeaderBytes + c.bytes).value();
    EXPECT_EQ(read.type, c.type);
    EXPECT_EQ(read.top_k, c.top_k);
    EXPECT_EQ(read.values, c.values);
    EXPECT_FALSE(DecodeValuesHeader(message, kValuesHeaderBytes + c.bytes + 1).ok());
  }
}

}  // namespace
}  // namespace hooke
