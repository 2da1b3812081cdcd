#include "executor/comm/control_group.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "planner/spec/text/error.h"

namespace shardwise::exec {
namespace {

constexpr std::uint64_t kMostText = std::uint64_t{1} << 26;  // a checkpoint's list of files is less
constexpr std::size_t kTextBlock = std::size_t{1} << 16;

}  // namespace

std::vector<std::string> all_gather_texts(ControlGroup& group, const std::string& own) {
  const auto ranks = static_cast<std::size_t>(group.size());
  const std::uint64_t length = own.size();
  std::vector<std::uint64_t> lengths(ranks);
  group.all_gather_bytes(std::as_bytes(std::span(&length, 1)),
                         std::as_writable_bytes(std::span(lengths)));
  const auto longest = std::ranges::max_element(lengths);
  if (*longest > kMostText) {
    throw IoError(fmt::format("rank {} of a group has a text of {} bytes, at most {} are sent",
                              longest - lengths.begin(), *longest, kMostText));
  }
  // In blocks: memory for a long text is allocated as its bytes arrive, not as lengths claim.
  std::vector<std::string> said(ranks);
  std::vector<char> block;
  std::vector<char> all;
  for (std::size_t at = 0; at < *longest; at += block.size()) {
    block.assign(std::min<std::size_t>(*longest - at, kTextBlock), '\0');
    all.resize(block.size() * ranks);
    if (at < own.size()) own.copy(block.data(), block.size(), at);
    group.all_gather_bytes(std::as_bytes(std::span<const char>(block)),
                           std::as_writable_bytes(std::span<char>(all)));
    for (std::size_t r = 0; r < ranks; ++r) {
      if (at >= lengths[r]) continue;
      said[r].append(&all[block.size() * r], std::min<std::size_t>(block.size(), lengths[r] - at));
    }
  }
  return said;
}

}  // namespace shardwise::exec
