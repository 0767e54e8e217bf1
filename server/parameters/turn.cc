#include "server/parameters/turn.h"

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "algorithms/finite.h"
#include "wire/steps.h"

namespace hooke {
namespace {

absl::Status CheckExchange(const ShardPlan& plan, const BlockExchange& exchange, uint64_t block) {
  if (exchange.sequence <= plan.job.first_step()) {
    return absl::InvalidArgumentError(
        absl::StrCat("header.sequence is ", exchange.sequence, "; it is at least ", plan.job.first_step() + 1));
  }
  if (exchange.sequence > kStepMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("header.sequence is ", exchange.sequence, "; it is at most ", kStepMax));
  }
  // If two ranks sent the same block, the second rank's exchange would be taken for a repeat of the first's.
  const uint64_t global = plan.blocks.begin + block;
  const Range slice = plan.SliceOf(exchange.speaker.rank);
  if (global < slice.begin || global >= slice.end) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the block at value ", exchange.first, " is not of rank ", exchange.speaker.rank, ", who exchanges blocks ",
        slice.begin, " to before ", slice.end, " of ", plan.partition.block_values(), " values"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status Turn::Prepare(const ShardPlan& plan) {
  absl::StatusOr<uint64_t> index = plan.FindBlock(exchange.first, values.size());
  if (!index.ok()) return index.status();
  if (absl::Status status = CheckExchange(plan, exchange, *index); !status.ok()) return status;
  moderate = AllModerate(values);
  if (!moderate) {
    if (absl::Status status = CheckFinite(group(), exchange.first, values); !status.ok()) return status;
  }
  id = {exchange.speaker.incarnation, exchange.sequence};
  block = *index;
  return absl::OkStatus();
}

}  // namespace hooke
