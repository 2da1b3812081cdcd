#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace shardwise::sim {

/// Numbers for names, so that a million events keep each name once.
class NameTable {
 public:
  std::uint32_t number_of(std::string_view name) {
    const auto known = numbers_.find(name);
    if (known != numbers_.end()) return known->second;
    const auto number = static_cast<std::uint32_t>(names_.size());
    const auto added = numbers_.emplace(std::string(name), number).first;
    names_.push_back(&added->first);  // nodes of an unordered_map stay where they are
    bytes_ += name.size();
    return number;
  }
  const std::string& operator[](std::uint32_t number) const { return *names_[number]; }
  std::size_t size() const { return names_.size(); }
  std::size_t bytes() const { return bytes_; }

 private:
  struct Hash {
    using is_transparent = void;  // NOLINT(readability-identifier-naming): the library asks for it
    std::size_t operator()(std::string_view text) const {
      return std::hash<std::string_view>()(text);
    }
  };
  std::unordered_map<std::string, std::uint32_t, Hash, std::equal_to<>> numbers_;
  std::vector<const std::string*> names_;
  std::size_t bytes_ = 0;
};

}  // namespace shardwise::sim
