#ifndef HOOKE_SERVER_PARAMETERS_GROUP_REACHED_H_
#define HOOKE_SERVER_PARAMETERS_GROUP_REACHED_H_

// How far a group had come at one server when its generation ended.

#include <cstdint>

namespace hooke {

struct GroupReached {
  uint32_t incarnation = 0;  // The last start of the group that exchanged here in its generation; 0: none did.
  // All blocks of the server's shard have the group's work up to this step. At least the step at which the shard's
  // generation began.
  uint64_t step = 0;
};

}  // namespace hooke

#endif  // HOOKE_SERVER_PARAMETERS_GROUP_REACHED_H_
