#pragma once

#include <array>
#include <map>
#include <string>

#include "planner/question/subject.h"
#include "planner/spec/text/diagnostic.h"

namespace shardwise {

/// Flag of a model's adapters, in words for the help. They are no fields of a JobSpec: the model
/// has them (planner/cost/layer/adapters.h).
struct AdapterFlag {
  const char* field;
  const char* value;
  const char* text;
};
inline constexpr const char* kNoAdapters = "none";  // of lora_targets
inline constexpr std::array<AdapterFlag, 3> kAdapterFlags = {{
    {"lora_targets", "NAME,…",
     "Train LoRA adapters on these: PEFT's target_modules, all-linear or none; the model is frozen "
     "[q_proj,v_proj of a frozen model under PyTorch's engines, as PEFT]"},
    {"lora_rank", "N", "Rank of the adapters [8]"},
    {"base_format", "KIND",
     "The frozen matrices as bitsandbytes keeps them: int8 (load_in_8bit), nf4, or nf4_double, "
     "whose "
     "scales are 8 bits (QLoRA) [16 bits]"},
}};

/// Texts of adapters, taken out of those of a job.
struct AdapterTexts {
  std::string targets;
  std::string rank;
  std::string base;
  bool adamw_open = false;  // nobody asks for an AdamW
};
/// Takes them out of `texts` and, where there are any, freezes the rest of the model.
AdapterTexts take_adapter_texts(std::map<std::string, std::string>& texts);

/// Adds the adapters that are asked for to the model, or of a frozen model those that PEFT takes by
/// itself, and says what was taken for want of a flag.
/// \pre subject.engine and subject.job are read
void add_asked_adapters(const AdapterTexts& asked, Subject& subject, Diagnostics& problems);

/// The texts of a model's adapters: with them add_asked_adapters() makes it of the same without.
std::map<std::string, std::string> adapter_texts(const ModelSpec& model);

}  // namespace shardwise
