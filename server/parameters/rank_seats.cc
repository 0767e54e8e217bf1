#include "server/parameters/rank_seats.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "server/parameters/attach.h"

namespace hooke {
namespace {

// The most streams of a rank, including the one that exchanges. If a client's stream broke, it sends its blocks again,
// and that ends the waits on the old stream. So a few streams are enough.
constexpr int kStreamsMax = 4;

}  // namespace

RankSeats::Stream::Stream(RankSeats* seats, uint64_t number, std::function<void()> end)
    : seats_(seats), number_(number), end_(std::move(end)) {}

RankSeats::Stream::~Stream() {
  if (seated_) seats_->Leave(*this);
}

absl::Status RankSeats::Stream::TakeSeat(const v1::Sender& sender) {
  sender_ = sender;
  absl::Status status = seats_->Take(*this);
  seated_ = status.ok();
  return status;
}

void RankSeats::Stop() {
  absl::MutexLock lock(&mutex_);
  stopped_ = true;
  changed_.SignalAll();
}

absl::Status RankSeats::Take(Stream& stream) {
  absl::MutexLock lock(&mutex_);
  const auto found = seats_.try_emplace(KeyOf(stream.sender_)).first;
  Seat& seat = found->second;
  const uint32_t incarnation = stream.sender_.incarnation();
  if (std::pair(seat.incarnation, seat.number) < std::pair(incarnation, stream.number_)) {
    seat.incarnation = incarnation;
    seat.number = stream.number_;
    // End the old stream before waiting for room, because it may be the one that must leave.
    if (seat.stream != nullptr) seat.stream->end_();
    seat.stream = nullptr;
    changed_.SignalAll();  // Earlier streams that wait for this seat are refused now.
  }
  ++seat.waiting;
  absl::Status status = AwaitRoom(stream, seat);
  --seat.waiting;
  if (status.ok()) {
    seat.stream = &stream;
    ++seat.streams;
  }
  Forget(found);
  return status;
}

absl::Status RankSeats::AwaitRoom(const Stream& stream, Seat& seat) {
  const auto decided = [&]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return stopped_ || !CheckLast(stream, seat).ok() || seat.streams < kStreamsMax;
  };
  const absl::Time give_up = clock_->Now() + patience_;
  while (!decided() && clock_->Now() < give_up) clock_->Wait(changed_, mutex_, give_up);
  const bool in_time = decided();
  if (stopped_) return absl::UnavailableError("this parameter server is stopping; try again");
  if (absl::Status status = CheckLast(stream, seat); !status.ok()) return status;
  if (in_time) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat(kStreamsMax, " streams of rank ", stream.sender_.rank(), " of group ",
                                             stream.sender_.group(), " still wait for a round; try again"));
}

absl::Status RankSeats::CheckLast(const Stream& stream, const Seat& seat) const {
  if (stream.sender_.incarnation() != seat.incarnation) {
    return Replaced(stream.sender_.group(), stream.sender_.incarnation(), seat.incarnation);
  }
  if (stream.number_ != seat.number) return absl::UnavailableError("a later stream of this rank came first");
  return absl::OkStatus();
}

void RankSeats::Leave(const Stream& stream) {
  absl::MutexLock lock(&mutex_);
  const auto found = seats_.find(KeyOf(stream.sender_));
  if (found->second.stream == &stream) found->second.stream = nullptr;
  --found->second.streams;
  changed_.SignalAll();
  Forget(found);
}

void RankSeats::Forget(std::map<Key, Seat>::iterator seat) {
  if (seat->second.streams == 0 && seat->second.waiting == 0) seats_.erase(seat);
}

}  // namespace hooke
