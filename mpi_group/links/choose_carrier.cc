#include "mpi_group/links/choose_carrier.h"

#include "absl/strings/str_cat.h"
#include "mpi_group/links/measure_links.h"

namespace hooke {
namespace {

// Gradients travel in messages from some tens of KiB to a few MiB.
constexpr double kMessageBytes = 1 << 20;

// Returns the sum of the times of one message to each peer. A bandwidth is not known if the bytes took little time
// beside the round trip. So the time for the bytes is then left out.
absl::Duration TimeOfMessages(absl::Span<const LinkFigures> links) {
  absl::Duration time;
  for (const LinkFigures& link : links) {
    time += link.round_trip / 2;
    if (link.bytes_per_second > 0) time += absl::Seconds(kMessageBytes / link.bytes_per_second);
  }
  return time;
}

}  // namespace

std::string WhyMpi(absl::Span<const LinkFigures> by_mpi, absl::Span<const LinkFigures> by_sockets) {
  const absl::Duration mpi = TimeOfMessages(by_mpi);
  const absl::Duration sockets = TimeOfMessages(by_sockets);
  if (by_mpi.empty() || mpi >= sockets) return "";
  const auto peers = static_cast<int64_t>(by_mpi.size());
  return absl::StrCat("MPI was measured to be faster: 1 MiB takes it ", absl::ToInt64Microseconds(mpi / peers),
                      " us, and sockets ", absl::ToInt64Microseconds(sockets / peers), " us");
}

absl::StatusOr<std::string> MeasureCarriers(Transport& mpi, Transport& sockets, std::vector<char>& memory,
                                            absl::Time deadline) {
  const absl::StatusOr<std::vector<LinkFigures>> by_mpi = MeasureLinks(mpi, memory, deadline);
  if (!by_mpi.ok()) return by_mpi.status();
  const absl::StatusOr<std::vector<LinkFigures>> by_sockets = MeasureLinks(sockets, memory, deadline);
  if (!by_sockets.ok()) return by_sockets.status();
  return mpi.rank() == 0 ? WhyMpi(*by_mpi, *by_sockets) : "";
}

}  // namespace hooke
