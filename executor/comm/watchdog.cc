#include "executor/comm/watchdog.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "executor/kernels/start_thread.h"

namespace shardwise::exec {
namespace {

constexpr std::chrono::milliseconds kWatchdogLook{100};
constexpr std::chrono::seconds kOthersFirst{1};  // who waits for a rank knows which one

}  // namespace

Watchdog::Watchdog(AbortSignal& abort, std::chrono::milliseconds patience,
                   std::function<void(const std::string&)> end, std::chrono::milliseconds grace)
    : abort_(abort), patience_(patience), end_(std::move(end)), grace_(grace) {
  thread_ =
      start_thread("the watchdog's thread", [this] { return std::thread([this] { watch(); }); });
}

Watchdog::~Watchdog() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    closing_ = true;
  }
  over_.notify_all();
  thread_.join();
}

void Watchdog::look_for_hung() const {
  const auto still = abort_.stillest();
  if (still.first < 0) return;
  const Clock::duration spent =
      Clock::since(AwakeTime::Steady(std::chrono::nanoseconds(still.second)));
  if (spent < patience_ + kOthersFirst) return;
  abort_.raise_hung(fmt::format("rank {} hangs: none of its operations began or ended for {:.1f} s",
                                still.first, std::chrono::duration<double>(spent).count()));
}

void Watchdog::watch() {
  std::optional<Clock::time_point> failed;
  std::unique_lock<std::mutex> lock(mutex_);
  while (!over_.wait_for(lock, kWatchdogLook, [&] { return closing_; })) {
    lock.unlock();
    Clock::now();  // a look: what comes between two of them is a pause
    if (!abort_.raised()) look_for_hung();
    if (abort_.raised() && !failed) failed = Clock::now();
    if (failed && Clock::now() - *failed > grace_) end_(abort_.message());
    lock.lock();
  }
}

}  // namespace shardwise::exec
