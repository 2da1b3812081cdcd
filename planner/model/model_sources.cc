#include "planner/model/model_sources.h"

#include <algorithm>

#include "planner/spec/json/reader.h"

namespace shardwise {
namespace {

/// The sources of the catalogue in `folder`; empty when there are none.
std::vector<JsonMember> sources_in(const std::filesystem::path& folder) {
  const Result<JsonValue> read = read_json(folder / "model_sources.json");
  const JsonValue* models = read ? read->find("models") : nullptr;
  return models == nullptr ? std::vector<JsonMember>() : models->members;
}

std::string source(const JsonMember& entry) {
  const JsonValue* value = entry.value.find("source");
  return value == nullptr ? std::string() : value->string;
}

bool equal_but_for_case(const std::string& a, const std::string& b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
  return std::ranges::equal(a, b, {}, lower, lower);
}

}  // namespace

std::string source_of(const CatalogueFile& entry) {
  for (const JsonMember& known : sources_in(entry.path.parent_path().parent_path())) {
    if (known.key == entry.name) return source(known);
  }
  return {};
}

std::optional<std::string> entry_published_as(const std::string& repository) {
  const auto is_same = [&](const JsonValue& name) {
    return equal_but_for_case(name.string, repository);
  };
  for (const std::filesystem::path& folder : catalogue_folders()) {
    for (const JsonMember& known : sources_in(folder)) {
      if (equal_but_for_case(source(known), "huggingface.co/" + repository)) return known.key;
      const JsonValue* also = known.value.find("also");
      if (also != nullptr && std::ranges::any_of(also->elements, is_same)) return known.key;
    }
  }
  return std::nullopt;
}

}  // namespace shardwise
