#include <algorithm>
#include <unordered_map>

#include <fmt/format.h>

#include "planner/score/rows/row.h"
#include "planner/spec/text/utf8.h"

namespace shardwise {
namespace {

constexpr std::int64_t kLargestSize = 100'000'000;
constexpr std::int64_t kLargestDegree = 1'000'000;
constexpr double kSmallestFigure = 1e-9;
constexpr double kLargestFigure = 1e15;
constexpr std::size_t kMostProblems = 10'000;

std::optional<std::int64_t> integer(ObjectReader& object, std::string_view key, std::int64_t low,
                                    std::int64_t high) {
  if (!object.has(key)) return std::nullopt;
  return object.integer(key, low, high);
}

std::optional<double> positive(ObjectReader& object, std::string_view key) {
  if (!object.has(key)) return std::nullopt;
  return object.number(key, kSmallestFigure, kLargestFigure);
}

std::optional<bool> boolean(ObjectReader& object, std::string_view key) {
  if (!object.has(key)) return std::nullopt;
  return object.boolean(key);
}

std::string text(ObjectReader& object, std::string_view key) { return object.string_or(key, ""); }

RowMoe read_moe(ObjectReader moe) {
  RowMoe m;
  m.experts = moe.integer("experts", 1, 65'536);
  m.topk = moe.integer("topk", 1, 65'536);
  m.ffn = moe.integer("ffn", 1, kLargestSize);
  m.shared_ffn = moe.integer_or("shared_ffn", 0, 0, kLargestSize);
  m.first_dense_layers = moe.integer_or("first_dense_layers", 0, 0, 10'000);
  m.layer_freq = moe.integer_or("layer_freq", 1, 1, 10'000);
  m.dispatcher = text(moe, "dispatcher");
  return m;
}

RowMla read_mla(ObjectReader mla) {
  RowMla m;
  m.q_lora_rank = mla.integer_or("q_lora_rank", 0, 0, kLargestSize);
  m.kv_lora_rank = mla.integer("kv_lora_rank", 1, kLargestSize);
  m.qk_head_dim = mla.integer("qk_head_dim", 1, kLargestSize);
  m.qk_rope_dim = mla.integer_or("qk_rope_dim", 0, 0, kLargestSize);
  m.v_head_dim = mla.integer("v_head_dim", 1, kLargestSize);
  return m;
}

RowModel read_model(ObjectReader model) {
  RowModel m;
  m.name = text(model, "name");
  m.arch = text(model, "arch");
  m.layers = integer(model, "layers", 1, 10'000);
  m.hidden = integer(model, "hidden", 1, kLargestSize);
  m.ffn = integer(model, "ffn", 1, kLargestSize);
  m.heads = integer(model, "heads", 1, 65'536);
  m.kv_heads = integer(model, "kv_heads", 1, 65'536);
  m.head_dim = integer(model, "head_dim", 1, kLargestSize);
  m.vocab = integer(model, "vocab", 1, kLargestSize);
  m.seq = integer(model, "seq", 1, kLargestSize);
  m.mtp_layers = model.integer_or("mtp_layers", 0, 0, 100);
  m.tied_embeddings = boolean(model, "tied_embeddings");
  m.gated_mlp = boolean(model, "gated_mlp");
  m.bias = boolean(model, "bias");
  m.norm = text(model, "norm");
  m.pos_emb = text(model, "pos_emb");
  m.params_exact = positive(model, "params_exact");
  if (const JsonValue* moe = model.object("moe", false))
    m.moe = read_moe(model.nested("moe", *moe));
  if (const JsonValue* mla = model.object("mla", false))
    m.mla = read_mla(model.nested("mla", *mla));
  return m;
}

RowHardware read_hardware(ObjectReader hardware) {
  RowHardware h;
  h.gpu = text(hardware, "gpu");
  h.gpu_mem_gb = positive(hardware, "gpu_mem_gb");
  h.gpus = integer(hardware, "gpus", 1, 100 * kLargestDegree);
  h.gpus_per_node = integer(hardware, "gpus_per_node", 1, 1024);
  h.intra_link = text(hardware, "intra_link");
  h.inter_link = text(hardware, "inter_link");
  return h;
}

RowParallel read_parallel(ObjectReader parallel, const JsonValue& value) {
  RowParallel p;
  p.dp = integer(parallel, "dp", 1, kLargestDegree);
  p.tp = integer(parallel, "tp", 1, kLargestDegree);
  p.pp = integer(parallel, "pp", 1, kLargestDegree);
  p.vpp = integer(parallel, "vpp", 1, 10'000);
  p.cp = integer(parallel, "cp", 1, kLargestDegree);
  p.ep = integer(parallel, "ep", 1, kLargestDegree);
  p.etp = integer(parallel, "etp", 1, kLargestDegree);
  const JsonValue* sp = value.find("sp");
  if (sp != nullptr && sp->kind == JsonValue::Kind::string) {
    p.sequence_wording = text(parallel, "sp");
  } else {
    p.sequence_parallel = boolean(parallel, "sp");
  }
  p.zero_stage = integer(parallel, "zero_stage", 0, 3);
  p.strategy = text(parallel, "strategy");
  if (const JsonValue* hsdp = parallel.object("hsdp", false)) {
    ObjectReader nested = parallel.nested("hsdp", *hsdp);
    p.hsdp_shard = integer(nested, "shard", 1, kLargestDegree);
    p.hsdp_replicate = integer(nested, "replicate", 1, kLargestDegree);
    p.optimizer_shard = integer(nested, "optimizer_shard", -1, kLargestDegree);
  }
  p.pp_schedule = text(parallel, "pp_schedule");
  return p;
}

RowMeasured read_measured(ObjectReader measured, const JsonValue& value) {
  RowMeasured m;
  m.step_time_s = positive(measured, "step_time_s");
  m.tokens_per_s_per_gpu = positive(measured, "tokens_per_s_per_gpu");
  m.samples_per_s = positive(measured, "samples_per_s");
  const bool rate = measured.has("tflops_per_gpu") || measured.has("mfu") || measured.has("hfu");
  m.reports_rate_only = rate && !m.step_time_s && !m.tokens_per_s_per_gpu && !m.samples_per_s;
  m.memory_gib = positive(measured, "memory_gib");
  m.memory_kind = text(measured, "memory_kind");
  const JsonValue* other = value.find("memory_other");  // a text in some rows
  if (other != nullptr && other->kind == JsonValue::Kind::object) {
    ObjectReader nested = measured.nested("memory_other", *other);
    m.reserved_gib = positive(nested, "reserved_gib");
    m.after_step_gib = positive(nested, "allocated_after_step_gib");
  }
  m.oom = measured.boolean_or("oom", false);
  return m;
}

std::vector<JsonMember> read_flags(const JsonValue& flags) {
  std::vector<JsonMember> members = flags.members;
  for (JsonMember& flag : members) std::replace(flag.key.begin(), flag.key.end(), '-', '_');
  return members;
}

Row read_row(const JsonValue& value, const std::string& file, Diagnostics& problems) {
  ObjectReader object(value, file, "", problems);
  Row row;
  row.file = file;
  row.id = object.string("id");
  if (object.ok() && row.id.empty()) object.fail("id", "empty, but every row needs a name");
  const JsonValue* source = value.find("source");  // a text in some rows
  if (source != nullptr && source->kind == JsonValue::Kind::object) {
    ObjectReader nested = object.nested("source", *source);
    row.repository = text(nested, "repo");
  }
  row.framework = text(object, "framework");
  row.task = text(object, "task");
  row.date = text(object, "date");
  if (const JsonValue* model = object.object("model")) {
    row.model = read_model(object.nested("model", *model));
  }
  if (const JsonValue* hardware = object.object("hardware")) {
    row.hardware = read_hardware(object.nested("hardware", *hardware));
  }
  if (const JsonValue* parallel = object.object("parallel")) {
    row.parallel = read_parallel(object.nested("parallel", *parallel), *parallel);
  }
  if (const JsonValue* batch = object.object("batch")) {
    ObjectReader nested = object.nested("batch", *batch);
    row.batch.micro = integer(nested, "micro", 1, kLargestSize);
    row.batch.global = integer(nested, "global", 1, kLargestSize);
    row.batch.grad_accum = positive(nested, "grad_accum");
  }
  row.precision = text(object, "precision");
  row.optimizer = text(object, "optimizer");
  row.recompute = text(object, "recompute");
  if (const JsonValue* flags = object.object("flags", false)) row.flags = read_flags(*flags);
  if (const JsonValue* measured = object.object("measured")) {
    row.measured = read_measured(object.nested("measured", *measured), *measured);
  }
  row.quality = object.string("quality");
  return row;
}

bool blank(std::string_view line) {
  return line.find_first_not_of(" \t\r") == std::string_view::npos;
}

}  // namespace

std::string_view Row::source() const {
  const std::string_view all = id;
  return all.substr(0, all.find('/'));
}

const JsonValue* Row::flag(std::string_view key) const {
  for (const JsonMember& flag : flags) {
    if (flag.key == key && flag.value.kind != JsonValue::Kind::null) return &flag.value;
  }
  return nullptr;
}

bool Row::flag_on(std::string_view key) const {
  const JsonValue* value = flag(key);
  return value != nullptr && value->kind == JsonValue::Kind::boolean && value->boolean;
}

bool Row::flag_off(std::string_view key) const {
  const JsonValue* value = flag(key);
  return value != nullptr && value->kind == JsonValue::Kind::boolean && !value->boolean;
}

std::string_view Row::flag_text(std::string_view key) const {
  const JsonValue* value = flag(key);
  if (value == nullptr || value->kind != JsonValue::Kind::string) return {};
  return value->string;
}

Result<std::vector<Row>> read_rows(std::string_view text, const std::string& file) {
  std::vector<Row> rows;
  Diagnostics problems;
  std::unordered_map<std::string, int> first_line;
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  int line = 0;
  while (!text.empty() && problems.size() < kMostProblems) {
    ++line;
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view one = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (blank(one)) continue;

    const Result<JsonValue> value = parse_json(one, file);
    const std::size_t before = problems.size();
    if (value) {
      rows.push_back(read_row(*value, file, problems));
      rows.back().line = line;
      const auto [first, added] = first_line.try_emplace(rows.back().id, line);
      if (!added && problems.size() == before) {
        problems.push_back(
            {file, 1, 0, "/id",
             fmt::format("{} was given on line {}", shown(rows.back().id, 200), first->second),
             "every row needs an id of its own"});
      }
    } else {
      problems.insert(problems.end(), value.problems().begin(), value.problems().end());
    }
    for (std::size_t i = before; i < problems.size(); ++i) problems[i].line = line;
  }
  if (!problems.empty()) return problems;
  if (rows.empty()) return Diagnostic{file, 0, 0, "", "no row", "one JSON object a line"};
  return rows;
}

}  // namespace shardwise
