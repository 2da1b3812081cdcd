// Values that the frameworks' own parsers take or refuse, tests/golden/framework_values.py.

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "planner/export/check_configuration.h"
#include "planner/export/framework/framework_reader.h"

namespace shardwise {
namespace {

using Json = nlohmann::json;

/// The words of `base` with those of the setting in the place of its own.
std::vector<std::string> with_words(const Json& base, const std::string& name, const Json& value) {
  auto words = base.get<std::vector<std::string>>();
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    if (words[i] != name) continue;
    const auto at = words.begin() + static_cast<std::ptrdiff_t>(i);
    words.erase(at, at + 2);
    break;
  }
  words.push_back(name);
  if (!value.is_null()) words.push_back(value.get<std::string>());
  return words;
}

/// The text of `base` with the key "zero_optimization.stage" set.
std::string with_key(Json base, const std::string& name, const Json& value) {
  Json* inner = &base;
  std::size_t from = 0;
  for (std::size_t dot = name.find('.'); dot != std::string::npos; dot = name.find('.', from)) {
    inner = &(*inner)[name.substr(from, dot - from)];
    from = dot + 1;
  }
  (*inner)[name.substr(from)] = value;
  return base.dump();
}

/// Whether check finds nothing that the framework refuses.
bool is_taken(const Framework& framework, const Json& base, const std::string& name,
              const Json& value) {
  const Result<Configuration> given =
      base.is_array() ? configuration_of_words(with_words(base, name, value))
                      : read_configuration(with_key(base, name, value), "asked.json");
  if (!given) return false;
  const std::int64_t ranks = framework.name == "accelerate" ? 0 : 8;  // which its YAML states
  const auto findings = check_configuration(framework, *given, ranks, {});
  if (!findings) return false;
  for (const Finding& each : *findings) {
    if (each.kind == CheckRule::Kind::refused) return false;
  }
  return true;
}

TEST(Values, AreTakenAndRefusedAsTheFrameworksParsersDo) {
  std::ifstream file("tests/golden/framework_values.json");
  const Json all = Json::parse(file);
  std::size_t asked = 0;
  for (const Json& of : all["frameworks"]) {
    const auto name = of["name"].get<std::string>();
    const Result<Framework> framework = load_framework(name, "--from");
    ASSERT_TRUE(framework.ok()) << to_string(framework.problems());
    for (const Json& row : of["settings"]) {
      const auto setting = row["setting"].get<std::string>();
      ASSERT_NE(framework->find(setting), nullptr) << "run tests/golden/framework_values.py";
      const auto expect = [&](const char* list, bool taken) {
        for (const Json& value : row[list]) {
          ++asked;
          EXPECT_EQ(is_taken(*framework, of["base"], setting, value), taken)
              << name << " " << setting << " " << value << ", " << list;
        }
      };
      expect("takes", true);
      expect("refuses", false);
      expect("stricter", false);  // by a rule, or it is no value that means anything
      expect("looser", true);
    }
  }
  EXPECT_GE(asked, 2000U);
}

}  // namespace
}  // namespace shardwise
