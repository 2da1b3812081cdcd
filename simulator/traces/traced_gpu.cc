#include "simulator/traces/traced_gpu.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <vector>

namespace shardwise::sim {
namespace {

/// What a name of a GPU tells: "NVIDIA H100 PCIe" is of model h100 and PCIe.
struct GpuWords {
  std::vector<std::string> all;
  std::string model;  // the first word with a digit; empty when there is none
  bool pcie = false;
  bool nvl = false;
  double gigabytes = 0;
};

std::vector<std::string> words_of(std::string_view name) {
  std::vector<std::string> words(1);
  for (const char c : name) {
    const auto letter = static_cast<unsigned char>(c);
    if (std::isalnum(letter) != 0) {
      words.back() += static_cast<char>(std::tolower(letter));
    } else if (!words.back().empty()) {
      words.emplace_back();
    }
  }
  if (words.back().empty()) words.pop_back();
  return words;
}

bool has_digit(const std::string& word) {
  return std::ranges::any_of(word, [](unsigned char c) { return std::isdigit(c) != 0; });
}

GpuWords read_words(std::string_view name) {
  GpuWords read;
  read.all = words_of(name);
  for (const std::string& word : read.all) {
    read.pcie = read.pcie || word == "pcie";
    read.nvl = read.nvl || word == "nvl";
    if (read.model.empty() && has_digit(word)) read.model = word;
    double size = 0;
    const char* const end = word.data() + word.size();
    const auto [behind, bad] = std::from_chars(word.data(), end, size);
    if (bad == std::errc() && std::string_view(behind, end) == "gb") read.gigabytes = size;
  }
  return read;
}

/// Marketing's gigabytes against bytes: 80 for 79.2 GiB, 94 for 93.1 GiB.
bool same_memory(double gigabytes, Bytes hbm) {
  constexpr double kTolerance = 0.15;
  const double gib = static_cast<double>(hbm.value()) / (1 << 30);
  return std::abs(gigabytes - gib) <= kTolerance * gib;
}

}  // namespace

bool is_other_gpu(std::string_view device, const GpuSpec& gpu) {
  const GpuWords seen = read_words(device);
  const GpuWords planned = read_words(gpu.label);
  if (seen.model.empty()) return false;
  if (gpu.architecture == "cpu") return true;
  if (planned.model.empty()) return false;
  if (std::ranges::find(planned.all, seen.model) == planned.all.end()) return true;
  if (seen.pcie != planned.pcie || seen.nvl != planned.nvl) return true;
  const bool grace = seen.model.starts_with("gh") || seen.model.starts_with("gb");
  return seen.gigabytes > 0 && !grace && !same_memory(seen.gigabytes, gpu.hbm_bytes);
}

}  // namespace shardwise::sim
