#include "executor/kernels/cuda/gemm_plan_file.h"

#include <fmt/format.h>

#include <charconv>
#include <cstddef>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "planner/files/atomic_file.h"
#include "planner/spec/error.h"
#include "planner/spec/reader.h"

namespace shardwise::exec {
namespace {

constexpr const char* kSchema = "shardwise.gemm_plans/1";
constexpr std::uintmax_t kMostFileBytes = 4'000'000;
constexpr std::size_t kMostValues = 60'000;
constexpr std::int64_t kMostWorkspace = std::int64_t{1} << 30;
constexpr std::size_t kWordDigits = 16;
constexpr std::size_t kMostName = 256;

std::string text_of(const std::array<std::uint64_t, 8>& words) {
  std::string text;
  for (const std::uint64_t word : words) text += fmt::format("{:016x}", word);
  return text;
}

std::optional<std::array<std::uint64_t, 8>> words_of(std::string_view text) {
  std::array<std::uint64_t, 8> words = {};
  if (text.size() != words.size() * kWordDigits) return std::nullopt;
  const char* at = text.data();
  for (std::uint64_t& word : words) {
    const char* const end = at + kWordDigits;
    const auto [stopped, error] = std::from_chars(at, end, word, 16);
    if (error != std::errc() || stopped != end) return std::nullopt;
    at = end;
  }
  return words;
}

/// One line of all that is wrong.
std::string line_of(const std::string& path, const Diagnostics& problems) {
  const std::string text = problems.empty() ? path : to_string(problems.front());
  return "GEMM plans are ignored: " + text.substr(0, text.find('\n'));
}

GemmChoices choices_of(const JsonValue& plans, ObjectReader& file) {
  GemmChoices choices;
  std::size_t index = 0;
  for (const JsonValue& each : plans.elements) {
    ObjectReader plan = file.nested("plans", index++, each);
    const std::string product = plan.string("product");
    GemmChoice choice;
    choice.workspace_bytes = plan.integer("workspace_bytes", 0, kMostWorkspace);
    choice.microseconds = plan.number("microseconds", 0, 1e12);
    const auto words = words_of(plan.string("algorithm"));
    if (words) {
      choice.algorithm = *words;
    } else {
      plan.fail("algorithm", "not 128 hexadecimal digits");
    }
    plan.reject_unknown();
    if (product.size() > kMostName) plan.fail("product", "over 256 characters");
    if (!choices.emplace(product, choice).second) plan.fail("product", "is there twice");
  }
  return choices;
}

}  // namespace

ReadGemmPlans read_gemm_plans(const std::string& path, const GemmMachine& machine) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return {};
  const std::uintmax_t bytes = std::filesystem::file_size(path, error);
  if (error || bytes > kMostFileBytes) {
    return {{},
            fmt::format("GEMM plans are ignored: {}: {}", path,
                        error ? error.message() : fmt::format("{} bytes, over 4 MB", bytes))};
  }
  try {
    const Result<JsonValue> json = read_json(path, kMostValues);
    if (!json) return {{}, line_of(path, json.problems())};
    Diagnostics problems;
    ObjectReader file(*json, path, "", problems);
    file.require_schema(kSchema);
    const GemmMachine theirs = {file.string("gpu"), file.integer("cublaslt_version", 0, INT64_MAX)};
    GemmChoices choices;
    if (const JsonValue* plans = file.array("plans")) choices = choices_of(*plans, file);
    file.reject_unknown();
    if (!problems.empty()) return {{}, line_of(path, problems)};
    if (theirs != machine) {
      return {{},
              fmt::format("GEMM plans are ignored: {}: of {} with cuBLASLt {}, here {} with {}",
                          path, nlohmann::json(theirs.gpu).dump(), theirs.cublaslt_version,
                          nlohmann::json(machine.gpu).dump(), machine.cublaslt_version)};
    }
    return {std::move(choices), ""};
  } catch (const IoError& unreadable) {
    return {{}, fmt::format("GEMM plans are ignored: {}", unreadable.what())};
  }
}

void write_gemm_plans(const std::string& path, const GemmMachine& machine,
                      const GemmChoices& choices) {
  nlohmann::ordered_json json = {{"schema", kSchema},
                                 {"gpu", machine.gpu},
                                 {"cublaslt_version", machine.cublaslt_version},
                                 {"plans", nlohmann::ordered_json::array()}};
  for (const auto& [product, choice] : choices) {
    json["plans"].push_back({{"product", product},
                             {"algorithm", text_of(choice.algorithm)},
                             {"workspace_bytes", choice.workspace_bytes},
                             {"microseconds", choice.microseconds}});
  }
  AtomicFile file(path);
  file.write(json.dump(1) + "\n");
  file.finish();
  file.publish();
}

}  // namespace shardwise::exec
