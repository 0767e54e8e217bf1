#ifndef HOOKE_SERVER_COORDINATOR_SESSION_OUTBOX_H_
#define HOOKE_SERVER_COORDINATOR_SESSION_OUTBOX_H_

// The commands that wait to be sent to one worker. A command either may go at once, or is held until the change that it
// depends on is stored. Knows no threads, streams or stores; the Coordinator calls it under its mutex.
//
// A change is named by the number of the batch that stores it (write_queue.h). Numbers only grow.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "proto/coordinator.pb.h"
#include "server/coordinator/records.h"

namespace hooke {

class SessionOutbox {
 public:
  // `after` is the batch to wait for; 0: none. A stop whose start is still held waits for the same batch: a stop that
  // overtook its start would stop nothing, and the group would then run on. Of clock echoes only the newest is kept.
  void Add(v1::WorkerCommand command, uint64_t after);
  // Acknowledges the group's events up to `number`. Acknowledgements of a group merge into one EventsSeen with the
  // highest number.
  void AddSeen(const GroupKey& group, uint64_t number, uint64_t after);

  // All batches up to `through` are stored: commands that waited for them may go.
  void Stored(uint64_t through);

  // Whether a command should go now. Acknowledgements that never waited for the store do not count. They are most of
  // all commands of a large cluster, and only let a worker forget what it sent, so they go when the next command goes.
  bool HasReady() const { return !ready_.empty() || echo_.has_value() || seen_is_due_; }
  // Takes the commands that may go, also those for which HasReady is false, in the order in which to send them.
  std::vector<v1::WorkerCommand> TakeReady();

  // The approximate size of all commands in it, held or not.
  size_t bytes() const { return bytes_; }

 private:
  struct Held {
    uint64_t after = 0;
    v1::WorkerCommand command;
  };
  struct Seen {
    uint64_t after = 0;
    uint64_t number = 0;
  };

  // The batch that the start of this group is held for; 0: it is not held.
  uint64_t StartIsHeldFor(const v1::GroupId& group) const;
  void AddReadySeen(const GroupKey& group, uint64_t number);

  std::deque<v1::WorkerCommand> ready_;
  std::optional<v1::WorkerCommand> echo_;
  std::map<GroupKey, uint64_t> seen_;
  bool seen_is_due_ = false;  // One of seen_ had waited for the store.
  std::deque<Held> held_;
  // Each group has one or two entries, in order of `after`: for the batch that is being stored, and for a later one.
  std::map<GroupKey, std::deque<Seen>> held_seen_;
  size_t bytes_ = 0;
};

}  // namespace hooke

#endif  // HOOKE_SERVER_COORDINATOR_SESSION_OUTBOX_H_
