#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "planner/spec/json/reader.h"
#include "planner/spec/plan/model_spec.h"
#include "planner/spec/text/diagnostic.h"

namespace shardwise {

/// A model, and the keys that its configuration lacks with what was taken for each: "head_dim 128",
/// the default of transformers' configuration class. Of a catalogue entry none are listed: its
/// parameters were checked against the published counts.
struct ReadModel {
  ModelSpec model;
  std::vector<std::string> absent_keys;
};

/// The model a Hugging Face config.json describes, taken as published. Keys we have no use for are
/// ignored. A key that decides a size must be there; another that is absent is listed.
///
/// "model_type": "transformer" with "schema": "shardwise.model/1" is our own description of any
/// transformer; there an unknown key is an error.
/// \param file  the name put into diagnostics
/// \param name  what the model is called in reports
/// \returns the model, or everything wrong with the file
Result<ReadModel> read_model_and_keys(const JsonValue& config, const std::string& file,
                                      const std::string& name);

/// Reads a model as above, without the keys.
Result<ModelSpec> read_model(const JsonValue& config, const std::string& file,
                             const std::string& name);

/// read_json, then read_model. The model is called as the file.
Result<ModelSpec> read_model_file(const std::filesystem::path& path);

/// The model that `--model` names: a path or a catalogue entry (planner/spec/json/catalogue.h), or
/// the repository on Hugging Face that an entry was published in ("meta-llama/Llama-3.1-8B"), or
/// the text of a configuration, which begins with "{". The source of a catalogue entry is known:
/// ModelSpec::source.
Result<ReadModel> load_model_and_keys(const std::string& name_or_path);

/// Loads a model as above, without the keys.
Result<ModelSpec> load_model(const std::string& name_or_path);

/// The values of "model_type" that read_model knows, sorted.
std::vector<std::string> known_model_types();

}  // namespace shardwise
