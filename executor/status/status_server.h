#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "executor/comm/awake_clock.h"
#include "executor/comm/sockets/socket.h"
#include "executor/storage/file_descriptor.h"

namespace shardwise::exec {

/// Answers processes of this machine that ask what a job does: who connects is sent a text, and the
/// connection is closed. Only this user and root get it, as the kernel names them. Nothing that
/// they send is read, and none is waited for: a few are served at once, five seconds each, and the
/// text is made five times a second at most.
class StatusServer {
 public:
  /// Listens under this name, which is no file's.
  /// \param answer  makes the text; called from the server's thread
  /// \throws IoError when the name is taken, or no thread can be started
  StatusServer(const std::string& name, std::function<std::string()> answer);
  ~StatusServer();
  StatusServer(const StatusServer&) = delete;
  StatusServer& operator=(const StatusServer&) = delete;

  static constexpr std::size_t kMostClients = 8;

 private:
  using Clock = AwakeClock;
  struct Client {
    FileDescriptor line;
    Deadline until;
    std::shared_ptr<const std::string> text;
    std::size_t sent = 0;  // bytes
  };

  void serve();
  bool accept_some();
  void make_text();
  static bool send_some(Client& client);

  std::function<std::string()> answer_;
  FileDescriptor listening_;
  FileDescriptor wake_;
  std::vector<Client> clients_;
  std::shared_ptr<const std::string> text_;  // the last
  Clock::time_point made_at_;
  std::atomic<bool> closing_{false};
  std::thread thread_;
};

}  // namespace shardwise::exec
