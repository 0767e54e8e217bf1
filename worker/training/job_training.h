#ifndef HOOKE_WORKER_TRAINING_JOB_TRAINING_H_
#define HOOKE_WORKER_TRAINING_JOB_TRAINING_H_

// Makes the objects that train from a GroupStart, in which the coordinator and the worker describe a start of a group.

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "mpi_group/group.h"
#include "proto/job.pb.h"
#include "proto/parameter_server.pb.h"
#include "proto/worker.pb.h"
#include "worker/exchange/center_client.h"
#include "worker/exchange/server_calls.h"
#include "worker/model/arena.h"
#include "worker/model/model_layout.h"
#include "worker/training/group_training.h"

namespace hooke {

// How long a collective may take while a group starts. Ranks do not start evenly: one may load its libraries from a
// cold disk, or share its node with other jobs. Once all ranks are ready to train, `collective_timeout_seconds` is the
// limit.
constexpr absl::Duration kStartTimeout = absl::Minutes(5);

// Returns the limit of a collective once all ranks are ready to train.
absl::Duration CollectiveTimeout(const v1::GroupStart& start);

// Returns the limit of a group's collectives until all ranks are ready to train. It is kStartTimeout, or the collective
// timeout if that is longer.
absl::Duration StartTimeout(const v1::GroupStart& start);

// Checks the start. INVALID_ARGUMENT names the field that is out of range, and what is allowed. An unset field of the
// job counts as its default. The job must pass CheckJob (job/job_check.h). `ranks` is the group's size.
absl::Status CheckStart(const v1::GroupStart& start, int ranks);

// Waits until all ranks are ready to train, and sets the limit of the group's later collectives. Ranks may become ready
// at very different times. After this call they run in step, so a rank that is late has failed or hangs. Collective.
absl::Status AwaitOthers(Group& group, const v1::GroupStart& start);

// Numbers that a rank knows and that are not in the start.
struct RankNumbers {
  int rank = 0;
  uint64_t steps_per_epoch = 0;  // Steps of a group in an epoch; 0: not known.
  // Steps of a group's whole training, in all generations; 0: not known. Unset: train.epochs epochs.
  std::optional<uint64_t> steps_total = std::nullopt;
  double first_epoch = 0;  // Passes over the data before GroupStart.first_step; >= 0.
};

// Returns the options with which the group trains. `job` is the start's job with its defaults (FillDefaults). The
// fields rhythm.steps_total and `publishes` stay unset. INVALID_ARGUMENT: a value of the job is out of range.
absl::StatusOr<GroupTrainingOptions> TrainingOptionsOf(const v1::GroupStart& start, const v1::JobSpec& job,
                                                       const RankNumbers& numbers);

// Allocates memory that the ranks of a node share if the group can. The allocator is collective, and `group` outlives
// it.
ArenaAllocator GroupAllocator(Group& group);

// The center's client, and the connections that it uses.
struct DialedCenter {
  DialedCenter(std::vector<std::unique_ptr<ServerCalls>> servers, CenterOptions options)
      : servers(std::move(servers)), client(std::move(options)) {}

  std::vector<std::unique_ptr<ServerCalls>> servers;
  CenterClient client;
};

// Makes a client of the job's servers. Returns null if the start names no servers. `model` is stored with the center,
// for exports.
std::unique_ptr<DialedCenter> DialCenter(const v1::GroupStart& start, const v1::JobSpec& job,
                                         const RankNumbers& numbers, const ModelLayout& layout,
                                         const std::optional<v1::ModelDescription>& model, const ServerDialer& dial);

}  // namespace hooke

#endif  // HOOKE_WORKER_TRAINING_JOB_TRAINING_H_
