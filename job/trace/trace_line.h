#ifndef HOOKE_JOB_TRACE_TRACE_LINE_H_
#define HOOKE_JOB_TRACE_TRACE_LINE_H_

// The lines of a trace file: an event or a name each, as JSON of Chrome's trace format.

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

namespace hooke {

// Takes the next line of the file.
using TraceLines = std::function<void(const nlohmann::ordered_json& line)>;

// Returns JSON as text. Bytes that are no UTF-8 are replaced, because a peer may have sent them.
inline std::string LineText(const nlohmann::ordered_json& line) {
  return line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

// Returns the microseconds from the trace's begin. Unsigned on the way, because a peer's numbers may overflow.
inline double TraceMicroseconds(int64_t at_ns, int64_t origin_ns) {
  return static_cast<double>(static_cast<uint64_t>(at_ns) - static_cast<uint64_t>(origin_ns)) / 1000;
}

// Names a process or a thread for the viewer, or gives its place: `what` is "process_name", "thread_name" and so on.
inline nlohmann::ordered_json TraceName(const char* what, uint64_t process, uint64_t track,
                                        const nlohmann::ordered_json& arguments) {
  return {{"name", what}, {"ph", "M"}, {"pid", process}, {"tid", track}, {"args", arguments}};
}

}  // namespace hooke

#endif  // HOOKE_JOB_TRACE_TRACE_LINE_H_
