// A stream of notices gives the same notices in whatever pieces it comes, with texts that a
// terminal may show, and what was read can be sent on. The first byte is the length of the pieces.

#include <algorithm>
#include <string>
#include <vector>

#include "executor/comm/notice.h"
#include "executor/status/rank_status.h"
#include "planner/spec/text/check.h"
#include "planner/spec/text/utf8.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace shardwise;
  using namespace shardwise::exec;
  if (size == 0) return 0;
  const std::size_t piece = std::size_t{1} + data[0];
  const auto stream = std::as_bytes(std::span(data, size)).subspan(1);
  std::vector<Notice> whole;
  const bool good = NoticeReader().take(stream, whole);
  NoticeReader reader;
  std::vector<Notice> notices;
  bool pieces_good = true;
  for (std::size_t at = 0; at < stream.size(); at += piece) {
    pieces_good = reader.take(stream.subspan(at, std::min(piece, stream.size() - at)), notices);
  }
  SHARDWISE_CHECK(good == pieces_good, "pieces are refused otherwise than the whole");
  SHARDWISE_CHECK(notices.size() == whole.size(), "pieces give other notices than the whole");
  std::vector<std::byte> written;
  for (std::size_t i = 0; i < whole.size(); ++i) {
    SHARDWISE_CHECK(notices[i].text == whole[i].text && notices[i].word == whole[i].word,
                    "pieces give another notice than the whole");
    SHARDWISE_CHECK(whole[i].text.size() <= Notice::kMostText, "a text is too long");
    static_cast<void>(read_rank_status(whole[i].text));
    std::string line = whole[i].text;
    std::ranges::replace(line, '\n', ' ');
    SHARDWISE_CHECK(shown(line, line.size()) == line, "a text steers a terminal");
    const std::vector<std::byte> bytes = bytes_of(whole[i]);
    written.insert(written.end(), bytes.begin(), bytes.end());
  }
  NoticeReader again;
  std::vector<Notice> same;
  SHARDWISE_CHECK(again.take(written, same) && same.size() == whole.size(), "not read again");
  return 0;
}
