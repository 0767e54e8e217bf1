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
#include "server/records/records.h"

namespace hooke {

class SessionOutbox {
 public:
  // Adds a command. `after` is the batch for which it waits; 0: none. If the start of a group is still held, a stop of
  // that group waits for the start's batch. A stop that overtook its start would stop nothing, and the group would then
  // run on. Of clock echoes only the newest is kept.
  void Add(v1::WorkerCommand command, uint64_t after);
  // Acknowledges the group's events up to `number`. Acknowledgements of a group merge into one EventsSeen with the
  // highest number.
  void AddSeen(const GroupKey& group, uint64_t number, uint64_t after);

  // Notes that all batches up to `through` are stored. Commands that waited for them may now be sent.
  void Stored(uint64_t through);

  // Returns whether a command should be sent now. Acknowledgements that never waited for the store do not count. In a
  // large cluster most commands are acknowledgements. They only let a worker drop events that it keeps, so they may
  // wait for the next other command.
  bool HasReady() const { return !ready_.empty() || echo_.has_value() || seen_is_due_; }
  // Takes all commands that may be sent now, in the order in which to send them. That includes acknowledgements that
  // HasReady does not count.
  std::vector<v1::WorkerCommand> TakeReady();

  // Returns the approximate size of all its commands, held or not.
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

  // Returns the batch for which the start of this group is held; 0: it is not held.
  uint64_t StartIsHeldFor(const v1::GroupId& group) const;
  void AddReadySeen(const GroupKey& group, uint64_t number);

  std::deque<v1::WorkerCommand> ready_;
  std::optional<v1::WorkerCommand> echo_;
  std::map<GroupKey, uint64_t> seen_;
  bool seen_is_due_ = false;  // An acknowledgement in `seen_` has waited for the store.
  std::deque<Held> held_;
  // Acknowledgements that wait for the store. Each group has one or two, in order of `after`. The first may wait for
  // the batch that is being stored, and the second for a later one.
  std::map<GroupKey, std::deque<Seen>> held_seen_;
  size_t bytes_ = 0;
};

// Returns commands that mean the same. ClockEcho and EventsSeen that follow one another are in one batch.
std::vector<v1::WorkerCommand> InBatches(std::vector<v1::WorkerCommand> commands);

}  // namespace hooke

#endif  // HOOKE_SERVER_COORDINATOR_SESSION_OUTBOX_H_
