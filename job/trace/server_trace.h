#ifndef HOOKE_JOB_TRACE_SERVER_TRACE_H_
#define HOOKE_JOB_TRACE_SERVER_TRACE_H_

// The exchanges of a job's servers in its trace: a process for each server, a thread for each rank, a span for each
// exchange. Arrows lead from the rank's phase to the span, and from there to the rank's next phase. Pure.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "job/trace/common_clock.h"
#include "job/trace/trace_line.h"

namespace hooke {

// The phases of a rank between which the arrows of an exchange lead; null: no arrow.
struct ExchangeArrows {
  const PlacedEvent* from = nullptr;  // The exchange phase in which the rank began the exchange.
  // The phase with which the rank went on. Null also if it went on before it had the answers, as jobs with
  // `averaging.delay` do.
  const PlacedEvent* to = nullptr;
};

// `phases` are those of one rank, in order of begin. An exchange begins and ends within the rank's phase, if clocks are
// as good as `error_ns` says.
ExchangeArrows ArrowsOf(const PlacedExchange& exchange, absl::Span<const PlacedEvent> phases, int64_t error_ns);

// Writes the lines of all exchanges. Times are from `origin_ns` on.
void WriteExchanges(const CommonClock& clock, absl::Span<const ExchangesOfServer> servers, int64_t origin_ns,
                    const TraceLines& lines);

// Says which servers' exchanges are missing, and why. A sentence for each reason.
std::vector<std::string> NotesOn(const CommonClock& clock, absl::Span<const ExchangesOfServer> servers);

}  // namespace hooke

#endif  // HOOKE_JOB_TRACE_SERVER_TRACE_H_
