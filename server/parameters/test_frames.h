#ifndef HOOKE_SERVER_PARAMETERS_TEST_FRAMES_H_
#define HOOKE_SERVER_PARAMETERS_TEST_FRAMES_H_

// Makes messages of docs/wire.md for tests.

#include <grpcpp/support/byte_buffer.h>

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "wire/frame.h"

namespace hooke {

// Returns any bytes as a message.
grpc::ByteBuffer Message(const std::string& bytes);
grpc::ByteBuffer OpeningMessage(const v1::Sender& sender);
// Returns a message of values, and sets the number of values in `header`.
grpc::ByteBuffer ValuesMessage(ValuesHeader header, absl::Span<const float> values);

struct ReceivedValues {
  ValuesHeader header;
  std::vector<float> values;
};
absl::StatusOr<ReceivedValues> ReadValues(const grpc::ByteBuffer& message);

}  // namespace hooke

#endif  // HOOKE_SERVER_PARAMETERS_TEST_FRAMES_H_
