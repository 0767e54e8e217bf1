#include "worker/exchange/direct_stream.h"

#include <algorithm>
#include <atomic>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/synchronization/mutex.h"
#include "wire/frame_socket.h"
#include "worker/exchange/blocks_frame.h"
#include "worker/report/want_of_server.h"

namespace hooke {
namespace {

// A host that stays silent for this long is probably behind a firewall that lets only gRPC's port through. If the first
// packet is lost, the kernel sends it again after one second (RFC 6298).
constexpr absl::Duration kConnectTimeout = absl::Seconds(2);

// Returns the host of an address: "::1" for "[::1]:7411".
std::string HostOf(const std::string& address) {
  const absl::string_view host = absl::string_view(address).substr(0, address.rfind(':'));
  return std::string(absl::StripSuffix(absl::StripPrefix(host, "["), "]"));
}

class SocketStream final : public ExchangeStream {
 public:
  SocketStream(int descriptor, std::string address) : socket_(descriptor), address_(std::move(address)) {}

  absl::Status Open(const v1::Sender& sender) { return socket_.SendOpening(sender); }

  bool Write(const BlocksToSend& blocks) override {
    sent_.Note(blocks);
    return socket_.SendPayload(HeaderOf(blocks), PayloadOf(blocks)).ok();
  }

  bool Read(AnsweredBlocks* answer) override {
    broken_ = ReadAnswer(answer);
    if (!broken_.ok()) socket_.Shutdown();
    return broken_.ok();
  }

  void Cancel() override {
    cancelled_ = true;
    socket_.Shutdown();
  }

  absl::Status Finish() override {
    if (cancelled_) return absl::CancelledError("cancelled");
    const absl::Status status(broken_.code(), absl::StrCat("server ", address_, ": ", broken_.message()));
    return ForWantOf(address_, refused_ ? SaidByServer(status) : status);
  }

 private:
  absl::Status ReadAnswer(AnsweredBlocks* answer) {
    absl::StatusOr<FrameSocket::Header> received = socket_.ReceiveHeader();
    // The server sent bytes that are no answer. INVALID_ARGUMENT would blame this rank's own message.
    if (absl::IsInvalidArgument(received.status())) return absl::InternalError(received.status().message());
    if (!received.ok()) return received.status();
    refused_ = !received->refusal.ok();
    if (refused_) return received->refusal;
    const ValuesHeader& header = received->values;
    const absl::StatusOr<absl::Span<char>> payload = RoomFor(header, sent_.Expected(), encoded_, answer);
    if (!payload.ok()) return payload.status();
    if (absl::Status status = socket_.ReceivePayload(*payload); !status.ok()) return status;
    return DecodeAnswer(header, *payload, answer);
  }

  FrameSocket socket_;
  const std::string address_;
  SentMessages sent_;
  std::atomic<bool> cancelled_{false};
  std::vector<char> encoded_;  // The reading thread's buffer for an encoded answer.
  absl::Status broken_;        // Why reading ended: set by the reading thread, read by Finish.
  // Whether the server itself has refused the stream. Set by the reading thread, read by Finish.
  bool refused_ = false;
};

// Decides at the first Write whether it goes through a SocketStream or through gRPC. The reader waits for the decision.
class DirectStream final : public ExchangeStream {
 public:
  explicit DirectStream(DirectStreamOptions options) : options_(std::move(options)) {}

  bool Write(const BlocksToSend& blocks) override {
    if (to_write_ == nullptr) to_write_ = Connect();
    return to_write_ != nullptr && to_write_->Write(blocks);
  }

  bool Read(AnsweredBlocks* answer) override {
    std::shared_ptr<ExchangeStream> stream;
    {
      absl::MutexLock lock(&mutex_);
      auto decided = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
        return stream_ != nullptr || cancelled_ || !failure_.ok();
      };
      mutex_.Await(absl::Condition(&decided));
      stream = stream_;
    }
    return stream != nullptr && stream->Read(answer);
  }

  void Cancel() override {
    absl::MutexLock lock(&mutex_);
    cancelled_ = true;
    options_.locate->Cancel();
    if (stream_ != nullptr) stream_->Cancel();
  }

  absl::Status Finish() override {
    std::shared_ptr<ExchangeStream> stream;
    {
      absl::MutexLock lock(&mutex_);
      if (stream_ == nullptr) return failure_.ok() ? absl::CancelledError("cancelled") : failure_;
      stream = stream_;
    }
    return stream->Finish();
  }

 private:
  // Opens the stream at the first Write. Returns null if the Locate call failed or was cancelled; failure_ then has the
  // error.
  std::shared_ptr<ExchangeStream> Connect() {
    absl::StatusOr<std::shared_ptr<ExchangeStream>> stream = MakeStream();
    absl::MutexLock lock(&mutex_);
    if (!stream.ok()) {
      failure_ = stream.status();
      return nullptr;
    }
    stream_ = *stream;
    if (cancelled_) stream_->Cancel();
    return stream_;
  }

  absl::StatusOr<std::shared_ptr<ExchangeStream>> MakeStream() {
    absl::StatusOr<v1::LocateResponse> where = options_.locate->Run();
    if (!where.ok()) return where.status();
    absl::StatusOr<int> descriptor = absl::UnavailableError("not wanted");
    if (options_.local) descriptor = ConnectLocally(where->local_name());
    if (!descriptor.ok() && options_.direct && where->port() > 0 && where->port() < 65536) {
      descriptor = ConnectTcp(HostOf(options_.address), static_cast<uint16_t>(where->port()), kConnectTimeout, [this] {
        absl::MutexLock lock(&mutex_);
        return cancelled_;
      });
    }
    if (!descriptor.ok()) return options_.open_by_grpc();
    auto stream = std::make_shared<SocketStream>(*descriptor, options_.address);
    // If this fails, the first Write fails too.
    stream->Open(options_.sender).IgnoreError();
    return stream;
  }

  const DirectStreamOptions options_;
  std::shared_ptr<ExchangeStream> to_write_;  // The writing thread's copy of stream_, read without the mutex.

  absl::Mutex mutex_;
  std::shared_ptr<ExchangeStream> stream_ ABSL_GUARDED_BY(mutex_);
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

std::shared_ptr<ExchangeStream> OpenDirectStream(DirectStreamOptions options) {
  return std::make_shared<DirectStream>(std::move(options));
}

}  // namespace hooke
