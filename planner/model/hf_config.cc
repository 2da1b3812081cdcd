#include "planner/model/hf_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "planner/model/build.h"
#include "planner/model/families/families.h"
#include "planner/model/hub_cache.h"
#include "planner/model/model_sources.h"
#include "planner/spec/json/catalogue.h"
#include "planner/spec/json/python_json.h"
#include "planner/spec/json/regular_file.h"
#include "planner/spec/text/utf8.h"

namespace shardwise {
namespace {

struct Family {
  std::string_view model_type;
  TransformerConfig (*read)(ConfigFile& file);
};

constexpr auto kFamilies = std::to_array<Family>({
    {"RefinedWeb", read_falcon},       // falcon-40b before transformers had the family
    {"RefinedWebModel", read_falcon},  // falcon-7b before transformers had the family
    {"bert", read_bert},
    {"bloom", read_bloom},
    {"deepseek_v2", read_deepseek_v2},
    {"deepseek_v3", read_deepseek_v3},
    {"falcon", read_falcon},
    {"gemma", read_gemma},
    {"gemma2", read_gemma2},
    {"gemma3_text", read_gemma3_text},
    {"gpt2", read_gpt2},
    {"gpt_neox", read_gpt_neox},
    {"gpt_oss", read_gpt_oss},
    {"llama", read_llama},
    {"mistral", read_mistral},
    {"mixtral", read_mixtral},
    {"mpt", read_mpt},
    {"opt", read_opt},
    {"phi3", read_phi3},
    {"qwen2", read_qwen2},
    {"qwen2_moe", read_qwen2_moe},
    {"qwen3", read_qwen3},
    {"qwen3_moe", read_qwen3_moe},
    {"t5", read_t5},
    {"transformer", read_transformer},
});

/// Gemma 3 with images keeps its text model one level down.
constexpr std::string_view kGemma3 = "gemma3";

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) {
    if (!text.empty()) text += ", ";
    text += word;
  }
  return text;
}

void reject_model_type(ObjectReader& reader, const std::string& model_type) {
  // No near name is advice: llama4 is one letter from llama and another architecture.
  std::string hint = "supported: " + joined(known_model_types()) +
                     "\n    any other transformer can be described by hand (docs/models.md), for "
                     "example:\n"
                     "    {\"schema\": \"shardwise.model/1\", \"model_type\": \"transformer\",\n"
                     "     \"hidden_size\": 4096, \"num_hidden_layers\": 32, "
                     "\"num_attention_heads\": 32,\n"
                     "     \"intermediate_size\": 11008, \"vocab_size\": 32000,\n"
                     "     \"max_position_embeddings\": 4096}";
  reader.fail("model_type", fmt::format("\"{}\" is not supported", shown(model_type)),
              std::move(hint));
}

/// Reads `config` as the family it names. Gives back nothing sensible after a problem.
TransformerConfig read_family(const JsonValue& config, const std::string& file,
                              Diagnostics& problems) {
  ObjectReader reader(config, file, "", problems);
  const JsonValue* schema = config.find("schema");
  if (!reader.has("model_type") && schema != nullptr && schema->string.starts_with("shardwise.")) {
    reader.fail("schema",
                fmt::format("expected a model's config.json, found \"{}\"", shown(schema->string)));
    return {};
  }
  if (!reader.has("model_type") && config.find("traceEvents") != nullptr) {
    reader.fail("", "this is a Chrome trace, no model's config.json");
    return {};
  }
  const std::string model_type = reader.string("model_type");
  if (!reader.ok()) return {};

  if (model_type == kGemma3) {
    const JsonValue* text = reader.object("text_config");
    if (text == nullptr) return {};
    ConfigFile nested(*text, file, "/text_config", problems);
    TransformerConfig result = read_gemma3_text(nested);
    result.names.token_embedding = "language_model.model.embed_tokens";
    result.names.final_norm = "language_model.model.norm";
    result.names.block.prefix = "language_model.model.layers.{layer}.";
    nested.check(result);
    result.absent_keys = nested.assumed();
    result.model_type = model_type;
    return result;
  }

  const auto family = std::find_if(kFamilies.begin(), kFamilies.end(),
                                   [&](const Family& f) { return f.model_type == model_type; });
  if (family == kFamilies.end()) {
    reject_model_type(reader, model_type);
    return {};
  }
  ConfigFile keys(config, file, "", problems);
  TransformerConfig result = family->read(keys);
  keys.check(result);
  // In a description by hand an absent key has a meaning of its own (docs/models.md).
  if (model_type != "transformer") result.absent_keys = keys.assumed();
  result.model_type = model_type;
  return result;
}

Result<JsonValue> read_regular_json(const std::filesystem::path& path) {
  const Result<std::string> text = read_regular_file(path);
  if (!text) return text.problems();
  return parse_python_json(*text, path.string());
}

/// What the user names may be a pipe.
Result<JsonValue> read_named_json(const std::filesystem::path& path) {
  const Result<std::string> text = read_file(path);
  if (!text) return text.problems();
  return parse_python_json(*text, path.string());
}

/// "google/gemma-3-27b-it": owner and name, and no file's name.
bool is_repository(const std::string& name) {
  const std::filesystem::path path(name);
  return std::ranges::count(name, '/') == 1 && !name.starts_with('.') && !name.starts_with('/') &&
         !name.ends_with('/') && path.extension() != ".json" &&
         !std::filesystem::exists(path.parent_path());
}

/// A repository that the catalogue has no entry of.
Result<ReadModel> load_from_hub_cache(const std::string& repository) {
  const std::optional<std::filesystem::path> file = config_in_hub_cache(repository);
  if (!file) {
    Diagnostic unknown = unknown_name("models", repository);
    unknown.message += ", nor is its config.json in the Hugging Face cache";
    return unknown;
  }
  const Result<JsonValue> config = read_named_json(*file);
  if (!config) return config.problems();
  return read_model_and_keys(*config, file->string(), repository);
}

/// A model whose text stands in the place of its name, called by its sizes: "transformer-32x4096".
Result<ReadModel> read_described(const std::string& text) {
  const Result<JsonValue> config = parse_json(text, "--model");
  if (!config) return config.problems();
  const auto size = [&](const char* key) {
    const JsonValue* value = config->find(key);
    return value == nullptr ? std::int64_t{0} : value->integer;
  };
  const std::string name =
      fmt::format("transformer-{}x{}", size("num_hidden_layers"), size("hidden_size"));
  return read_model_and_keys(*config, "--model", name);
}

}  // namespace

std::vector<std::string> known_model_types() {
  std::vector<std::string> names{std::string(kGemma3)};
  for (const Family& family : kFamilies) names.emplace_back(family.model_type);
  std::sort(names.begin(), names.end());
  return names;
}

Result<ReadModel> read_model_and_keys(const JsonValue& config, const std::string& file,
                                      const std::string& name) {
  if (has_control_character(name)) {
    return Diagnostic{file, 0, 0, "", "its name has a control character", "rename the file"};
  }
  Diagnostics problems;
  TransformerConfig read = read_family(config, file, problems);
  if (!problems.empty()) {
    std::ranges::stable_sort(problems, {}, [](const Diagnostic& problem) {
      return std::pair(problem.line, problem.column);
    });
    return problems;
  }
  Result<ModelSpec> model = make_model(read, name);
  if (!model) return model.problems();
  return ReadModel{*std::move(model), std::move(read.absent_keys)};
}

Result<ModelSpec> read_model(const JsonValue& config, const std::string& file,
                             const std::string& name) {
  Result<ReadModel> read = read_model_and_keys(config, file, name);
  if (!read) return read.problems();
  return std::move(read->model);
}

Result<ModelSpec> read_model_file(const std::filesystem::path& path) {
  const Result<JsonValue> config = read_regular_json(path);
  if (!config) return config.problems();
  return read_model(*config, path.string(), path.stem().string());
}

Result<ReadModel> load_model_and_keys(const std::string& name_or_path) {
  if (name_or_path.starts_with('{')) return read_described(name_or_path);
  const Result<CatalogueFile> found = find_in_catalogue("models", name_or_path);
  if (!found) return found.problems();
  if (!found->exists) {
    if (const auto entry = entry_published_as(name_or_path)) return load_model_and_keys(*entry);
    if (is_repository(name_or_path)) return load_from_hub_cache(name_or_path);
  }
  const bool named = found->path == std::filesystem::path(name_or_path);
  const Result<JsonValue> config =
      named ? read_named_json(found->path) : read_regular_json(found->path);
  if (!config) return config.problems();
  Result<ReadModel> read = read_model_and_keys(*config, found->path.string(), found->name);
  if (read && found->from_catalogue) {
    read->model.source = source_of(*found);
    read->absent_keys.clear();
  }
  return read;
}

Result<ModelSpec> load_model(const std::string& name_or_path) {
  Result<ReadModel> read = load_model_and_keys(name_or_path);
  if (!read) return read.problems();
  return std::move(read->model);
}

}  // namespace shardwise
