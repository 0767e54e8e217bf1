#include "wire/grpc_status.h"

#include <gtest/gtest.h>

namespace hooke {
namespace {

// FromGrpc keeps the number and message of every code. A code that gRPC does not have becomes UNKNOWN.
TEST(GrpcStatusTest, KeepsCodesAndWords) {
  EXPECT_TRUE(FromGrpc(grpc::Status::OK).ok());
  for (int code = 1; code <= 16; ++code) {
    const absl::Status status = FromGrpc(grpc::Status(static_cast<grpc::StatusCode>(code), "why"));
    EXPECT_EQ(static_cast<int>(status.code()), code);
    EXPECT_EQ(status.message(), "why");
  }
  for (const int code : {-1, 17, 31}) {
    EXPECT_EQ(FromGrpc(grpc::Status(static_cast<grpc::StatusCode>(code), "why")), absl::UnknownError("why"));
  }
}

// The text about a message that is too large gives its size and the limit. It names the flag unless the sender refused
// the message. Texts that only look alike are not changed.
TEST(GrpcStatusTest, NamesTheFlagOfTooLargeMessages) {
  for (const char* text : {"Received message larger than max (200000 vs. 131072)",
                           "SERVER: Received message larger than max (200000 vs. 131072)"}) {
    EXPECT_EQ(FromGrpc(grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED, text)).message(),
              "a message of 200000 bytes was refused, at most 131072 are taken: hooke-server takes more with "
              "--max-message-bytes");
  }
  const char* unsent = "Sent message larger than max (200000 vs. 131072)";
  EXPECT_EQ(FromGrpc(grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED, unsent)).message(),
            "a message of 200000 bytes was refused, at most 131072 are sent");
  for (const char* text :
       {"", "the disk is full", "Received message larger than max", "message larger than max (1 vs. )",
        "message larger than max (1)", "message larger than max (a vs. b)"}) {
    EXPECT_EQ(FromGrpc(grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED, text)), absl::ResourceExhaustedError(text));
  }
}

}  // namespace
}  // namespace hooke
