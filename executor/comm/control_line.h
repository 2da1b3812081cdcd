#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "executor/comm/abort.h"
#include "executor/storage/file_descriptor.h"

namespace shardwise::exec {

/// What processes of a job tell one another beside their work.
struct Notice {
  enum class Word : std::uint8_t {
    failed,    // the run has failed, as `text` says
    describe,  // say what your rank does
    does,      // it does `text`
    end,       // all has been said: end
    over,      // this process ends now, as it should
  };
  Word word = Word::over;
  Failure::Kind kind = Failure::Kind::broken;  // of failed and end
  std::string text;
};

/// A connection for notices. Never waits: what the other end does not take is lost.
class ControlLine {
 public:
  ControlLine() = default;
  explicit ControlLine(FileDescriptor socket) : socket_(std::move(socket)) {}

  /// Not once the other end is gone.
  bool is_open() const { return socket_.is_open(); }
  int number() const { return socket_.number(); }
  void say(const Notice& notice) const;
  /// The notices that have come.
  std::vector<Notice> hear();

 private:
  FileDescriptor socket_;
  std::vector<std::byte> heard_;  // no whole notice
};

}  // namespace shardwise::exec
