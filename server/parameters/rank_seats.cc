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
  if (state_ == State::kAsks || state_ == State::kSeated) seats_->Leave(*this);
}

std::optional<absl::Status> RankSeats::Stream::TryTakeSeat(const v1::Sender& sender) {
  sender_ = sender;
  return seats_->TryTake(*this);
}

void RankSeats::Stop() {
  absl::MutexLock lock(&mutex_);
  stopped_ = true;
}

std::optional<absl::Status> RankSeats::TryTake(Stream& stream) {
  absl::MutexLock lock(&mutex_);
  return Decide(stream, stream.state_ == Stream::State::kAsks ? seats_.find(KeyOf(stream.sender_)) : Ask(stream));
}

std::map<RankSeats::Key, RankSeats::Seat>::iterator RankSeats::Ask(Stream& stream) {
  const auto found = seats_.try_emplace(KeyOf(stream.sender_)).first;
  Seat& seat = found->second;
  const uint32_t incarnation = stream.sender_.incarnation();
  if (std::pair(seat.incarnation, seat.number) < std::pair(incarnation, stream.number_)) {
    seat.incarnation = incarnation;
    seat.number = stream.number_;
    // End the old stream before waiting for room, because it may be the one that must leave.
    if (seat.stream != nullptr) seat.stream->end_();
    seat.stream = nullptr;
  }
  ++seat.asking;
  stream.state_ = Stream::State::kAsks;
  stream.give_up_ = clock_->Now() + patience_;
  return found;
}

std::optional<absl::Status> RankSeats::Decide(Stream& stream, std::map<Key, Seat>::iterator found) {
  Seat& seat = found->second;
  std::optional<absl::Status> status = Decision(stream, seat);
  if (!status.has_value()) return std::nullopt;
  --seat.asking;
  stream.state_ = Stream::State::kRefused;
  if (status->ok()) {
    stream.state_ = Stream::State::kSeated;
    seat.stream = &stream;
    ++seat.streams;
  }
  Forget(found);
  return status;
}

std::optional<absl::Status> RankSeats::Decision(const Stream& stream, const Seat& seat) const {
  if (stopped_) return absl::UnavailableError("this parameter server is stopping; try again");
  if (absl::Status status = CheckLast(stream, seat); !status.ok()) return status;
  if (seat.streams < kStreamsMax) return absl::OkStatus();
  if (clock_->Now() < stream.give_up_) return std::nullopt;
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
  Seat& seat = found->second;
  if (stream.state_ == Stream::State::kAsks) {
    --seat.asking;
  } else {
    if (seat.stream == &stream) seat.stream = nullptr;
    --seat.streams;
  }
  Forget(found);
}

void RankSeats::Forget(std::map<Key, Seat>::iterator seat) {
  if (seat->second.streams == 0 && seat->second.asking == 0) seats_.erase(seat);
}

}  // namespace hooke
