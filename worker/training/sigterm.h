#ifndef HOOKE_WORKER_TRAINING_SIGTERM_H_
#define HOOKE_WORKER_TRAINING_SIGTERM_H_

// SIGTERM for a rank that a worker has started. A batch system sends SIGTERM to all processes of a job at once, before
// a preemption for example. The worker gets it, too, and asks its groups to leave. For that the ranks must live on.

namespace hooke {

// From now on SIGTERM does nothing to this process. It still ends children that this process forks or starts, such as
// those of a data loader. If the program has a handler of its own, that stays. Call it on the main thread. Idempotent.
void LeaveSigtermToWorker();

}  // namespace hooke

#endif  // HOOKE_WORKER_TRAINING_SIGTERM_H_
