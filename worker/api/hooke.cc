#include "worker/api/hooke.h"

#include <unistd.h>

#include <cstdlib>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "job/visible_text.h"
#include "mpi_group/call.h"
#include "mpi_group/data_type.h"
#include "mpi_group/group.h"
#include "mpi_group/tensor_list.h"
#include "proto/worker.pb.h"
#include "worker/api/launcher.h"
#include "worker/api/rank_job.h"
#include "worker/exchange/grpc_server_calls.h"
#include "worker/training/job_training.h"
#include "worker/training/rank_process.h"

struct hooke_job {
  std::unique_ptr<hooke::RankProcess> process;
  std::unique_ptr<hooke::RankJob> rank;  // Null after hooke_leave has failed at its end.
  pid_t pid = 0;
  int number = -1;  // The rank's number in its group.
};

namespace hooke {
namespace {

constexpr char kProgram[] = "hooke";
constexpr char kStartVariable[] = "HOOKE_START";
// In a job the worker's --collective-timeout counts.
constexpr char kTimeoutVariable[] = "HOOKE_COLLECTIVE_TIMEOUT";

std::string& Message() {
  thread_local std::string message;
  return message;
}

hooke_code Answer(const absl::Status& status) {
  if (status.ok()) return HOOKE_OK;
  Message() = std::string(status.message());
  return static_cast<hooke_code>(status.code());
}

// After the rank has left the group it cannot go back, even if ending MPI failed then.
absl::Status HasLeft() {
  return absl::FailedPreconditionError(
      "the rank has left the group already, but its end failed: end the process by hooke_fail");
}

// Runs `body`, or returns an error if the job cannot be used in this process. An exception of `body` becomes an error
// code, because the caller is C.
hooke_code Guarded(const hooke_job* job, const std::function<absl::Status()>& body) try {
  if (job == nullptr) return Answer(absl::InvalidArgumentError("the job is NULL: call hooke_join first"));
  if (job->pid != getpid()) {
    return Answer(absl::FailedPreconditionError(
        "this process was forked from a rank, for instance as a data loader; only the rank itself may use the job"));
  }
  if (job->rank == nullptr) return Answer(HasLeft());
  return Answer(body());
} catch (const std::exception& error) {
  return Answer(absl::InternalError(error.what()));
}

// Returns the start of a group outside of any job. mpirun started it, or the user's shell as a single process.
absl::StatusOr<v1::GroupStart> StartWithoutJob() {
  v1::GroupStart start;
  if (const char* const text = std::getenv(kTimeoutVariable); text != nullptr) {
    absl::Duration timeout;
    if (!absl::ParseDuration(text, &timeout) || timeout < absl::Milliseconds(1) || timeout > absl::Hours(24)) {
      return absl::InvalidArgumentError(
          absl::StrCat(kTimeoutVariable, " must be a duration from 1ms to 24h, like 10m, got ", Escaped(text)));
    }
    start.set_collective_timeout_seconds(absl::ToDoubleSeconds(timeout));
  }
  start.set_task(v1::GroupStart::TRAIN);
  start.set_incarnation(1);
  return start;
}

absl::StatusOr<std::unique_ptr<RankProcess>> StartProcess() {
  const char* const path = std::getenv(kStartVariable);
  RankProcessOptions options;
  options.program = kProgram;
  options.mpi = path != nullptr || HasMpiLauncher(std::getenv);
  options.quiet = true;
  absl::StatusOr<v1::GroupStart> start = path == nullptr ? StartWithoutJob() : ReadStartFile(path);
  if (!start.ok()) return start.status();
  if (path != nullptr && !EndWithLauncher())
    return absl::CancelledError("the process that started this rank has ended");
  return RankProcess::Start(*start, std::move(options));
}

absl::Status Join(uint32_t api_version, hooke_job** job) {
  static bool joined = false;
  if (job == nullptr) return absl::InvalidArgumentError("hooke_join: `job` is NULL");
  if (api_version != HOOKE_API_VERSION) {
    return absl::FailedPreconditionError(absl::StrCat("the program wants version ", api_version,
                                                      " of libhooke's interface, and this library has version ",
                                                      HOOKE_API_VERSION, "; install matching versions"));
  }
  if (joined) return absl::FailedPreconditionError("this process has joined already; a process joins once");
  joined = true;
  absl::StatusOr<std::unique_ptr<RankProcess>> process = StartProcess();
  if (!process.ok()) return process.status();
  const auto ranks = static_cast<uint32_t>((*process)->group().size());
  v1::GroupStart start = (*process)->start();
  if (std::getenv(kStartVariable) == nullptr) {
    if (absl::Status status = CheckLauncher(ranks, std::getenv); !status.ok()) return status;
    start.mutable_job()->mutable_groups()->set_count(1);
    start.mutable_job()->mutable_groups()->set_ranks(ranks);
  } else if (absl::Status status = CheckStart(start, static_cast<int>(ranks)); !status.ok()) {
    return status;
  }
  (*process)->reporter().Enter(v1::RankProgress::STARTING);
  auto made = std::make_unique<hooke_job>();
  made->pid = getpid();
  made->number = (*process)->group().rank();
  RankJob::Dependencies deps;
  deps.group = &(*process)->group();
  deps.reporter = &(*process)->reporter();
  deps.dial = [options = DialOptionsOf(start)](const std::string& address) { return DialServer(address, options); };
  made->rank = std::make_unique<RankJob>(start, deps);
  made->process = *std::move(process);
  *job = made.release();
  return absl::OkStatus();
}

// Returns the error with what the program was doing in front of its message. The message itself speaks only of
// collectives.
absl::Status During(absl::string_view what, const absl::Status& status) {
  if (status.ok()) return status;
  return absl::Status(status.code(), absl::StrCat(what, ": ", status.message()));
}

absl::Status Leave(hooke_job* job) {
  if (job->rank->NeedsFinish()) {
    if (absl::Status status = job->rank->Finish(); !status.ok()) return During("leaving the job", status);
  }
  // No rank leaves before all have come, because a rank that has left looks like one that died.
  absl::Status status = job->rank->Collective([](Group& group) { return group.Barrier(); });
  if (!status.ok()) return During("leaving the job", status);
  const uint64_t steps = job->rank->step();
  job->rank.reset();
  return job->process->Finish(steps);
}

// Returns the lines of a text, for example a traceback, as one line. It has no characters that could control a
// terminal.
std::string OneLine(absl::string_view text) {
  std::vector<std::string> lines;
  for (absl::string_view line : absl::StrSplit(text, absl::ByAnyChar("\r\n"), absl::SkipWhitespace())) {
    lines.push_back(Escaped(absl::StripAsciiWhitespace(line)));
  }
  return absl::StrJoin(lines, "; ");
}

// What hooke_leave_at_exit was told. A process joins once, so it has one AtExit.
struct AtExit {
  hooke_job* job = nullptr;  // The job to leave when the process exits. Null: there is nothing to do.
  std::optional<std::string> message;
};

AtExit& AtExitOfProcess() {
  // Never destroyed, because the exit handler may run after the destructors of static objects.
  static AtExit* const at_exit = new AtExit();
  return *at_exit;
}

// Reports the failure with its whole text, for example a traceback, and ends the process. The standard error gets only
// the first line, because a program that raises an exception has usually printed its traceback already.
[[noreturn]] void GiveUp(hooke_job* job, absl::StatusCode code, absl::string_view text, int exit_status) {
  int rank = -1;
  // A forked process must not touch the rank's objects.
  if (job != nullptr && job->pid == getpid() && job->process != nullptr) {
    rank = job->number;
    job->process->ReportFailure(absl::Status(code, OneLine(text)));
  }
  const std::vector<absl::string_view> lines = absl::StrSplit(text, absl::MaxSplits(absl::ByAnyChar("\r\n"), 1));
  EndWithoutRank(kProgram, rank, absl::Status(code, OneLine(lines.front())), exit_status);
}

absl::Status LeaveOrError(hooke_job* job) try { return Leave(job); } catch (const std::exception& error) {
  return absl::InternalError(error.what());
}

// The handler of exit(). It must not use Message(): that is thread-local, and exit() destroys it first.
void EndAtExit(int exit_status, void* /*argument*/) {
  const AtExit& at_exit = AtExitOfProcess();
  hooke_job* const job = at_exit.job;
  if (job == nullptr || job->pid != getpid()) return;
  if (exit_status == 0) {
    const absl::Status left = job->rank == nullptr ? HasLeft() : LeaveOrError(job);
    if (!left.ok()) GiveUp(job, left.code(), left.message(), 1);
    return;
  }
  std::string reason = at_exit.message.value_or(absl::StrCat("the program exited with status ", exit_status));
  // A program may handle the error of a lost rank or server by an exit. Its group is then started again, as by the
  // error itself.
  const absl::Status lost = job->rank == nullptr ? absl::OkStatus() : job->rank->lost();
  if (lost.ok()) GiveUp(job, absl::StatusCode::kInvalidArgument, reason, exit_status);
  absl::StrAppend(&reason, "; before that: ", lost.message());
  GiveUp(job, lost.code(), reason, exit_status);
}

// Tells EndAtExit what to do when the process exits, and registers it once. `message` is the reason if the exit status
// is not 0; if it is null, the reason names the exit status.
absl::Status LeaveAtExit(hooke_job* job, const char* message) {
  static const int failed = on_exit(EndAtExit, nullptr);
  if (failed != 0) return absl::ResourceExhaustedError("the process has no room for another exit handler");
  AtExit& at_exit = AtExitOfProcess();
  at_exit.job = job;
  at_exit.message.reset();
  if (message != nullptr) at_exit.message = message;
  return absl::OkStatus();
}

// Checks the array that the program gave to `function`.
absl::Status CheckArray(absl::string_view function, const hooke_array* array) {
  if (array == nullptr) return absl::InvalidArgumentError(absl::StrCat(function, ": `array` is NULL"));
  if (array->type > HOOKE_INT64) {
    return absl::InvalidArgumentError(absl::StrCat(function, ": there is no hooke_type ", array->type));
  }
  if (array->device != HOOKE_HOST) {
    return absl::InvalidArgumentError(absl::StrCat(
        function, ": the values are on device ", array->device,
        "; this library combines values in host memory: copy them there before the call, and back after it"));
  }
  if (array->values == nullptr && array->count > 0) {
    return absl::InvalidArgumentError(absl::StrCat(function, ": `values` is NULL"));
  }
  return absl::OkStatus();
}

// Returns a list of the one tensor `array`. The cast is valid because hooke_type has DataType's numbers.
TensorList OneTensor(const hooke_array& array) {
  const auto type = static_cast<DataType>(array.type);
  return TensorList(type, absl::MakeSpan(static_cast<char*>(array.values), array.count * SizeOf(type)));
}

static_assert(HOOKE_FLOAT32 == static_cast<int>(DataType::kFloat32) &&
              HOOKE_FLOAT64 == static_cast<int>(DataType::kFloat64) &&
              HOOKE_BFLOAT16 == static_cast<int>(DataType::kBFloat16) &&
              HOOKE_FLOAT16 == static_cast<int>(DataType::kFloat16) &&
              HOOKE_INT32 == static_cast<int>(DataType::kInt32) && HOOKE_INT64 == static_cast<int>(DataType::kInt64));
static_assert(HOOKE_SUM == static_cast<int>(ReduceOp::kSum) && HOOKE_MEAN == static_cast<int>(ReduceOp::kMean) &&
              HOOKE_MIN == static_cast<int>(ReduceOp::kMin) && HOOKE_MAX == static_cast<int>(ReduceOp::kMax));

}  // namespace
}  // namespace hooke

using hooke::Guarded;

const char* hooke_message() { return hooke::Message().c_str(); }

hooke_code hooke_join(uint32_t api_version, hooke_job** job) try {
  return hooke::Answer(hooke::Join(api_version, job));
} catch (const std::exception& error) {
  return hooke::Answer(absl::InternalError(error.what()));
}

hooke_code hooke_get_place(const hooke_job* job, hooke_place* place) {
  return Guarded(job, [&] {
    if (place == nullptr) return absl::InvalidArgumentError("hooke_get_place: `place` is NULL");
    *place = job->rank->Place();
    return absl::OkStatus();
  });
}

hooke_code hooke_earlier_generations(const hooke_job* job, const hooke_generation** generations, size_t* count,
                                     uint64_t* first_step) {
  return Guarded(job, [&] {
    if (generations == nullptr || count == nullptr || first_step == nullptr) {
      return absl::InvalidArgumentError("hooke_earlier_generations: `generations`, `count` or `first_step` is NULL");
    }
    const absl::Span<const hooke_generation> earlier = job->rank->EarlierGenerations();
    *generations = earlier.data();
    *count = earlier.size();
    *first_step = job->rank->first_step();
    return absl::OkStatus();
  });
}

hooke_code hooke_register(hooke_job* job, hooke_tensor* tensors, size_t count) {
  return Guarded(job, [&] {
    if (tensors == nullptr && count > 0) return absl::InvalidArgumentError("hooke_register: `tensors` is NULL");
    return job->rank->Register(absl::MakeSpan(tensors, count));
  });
}

hooke_code hooke_begin(hooke_job* job, const hooke_plan* plan, uint64_t* first_step) {
  return Guarded(job, [&] {
    const absl::StatusOr<uint64_t> first = job->rank->Begin(plan == nullptr ? hooke_plan{} : *plan);
    if (first.ok() && first_step != nullptr) *first_step = *first;
    return first.status();
  });
}

hooke_code hooke_gradient_ready(hooke_job* job, size_t index) {
  return Guarded(job, [&] { return job->rank->GradientReady(index); });
}

hooke_code hooke_combine(hooke_job* job, float loss, float* mean_loss, uint8_t* used) {
  return Guarded(job, [&] {
    const absl::StatusOr<float> mean = job->rank->Combine(loss, used);
    if (mean.ok() && mean_loss != nullptr) *mean_loss = *mean;
    return hooke::During("combining the gradients", mean.status());
  });
}

hooke_code hooke_end_step(hooke_job* job, const hooke_step* done, uint64_t* step) {
  return Guarded(job, [&] {
    const absl::StatusOr<uint64_t> steps = job->rank->EndStep(done == nullptr ? hooke_step{} : *done);
    if (steps.ok() && step != nullptr) *step = *steps;
    return steps.status();
  });
}

hooke_code hooke_values_due(hooke_job* job, int* due) {
  return Guarded(job, [&] {
    if (due == nullptr) return absl::InvalidArgumentError("hooke_values_due: `due` is NULL");
    const absl::StatusOr<bool> is_due = job->rank->ValuesDue();
    if (is_due.ok()) *due = *is_due ? 1 : 0;
    return is_due.status();
  });
}

hooke_code hooke_state_due(hooke_job* job, int* due) {
  return Guarded(job, [&] {
    if (due == nullptr) return absl::InvalidArgumentError("hooke_state_due: `due` is NULL");
    const absl::StatusOr<bool> is_due = job->rank->StateDue();
    if (is_due.ok()) *due = *is_due ? 1 : 0;
    return is_due.status();
  });
}

hooke_code hooke_save_state(hooke_job* job, const void* state, size_t size) {
  return Guarded(job, [&] {
    if (state == nullptr && size > 0) return absl::InvalidArgumentError("hooke_save_state: `state` is NULL");
    return job->rank->SaveState({static_cast<const char*>(state), size});
  });
}

hooke_code hooke_saved_state(hooke_job* job, const void** state, size_t* size, uint64_t* step) {
  return Guarded(job, [&] {
    if (state == nullptr || size == nullptr) {
      return absl::InvalidArgumentError("hooke_saved_state: `state` or `size` is NULL");
    }
    const auto saved = job->rank->SavedState();
    if (!saved.ok()) return saved.status();
    *state = saved->has_value() ? (*saved)->own.data() : nullptr;
    *size = saved->has_value() ? (*saved)->own.size() : 0;
    if (step != nullptr) *step = saved->has_value() ? (*saved)->step : 0;
    return absl::OkStatus();
  });
}

hooke_code hooke_with_center(hooke_job* job, int (*work)(void* argument), void* argument) {
  return Guarded(job, [&] {
    if (work == nullptr) return absl::InvalidArgumentError("hooke_with_center: `work` is NULL");
    return job->rank->WithCenter([&] {
      // `work` may be C++ code that throws. The group's own values are put back even then.
      try {
        const int result = work(argument);
        if (result == 0) return absl::OkStatus();
        return absl::InternalError(absl::StrCat("the program's work on the center failed with ", result));
      } catch (...) {
        return absl::InternalError("the program's work on the center threw an exception");
      }
    });
  });
}

hooke_code hooke_evaluated(hooke_job* job, double accuracy, double loss, uint64_t samples) {
  return hooke_evaluated_metrics(job, accuracy, loss, samples, nullptr, 0);
}

hooke_code hooke_evaluated_metrics(hooke_job* job, double accuracy, double loss, uint64_t samples,
                                   const hooke_metric* metrics, size_t count) {
  return Guarded(job, [&] {
    if (metrics == nullptr && count > 0) {
      return absl::InvalidArgumentError("hooke_evaluated_metrics: `metrics` is NULL");
    }
    return job->rank->Evaluated(accuracy, loss, samples, {metrics, count});
  });
}

hooke_code hooke_report_metrics(hooke_job* job, const hooke_metric* metrics, size_t count) {
  return Guarded(job, [&] {
    if (metrics == nullptr && count > 0) return absl::InvalidArgumentError("hooke_report_metrics: `metrics` is NULL");
    return job->rank->Report({metrics, count});
  });
}

hooke_code hooke_stop(hooke_job* job) {
  return Guarded(job, [&] { return job->rank->Stop(); });
}

hooke_code hooke_stopping(hooke_job* job, int* stopping) {
  return Guarded(job, [&] {
    if (stopping == nullptr) return absl::InvalidArgumentError("hooke_stopping: `stopping` is NULL");
    const absl::StatusOr<bool> is_stopping = job->rank->Stopping();
    if (is_stopping.ok()) *stopping = *is_stopping ? 1 : 0;
    return is_stopping.status();
  });
}

hooke_code hooke_all_reduce(hooke_job* job, const hooke_array* array, hooke_reduction reduction) {
  return Guarded(job, [&] {
    if (absl::Status status = hooke::CheckArray("hooke_all_reduce", array); !status.ok()) return status;
    if (static_cast<uint32_t>(reduction) > HOOKE_MAX) {
      return absl::InvalidArgumentError(
          absl::StrCat("hooke_all_reduce: there is no hooke_reduction ", static_cast<uint32_t>(reduction)));
    }
    return job->rank->Collective([&](hooke::Group& group) {
      return group.AllReduce(hooke::OneTensor(*array), static_cast<hooke::ReduceOp>(reduction));
    });
  });
}

hooke_code hooke_broadcast(hooke_job* job, const hooke_array* array, uint32_t root) {
  return Guarded(job, [&] {
    if (absl::Status status = hooke::CheckArray("hooke_broadcast", array); !status.ok()) return status;
    if (root >= job->rank->Place().ranks) {
      return absl::InvalidArgumentError(
          absl::StrCat("hooke_broadcast: there is no rank ", root, "; the group has ", job->rank->Place().ranks));
    }
    return job->rank->Collective(
        [&](hooke::Group& group) { return group.Broadcast(hooke::OneTensor(*array), static_cast<int>(root)); });
  });
}

hooke_code hooke_all_gather(hooke_job* job, const hooke_array* array) {
  return Guarded(job, [&] {
    if (absl::Status status = hooke::CheckArray("hooke_all_gather", array); !status.ok()) return status;
    if (const uint32_t ranks = job->rank->Place().ranks; array->count % ranks != 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("hooke_all_gather: ", array->count, " values are no multiple of the group's ", ranks, " ranks"));
    }
    return job->rank->Collective([&](hooke::Group& group) {
      return group.AllGather(hooke::OneTensor(*array), hooke::EvenParts(array->count, group.size()));
    });
  });
}

hooke_code hooke_barrier(hooke_job* job) {
  return Guarded(job, [&] { return job->rank->Collective([](hooke::Group& group) { return group.Barrier(); }); });
}

hooke_code hooke_notice(hooke_job* job, const char* text) {
  return Guarded(job, [&] {
    if (text == nullptr) return absl::InvalidArgumentError("hooke_notice: `text` is NULL");
    job->process->reporter().Notice(hooke::OneLine(text));
    return absl::OkStatus();
  });
}

hooke_code hooke_finish(hooke_job* job) {
  return Guarded(job, [&] { return job->rank->Finish(); });
}

hooke_code hooke_leave(hooke_job* job) {
  const hooke_code code = Guarded(job, [&] { return hooke::Leave(job); });
  if (code != HOOKE_OK) return code;
  hooke::AtExitOfProcess().job = nullptr;
  delete job;
  return code;
}

hooke_code hooke_leave_at_exit(hooke_job* job, const char* message) {
  return Guarded(job, [&] { return hooke::LeaveAtExit(job, message); });
}

void hooke_fail(hooke_job* job, hooke_code code, const char* message) {
  const auto status_code = code == HOOKE_OK ? absl::StatusCode::kUnknown : static_cast<absl::StatusCode>(code);
  hooke::GiveUp(job, status_code, message == nullptr ? "the program gave up" : message, 1);
}
