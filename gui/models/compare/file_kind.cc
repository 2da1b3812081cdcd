#include "gui/models/compare/file_kind.h"

#include <fmt/format.h>

#include <array>
#include <filesystem>
#include <system_error>

#include "planner/spec/json/python_json.h"
#include "planner/spec/json/reader.h"
#include "planner/spec/text/utf8.h"
#include "simulator/traces/trace_file.h"

namespace shardwise::view {
namespace {

constexpr const char* kOpened =
    "the viewer opens plans, reports, traces, pages of shardwise report, metrics, models and "
    "clusters";

struct Schema {
  std::string_view begins;
  FileKind kind;
};
constexpr std::array<Schema, 6> kSchemas = {{{"shardwise.plan/", FileKind::plan},
                                             {"shardwise.report/", FileKind::report},
                                             {"shardwise.trace/", FileKind::trace},
                                             {"shardwise.metrics/", FileKind::metrics},
                                             {"shardwise.model/", FileKind::model},
                                             {"shardwise.cluster/", FileKind::cluster}}};

}  // namespace

Result<FileKind> kind_of_text(std::string_view text, const std::string& file) {
  const std::size_t first = text.find_first_not_of(" \t\r\n\xEF\xBB\xBF");
  if (first == std::string_view::npos) return Diagnostic{file, 0, 0, "", "the file is empty", ""};
  if (text[first] == '<') return FileKind::plan;
  const std::string_view line = text.substr(0, text.find('\n'));
  if (line.starts_with("{\"schema\":\"shardwise.metrics/")) return FileKind::metrics;
  const Result<JsonValue> json = parse_python_json(text, file);
  if (!json) return json.problems();
  const JsonValue* const schema = json->find("schema");
  if (schema != nullptr && schema->kind == JsonValue::Kind::string) {
    for (const Schema& each : kSchemas) {
      if (schema->string.starts_with(each.begins)) return each.kind;
    }
    return Diagnostic{file,
                      schema->line,
                      schema->column,
                      "/schema",
                      fmt::format("{} is not opened here", shown(schema->string)),
                      kOpened};
  }
  for (const std::string_view key : {"model_type", "architectures", "hidden_size"}) {
    if (json->find(key) != nullptr) return FileKind::model;
  }
  if (json->find("traceEvents") != nullptr) return FileKind::trace;
  return Diagnostic{file, json->line, json->column, "", "nothing in it says what it is", kOpened};
}

Result<FileKind> kind_of_file(const std::string& path) {
  std::error_code unknown;
  // A pipe would be waited for.
  const bool regular = std::filesystem::is_regular_file(path, unknown);
  if (regular && sim::is_trace(path)) return FileKind::trace;
  const Result<std::string> text = read_file(path);
  if (!text) return text.problems();
  return kind_of_text(*text, path);
}

}  // namespace shardwise::view
