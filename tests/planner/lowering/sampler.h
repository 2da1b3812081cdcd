#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "planner/search/space/space.h"

namespace shardwise::test {

/// Draws layouts of the full search space.
class Sampler {
 public:
  Sampler(const LayoutQuestion& question, std::uint32_t seed)
      : question_(question), space_(search_space(question, Breadth::full)), random_(seed) {}

  /// Legal or not.
  Layout draw();
  bool legal(const Layout& layout) const;

 private:
  template <class T>
  T any(const std::vector<T>& values) {
    std::uniform_int_distribution<std::size_t> index(0, values.size() - 1);
    return values[index(random_)];
  }

  LayoutQuestion question_;
  SearchSpace space_;
  std::mt19937 random_;
};

/// "tp=2 cp=1 …": every field.
std::string text_of(const Layout& layout);

}  // namespace shardwise::test
