#include "wire/frame_buffer.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"

namespace hooke {
namespace {

constexpr size_t kAlignment = 64;
constexpr std::align_val_t kAligned{kAlignment};
// The header ends where the values begin, so that the values stay aligned.
constexpr size_t kHeaderAt = kAlignment - kValuesHeaderBytes;
// A stream's window rarely has more messages under way than this.
constexpr size_t kIdleMax = 8;

}  // namespace

struct OutgoingFrame::Shelf {
  absl::Mutex mutex;
  std::vector<std::unique_ptr<Memory>> idle ABSL_GUARDED_BY(mutex);
};

struct OutgoingFrame::Memory {
  explicit Memory(size_t bytes) : bytes(bytes), data(static_cast<char*>(::operator new(bytes, kAligned))) {}
  ~Memory() { ::operator delete(data, kAligned); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  const size_t bytes;
  char* const data;
  std::shared_ptr<Shelf> shelf;  // Null while the memory is idle.
};

OutgoingFrame::OutgoingFrame(OutgoingFrame&& other) noexcept
    : memory_(std::exchange(other.memory_, nullptr)), payload_bytes_(other.payload_bytes_) {}

OutgoingFrame::~OutgoingFrame() {
  if (memory_ != nullptr) Return(memory_);
}

absl::Span<char> OutgoingFrame::payload() const { return {memory_->data + kAlignment, payload_bytes_}; }

grpc::ByteBuffer OutgoingFrame::Seal(const ValuesHeader& header) && {
  Memory* const memory = std::exchange(memory_, nullptr);
  EncodeValuesHeader(header, {memory->data + kHeaderAt, kValuesHeaderBytes});
  const grpc::Slice slice(memory->data + kHeaderAt, kValuesHeaderBytes + payload_bytes_, Return, memory);
  return {&slice, 1};
}

void OutgoingFrame::Return(void* memory) {
  std::unique_ptr<Memory> returned(static_cast<Memory*>(memory));
  // Idle memory must not own its shelf, because then each would keep the other alive.
  const std::shared_ptr<Shelf> shelf = std::move(returned->shelf);
  absl::MutexLock lock(&shelf->mutex);
  if (shelf->idle.size() < kIdleMax) shelf->idle.push_back(std::move(returned));
}

FramePool::FramePool() : shelf_(std::make_shared<OutgoingFrame::Shelf>()) {}

FramePool::~FramePool() = default;

OutgoingFrame FramePool::Make(uint64_t payload_bytes) {
  const size_t bytes = kAlignment + payload_bytes;
  std::unique_ptr<OutgoingFrame::Memory> memory;
  {
    absl::MutexLock lock(&shelf_->mutex);
    auto& idle = shelf_->idle;
    const auto fits = std::find_if(idle.begin(), idle.end(), [bytes](const auto& m) { return m->bytes >= bytes; });
    if (fits != idle.end()) {
      memory = std::move(*fits);
      *fits = std::move(idle.back());
      idle.pop_back();
    } else if (idle.size() == kIdleMax) {
      idle.pop_back();  // All idle memory is too small. Drop one piece in favor of the larger one.
    }
  }
  if (memory == nullptr) memory = std::make_unique<OutgoingFrame::Memory>(bytes);
  memory->shelf = shelf_;
  return {memory.release(), payload_bytes};
}

absl::StatusOr<IncomingFrame> IncomingFrame::Parse(const grpc::ByteBuffer& message) {
  std::vector<grpc::Slice> slices;
  if (const grpc::Status status = message.Dump(&slices); !status.ok())
    return absl::InternalError(absl::StrCat("a message cannot be read: ", status.error_message()));
  IncomingFrame frame(std::move(slices), message.Length());
  absl::StatusOr<FrameKind> kind = ReadKind(frame.Start(1));
  if (!kind.ok()) return kind.status();
  frame.kind_ = *kind;
  return frame;
}

std::string IncomingFrame::Start(uint64_t bytes) const {
  std::string start;
  for (const grpc::Slice& slice : slices_) {
    if (start.size() == bytes) break;
    const size_t count = std::min<uint64_t>(slice.size(), bytes - start.size());
    start.append(reinterpret_cast<const char*>(slice.begin()), count);
  }
  return start;
}

absl::StatusOr<v1::Sender> IncomingFrame::Opening() const { return DecodeOpening(Start(bytes_)); }

absl::StatusOr<ValuesHeader> IncomingFrame::Header() const {
  return DecodeValuesHeader(Start(kValuesHeaderBytes), bytes_);
}

void IncomingFrame::CopyPayload(absl::Span<char> payload) const {
  char* to = payload.data();
  char* const end = to + payload.size();
  uint64_t skip = kValuesHeaderBytes;
  for (const grpc::Slice& slice : slices_) {
    const uint64_t skipped = std::min<uint64_t>(skip, slice.size());
    skip -= skipped;
    const size_t count = std::min<size_t>(slice.size() - skipped, static_cast<size_t>(end - to));
    std::memcpy(to, slice.begin() + skipped, count);
    to += count;
  }
}

void IncomingFrame::CopyValues(absl::Span<float> values) const {
  CopyPayload({reinterpret_cast<char*>(values.data()), values.size() * sizeof(float)});
}

}  // namespace hooke
