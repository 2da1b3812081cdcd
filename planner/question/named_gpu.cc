#include "planner/question/named_gpu.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "planner/question/catalogue_summary.h"
#include "planner/score/rows/row_cluster.h"
#include "planner/spec/machine/gpu_reader.h"
#include "planner/spec/text/utf8.h"

namespace shardwise {
namespace {

/// "A100 40GB" is "a100", "40gb".
std::vector<std::string> words_of(const std::string& name) {
  std::vector<std::string> words(1);
  for (const char c : name) {
    const auto letter = static_cast<unsigned char>(c);
    if (std::isalnum(letter) != 0) {
      words.back() += static_cast<char>(std::tolower(letter));
    } else if (!words.back().empty()) {
      words.emplace_back();
    }
  }
  return words;
}

/// A word of `name` begins one of the entry: h1000 is no h100, mi250 is mi250x. One of two letters
/// is a whole one: l4 is no l40s.
bool is_meant(const std::string& name, const std::string& entry) {
  const std::vector<std::string> parts = words_of(entry);
  return std::ranges::any_of(words_of(name), [&](const std::string& word) {
    return std::ranges::any_of(parts, [&](const std::string& part) {
      return word.size() > 2 ? part.starts_with(word) : part == word;
    });
  });
}

}  // namespace

Result<GpuSpec> gpu_called(const std::string& name, std::vector<Assumption>& said) {
  Result<GpuSpec> exact = find_gpu(name);
  if (exact || name.find_first_of("./") != std::string::npos) return exact;
  std::vector<KnownGpu> known;
  for (const GpuSummary& each : gpu_summaries()) {
    constexpr double kGiB = 1 << 30;
    known.push_back({each.name, static_cast<double>(each.memory.value()) / kGiB});
  }
  const std::string meant = gpu_named(name, {}, known);
  if (meant.empty() || !is_meant(name, meant)) return exact;
  Result<GpuSpec> gpu = find_gpu(meant);
  if (gpu) {
    said.push_back({"gpu.name", fmt::format("{} is {}, {} (--gpu)", shown(name), meant, gpu->label),
                    "configs/gpus"});
  }
  return gpu;
}

DType usual_precision(const GpuSpec& gpu) {
  for (const DType dtype : {DType::bf16, DType::fp16}) {
    if (gpu.peak(dtype).value() > 0) return dtype;
  }
  return DType::fp32;
}

}  // namespace shardwise
