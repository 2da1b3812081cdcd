#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <vector>

#include "executor/engine/rank_state.h"
#include "executor/storage/safetensors_set.h"
#include "planner/spec/plan/plan.h"

namespace shardwise::exec {

// Weights as Hugging Face stores them: safetensors, one file or several with an index, beside a
// config.json. Tensors have the names of transformers' …ForCausalLM classes (ParameterSpec::name)
// and its shapes: GPT-2's Conv1D matrices are [in, out]. Where a head is the embedding's table, the
// table alone is stored.

/// Weights of a folder that are those of a plan's model.
class HfWeights {
 public:
  /// \param path  a folder, a .safetensors file or an index
  /// \returns every tensor that is missing, not the model's, of another shape or no float; and what
  ///          a config.json in the folder says that the plan's model does not
  static Result<HfWeights> open(const std::filesystem::path& path, const Plan& plan);

  /// Reads what is asked for and no more. F32, BF16 and F16 become fp32. \throws IoError
  WeightSource source() const;

 private:
  explicit HfWeights(SafetensorsSet files);
  std::shared_ptr<const SafetensorsSet> files_;
};

/// Whether a stored tensor that the model lacks is one that transformers stores or stored beside
/// weights (attention masks of GPT-2, rotary frequencies, a tied head), or a mistake.
/// Source: transformers 5.23.0, models/gpt2/modeling_gpt2.py, _keys_to_ignore_on_load_unexpected.
bool is_passed_over(const std::string& name, const ModelSpec& model);

/// Numbers of a stored type as fp32. \pre F32, BF16 or F16; bytes.size() is theirs
void to_floats(StoredType type, std::span<const std::byte> bytes, std::span<float> values);

}  // namespace shardwise::exec
