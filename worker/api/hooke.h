#ifndef HOOKE_WORKER_API_HOOKE_H_
#define HOOKE_WORKER_API_HOOKE_H_

/*
 * libhooke: a training program's part in a Hooke job, as a C99 interface.
 *
 * Each rank of each group is one process that runs the same program. A worker starts it for a job with a `command`. The
 * program can also be started by mpirun, or by itself: it is then a group without servers, of as many ranks as mpirun
 * started.
 *
 *   hooke_join      join the group
 *   hooke_register  hand over the parameters; they move into memory that belongs to the job
 *   hooke_begin     meet the servers; from now on all ranks hold the values of the center
 *   each step:
 *     hooke_gradient_ready  for each gradient, while backward goes on; optional
 *     hooke_combine         average the gradients of all ranks
 *     (the program's own optimizer changes the parameters, unless the servers do so: hooke_place.steps_locally)
 *     hooke_end_step        count the step, and exchange with the servers if it is time
 *     hooke_save_state      if hooke_state_due: keep the program's own state for a restart; optional
 *     (leave the loop if hooke_stopping says so; optional)
 *   hooke_finish    the last exchange; the servers write the center to disk
 *   hooke_leave     leave the group; or hooke_leave_at_exit
 *
 * Generations. A user may change the number of a job's groups while it runs (`hooke scale`). All its processes then end
 * as if their workers wanted them to leave (see "A step"), and the program starts anew in the new number of groups.
 * That is a new generation of the job. hooke_get_place describes the groups of the present generation, and
 * hooke_earlier_generations says what those before have done.
 *
 * Collective functions. All ranks of the group call them in the same order, with arguments of the same sizes. All other
 * functions but hooke_message say that they are not collective.
 *
 * Errors. A function returns HOOKE_OK or another hooke_code; hooke_message() has the message for people. Every function
 * returns HOOKE_INVALID_ARGUMENT if `job` or another pointer is NULL that may not be, and HOOKE_FAILED_PRECONDITION in
 * a process that was forked from a rank. Every collective function returns HOOKE_UNAVAILABLE if a rank of the group is
 * gone, HOOKE_DEADLINE_EXCEEDED if a rank did not come in time, and HOOKE_INVALID_ARGUMENT if a rank called another
 * function, or gave other sizes. The functions name only their further errors. After
 * HOOKE_INVALID_ARGUMENT and HOOKE_FAILED_PRECONDITION of a function that is not collective, the program may go on.
 * After an error of a collective function the group is lost: call hooke_fail, or end the process with an exit status
 * other than 0. The coordinator then decides whether the group is started again. Until then the functions of a step
 * return that error again.
 *
 * Time. All ranks call a collective function within 30 s of the first one. If one rank works alone for longer, for
 * instance on an evaluation or a file, give more time to all: collectives.timeout_seconds of the job, the
 * environment variable HOOKE_COLLECTIVE_TIMEOUT (like 10m) outside of one. While a group starts, its ranks wait for one
 * another for 5 minutes, or for that time if it is longer.
 *
 * Threads. One thread at a time may call into the library. hooke_gradient_ready may come from another thread than the
 * others, for as long as those calls do not overlap with others.
 *
 * Parameters are float32, bfloat16 or float16. Values lie in host memory. hooke_tensor and hooke_array have fields for
 * device memory and the caller's stream. This version of the library takes HOOKE_HOST only. It refuses other memory
 * before anything is sent, with a message that says what to do.
 *
 * Values elsewhere. A program may compute with values of its own, for instance in device memory. What hooke_register
 * has moved is then a second copy, which the program keeps up to date.
 *   It copies gradients and buffers to their registered places before hooke_gradient_ready or hooke_combine, and back
 *   after hooke_combine.
 *   It copies values to their registered places before hooke_begin, hooke_with_center, hooke_finish and hooke_leave,
 * and before hooke_end_step if hooke_values_due. It copies them back after these calls, and when hooke_with_center
 * calls its work.
 *   Where servers step with gradients (hooke_place.sends_gradients), they get those that are at the registered places
 * when hooke_end_step is called. A program that has clipped or unscaled its own copies must copy them there before.
 *
 * 16-bit values. Tensors of bfloat16 and float16 may stand beside float32 ones.
 *   Gradients of 16 bits are averaged as such: added in float32, divided, and rounded once. A mean is infinite only if
 *   it is itself out of the type's range, or if a rank's gradient is infinite.
 *   The center is float32. For each 16-bit value the library keeps a float32 master, which is what the group exchanges.
 *   Before an exchange, the master changes by as much as the program has changed the value since the library last wrote
 *   it. Afterwards the value is the master, rounded. So pulls of the center that are each too small to change a 16-bit
 *   value add up. If the master would not round to the program's value, it becomes that value.
 *   hooke_begin, and hooke_with_center for its work, give the center's values rounded. A value of the center that is
 *   out of float16's range is infinite there; the center keeps it as long as the program leaves the value alone.
 *   Buffers of 16 bits are averaged as float32 masters, and then rounded.
 *   Where servers step with gradients (hooke_place.sends_gradients), they get the 16-bit mean gradients as float32.
 * A 16-bit parameter takes 8 bytes in all, as a float32 one does: master, value and gradient. Where servers step with
 * gradients it takes 12.
 */

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Version of this interface. It grows by one if a function or a struct changes. */
#define HOOKE_API_VERSION 7

/* The rank's part in its job. Made by hooke_join, freed by hooke_leave. */
typedef struct hooke_job hooke_job;

/* The numbers are those of gRPC's and Abseil's status codes. */
typedef enum hooke_code {
  HOOKE_OK = 0,
  HOOKE_CANCELLED = 1,
  HOOKE_UNKNOWN = 2,
  HOOKE_INVALID_ARGUMENT = 3,
  HOOKE_DEADLINE_EXCEEDED = 4, /* A rank or a server did not come in time; the message names it. */
  HOOKE_NOT_FOUND = 5,
  HOOKE_ALREADY_EXISTS = 6,
  HOOKE_PERMISSION_DENIED = 7,
  HOOKE_RESOURCE_EXHAUSTED = 8,
  HOOKE_FAILED_PRECONDITION = 9, /* Something must be done first; the message says what. */
  HOOKE_ABORTED = 10,            /* This start of the group has been replaced by a later one. */
  HOOKE_OUT_OF_RANGE = 11,
  HOOKE_UNIMPLEMENTED = 12,
  HOOKE_INTERNAL = 13,
  HOOKE_UNAVAILABLE = 14, /* A rank, a server or the network is gone. */
  HOOKE_DATA_LOSS = 15,
  HOOKE_UNAUTHENTICATED = 16 /* The servers do not take the job's credential. */
} hooke_code;

/* The message of this thread's last failed call, in UTF-8, or "". Valid until the thread's next call. */
const char* hooke_message(void);

/* ---- Joining ---- */

/* Where the rank is. Strings are valid until hooke_leave. */
typedef struct hooke_place {
  const char* job;        /* The job's id; "" without a job. */
  uint32_t group;         /* 0 to groups - 1. */
  uint32_t groups;        /* Groups of the job; 1 without a job. */
  uint32_t rank;          /* 0 to ranks - 1. */
  uint32_t ranks;         /* Ranks of this group. */
  uint32_t incarnation;   /* Higher in each start, across generations, too. 1: the job's first start, or no job. */
  uint32_t has_servers;   /* 1: groups exchange with a center. */
  uint32_t steps_locally; /* 1: the program's own optimizer steps. 0: by the job's rule, the servers step. */
  /* 1: by the job's rule, the servers step with the gradients, so a group of one rank must write them, too. */
  uint32_t sends_gradients;
  uint64_t seed;    /* train.seed of the job; the same on all ranks of all groups. */
  const char* rule; /* averaging.rule of the job, for instance "elastic"; "none" without servers. */
  /* Groups may have different numbers of ranks. So these cut data into shares, of which this rank has one. */
  uint32_t ranks_before; /* Ranks of all groups below this one, together. */
  uint32_t ranks_of_all; /* Ranks of all groups together. */
} hooke_place;

/*
 * Joins the group. Collective, once in a process. `api_version` is HOOKE_API_VERSION. The environment variable
 * HOOKE_START, which the worker sets, names the file that describes this start. Without it the program runs outside of
 * a job. Starts MPI, unless the program runs alone.
 *
 * HOOKE_NOT_FOUND: the file cannot be read. HOOKE_INVALID_ARGUMENT: it, or a variable of the environment, has a bad
 * value. HOOKE_FAILED_PRECONDITION: joined before, another api_version, MPI does not offer what Hooke needs, or a
 * launcher such as torchrun has started several processes that are no group. HOOKE_CANCELLED: the process that started
 * this one has ended. If the worker is gone, now or later, the process ends with an error message.
 */
hooke_code hooke_join(uint32_t api_version, hooke_job** job);

/* Fills in `*place`. At any time after hooke_join; not collective. It cannot fail otherwise than as all do. */
hooke_code hooke_get_place(const hooke_job* job, hooke_place* place);

/* What a group had done when its generation ended. */
typedef struct hooke_share {
  uint32_t ranks;     /* Ranks of the group. */
  uint64_t last_step; /* The group's last step that counts; at least hooke_generation.first_step. */
} hooke_share;

/* A generation of the job that has ended. */
typedef struct hooke_generation {
  uint64_t first_step; /* The step from which all of its groups counted. */
  uint32_t groups;
  const hooke_share* shares; /* Of each group. */
} hooke_generation;

/*
 * Returns the job's earlier generations, oldest first, and the step from which all groups of the present one count.
 * From this a program knows which data is left: in a generation, group g has done the steps from first_step to its
 * last_step. `*first_step` is at least the last step of each earlier group, so no step number comes twice. Without
 * earlier generations `*count` and `*first_step` are 0. The memory is valid until hooke_leave. Not collective; the same
 * on all ranks of all groups.
 */
hooke_code hooke_earlier_generations(const hooke_job* job, const hooke_generation** generations, size_t* count,
                                     uint64_t* first_step);

/* ---- Parameters ---- */

typedef enum hooke_type {
  HOOKE_FLOAT32 = 0,
  HOOKE_FLOAT64 = 1,
  HOOKE_BFLOAT16 = 2,
  HOOKE_FLOAT16 = 3,
  HOOKE_INT32 = 4,
  HOOKE_INT64 = 5
} hooke_type;

typedef enum hooke_kind {
  HOOKE_PARAMETER = 0, /* Has a gradient. */
  /* Has no gradient; changed by forward passes, for instance the running mean of a batch norm. Averaged over the
     group's ranks at each step, and exchanged with the center. */
  HOOKE_BUFFER = 1
} hooke_kind;

#define HOOKE_HOST (-1)

typedef struct hooke_tensor {
  const char* name;      /* In: unique, 1 to 1024 bytes of UTF-8. The exported model has it. */
  const uint64_t* shape; /* In: `dimensions` extents, outermost first; row-major without gaps. */
  uint32_t dimensions;   /* In: 0 to 16; 0 is a scalar. */
  uint32_t kind;         /* In: a hooke_kind. */
  uint32_t type;         /* In: HOOKE_FLOAT32, HOOKE_BFLOAT16 or HOOKE_FLOAT16. The same on all ranks of the group. */
  int32_t device;        /* In: HOOKE_HOST, or the number of a CUDA device. This version takes HOOKE_HOST. */
  void* stream;          /* In: the CUDA stream that the caller uses for the tensor; NULL in host memory. */
  void* values;          /* In: the initial values. Out: the values' new place. */
  void* gradient;        /* Out: the place of the gradient, zeroed; NULL for a buffer. */
} hooke_tensor;

/*
 * Registers all tensors of the model and moves their values. Collective, once. From now on the model computes in the
 * memory that `values` and `gradient` point to. It belongs to the job, lives until hooke_leave, and is aligned to 4
 * bytes, for 16-bit tensors to 64. The old memory is not used any more.
 *
 * Give parameters in the order in which forward uses them: gradients then become ready from the last to the first, and
 * can travel while backward goes on. All parameters come before all buffers.
 *
 * HOOKE_INVALID_ARGUMENT on all ranks: a bad value, or the ranks' lists differ; the message names the first tensor that
 * differs. HOOKE_FAILED_PRECONDITION: registered before. HOOKE_RESOURCE_EXHAUSTED: too little memory.
 */
hooke_code hooke_register(hooke_job* job, hooke_tensor* tensors, size_t count);

/*
 * What the program knows of its own length. Give zeros for what it does not know. Under rules by which servers step the
 * center, all but `elastic` and `none`, it is the same in all groups; if not, hooke_begin fails. Other groups do not
 * wait for a group that has made steps_total steps or has called hooke_finish.
 */
typedef struct hooke_plan {
  /* The step after which a group's training ends, counted from the job's begin: in a later generation, its first step
     plus what is left. 0: not known. A number below the generation's first step counts as that one. */
  uint64_t steps_total;
  uint64_t steps_per_epoch; /* Steps of a group in an epoch, a pass of all groups together; 0: not known. */
  /* Passes over the data by all groups before this generation. 0: if there are earlier ones, the library works it out
     from steps_per_epoch. That is right if each rank takes as many samples in each step of all generations. */
  double epochs_done;
} hooke_plan;

/*
 * Begins to train. Collective, once, after hooke_register. The first group of the job creates the center from its own
 * values. Every other group takes the center's values, and so does a group that is started again (but see
 * hooke_save_state). Afterwards all ranks hold the same values. `*first_step` is the step from which the group goes on:
 * the number of steps that it has done already in earlier starts. In a later generation it is at least the first step
 * of hooke_earlier_generations.
 *
 * HOOKE_INVALID_ARGUMENT: epochs_done is negative or not finite. HOOKE_UNAVAILABLE, HOOKE_DEADLINE_EXCEEDED: a server
 * did not answer. HOOKE_UNAUTHENTICATED: a server does not take the job's credential. HOOKE_ABORTED: this start of the
 * group has been replaced by a later one.
 * HOOKE_FAILED_PRECONDITION: not registered, or begun before. Or the center has another layout; the message names the
 * first tensor that differs. Or the job needs steps_per_epoch, or has another collectives.aggregation than `allreduce`,
 * or another group's plan differs; the message has both lengths.
 */
hooke_code hooke_begin(hooke_job* job, const hooke_plan* plan, uint64_t* first_step);

/*
 * ---- A step ----
 *
 * A worker may want the group to leave, because it is drained or shut down, or because a user has changed the number of
 * groups. The hooke_end_step of the next step then
 * exchanges with the servers and makes a state due, and the hooke_combine after it returns HOOKE_CANCELLED on all
 * ranks. The program ends by hooke_fail with that code, as after any error, and the group starts again elsewhere from
 * there.
 */

/*
 * Says that the gradient of tensors[index] is complete in this step; the library may change it from now on. Optional
 * for each tensor: hooke_combine takes the others. Not collective: ranks may call it for different tensors, in any
 * order. HOOKE_INVALID_ARGUMENT: there is no such parameter. HOOKE_FAILED_PRECONDITION: called for this tensor since
 * the last hooke_combine, or training has not begun or has ended.
 */
hooke_code hooke_gradient_ready(hooke_job* job, size_t index);

/*
 * Combines the step's gradients: afterwards each gradient is the mean over the ranks, and each buffer, too. Collective.
 *
 * `loss` is this rank's loss of the step, and NaN if the program does not know it. If the program's own loss came out
 * as NaN, it gives INFINITY, so that hooke_end_step says that training has diverged. Returns the ranks' mean in
 * `*mean_loss`, unless NULL. `used`, unless NULL, has a byte for each parameter: 1 if this rank's gradient of it was
 * computed. Afterwards it is 1 if any rank's was. A gradient that no rank computed is averaged, too. So it stays zero
 * if all ranks left it zero.
 *
 * If gradients are accumulated over several backward passes, the program may combine once after the last one, or after
 * each one. Combining gradients that are equal on all ranks does not change them.
 *
 * HOOKE_FAILED_PRECONDITION: training has not begun, or has ended. HOOKE_CANCELLED: the group is to leave (see "A
 * step").
 */
hooke_code hooke_combine(hooke_job* job, float loss, float* mean_loss, uint8_t* used);

typedef struct hooke_step {
  uint64_t samples; /* Samples of this rank in the step; 0: not known. */
  double epoch;     /* Passes over the data so far, by all groups together; 0: from the plan, if it is known. */
} hooke_step;

/*
 * Counts the step, and exchanges with the servers if the job's rule and interval say so. Collective, after
 * hooke_combine and the optimizer. If a step is to be skipped, for instance because gradients overflowed, all ranks
 * leave this call out and zero the gradients. `*step`, unless NULL, is the number of steps done by the group.
 *
 * HOOKE_INVALID_ARGUMENT: the mean of the losses that the ranks gave is not finite: training has diverged.
 * HOOKE_FAILED_PRECONDITION: there was no hooke_combine since the last step. HOOKE_ABORTED: this start of the group has
 * been replaced by a later one. A server that does not answer is no error; the group trains on and tries again later.
 */
hooke_code hooke_end_step(hooke_job* job, const hooke_step* done, uint64_t* step);

/*
 * Returns 1 in `*due` if the next hooke_end_step reads or changes the registered values; for programs that keep their
 * values elsewhere. Between hooke_combine and hooke_end_step; not collective; the same on all ranks.
 * HOOKE_FAILED_PRECONDITION: called at another time.
 */
hooke_code hooke_values_due(hooke_job* job, int* due);

/*
 * Says that the whole job is to stop before its last step, for instance because an evaluation is good enough. Not
 * collective; one rank of one group is enough. The job then ends as one that has made all of its steps.
 * HOOKE_FAILED_PRECONDITION: training has not begun.
 */
hooke_code hooke_stop(hooke_job* job);

/*
 * Returns 1 in `*stopping` if the job is to stop. Not collective; the same on all ranks of the group, because it
 * changes only in hooke_combine. The program then calls hooke_finish after the step, instead of making more steps. The
 * group's other ranks learn of a hooke_stop in the next hooke_combine. Other groups learn of it after the hooke_finish
 * of the group that stops, within about a second. Groups that have not stopped train on, and nobody waits for those
 * that have. 0 before hooke_begin.
 */
hooke_code hooke_stopping(hooke_job* job, int* stopping);

/* ---- The program's own state ---- */

/*
 * The servers keep one blob of bytes for each rank. A program puts into it what it needs besides the parameters to go
 * on after a restart of its group: its optimizer's state, random generators, its place in the data. Without servers
 * nothing is kept, and no state is due.
 *
 * A restarted group goes on from the newest state that all its ranks have kept. Under the rule `none`, Hooke keeps the
 * registered values, too. It also does so under the rule `average`, if the job has one group and no delay, fragments or
 * compression. Then `*first_step` of hooke_begin is the step of that state, and the values are those of that step. So a
 * program that puts all of its state into the blob ends with the same values, bit by bit, as one that was not
 * restarted. Otherwise the values are the center's, and the state may be somewhat older than they are.
 */

/*
 * Returns 1 in `*due` if the state as it is after the last hooke_end_step, or after hooke_begin, is to be saved. Not
 * collective; the same on all ranks. Hooke decides by time: about every train.state_seconds (30 by default), or less
 * often if saving takes long. After hooke_begin a state may be due at once. Later ones become due only right after an
 * exchange with the servers, except under the rule `none`. If it is due, each rank calls hooke_save_state before its
 * next hooke_combine. 0 before hooke_begin and after hooke_finish.
 */
hooke_code hooke_state_due(hooke_job* job, int* due);

/*
 * Saves this rank's state, `size` bytes. Not collective. Returns when the server has it on its disk. Until all ranks
 * have saved theirs, a restart would go on from the states before them. If the server does not take it, a notice goes
 * to the job's log, and the result is HOOKE_OK. The states of a job may take 16 GiB on each server.
 *
 * HOOKE_FAILED_PRECONDITION: no state is due; nothing has changed. HOOKE_ABORTED: this start of the group has been
 * replaced by a later one.
 */
hooke_code hooke_save_state(hooke_job* job, const void* state, size_t size);

/*
 * Gives back the state that this rank saved in an earlier start of the group, and the step after which it did. After
 * hooke_begin; not collective. `*state` is NULL, `*size` 0, and `*step` 0 if there is none. It is valid until
 * hooke_leave. `step` may be NULL. The library does not look into the bytes. HOOKE_FAILED_PRECONDITION: training has
 * not begun.
 */
hooke_code hooke_saved_state(hooke_job* job, const void** state, size_t* size, uint64_t* step);

/* ---- The center ---- */

/*
 * Calls `work` while the registered values are the center's; then puts the group's own values back. Collective.
 * Without servers the values are the group's own. If a server is away, `work` is not called, a notice goes to the job's
 * log, and the result is HOOKE_OK. If `work` returns another value than 0, the result is HOOKE_INTERNAL.
 * HOOKE_FAILED_PRECONDITION: training has not begun, or a step has begun and is not combined.
 */
hooke_code hooke_with_center(hooke_job* job, int (*work)(void* argument), void* argument);

/*
 * Reports an evaluation of the center to the job; `hooke watch` shows it. Not collective; rank 0's report counts.
 * `accuracy` is a fraction, 0 to 1; `loss` is the mean over `samples` samples.
 */
hooke_code hooke_evaluated(hooke_job* job, double accuracy, double loss, uint64_t samples);

/* A number under a name: 1 to 64 bytes of visible UTF-8. NaN and infinity are allowed. */
typedef struct hooke_metric {
  const char* name;
  double value;
} hooke_metric;

/*
 * Does what hooke_evaluated does, with further numbers, at most 32. `accuracy` and `loss` may be NaN, and `samples` 0,
 * if there are none. HOOKE_INVALID_ARGUMENT: a name is not allowed, or there are too many; nothing was reported.
 */
hooke_code hooke_evaluated_metrics(hooke_job* job, double accuracy, double loss, uint64_t samples,
                                   const hooke_metric* metrics, size_t count);

/* ---- Collectives for the program's own needs, on any host memory ---- */

typedef enum hooke_reduction { HOOKE_SUM = 0, HOOKE_MEAN = 1, HOOKE_MIN = 2, HOOKE_MAX = 3 } hooke_reduction;

/* Values of one type without gaps, aligned as the type is. They stay the caller's. */
typedef struct hooke_array {
  void* values;   /* May be NULL if `count` is 0. */
  uint64_t count; /* Number of values. */
  uint32_t type;  /* A hooke_type. */
  int32_t device; /* HOOKE_HOST, or the number of a CUDA device. This version takes HOOKE_HOST. */
  void* stream;   /* The CUDA stream that the caller uses for the values; NULL in host memory. */
} hooke_array;

/*
 * Each of these is collective, at any time after hooke_join, but not between the first hooke_gradient_ready of a step
 * and its hooke_combine: HOOKE_FAILED_PRECONDITION. HOOKE_INVALID_ARGUMENT: there is no such type, reduction or root,
 * or the values are on a device; nothing was sent, but the other ranks wait.
 */

/* Afterwards every rank has the reduction of all ranks' values, bitwise the same. 16-bit values are added in float32
   and rounded once. The mean of integers is rounded toward 0. */
hooke_code hooke_all_reduce(hooke_job* job, const hooke_array* array, hooke_reduction reduction);
/* Afterwards every rank has the values of rank `root`. */
hooke_code hooke_broadcast(hooke_job* job, const hooke_array* array, uint32_t root);
/* `array` has the same number of values for each rank, one rank after the other, and rank r has filled in its own.
   Afterwards every rank has all. HOOKE_INVALID_ARGUMENT also if the count is no multiple of the number of ranks. */
hooke_code hooke_all_gather(hooke_job* job, const hooke_array* array);
/* Returns after all ranks have called it. */
hooke_code hooke_barrier(hooke_job* job);

/* ---- Reports and the end ---- */

/*
 * Reports metrics of the program's own, for instance its perplexity. `hooke watch` and `hooke jobs` show the last value
 * of each name beside the group's loss. Not collective; rank 0's count. May be called at any time after hooke_join, and
 * costs little. HOOKE_INVALID_ARGUMENT: a name is not allowed, or the group has 32 metrics of other names already;
 * those before it in `metrics` were taken.
 */
hooke_code hooke_report_metrics(hooke_job* job, const hooke_metric* metrics, size_t count);

/* Sends a text in UTF-8 to the job's log, as one line: line ends and control characters become visible ones. Not
   collective; at any time after hooke_join. */
hooke_code hooke_notice(hooke_job* job, const char* text);

/*
 * Ends training. Collective, once: a last exchange, which every server must take, and the servers write the center to
 * disk. Afterwards hooke_with_center and the collectives may still be called, but no step.
 *
 * HOOKE_FAILED_PRECONDITION: training has not begun, has ended already, or a step is not combined. HOOKE_UNAVAILABLE,
 * HOOKE_DEADLINE_EXCEEDED: a server did not take the last exchange. HOOKE_ABORTED: this start of the group has been
 * replaced by a later one.
 */
hooke_code hooke_finish(hooke_job* job);

/*
 * Leaves the group, frees the job and its memory, and ends MPI. Collective. Ends training, if hooke_begin was called
 * and hooke_finish was not. After an error the process should end by hooke_fail. If the error came after the rank had
 * left, all other calls with the job return HOOKE_FAILED_PRECONDITION.
 */
hooke_code hooke_leave(hooke_job* job);

/*
 * Leaves the group when the process ends by exit(), which is also what happens after main has returned. Not collective.
 * It may be called at any time after hooke_join, and again with another message. If the exit status is 0, the process
 * does what hooke_leave does; an error of that is reported as by hooke_fail. If it is another one, the rank gives up as
 * by hooke_fail with HOOKE_INVALID_ARGUMENT, and the process keeps its exit status. If a collective function has failed
 * before, the code is that error's: an exit after the loss of a rank or a server lets the group start again. `message`
 * is the reason. If it is NULL, the reason names the exit status. Nothing happens if the job was left before without an
 * error, and in a forked process. HOOKE_RESOURCE_EXHAUSTED: the process has no room for another exit handler.
 */
hooke_code hooke_leave_at_exit(hooke_job* job, const char* message);

/*
 * Tells the job that this rank gives up, and why, then ends the process at once with exit status 1, without exit
 * handlers. The other ranks of the group end, too. Not collective. `code` decides what the coordinator does. After
 * HOOKE_UNAVAILABLE, HOOKE_DEADLINE_EXCEEDED, HOOKE_ABORTED, HOOKE_CANCELLED and HOOKE_RESOURCE_EXHAUSTED it starts the
 * group again. After others the job fails; for a fault of the program, HOOKE_INVALID_ARGUMENT is right. `job` may be
 * NULL: then it only ends the process.
 */
void hooke_fail(hooke_job* job, hooke_code code, const char* message);

#ifdef __cplusplus
}
#endif

#endif /* HOOKE_WORKER_API_HOOKE_H_ */
