#include "executor/kernels/cuda/kernel_choices.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>
#include <utility>

#include "planner/files/atomic_file.h"
#include "planner/files/trusted_file.h"
#include "planner/spec/json/reader.h"
#include "planner/spec/json/regular_file.h"
#include "planner/spec/text/error.h"

namespace shardwise::exec {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSchema = "shardwise.kernel_choices/1";
constexpr std::size_t kMostBytes = 4'000'000;
constexpr std::size_t kMostValues = 60'000;
constexpr std::int64_t kMostWorkspace = std::int64_t{1} << 30;
constexpr std::int64_t kMostVersion = 1'000'000'000;
constexpr double kMostMicroseconds = 1e12;
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

ReadKernelChoices ignored(const std::string& why) {
  return {{}, "kept kernel choices are ignored: " + why.substr(0, why.find('\n'))};
}
ReadKernelChoices ignored(const Diagnostics& problems, const std::string& name) {
  return ignored(problems.empty() ? name : to_string(problems.front()));
}

/// Adds to `choices` under the text of `key`.
template <class Choices, class Choice>
void add(Choices& choices, ObjectReader& reader, const char* key, const Choice& choice) {
  const std::string name = reader.string(key);
  reader.reject_unknown();
  if (name.size() > kMostName) reader.fail(key, "over 256 characters");
  if (!choices.emplace(name, choice).second) reader.fail(key, "is there twice");
}

GemmChoices products_of(const JsonValue& list, ObjectReader& file) {
  GemmChoices choices;
  std::size_t index = 0;
  for (const JsonValue& each : list.elements) {
    ObjectReader product = file.nested("products", index++, each);
    GemmChoice choice;
    choice.workspace_bytes = product.integer("workspace_bytes", 0, kMostWorkspace);
    choice.microseconds = product.number("microseconds", 0, kMostMicroseconds);
    choice.apart_microseconds = product.number_or("apart_microseconds", 0, 0, kMostMicroseconds);
    const auto words = words_of(product.string("algorithm"));
    if (words) {
      choice.algorithm = *words;
    } else {
      product.fail("algorithm", "not 128 hexadecimal digits");
    }
    add(choices, product, "product", choice);
  }
  return choices;
}

AttentionChoices attention_of(const JsonValue& list, ObjectReader& file) {
  AttentionChoices choices;
  std::size_t index = 0;
  for (const JsonValue& each : list.elements) {
    ObjectReader attention = file.nested("attention", index++, each);
    AttentionChoice choice;
    choice.cudnn = attention.choice("kernel", {"own", "cudnn"}) == 1;
    choice.cudnn_microseconds = attention.number("cudnn_microseconds", 0, kMostMicroseconds);
    choice.own_microseconds = attention.number("own_microseconds", 0, kMostMicroseconds);
    add(choices, attention, "shape", choice);
  }
  return choices;
}

/// "nvidia-h100" of "NVIDIA H100".
std::string file_name_of(const std::string& gpu) {
  constexpr std::size_t kMost = 64;
  std::string name;
  for (const char each : gpu.substr(0, kMost)) {
    const bool upper = each >= 'A' && each <= 'Z';
    const bool plain = (each >= 'a' && each <= 'z') || (each >= '0' && each <= '9');
    name += upper ? static_cast<char>(each - 'A' + 'a') : plain ? each : '-';
  }
  return name;
}

/// Of a variable of the environment; nothing where that is no absolute path.
std::string folder_of(const char* variable) {
  const char* const value = std::getenv(variable);
  return value != nullptr && value[0] == '/' ? value : "";
}

}  // namespace

std::string to_json(const KernelMachine& machine, const KernelChoices& choices) {
  nlohmann::ordered_json json = {{"schema", kSchema},
                                 {"gpu", machine.gpu},
                                 {"driver_version", machine.driver_version},
                                 {"cublaslt_version", machine.cublaslt_version},
                                 {"cudnn_version", machine.cudnn_version},
                                 {"products", nlohmann::ordered_json::array()},
                                 {"attention", nlohmann::ordered_json::array()}};
  for (const auto& [product, choice] : choices.products) {
    json["products"].push_back({{"product", product},
                                {"algorithm", text_of(choice.algorithm)},
                                {"workspace_bytes", choice.workspace_bytes},
                                {"microseconds", choice.microseconds}});
    if (choice.apart_microseconds > 0) {
      json["products"].back()["apart_microseconds"] = choice.apart_microseconds;
    }
  }
  for (const auto& [shape, choice] : choices.attention) {
    json["attention"].push_back({{"shape", shape},
                                 {"kernel", choice.cudnn ? "cudnn" : "own"},
                                 {"cudnn_microseconds", choice.cudnn_microseconds},
                                 {"own_microseconds", choice.own_microseconds}});
  }
  // CUDA's name of a GPU may be any bytes.
  return json.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

ReadKernelChoices parse_kernel_choices(std::string_view text, const std::string& name,
                                       const KernelMachine& machine) {
  if (text.size() > kMostBytes) {
    return ignored(fmt::format("{}: {} bytes, over 4 MB", name, text.size()));
  }
  const Result<JsonValue> json = parse_json(text, name, kMostValues);
  if (!json) return ignored(json.problems(), name);
  Diagnostics problems;
  ObjectReader file(*json, name, "", problems);
  file.require_schema(kSchema);
  KernelMachine theirs;
  theirs.gpu = file.string("gpu");
  theirs.driver_version = static_cast<int>(file.integer("driver_version", 0, kMostVersion));
  theirs.cublaslt_version = file.integer("cublaslt_version", 0, kMostVersion);
  theirs.cudnn_version = file.integer("cudnn_version", 0, kMostVersion);
  KernelChoices choices;
  if (const JsonValue* list = file.array("products")) choices.products = products_of(*list, file);
  if (const JsonValue* list = file.array("attention")) {
    choices.attention = attention_of(*list, file);
  }
  file.reject_unknown();
  if (!problems.empty()) return ignored(problems, name);
  if (theirs == machine) return {std::move(choices), ""};
  const auto of = [](const KernelMachine& each) {
    return fmt::format("{}, CUDA {}, cuBLASLt {}, cuDNN {}", nlohmann::json(each.gpu).dump(),
                       each.driver_version, each.cublaslt_version, each.cudnn_version);
  };
  return ignored(fmt::format("{}: of {}, here {}", name, of(theirs), of(machine)));
}

ReadKernelChoices read_kernel_choices(const std::string& path, const KernelMachine& machine) {
  std::error_code none;
  if (fs::symlink_status(path, none).type() == fs::file_type::not_found) return {};
  try {
    const Result<std::string> text = read_regular_file(path, SymbolicLinks::refused);
    if (!text) return ignored(text.problems(), path);
    return parse_kernel_choices(*text, path, machine);
  } catch (const IoError& broken) {
    return ignored(broken.what());
  }
}

void write_kernel_choices(const std::string& path, const KernelMachine& machine,
                          const KernelChoices& choices) {
  const fs::path folder = fs::path(path).parent_path();
  std::error_code broken;
  if (!folder.empty()) fs::create_directories(folder, broken);
  if (broken) throw IoError(fmt::format("{}: {}", folder.string(), broken.message()));
  KernelChoices all = choices;
  KernelChoices there = read_kernel_choices(path, machine).choices;
  all.products.merge(there.products);
  all.attention.merge(there.attention);
  std::string text = to_json(machine, all);
  // Of a file that grew until nobody reads it, what this run needs is left.
  if (!parse_kernel_choices(text, path, machine).ignored.empty()) text = to_json(machine, choices);
  AtomicFile file(path, SymbolicLinks::refused);
  file.write(text);
  file.finish();
  file.publish();
}

std::string kernel_choices_folder() {
  if (const char* const said = std::getenv("SHARDWISE_KERNEL_CHOICES"); said != nullptr) {
    return said[0] == '/' ? said : "";
  }
  std::string home = folder_of("XDG_CACHE_HOME");
  fs::path within = "shardwise";
  if (home.empty()) {
    home = folder_of("HOME");
    within = fs::path(".cache") / within;
  }
  if (home.empty() || !may_keep(home, within.string())) return "";
  return (home / within).string();
}

std::string kernel_choices_file(const KernelMachine& machine) {
  return fmt::format("kernels_{}_cuda-{}_cublaslt-{}_cudnn-{}.json", file_name_of(machine.gpu),
                     machine.driver_version, machine.cublaslt_version, machine.cudnn_version);
}

}  // namespace shardwise::exec
