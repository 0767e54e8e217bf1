// Tests answers that none of our servers sends, over gRPC and over a Unix socket. The rank reports an error that
// describes the answer, and does not crash.
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "algorithms/compression.h"
#include "proto/parameter_server.grpc.pb.h"
#include "wire/frame.h"
#include "wire/frame_socket.h"
#include "worker/exchange/direct_stream.h"
#include "worker/exchange/grpc_server_calls.h"
#include "worker/exchange/server_calls.h"

namespace hooke {
namespace {

using ::testing::HasSubstr;

// Returns a complete message. Its values are zeros, except that the first four bytes are `start`.
std::string Answer(const ValuesHeader& header, float start) {
  std::string message(kValuesHeaderBytes + PayloadBytes(header), '\0');
  EncodeValuesHeader(header, absl::MakeSpan(&message[0], kValuesHeaderBytes));
  std::memcpy(&message[kValuesHeaderBytes], &start, sizeof start);
  return message;
}

// A gRPC server that sends `answer` after the second message of an Exchange. That message carries the first values.
class FakeService final : public v1::ParameterServer::Service {
 public:
  explicit FakeService(std::string answer) : answer_(std::move(answer)) {
    using grpc::ByteBuffer;
    using Stream = grpc::ServerReaderWriter<ByteBuffer, ByteBuffer>;
    const auto exchange = [](FakeService* service, grpc::ServerContext*, Stream* stream) {
      ByteBuffer message;
      if (!stream->Read(&message) || !stream->Read(&message)) return grpc::Status::OK;
      const grpc::Slice slice(service->answer_);
      stream->Write(ByteBuffer(&slice, 1));
      while (stream->Read(&message)) {
      }
      return grpc::Status::OK;
    };
    const auto* calls = v1::Frame::descriptor()->file()->service(0);
    MarkMethodStreamed(calls->FindMethodByName("Exchange")->index(),
                       new grpc::internal::BidiStreamingHandler<FakeService, ByteBuffer, ByteBuffer>(exchange, this));
  }

 private:
  const std::string answer_;
};

// Sends two values on a stream whose peer then sends a hostile answer. Returns how the stream ends; if it hangs, the
// test's own time limit ends it.
absl::Status EndOf(ExchangeStream& stream, const Encoding& answered) {
  const std::vector<float> values = {1, 2};
  BlocksToSend blocks = {1, 0, values};
  blocks.answered = answered;
  EXPECT_TRUE(stream.Write(blocks));
  AnsweredBlocks answer;
  EXPECT_FALSE(stream.Read(&answer));
  EXPECT_LE(answer.values.capacity(), 2u);
  return stream.Finish();
}

v1::Sender ExampleSender() {
  v1::Sender sender;
  sender.set_job_id("job-1");
  sender.set_incarnation(1);
  return sender;
}

absl::Status EndByGrpc(const std::string& answer, const Encoding& answered) {
  FakeService service(answer);
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(&service);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  absl::Status end;
  {
    const auto calls = DialServer(absl::StrCat("127.0.0.1:", port), {/*local=*/false, /*direct=*/false});
    const std::shared_ptr<ExchangeStream> stream = calls->OpenExchange(ExampleSender());
    end = EndOf(*stream, answered);
  }
  server->Shutdown(std::chrono::system_clock::now() + std::chrono::seconds(5));
  return end;
}

// Answers a Locate call with the name of a local socket.
class FakeLocateCall final : public LocateCall {
 public:
  explicit FakeLocateCall(const std::string& name) { where_.set_local_name(name); }
  absl::StatusOr<v1::LocateResponse> Run() override { return where_; }
  void Cancel() override {}

 private:
  v1::LocateResponse where_;
};

// Makes a listening socket whose name the kernel chooses.
int ListenLocally(std::string* name) {
  const int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un own = {};
  own.sun_family = AF_UNIX;
  EXPECT_EQ(bind(listener, reinterpret_cast<const sockaddr*>(&own), sizeof own.sun_family), 0);
  EXPECT_EQ(listen(listener, 1), 0);
  socklen_t length = sizeof own;
  EXPECT_EQ(getsockname(listener, reinterpret_cast<sockaddr*>(&own), &length), 0);
  name->assign(own.sun_path + 1, length - offsetof(sockaddr_un, sun_path) - 1);
  return listener;
}

absl::Status EndDirectly(const std::string& answer, const Encoding& answered) {
  std::string name;
  const int listener = ListenLocally(&name);
  std::thread server([&answer, listener] {
    const int descriptor = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    FrameSocket socket(descriptor);
    std::string opening(EncodeOpening(ExampleSender()).size(), '\0');
    EXPECT_EQ(recv(descriptor, &opening[0], opening.size(), MSG_WAITALL), static_cast<ssize_t>(opening.size()));
    float values[2];
    EXPECT_TRUE(socket.ReceiveHeader().ok());
    EXPECT_TRUE(socket.ReceivePayload({reinterpret_cast<char*>(values), sizeof values}).ok());
    // The client closes the connection after a header and a few bytes, so no more is sent.
    const size_t bytes = std::min<size_t>(answer.size(), kValuesHeaderBytes + 8);
    EXPECT_EQ(send(descriptor, answer.data(), bytes, MSG_NOSIGNAL), static_cast<ssize_t>(bytes));
    EXPECT_FALSE(socket.ReceiveHeader().ok());
  });
  DirectStreamOptions options;
  options.address = "127.0.0.1:1";
  options.sender = ExampleSender();
  options.locate = std::make_unique<FakeLocateCall>(name);
  options.open_by_grpc = [] { return nullptr; };
  const std::shared_ptr<ExchangeStream> stream = OpenDirectStream(std::move(options));
  absl::Status end = EndOf(*stream, answered);
  server.join();
  close(listener);
  return end;
}

struct HostileCase {
  ValuesHeader header;
  Encoding answered;
  std::string message;
  float start = 0;  // The first of the values.
};

// Each of these answers ends the stream with an error that names the fault, and takes no memory. One announces 16 GiB
// of values in a megabyte. One has a value too many. One has a type that does not follow from the job. One has values
// that are not finite.
TEST(HostileAnswers, EndTheStream) {
  const HostileCase cases[] = {
      {{1, 0, kFrameValuesMax, WireType::kTopK, 1}, {}, "an answer of 4294967295 values; no message with more than 2 "},
      {{1, 0, kFrameValuesMax, WireType::kTopK, 1},
       {Compression::kTopK, 1},
       "an answer of 4294967295 values; no message with more than 2 was sent"},
      {{1, 0, 3}, {}, "an answer of 3 values; no message with more than 2 was sent"},
      {{1, 0, 2, WireType::kTopK, 1}, {}, "an answer of type 6 (top_k), k 1; by the job's "},
      {{1, 0, 2, WireType::kInt4}, {Compression::kInt8, 0}, "an answer of type 5 (int4), k 0; by the job's "},
      {{1, 0, 2}, {Compression::kFloat16, 0}, "averaging.compression and rule it is 2 (float16), k 0"},
      {{1, 0, 2, WireType::kTopK, 2}, {Compression::kTopK, 1}, "rule it is 6 (top_k), k 1"},
      {{1, 6, 2}, {}, "an answer of 2 values from value 6 on has one that is not finite", std::nanf("")},
      {{1, 6, 2}, {}, "has one that is not finite", std::numeric_limits<float>::infinity()},
  };
  for (const HostileCase& c : cases) {
    const std::string answer = Answer(c.header, c.start);
    for (const absl::Status& end : {EndByGrpc(answer, c.answered), EndDirectly(answer, c.answered)}) {
      EXPECT_EQ(end.code(), absl::StatusCode::kInternal) << end;
      EXPECT_THAT(std::string(end.message()), HasSubstr(c.message));
    }
  }
}

}  // namespace
}  // namespace hooke
