#include "executor/comm/notice.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "planner/spec/text/utf8.h"

namespace shardwise::exec {
namespace {

/// Word, kind, two zeros and the bytes of the text, in the host's order.
constexpr std::size_t kHeader = 8;
constexpr std::size_t kLengthAt = 4;

/// \returns the bytes of the text, or kMostText + 1 when this is no header
std::size_t text_bytes(std::span<const std::byte> header) {
  const auto word = std::to_integer<std::uint8_t>(header[0]);
  const auto kind = std::to_integer<std::uint8_t>(header[1]);
  std::uint32_t length = 0;
  std::memcpy(&length, &header[kLengthAt], sizeof(length));
  const bool known = word <= static_cast<std::uint8_t>(Notice::Word::status) &&
                     kind <= static_cast<std::uint8_t>(Failure::Kind::bad_input) &&
                     length <= Notice::kMostText;
  return known ? length : Notice::kMostText + 1;
}

/// A text of another process as a terminal may show it: lines of characters that print, of at most
/// Notice::kMostText bytes.
std::string cleaned(std::string_view text) {
  constexpr std::string_view kMore = "…";
  std::string clean;
  for (std::size_t lines = 0; !text.empty() && clean.size() <= Notice::kMostText; ++lines) {
    if (lines == Notice::kMostLines) {
      clean += kMore;
      break;
    }
    const std::size_t end = std::min(text.find('\n'), text.size());
    clean += shown(text.substr(0, end), Notice::kMostText);
    if (end < text.size()) clean += '\n';
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  if (clean.size() <= Notice::kMostText) return clean;
  // Escaped, a byte is up to six. The cut is in front of a whole character.
  std::size_t end = Notice::kMostText - kMore.size();
  while ((static_cast<unsigned char>(clean[end]) & 0xC0U) == 0x80U) --end;
  clean.resize(end);
  return clean.append(kMore);
}

}  // namespace

std::string with_indented_lines(std::string_view text) {
  std::string indented;
  for (std::size_t i = 0; i < text.size(); ++i) {
    indented += text[i];
    if (text[i] != '\n') continue;
    const std::string_view line = text.substr(i + 1);
    const std::size_t spaces = std::min(line.find_first_not_of(' '), line.size());
    const bool empty = line.empty() || line.starts_with('\n');
    if (!empty && spaces < 2) indented.append(2 - spaces, ' ');
  }
  return indented;
}

std::vector<std::byte> bytes_of(const Notice& notice) {
  const auto length = static_cast<std::uint32_t>(std::min(notice.text.size(), Notice::kMostText));
  std::vector<std::byte> bytes(kHeader + length);
  bytes[0] = static_cast<std::byte>(notice.word);
  bytes[1] = static_cast<std::byte>(notice.kind);
  std::memcpy(&bytes[kLengthAt], &length, sizeof(length));
  std::copy_n(std::as_bytes(std::span(notice.text)).begin(), length, bytes.begin() + kHeader);
  return bytes;
}

bool NoticeReader::take(std::span<const std::byte> bytes, std::vector<Notice>& notices) {
  while (!broken_ && !bytes.empty()) {
    // As much as the notice still lacks, as far as that is known.
    const std::size_t whole = heard_.size() < kHeader ? kHeader : kHeader + text_bytes(heard_);
    const std::size_t count = std::min(whole - heard_.size(), bytes.size());
    heard_.insert(heard_.end(), bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(count));
    bytes = bytes.subspan(count);
    if (heard_.size() < kHeader) continue;
    const std::size_t text = text_bytes(heard_);
    broken_ = text > Notice::kMostText;
    if (broken_ || heard_.size() < kHeader + text) continue;
    const auto* const begin = reinterpret_cast<const char*>(heard_.data()) + kHeader;
    notices.push_back({static_cast<Notice::Word>(heard_[0]), static_cast<Failure::Kind>(heard_[1]),
                       cleaned({begin, text})});
    heard_.clear();
  }
  if (broken_) heard_ = {};
  return !broken_;
}

}  // namespace shardwise::exec
