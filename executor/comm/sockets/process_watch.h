#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "executor/comm/abort.h"
#include "executor/comm/awake_clock.h"
#include "executor/comm/control_line.h"
#include "executor/comm/sockets/process_job.h"
#include "executor/status/rank_status.h"

namespace shardwise::exec {

/// Ends all processes of a job when one of them fails or is gone, with one message. Each has a
/// connection to every other, and a thread that listens.
///
/// Who finds that the run has failed tells the lowest rank that is there. That one asks the others
/// what they do, where ranks hang or are gone; says what is wrong; and has all of them end. Where
/// it does not react, the next one takes its place. A process that is killed has its connections
/// closed: the launcher, which says so too, is given a second first.
///
/// Any process of a live job says what all do. Those that may be asked first are told the status of
/// the others once a second, so that what a process did that is stopped is known.
class ProcessWatch {
 public:
  /// All ranks make one. \param say  prints what ended the run; called in one process
  /// \throws Aborted where the others cannot be reached
  ProcessWatch(ProcessJob& job, AbortSignal& abort, double patience_s,
               std::function<void(const Failure&)> say);
  /// The others learn that this process ends as it should.
  ~ProcessWatch();
  ProcessWatch(const ProcessWatch&) = delete;
  ProcessWatch& operator=(const ProcessWatch&) = delete;

  /// Call after a failure, here or elsewhere, once this rank has released its resources. Never
  /// returns: the process ends when the failure was reported.
  /// \param why  what to say where no rank says for some seconds why the run has failed
  [[noreturn]] void stay(std::string why);

  /// Statuses of all ranks, by rank: this one's, and of the others what they answer within a
  /// second. One that is silent has the status that it told last. For one other thread.
  std::vector<RankStatus> statuses();

 private:
  using Clock = AwakeClock;
  struct Other {
    ControlLine line;
    FileDescriptor process;  // of this machine and user, from the kernel
    bool silent = false;     // does not react
    bool over = false;       // has released its resources, or ended as it should
    std::optional<std::string> does;
    std::string status;          // that it told last
    Clock::time_point heard_at;  // anything of it
    bool answered = false;       // since it was asked for its status
    bool asks = false;           // for this rank's
  };

  void serve();
  void hear();
  void take(int rank, const Notice& notice);
  void notice_gone(int rank);
  int speaker() const;
  void report(const Failure& failure);
  void speak(const Failure& failure);
  bool all_answered() const;
  std::string whole_message(const Failure& failure) const;
  void leave(Failure::Kind kind);
  void tell_all(const Notice& notice);
  void end_stuck() const;
  void tell_status();
  void gather_statuses();
  RankStatus own_status() const;
  RankStatus status_of(int rank) const;
  std::string gone_text(int rank) const;

  ProcessJob& job_;
  AbortSignal& abort_;
  std::function<void(const Failure&)> say_;
  std::vector<Other> others_;  // by rank; this one's is empty
  FileDescriptor wake_;
  std::shared_ptr<void> raised_;
  std::string stays_because_;    // written before let_go_
  Clock::time_point let_go_at_;  // likewise

  // Knowledge of the thread.
  std::optional<Failure> failure_;
  Clock::time_point gone_at_;
  Clock::time_point told_at_;
  std::optional<Clock::time_point> asked_at_;
  Clock::time_point ended_at_;
  std::optional<Clock::time_point> ender_left_;
  int gone_ = -1;
  int told_ = -1;
  int ender_ = -1;  // who has said that all end
  bool told_over_ = false;

  Clock::time_point told_status_at_;
  std::optional<Clock::time_point> gathers_since_;

  std::mutex status_mutex_;
  std::condition_variable gathered_;
  bool wanted_ = false;                              // guarded by status_mutex_, like what follows
  std::optional<std::vector<RankStatus>> statuses_;  // what was wanted

  std::atomic<bool> closing_{false};
  std::atomic<bool> let_go_{false};
  std::thread thread_;
};

}  // namespace shardwise::exec
