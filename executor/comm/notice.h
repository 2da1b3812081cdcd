#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "executor/comm/abort.h"

namespace shardwise::exec {

/// Message between processes of a job beside their work.
struct Notice {
  enum class Word : std::uint8_t {
    failed,    // the run has failed, as `text` says
    describe,  // say what your rank does
    does,      // it does `text`
    end,       // all has been said: end
    over,      // this process ends now, as it should
    ask,       // say the status of your rank
    status,    // it is `text`, as json_of() writes it: an answer, or said every second
  };
  Word word = Word::over;
  Failure::Kind kind = Failure::Kind::broken;  // of failed and end
  std::string text;                            // of at most kMostText bytes on the wire

  static constexpr std::size_t kMostText = std::size_t{1} << 16;
  static constexpr std::size_t kMostLines = 2000;  // of a text that is read
};

/// A notice as it is sent; a longer text is cut.
std::vector<std::byte> bytes_of(const Notice& notice);

/// A text of another process whose lines after the first begin with two spaces at least: none of
/// them passes for a line of another rank or program.
std::string with_indented_lines(std::string_view text);

/// Reads notices from a stream of bytes that come in any pieces. Keeps at most one notice that is
/// not whole. A text is lines of characters that print: what would steer a terminal is escaped, and
/// what is over kMostLines lines is cut.
class NoticeReader {
 public:
  /// Appends the notices that `bytes` complete. \returns false when the stream is none of notices:
  /// nothing more of it can be read
  bool take(std::span<const std::byte> bytes, std::vector<Notice>& notices);

 private:
  std::vector<std::byte> heard_;  // no whole notice
  bool broken_ = false;
};

}  // namespace shardwise::exec
