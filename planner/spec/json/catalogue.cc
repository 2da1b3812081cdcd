#include "planner/spec/json/catalogue.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <system_error>
#include <utility>

#include "planner/spec/json/near_models.h"
#include "planner/spec/text/nearest.h"
#include "planner/spec/text/utf8.h"

namespace shardwise {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kExtension = ".json";
/// Folders of a catalogue, any of which it may have.
constexpr std::array kKinds = {"models",  "gpus", "clusters",  "collectives",
                               "engines", "data", "frameworks"};

bool is_file(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

bool is_folder(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

/// Whether nobody made a folder, or can write it, but root, this user, and who owns this program,
/// who could do anything. \param top  its parts below this are asked, which may not be a link of
/// another's either: in a sticky folder such as /tmp anybody may add to a program's files
bool is_of_program(const fs::path& folder, const fs::path& top) {
  struct stat program = {};
  if (::stat("/proc/self/exe", &program) != 0) return false;
  const auto trusted = [&](const struct stat& facts) {
    return facts.st_uid == 0 || facts.st_uid == ::geteuid() || facts.st_uid == program.st_uid;
  };
  fs::path part = top;
  for (const fs::path& name : folder.lexically_relative(top)) {
    part /= name;
    struct stat own = {};
    struct stat target = {};
    if (::lstat(part.c_str(), &own) != 0 || ::stat(part.c_str(), &target) != 0) return false;
    if (!trusted(own) || !trusted(target) || (target.st_mode & S_IWOTH) != 0) return false;
  }
  return true;
}

/// "--model" for the catalogue "models".
std::string flag_of(std::string_view kind) {
  return "--" + std::string(kind.substr(0, kind.size() - 1));
}

Diagnostic catalogue_problem(std::string_view kind, std::string message, std::string hint) {
  Diagnostic result;
  result.file = "command line";
  result.path = flag_of(kind);
  result.message = std::move(message);
  result.hint = std::move(hint);
  return result;
}

Result<CatalogueFile> from_folder(std::string_view kind, const fs::path& folder) {
  fs::path file = folder / "config.json";
  if (!is_file(file)) {
    return catalogue_problem(
        kind, fmt::format("the folder {} has no config.json", shown(folder.string(), 200)),
        "name the file itself");
  }
  const fs::path named = folder.has_filename() ? folder : folder.parent_path();
  return CatalogueFile{std::move(file), named.filename().string(), false, true};
}

/// The words of a kind: "cluster", "GPU".
std::string noun_of(std::string_view kind) {
  return kind == "gpus" ? "GPU" : std::string(kind.substr(0, kind.size() - 1));
}

/// A file that is there and can be none of `kind`: its text is not JSON, or it is no text. What
/// begins as JSON is the reader's, and so is an empty file.
bool is_other_file(const fs::path& path) {
  if (!is_file(path)) return false;
  std::array<char, 4096> begin{};
  std::ifstream file(path, std::ios::binary);
  file.read(begin.data(), begin.size());
  const std::string_view text(begin.data(), static_cast<std::size_t>(file.gcount()));
  const std::size_t first = text.find_first_not_of(" \t\r\n\xEF\xBB\xBF");
  return first != std::string_view::npos && text[first] != '{' && text[first] != '[';
}

Diagnostic other_file(std::string_view kind, const std::string& path) {
  const std::string noun = noun_of(kind);
  const std::string right = kind == "models"
                                ? "a model file is a Hugging Face config.json, or docs/models.md"
                                : fmt::format("a {} file is JSON: docs/formats.md", noun);
  return catalogue_problem(
      kind, fmt::format("{} is there, but is no {} file", shown(path, 200), noun),
      fmt::format("{}\n    shardwise list {} shows the catalogue", right, kind));
}

/// At most four names that `word` may have meant, nearest first: slips of the pen, else names that
/// contain it or begin with its letters ("llama", "h100").
std::vector<std::string> nearest_names(std::string_view word, std::vector<std::string> known) {
  constexpr std::size_t kMost = 4;
  constexpr std::size_t kFewestLetters = 3;
  std::vector<std::string> near;
  while (near.size() < kMost) {
    const std::optional<std::string> next = nearest(word, known);
    if (!next) break;
    near.push_back(*next);
    std::erase(known, *next);
  }
  const std::string_view letters =
      word.substr(0, word.find_first_not_of("abcdefghijklmnopqrstuvwxyz"));
  for (const std::string& name : known) {
    if (near.size() == kMost) break;
    const bool contains = !word.empty() && name.find(word) != std::string::npos;
    const bool begins = letters.size() >= kFewestLetters && name.starts_with(letters);
    if (contains || begins) near.push_back(name);
  }
  return near;
}

}  // namespace

Diagnostic unknown_name(std::string_view kind, const std::string& name) {
  const std::vector<std::string> known = catalogue_names(kind);
  if (known.empty()) {
    return catalogue_problem(
        kind, fmt::format("\"{}\" is not a file, and there is no catalogue", shown(name)),
        "set SHARDWISE_CONFIGS to the folder configs/ of Shardwise");
  }
  const bool model = kind == "models";
  const std::vector<std::string> near =
      model ? near_models(name, known) : nearest_names(name, known);
  std::string hint;
  if (model && near.size() == 1 && names_model(name, near.front())) {
    hint =
        fmt::format("did you mean {}? its variants have the same architecture\n    ", near.front());
  } else if (model && near.empty() && name.find_first_of("0123456789") != std::string::npos) {
    hint = "nothing of its architecture is there: give its config.json\n    ";
  } else if (!near.empty()) {
    hint = fmt::format("did you mean {}?\n    ", fmt::join(near, ", "));
  }
  hint +=
      fmt::format("shardwise list {} shows all {}; or give the path of a file", kind, known.size());
  return catalogue_problem(kind,
                           fmt::format("\"{}\" is not in the catalogue of {}", shown(name), kind),
                           std::move(hint));
}

std::vector<fs::path> catalogue_folders() {
  std::vector<fs::path> folders;
  const char* chosen = std::getenv("SHARDWISE_CONFIGS");
  if (chosen != nullptr && *chosen != '\0') folders.emplace_back(chosen);
  std::error_code unknown;
  const fs::path program = fs::read_symlink("/proc/self/exe", unknown);
  const fs::path own = program.parent_path();
  fs::path beside = (own / SHARDWISE_CONFIGS_BESIDE_PROGRAM).lexically_normal();
  if (!unknown && is_folder(beside) && is_of_program(beside, own.parent_path())) {
    folders.push_back(std::move(beside));
  }
  folders.emplace_back(SHARDWISE_INSTALLED_CONFIGS);
  folders.emplace_back(SHARDWISE_SOURCE_CONFIGS);
  return folders;
}

Diagnostics check_catalogue() {
  const char* const chosen = std::getenv("SHARDWISE_CONFIGS");
  if (chosen == nullptr || *chosen == '\0') return {};
  const fs::path folder(chosen);
  const auto has = [&](const char* kind) { return is_folder(folder / kind); };
  if (std::ranges::any_of(kKinds, has)) return {};
  const std::string said = shown(chosen, 200);
  return {{"environment", 0, 0, "SHARDWISE_CONFIGS",
           is_folder(folder)
               ? fmt::format("{} has none of the folders {}", said, fmt::join(kKinds, ", "))
               : said + " is not a folder",
           "name the folder configs/ of Shardwise, or unset it"}};
}

std::vector<std::string> catalogue_names(std::string_view kind) {
  std::vector<std::string> names;
  for (const fs::path& folder : catalogue_folders()) {
    std::error_code missing;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder / kind, missing)) {
      const fs::path& path = entry.path();
      if (path.extension() == kExtension && is_file(path)) names.push_back(path.stem().string());
    }
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

Result<CatalogueFile> find_in_catalogue(std::string_view kind, const std::string& name_or_path) {
  const fs::path path(name_or_path);
  if (name_or_path.empty())
    return catalogue_problem(kind, "is empty", "give a name or the path of a file");
  const bool looks_like_path =
      name_or_path.find('/') != std::string::npos || path.extension() == kExtension;
  if (looks_like_path) {
    if (is_folder(path)) return from_folder(kind, path);
    if (is_other_file(path)) return other_file(kind, name_or_path);
    // A missing file is the reader's message.
    const fs::path stem = path.filename() == "config.json" && path.has_parent_path()
                              ? path.parent_path().filename()
                              : path.stem();
    return CatalogueFile{path, stem.string(), false, is_file(path)};
  }
  for (const fs::path& folder : catalogue_folders()) {
    fs::path file = folder / kind / (name_or_path + std::string(kExtension));
    if (is_file(file)) return CatalogueFile{std::move(file), name_or_path, true, true};
  }
  if (is_folder(path)) return from_folder(kind, path);
  if (is_other_file(path)) return other_file(kind, name_or_path);
  if (is_file(path)) return CatalogueFile{path, path.stem().string(), false, true};
  return unknown_name(kind, name_or_path);
}

}  // namespace shardwise
