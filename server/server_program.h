#ifndef HOOKE_SERVER_SERVER_PROGRAM_H_
#define HOOKE_SERVER_SERVER_PROGRAM_H_

// The program hooke-server as a process of its own, for tests. They have //server:hooke-server as data.

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "absl/time/time.h"

namespace hooke {

// Polls `done` until it is true or the time is over. Returns whether it became true.
bool WaitUntil(const std::function<bool()>& done, absl::Duration within = absl::Seconds(30));

// One process of the program. The destructor kills it.
class ServerProgram {
 public:
  // Its output is in FOLDER/NAME.log. `runner`: the words before the program's name, to run it with a lower limit of
  // something.
  ServerProgram(const std::string& folder, const std::string& name, const std::vector<std::string>& flags,
                const std::vector<std::string>& runner = {});
  ~ServerProgram();
  ServerProgram(const ServerProgram&) = delete;
  ServerProgram& operator=(const ServerProgram&) = delete;

  pid_t pid() const { return pid_; }
  void Signal(int number);
  // Returns the exit status; 128 plus the signal's number if one killed it; -1 if it has not ended within 30 s.
  int Wait();
  std::string Output() const;

 private:
  const std::string log_;
  pid_t pid_ = 0;
};

}  // namespace hooke

#endif  // HOOKE_SERVER_SERVER_PROGRAM_H_
