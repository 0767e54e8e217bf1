#include "server/parameters/exchange_session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/null_sink.h>
#include <spdlog/spdlog.h>

#include <string>
#include <vector>

#include "server/parameters/in_memory_storage.h"
#include "server/parameters/test_center.h"

namespace hooke {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

class ExchangeSessionTest : public ::testing::Test {
 protected:
  ExchangeSessionTest() {
    ParameterStoreOptions options;
    options.storage = std::make_shared<InMemoryStorage>();
    options.logger = std::make_shared<spdlog::logger>("test", std::make_shared<spdlog::sinks::null_sink_mt>());
    options.block_values = 4;
    store_ = ParameterStore::Load(options).value();
    EXPECT_TRUE(store_->Attach(absl::UnixEpoch(), MakeAttachRequest({})).ok());
  }

  static v1::InitializeRequest InitializeHeader(const v1::Sender& sender) {
    v1::InitializeRequest request;
    *request.mutable_header()->mutable_sender() = sender;
    return request;
  }
  static v1::InitializeRequest InitializeBlock(uint64_t first, uint64_t count) {
    v1::InitializeRequest request;
    EncodeBlock(first, Ramp(first, count), request.mutable_block());
    return request;
  }
  static v1::ExchangeRequest Header(const v1::Sender& sender, uint64_t sequence) {
    v1::ExchangeRequest request;
    *request.mutable_header()->mutable_sender() = sender;
    request.mutable_header()->set_sequence(sequence);
    return request;
  }
  static v1::ExchangeRequest Block(uint64_t first, uint64_t count, float shift) {
    v1::ExchangeRequest request;
    EncodeBlock(first, Ramp(first, count, shift), request.mutable_block());
    return request;
  }

  void Initialize() {
    InitializeSession session(store_.get());
    ASSERT_TRUE(session.Receive(absl::UnixEpoch(), InitializeHeader(MakeSender({}))).value());
    for (const uint64_t first : {8, 0, 4})
      ASSERT_TRUE(session.Receive(absl::UnixEpoch(), InitializeBlock(first, first == 8 ? 2 : 4)).value());
    ASSERT_TRUE(session.Finish().ok());
  }

  std::unique_ptr<ParameterStore> store_;
};

// Several exchanges go over one stream, each block answered, a header before each exchange.
TEST_F(ExchangeSessionTest, SeveralExchanges) {
  Initialize();
  ExchangeSession session(store_.get());
  v1::ExchangeResponse response;
  for (uint64_t sequence = 1; sequence <= 2; ++sequence) {
    EXPECT_FALSE(session.Receive(Header(MakeSender({}), sequence), &response).value());
    ASSERT_TRUE(session.Receive(Block(4, 4, 16), &response).value());
    EXPECT_EQ(response.block().first(), 4u);
    std::vector<float> answer;
    ASSERT_TRUE(DecodeValues(response.block(), &answer).ok());
    EXPECT_THAT(answer, Each(sequence == 1 ? 4.0f : 3.0f));
  }
}

// Each message that an Exchange cannot take is refused with what is allowed.
TEST_F(ExchangeSessionTest, RefusesMalformedExchanges) {
  Initialize();
  TestCenter unknown;
  unknown.job_id = "job-2";
  TestCenter strange;
  strange.job_id = "../etc";
  v1::ExchangeRequest odd = Block(0, 4, 0);
  odd.mutable_block()->set_values("123");
  struct Case {
    std::vector<v1::ExchangeRequest> requests;  // The last one is refused.
    absl::StatusCode code;
    std::string message;
  };
  const v1::ExchangeRequest good = Header(MakeSender({}), 1);
  const absl::StatusCode kInvalid = absl::StatusCode::kInvalidArgument;
  const Case cases[] = {
      {{Block(0, 4, 0)}, kInvalid, "Exchange: a block came before any header; the first message is a header"},
      {{v1::ExchangeRequest()}, kInvalid, "Exchange: a message has neither a header nor a block; it has one of them"},
      {{good, v1::ExchangeRequest()},
       kInvalid,
       "Exchange: a message has neither a header nor a block; it has one of them"},
      {{good, odd}, kInvalid, "block.values at value 0 has 3 bytes; a multiple of 4 is allowed"},
      {{good, Block(0, 8, 0)},
       kInvalid,
       "a block has 8 values from value 0 on; allowed there are 4 values from value 0 on"},
      {{Header(v1::Sender(), 1)}, kInvalid, "job id \"\": 1 to 100 characters of a-z, 0-9 and - are allowed"},
      {{Header(MakeSender(strange), 1)},
       kInvalid,
       "job id \"../etc\": 1 to 100 characters of a-z, 0-9 and - are allowed"},
      {{Header(MakeSender(unknown), 1)},
       absl::StatusCode::kNotFound,
       "job job-2 has no center on this server; attach to it first"},
      {{Header(MakeSender({}), 0), Block(0, 4, 0)}, kInvalid, "header.sequence is 0; it is at least 1"},
      {{Header(MakeSender({}, 9), 1), Block(0, 4, 0)}, kInvalid, "sender.group is 9; 0 to 1 are allowed"},
  };
  for (const Case& c : cases) {
    ExchangeSession session(store_.get());
    v1::ExchangeResponse response;
    for (size_t i = 0; i + 1 < c.requests.size(); ++i) EXPECT_TRUE(session.Receive(c.requests[i], &response).ok());
    const absl::Status status = session.Receive(c.requests.back(), &response).status();
    EXPECT_EQ(status.code(), c.code) << c.message;
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.message));
  }
}

// Each message that an Initialize cannot take is refused with what is allowed, and the center has no values afterwards.
TEST_F(ExchangeSessionTest, RefusesMalformedInitialize) {
  struct Case {
    std::vector<v1::InitializeRequest> requests;
    std::string message;
  };
  const v1::InitializeRequest good = InitializeHeader(MakeSender({}));
  const Case cases[] = {
      {{}, "Initialize: the stream ended before the header; the first message is a header"},
      {{InitializeBlock(0, 4)}, "Initialize: a block came before the header; the first message is a header"},
      {{good, good}, "Initialize: a second header; one is allowed, first"},
      {{good, v1::InitializeRequest()}, "Initialize: a message has neither a header nor a block; it has one of them"},
      {{good, InitializeBlock(0, 4), InitializeBlock(0, 4)},
       "Initialize: the block at value 0 came twice; once is allowed"},
      {{good, InitializeBlock(0, 3)},
       "a block has 3 values from value 0 on; allowed there are 4 values from value 0 on"},
      {{good, InitializeBlock(0, 4), InitializeBlock(8, 2)},
       "Initialize: 1 of 3 blocks are missing, first the one at value 4"},
  };
  for (const Case& c : cases) {
    InitializeSession session(store_.get());
    absl::Status status;
    for (const v1::InitializeRequest& request : c.requests) {
      if (status.ok()) status = session.Receive(absl::UnixEpoch(), request).status();
    }
    if (status.ok()) status = session.Finish();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << c.message;
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.message));
  }
  EXPECT_FALSE(store_->Find("job-1").value()->initialized());
}

// A repeated Initialize of a center that has values is told so at once, and changes nothing.
TEST_F(ExchangeSessionTest, RepeatedInitializeChangesNothing) {
  Initialize();
  InitializeSession session(store_.get());
  EXPECT_FALSE(session.Receive(absl::UnixEpoch(), InitializeHeader(MakeSender({}))).value());
  EXPECT_TRUE(session.Finish().ok());
  EXPECT_EQ(store_->Find("job-1").value()->CopyBlock(0).values, Ramp(0, 4));
}

// A group that has no right to initialize is told to attach again.
TEST_F(ExchangeSessionTest, InitializeWithoutTheRight) {
  InitializeSession session(store_.get());
  ASSERT_TRUE(session.Receive(absl::UnixEpoch(), InitializeHeader(MakeSender({}, 1))).value());
  const absl::Status status = session.Receive(absl::UnixEpoch(), InitializeBlock(0, 4)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), HasSubstr("attach again"));
}

}  // namespace
}  // namespace hooke
