#include "server/parameters/exchange_session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/null_sink.h>
#include <spdlog/spdlog.h>

#include <cmath>
#include <deque>
#include <limits>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "algorithms/compression.h"
#include "proto/job.pb.h"
#include "server/parameters/in_memory_storage.h"
#include "server/parameters/served_exchanges.h"
#include "server/parameters/test_center.h"
#include "server/parameters/test_clock.h"
#include "server/parameters/test_frames.h"
#include "server/parameters/test_rounds.h"

namespace hooke {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string Bytes(const grpc::ByteBuffer& message) {
  std::vector<grpc::Slice> slices;
  EXPECT_TRUE(message.Dump(&slices).ok());
  std::string bytes;
  for (const grpc::Slice& slice : slices) bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  return bytes;
}

// Takes one message, which must not wait. True: `answer` is set. False: the message was the opening.
absl::StatusOr<bool> Receive(ExchangeSession& session, const grpc::ByteBuffer& message, grpc::ByteBuffer* answer) {
  const absl::StatusOr<std::optional<v1::Sender>> opening = session.Take(message);
  if (!opening.ok()) return opening.status();
  const absl::Status status = opening->has_value() ? *session.Open(**opening) : *session.BeginTaken();
  if (!status.ok()) return status;
  if (!opening->has_value()) *answer = session.TakeAnswer();
  return !opening->has_value();
}

class ExchangeSessionTest : public ::testing::Test {
 protected:
  ExchangeSessionTest() {
    ParameterStoreOptions options;
    options.storage = std::make_shared<InMemoryStorage>();
    options.logger = std::make_shared<spdlog::logger>("test", std::make_shared<spdlog::sinks::null_sink_mt>());
    options.block_values = 4;
    store_ = ParameterStore::Open(options).value();
    EXPECT_TRUE(store_->Attach(absl::UnixEpoch(), MakeAttachRequest({})).ok());
  }

  static grpc::ByteBuffer Values(uint64_t sequence, uint64_t first, uint64_t count, float shift = 0) {
    return ValuesMessage({sequence, first}, Ramp(first, count, shift));
  }

  void Initialize() {
    InitializeSession session(store_.get());
    ASSERT_TRUE(session.Receive(absl::UnixEpoch(), OpeningMessage(MakeSender({}))).value());
    ASSERT_TRUE(session.Receive(absl::UnixEpoch(), Values(0, 4, 6)).value());
    ASSERT_TRUE(session.Receive(absl::UnixEpoch(), Values(0, 0, 4)).value());
    ASSERT_TRUE(session.Finish().ok());
  }

  std::unique_ptr<ParameterStore> store_;
};

// Several exchanges go over one stream. Each message gets one answer, whether it holds one block or all three.
TEST_F(ExchangeSessionTest, SeveralExchanges) {
  Initialize();
  ExchangeSession session(store_.get());
  grpc::ByteBuffer answer;
  EXPECT_FALSE(Receive(session, OpeningMessage(MakeSender({})), &answer).value());
  for (uint64_t sequence = 1; sequence <= 2; ++sequence) {
    const uint64_t first = sequence == 1 ? 4 : 0;
    const uint64_t count = sequence == 1 ? 4 : 10;
    ASSERT_TRUE(Receive(session, Values(sequence, first, count, 16), &answer).value());
    const ReceivedValues received = ReadValues(answer).value();
    EXPECT_EQ(received.header.first, first);
    EXPECT_EQ(received.header.sequence, sequence);
    if (sequence == 1) {
      EXPECT_THAT(received.values, Each(4.0f));
    } else {
      EXPECT_THAT(received.values, ElementsAre(4, 4, 4, 4, 3, 3, 3, 3, 4, 4));
    }
  }
}

// A rank of a group under a rule with rounds. Its message waits for those of other groups.
struct WaitingRank {
  WaitingRank(ParameterStore* store, const v1::Sender& sender)
      : session(store, [this](absl::Status status) { turned = std::move(status); }) {
    EXPECT_TRUE(session.Open(sender)->ok());
  }

  void Send(uint64_t sequence) {
    EXPECT_TRUE(session.Take(ValuesMessage({sequence, 0}, std::vector<float>(10))).ok());
    ended = session.BeginTaken();
  }
  // Goes on if a turn has ended. False: none has.
  bool GoOn() {
    if (!turned.has_value()) return false;
    ended = session.Resume(*std::exchange(turned, std::nullopt));
    return true;
  }

  std::optional<absl::Status> turned;
  std::optional<absl::Status> ended;
  ExchangeSession session;
};

// The shard's list of exchanges tells apart what a message waited for other groups, and what the server worked. The
// wait of each of the message's blocks counts.
TEST(ExchangeSessionWaits, AreToldFromWork) {
  const auto clock = std::make_shared<TestClock>();
  ParameterStoreOptions options;
  options.storage = std::make_shared<InMemoryStorage>();
  options.logger = std::make_shared<spdlog::logger>("test", std::make_shared<spdlog::sinks::null_sink_mt>());
  options.block_values = 4;
  options.wait_clock = clock;
  const std::unique_ptr<ParameterStore> store = ParameterStore::Open(options).value();
  v1::AttachRequest request = MakeRoundsRequest(v1::AveragingSpec::SYNC, 2);
  EXPECT_TRUE(store->Attach(clock->Now(), request).ok());
  {
    InitializeSession initial(store.get());
    ASSERT_TRUE(initial.Receive(clock->Now(), OpeningMessage(request.sender())).value());
    ASSERT_TRUE(initial.Receive(clock->Now(), ValuesMessage({0, 0}, std::vector<float>(10))).value());
    ASSERT_TRUE(initial.Finish().ok());
  }
  std::deque<WaitingRank> ranks;
  for (uint32_t group = 0; group < 2; ++group) {
    request.mutable_sender()->set_group(group);
    EXPECT_TRUE(store->Attach(clock->Now(), request).ok());
    ranks.emplace_back(store.get(), request.sender());
  }
  ranks[0].Send(1);
  ASSERT_FALSE(ranks[0].ended.has_value());
  clock->Advance(absl::Milliseconds(30));
  ranks[1].Send(1);  // It closes the round of its first block, and waits at the second one.
  ASSERT_FALSE(ranks[1].ended.has_value());
  clock->Advance(absl::Milliseconds(5));
  while (ranks[0].GoOn() || ranks[1].GoOn()) {
  }
  ASSERT_TRUE(ranks[0].ended.has_value() && ranks[0].ended->ok());
  ASSERT_TRUE(ranks[1].ended.has_value() && ranks[1].ended->ok());
  int64_t waits_ms[] = {0, 0};
  const std::vector<ServedRow> rows = ranks[0].session.shard()->served()->Read();
  ASSERT_EQ(rows.size(), 2u);
  for (const ServedRow& row : rows) {
    EXPECT_EQ(row.messages, 1u);
    EXPECT_EQ(row.work_ns, 0);  // The clock stood still meanwhile.
    EXPECT_EQ(row.received_bytes, 40u);
    waits_ms[row.of.group] = row.wait_ns / 1000000;
  }
  EXPECT_EQ(waits_ms[0], 35);
  EXPECT_EQ(waits_ms[1], 5);
}

struct SessionCase {
  std::vector<grpc::ByteBuffer> messages;  // The last one is refused.
  std::string message;
  absl::StatusCode code = absl::StatusCode::kInvalidArgument;
};

// Messages that an Exchange cannot take are refused, and the error tells what is wrong or allowed.
TEST_F(ExchangeSessionTest, RefusesMalformedExchanges) {
  Initialize();
  TestCenter unknown;
  unknown.job_id = "job-2";
  TestCenter strange;
  strange.job_id = "../etc";
  const grpc::ByteBuffer good = OpeningMessage(MakeSender({}));
  const SessionCase cases[] = {
      {{Values(1, 0, 4)}, "Exchange: values came before any opening; the first message is an opening"},
      {{Message("")}, "a message is empty; it begins with its kind, 1 or 2"},
      {{Message("\x03")}, "a message is of kind 3; 1 (opening) and 2 (values) are allowed"},
      {{good, good}, "Exchange: a second opening; one is allowed, first"},
      {{good, Values(1, 0, 8, std::numeric_limits<float>::infinity())}, "values are finite"},
      {{good, Values(1, 0, 3)}, "a block has 3 values from value 0 on; allowed there are 4 values from value 0 on"},
      {{good, Values(1, 1, 7)}, "a block has 3 values from value 1 on; allowed there are 4 values from value 0 on"},
      {{good, Values(1, 0, 7)}, "a block has 3 values from value 4 on; allowed there are 4 values from value 4 on"},
      {{good, Values(1, 8, 4)}, "block.first is 10; this shard holds values 0 to before 10"},
      {{good, Values(1, uint64_t{0} - 2, 4)}, "this shard holds values 0 to before 10"},
      {{good, Values(1, 0, 65)}, "Exchange: a message has 65 values; at most 16 blocks, 64 values, are allowed"},
      {{OpeningMessage(v1::Sender())}, "job id \"\": 1 to 100 characters of a-z, 0-9 and - are allowed"},
      {{OpeningMessage(MakeSender(strange))}, "job id \"../etc\": 1 to 100 characters of a-z, 0-9 and - are allowed"},
      {{OpeningMessage(MakeSender(unknown))},
       "job job-2 has no center on this server; attach to it first",
       absl::StatusCode::kNotFound},
      {{good, Values(0, 0, 4)}, "sequence is 0; it is at least 1"},
      {{OpeningMessage(MakeSender({}, 9))}, "sender.group is 9; 0 to 1 are allowed"},
  };
  for (const SessionCase& c : cases) {
    ExchangeSession session(store_.get());
    grpc::ByteBuffer answer;
    for (size_t i = 0; i + 1 < c.messages.size(); ++i) EXPECT_TRUE(Receive(session, c.messages[i], &answer).ok());
    const absl::Status status = Receive(session, c.messages.back(), &answer).status();
    EXPECT_EQ(status.code(), c.code) << c.message;
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.message));
  }
}

// Messages that an Initialize cannot take are refused, and the error tells what is wrong. The center has no values
// afterwards.
TEST_F(ExchangeSessionTest, RefusesMalformedInitialize) {
  const grpc::ByteBuffer good = OpeningMessage(MakeSender({}));
  const SessionCase cases[] = {
      {{}, "Initialize: the stream ended before the opening; the first message is an opening"},
      {{Values(0, 0, 4)}, "Initialize: values came before the opening; the first message is an opening"},
      {{good, good}, "Initialize: a second opening; one is allowed, first"},
      {{good, Message("")}, "a message is empty; it begins with its kind, 1 or 2"},
      {{good, Values(1, 0, 4)}, "Initialize: values of exchange 1; initial values have sequence 0"},
      {{good, Values(0, 0, 8), Values(0, 4, 4)}, "Initialize: the block at value 4 came twice; once is allowed"},
      {{good, Values(0, 0, 3)}, "a block has 3 values from value 0 on; allowed there are 4 values from value 0 on"},
      {{good, Values(0, 0, 4), Values(0, 8, 2)}, "Initialize: 1 of 3 blocks are missing, first the one at value 4"},
  };
  for (const SessionCase& c : cases) {
    InitializeSession session(store_.get());
    absl::Status status;
    for (const grpc::ByteBuffer& message : c.messages) {
      if (status.ok()) status = session.Receive(absl::UnixEpoch(), message).status();
    }
    if (status.ok()) status = session.Finish();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << c.message;
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.message));
  }
  EXPECT_FALSE(store_->Find(SenderOf("job-1")).value()->initialized());
}

// A repeated Initialize of a center that has values ends at once, and changes nothing.
TEST_F(ExchangeSessionTest, RepeatedInitializeChangesNothing) {
  Initialize();
  InitializeSession session(store_.get());
  EXPECT_FALSE(session.Receive(absl::UnixEpoch(), OpeningMessage(MakeSender({}))).value());
  EXPECT_TRUE(session.Finish().ok());
  EXPECT_EQ(store_->Find(SenderOf("job-1")).value()->CopyBlock(0).values, Ramp(0, 4));
}

// A group that has no right to initialize is told to attach again.
TEST_F(ExchangeSessionTest, InitializeWithoutTheRight) {
  ASSERT_TRUE(store_->Attach(absl::UnixEpoch(), MakeAttachRequest({}, 1)).ok());
  InitializeSession session(store_.get());
  ASSERT_TRUE(session.Receive(absl::UnixEpoch(), OpeningMessage(MakeSender({}, 1))).value());
  const absl::Status status = session.Receive(absl::UnixEpoch(), Values(0, 0, 4)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), HasSubstr("attach again"));
}

// The length that a message announces is the one that the encoder makes.
TEST(CompressedSession, LengthsAreTheEncoders) {
  for (uint8_t number = 1; number <= kCompressionMax; ++number) {
    for (const uint16_t top_k : {1, 164, 16384}) {
      const bool sparse = number == static_cast<uint8_t>(Compression::kTopK);
      const Encoding encoding = {static_cast<Compression>(number), sparse ? top_k : uint16_t{0}};
      for (uint64_t count = 1; count < 70000; count += 1 + count / 9) {
        const ValuesHeader header = {1, 0, count, static_cast<WireType>(number), encoding.top_k};
        ASSERT_EQ(PayloadBytes(header), EncodedBytes(encoding, count)) << CompressionName(encoding.compression);
      }
    }
  }
}

// A store with a center of 300 zeros, of a compressed job.
class CompressedSessionTest : public ::testing::TestWithParam<Compression> {
 protected:
  CompressedSessionTest() {
    TestCenter center;
    center.values = kCount;
    center.compression = static_cast<uint32_t>(GetParam());
    v1::AttachRequest request = MakeAttachRequest(center);
    if (GetParam() == Compression::kTopK) TakeGradients(*request.mutable_job());
    ParameterStoreOptions options;
    options.storage = std::make_shared<InMemoryStorage>();
    options.logger = std::make_shared<spdlog::logger>("test", std::make_shared<spdlog::sinks::null_sink_mt>());
    store_ = ParameterStore::Open(options).value();
    const absl::Status attached = store_->Attach(absl::UnixEpoch(), request).status();
    EXPECT_TRUE(attached.ok()) << attached;
    InitializeSession initial(store_.get());
    EXPECT_TRUE(initial.Receive(absl::UnixEpoch(), OpeningMessage(MakeSender(center))).ok());
    EXPECT_TRUE(initial.Receive(absl::UnixEpoch(), ValuesMessage({0, 0}, std::vector<float>(kCount))).ok());
    EXPECT_TRUE(initial.Finish().ok());
    sender_ = MakeSender(center);
  }

  // Sets a rule that sends gradients, because top_k may leave out parts of these. The test makes so few steps that the
  // center stays finite, however large the gradients are.
  static void TakeGradients(v1::JobSpecForShard& job) {
    job.set_rule(v1::AveragingSpec::ASYNC);
    job.set_top_k(0.5);
    job.set_interval(1);
    job.set_epochs(1);
    job.set_steps_per_epoch(1000);
    job.set_parameters(kCount);
    job.mutable_optimizer()->set_name(v1::OptimizerSpec::SGD);
    job.mutable_optimizer()->set_learning_rate(1e-3);
    job.mutable_schedule()->set_name(v1::ScheduleSpec::CONSTANT);
  }

  grpc::ByteBuffer Encoded(uint64_t sequence, const std::string& payload) const {
    const ValuesHeader header = {sequence, 0, kCount, static_cast<WireType>(GetParam()), encoding_.top_k};
    std::string message(kValuesHeaderBytes, '\0');
    EncodeValuesHeader(header, absl::MakeSpan(&message[0], message.size()));
    return Message(message + payload);
  }

  static constexpr uint64_t kCount = 300;
  const Encoding encoding_ = {GetParam(), GetParam() == Compression::kTopK ? TopKOf(0.5) : uint16_t{0}};
  std::unique_ptr<ParameterStore> store_;
  v1::Sender sender_;
};

// Any bytes that a peer sends as compressed values are either applied as finite values or refused. A repeat gets the
// same bytes as its answer.
TEST_P(CompressedSessionTest, AnyBytes) {
  const std::shared_ptr<Shard> shard = store_->Find(SenderOf("job-1")).value();
  std::mt19937_64 random(1);
  int taken = 0;
  for (uint64_t sequence = 1; sequence <= 500; ++sequence) {
    std::string payload(EncodedBytes(encoding_, kCount), '\0');
    std::vector<float> values(kCount);
    for (float& value : values) value = static_cast<float>(random() % 2000) / 100 - 10;
    ASSERT_TRUE(Encode(encoding_, values, absl::MakeSpan(&payload[0], payload.size())).ok());
    for (uint64_t i = random() % 4; i > 0; --i) payload[random() % payload.size()] = static_cast<char>(random());
    const grpc::ByteBuffer message = Encoded(sequence, payload);
    grpc::ByteBuffer first, again;
    ExchangeSession session(store_.get());
    ASSERT_FALSE(Receive(session, OpeningMessage(sender_), &first).value());
    const absl::Status status = Receive(session, message, &first).status();
    for (const float value : shard->CopyBlock(0).values) ASSERT_TRUE(std::isfinite(value));
    if (!status.ok()) {
      EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
      EXPECT_THAT(std::string(status.message()), HasSubstr("cannot be decoded: "));
      continue;
    }
    ++taken;
    ASSERT_TRUE(Receive(session, message, &again).value());
    ASSERT_EQ(Bytes(first), Bytes(again));
  }
  EXPECT_GT(taken, 100);
  EXPECT_EQ(shard->updates(), static_cast<uint64_t>(taken));
}

// Values of another type than the job's are refused, and the error names both types. Initial values come uncompressed.
TEST_P(CompressedSessionTest, RefusesOtherTypes) {
  ExchangeSession session(store_.get());
  grpc::ByteBuffer answer;
  ASSERT_FALSE(Receive(session, OpeningMessage(sender_), &answer).value());
  const absl::Status status = Receive(session, ValuesMessage({1, 0}, std::vector<float>(kCount)), &answer).status();
  EXPECT_THAT(std::string(status.message()),
              HasSubstr(absl::StrCat("values are of type 1 (float32); the job's averaging.compression is ",
                                     CompressionName(GetParam()))));
  InitializeSession initial(store_.get());
  ASSERT_TRUE(initial.Receive(absl::UnixEpoch(), OpeningMessage(sender_)).ok());
  const std::string zeros(EncodedBytes(encoding_, kCount), '\0');
  EXPECT_THAT(std::string(initial.Receive(absl::UnixEpoch(), Encoded(0, zeros)).status().message()),
              HasSubstr("initial values are of type 1 (float32)"));
}

INSTANTIATE_TEST_SUITE_P(Types, CompressedSessionTest,
                         ::testing::Values(Compression::kFloat16, Compression::kBFloat16, Compression::kInt8,
                                           Compression::kInt4, Compression::kTopK),
                         [](const auto& info) { return CompressionName(info.param); });

// Compression is refused if runs of values would cross the borders of blocks.
TEST_F(ExchangeSessionTest, SmallBlocksAreNotCompressed) {
  TestCenter center;
  center.job_id = "job-2";
  center.compression = 4;
  const absl::Status status = store_->Attach(absl::UnixEpoch(), MakeAttachRequest(center)).status();
  EXPECT_THAT(std::string(status.message()), HasSubstr("needs blocks of a multiple of 16384 values"));
}

}  // namespace
}  // namespace hooke
