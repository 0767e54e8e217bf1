#include "mpi_group/time_model.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "mpi_group/call.h"

namespace hooke {
namespace {

// How long a message of so many bytes occupies a link.
double Busy(const LinkCost& link, double bytes) { return link.overhead + link.per_byte * bytes; }

struct Stream {
  double messages = 0;
  double bytes = 0;    // The mean number of bytes in a message.
  double longest = 0;  // Bytes of the longest message.
  double window = 1;
};

double StreamSeconds(const Stream& stream, const LinkCost& link) {
  if (stream.messages < 1) return 0;
  const double busy = Busy(link, stream.bytes);
  const double trip = Busy(link, stream.longest) + link.latency;
  // The time at which the last message starts. Message k waits for the link, and for the arrival of message k - window.
  const double last = stream.messages - 1;
  const double turns = std::floor(last / stream.window);
  const double start = std::max(last * busy, turns * trip + (last - turns * stream.window) * busy);
  return start + busy + link.latency;
}

double ExchangeSeconds(double bytes, const ModelCall& call, const LinkCost& link) {
  const double chunks = std::ceil(bytes / static_cast<double>(call.chunk_bytes));
  if (chunks < 1) return 0;
  const double longest = std::min(bytes, static_cast<double>(call.chunk_bytes));
  return StreamSeconds({chunks, bytes / chunks, longest, static_cast<double>(call.window)}, link);
}

int PowerOfTwoUpTo(int n) {
  int power = 1;
  while (power <= n / 2) power *= 2;
  return power;
}

double RecursiveDoublingSeconds(const ModelCall& call, const LinkCost& link) {
  const int power = PowerOfTwoUpTo(call.ranks);
  const int extra = call.ranks - power;
  const auto bytes = static_cast<double>(call.bytes);
  const double exchange = ExchangeSeconds(bytes, call, link);
  const double steps = std::log2(power);
  if (extra == 0) return steps * exchange;
  // Ranks that start late meet only others like them in the first steps. In the later ones the message of their partner
  // is there already, and they catch up: they need no longer than the message occupies their link.
  const double late = std::ceil(std::log2(extra));
  const double chunks = std::ceil(bytes / static_cast<double>(call.chunk_bytes));
  const double busy = chunks * Busy(link, bytes / chunks);
  return std::max((steps + 1) * exchange, (late + 2) * exchange + (steps - late) * busy);
}

double HalvingDoublingSeconds(const ModelCall& call, const LinkCost& link) {
  double seconds = 0;
  // First some ranks hand over their values, so that a power of two is left. At the end they get the result.
  if (PowerOfTwoUpTo(call.ranks) != call.ranks) {
    seconds = 2 * ExchangeSeconds(static_cast<double>(call.bytes), call, link);
  }
  double bytes = static_cast<double>(call.bytes);
  for (int left = PowerOfTwoUpTo(call.ranks); left > 1; left /= 2) {
    bytes /= 2;
    seconds += 2 * ExchangeSeconds(bytes, call, link);
  }
  return seconds;
}

double RingSeconds(const ModelCall& call, const LinkCost& link) {
  const double part = static_cast<double>(call.bytes) / call.ranks;
  const uint64_t chunk = RingChunkValues({static_cast<uint64_t>(std::ceil(part)), 1, call.chunk_bytes, call.window});
  const double chunks = std::max(1.0, std::ceil(part / static_cast<double>(chunk)));
  const double window = std::min<double>(call.window, chunks);
  return StreamSeconds(
      {2 * (call.ranks - 1) * chunks, part / chunks, std::min(part, static_cast<double>(chunk)), window}, link);
}

double PairwiseSeconds(const ModelCall& call, const LinkCost& link) {
  const double part = static_cast<double>(call.bytes) / call.ranks;
  const double chunks = std::max(1.0, std::ceil(part / static_cast<double>(call.chunk_bytes)));
  const double messages = (call.ranks - 1) * chunks;
  // Chunks of several rounds are under way at once. So in the model no message waits for the window.
  return 2 * StreamSeconds({messages, part / chunks, part / chunks, messages}, link);
}

double ReferenceSeconds(const ModelCall& call, const LinkCost& link) {
  const auto bytes = static_cast<double>(call.bytes);
  const double gather = (call.ranks - 1) * Busy(link, bytes) + link.latency;
  const double chunks = std::max(1.0, std::ceil(bytes / static_cast<double>(call.chunk_bytes)));
  const double levels = std::ceil(std::log2(call.ranks));
  return gather + levels * chunks * Busy(link, bytes / chunks) + std::floor(std::log2(call.ranks)) * link.latency;
}

}  // namespace

LinkCost Shared(const LinkCost& link, int senders) {
  return {link.latency, link.overhead, link.per_byte * std::max(1, senders)};
}

double AllReduceSeconds(Algorithm algorithm, const ModelCall& call, const LinkCost& link) {
  if (call.ranks <= 1 || call.bytes == 0) return 0;
  switch (algorithm) {
    case Algorithm::kRecursiveDoubling:
      return RecursiveDoublingSeconds(call, link);
    case Algorithm::kHalvingDoubling:
      return HalvingDoublingSeconds(call, link);
    case Algorithm::kRing:
      return RingSeconds(call, link);
    case Algorithm::kPairwise:
      return PairwiseSeconds(call, link);
    case Algorithm::kReference:
      return ReferenceSeconds(call, link);
    default:
      return std::numeric_limits<double>::infinity();
  }
}

}  // namespace hooke
