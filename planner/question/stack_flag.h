#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "planner/question/subject.h"
#include "planner/spec/plan/engine_profile.h"
#include "planner/spec/plan/model_spec.h"
#include "planner/spec/text/diagnostic.h"

namespace shardwise {

// A stack is no field of a job: it says what stands for the fields that nobody asks about, so a
// plan has those.

inline constexpr const char* kStackField = "stack";
inline constexpr const char* kStackText =
    "What is not asked for: tuned, as in published recipes, or ordinary, as software comes "
    "[each engine's usual choices]";

/// Settings that a stack makes of an engine, by field: "kernels" and "compiled".
struct StackSettings {
  std::vector<std::pair<std::string, std::string>> job;
  std::vector<std::pair<std::string, std::string>> layout;
};

/// *Ordinary* is what the software does when nothing is asked of it. PyTorch's operators run one by
/// one, transformers' RMSNorms among them, and torch.optim.AdamW goes over lists of tensors.
/// Megatron overlaps nothing with gradients' reduction, and neither fuses the loss nor cuts
/// activations along the sequence. *Tuned* is torch.compile with PyTorch's fused kernels, and
/// Megatron's switches on.
/// \param stack  "tuned" or "ordinary"
/// \pre has_stacks(engine)
/// Source: pytorch@v2.15.0:torch/optim/adamw.py (foreach on GPUs unless fused);
/// NVIDIA/Megatron-LM@d98e8a64:megatron/training/arguments.py (--overlap-grad-reduce,
/// --overlap-param-gather, --sequence-parallel, --cross-entropy-loss-fusion: off unless given).
StackSettings stack_settings(const EngineProfile& engine, const ModelSpec& model,
                             const std::string& stack);

/// PyTorch's engines and those with Megatron's modules; ours has one stack.
bool has_stacks(const EngineProfile& engine);

/// Whether a stack is asked for.
bool asks_for_stack(const std::map<std::string, std::string>& texts);

/// Takes the stack out of the texts of a job, and gives the fields that are open what it sets.
/// \pre subject.engine is read, if it can be
void take_stack(std::map<std::string, std::string>& texts, Subject& subject, Diagnostics& problems);

/// Gives the fields of a layout that are open what the subject's stack sets, and says so.
void add_stack(std::map<std::string, std::string>& texts, Subject& subject);

}  // namespace shardwise
