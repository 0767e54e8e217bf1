#ifndef HOOKE_SERVER_PARAMETERS_TEST_FRAMES_H_
#define HOOKE_SERVER_PARAMETERS_TEST_FRAMES_H_

// Messages of docs/wire.md for tests.

#include <grpcpp/support/byte_buffer.h>

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "wire/frame.h"

namespace hooke {

// Any bytes as a message.
grpc::ByteBuffer Message(const std::string& bytes);
grpc::ByteBuffer OpeningMessage(const v1::Sender& sender);
// `header.values` is set from `values`.
grpc::ByteBuffer ValuesMessage(ValuesHeader header, absl::Span<const float> values);

struct ReceivedValues {
  ValuesHeader header;
  std::vector<float> values;
};
absl::StatusOr<ReceivedValues> ReadValues(const grpc::ByteBuffer& message);

}  // namespace hooke

#endif  // HOOKE_SERVER_PARAMETERS_TEST_FRAMES_H_
