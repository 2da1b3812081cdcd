#include "executor/weights/hf_weights.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <set>
#include <utility>

#include "executor/kernels/element.h"
#include "executor/storage/bad_input.h"
#include "planner/lowering/operands/model_units.h"
#include "planner/model/hf_config.h"
#include "planner/spec/text/check.h"

namespace shardwise::exec {
namespace {

constexpr std::size_t kMostProblems = 100;  // that are printed
constexpr std::string_view kGpt2Prefix = "transformer.";

/// GPT-2 was published without the name of its body in those of its tensors.
const SafetensorsSet::Place* find(const SafetensorsSet& files, const std::string& name) {
  const SafetensorsSet::Place* const place = files.find(name);
  if (place != nullptr || !name.starts_with(kGpt2Prefix)) return place;
  return files.find(name.substr(kGpt2Prefix.size()));
}

bool is_float(StoredType type) {
  return type == StoredType::f32 || type == StoredType::bf16 || type == StoredType::f16;
}

/// IEEE 754 binary16: 5 bits of exponent, 10 of mantissa.
float from_half(std::uint16_t bits) {
  const std::uint32_t sign = std::uint32_t{bits & 0x8000U} << 16U;
  const std::uint32_t exponent = (bits >> 10U) & 0x1FU;
  const std::uint32_t mantissa = bits & 0x3FFU;
  if (exponent == 0) {  // zero and subnormal numbers, multiples of 2^-24
    const float value = std::ldexp(static_cast<float>(mantissa), -24);
    return sign != 0 ? -value : value;
  }
  const std::uint32_t wide = exponent == 0x1F ? 0xFFU : exponent + 112;
  return std::bit_cast<float>(sign | (wide << 23U) | (mantissa << 13U));
}

/// What config.json says of the model's formulas that the plan's model does not: shapes do not show
/// it.
void compare_configuration(const std::filesystem::path& folder, const Plan& plan,
                           Diagnostics& problems) {
  std::error_code ignored;
  const std::filesystem::path path = folder / "config.json";
  if (!std::filesystem::exists(path, ignored)) return;
  const Result<ModelSpec> stored = read_model_file(path);
  if (!stored) {
    problems.insert(problems.end(), stored.problems().begin(), stored.problems().end());
    return;
  }
  const auto differs = [&](const char* what) {
    problems.push_back({path.string(), 0, 0, "--init-from",
                        fmt::format("is of a model with {} than the plan's", what),
                        "make the plan with --model " + folder.string()});
  };
  const ModelSpec& model = plan.model;
  if (stored->model_type != model.model_type) return differs("another model_type");
  if (stored->tie_word_embeddings != model.tie_word_embeddings) {
    differs("another tie_word_embeddings");
  }
  if (!(stored->numerics == model.numerics)) {
    differs("another norm_epsilon, activation or rotary embedding");
  }
  const auto same_operations = [](const LayerSpec& a, const LayerSpec& b) {
    return a.operations == b.operations;
  };
  if (!std::ranges::equal(stored->kinds, model.kinds, same_operations)) {
    differs("other layers");
  }
}

/// Compares the stored tensors with those of the model.
void compare_tensors(const SafetensorsSet& files, const ModelUnits& units, const ModelSpec& model,
                     const std::string& path, Diagnostics& problems) {
  const auto problem = [&](const std::string& file, std::string message, std::string hint = {}) {
    problems.push_back({file, 0, 0, "--init-from", std::move(message), std::move(hint)});
  };
  std::set<const StoredTensor*> used;
  for (const ModelUnits::Place& each : units.tensors) {
    const UnitTensor& tensor = units.tensor(each);
    const SafetensorsSet::Place* const place = find(files, tensor.name);
    if (place == nullptr) {
      problem(path, fmt::format("there is no tensor {}", tensor.name));
      continue;
    }
    used.insert(place->tensor);
    const TensorSpec& stored = place->tensor->spec;
    const std::string& file = files.files()[place->file].name();
    if (stored.shape != tensor.shape) {
      problem(file, fmt::format("{} is [{}], the plan's is [{}]", stored.name,
                                fmt::join(stored.shape, ", "), fmt::join(tensor.shape, ", ")));
    } else if (!is_float(stored.type)) {
      problem(file, fmt::format("{} is {}", stored.name, name_of(stored.type)),
              "F32, BF16 and F16 are read");
    }
  }
  for (const SafetensorsFile& file : files.files()) {
    for (const StoredTensor& tensor : file.tensors()) {
      if (used.contains(&tensor) || is_passed_over(tensor.spec.name, model)) continue;
      problem(file.name(), fmt::format("{} is no tensor of the plan's model", tensor.spec.name));
    }
  }
}

}  // namespace

bool is_passed_over(const std::string& name, const ModelSpec& model) {
  const bool mask = model.model_type == "gpt2" &&
                    (name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias"));
  const bool tied_head = model.tie_word_embeddings && name == "lm_head.weight";
  return mask || tied_head || name.ends_with(".rotary_emb.inv_freq");
}

void to_floats(StoredType type, std::span<const std::byte> bytes, std::span<float> values) {
  SHARDWISE_CHECK(is_float(type), std::string(name_of(type)));
  if (type == StoredType::f32) {
    std::memcpy(values.data(), bytes.data(), bytes.size());
    return;
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::uint16_t bits = 0;
    std::memcpy(&bits, bytes.data() + 2 * i, sizeof bits);
    values[i] = type == StoredType::bf16 ? to_float(Bf16{bits}) : from_half(bits);
  }
}

HfWeights::HfWeights(SafetensorsSet files)
    : files_(std::make_shared<const SafetensorsSet>(std::move(files))) {}

Result<HfWeights> HfWeights::open(const std::filesystem::path& path, const Plan& plan) {
  Result<SafetensorsSet> files = SafetensorsSet::open(path);
  if (!files) return files.problems();
  Diagnostics problems;
  std::error_code ignored;
  const bool folder = std::filesystem::is_directory(path, ignored);
  compare_configuration(folder ? path : path.parent_path(), plan, problems);
  const ModelUnits units = model_units(lowering_context(plan, Granularity::layer, false));
  compare_tensors(*files, units, plan.model, path.string(), problems);
  if (problems.size() > kMostProblems) {
    const std::size_t more = problems.size() - kMostProblems;
    problems.resize(kMostProblems);
    problems.push_back(
        {path.string(), 0, 0, "--init-from", fmt::format("and {} more tensors", more), ""});
  }
  if (!problems.empty()) return problems;
  return HfWeights(*std::move(files));
}

WeightSource HfWeights::source() const {
  return [files = files_](const UnitTensor& tensor, std::int64_t first, std::span<float> values) {
    const SafetensorsSet::Place* const place = find(*files, tensor.name);
    SHARDWISE_CHECK(place != nullptr, tensor.name);
    const StoredType type = place->tensor->spec.type;
    std::vector<std::byte> bytes(values.size() * static_cast<std::size_t>(bytes_of(type)));
    files->read(*place, first * bytes_of(type), bytes);
    to_floats(type, bytes, values);
    const auto bad = std::ranges::find_if(values, [](float each) { return !std::isfinite(each); });
    if (bad == values.end()) return;
    throw BadInput(fmt::format(
        "{}: --init-from: {} is {} at element {}: weights are finite numbers",
        files->files()[place->file].name(), tensor.name, *bad, first + (bad - values.begin())));
  };
}

}  // namespace shardwise::exec
