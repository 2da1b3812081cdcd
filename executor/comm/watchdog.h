#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "executor/comm/abort.h"
#include "executor/comm/awake_clock.h"

namespace shardwise::exec {

/// Ends runs that do not end by themselves, for as long as it lives. A rank none of whose
/// operations begins or ends for longer than the timeout has the run fail, a second after those who
/// wait for it in a collective have named it. A run that has failed and whose ranks are still there
/// after the grace, as one of them hangs in a kernel, is ended with its process.
class Watchdog {
 public:
  /// \param end  ends the process; called with the run's message, from the watchdog's thread
  Watchdog(AbortSignal& abort, std::chrono::milliseconds patience,
           std::function<void(const std::string& message)> end,
           std::chrono::milliseconds grace = std::chrono::seconds(5));
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

 private:
  using Clock = AwakeClock;

  void watch();
  void look_for_hung() const;

  AbortSignal& abort_;
  std::chrono::milliseconds patience_;
  std::function<void(const std::string&)> end_;
  std::chrono::milliseconds grace_;
  std::mutex mutex_;
  std::condition_variable over_;
  bool closing_ = false;  // guarded by mutex_
  std::thread thread_;
};

}  // namespace shardwise::exec
